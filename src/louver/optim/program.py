"""Linear and integer programs whose bounds, costs and rows change from one solve to the next.

HiGHS keeps its basis, so a program that differs little from the last one is solved in a few steps. One thread, and limits in nodes
instead of seconds, make the answers the same in every run.

This is the only module that uses the HiGHS inside SciPy, which SciPy does not promise to retain. Where it is missing, SciPy's public
functions are used: they find the same optima more slowly, because each call starts from scratch (decision 0086).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, vstack

from louver._arrays import Bools, Floats
from louver.optim.status import Status
from louver.run import Run

try:
    from scipy.optimize._highspy import _core as highs
except ImportError:  # pragma: no cover - a SciPy that keeps its HiGHS elsewhere
    highs = None

__all__ = ["Program", "SolvedProgram"]

DUAL_SIMPLEX, PRIMAL_SIMPLEX = 1, 4


def _nothing() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class SolvedProgram:
    """Answer of one program.

    Attributes
    ----------
    status : Status
    objective : float
        Value at the point.
    bound : float
        Lower bound on every point of an integer program; the objective of a linear one.
    point, row_duals : ndarray
        Empty where there is none.
    """

    status: Status
    objective: float = math.nan
    bound: float = -math.inf
    point: Floats = field(default_factory=_nothing)
    row_duals: Floats = field(default_factory=_nothing)


class Program:
    """Minimise cost @ x subject to bounds on rows @ x and on x; any of x may be restricted to integers.

    With `is_primal` a linear program is solved by the primal simplex method, which keeps its vertex when only the cost changes.

    Examples
    --------
    >>> program = Program(csr_array(np.array([[1.0, 1.0]])), [4.0], [4.0], np.zeros(2), np.array([3.0, 9.0]))
    >>> program.set_cost(np.array([-1.0, 0.0]))
    >>> program.solve().point.tolist()
    [3.0, 1.0]
    >>> program.set_bounds(np.zeros(2), np.array([2.0, 9.0]))
    >>> program.solve().objective
    -2.0
    """

    def __init__(
        self,
        rows: csr_array,
        row_lower: Any,
        row_upper: Any,
        lower: Floats,
        upper: Floats,
        *,
        is_integer: Bools | None = None,
        run: Run | None = None,
        is_primal: bool = False,
    ) -> None:
        self._run = run
        self._rows = [csr_array(rows).astype(np.float64)]
        self._row_lower = [np.asarray(row_lower, np.float64)]
        self._row_upper = [np.asarray(row_upper, np.float64)]
        self._lower, self._upper = np.array(lower, np.float64), np.array(upper, np.float64)
        self._cost = np.zeros(len(self._lower))
        self._is_integer = is_integer
        self._columns = np.arange(len(self._lower), dtype=np.int32)
        self._solver = None if highs is None else self._loaded(is_primal)

    def minimise(self, cost: Floats, *, seconds: float = math.inf) -> SolvedProgram:
        """Solve for one cost."""
        self.set_cost(cost)
        return self.solve(seconds=seconds)

    def set_cost(self, cost: Floats) -> None:
        self._cost = np.asarray(cost, np.float64)
        if self._solver is not None:
            self._solver.changeColsCost(len(cost), self._columns, self._cost)

    def set_bounds(self, lower: Floats, upper: Floats) -> None:
        self._lower, self._upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        if self._solver is not None:
            self._solver.changeColsBounds(len(lower), self._columns, self._lower, self._upper)

    def add_rows(self, rows: csr_array, row_lower: Floats) -> None:
        """Add rows, each with a lower bound."""
        if not rows.shape[0]:
            return
        self._rows.append(rows)
        self._row_lower.append(row_lower)
        self._row_upper.append(np.full(rows.shape[0], np.inf))
        if self._solver is not None:
            self._solver.addRows(
                rows.shape[0],
                row_lower,
                self._row_upper[-1],
                rows.nnz,
                rows.indptr[:-1].astype(np.int32),
                rows.indices.astype(np.int32),
                rows.data.astype(np.float64),
            )

    def solve(
        self, *, nodes: int = 0, start: Floats | None = None, seconds: float = math.inf
    ) -> SolvedProgram:
        """Solve the program as it stands, within `seconds`; for an integer program, `nodes` is a limit and `start` an initial solution."""
        if self._solver is None:
            return self._cold(nodes)
        solver = self._solver
        solver.setOptionValue(
            "time_limit", float(solver.getRunTime() + seconds)
        )  # its clock keeps running between calls
        if self._is_integer is not None:
            solver.setOptionValue("mip_max_nodes", int(nodes))
            if start is not None:
                solver.setSolution(len(start), self._columns, np.asarray(start, np.float64))
        solver.run()
        if self._run is not None:
            self._run.check()
        return self._read()

    def _read(self) -> SolvedProgram:
        assert self._solver is not None
        solver, kinds = self._solver, highs.HighsModelStatus
        status, info = solver.getModelStatus(), solver.getInfo()
        if status == kinds.kInfeasible:
            return SolvedProgram(Status.INFEASIBLE)
        if self._is_integer is None:
            if status != kinds.kOptimal:
                solver.clearSolver()
                return SolvedProgram(Status.FAILED)
            found = solver.getSolution()
            value = float(info.objective_function_value)
            return SolvedProgram(
                Status.OPTIMAL,
                value,
                value,
                np.array(found.col_value),
                np.array(found.row_dual),
            )
        has_point = info.primal_solution_status == 2
        outcome = Status.OPTIMAL if status == kinds.kOptimal else Status.FEASIBLE
        if not has_point:
            return SolvedProgram(Status.FAILED, bound=float(info.mip_dual_bound))
        return SolvedProgram(
            outcome,
            float(info.objective_function_value),
            float(info.mip_dual_bound),
            np.array(solver.getSolution().col_value),
        )

    def _loaded(self, is_primal: bool) -> Any:
        (rows,) = self._rows
        columns = rows.tocsc()
        model = highs.HighsLp()
        model.num_row_, model.num_col_ = rows.shape
        model.col_cost_ = self._cost
        model.col_lower_, model.col_upper_ = self._lower, self._upper
        model.row_lower_, model.row_upper_ = self._row_lower[0], self._row_upper[0]
        model.a_matrix_.format_ = highs.MatrixFormat.kColwise
        model.a_matrix_.num_row_, model.a_matrix_.num_col_ = rows.shape
        model.a_matrix_.start_ = columns.indptr
        model.a_matrix_.index_ = columns.indices
        model.a_matrix_.value_ = columns.data
        if self._is_integer is not None:
            kinds = highs.HighsVarType
            model.integrality_ = [kinds.kInteger if one else kinds.kContinuous for one in self._is_integer]
        solver = highs._Highs()
        options: list[tuple[str, Any]] = [("output_flag", False), ("threads", 1), ("random_seed", 0)]
        if self._is_integer is None:
            strategy = PRIMAL_SIMPLEX if is_primal else DUAL_SIMPLEX
            options += [("presolve", "off"), ("solver", "simplex"), ("simplex_strategy", strategy)]
        for option, value in options:
            solver.setOptionValue(option, value)
        solver.passModel(model)
        if self._run is not None:
            self._stop_with(solver, self._run)
        return solver

    def _stop_with(self, solver: Any, run: Run) -> None:
        """Let the solver check after every step whether the run was cancelled."""

        def ask(_kind: int, _message: str, _out: Any, answer: Any, _data: object) -> None:
            answer.user_interrupt = run.is_cancelled

        solver.setCallback(ask, None)
        kinds = highs.cb.HighsCallbackType
        solver.startCallback(
            kinds.kCallbackSimplexInterrupt if self._is_integer is None else kinds.kCallbackMipInterrupt
        )

    def _cold(self, nodes: int) -> SolvedProgram:
        """Solve from scratch through the public interface."""
        rows = csr_array(vstack(self._rows))
        low, high = np.concatenate(self._row_lower), np.concatenate(self._row_upper)
        if self._is_integer is not None:
            found: Any = milp(
                self._cost,
                constraints=LinearConstraint(rows, low, high),
                bounds=Bounds(self._lower, self._upper),
                integrality=self._is_integer.astype(np.int64),
                options={"node_limit": nodes},
            )
            if found.x is None:
                return SolvedProgram(Status.INFEASIBLE if found.status == 2 else Status.FAILED)
            outcome = Status.OPTIMAL if found.status == 0 else Status.FEASIBLE
            return SolvedProgram(outcome, float(found.fun), float(found.mip_dual_bound), found.x)
        is_equal = low == high
        above, below = ~is_equal & np.isfinite(high), ~is_equal & np.isfinite(low)
        answer: Any = linprog(
            self._cost,
            A_ub=vstack([rows[above], -rows[below]]),
            b_ub=np.concatenate([high[above], -low[below]]),
            A_eq=rows[is_equal],
            b_eq=low[is_equal],
            bounds=list(zip(self._lower.tolist(), self._upper.tolist(), strict=True)),
            method="highs",
        )
        if answer.status != 0:
            return SolvedProgram(Status.INFEASIBLE if answer.status == 2 else Status.FAILED)
        value = float(self._cost @ answer.x)
        duals = np.zeros(len(low))
        duals[is_equal] = answer.eqlin.marginals
        duals[above] += answer.ineqlin.marginals[: above.sum()]
        duals[below] -= answer.ineqlin.marginals[above.sum() :]
        return SolvedProgram(Status.OPTIMAL, value, value, answer.x, duals)
