"""Small systems by a constraint solver, which counts in integers and can prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.system import IntArray, System

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["LARGEST", "Found", "best_value", "feasible_point"]

EFFORT = 1.0
"""Deterministic seconds of the solver for one side."""

LARGEST = 2**34
"""The solver refuses larger domains; beyond any count of people."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best point met, a proved bound, and whether it is proved that there is no point at all."""

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
    """Largest or smallest value of a sum, as far as it comes in so many times the usual effort."""
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
