"""The report inside a release of group sizes: what was spent, what it is conditional on, how far off it may be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from html import escape

import numpy as np

from louver import __version__
from louver.groups.plot import plot_errors, plot_regions, plot_release
from louver.groups.result import GroupRelease
from louver.privacy.budget import Measure, epsilon_at
from louver.report.page import answers, facts, page, picture, table, tiles

__all__ = ["groups_report"]

MOST_PICTURES = 6
"""Regions of the second level that are drawn; the file has them all."""

MOST_PANELS = 16
"""Regions of the lowest level that are drawn in small."""

MOST_ROWS = 20
"""Sizes and regions that a table beside a picture has; the files have them all."""

SMALL = 10
"""Numbers below this are mostly noise, and are left out where a typical error is told."""

DELTA = Fraction(1, 10**10)
"""Where rho is restated as epsilon and delta."""


def groups_report(release: GroupRelease) -> str:
    """The report as HTML. It is published with the release and says nothing that is not private."""
    plan, loss = release.plan, release.plan.loss
    sections = [
        f'<p class="verdict{"" if release.is_private else " risk"}">{escape(_verdict(release))}</p>',
        _answers(release),
        tiles(
            [
                (release.total_groups, "groups", False),
                (int(release.persons[0]), "persons that they imply", False),
                (plan.regions.tree.n_leaves, "regions on the lowest level", False),
                (f"{float(loss.amount):g}", f"{loss.measure}, the whole privacy loss", False),
            ]
        ),
        "<h2>All regions together</h2>",
        *_whole(release),
        "<h2>Regions</h2>",
        *_regions(release),
        "<h2>How to read this</h2><p>Numbers are whole, not negative, and add up over regions. They are estimates: small numbers, "
        "and single large groups, are mostly noise. A 90 % interval holds the true number nine times in ten; standard errors and "
        "intervals were found by running the mechanism again on this release, and no data entered.</p>",
        "<h2>What was done</h2>",
        facts(_facts(release)),
        "<h2>Appendix: errors of whole levels</h2>",
        *_errors(release),
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


def _whole(release: GroupRelease) -> list[str]:
    caption = (
        "All regions together. Bars are 90 % intervals; bands are those of the noise, empty sizes are closer."
    )
    return [picture(release.plot(), caption), _sizes_table(release, 0)]


def _sizes_table(release: GroupRelease, region: int) -> str:
    """The numbers of a picture: the first sizes of a region."""
    found, shown = release.uncertainty, range(min(len(release.sizes), MOST_ROWS))
    lines = [
        [
            release.sizes[i],
            int(release.counts[region, i]),
            f"{found.standard_error[region, i]:.1f}",
            f"{found.lower[region, i]:,} to {found.upper[region, i]:,}",
        ]
        for i in shown
    ]
    more = (
        "" if len(shown) == len(release.sizes) else f"<p>The first {MOST_ROWS} sizes; the file has all.</p>"
    )
    return table(["size", "groups", "standard error", "90 % interval"], lines) + more


def _regions(release: GroupRelease) -> list[str]:
    """The regions of the second level one by one, and the lowest level in small, each with its numbers."""
    regions, tree = release.plan.regions, release.plan.regions.tree
    if tree.n_levels == 1:
        return []
    second = range(tree.level(1).start, tree.level(1).stop)
    parts = [_regions_table(release, second)]
    for r in second[:MOST_PICTURES]:
        parts += [
            picture(plot_release(release, r), f"{regions.names[1]}: {regions.labels[r][0]}"),
            _sizes_table(release, r),
        ]
    if len(second) > MOST_PICTURES:
        parts.append(f"<p>The first {MOST_PICTURES} of {len(second):,} regions; the file has all.</p>")
    if tree.n_levels > 2:
        lowest = range(tree.level(tree.n_levels - 1).start, tree.n_regions)
        told = f"The first {MOST_PANELS} of {len(lowest):,}" if len(lowest) > MOST_PANELS else "All"
        caption = f"{told} regions of the lowest level ({regions.names[-1]}), with 90 % intervals."
        parts.append(picture(plot_regions(release, lowest[:MOST_PANELS]), caption))
        parts.append(_regions_table(release, lowest[:MOST_PANELS]))
    return parts


def _regions_table(release: GroupRelease, regions: Iterable[int]) -> str:
    """Groups and persons of regions, with the interval of the persons."""
    told, found = list(regions), release.simulated.persons
    lines = [
        [
            ", ".join(release.plan.regions.labels[r]),
            int(release.counts[r].sum()),
            int(release.persons[r]),
            f"{found.standard_error[r]:.1f}",
            f"{found.lower[r]:,} to {found.upper[r]:,}",
        ]
        for r in told[:MOST_ROWS]
    ]
    more = f"<p>The first {MOST_ROWS} of {len(told):,} regions; the file has all.</p>"
    header = ["region", "groups", "persons", "standard error", "90 % interval of persons"]
    return table(header, lines) + (more if len(told) > MOST_ROWS else "")


def _answers(release: GroupRelease) -> str:
    """What may be learnt, how accurate it is, and what to do with it."""
    levels, n_leaves = release.plan.regions.names, release.plan.regions.tree.n_leaves
    accuracy = f"A number of groups of one size is typically within {_typical(release, 0)} of the truth for all regions together"
    if len(levels) > 1:
        accuracy += f", within {_typical(release, len(levels) - 1)} on the lowest level ({levels[-1]})"
    is_private = release.is_private and release.evaluation is None and release.plan.is_private
    exact = "; ".join(release.invariants)
    known = f" What is published exactly, and so protected from nobody, is {exact}." if exact else ""
    publish = (
        "It may be published: run louver verify on the folder, publish all of it, and keep the ledger, which says what is left for "
        "later releases."
    )
    return answers(
        released=f"How many groups of each size every region has: {n_leaves:,} regions on the lowest level, adding up to the whole.",
        promised=f"{_bound(release)}{known}"
        if is_private
        else "Nothing: whoever knows the seed can take the noise away.",
        accuracy=f"{accuracy}; numbers below {SMALL} are mostly noise. Every number has a standard error and a 90 % interval.",
        check=publish if is_private else "Do not publish this: run again without a seed, paid from a ledger.",
    )


def _bound(release: GroupRelease) -> str:
    """What the loss means for one person, in odds."""
    loss, promise = release.plan.loss, release.plan.promise
    if loss.measure is Measure.RHO and promise is None:
        return "What that says about any one person is bounded by rho: the smaller, the less."
    epsilon = float(loss.amount if promise is None else promise[0])
    factor = (
        f"{math.exp(epsilon):.3g}" if epsilon < math.log(1000) else "more than 1,000, which is hardly a bound"
    )
    but = "" if promise is None else f", but for a chance of {float(promise[1]):g}"
    return f"Whatever else is known, odds about any one person change by a factor of at most {factor}{but}."


def _typical(release: GroupRelease, level: int) -> str:
    """Half the width of the median interval, of numbers that are not small where there are any."""
    here, found = release.plan.regions.tree.level(level), release.uncertainty
    width, is_large = (found.upper - found.lower)[here], release.counts[here] >= SMALL
    return f"{math.ceil(float(np.median(width[is_large] if is_large.any() else width)) / 2):,}"


def _verdict(release: GroupRelease) -> str:
    if release.evaluation is not None or not release.plan.is_private:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if not release.is_private:
        return "NOT PRIVATE: the noise comes from a seed that anybody can repeat."
    return f"Promised: {release.plan.loss}. That is the most that these files can tell of whether {_meaning(release)}."


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
    if plan.promise is not None:
        epsilon, delta = map(float, plan.promise)
        rows.append(("this release alone", f"epsilon {epsilon:g} at delta {delta:g}, its levels composed"))
    if loss.measure is Measure.RHO:
        rows.append(("in other words", f"epsilon {float(epsilon_at(loss.amount, DELTA)):g} at delta 1e-10"))
    if release.head is not None:
        rows.append(("ledger entry", str(release.head.entry)))
    return rows
