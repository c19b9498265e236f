"""Pictures of a TopDown release: where the budget went, how large the noise is, and how far off an evaluation was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from louver._figure import blank_figure, literal_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from louver.topdown.planning.forecast import PlanForecast
    from louver.topdown.result import TopDownRelease

__all__ = ["plot_forecast", "plot_release"]

COLOURS = ("#2a6f97", "#e07a5f", "#81b29a", "#6d597a", "#f2cc8f", "#22313f", "#c1442d", "#8d99ae")
LARGE_RATIO = 30  # beyond it an axis is logarithmic


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
    """Draw how plans share the budget out by level, and the errors of the total and of the last query."""
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
