"""The mechanism TopDown: the tree level by level, least squares then rounding.

Abowd et al. (2019) as Fioretto, Van Hentenryck & Zhu (2021), section 10, describe it: a peer, not the capability `topdown`.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.errors import SolverError
from louver.groups.problem import NoisyAnswers
from louver.optim.kernels.trees.consistency import simplex_inplace
from louver.run import Run

__all__ = ["solve_level_by_level"]


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
