"""Why a cell can be derived: a smallest sufficient set of tables, and the reason in a sentence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from louver.audit.cells import AuditCells, forms_for
from louver.audit.load import LoadedTables
from louver.errors import InfeasibleError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.problem import build
from louver.tables.solve import decide
from louver.tables.solvers import feasible_point
from louver.tables.system import IntArray, System, split

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["Copy", "Fewest", "Reason", "Rules", "contradiction", "explain", "fewest", "in_words", "verdicts"]

EXHAUSTIVE = 400
"""Number of subsets of pieces tried in order of size before sets are reduced piece by piece."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Numbers of the pieces that confine a cell, and whether it is proved that no fewer suffice."""

    pieces: tuple[int, ...]
    is_smallest: bool


def verdicts(
    loaded: LoadedTables,
    chosen: Sequence[int],
    cells: AuditCells,
    floor: IntArray,
    ceiling: IntArray,
    run: Run,
    seconds: float = np.inf,
) -> NDArray[np.int8]:
    """Whether the chosen pieces alone confine each cell to [floor, ceiling]: 1 proved, 0 refuted, -1 not known."""
    pieces = [loaded.pieces[number] for number in chosen]
    problem = build(loaded.domain, pieces, loaded.truth, loaded.is_possible)
    return decide(problem, forms_for(problem, cells), floor, ceiling, run, seconds)


def explain(
    loaded: LoadedTables,
    cells: AuditCells,
    floor: IntArray,
    ceiling: IntArray,
    run: Run,
    deadline: float = np.inf,
) -> list[Reason | None]:
    """A smallest set of pieces for each cell that all pieces together confine; None if time ran out."""
    search = _ReasonSearch(loaded, cells, floor, ceiling, run, deadline)
    n_pieces = len(loaded.pieces)
    spent = 0
    for size in range(1, n_pieces + 1):
        spent += comb(n_pieces, size)
        if spent > EXHAUSTIVE or not search.open:
            break
        for chosen in combinations(range(n_pieces), size):
            search.try_set(chosen, is_in_order=True)
    while search.open and not search.is_late():
        search.shrink_one()
    return search.reasons


