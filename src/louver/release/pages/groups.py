"""The page of a release of group sizes: the privacy loss, the conditions of the guarantee, and the possible errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver.privacy.budget import epsilon_at
from louver.release.manifest import Manifest
from louver.release.pages.chart import Bars, ChartArea, Mark, Panel, Ranges, across, drawing
from louver.release.pages.frame import answers, facts, figure, page, table, tiles, verdict_line
from louver.release.pages.promised import given_known, groups_verdict, loss_of, status_of
from louver.release.pages.published import Published

__all__ = ["groups_page"]

GROUPS, PERSONS = "data/groups.parquet", "data/persons.parquet"

MOST_PICTURES = 6
"""Number of regions of the second level that are drawn; the file has them all."""

MOST_PANELS, PANELS_ACROSS = 16, 4
"""Number of regions of the lowest level that are drawn at small size."""

MOST_ROWS = 20
"""Number of sizes and regions in a table next to a picture; the files have them all."""

MOST_BARS = 80
"""Number of sizes that are drawn one by one."""

SMALL = 10
"""Numbers below this are mostly noise and are left out of stated typical errors."""

DELTA = Fraction(1, 10**10)
"""The delta at which rho is restated as epsilon."""

WITHIN_90 = 1.645
"""Number of standard deviations within which nine tenths of normal noise lie."""


@dataclass(frozen=True, slots=True)
class _Region:
    """Published numbers of one region, one line for each size."""

    labels: tuple[str, ...]
    lines: pa.Table

    def of(self, column: str) -> list[Any]:
        values: list[Any] = self.lines[column].to_pylist()
        return values


def groups_page(manifest: Manifest, published: Published) -> str:
    """The page as HTML. It is published with the release and contains nothing beyond what is released."""
    r, privacy = manifest.results, manifest.privacy
    levels: Sequence[Mapping[str, Any]] = r["levels"]
    first, largest = r["sizes"]
    wanted = _wanted(levels)
    regions = _first_regions(published, GROUPS, manifest, wanted, largest - first + 1)
    persons = _first_regions(published, PERSONS, manifest, wanted, 1)
    total = regions[levels[0]["name"]][0]
    found = groups_verdict(manifest.privacy, **status_of(manifest))
    sections = [
        verdict_line(found.level, escape(found.sentence)),
        _answers(manifest),
        tiles(
            [
                (r["total_groups"], "groups", False),
                (persons[levels[0]["name"]][0].of("persons")[0], "persons implied by them", False),
                (levels[-1]["regions"], "regions on the lowest level", False),
                (
                    f"{float(Fraction(privacy['amount'])):g}",
                    f"{privacy['measure']}, the whole privacy loss",
                    False,
                ),
            ]
        ),
        "<h2>All regions together</h2>",
        figure(
            _drawn(total, levels[0], r["query"]),
            "All regions together. Lines on bars are 90 % intervals; bands are those of the noise, empty sizes are closer.",
        ),
        _sizes_table(total),
        "<h2>Regions</h2>",
        *_regions(manifest, regions, persons),
        "<h2>How to read this</h2><p>Numbers are whole, nonnegative, and add up over regions. They are estimates: small numbers, and "
        "single large groups, are mostly noise. A 90 % interval contains the true number nine times in ten; standard errors and intervals "
        "were found by running the mechanism again on this release, without the data.</p>",
        *_agreed(manifest),
        "<h2>What was done</h2>",
        facts(_facts(manifest)),
        "<h2>Appendix: errors of whole levels</h2>",
        *_errors(levels),
    ]
    return page(
        "Group sizes",
        f"{r['total_groups']:,} groups by size and region",
        sections,
        f"louver {manifest.version}",
    )


def _wanted(levels: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many regions of a level the page shows."""
    names = [level["name"] for level in levels]
    return {
        **dict.fromkeys(names[2:][-1:], MOST_PANELS),
        **dict.fromkeys(names[1:2], MOST_ROWS),
        names[0]: 1,
    }


