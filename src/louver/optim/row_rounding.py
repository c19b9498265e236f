"""Whole numbers for rows that never increase and sum over a tree.

Answers: given real rows for all regions, whole-number rows that never increase, are not negative, sum from children to
parents and keep the root's total, as close as can be, one parent at a time from the root down.

Notes
-----
For one parent the unknowns are its children's rows. Their differences along a row are sizes of groups: not negative, with
given sums over the children for every size, and sums over sizes (the rows) close to given numbers. These sums form two laminar
families, so the problem is a minimum-cost flow: a unit enters a child's chain, passes the sizes it is larger than or equal to,
and leaves at its own size. Where that is too large, columns are dealt out one after the other from the largest size down: a hundred
times faster, and within a few counts of the real rows.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.optim.flow import min_cost_flow
from louver.optim.kernels.trees.consistency import deal_inplace
from louver.optim.trees import LevelTree
from louver.run import Run

__all__ = ["round_children", "round_tree"]

COST_UNIT = 1 << 16
"""Costs are squares in units of 1 / COST_UNIT."""

FIRST_WINDOW = 4
"""Units priced one by one around a real number at first; where a value leaves its window, all are doubled."""

MOST_FLOW_CELLS = 10_000
"""Children x sizes beyond which columns are dealt out instead: a flow of this size takes about a second."""

LONG_CELLS = 500
"""Children x sizes from which on a region may take long enough to be asked meanwhile whether to go on."""


def round_tree(rows: Floats, tree: LevelTree, total: int | None = None, run: Run | None = None) -> Ints:
    """Round the root, then the children of every region.

    Parameters
    ----------
    rows : float64 (n_regions, n_columns)
        As `fit_monotone` gives them.
    tree : LevelTree
    total : int, optional
        Exact value of the root in the first column.
    run : Run, optional
        Asked before every parent whether to go on.

    Notes
    -----
    **Cost**: one flow problem for each parent, with 7 arcs for each child and each size that the parent has; beyond
    `MOST_FLOW_CELLS` of these O(children log children) for each size.

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2]])
    >>> rows = np.array([[3.0, 1.0], [1.4, 0.6], [1.6, 0.4]])
    >>> round_tree(rows, tree, 3).tolist()
    [[3, 1], [1, 1], [2, 0]]
    """
    rounded = np.zeros(rows.shape, np.int64)
    root = np.maximum(np.rint(rows[0]).astype(np.int64), 0)
    if total is not None:
        root = np.minimum(root, total)
        root[0] = total
    rounded[0] = np.maximum.accumulate(root[::-1])[::-1]
    run = run or Run()
    for r in range(int(tree.level_start[-2])):
        run.check()
        children = tree.children(r)
        below = rows[children]
        if below.size > LONG_CELLS:
            rounded[children] = run.attend(round_children, rounded[r], below)
        else:
            rounded[children] = round_children(rounded[r], below)
    return rounded


def round_children(parent: Ints, rows: Floats) -> Ints:
    """Round rows to whole-number rows that never increase and sum to the parent's, at least sum of squares where a flow can be solved.

    Parameters
    ----------
    parent : int64 (n_columns,)
        Never increases, not negative.
    rows : float64 (n_children, n_columns)
    """
    ends = np.flatnonzero(parent > np.append(parent[1:], 0))
    rounded = np.zeros(rows.shape, np.int64)
    if len(ends) == 0:
        return rounded
    # Between two sizes that the parent has, every row is constant: one unknown for each child and run of columns.
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts + 1
    before = np.concatenate([np.zeros((len(rows), 1)), rows.cumsum(axis=1)], axis=1)
    means = (before[:, ends + 1] - before[:, starts]) / lengths
    if means.size > MOST_FLOW_CELLS:
        values = np.empty(means.shape, np.int64)
        deal_inplace(parent[starts], np.ascontiguousarray(means), values)
    else:
        values = _closest(parent[starts], means, lengths)
    rounded[:, : ends[-1] + 1] = np.repeat(values, lengths, axis=1)
    return rounded


def _closest(sums: Ints, means: Floats, lengths: Ints) -> Ints:
    """The rows at least sum of squares: flows with wider and wider windows until every value lies within its own."""
    window = FIRST_WINDOW
    while True:
        low = np.maximum(np.floor(means).astype(np.int64) - window // 2 + 1, 0)
        values = _solve(sums, means, lengths, low, window)
        if ((values >= low) & (values <= low + window)).all():
            return values
        window *= 2


def _solve(sums: Ints, means: Floats, lengths: Ints, low: Ints, window: int) -> Ints:
    """One flow: exact where values stay within [low, low + window], a lower bound on the cost elsewhere."""
    n_children, n_runs = means.shape
    chain = np.arange(n_children * n_runs).reshape(n_children, n_runs)
    source = n_children * n_runs + n_runs
    entry = np.where(np.arange(n_runs) == 0, source, chain - 1)
    sinks = n_children * n_runs + np.arange(n_runs)
    largest = int(sums[0])

    def price(q: Ints) -> Ints:
        return np.rint(2 * lengths * (q + 0.5 - means) * COST_UNIT).astype(np.int64)

    capacities = [low] + [np.ones_like(low)] * window + [np.full_like(low, largest)] * 2
    costs = [price(low - 1)] + [price(low + j) for j in range(window + 1)] + [np.zeros_like(low)]
    tails = [entry] * (window + 2) + [chain]
    heads = [chain] * (window + 2) + [np.broadcast_to(sinks, chain.shape)]
    supplies = np.zeros(source + 1, np.int64)
    supplies[source] = largest
    supplies[sinks] = np.append(sums[1:], 0) - sums
    flat = [np.concatenate([part.ravel() for part in parts]) for parts in (tails, heads, capacities, costs)]
    flows = min_cost_flow(flat[0], flat[1], flat[2], flat[3], supplies)
    values: Ints = flows[: (window + 2) * chain.size].reshape(window + 2, *means.shape).sum(axis=0)
    return values
