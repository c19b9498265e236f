"""Rows that never increase and sum over a tree, closest to noisy ones.

Solves the relaxation of Model 2 of Fioretto, Van Hentenryck & Zhu (2021), with a weight for every level.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats
from louver.optim.kernels.trees.consistency import (
    column_pass,
    nonincreasing_inplace,
    project_inplace,
    row_pass,
    subtree_weights,
)
from louver.optim.trees import LevelTree
from louver.run import Run

__all__ = ["MonotoneFit", "fit_monotone", "nonincreasing"]

PENALTIES = {0: 3.0, 15: 10.0, 30: 30.0, 120: 100.0}
"""Step size of the multiplier method from each iteration on; growing steps were fastest over shares and epsilons."""

RELAXATION = 1.7
"""Over-relaxation of the multiplier method."""

FEW_CELLS = 20_000
"""A table with fewer cells is processed by one thread: distributing the work would take longer than doing it."""

BLOCK_COLUMNS = 64
"""Columns handled together: all regions of a block fit into the second-level cache."""


@dataclass(frozen=True, slots=True)
class MonotoneFit:
    """Rows that sum exactly over the tree; `gap` is the largest distance to rows that never increase."""

    rows: Floats
    gap: float
    iterations: int


def nonincreasing(rows: Floats, lower: float, upper: float) -> Floats:
    """Replace every row by the closest one that never increases and stays within bounds.

    Examples
    --------
    >>> nonincreasing(np.array([[5.0, 2.0, 4.0, -3.0]]), 0.0, 10.0).tolist()
    [[5.0, 3.0, 3.0, 0.0]]
    """
    fitted = rows.copy()
    mean, count = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    for row in fitted:
        nonincreasing_inplace(row, lower, upper, mean, count)
    return fitted


def fit_monotone(
    noisy: Floats,
    tree: LevelTree,
    weights: Sequence[float],
    *,
    upper: float,
    total: float | None = None,
    tolerance: float = 0.1,
    max_iterations: int = 400,
    run: Run | None = None,
) -> MonotoneFit:
    """Find the rows closest to noisy ones, in squares weighted by level, that sum over the tree and never increase.

    Parameters
    ----------
    noisy : float64 (n_regions, n_columns)
    tree : LevelTree
    weights : sequence of float
        One for each level: one over the variance of its noise.
    upper : float
        No value may exceed this, and none may be negative.
    total : float, optional
        Fixed value of the root in the first column.
    tolerance : float
        Largest violation of monotonicity, and largest change in the last step, in counts.
    max_iterations : int
        Maximum number of iterations; the result says how close it came.
    run : Run, optional
        Checked in every iteration.

    Notes
    -----
    **Implements**: Model 2, (C1)-(C4), by the alternating direction method of multipliers. Each step projects on the
    consistent rows (closed form) and on the monotone ones (pool adjacent violators).
    **Cost**: O(R N) for each iteration, on all cores; 50 to 150 iterations as a rule.
    """
    scaled = np.asarray(weights) / max(weights)
    coefficients = _coefficients(tree, scaled.tolist())
    fixed, value = (-1, 0.0) if total is None else (0, total)
    n_rows, n_columns = noisy.shape
    x = noisy.copy()
    project_inplace(x, *coefficients, tree.first_child, 0, n_columns, fixed, value)
    z = nonincreasing(x, 0.0, upper)
    u = x - z
    columns = [(i, min(i + BLOCK_COLUMNS, n_columns)) for i in range(0, n_columns, BLOCK_COLUMNS)]
    n_parts = os.cpu_count() or 1
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    gap, iteration, penalty = np.inf, 0, PENALTIES[0]

    def columns_step(block: tuple[int, int]) -> None:
        column_pass(noisy, z, u, x, penalty, *coefficients, tree.first_child, *block, fixed, value)

    def rows_step(part: int) -> tuple[float, float]:
        found: tuple[float, float] = row_pass(x, z, u, RELAXATION, 0.0, upper, edges[part], edges[part + 1])
        return found

    with ThreadPoolExecutor(n_parts) as pool:
        each = map if noisy.size < FEW_CELLS else pool.map
        while iteration < max_iterations:
            if run is not None:
                run.check()
            if iteration in PENALTIES:
                u *= penalty / PENALTIES[iteration]
                penalty = PENALTIES[iteration]
            iteration += 1
            list(each(columns_step, columns))
            measured = list(each(rows_step, range(n_parts)))
            gap = max(g for g, _ in measured)
            if max(gap, *(change for _, change in measured)) <= tolerance:
                break
    return MonotoneFit(x, float(gap), iteration)


def _coefficients(tree: LevelTree, weights: Sequence[float]) -> tuple[Floats, Floats, Floats]:
    weight = np.repeat(np.asarray(weights, np.float64), tree.level_sizes)
    precision, share = np.empty_like(weight), np.empty_like(weight)
    subtree_weights(weight, tree.first_child, precision, share)
    return weight, precision, share
