"""Rounding to whole numbers of non-increasing rows that add up over a tree.

Given real rows for all regions, finds whole-number rows that never increase, are not negative, sum from children to
parents and keep the root's total, as close as possible, one parent at a time from the root down.

Notes
-----
For one parent the unknowns are its children's rows. Their differences along a row are sizes of groups: not negative, with
given sums over the children for every size, and sums over sizes (the rows) close to given numbers. These sums form two laminar
families, so the problem is a minimum-cost flow: a unit enters a child's chain, passes the sizes it is larger than or equal to,
and leaves at its own size. Where that flow is too large, columns are allotted one by one from the largest size down: a hundred
times faster, and within a few counts of the real rows.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.optim.kernels.trees.consistency import deal_inplace
from louver.optim.trees import LevelTree
from louver.run import Run

__all__ = ["round_children", "round_tree"]

COST_UNIT = 1 << 16
"""Costs are squares in units of 1 / COST_UNIT."""

FIRST_WINDOW = 4
"""Initial number of units with a price of their own around a real number; if a value leaves this window, all windows are doubled."""

MOST_FLOW_CELLS = 10_000
"""Children x sizes above which columns are allotted instead: a flow of this size takes about a second."""

LONG_CELLS = 500
"""Number of children x sizes at or above which a region is rounded in a thread that can be cancelled."""


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
        Checked before every parent.

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
    """Round rows to non-increasing whole-number rows that sum to the parent's, by least squares where a flow can be solved.

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
    # Every row is constant between two sizes that occur in the parent: one unknown for each child and run of columns.
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
    """The least-squares rows: flows with ever wider windows until every value lies within its own."""
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


def min_cost_flow(tails: Ints, heads: Ints, capacities: Ints, costs: Ints, supplies: Ints) -> Ints:
    """Return a cheapest flow that moves all supplies to all demands.

    Parameters
    ----------
    tails, heads : int64 (n_arcs,)
        Nodes an arc leaves and enters.
    capacities, costs : int64 (n_arcs,)
        Costs are for each unit and may be negative.
    supplies : int64 (n_nodes,)
        Negative for demands; they sum to zero.

    Examples
    --------
    >>> arcs = np.array([0, 0]), np.array([1, 1]), np.array([2, 9]), np.array([1, 5])
    >>> min_cost_flow(*arcs, np.array([3, -3])).tolist()
    [2, 1]
    """
    from ortools.graph.python import min_cost_flow as solver

    problem = solver.SimpleMinCostFlow()
    arcs = problem.add_arcs_with_capacity_and_unit_cost(
        tails.astype(np.int32), heads.astype(np.int32), capacities, costs
    )
    problem.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    if problem.solve() != problem.OPTIMAL:
        raise SolverError("a flow problem has no solution; its supplies cannot reach its demands.")
    flows: Ints = np.asarray(problem.flows(arcs), dtype=np.int64)
    return flows
