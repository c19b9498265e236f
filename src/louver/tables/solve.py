"""Certified bounds on sums of unknowns: propagate, split into independent parts, solve each part, and add up."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.errors import InfeasibleError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.component import PATIENCE, Component
from louver.tables.evidence import Witnesses
from louver.tables.problem import Forms, TablesProblem
from louver.tables.solvers import feasible_point
from louver.tables.system import IntArray, System, split

__all__ = ["Answer", "decide", "fixed", "solve", "walk", "witnesses_of"]

SEARCH_EFFORT = 20.0
"""Deterministic seconds spent looking for a first table when the records are not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """Bounds of the targets.

    Attributes
    ----------
    lower, upper : int64 (targets,)
        Proved bounds: no table that agrees with the pieces lies outside. `UNBOUNDED` if there is no upper bound.
    is_lower_tight, is_upper_tight : bool (targets,)
        Whether a table that agrees with the pieces attains the bound.
    programs, repairs : int
        Number of linear programs solved, and of searches for a table.
    """

    lower: IntArray
    upper: IntArray
    is_lower_tight: NDArray[np.bool_]
    is_upper_tight: NDArray[np.bool_]
    programs: int = 0
    repairs: int = 0

    @property
    def certified(self) -> NDArray[np.bool_]:
        return self.is_lower_tight & self.is_upper_tight

    def verdict(self, floor: IntArray, ceiling: IntArray) -> NDArray[np.int8]:
        """Whether each target is confined to [floor, ceiling]: 1 proved, 0 refuted, -1 not known."""
        is_in = (self.lower >= floor) & (self.upper <= ceiling)
        is_out = (self.is_lower_tight & (self.lower < floor)) | (
            (self.is_upper_tight | (self.upper >= UNBOUNDED)) & (self.upper > ceiling)
        )
        return np.where(is_in, 1, np.where(is_out, 0, -1)).astype(np.int8)


def decide(
    problem: TablesProblem,
    forms: Forms,
    floor: IntArray,
    ceiling: IntArray,
    run: Run,
    seconds: float = np.inf,
    *,
    witnesses: Witnesses | None = None,
    is_patient: bool = False,
) -> NDArray[np.int8]:
    """Whether each target is confined to [floor, ceiling]: 1 proved, 0 refuted, -1 not known.

    Cheaper than bounds. A target that spans several parts, or only some cells of a group, is answered by its bounds.
    Tables that are found are added to `witnesses`; with `is_patient`, the remaining time is spent on targets that are still open.
    """
    patience = PATIENCE if is_patient else PATIENCE[:1]
    deadline = time.monotonic() + seconds
    system = _propagated(problem, run)
    constant = np.where(system.lower < system.upper, 0, system.lower)
    verdict = np.full(len(floor), -1, dtype=np.int8)
    n_parts = np.zeros(len(floor), dtype=np.int64)
    is_same = _same_rows(forms.lower, forms.upper)
    parts = split(system)
    for columns, _ in parts:
        n_parts += np.diff(csr_array(forms.upper[:, columns]).indptr) > 0
    is_plain = is_same & (n_parts <= 1)
    shift = forms.upper @ constant
    verdict[is_plain & (n_parts == 0)] = ((shift >= floor) & (shift <= ceiling))[is_plain & (n_parts == 0)]
    for number, (columns, rows) in enumerate(parts):
        run.report("decisions", number, len(parts))
        chosen = np.flatnonzero(is_plain & (np.diff(csr_array(forms.upper[:, columns]).indptr) > 0))
        if len(chosen):
            part = system.part(columns, rows)
            wanted, _, added = _quantities(csr_array(forms.upper[chosen][:, columns]), part.n_columns)
            wanted[wanted >= part.n_columns] += part.n_rows
            component = _component(part, [added], columns, problem, witnesses, run, deadline)
            low, high = floor[chosen] - shift[chosen], ceiling[chosen] - shift[chosen]
            component.known.trust(np.flatnonzero(problem.is_tight[columns]))
            verdict[chosen] = component.decide(wanted, low, high, patience)
            _keep(component, columns, witnesses)
    rest = np.flatnonzero(~is_plain)
    if len(rest):
        some = Forms(lower=csr_array(forms.lower[rest]), upper=csr_array(forms.upper[rest]))
        answer = solve(problem, some, run, deadline - time.monotonic(), witnesses)
        verdict[rest] = answer.verdict(floor[rest], ceiling[rest])
    return verdict


