"""M_H^dp and M_H^r: noise on the numbers of groups of each size, then the closest consistent table.

Fioretto, Van Hentenryck & Zhu (2021), sections 5 to 7.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.groups.problem import NoisyAnswers
from louver.optim.allocation import allocate, allocate_relaxed
from louver.run import Run

__all__ = ["solve_dynamic", "solve_relaxed"]


def solve_dynamic(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_H^dp: the exact optimum of Model 1.

    Notes
    -----
    **Implements**: sections 6 and 7; Algorithm 1, with slopes instead of tables (`louver.optim.kernels.trees.laminar`).
    **Departs**: no domain is truncated (ERRATA G4).
    """
    return (run or Run()).attend(allocate, noisy.rows, noisy.tree, noisy.total)


def solve_relaxed(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """M_H^r: Model 1 in real numbers, every value rounded independently, so sums may be violated.

    Notes
    -----
    **Implements**: section 5, last paragraph.
    """
    return np.rint(allocate_relaxed(noisy.rows, noisy.tree, noisy.total)).astype(np.int64)
