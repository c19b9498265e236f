"""M_c^ch: one chain of cumulative counts over all sizes and regions of a level. NOT PRIVATE as published.

Fioretto, Van Hentenryck & Zhu (2021), section 9.2. One person changes as many entries of a level's chain as the level has
regions (ERRATA G1), so the published noise is too small by that factor. Honest noise makes it useless; it is here to reproduce
Table 7.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.groups.problem import NoisyAnswers
from louver.optim.monotone import nonincreasing
from louver.run import Run

__all__ = ["solve_chain"]


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
