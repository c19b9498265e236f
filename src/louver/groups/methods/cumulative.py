"""M_c^dp and M_c^r: noise on prefix counts, then the closest consistent table.

Fioretto, Van Hentenryck & Zhu (2021), sections 8, 9 and 9.1.
"""

from __future__ import annotations

import math

import numpy as np

from louver._arrays import Ints
from louver.errors import SolverError
from louver.groups.problem import NoisyAnswers, SizeQuery, sizes_of
from louver.optim.allocation import allocate
from louver.optim.monotone import fit_monotone, nonincreasing
from louver.run import Run

__all__ = ["solve_cumulative", "solve_cumulative_relaxed", "tolerance"]

MOST_TOLERANCE = 0.5
"""Rounding never starts farther than this from the real-valued optimum, in counts."""

LEAST_TOLERANCE = 0.01
"""A closer solution does not change the rounded result."""

NOISE_PARTS = 40
"""A solution closer than this fraction of the smallest noise changes no error by a hundredth."""


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
