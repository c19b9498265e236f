"""Weighted least squares under linear constraints, by the general solver PIQP."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array

from louver._arrays import Floats
from louver.optim.status import Status

__all__ = ["solve_least_squares"]


def solve_least_squares(
    weight: Floats,
    goal: Floats,
    rows: csr_array,
    row_lower: Floats,
    row_upper: Floats,
    lower: Floats,
    upper: Floats,
    *,
    tolerance: float,
) -> tuple[Status, Floats | None]:
    """Minimise sum of weight * (x - goal)^2 subject to bounds on rows @ x and on x.

    Returns
    -------
    status : Status
    x : ndarray or None

    Notes
    -----
    Unknowns are differences from `goal`; otherwise large goals would drown the objective in rounding errors. Rows with
    equal bounds are passed as equations.
    """
    import piqp

    is_equal = row_lower == row_upper
    moved = rows @ goal
    equations, others = rows[is_equal], rows[~is_equal]
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
    solver.setup(
        csc_array((2.0 * weight, np.arange(len(goal)), np.arange(len(goal) + 1))),
        np.zeros(len(goal)),
        csc_array(equations),
        (row_lower - moved)[is_equal],
        csc_array(others),
        (row_lower - moved)[~is_equal],
        (row_upper - moved)[~is_equal],
        lower - goal,
        upper - goal,
    )
    outcome = solver.solve()
    status = {
        piqp.Status.PIQP_SOLVED: Status.OPTIMAL,
        piqp.Status.PIQP_MAX_ITER_REACHED: Status.FEASIBLE,
        piqp.Status.PIQP_PRIMAL_INFEASIBLE: Status.INFEASIBLE,
    }.get(outcome, Status.FAILED)
    if status in (Status.OPTIMAL, Status.FEASIBLE):
        return status, np.asarray(solver.result.x) + goal
    return status, None