def fixed(
    problem: TablesProblem, forms: Forms, witnesses: Witnesses, run: Run, deadline: float
) -> NDArray[np.int8]:
    """Whether each target has the same count in all tables: 1 proved, 0 refuted, -1 not known.

    A sum is the same in all tables if and only if the contribution of each part is. Tables that are found are added to `witnesses`.
    """
    system = _propagated(problem, run)
    n_targets = forms.lower.shape[0]
    both = csr_array(vstack([forms.lower, forms.upper], format="csr"))
    is_fixed, is_moved = np.ones(2 * n_targets, dtype=bool), np.zeros(2 * n_targets, dtype=bool)
    for columns, rows in split(system):
        run.check()
        part = system.part(columns, rows)
        own = csr_array(both[:, columns])
        wanted, touched, added = _quantities(own, part.n_columns)
        if not len(touched):
            continue
        wanted[wanted >= part.n_columns] += part.n_rows
        component = _component(part, [added], columns, problem, witnesses, run, deadline)
        base = own @ witnesses.base[columns]
        # Bounds that are tight without a table come second, because a table also refutes other groups.
        verdict = component.decide(wanted, base[touched], base[touched])
        if (verdict < 0).any():
            component.known.trust(np.flatnonzero(problem.is_tight[columns]))
            verdict = component.decide(wanted, base[touched], base[touched], PATIENCE)
        is_fixed[touched] &= verdict == 1
        is_moved[touched] |= verdict == 0
        _keep(component, columns, witnesses)
    is_either_moved, is_both_fixed = is_moved.reshape(2, -1).any(axis=0), is_fixed.reshape(2, -1).all(axis=0)
    return np.where(is_either_moved, 0, np.where(is_both_fixed, 1, -1)).astype(np.int8)


def witnesses_of(problem: TablesProblem, run: Run) -> Witnesses:
    """Witnesses before any table is found: nothing is known to vary."""
    return Witnesses.of(_propagated(problem, run))


def walk(problem: TablesProblem, witnesses: Witnesses, run: Run) -> None:
    """Find tables for the parts for which none have been searched for yet."""
    system = _propagated(problem, run)
    for columns, rows in split(system):
        if not witnesses.is_met[columns].all():
            part = system.part(columns, rows)
            _keep(_component(part, [], columns, problem, witnesses, run), columns, witnesses)


def _component(
    part: System,
    added: list[csr_array],
    columns: IntArray,
    problem: TablesProblem,
    witnesses: Witnesses | None,
    run: Run,
    deadline: float = np.inf,
) -> Component:
    """Working state of a part with additional rows; the variation among its tables is determined once."""
    component = Component(_with_point(_with_rows(part, added), run), run, deadline)
    for table in problem.proposed:
        component.known.record(table[columns])
    if witnesses is not None and not witnesses.is_met[columns].all():
        component.walk()
    return component


def _keep(component: Component, columns: IntArray, witnesses: Witnesses | None) -> None:
    if witnesses is not None:
        witnesses.add(columns, component.known)


def _propagated(problem: TablesProblem, run: Run) -> System:
    system, clash = problem.system.propagated(run)
    if clash >= 0:
        raise InfeasibleError("no table agrees with everything published; some pieces contradict each other.")
    return system


def _same_rows(first: csr_array, second: csr_array) -> NDArray[np.bool_]:
    """Rows on which two matrices agree."""
    difference = csr_array(first - second)
    difference.eliminate_zeros()
    is_same: NDArray[np.bool_] = np.diff(difference.indptr) == 0
    return is_same


def solve(
    problem: TablesProblem,
    forms: Forms,
    run: Run,
    seconds: float = np.inf,
    witnesses: Witnesses | None = None,
) -> Answer:
    """Bounds of all targets, found in at most about the given number of seconds; tables that are found are added to `witnesses`."""
    deadline = time.monotonic() + seconds
    system = _propagated(problem, run)
    is_free = system.lower < system.upper
    constant = np.where(is_free, 0, system.lower)
    sums = _Sums(forms, constant)
    parts = split(system)
    for number, (columns, rows) in enumerate(parts):
        run.report("bounds", number, len(parts))
        part = system.part(columns, rows)
        sums.add_part(part, columns, problem, deadline, run, witnesses)
    return sums.answer()


