"""The fewest further cells to hide, by a constraint solver that holds one table of whole numbers for every count to protect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.system import IntArray, System

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["Copy", "Fewest", "Rules", "fewest"]

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """What every table has to agree with.

    Attributes
    ----------
    system : System
        All pieces over the joint cells; its `rows` are the cells of the tables that hide some.
    rows : int64 (cells,)
    shown_lower, shown_upper : int64 (cells,)
        What a cell tells where it is shown.
    hidden, may_hide : bool (cells,)
        Cells that are hidden already, and cells that may be hidden, too; the others stay shown.
    table_of : int64 (cells,)
    largest : int
        No unknown is larger.
    hint : bool (cells,), optional
        A pattern to start from.
    """

    system: System
    rows: IntArray
    shown_lower: IntArray
    shown_upper: IntArray
    hidden: Bools
    may_hide: Bools
    table_of: IntArray
    largest: int
    hint: Bools | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copy:
    """One count that must leave [floor, ceiling] in a table that agrees with all that its reader knows.

    Attributes
    ----------
    lower, upper : int64 (cells,)
        What the reader knows about a hidden cell.
    upper_alone : int64 (cells,) or None
        What he knows where no further cell of its table is hidden, if that is less.
    least, most : csr_array (1, unknowns)
        The count as a sum, for its lower and its upper bound.
    """

    lower: IntArray
    upper: IntArray
    upper_alone: IntArray | None
    least: csr_array
    most: csr_array
    floor: int
    ceiling: int


@dataclass(frozen=True, slots=True, eq=False)
class Fewest:
    """The best pattern met, and how many further cells are needed at least; 0 where nothing is proved."""

    hidden: Bools | None
    bound: int


def fewest(rules: Rules, copies: list[Copy], effort: float, seconds: float, run: Run) -> Fewest:
    """Look for the fewest further cells for so many deterministic seconds, and at most so many of the clock."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = np.flatnonzero(rules.may_hide & ~rules.hidden)
    is_hidden = {int(cell): model.new_bool_var("") for cell in chosen}
    if rules.hint is not None:
        for cell, var in is_hidden.items():
            model.add_hint(var, bool(rules.hint[cell]))
    has_more = {table: model.new_bool_var("") for table in np.unique(rules.table_of).tolist()}
    for table, has_any in has_more.items():
        own = [var for cell, var in is_hidden.items() if rules.table_of[cell] == table]
        model.add(cp_model.LinearExpr.sum(own) >= 1).only_enforce_if(has_any)
    for copy in copies:
        run.check()
        _add_table(model, rules, copy, is_hidden, has_more)
    model.minimize(sum(is_hidden.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.linearization_level = 2  # without it even three small tables are not proved
    solver.parameters.max_deterministic_time = effort
    solver.parameters.max_time_in_seconds = max(0.1, seconds)
    with run.interrupting(solver.stop_search):
        status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Fewest(None, 0)
    found = rules.hidden.copy()
    for cell, var in is_hidden.items():
        found[cell] = bool(solver.value(var))
    return Fewest(found, round(solver.best_objective_bound))


def _add_table(
    model: cp_model.CpModel,
    rules: Rules,
    copy: Copy,
    is_hidden: dict[int, cp_model.IntVar],
    has_more: dict[int, cp_model.IntVar],
) -> None:
    """Whole numbers that agree with all that is shown and have the count outside its window."""
    system = rules.system
    unknowns = [model.new_int_var(0, rules.largest, "") for _ in range(system.n_columns)]
    own = {int(row): cell for cell, row in enumerate(rules.rows)}
    for row in range(system.n_rows):
        total = _sum(unknowns, csr_array(system.matrix[[row]]))
        if row not in own:
            _bound(model, total, int(system.row_lower[row]), int(system.row_upper[row]))
            continue
        cell = own[row]
        shown = int(rules.shown_lower[cell]), int(rules.shown_upper[cell])
        if not (rules.hidden[cell] or rules.may_hide[cell]):
            _bound(model, total, *shown)
            continue
        _bound(model, total, int(copy.lower[cell]), int(copy.upper[cell]))
        if cell in is_hidden:
            _bound(model, total, *shown, ~is_hidden[cell])
        if copy.upper_alone is not None and rules.hidden[cell]:
            more = has_more[int(rules.table_of[cell])]
            _bound(model, total, -UNBOUNDED, int(copy.upper_alone[cell]), ~more)
    is_above = model.new_bool_var("")
    model.add(_sum(unknowns, copy.most) >= copy.ceiling + 1).only_enforce_if(is_above)
    model.add(_sum(unknowns, copy.least) <= copy.floor - 1).only_enforce_if(~is_above)


def _sum(unknowns: list[cp_model.IntVar], form: csr_array) -> cp_model.LinearExpr:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.weighted_sum([unknowns[j] for j in form.indices], form.data.tolist())


def _bound(
    model: cp_model.CpModel,
    total: cp_model.LinearExpr,
    low: int,
    high: int,
    only_if: cp_model.LiteralT | None = None,
) -> None:
    if low > -UNBOUNDED:
        added = model.add(total >= low)
        if only_if is not None:
            added.only_enforce_if(only_if)
    if high < UNBOUNDED:
        added = model.add(total <= high)
        if only_if is not None:
            added.only_enforce_if(only_if)
