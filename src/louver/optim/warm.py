"""Linear programs that differ only in their objective, each solved from the last one's basis.

SciPy's public interface starts every program from nothing. Its bundled HiGHS can keep a basis; where a SciPy has no such
inside, the public interface answers, more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from louver.optim.status import Status
from louver.run import Run

try:
    from scipy.optimize._highspy import _core as highs
except ImportError:  # pragma: no cover - an older or a newer SciPy
    highs = None

__all__ = ["Relaxation", "WarmProgram"]

PRIMAL_SIMPLEX = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """Answer of one linear program; `point` and `duals` are empty unless the status is OPTIMAL."""

    status: Status
    point: Floats
    duals: Floats


NO_ANSWER = np.zeros(0)


class WarmProgram:
    """Minimise cost @ x subject to bounds on rows @ x and on x, for one cost after another.

    Examples
    --------
    >>> rows = csr_array(np.array([[1.0, 1.0]]))
    >>> program = WarmProgram(rows, np.array([4.0]), np.array([4.0]), np.zeros(2), np.array([3.0, 9.0]))
    >>> program.minimise(np.array([-1.0, 0.0])).point.tolist()
    [3.0, 1.0]
    """

    def __init__(
        self,
        rows: csr_array,
        row_lower: Floats,
        row_upper: Floats,
        lower: Floats,
        upper: Floats,
        run: Run | None = None,
    ) -> None:
        self._rows, self._limits = rows, (row_lower, row_upper, lower, upper)
        self._run = run
        self._solver = None if highs is None else _loaded(rows, row_lower, row_upper, lower, upper)
        if self._solver is not None and run is not None:
            _stop_with(self._solver, run)
        self._columns = np.arange(rows.shape[1], dtype=np.int32)

    def minimise(self, cost: Floats, seconds: float = np.inf) -> Relaxation:
        """Solve for one cost, for at most so many seconds."""
        if self._solver is None:
            return _cold(cost, self._rows, *self._limits)
        solver = self._solver
        solver.changeColsCost(len(cost), self._columns, cost)
        solver.setOptionValue("time_limit", float(solver.getRunTime() + seconds))
        solver.run()
        if self._run is not None:
            self._run.check()
        status = solver.getModelStatus()
        if status == highs.HighsModelStatus.kInfeasible:
            return Relaxation(Status.INFEASIBLE, NO_ANSWER, NO_ANSWER)
        if status != highs.HighsModelStatus.kOptimal:
            solver.clearSolver()
            return Relaxation(Status.FAILED, NO_ANSWER, NO_ANSWER)
        answer = solver.getSolution()
        return Relaxation(Status.OPTIMAL, np.array(answer.col_value), np.array(answer.row_dual))


def _loaded(rows: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats) -> Any:
    """A solver that holds the program with no objective yet."""
    columns = rows.tocsc()
    model = highs.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.col_cost_ = np.zeros(rows.shape[1])
    model.col_lower_, model.col_upper_ = lower, upper
    model.row_lower_, model.row_upper_ = row_lower, row_upper
    model.a_matrix_.format_ = highs.MatrixFormat.kColwise
    model.a_matrix_.num_row_, model.a_matrix_.num_col_ = rows.shape
    model.a_matrix_.start_ = columns.indptr
    model.a_matrix_.index_ = columns.indices
    model.a_matrix_.value_ = columns.data.astype(np.float64)
    solver = highs._Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("simplex_strategy", PRIMAL_SIMPLEX),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(model)
    return solver


def _stop_with(solver: Any, run: Run) -> None:
    """Let the solver ask after every step whether the run was cancelled."""

    def ask(_kind: int, _message: str, _out: Any, answer: Any, _data: object) -> None:
        answer.user_interrupt = run.is_cancelled

    solver.setCallback(ask, None)
    solver.startCallback(highs.cb.HighsCallbackType.kCallbackSimplexInterrupt)


def _cold(
    cost: Floats, rows: csr_array, row_lower: Floats, row_upper: Floats, lower: Floats, upper: Floats
) -> Relaxation:
    """The same from nothing, by the public interface."""
    is_equal = row_lower == row_upper
    above, below = ~is_equal & np.isfinite(row_upper), ~is_equal & np.isfinite(row_lower)
    answer = linprog(
        cost,
        A_ub=vstack([rows[above], -rows[below]]),
        b_ub=np.concatenate([row_upper[above], -row_lower[below]]),
        A_eq=rows[is_equal],
        b_eq=row_lower[is_equal],
        bounds=list(zip(lower.tolist(), upper.tolist(), strict=True)),
        method="highs",
    )
    if answer.status == 2:
        return Relaxation(Status.INFEASIBLE, NO_ANSWER, NO_ANSWER)
    if answer.status != 0 or answer.x is None:
        return Relaxation(Status.FAILED, NO_ANSWER, NO_ANSWER)
    duals = np.zeros(len(row_lower))
    duals[is_equal] = answer.eqlin.marginals
    duals[above] += answer.ineqlin.marginals[: above.sum()]
    duals[below] -= answer.ineqlin.marginals[above.sum() :]
    return Relaxation(Status.OPTIMAL, answer.x, duals)