class _Sums:
    """Bounds of the targets, added up part by part: parts share no unknowns, so their bounds add up."""

    def __init__(self, forms: Forms, constant: IntArray) -> None:
        self.forms = forms
        self.lower, self.upper = forms.lower @ constant, forms.upper @ constant
        self.is_lower_tight = np.ones(len(self.lower), dtype=bool)
        self.is_upper_tight = np.ones(len(self.upper), dtype=bool)
        self.programs = self.repairs = 0

    def add_part(
        self,
        part: System,
        columns: IntArray,
        problem: TablesProblem,
        deadline: float,
        run: Run,
        witnesses: Witnesses | None,
    ) -> None:
        n_columns, is_tight = part.n_columns, problem.is_tight[columns]
        below, below_of, below_rows = _quantities(csr_array(self.forms.lower[:, columns]), n_columns)
        above, above_of, above_rows = _quantities(csr_array(self.forms.upper[:, columns]), n_columns)
        if _all_tight(below, is_tight) and _all_tight(above, is_tight):
            self._add(below_of, above_of, part.lower[below], part.upper[above])
            return
        n_rows = part.n_rows
        below[below >= n_columns] += n_rows
        above[above >= n_columns] += n_rows + below_rows.shape[0]
        component = _component(part, [below_rows, above_rows], columns, problem, witnesses, run, deadline)
        component.known.trust(np.flatnonzero(is_tight))
        component.solve(np.unique(below), np.unique(above))
        _keep(component, columns, witnesses)
        self.programs += component.programs
        self.repairs += component.repairs
        known = component.known
        self._add(below_of, above_of, known.lower[below], known.upper[above])
        self.is_lower_tight[below_of] &= known.attained_lower[below] <= known.lower[below]
        self.is_upper_tight[above_of] &= known.attained_upper[above] >= known.upper[above]

    def _add(self, below_of: IntArray, above_of: IntArray, lower: IntArray, upper: IntArray) -> None:
        """Bounds of one part, added to those of the others."""
        self.lower[below_of] += lower
        is_open = (self.upper[above_of] >= UNBOUNDED) | (upper >= UNBOUNDED)
        self.upper[above_of] = np.where(is_open, UNBOUNDED, self.upper[above_of] + upper)
        self.is_upper_tight[above_of] &= ~is_open

    def answer(self) -> Answer:
        return Answer(
            lower=self.lower,
            upper=self.upper,
            is_lower_tight=self.is_lower_tight,
            is_upper_tight=self.is_upper_tight,
            programs=self.programs,
            repairs=self.repairs,
        )


def _all_tight(quantities: IntArray, is_tight: NDArray[np.bool_]) -> bool:
    """Whether all the quantities are unknowns whose bounds are known to be attained."""
    return bool((quantities < len(is_tight)).all() and is_tight[quantities].all())


def _quantities(forms: csr_array, n_columns: int) -> tuple[IntArray, IntArray, csr_array]:
    """Quantities that the targets refer to in one part, the targets, and the rows to be added for them.

    A target with one unknown is that unknown; others are rows, numbered after the unknowns as they first appear.
    """
    forms.eliminate_zeros()
    forms.sort_indices()
    touched = np.flatnonzero(np.diff(forms.indptr) > 0)
    quantities = np.empty(len(touched), dtype=np.int64)
    seen: dict[bytes, int] = {}
    rows: list[int] = []
    for place, target in enumerate(touched):
        span = slice(forms.indptr[target], forms.indptr[target + 1])
        if span.stop - span.start == 1 and forms.data[span][0] == 1:
            quantities[place] = forms.indices[span.start]
            continue
        key = forms.indices[span].tobytes() + forms.data[span].tobytes()
        if key not in seen:
            seen[key] = len(rows)
            rows.append(int(target))
        quantities[place] = n_columns + seen[key]
    return quantities, touched, csr_array(forms[rows])


def _with_rows(part: System, added: list[csr_array]) -> System:
    """The part with additional rows that are only queried and impose no bounds."""
    n_added = sum(rows.shape[0] for rows in added)
    return replace(
        part,
        matrix=csr_array(vstack([part.matrix, *added]).tocsr().astype(np.int64)),
        row_lower=np.concatenate([part.row_lower, np.full(n_added, -UNBOUNDED)]),
        row_upper=np.concatenate([part.row_upper, np.full(n_added, UNBOUNDED)]),
    )


def _with_point(part: System, run: Run) -> System:
    """A part without a known table, completed with one if it can be found."""
    if part.truth is not None:
        return part
    found = feasible_point(part, SEARCH_EFFORT, run)
    if found.is_impossible:
        raise InfeasibleError("no table agrees with everything published; some pieces contradict each other.")
    if found.point is None or not part.holds(found.point):
        return part
    return replace(part, truth=found.point)
