"""louver's own mechanism: noise on cumulative counts, then the closest table with every property at once.

If the list of units is public, groups of a given size or less are counted; otherwise groups of a given size or more, which change by
one entry whenever a person is added or removed (ERRATA G2). Post-processing weights each level by its noise:
generalised least squares over the tree and isotonic regression along sizes are solved together, and rounding keeps both.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.groups.methods.cumulative import tolerance
from louver.groups.problem import NoisyAnswers, SizeQuery, sizes_of
from louver.optim.monotone import fit_monotone
from louver.optim.row_rounding import round_tree
from louver.run import Run

__all__ = ["solve_joint", "solve_joint_relaxed"]

SIMULATION_PARTS = 10
"""Factor by which simulations may stop farther from the optimum: on average a fiftieth of the noise."""

LEAST_VARIANCE = 1e-6
"""Noise of less variance is treated as zero from here on; the variance itself may have underflowed to zero."""


def solve_joint(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """Return the rounded optimum of Model 2's relaxation, weighted by level: on prefix counts, or on suffix counts without a total.

    Notes
    -----
    **Departs** from Algorithm 2: regions are not made monotone one by one, and consistency is sought in the cumulative counts, where
    the noise is independent, not in their differences.

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
    """The same, near the optimum and with every value rounded independently, so sums may be violated: for simulations."""
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
