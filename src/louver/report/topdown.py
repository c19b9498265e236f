"""The report inside a TopDown release: what was spent, what is exact, what is not protected, how it was found."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from louver import __version__
from louver.report.page import answers, facts, page, picture, table, tiles
from louver.topdown.plot import plot_release, plot_sizes
from louver.topdown.result import TopDownRelease

__all__ = ["topdown_report"]

MOST_LISTED = 50
"""Regions listed by name; the manifest has them all."""


def topdown_report(release: TopDownRelease) -> str:
    """The report as HTML. It is published with the release and says nothing that is not private."""
    plan, result = release.plan, release.estimate
    rescued = len(result.rescued)
    sections = [
        f'<p class="verdict{"" if release.is_private else " risk"}">{escape(_verdict(release))}</p>',
        _answers(release),
        tiles(
            [
                (release.n_people, "people", False),
                (plan.design.spine.sizes[-1], f"regions of level {plan.design.spine.names[-1]}", False),
                (f"{float(plan.loss.amount):g}", f"{plan.loss.measure}, {_whole(release)}", False),
                (rescued, "regions that needed the failsafe", rescued > 0),
            ]
        ),
        "<h2>How large regions are, and how well their size is known</h2>",
        table(
            [
                "level",
                "regions",
                "smallest",
                "median",
                "largest",
                "error of a region's size (standard deviation)",
            ],
            _size_lines(release),
        ),
        picture(plot_sizes(release), "People of every released region, the largest region first."),
        f"<p>{_meaning_of_errors(release)} Counts that are small compared with it are mostly noise.</p>",
        *_known_error(release),
        "<h2>What is protected, and what is not</h2>",
        facts(_guarantee(release)),
        "<h2>What public knowledge was kept</h2>",
        *_knowledge(release),
        "<h2>Where the budget went</h2>",
        table(["level", "regions", "query", "loss", "noise (standard deviation)"], _budget_lines(release)),
        picture(plot_release(release), "Loss and noise of every query, by level."),
        *_errors(release),
        "<h2>How to read this</h2><p>Counts are whole, not negative, and add up over regions. They are estimates: "
        "because no count may fall below zero, empty regions come out "
        "too large on average and large ones too small. The noisy measurements in <code>measurements/</code> have no such "
        "bias.</p>",
        "<h2>Appendix: how it was found</h2>",
        *_solution(release),
    ]
    return page(
        "TopDown release",
        f"{release.n_people:,} people in a tree of regions",
        sections,
        f"louver {__version__}",
    )


def _verdict(release: TopDownRelease) -> str:
    if release.evaluation is not None:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if not release.is_private:
        return "NOT PRIVATE: the noise comes from a seed that anybody can repeat."
    given = ", given the exact counts listed below" if release.not_protected else ""
    meaning = release.plan.loss.neighbours.meaning
    beside = (
        "" if release.lost_before is None else f" beside {release.lost_before} for the release it extends"
    )
    return f"Promised: {release.plan.loss}{beside}. That is the most that these files can tell of whether {meaning}{given}."


def _whole(release: TopDownRelease) -> str:
    """What the loss is that of."""
    return (
        "the whole privacy loss"
        if release.lost_before is None
        else "the loss beside that of the first release"
    )


def _answers(release: TopDownRelease) -> str:
    """What an outsider may learn, how accurate it is, whether to publish it, what to do next."""
    names = release.plan.design.spine.names
    learnt = "Nobody can tell from these files with much confidence what any one person's record says"
    if not release.is_private:
        learnt = "Nothing: whoever guesses the seed can take the noise away and work out true counts"
    if release.not_protected:
        learnt += f"; but they tell exactly, and so do not protect, {'; '.join(release.not_protected)}"
    error = _errors_of_sizes(release)[-1]
    known = f"is uncertain by about {error:.0f} people either way" if error else "is exact"
    publish = (
        "It may be published as it is"
        if release.is_private
        else "Do not publish it: anybody can repeat its noise"
    )
    if release.estimate.rescued:
        publish += "; some regions do not add up to those above them and are listed below"
    return answers(
        released=f"One row for each of {release.n_people:,} people with region and attributes, and tables of {len(names)} levels, "
        f"from {names[0]} to {names[-1]}; counts are whole and add up.",
        promised=f"{learnt}.",
        accuracy=f"How many people live in one {names[-1]} {known}; larger regions are known better in proportion.",
        check=f"{publish}. Look at the levels you will quote, compare their noise with the counts, and run louver verify on the folder.",
    )


def _errors_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, how far off a region's size typically is: as simulated, or where nothing is, by its measurements. 0 for exact."""
    known = release.known_error
    noise = _noise_of_sizes(release)
    if known is None:
        return noise
    total = next(place for place, query in enumerate(known.queries) if query.n_rows == 1)
    return [known.typical_error(level, total) if own else 0.0 for level, own in enumerate(noise)]


