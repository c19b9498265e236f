"""Minimum-cost flows by OR-Tools: arrays in, arrays out."""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.errors import SolverError

__all__ = ["min_cost_flow"]


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
