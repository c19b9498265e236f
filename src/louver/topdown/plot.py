"""Pictures of a TopDown release: where the budget went, the size of the noise, and the errors of an evaluation.

Also the figures that only the release's page shows: sizes of regions, their errors, and how they were estimated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from louver.topdown.result import TopDownRelease

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from louver.topdown.planning.forecast import PlanForecast
    from louver.topdown.result import TopDownRelease

__all__ = ["level_figures", "plot_forecast", "plot_release", "release_figures"]

COLOURS = ("#2a6f97", "#e07a5f", "#81b29a", "#6d597a", "#f2cc8f", "#22313f", "#c1442d", "#8d99ae")
LARGE_RATIO = 30  # ratio above which an axis is logarithmic


def plot_release(release: TopDownRelease) -> Figure:
    """Draw the loss of every query by level, and the standard deviation of its noise; with an evaluation the errors."""
    plan, names = release.plan, release.plan.design.spine.names
    queries = [query.name for query in plan.design.queries]
    losses = np.zeros((len(queries), len(names)))
    noise: dict[str, dict[int, float]] = {query: {} for query in queries}
    for level, measured in enumerate(plan.measured):
        for query in measured:
            losses[queries.index(query.query.name), level] = float(query.loss.amount)
            noise[query.query.name][level] = math.sqrt(query.distribution.variance)
    n_panels = 2 if release.evaluation is None else 3
    figure = blank_figure(4.5 * n_panels, 3.6)
    panels = figure.subplots(1, n_panels)
    below = np.zeros(len(names))
    for number, label in enumerate(queries):
        panels[0].bar(names, losses[number], bottom=below, color=_colour(number), label=label)
        below += losses[number]
    panels[0].set(ylabel=str(plan.loss.measure), title="Loss")
    _draw_lines(panels[1], names, noise)
    panels[1].set(ylabel="people", title="Noise, standard deviation")
    if release.evaluation is not None:
        errors: dict[str, dict[int, float]] = {query: {} for query in queries}
        for error in release.evaluation:
            errors[error.query][names.index(error.level)] = error.mean_absolute
        _draw_lines(panels[2], names, errors)
        panels[2].set(ylabel="people", title="Mean absolute error")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="x", rotation=30)
    return literal_text(figure)


def plot_forecast(forecast: PlanForecast) -> Figure:
    """Draw how plans divide the budget by level, and the errors of the total and of the last query."""
    plans = forecast.plans
    names = next(iter(plans.values())).design.spine.names
    queries = [
        line.query for line in forecast.lines if line.plan == next(iter(plans)) and line.level == names[0]
    ]
    shown = list(dict.fromkeys([queries[0], queries[-1]]))
    figure = blank_figure(4.5 * (1 + len(shown)), 3.6)
    panels = np.atleast_1d(figure.subplots(1, 1 + len(shown)))
    width = 0.8 / len(plans)
    for number, (name, plan) in enumerate(plans.items()):
        place = np.arange(len(names)) + (number - (len(plans) - 1) / 2) * width
        shares = [float(share) for share in plan.design.level_shares]
        panels[0].bar(place, shares, width, color=_colour(number), label=name)
    panels[0].set(title="Share of the budget")
    panels[0].set_xticks(range(len(names)), names)
    for axes, query in zip(panels[1:], shown, strict=True):
        errors = {
            name: {
                level: forecast.line(name, names[level], query).mean_absolute for level in range(len(names))
            }
            for name in plans
        }
        _draw_lines(axes, names, errors)
        axes.set(ylabel="people", title=f"Mean absolute error, {query}")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="x", rotation=30)
    return literal_text(figure)


def _draw_lines(axes: Axes, names: tuple[str, ...], values: dict[str, dict[int, float]]) -> None:
    """One line per query over the levels; a level without a value is left out."""
    for number, by_level in enumerate(values.values()):
        if by_level:
            axes.plot(list(by_level), list(by_level.values()), "o-", color=_colour(number), markersize=5)
    axes.set_xticks(range(len(names)), names)
    axes.margins(0.1)
    found = [value for by_level in values.values() for value in by_level.values() if value > 0]
    if found and max(found) > LARGE_RATIO * min(found):
        axes.set_yscale("symlog", linthresh=min(found))
    axes.set_ylim(bottom=0)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


QUANTILES = 21
"""Number of region sizes shown for each level, from smallest to largest in equal steps; all if there are no more."""


def level_figures(release: TopDownRelease) -> list[dict[str, Any]]:
    """For every level: sizes of its regions, their typical errors (0 for exact), and parents without proof of optimality."""
    errors = _errors_of_sizes(release)
    figures = []
    for people, error, report in zip(release.sizes(), errors, release.estimate.levels, strict=True):
        ordered = np.sort(people)
        places = np.linspace(0, len(people) - 1, min(QUANTILES, len(people))).round().astype(np.int64)
        sizes, middle = ordered[places].tolist(), int(ordered[len(people) // 2])
        figures.append({"sizes": sizes, "median": middle, "error": error, "unproved": len(report.suboptimal)})
    return figures


def release_figures(release: TopDownRelease) -> dict[str, Any]:
    """Typical errors by level and query, bias by size, prior knowledge, and the number of structural zeros."""
    design = release.plan.design
    return {
        "errors": _errors(release),
        "statements": [
            {
                "name": statement.name,
                "exact": statement.is_invariant,
                "level": design.spine.names[statement.level],
            }
            for statement in design.statements
        ],
        "structural_zeros": int((~design.is_possible).sum()),
    }


def _errors(release: TopDownRelease) -> dict[str, Any] | None:
    known, names = release.known_error, release.plan.design.spine.names
    if known is None:
        return None
    first = next(query.name for query in known.queries if query.n_rows == 1)
    return {
        "typical": [
            {
                "level": name,
                "query": query.name,
                "error": known.typical_error(level, place),
                "simulated": bool(known.model.classes[level, place].pairs.sum()),
            }
            for level, name in enumerate(names)
            for place, query in enumerate(known.queries)
        ],
        "bias": [
            [size, n, bias]
            for level, query, size, n, bias in known.bias
            if level == names[-1] and query == first
        ],
    }


def _errors_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, the typical error of a region's size: from simulations or, without them, from its measurements; 0 if exact."""
    known = release.known_error
    noise = _noise_of_sizes(release)
    if known is None:
        return noise
    total = next(place for place, query in enumerate(known.queries) if query.n_rows == 1)
    return [known.typical_error(level, total) if own else 0.0 for level, own in enumerate(noise)]


def _noise_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, the standard deviation of a region's size by its own measurements: every query of r rows adds
    up to the size with variance r v, and 1 / sum(1 / (r v)) is that of their optimal mean. 0 where the size is exact."""
    exact = {statement.level for statement in release.plan.invariants if not statement.labels}
    shares = [
        sum(1 / (query.query.n_rows * query.distribution.variance) for query in level)
        for level in release.plan.measured
    ]
    least = max(exact, default=-1)
    return [0.0 if level <= least or not share else share**-0.5 for level, share in enumerate(shares)]
