"""Mechanisms that add noise to cumulative counts, then find the closest consistent table: M_c^dp, M_c^r, M_c^ch, and louver's own.

Fioretto, Van Hentenryck & Zhu (2021), sections 8 and 9. In M_c^ch (section 9.2) one person changes as many entries of a level's chain as
the level has regions (ERRATA G1), so the published noise is too small by that factor: NOT PRIVATE as published. Correct noise makes it
useless; it is included to reproduce Table 7.

In louver's own mechanism, groups of a given size or less are counted if the list of units is public; otherwise groups of a given size or
more, which change by one entry whenever a person is added or removed (ERRATA G2). Post-processing weights each level by its noise:
generalised least squares over the tree and isotonic regression along sizes are solved together, and rounding keeps both.
"""

from __future__ import annotations

import math

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.groups.problem import NoisyAnswers, SizeQuery, sizes_of
from louver.optim.agreement import HousedPeople, fit_agreeing, round_agreeing
from louver.optim.allocation import allocate
from louver.optim.monotone import fit_monotone, nonincreasing
from louver.optim.row_rounding import round_tree
from louver.run import Run

__all__ = [
    "solve_agreeing",
    "solve_chain",
    "solve_cumulative",
    "solve_cumulative_relaxed",
    "solve_joint",
    "solve_joint_relaxed",
    "tolerance",
]

MOST_TOLERANCE = 0.5
"""Largest distance from the real-valued optimum, in counts, at which rounding starts."""

LEAST_TOLERANCE = 0.01
"""Tolerance below which a closer solution does not change the rounded result."""

NOISE_PARTS = 40
"""The smallest noise divided by this is the tolerance: a more precise solution would change no error by 1 %."""


