"""The report inside a release of group sizes: what was spent, what it is conditional on, how far off it may be."""

from __future__ import annotations

import math
from fractions import Fraction
from html import escape

from louver import __version__
from louver.groups.plot import plot_errors, plot_regions, plot_release
from louver.groups.result import GroupRelease
from louver.privacy.budget import Measure, epsilon_at
from louver.report.page import facts, page, picture, table, tiles

__all__ = ["groups_report"]

MOST_PICTURES = 6
"""Regions of the second level that are drawn; the file has them all."""

MOST_PANELS = 16
"""Regions of the lowest level that are drawn in small."""

DELTA = Fraction(1, 10**10)
"""Where rho is restated as epsilon and delta."""


def groups_report(release: GroupRelease) -> str:
    """The report as HTML. It is published with the release and says nothing that is not private."""
    plan, loss = release.plan, release.plan.loss
    sections = [
        f'<p class="verdict{"" if release.is_private else " risk"}">{escape(_verdict(release))}</p>',
        tiles(
            [
                (release.total_groups, "groups", False),
                (int(release.persons[0]), "persons that they imply", False),
                (plan.regions.tree.n_leaves, "regions on the lowest level", False),
                (f"{float(loss.amount):g}", f"{loss.measure}, the whole privacy loss", False),
            ]
        ),
        "<h2>What was done</h2>",
        facts(_facts(release)),
        "<h2>How far off it may be</h2>",
        *_errors(release),
        "<h2>Size distribution</h2>",
        *_pictures(release),
        "<h2>How to read this</h2><p>Numbers are whole, not negative, and add up over regions. They are estimates: small numbers, "
        "and single large groups, are mostly noise.</p>",
    ]
    return page(
        "Group sizes",
        f"{release.total_groups:,} groups by size and region",
        sections,
        f"louver {__version__}",
    )


def _errors(release: GroupRelease) -> list[str]:
    """Forecast errors of every level, before and after post-processing, as a table and a picture."""
    found = release.forecast
    lines = [
        [
            level.name,
            level.n_regions,
            f"{float(level.share):.3f}",
            f"{math.sqrt(level.distribution.variance):.1f}",
            f"{deviation:.1f}",
            round(before.l1),
            round(after.l1),
            round(before.emd),
            round(after.emd),
        ]
        for level, deviation, before, after in zip(
            release.plan.levels, release.plan.deviations, found.before, found.after, strict=True
        )
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
    return [
        table(header, lines),
        picture(plot_errors(release), "Forecast L1 error of every level, before and after post-processing."),
        "<p>Errors are forecast by running the mechanism again on the release itself with other noise: <em>before</em> is what the "
        "measurements as drawn are off by, <em>after</em> what this release is expected to be off by. The L1 error adds up how many "
        "groups are counted under a wrong size; the earth mover's distance (EMD) adds up the same for groups of at most each size, and "
        "so weighs how far off they are. Noise is given as standard deviation of one count: as drawn, and once the levels are weighed "
        "against one another.</p>",
    ]


def _pictures(release: GroupRelease) -> list[str]:
    """The whole, the regions of the second level one by one, and the lowest level in small."""
    regions = release.plan.regions
    tree = regions.tree
    pictures = [
        picture(
            release.plot(),
            "All regions together. Bars and bands are two standard deviations of the noise; empty sizes are closer than that.",
        )
    ]
    if tree.n_levels > 1:
        second = range(tree.level(1).start, tree.level(1).stop)
        for r in second[:MOST_PICTURES]:
            pictures.append(picture(plot_release(release, r), f"{regions.names[1]}: {regions.labels[r][0]}"))
        if len(second) > MOST_PICTURES:
            pictures.append(f"<p>The first {MOST_PICTURES} of {len(second):,} regions; the file has all.</p>")
    if tree.n_levels > 2:
        lowest = range(tree.level(tree.n_levels - 1).start, tree.n_regions)
        told = f"The first {MOST_PANELS} of {len(lowest):,}" if len(lowest) > MOST_PANELS else "All"
        caption = f"{told} regions of the lowest level ({regions.names[-1]}), with two standard deviations."
        pictures.append(picture(plot_regions(release, lowest[:MOST_PANELS]), caption))
    return pictures


def _verdict(release: GroupRelease) -> str:
    if release.evaluation is not None or not release.plan.is_private:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if not release.is_private:
        return "NOT PRIVATE: the noise comes from a seed that anybody can repeat."
    return f"Whoever compares two tables that differ as follows learns at most {release.plan.loss}: {_meaning(release)}."


def _meaning(release: GroupRelease) -> str:
    given = "".join(f", given {known}" for known in release.invariants)
    return release.plan.loss.neighbours.meaning + given


def _facts(release: GroupRelease) -> list[tuple[str, str]]:
    plan, loss = release.plan, release.plan.loss
    rows = [
        ("mechanism", f"{plan.mechanism.name}, noise on {plan.query} counts"),
        ("neighbours", f"{loss.neighbours}: {_meaning(release)}"),
        ("published exactly", "; ".join(release.invariants) or "nothing"),
        *(("not protected", what) for what in plan.not_protected),
        ("sizes", f"{plan.first_size} to {plan.largest_size}; groups beyond count with the nearest"),
        ("sensitivity", ", ".join(f"{level.name} {level.sensitivity}" for level in plan.levels)),
    ]
    if loss.measure is Measure.RHO:
        rows.append(("in other words", f"epsilon {float(epsilon_at(loss.amount, DELTA)):g} at delta 1e-10"))
    if release.head is not None:
        rows.append(("ledger entry", str(release.head.entry)))
    return rows
