"""The report inside a release of group sizes: what was spent, what it is conditional on, how far off it may be."""

from __future__ import annotations

import math
from fractions import Fraction
from html import escape

from louver import __version__
from louver.groups.plot import plot_release
from louver.groups.problem import Total
from louver.groups.result import GroupRelease
from louver.privacy.budget import Measure, epsilon_at
from louver.report.page import facts, page, picture, table, tiles

__all__ = ["groups_report"]

MOST_PICTURES = 6
"""Regions of the second level that are drawn; the file has them all."""

DELTA = Fraction(1, 10**10)
"""Where rho is restated as epsilon and delta."""


def groups_report(release: GroupRelease) -> str:
    """The report as HTML. It is published with the release and says nothing that is not private."""
    plan, loss = release.plan, release.plan.loss
    tree = plan.regions.tree
    second = list(range(1, min(tree.n_regions, 1 + MOST_PICTURES))) if tree.n_levels > 1 else []
    sections = [
        f'<p class="verdict{"" if release.is_private else " risk"}">{escape(_verdict(release))}</p>',
        tiles(
            [
                (release.total_groups, "groups", False),
                (int(release.persons[0]), "persons that they imply", False),
                (tree.n_leaves, "regions on the lowest level", False),
                (f"{float(loss.amount):g}", f"{loss.measure}, the whole privacy loss", False),
            ]
        ),
        "<h2>What was done</h2>",
        facts(_facts(release)),
        "<h2>How far off it may be</h2>",
        table(
            [
                "level",
                "regions",
                "share of the budget",
                "noise (standard deviation)",
                "L1 error",
                "earth mover's distance",
            ],
            [
                [
                    level.name,
                    level.n_regions,
                    f"{float(level.share):.3f}",
                    f"{math.sqrt(level.distribution.variance):.1f}",
                    round(forecast.l1),
                    round(forecast.emd),
                ]
                for level, forecast in zip(plan.levels, release.forecast, strict=True)
            ],
        ),
        "<p>Errors are forecast by running the mechanism again on the release itself with other noise. The L1 error adds up "
        "how many groups are counted under a wrong size; the earth mover's distance also weighs how far from their size.</p>",
        "<h2>Size distribution</h2>",
        picture(release.plot(), "All regions together; the band is two standard deviations of the noise."),
        *(picture(plot_release(release, r), ", ".join(plan.regions.labels[r])) for r in second),
        "<h2>How to read this</h2><p>Numbers are whole, not negative, and add up over regions. They are estimates: small numbers, "
        "and single large groups, are mostly noise.</p>",
    ]
    return page(
        "Group sizes",
        f"{release.total_groups:,} groups by size and region",
        sections,
        f"louver {__version__}",
    )


def _verdict(release: GroupRelease) -> str:
    if release.evaluation is not None or not release.plan.is_private:
        return "NOT PRIVATE and not for release: made to compare with the truth."
    if not release.is_private:
        return "NOT PRIVATE: the noise comes from a seed that anybody can repeat."
    return f"Whoever compares two tables that differ as follows learns at most {release.plan.loss}: {_meaning(release)}."


def _meaning(release: GroupRelease) -> str:
    given = "".join(f", given {known}" for known in release.invariants)
    alone = (
        "; whether somebody who is alone in a unit is present is not protected, unless --total noisy is chosen"
        if release.plan.total is Total.PUBLIC
        else ""
    )
    return release.plan.loss.neighbours.meaning + given + alone


def _facts(release: GroupRelease) -> list[tuple[str, str]]:
    plan, loss = release.plan, release.plan.loss
    rows = [
        ("mechanism", f"{plan.mechanism.name}, noise on {plan.query} counts"),
        ("neighbours", f"{loss.neighbours}: {_meaning(release)}"),
        ("published exactly", "; ".join(release.invariants) or "nothing"),
        ("sizes", f"{plan.first_size} to {plan.largest_size}; larger groups count with the last"),
        ("sensitivity", ", ".join(f"{level.name} {level.sensitivity}" for level in plan.levels)),
    ]
    if loss.measure is Measure.RHO:
        rows.append(("in other words", f"epsilon {float(epsilon_at(loss.amount, DELTA)):g} at delta 1e-10"))
    if release.head is not None:
        rows.append(("ledger entry", str(release.head.entry)))
    return rows
