"""Group sizes closest to noisy ones, consistent over a tree of regions: relaxed and exact.

Solves Model 1 of Fioretto, Van Hentenryck & Zhu (2021); see the kernel `laminar` for the method.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.optim.kernels.trees.laminar import (
    exchange_inplace,
    price_of_total,
    relaxed_values,
    root_curves,
    rounded_values,
)
from louver.optim.trees import LevelTree

__all__ = ["allocate", "allocate_relaxed"]

HEADROOM = 1 << 60
"""Costs of single units must stay below this."""


def allocate(noisy: Ints, tree: LevelTree, total: int | None, weights: Sequence[int] | None = None) -> Ints:
    """Solve (H1)-(H4) exactly: whole numbers, not negative, consistent, with the given total.

    Parameters
    ----------
    noisy : int64 (n_regions, n_sizes)
    tree : LevelTree
    total : int or None
        Number of groups, not negative; None leaves it free.
    weights : sequence of int, optional
        Weight of each level's squares; 1 by default.

    Notes
    -----
    **Implements**: M_H^dp's post-processing, sections 6 and 7.
    **Departs**: no domain is truncated (ERRATA G4).
    **Cost**: O(R N log R) time and O(R N) memory; about half a microsecond for each region and size.

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2]])
    >>> allocate(np.array([[2, 4], [3, 2], [0, 2]]), tree, 7).tolist()      # US, GA, NY; sizes 1 and 2
    [[3, 4], [3, 2], [0, 2]]
    """
    y = np.ascontiguousarray(noisy.T)
    weight = np.array(_level_weights(tree, weights), np.int64)
    largest = int(np.abs(y).max(initial=0)) * tree.n_leaves + (total or 0)
    if int(weight.max()) * largest * 4 * tree.n_levels >= HEADROOM:
        raise SolverError("the noisy counts are too large to be compared exactly; use smaller level weights.")
    values = np.empty(y.shape, np.int64)
    relaxed = _relaxed(y.astype(np.float64), tree, total, weight)
    start = total if total is not None else int(np.rint(relaxed[:, 0].sum()))
    rounded_values(relaxed, tree.first_child, start, values)
    exchange_inplace(y, weight, tree.first_child, tree.parent, total is None, values)
    return np.ascontiguousarray(values.T)


def allocate_relaxed(noisy: Ints, tree: LevelTree, total: int | None) -> Floats:
    """Solve (H1)-(H3) in real numbers that are not negative.

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2]])
    >>> allocate_relaxed(np.array([[2], [3], [0]]), tree, 2).tolist()
    [[2.0], [2.0], [0.0]]
    """
    y = np.ascontiguousarray(noisy.T.astype(np.float64))
    return np.ascontiguousarray(_relaxed(y, tree, total, np.array(_level_weights(tree, None))).T)


def _level_weights(tree: LevelTree, weights: Sequence[int] | None) -> list[int]:
    per_level = [1] * tree.n_levels if weights is None else list(weights)
    return [w for w, n in zip(per_level, tree.level_sizes, strict=True) for _ in range(n)]


def _relaxed(y: Floats, tree: LevelTree, total: int | None, weight: Ints) -> Floats:
    """Solve for all sizes at once: find the price of the total (zero if the total is free), then the values at that price."""
    real_weight = weight.astype(np.float64)
    prices = np.empty((len(y), tree.n_leaves))
    steps = np.empty_like(prices)
    root_curves(y, real_weight, tree.first_child, tree.level_start, prices, steps)
    price = 0.0 if total is None else price_of_total(prices, steps, float(total))
    values = np.empty_like(y)
    relaxed_values(y, real_weight, tree.first_child, tree.level_start, price, values)
    return values