class _ReasonSearch:
    """Cells still to be explained, and the sets found so far."""

    def __init__(
        self,
        loaded: LoadedTables,
        cells: AuditCells,
        floor: IntArray,
        ceiling: IntArray,
        run: Run,
        deadline: float,
    ) -> None:
        self.loaded, self.cells, self.run, self.deadline = loaded, cells, run, deadline
        self.floor, self.ceiling = floor, ceiling
        self.open = list(range(cells.size))
        self.doubtful: set[int] = set()
        self.reasons: list[Reason | None] = [None] * cells.size

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def holds(self, chosen: Sequence[int], some: Sequence[int]) -> NDArray[np.int8]:
        picked = np.array(some, dtype=np.int64)
        left = max(0.0, self.deadline - time.monotonic())
        return verdicts(
            self.loaded,
            chosen,
            self.cells.pick(picked),
            self.floor[picked],
            self.ceiling[picked],
            self.run,
            left,
        )

    def try_set(self, chosen: tuple[int, ...], *, is_in_order: bool) -> None:
        """Use this set to explain all open cells that it confines; `is_in_order` means all smaller sets came before."""
        if not self.open or self.is_late():
            return
        for number, verdict in zip(list(self.open), self.holds(chosen, self.open), strict=True):
            if verdict == 1:
                is_smallest = len(chosen) == 1 or (is_in_order and number not in self.doubtful)
                self.reasons[number] = Reason(chosen, is_smallest)
                self.open.remove(number)
            elif verdict < 0:
                self.doubtful.add(number)

    def shrink_one(self) -> None:
        """Drop pieces, halves first, as long as the first open cell remains confined; then try the set on all others."""
        first = self.open[0]
        kept = list(range(len(self.loaded.pieces)))
        if self.holds(kept, [first])[0] != 1:
            self.open.remove(first)
            return
        width = max(1, len(kept) // 2)
        while width:
            start = 0
            while start < len(kept) and not self.is_late():
                rest = kept[:start] + kept[start + width :]
                if rest and self.holds(rest, [first])[0] == 1:
                    kept = rest
                else:
                    start += width
            width //= 2
        if not self.is_late():
            self.try_set(tuple(kept), is_in_order=False)
        if first in self.open:
            self.open.remove(first)


MAX_SETS = 300
"""Number of sets of pieces tried in order of size before pieces are left out one by one."""

CONTRADICTION_EFFORT = 2.0


def contradiction(loaded: LoadedTables, run: Run) -> InfeasibleError:
    """The error about a smallest set of pieces with which no table agrees."""
    numbers = _smallest(loaded, run)
    names = [f'"{loaded.pieces[number].name}"' for number in numbers]
    if len(names) == 1:
        content = f"table {names[0]} contradicts itself: its numbers do not add up"
    else:
        content = f"tables {', '.join(names[:-1])} and {names[-1]} contradict each other: no table of counts agrees with all of them"
    return InfeasibleError(f"{content}; check their files.", clash=tuple(number + 1 for number in numbers))


def _smallest(loaded: LoadedTables, run: Run) -> tuple[int, ...]:
    n_pieces, spent = len(loaded.pieces), 0
    for size in range(1, n_pieces):
        spent += comb(n_pieces, size)
        if spent > MAX_SETS:
            break
        for chosen in combinations(range(n_pieces), size):
            if _is_impossible(loaded, chosen, run):
                return chosen
    kept = list(range(n_pieces))
    for number in range(n_pieces):
        rest = [other for other in kept if other != number]
        if rest and _is_impossible(loaded, rest, run):
            kept = rest
    return tuple(kept)


def _is_impossible(loaded: LoadedTables, chosen: Sequence[int], run: Run) -> bool:
    """Whether it is proved that no table agrees with these pieces."""
    run.check()
    try:
        problem = build(loaded.domain, [loaded.pieces[number] for number in chosen], None, loaded.is_possible)
    except InfeasibleError:
        return True
    system, clash = problem.system.propagated(run)
    if clash >= 0:
        return True
    return any(
        feasible_point(system.part(columns, rows), CONTRADICTION_EFFORT, run).is_impossible
        for columns, rows in split(system)
    )


def in_words(loaded: LoadedTables, cells: NDArray[np.bool_], reason: Reason, lower: int, upper: int) -> str:
    """Why a sum of joint cells (a mask) is known to lie in [lower, upper]."""
    names = [f'"{loaded.pieces[number].name}"' for number in reason.pieces]
    people = _people(lower, upper)
    if len(names) == 1:
        return f"{names[0]} alone reveals {people}."
    if len(names) == 2:
        for first, second in ((0, 1), (1, 0)):
            if _is_difference(loaded, cells, reason.pieces[first], reason.pieces[second]):
                return f"{names[first]} minus {names[second]} leaves {people}."
    return f"{', '.join(names[:-1])} and {names[-1]} together leave {people}."


def _people(lower: int, upper: int) -> str:
    noun = "person" if upper == 1 else "people"
    return f"{lower} {noun}" if lower == upper else f"{lower} to {upper} {noun}"


def _is_difference(loaded: LoadedTables, cells: NDArray[np.bool_], whole: int, part: int) -> bool:
    """Whether a cell of one table consists of a cell of another and these cells, and nothing else."""
    first = int(np.flatnonzero(cells)[0])
    for margin in loaded.pieces[whole].margins:
        assign = loaded.domain.assign(margin.cross)
        if assign[first] < 0:
            continue
        row = assign == assign[first]
        rest = row & ~cells
        if (cells & ~row).any() or not rest.any():
            continue
        inside = int(np.flatnonzero(rest)[0])
        for other in loaded.pieces[part].margins:
            numbers = loaded.domain.assign(other.cross)
            if numbers[inside] >= 0 and np.array_equal(numbers == numbers[inside], rest):
                return True
    return False


Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """Everything with which a table must agree.

    Attributes
    ----------
    system : System
        All pieces over the joint cells; `rows` are the cells of the tables that hide cells.
    rows : int64 (cells,)
    shown_lower, shown_upper : int64 (cells,)
        Bounds that a cell discloses if it is shown.
    hidden, may_hide : bool (cells,)
        Cells that are already hidden, and cells that may also be hidden; the others remain shown.
    table_of : int64 (cells,)
    largest : int
        Upper bound on the unknowns.
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
    """One count that must fall outside [floor, ceiling] in a table consistent with everything its reader knows.

    Attributes
    ----------
    lower, upper : int64 (cells,)
        The reader's bounds on a hidden cell.
    upper_alone : int64 (cells,) or None
        The reader's upper bound if no further cell of its table is hidden, where that is lower.
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
    """The best pattern found, and the minimum number of further cells needed; 0 if nothing is proved."""

    hidden: Bools | None
    bound: int


def fewest(rules: Rules, copies: list[Copy], effort: float, seconds: float, run: Run) -> Fewest:
    """Look for the fewest further cells within a limit of deterministic seconds and one of clock time."""
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
    solver.parameters.linearization_level = (
        2  # without this, the optimum is not proved even for three small tables
    )
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
    """Whole numbers that agree with everything shown and have the count outside its window."""
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