def _first_regions(
    published: Published, file: str, manifest: Manifest, wanted: Mapping[str, int], n_lines: int
) -> dict[str, list[_Region]]:
    """The first regions of some levels, each with this many lines."""
    parts: dict[str, list[pa.Table]] = {level: [] for level in wanted}
    left = {level: n * n_lines for level, n in wanted.items()}
    for part in published(file):
        for level in [level for level in wanted if left[level]]:
            rows = part.filter(pc.equal(part["level"], level)).slice(0, left[level])
            parts[level].append(rows)
            left[level] -= rows.num_rows
    names = [level["name"] for level in manifest.results["levels"]][1:]
    found: dict[str, list[_Region]] = {}
    for level, own in parts.items():
        rows = pa.concat_tables(own).combine_chunks()
        lines = [rows.slice(at, n_lines) for at in range(0, rows.num_rows, n_lines)]
        found[level] = [
            _Region(tuple(str(one[name][0]) for name in names if one[name][0].is_valid), one) for one in lines
        ]
    return found


def _errors(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Forecast errors of every level, before and after post-processing, as a table and a picture."""
    lines = [
        [
            level["name"],
            level["regions"],
            f"{level['share']:.3f}",
            f"{level['noise']:.1f}",
            f"{level['weighed']:.1f}",
            round(level["measured_l1"]),
            round(level["forecast_l1"]),
            round(level["measured_emd"]),
            round(level["forecast_emd"]),
        ]
        for level in levels
    ]
    header = [
        "level",
        "regions",
        "share of the budget",
        "noise as drawn",
        "once weighed",
        "L1 before",
        "L1 after",
        "EMD before",
        "EMD after",
    ]
    drawn = across(
        "Forecast L1 error",
        [level["name"] for level in levels],
        [
            ("measurements as drawn", [level["measured_l1"] for level in levels]),
            ("after post-processing", [level["forecast_l1"] for level in levels]),
        ],
        label_of=lambda value: f"{value:,.0f}",
        x_label="groups counted at a wrong size (forecast), logarithmic",
        straight=1.0,
    )
    return [
        table(header, lines),
        figure(drawn, "Forecast L1 error of every level, before and after post-processing."),
        "<p>Errors are forecast by running the mechanism again on the release itself with other noise: <em>before</em> is the error of the "
        "measurements as drawn, <em>after</em> the expected error of this release. The L1 error adds up how "
        "many groups are counted at a wrong size; the earth mover's distance (EMD) adds up the same for groups of at most each size, so "
        "that it also measures how far off they are. Noise is given as the standard deviation of one count: as drawn, and after the levels "
        "are combined.</p>",
    ]


def _sizes_table(region: _Region) -> str:
    """The numbers of a picture: the first sizes of a region."""
    columns = (region.of(name) for name in ("size", "groups", "standard_error", "lower_90", "upper_90"))
    lines = [
        [size, n, f"{error:.1f}", f"{low:,} to {high:,}"]
        for size, n, error, low, high in zip(*columns, strict=True)
    ]
    more = f"<p>The first {MOST_ROWS} sizes; the file has all.</p>" if len(lines) > MOST_ROWS else ""
    return table(["size", "groups", "standard error", "90 % interval"], lines[:MOST_ROWS]) + more


def _regions(
    manifest: Manifest, regions: Mapping[str, list[_Region]], persons: Mapping[str, list[_Region]]
) -> list[str]:
    """The regions of the second level one by one, and those of the lowest level at small size, each with its numbers."""
    levels, query = manifest.results["levels"], manifest.results["query"]
    if len(levels) == 1:
        return []
    second, lowest = levels[1], levels[-1]
    own = regions[second["name"]]
    parts = [_regions_table(own, persons[second["name"]], second["regions"])]
    for region in own[:MOST_PICTURES]:
        caption = f"{second['name']}: {region.labels[0]}"
        parts += [figure(_drawn(region, second, query), caption), _sizes_table(region)]
    if second["regions"] > MOST_PICTURES:
        parts.append(f"<p>The first {MOST_PICTURES} of {second['regions']:,} regions; the file has all.</p>")
    if len(levels) > 2:
        shown, n = regions[lowest["name"]][:MOST_PANELS], lowest["regions"]
        label_of = f"The first {MOST_PANELS} of {n:,}" if n > MOST_PANELS else "All"
        caption = f"{label_of} regions of the lowest level ({lowest['name']}), with 90 % intervals."
        parts.append(figure(_panels(shown), caption))
        parts.append(_regions_table(shown, persons[lowest["name"]], len(shown)))
    return parts


def _regions_table(regions: Sequence[_Region], persons: Sequence[_Region], n_regions: int) -> str:
    """Groups and persons of regions, with the interval of the persons."""
    lines = [
        [
            ", ".join(region.labels),
            sum(region.of("groups")),
            people.of("persons")[0],
            f"{people.of('standard_error')[0]:.1f}",
            f"{people.of('lower_90')[0]:,} to {people.of('upper_90')[0]:,}",
        ]
        for region, people in zip(regions, persons, strict=False)
    ]
    more = f"<p>The first {MOST_ROWS} of {n_regions:,} regions; the file has all.</p>"
    header = ["region", "groups", "persons", "standard error", "90 % interval of persons"]
    return table(header, lines) + (more if n_regions > MOST_ROWS else "")


# Drawings


def _drawn(region: _Region, level: Mapping[str, Any], query: str) -> str:
    """Groups by size, and groups of at least each size, both with their 90 % ranges."""
    shown = _occurring([region])
    sizes, groups = region.of("size"), np.array(region.of("groups"))
    at_least = groups[::-1].cumsum()[::-1]
    terms = np.arange(len(groups), 0, -1) if query == "sizes" else np.ones(len(groups))
    spread = WITHIN_90 * level["weighed"] * np.sqrt(terms)
    edges = [*(size - 0.5 for size in sizes[:shown]), sizes[shown - 1] + 0.5]
    band = ChartArea(
        edges,
        np.maximum(at_least - spread, 0)[:shown].tolist(),
        (at_least + spread)[:shown].tolist(),
        opacity=0.2,
    )
    centre = at_least[:shown].tolist()
    line = ChartArea(edges, [value * 0.985 for value in centre], [value * 1.015 for value in centre])
    return drawing(
        [
            _bars(region, shown, "Groups by size", "size", "groups"),
            Panel(
                title="Cumulative",
                marks=[band, line],
                x_label="size",
                y_label="groups of at least this size",
                straight=1.0,
                ends=(edges[0], edges[-1]),
            ),
        ]
    )


def _panels(regions: Sequence[_Region]) -> str:
    """The size distribution of several regions at small size, on one scale of sizes."""
    shown = _occurring(regions)
    return drawing(
        [_bars(region, shown, ", ".join(region.labels), "size") for region in regions],
        across=PANELS_ACROSS,
        height=160,
    )


def _occurring(regions: Sequence[_Region]) -> int:
    """Sizes worth drawing: up to one past the largest that occurs."""
    groups = np.array([region.of("groups") for region in regions]).sum(axis=0)
    found = np.flatnonzero(groups)
    return min(len(groups), int(found[-1]) + 2 if len(found) else 2)


def _bars(region: _Region, shown: int, title: str, x_label: str, y_label: str = "") -> Panel:
    sizes, groups, low, high = (
        region.of(name)[:shown] for name in ("size", "groups", "lower_90", "upper_90")
    )
    edges = [*(size - 0.5 for size in sizes), sizes[-1] + 0.5]
    if len(sizes) > MOST_BARS:  # one outline instead of a thousand bars
        marks: tuple[Mark, ...] = (
            ChartArea(edges, [0.0] * len(sizes), groups),
            ChartArea(edges, low, high, "#22313f", 0.25),
        )
    else:
        marks = (Bars(sizes, groups), Ranges(sizes, low, high))
    ends = (edges[0], edges[-1])
    return Panel(title=title, marks=marks, x_label=x_label, y_label=y_label, straight=1.0, ends=ends)


# Words


def _agreement(manifest: Manifest) -> Mapping[str, Any] | None:
    return next((one for one in manifest.promises if one.get("promise") == "agreement"), None)


def _agreed(manifest: Manifest) -> list[str]:
    """The meaning of agreement with a release of people for the reader."""
    promise = _agreement(manifest)
    if promise is None:
        return []
    moved = (
        f" In {promise['moved']:,} regions the people did not fit within the bounds on numbers of groups, which were moved there as far as "
        "needed."
        if promise["moved"]
        else ""
    )
    return [
        "<h2>Agreement with people</h2><p>In every region of the lowest level, and so everywhere, sizes times groups are exactly the "
        "people "
        "in groups of the release that is copied in the folder <em>first</em>, and numbers of groups keep their bounds. Both tables may "
        "be used side by side. An error in the number of people affects the groups, too: intervals are as wide as without agreement, and "
        f"wider where it moved numbers by more than their standard error.{escape(moved)}</p>"
    ]


def _answers(manifest: Manifest) -> str:
    """What can be learnt, how accurate the numbers are, and what to do with the release."""
    levels = manifest.results["levels"]
    accuracy = f"A number of groups of one size is typically within {levels[0]['typical']:,} of the truth for all regions together"
    if len(levels) > 1:
        accuracy += f", within {levels[-1]['typical']:,} on the lowest level ({levels[-1]['name']})"
    is_private = not manifest.not_private and not manifest.not_for_release
    exact = "; ".join(manifest.privacy["invariants"])
    known = f" Published exactly, and therefore not protected: {exact}." if exact else ""
    publish = (
        "It may be published: run louver verify on the folder, publish all of it, and keep the ledger, which records what is left for "
        "later releases."
    )
    return answers(
        released=f"Number of groups of each size in every region: {levels[-1]['regions']:,} regions on the lowest level, adding up to "
        "the whole.",
        promised=f"{_bound(manifest.privacy)}{known}"
        if is_private
        else "Nothing: anyone who knows the seed can remove the noise.",
        accuracy=f"{accuracy}; numbers below {SMALL} are mostly noise. Every number has a standard error and a 90 % interval.",
        check=publish if is_private else "Do not publish this: run again without a seed, paid from a ledger.",
    )


def _bound(privacy: Mapping[str, Any]) -> str:
    """The meaning of the privacy loss for one person, in odds."""
    composed = privacy.get("composed")
    if privacy["measure"] == "rho" and composed is None:
        return "What the release reveals about any one person is bounded by rho: the smaller rho, the less."
    epsilon = float(Fraction(privacy["amount"] if composed is None else composed[0]))
    factor = (
        f"{math.exp(epsilon):.3g}" if epsilon < math.log(1000) else "more than 1,000, which is hardly a bound"
    )
    but = "" if composed is None else f", except with probability {float(Fraction(composed[1])):g}"
    return (
        f"Whatever else is known, the odds about any one person change by a factor of at most {factor}{but}."
    )


def _facts(manifest: Manifest) -> list[tuple[str, str]]:
    r, privacy = manifest.results, manifest.privacy
    sensitivities = ", ".join(f"{level['name']} {level['sensitivity']}" for level in privacy["levels"])
    rows = [
        ("mechanism", f"{r['mechanism']}, noise on {r['query']} counts"),
        ("neighbours", f"{privacy['neighbours']}: {given_known(privacy)}"),
        ("published exactly", "; ".join(privacy["invariants"]) or "nothing"),
        *(("not protected", what) for what in privacy["not_protected"]),
        ("sizes", f"{r['sizes'][0]} to {r['sizes'][1]}; groups outside this range count at the nearest size"),
        ("sensitivity", sensitivities),
    ]
    promise = _agreement(manifest)
    if promise is not None:
        rows.append(("agrees with", f"the people of release {promise['first_digest'][:16]}"))
        rows.append(("lost before", loss_of(privacy["first_release"])))
    if privacy["composed"] is not None:
        epsilon, delta = (float(Fraction(part)) for part in privacy["composed"])
        rows.append(("this release alone", f"epsilon {epsilon:g} at delta {delta:g}, its levels composed"))
    if privacy["measure"] == "rho":
        epsilon = float(epsilon_at(Fraction(privacy["amount"]), DELTA))
        rows.append(("in other words", f"epsilon {epsilon:g} at delta 1e-10"))
    if manifest.ledger_head is not None:
        rows.append(("ledger entry", manifest.ledger_head.partition(":")[0]))
    return rows