def solve_cumulative(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_c^dp: isotonic regression in every region, then M_H^dp on the differences.

    Notes
    -----
    **Implements**: Algorithm 2.
    """
    total = _total(noisy)
    # A non-decreasing sequence is non-increasing after a change of sign.
    fitted = -nonincreasing(-noisy.rows.astype(np.float64), -float(total), 0.0)
    rounded = np.rint(fitted).astype(np.int64)
    return (run or Run()).attend(allocate, sizes_of(rounded, SizeQuery.PREFIX), noisy.tree, total)


def solve_cumulative_relaxed(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_c^r: Model 2 in real numbers, every value rounded individually, so sums may be violated.

    Notes
    -----
    **Implements**: (C1)-(C4). Prefix counts are reversed, so that (C2) fixes the first column.
    """
    total = _total(noisy)
    fit = fit_monotone(
        noisy.rows[:, ::-1].astype(np.float64),
        noisy.tree,
        [1.0] * noisy.tree.n_levels,
        upper=float(total),
        total=float(total),
        tolerance=tolerance(noisy),
        run=run,
    )
    rounded = np.rint(fit.rows[:, ::-1]).astype(np.int64)
    return np.maximum(sizes_of(rounded, SizeQuery.PREFIX), 0)


def tolerance(noisy: NoisyAnswers) -> float:
    """How far from the real-valued optimum rounding may start, in counts: small relative to the most accurate level's noise."""
    wanted = math.sqrt(min(noisy.variances)) / NOISE_PARTS
    return min(MOST_TOLERANCE, max(LEAST_TOLERANCE, wanted))


def _total(noisy: NoisyAnswers) -> int:
    if noisy.total is None:
        raise SolverError("prefix counts need a public total; use suffix counts.")
    return noisy.total


SIMULATION_PARTS = 10
"""Factor by which simulations may stop farther from the optimum: on average a fiftieth of the noise."""

LEAST_VARIANCE = 1e-6
"""Variance below which noise is treated as zero; the variance itself may have underflowed to zero."""


def solve_joint(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """Return the rounded optimum of Model 2's relaxation, weighted by level: on prefix counts, or on suffix counts without a total.

    Notes
    -----
    **Departs** from Algorithm 2: regions are not made monotone one by one, and consistency is enforced in the cumulative counts, where the
    noise is independent, not in their differences.

    Both kinds of counts are equally private with a public total. Prefix counts are measured there because every size beyond a
    region's largest group measures the region's number of groups once more; suffix counts measure zeros instead.
    **Cost**: 20 to 150 passes over the table, then one flow problem for each parent.
    """
    if noisy.total is None:
        rows = round_tree(_fitted(noisy, noisy.rows, tolerance(noisy), run), noisy.tree, None, run)
        return sizes_of(rows, SizeQuery.SUFFIX)
    # In reverse order, prefix counts never increase, and begin with the number of groups.
    fitted = _fitted(noisy, noisy.rows[:, ::-1], tolerance(noisy), run)
    return sizes_of(round_tree(fitted, noisy.tree, noisy.total, run)[:, ::-1], SizeQuery.PREFIX)


def solve_joint_relaxed(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """The same, but only near the optimum and with every value rounded independently, so sums may be violated; for simulations."""
    near = SIMULATION_PARTS * tolerance(noisy)
    if noisy.total is None:
        counts = sizes_of(np.rint(_fitted(noisy, noisy.rows, near, run)), SizeQuery.SUFFIX)
    else:
        fitted = np.rint(_fitted(noisy, noisy.rows[:, ::-1], near, run))
        counts = sizes_of(fitted[:, ::-1], SizeQuery.PREFIX)
    return np.maximum(counts, 0).astype(np.int64)


def _fitted(noisy: NoisyAnswers, counts: Ints, near: float, run: Run | None) -> Floats:
    """Real rows that never increase and sum over the tree, closest to `counts`."""
    rows = np.ascontiguousarray(counts, np.float64)
    return fit_monotone(
        rows,
        noisy.tree,
        [1 / max(variance, LEAST_VARIANCE) for variance in noisy.variances],
        upper=np.inf if noisy.total is None else float(noisy.total),
        total=None if noisy.total is None else float(noisy.total),
        tolerance=near,
        run=run,
    ).rows


def solve_agreeing(noisy: NoisyAnswers, known: HousedPeople, run: Run | None = None) -> Ints:
    """Numbers of groups of each size in every region whose members are exactly the people known to be in groups.

    Notes
    -----
    Empirical Bayes on suffix counts, then whole groups leaf by leaf. In suffix counts, sizes times groups is the sum of a row: the
    constraint is linear, and so are bounds on the number of groups, which is the first entry.
    """
    fitted = fit_agreeing(noisy.rows, noisy.tree, noisy.variances, known, run)
    return sizes_of(round_agreeing(fitted, noisy.tree, known, run), SizeQuery.SUFFIX)


def solve_chain(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """Solve Model 3 exactly: weighted isotonic regression on the chain, cut to [0, G] and rounded.

    Notes
    -----
    **Implements**: (C6)-(C10). By (C9) a region's entry equals that of its last child, so all regions that end with the same
    leaf are one unknown, with the mean of their noisy entries and their number as weight. Rounding an isotonic regression in
    least squares gives the best one in whole numbers.
    **Departs**: the step from a parent to the next leaf is an inequality as in (8b); (C8) leaves it out (ERRATA G7).
    """
    if noisy.total is None:
        raise SolverError("the chain of cumulative counts needs a public total.")
    tree = noisy.tree
    last_leaf = np.arange(tree.n_regions)
    for r in range(tree.n_regions - 1, -1, -1):
        if tree.first_child[r] < tree.first_child[r + 1]:
            last_leaf[r] = last_leaf[tree.first_child[r + 1] - 1]
    position = last_leaf - tree.level_start[-2]
    weight = np.bincount(position, minlength=tree.n_leaves)
    sums = np.zeros((tree.n_leaves, noisy.rows.shape[1]))
    np.add.at(sums, position, noisy.rows)
    means = (sums / weight[:, None]).T.ravel()
    fitted = _nondecreasing(means, np.tile(weight, noisy.rows.shape[1]), float(noisy.total))
    chain = np.rint(fitted).astype(np.int64)
    chain[-1] = noisy.total
    leaves = np.diff(chain, prepend=0).reshape(-1, tree.n_leaves).T
    return tree.sum_up(np.ascontiguousarray(leaves))


def _nondecreasing(means: Floats, weight: Ints, upper: float) -> Floats:
    """Weighted isotonic regression: repeat every mean according to its weight."""
    repeated = nonincreasing(-np.repeat(means, weight)[None, :], -upper, 0.0)[0]
    fitted: Floats = -repeated[np.cumsum(weight) - 1]
    return fitted
