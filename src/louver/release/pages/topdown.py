"""The page of a TopDown release: the privacy loss, what is exact, what is not protected, and how it was estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from louver.release.manifest import Manifest
from louver.release.pages.chart import COLOURS, Bars, ChartArea, ChartLine, Panel, drawing
from louver.release.pages.frame import answers, facts, figure, page, table, tiles, verdict_line
from louver.release.pages.promised import loss_of, status_of, topdown_verdict
from louver.release.pages.published import Published

__all__ = ["topdown_page"]

MOST_LISTED = 50
"""Regions listed by name; the manifest has them all."""

LARGE_RATIO = 30
"""Ratio of largest to smallest number above which an axis is logarithmic."""

Levels = Sequence[Mapping[str, Any]]


def topdown_page(manifest: Manifest, published: Published) -> str:
    """The page as HTML. It is published with the release and contains only private results."""
    r, privacy = manifest.results, manifest.privacy
    levels: Levels = r["levels"]
    rescued = len(r["failsafe"])
    found = topdown_verdict(privacy, _covariates(r), **status_of(manifest))
    sections = [
        verdict_line(found.level, escape(found.sentence)),
        _answers(manifest),
        tiles(
            [
                (r["people"], "people", False),
                (levels[-1]["regions"], f"regions of level {levels[-1]['name']}", False),
                (
                    f"{float(Fraction(privacy['amount'])):g}",
                    f"{privacy['measure']}, {_total_budget(privacy)}",
                    False,
                ),
                (rescued, "regions that needed the failsafe", rescued > 0),
            ]
        ),
        "<h2>Sizes of regions, and how accurately they are known</h2>",
        table(
            [
                "level",
                "regions",
                "smallest",
                "median",
                "largest",
                "error of a region's size (standard deviation)",
            ],
            [
                [
                    level["name"],
                    level["regions"],
                    level["sizes"][0],
                    level["median"],
                    level["sizes"][-1],
                    f"{level['error']:.1f}" if level["error"] else "exact",
                ]
                for level in levels
            ],
        ),
        *_spine(manifest),
        figure(_sizes(levels), "People in the regions of the last levels, largest first."),
        f"<p>{_meaning_of_errors(r)} Counts that are small compared with it are mostly noise.</p>",
        *_known_error(r),
        "<h2>What is protected, and what is not</h2>",
        facts(_guarantee(manifest)),
        "<h2>Public knowledge that was kept</h2>",
        *_knowledge(manifest),
        "<h2>Where the budget went</h2>",
        table(
            ["level", "regions", "query", "loss", "noise (standard deviation)"],
            [
                [
                    level["name"],
                    level["regions"],
                    query["name"],
                    query["loss"],
                    f"{math.sqrt(query['variance']):.1f}",
                ]
                for level in levels
                for query in level["queries"]
            ],
        ),
        figure(_budget(levels, str(privacy["measure"])), "Loss and noise of every query, by level."),
        *_evaluation(levels),
        "<h2>How to read this</h2><p>Counts are whole, nonnegative, and add up over regions. They are estimates: "
        "because no count may be negative, empty regions come out too large on average and large ones too small. The noisy measurements in "
        "<code>measurements/</code> have no such "
        "bias.</p>",
        "<h2>Appendix: how it was estimated</h2>",
        *_solution(r),
    ]
    return page(
        "TopDown release",
        f"{r['people']:,} people in a tree of regions",
        sections,
        f"louver {manifest.version}",
    )


# Words


def _covariates(results: Mapping[str, Any]) -> list[str]:
    """Columns of public numbers that the estimate used."""
    return [one["column"] for one in results["covariates"]]


def _total_budget(privacy: Mapping[str, Any]) -> str:
    """What the privacy loss covers."""
    if privacy.get("first_release") is None:
        return "the whole privacy loss"
    return "the loss in addition to that of the first release"


def _answers(manifest: Manifest) -> str:
    """What an outsider may learn, how accurate the release is, whether to publish it, and what to do next."""
    levels, is_private = manifest.results["levels"], not manifest.not_private
    names = [level["name"] for level in levels]
    learnt = "These files do not let anyone say with much confidence what any one person's record contains"
    if not is_private:
        learnt = "Nothing: anyone who guesses the seed can remove the noise and derive true counts"
    if manifest.privacy["not_protected"]:
        learnt += f"; but they contain exactly, and therefore do not protect, {'; '.join(manifest.privacy['not_protected'])}"
    by = manifest.privacy.get("stated_by")
    if by is not None:
        learnt = f"Nothing by louver: the noise was added by {by}, who published these variances"
    error = levels[-1]["error"]
    known = f"is uncertain by about {error:.0f} people either way" if error else "is exact"
    publish = (
        "It may be published as it is" if is_private else "Do not publish it: anyone can repeat its noise"
    )
    if manifest.results["failsafe"]:
        publish += "; some regions do not add up to those above them and are listed below"
    return answers(
        released=f"One row for each of {manifest.results['people']:,} people with region and attributes, and tables of {len(names)} "
        f"levels, from {names[0]} to {names[-1]}; counts are whole and add up.",
        promised=f"{learnt}.",
        accuracy=f"The number of people in one {names[-1]} {known}; larger regions are known more accurately in proportion.",
        check=f"{publish}. Check the levels you will quote, compare their noise with the counts, and run louver verify on the folder.",
    )


def _meaning_of_errors(results: Mapping[str, Any]) -> str:
    """The meaning of the stated errors of sizes, in words."""
    if results["errors"] is None:
        return "The error is that of the level's own measurements; the levels above and below make most sizes more accurate."
    return "The error is the typical standard error of a published size, as in the table below."


def _known_error(results: Mapping[str, Any]) -> list[str]:
    """Standard errors by level, and bias by size, as estimated by simulations of the release."""
    found = results["errors"]
    if found is None:
        return []
    lines = [
        [
            one["level"],
            one["query"],
            f"{one['error']:.1f}" if one["error"] else "exact",
            "simulated" if one["simulated"] else "least squares",
        ]
        for one in found["typical"][:MOST_LISTED]
    ]
    last = results["levels"][-1]["name"]
    sizes = [[f"{size:,} and more" if size else "0", n, f"{bias:+.1f}"] for size, n, bias in found["bias"]]
    return [
        "<h2>How far off the numbers are</h2>",
        "<p>Every number of the tables has a standard error and an interval from <code>lower_90</code> to <code>upper_90</code>: about "
        "nine in ten such intervals contain the true number. They come from "
        f"{results['intervals']} simulations with the same noise, starting from truths drawn given the measurements, and are widened where "
        "the measurements show that the truth varies more. Numbers omitted from a table are 0, with errors like those below. "
        "<code>louver topdown area</code> gives the same for any union of leaves.</p>",
        table(["level", "query", "typical standard error", "from"], lines),
        f"<p>Bias: by how much the published size of a {escape(last)} exceeds its true size on average, by true size (each class extends "
        "to the next).</p>",
        table(["true size", f"simulated, {last}", "bias, people"], sizes),
    ]


def _guarantee(manifest: Manifest) -> list[tuple[str, str]]:
    privacy = manifest.privacy
    rows = []
    if privacy.get("stated_by") is not None:
        rows.append(
            (
                "noise",
                f"drawn and published by {privacy['stated_by']}; louver claims no privacy loss of its own",
            )
        )
    rows += [("neighbours", f"{privacy['neighbours']}: {privacy['meaning']}")]
    if privacy.get("first_release") is not None:
        lost = loss_of(privacy["first_release"])
        rows.append(("lost before", f"{lost}, by the release that it extends; the two add up"))
    rows += [("not protected", what) for what in privacy["not_protected"]] or [
        ("not protected", "nothing is exact")
    ]
    rows += [("taken as public", f'column "{one}"') for one in _covariates(manifest.results)]
    if privacy["composed"] is not None:
        epsilon, delta = (float(Fraction(part)) for part in privacy["composed"])
        rows.append(("this release alone", f"epsilon {epsilon:g} at delta {delta:g}, its queries composed"))
    if privacy["epsilon_at_delta"] is not None:
        epsilon, delta = (float(Fraction(part)) for part in privacy["epsilon_at_delta"])
        rows.append(("in other words", f"epsilon {epsilon:g} at delta {delta:g}"))
    unspent = Fraction(privacy["budget"]) - Fraction(privacy["amount"])
    if unspent:
        words = f"{unspent} of {privacy['budget']}: shares of queries that invariants answer exactly"
        rows.append(("not spent", words))
    if manifest.ledger_head is not None:
        rows.append(("ledger entry", manifest.ledger_head.partition(":")[0]))
    return rows


def _knowledge(manifest: Manifest) -> list[str]:
    """Invariants and bounds; every one holds exactly, which `verify` recomputes."""
    promise = next(entry for entry in manifest.promises if entry["promise"] == "topdown")
    lines = [
        [
            one["name"],
            "exact" if one["exact"] else "bounds from a public table",
            one["level"],
            "; ".join(
                f"{name}: {', '.join(labels)}" for name, labels in promise["cells"][one["name"]].items()
            )
            or "everyone",
        ]
        for one in manifest.results["statements"]
    ]
    zeros = manifest.results["structural_zeros"]
    words = "No cell is a structural zero."
    if zeros:
        n_cells = math.prod(len(labels) for labels in promise["attributes"].values())
        words = f"{zeros:,} of {n_cells:,} cells are structural zeros, which are empty."
    if not lines:
        return [f"<p>No invariants and no bounds. {words}</p>"]
    return [table(["statement", "kind", "level", "about"], lines), f"<p>{words}</p>"]


def _spine(manifest: Manifest) -> list[str]:
    """What the leaves of a region have in common, if regions were arranged for areas."""
    spine = next((own["spine"] for own in manifest.promises if own.get("spine")), None)
    if spine is None:
        return []
    names = [level["name"] for level in manifest.results["levels"]]
    first = spine["geography"].index(spine["fixed"]) + 1
    rules = (
        f"{name}: the same {' and '.join([rule['geography'], *rule['areas']])}"
        for name, rule in zip(names[first:], spine["rules"], strict=False)
    )
    kinds = " and ".join(spine["kinds"])
    return [
        f"<p>Regions below level {escape(spine['fixed'])} were arranged for areas ({escape(kinds)}), by public lists alone. What the "
        "leaves of a "
        f"region share: {escape('; '.join(rules))}. {escape(spine['file'])} has the place of every leaf.</p>"
    ]


def _evaluation(levels: Levels) -> list[str]:
    """True errors; only for an evaluation, which must never be released."""
    if "mean_absolute_error" not in levels[0]:
        return []
    queries = list(levels[0]["mean_absolute_error"])
    lines = [
        [level["name"], *(_rounded(level["mean_absolute_error"].get(query)) for query in queries)]
        for level in levels
    ]
    return [
        "<h2>How far off it is</h2>",
        table(["level", *queries], lines),
        "<p>Mean absolute error over all regions of a level and all rows of a query, in people.</p>",
    ]


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _solution(results: Mapping[str, Any]) -> list[str]:
    """The reports of the solvers, level by level, and the use of the failsafe."""
    rescued = results["failsafe"]
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
                [
                    level["name"],
                    level["regions"],
                    level["unproved"],
                    sum(region["level"] == level["name"] for region in rescued),
                    f"{level['largest_residual']:.1e}",
                ]
                for level in results["levels"]
            ],
        )
    ]
    if not rescued:
        parts.append("<p>The failsafe was never used: children add up to their parents everywhere.</p>")
    else:
        lines = [
            [
                region["level"],
                region["region"],
                f"{region['distance']:g}",
                region["moved"],
                "yes" if region["kept_margin"] else "no",
            ]
            for region in rescued
        ]
        head = ["level", "region", "least distance", "people moved", "margins kept"]
        parts.append(table(head, lines[:MOST_LISTED]))
    if results["suboptimal_regions"]:
        listed = ", ".join(results["suboptimal_regions"][:MOST_LISTED])
        parts.append(f"<p>Accepted without proof of optimality: {escape(listed)}.</p>")
    return parts


# Drawings


def _sizes(levels: Levels) -> str:
    """People of the regions of the last levels, the largest first, at every twentieth of the regions."""
    panels = []
    for level in levels[-3:]:
        sizes, n = level["sizes"][::-1], level["regions"]
        if len(sizes) < n:  # between two of the given sizes, regions have at least the smaller one
            edges, heights = [place * n / (len(sizes) - 1) for place in range(len(sizes))], sizes[1:]
        else:
            edges, heights = [float(place) for place in range(n + 1)], sizes
        marks = [ChartArea(edges, [0.0] * len(heights), heights)]
        panels.append(
            Panel(
                title=level["name"],
                marks=marks,
                x_label="regions, largest first",
                y_label="people",
                straight=10.0,
                ends=(0.0, float(n)),
            )
        )
    return drawing(panels)


def _budget(levels: Levels, measure: str) -> str:
    """The loss of every query by level, and the standard deviation of its noise; with an evaluation the errors."""
    names = [level["name"] for level in levels]
    queries = list(dict.fromkeys(query["name"] for level in levels for query in level["queries"]))
    ticks = [(float(place), name) for place, name in enumerate(names)]
    places, below, bars = range(len(names)), [0.0] * len(names), []
    for number, name in enumerate(queries):
        upper = [
            low + sum(float(Fraction(query["loss"])) for query in level["queries"] if query["name"] == name)
            for low, level in zip(below, levels, strict=True)
        ]
        bars.append(Bars(places, upper, below, colour=_colour(number)))
        below = upper
    noise = {
        name: {
            place: math.sqrt(query["variance"])
            for place, level in enumerate(levels)
            for query in level["queries"]
            if query["name"] == name
        }
        for name in queries
    }
    panels = [
        Panel(title="Loss", marks=bars, y_label=measure, ticks=ticks, ends=(-0.6, len(names) - 0.4)),
        _lines("Noise, standard deviation", noise, ticks),
    ]
    if "mean_absolute_error" in levels[0]:
        errors = {
            name: {
                place: level["mean_absolute_error"][name]
                for place, level in enumerate(levels)
                if name in level["mean_absolute_error"]
            }
            for name in queries
        }
        panels.append(_lines("Mean absolute error", errors, ticks))
    return drawing(panels, legend=queries)


def _lines(
    title: str, values: Mapping[str, Mapping[int, float]], ticks: Sequence[tuple[float, str]]
) -> Panel:
    """One line per query over the levels; a level without a value is left out."""
    found = [value for by_level in values.values() for value in by_level.values() if value > 0]
    is_wide = bool(found) and max(found) > LARGE_RATIO * min(found)
    marks = [
        ChartLine(list(by_level), list(by_level.values()), _colour(number))
        for number, by_level in enumerate(values.values())
        if by_level
    ]
    return Panel(
        title=title,
        marks=marks,
        y_label="people",
        straight=min(found) if is_wide else None,
        ticks=ticks,
        ends=(-0.6, len(ticks) - 0.4),
    )


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
