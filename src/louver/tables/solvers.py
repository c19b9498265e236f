"""Systems handed to solvers: a constraint solver, exact in integers, and linear programs whose duals are rounded and re-checked in
integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.program import Program, SolvedProgram
from louver.optim.status import Status
from louver.run import Run
from louver.tables.system import IntArray, System, as_floats

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["LARGEST", "Found", "Relaxed", "best_value", "feasible_point"]

EFFORT = 1.0
"""Deterministic seconds of the solver for one side."""

LARGEST = 2**34
"""Largest domain that the solver accepts; larger than any count of people."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best point found, a proved bound, and whether it is proved that no point exists."""

    point: IntArray | None = None
    bound: int | None = None
    is_impossible: bool = False


def best_value(
    system: System,
    columns: IntArray,
    coefs: IntArray,
    is_upper: bool,
    run: Run,
    patience: int = 1,
    seconds: float = np.inf,
) -> Found:
    """The largest or smallest value of a sum that is found within a multiple of the usual effort."""
    model, unknowns = _model(system, system.truth, run)
    total = _sum(unknowns, columns, coefs)
    if is_upper:
        model.maximize(total)
    else:
        model.minimize(total)
    return _solved(model, unknowns, EFFORT * patience, seconds, run, has_objective=True)


def feasible_point(system: System, effort: float, run: Run, seconds: float = np.inf) -> Found:
    """Any point of a system, or the proof that it has none."""
    model, unknowns = _model(system, None, run)
    return _solved(model, unknowns, effort, seconds, run, has_objective=False)


def _model(system: System, hint: IntArray | None, run: Run) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    unknowns = [
        model.new_int_var(int(low), int(min(high, LARGEST)), "")
        for low, high in zip(system.lower, system.upper, strict=True)
    ]
    matrix = system.matrix
    for row in range(system.n_rows):
        run.check()
        low, high = int(system.row_lower[row]), int(system.row_upper[row])
        if low <= -UNBOUNDED and high >= UNBOUNDED:
            continue
        span = slice(matrix.indptr[row], matrix.indptr[row + 1])
        total = _sum(unknowns, matrix.indices[span], matrix.data[span])
        model.add_linear_constraint(total, max(low, -UNBOUNDED), min(high, UNBOUNDED))
    if hint is not None:
        for unknown, value in zip(unknowns, hint, strict=True):
            model.add_hint(unknown, int(value))
    return model, unknowns


def _sum(
    unknowns: list[cp_model.IntVar], columns: NDArray[np.integer], coefs: IntArray
) -> cp_model.LinearExpr:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.weighted_sum([unknowns[j] for j in columns], coefs.tolist())


def _solved(
    model: cp_model.CpModel,
    unknowns: list[cp_model.IntVar],
    effort: float,
    seconds: float,
    run: Run,
    *,
    has_objective: bool,
) -> Found:
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = effort
    solver.parameters.max_time_in_seconds = max(0.1, seconds)
    solver.parameters.random_seed = 1
    with run.interrupting(solver.stop_search):
        status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Found(is_impossible=True)
    point = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        point = np.array([solver.value(unknown) for unknown in unknowns], dtype=np.int64)
    bound = round(solver.best_objective_bound) if has_objective and status != cp_model.UNKNOWN else None
    return Found(point=point, bound=bound)


SCALE = 2**20
"""Duals are rounded to multiples of 1 / SCALE."""

MAX_DUAL = 2.0**50


@dataclass(slots=True, eq=False)
class Relaxed:
    """The real-valued relaxation of a system, for a series of objectives."""

    system: System
    run: Run
    programs: int = field(init=False, default=0)
    _program: Program | None = field(init=False, default=None)

    def minimise(self, cost: NDArray[np.float64], seconds: float = np.inf) -> SolvedProgram | None:
        """The minimum of cost @ x over real numbers; None if the solver gives no answer within the time limit."""
        if self._program is None:
            self._program = _program(self.system, self.run)
        self.programs += 1
        answer = self._program.minimise(cost, seconds=max(0.0, seconds))
        return answer if answer.status is Status.OPTIMAL else None

    def safe_bound(self, cost: IntArray, duals: NDArray[np.float64]) -> int:
        """A lower bound on cost @ x, computed in integers and valid for any duals."""
        system = self.system
        rounded = np.rint(np.clip(SCALE * duals, -MAX_DUAL, MAX_DUAL)).astype(np.int64)
        rounded[(rounded > 0) & (system.row_lower <= -UNBOUNDED)] = 0
        rounded[(rounded < 0) & (system.row_upper >= UNBOUNDED)] = 0
        upper = np.minimum(system.upper, LARGEST)
        if self._fits(rounded, upper):
            residual = SCALE * cost - system.matrix.T @ rounded
            total = scaled_lower_bound(
                rounded, system.row_lower, system.row_upper, residual, system.lower, upper
            )
        else:
            total = _long_lower_bound(system, cost, rounded, upper)
        return -(-total // SCALE)

    def _fits(self, rounded: IntArray, upper: IntArray) -> bool:
        """Whether no sum in a safe bound can exceed 64 bits, by a conservative estimate."""
        system, heaviest = self.system, float(np.abs(rounded).max(initial=1))
        entries = float(np.abs(system.matrix.data).max(initial=1))
        residual = SCALE * entries + heaviest * entries * max(1, system.n_rows)
        limits = [
            np.abs(b[np.abs(b) < UNBOUNDED]).max(initial=1) for b in (system.row_lower, system.row_upper)
        ]
        total = residual * float(upper.sum(dtype=np.float64)) + heaviest * system.n_rows * float(max(limits))
        return total < 2.0**62


def scaled_lower_bound(
    duals: IntArray,
    row_lower: IntArray,
    row_upper: IntArray,
    residual: IntArray,
    lower: IntArray,
    upper: IntArray,
) -> int:
    """Least of duals.s + residual.x over row_lower <= s <= row_upper and lower <= x <= upper, in integers.

    With s = A x and residual = scale c - A'duals this bounds scale c.x from below for any duals.
    """
    of_rows = np.maximum(duals, 0) @ row_lower + np.minimum(duals, 0) @ row_upper
    return int(of_rows + np.maximum(residual, 0) @ lower + np.minimum(residual, 0) @ upper)


def _long_lower_bound(system: System, cost: IntArray, rounded: IntArray, upper: IntArray) -> int:
    """The same in integers of arbitrary size."""
    duals = [int(y) for y in rounded]
    residual = [SCALE * int(c) for c in cost]
    matrix = system.matrix
    for row, y in enumerate(duals):
        if y:
            for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
                residual[matrix.indices[k]] -= y * int(matrix.data[k])
    total = 0
    for y, low, high in zip(duals, system.row_lower.tolist(), system.row_upper.tolist(), strict=True):
        total += y * low if y > 0 else y * high if y < 0 else 0
    for d, low, high in zip(residual, system.lower.tolist(), upper.tolist(), strict=True):
        total += d * low if d > 0 else d * high if d < 0 else 0
    return total


def _program(system: System, run: Run) -> Program:
    return Program(
        csr_array(system.matrix.astype(np.float64)),
        as_floats(system.row_lower),
        as_floats(system.row_upper),
        as_floats(system.lower),
        as_floats(system.upper),
        run=run,
        is_primal=True,
    )
