"""Linear and integer programs, solved by HiGHS through SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from louver._arrays import Bools, Floats
from louver.optim.status import Status
from louver.run import Run

__all__ = ["interruptible_milp", "solve_linear"]

_STATUS = {0: Status.OPTIMAL, 1: Status.FEASIBLE, 2: Status.INFEASIBLE, 3: Status.FAILED, 4: Status.FAILED}


def solve_linear(
    cost: Floats,
    rows: csr_array,
    row_lower: Floats,
    row_upper: Floats,
    lower: Floats,
    upper: Floats,
    *,
    is_integer: bool | Bools,
) -> tuple[Status, Floats | None]:
    """Minimise cost @ x subject to bounds on rows @ x and on x; `is_integer` says which of x are whole.

    Returns
    -------
    status : Status
    x : ndarray or None
        None unless the status is OPTIMAL or FEASIBLE.
    """
    answer = milp(
        cost,
        constraints=LinearConstraint(rows, row_lower, row_upper),
        bounds=Bounds(lower, upper),
        integrality=np.broadcast_to(np.asarray(is_integer, dtype=np.int64), len(cost)),
    )
    status = _STATUS[answer.status]
    if answer.x is None:
        return (Status.FAILED if status is Status.FEASIBLE else status), None
    return status, answer.x


def interruptible_milp(run: Run | None, **problem: Any) -> Any:
    """`scipy.optimize.milp`; as it has no callback, a `run` moves it to a child process, which ends when the run is cancelled.

    Notes
    -----
    **Cost**: the child takes about half a second to start.
    """
    return milp(**problem) if run is None else run.call(milp, **problem)
