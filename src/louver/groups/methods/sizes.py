"""Mechanisms that add noise to the numbers of groups of each size: M_H^dp, M_H^r and TopDown.

Fioretto, Van Hentenryck & Zhu (2021): sections 5 to 7, and section 10 for its description of TopDown (Abowd et al. 2019), which is a peer
and not the capability `topdown`.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.errors import SolverError
from louver.groups.problem import NoisyAnswers
from louver.optim.allocation import allocate, allocate_relaxed
from louver.optim.kernels.trees.consistency import simplex_inplace
from louver.run import Run

__all__ = ["solve_dynamic", "solve_level_by_level", "solve_relaxed"]


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


def solve_level_by_level(noisy: NoisyAnswers, run: Run | None = None) -> Ints:
    """Fix the root, then the children of every region, each family separately: project, then keep the largest remainders."""
    if noisy.total is None:
        raise SolverError("TopDown needs a public total.")
    tree = noisy.tree
    values = np.zeros(noisy.rows.shape, np.int64)
    values[0] = _closest(noisy.rows[0], noisy.total)
    for r in range(int(tree.level_start[-2])):
        if run is not None:
            run.check()
        children = tree.children(r)
        for s in range(noisy.rows.shape[1]):
            values[children, s] = _closest(noisy.rows[children, s], int(values[r, s]))
    return values


def _closest(noisy: Ints, total: int) -> Ints:
    """Return whole numbers, not negative, that sum to `total`, close to the least-squares solution."""
    real = noisy.astype(np.float64)
    simplex_inplace(real, float(total))
    rounded = np.floor(real).astype(np.int64)
    order = np.argsort(rounded - real, kind="stable")
    rounded[order[: total - int(rounded.sum())]] += 1
    return rounded