def _meaning_of_errors(release: TopDownRelease) -> str:
    """Where the errors of `_errors_of_sizes` come from, in words."""
    if release.known_error is None:
        return "The error is that of the level's own measurements; the levels above and below make most sizes more accurate than that."
    return "The error is the typical standard error of a published size, as in the table below."


def _noise_of_sizes(release: TopDownRelease) -> list[float]:
    """For each level, the standard deviation of a region's size by its own measurements: every query of r rows adds
    up to the size with variance r v, and 1 / sum(1 / (r v)) is that of their best mean. 0 where the size is exact."""
    exact = {statement.level for statement in release.plan.invariants if not statement.labels}
    shares = [
        sum(1 / (query.query.n_rows * query.distribution.variance) for query in level)
        for level in release.plan.measured
    ]
    least = max(exact, default=-1)
    return [0.0 if level <= least or not share else share**-0.5 for level, share in enumerate(shares)]


def _size_lines(release: TopDownRelease) -> list[list[object]]:
    spine, lines = release.plan.design.spine, []
    errors = _errors_of_sizes(release)
    for level, people in enumerate(release.sizes()):
        sizes = np.sort(people)
        error = f"{errors[level]:.1f}" if errors[level] else "exact"
        middle = int(sizes[len(sizes) // 2])
        lines.append([spine.names[level], len(sizes), int(sizes[0]), middle, int(sizes[-1]), error])
    return lines


def _known_error(release: TopDownRelease) -> list[str]:
    """Standard errors by level, and bias by size, as simulations of the release tell them."""
    known, design = release.known_error, release.plan.design
    if known is None:
        return []
    lines: list[list[object]] = []
    for level, name in enumerate(design.spine.names):
        for place, query in enumerate(known.queries):
            typical = known.typical_error(level, place)
            how = "simulated" if known.model.classes[level, place].pairs.sum() else "least squares"
            lines.append([name, query.name, f"{typical:.1f}" if typical else "exact", how])
    last = design.spine.names[-1]
    first = next(query.name for query in known.queries if query.n_rows == 1)
    sizes = [
        [f"{size:,} and more" if size else "0", n, f"{bias:+.1f}"]
        for level, query, size, n, bias in known.bias
        if level == last and query == first
    ]
    return [
        "<h2>How far off the numbers are</h2>",
        "<p>Every number of the tables has a standard error and an interval from <code>lower_90</code> to <code>upper_90</code>: of all such "
        "intervals about nine in ten hold the true number. They come from "
        f"{known.simulations} simulations with the same noise of truths drawn given the measurements, widened by as much as these say "
        "that the truth is rougher. A number that a table leaves out is 0, with an error like those below. "
        "<code>louver topdown area</code> tells the same for any union of leaves.</p>",
        table(["level", "query", "typical standard error", "from"], lines[:MOST_LISTED]),
        f"<p>Bias: how much larger than in truth the size of a {escape(last)} comes out on average, by its true size (each class "
        "reaches to the next).</p>",
        table(["true size", f"simulated, {last}", "bias, people"], sizes),
    ]


def _guarantee(release: TopDownRelease) -> list[tuple[str, str]]:
    plan = release.plan
    rows = [("neighbours", f"{plan.loss.neighbours}: {plan.loss.neighbours.meaning}")]
    if release.lost_before is not None:
        rows.append(("lost before", f"{release.lost_before}, by the release that it extends; both add up"))
    rows += [("not protected", what) for what in release.not_protected] or [
        ("not protected", "nothing is exact")
    ]
    if plan.promise is not None:
        epsilon, delta = plan.promise
        told = f"epsilon {float(epsilon):g} at delta {float(delta):g}, its queries composed"
        rows.append(("this release alone", told))
    if plan.epsilon_delta is not None:
        epsilon, delta = plan.epsilon_delta
        rows.append(("in other words", f"epsilon {float(epsilon):g} at delta {float(delta):g}"))
    unspent = plan.design.budget.amount - plan.loss.amount
    if unspent:
        told = f"{unspent} of {plan.design.budget.amount}: shares of queries that invariants answer exactly"
        rows.append(("not spent", told))
    if release.head is not None:
        rows.append(("ledger entry", str(release.head.entry)))
    return rows


def _knowledge(release: TopDownRelease) -> list[str]:
    """Invariants and bounds; every one holds exactly, which `verify` recomputes."""
    plan = release.plan
    lines = [
        [
            statement.name,
            "exact" if statement.is_invariant else "bounds from a public table",
            plan.design.spine.names[statement.level],
            "; ".join(f"{name}: {', '.join(labels)}" for name, labels in statement.labels.items())
            or "everyone",
        ]
        for statement in plan.design.statements
    ]
    zeros = int((~plan.design.is_possible).sum())
    told = "No cell is a structural zero."
    if zeros:
        told = f"{zeros:,} of {plan.design.n_cells:,} cells are structural zeros; nobody is in them."
    if not lines:
        return [f"<p>No invariants and no bounds. {told}</p>"]
    return [table(["statement", "kind", "level", "about"], lines), f"<p>{told}</p>"]


def _budget_lines(release: TopDownRelease) -> list[list[object]]:
    spine = release.plan.design.spine
    return [
        [
            spine.names[query.level],
            spine.sizes[query.level],
            query.query.name,
            str(query.loss.amount),
            f"{math.sqrt(query.distribution.variance):.1f}",
        ]
        for level in release.plan.measured
        for query in level
    ]


def _errors(release: TopDownRelease) -> list[str]:
    """True errors and times, in an evaluation only: neither may leave with a release."""
    if release.evaluation is None:
        return []
    queries = list(dict.fromkeys(error.query for error in release.evaluation))
    found = {(error.level, error.query): f"{error.mean_absolute:.3g}" for error in release.evaluation}
    levels = release.estimate.levels
    return [
        "<h2>How far off it is</h2>",
        table(
            ["level", *queries], [[level.name, *(found[level.name, q] for q in queries)] for level in levels]
        ),
        "<p>Mean absolute error over all regions of a level and all rows of a query, in people.</p>",
        "<h2>Run time</h2>",
        table(["stage", "seconds"], [[stage, f"{taken:.2f}"] for stage, taken in release.seconds.items()]),
        table(["level", "seconds of estimation"], [[level.name, f"{level.seconds:.2f}"] for level in levels]),
    ]


def _solution(release: TopDownRelease) -> list[str]:
    """What the solvers said, level by level; where the failsafe was used."""
    levels = release.estimate.levels
    parts = [
        table(
            [
                "level",
                "regions",
                "parents without proof",
                "parents rescued",
                "largest violation before rounding",
            ],
            [
                [x.name, x.regions, len(x.suboptimal), len(x.rescued), f"{x.largest_residual:.1e}"]
                for x in levels
            ],
        )
    ]
    rescued = release.estimate.rescued
    if not rescued:
        parts.append("<p>The failsafe was never used: children add up to their parents everywhere.</p>")
    else:
        lines = [
            [r.level, r.region, f"{r.distance:g}", r.moved, "yes" if r.kept_margin else "no"] for r in rescued
        ]
        head = ["level", "region", "least distance", "people moved", "margins kept"]
        parts.append(table(head, lines[:MOST_LISTED]))
    if release.estimate.suboptimal:
        named = ", ".join(release.estimate.suboptimal[:MOST_LISTED])
        parts.append(f"<p>Accepted without proof of optimality: {escape(named)}.</p>")
    return parts
