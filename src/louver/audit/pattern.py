"""Further cells to hide, found by the engine of `louver protect`, for readers who can tell which hidden cells are small.

The engine knows cells, and sums that equal a cell minus other cells. Here the cells are the unknowns and the rows of the audit's system; an
unknown that a row shows by itself is that row. A count must be able to leave its window on one side: upwards if that is possible with
everything hidden, otherwise downwards. Problems that the engine cannot represent (coefficients other than 1, numbers that are rounded and
may be hidden) are left to the audit's own search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from louver.run import Run
from louver.tables.hiding.certify import certify
from louver.tables.hiding.hide import hide, is_large
from louver.tables.hiding.outsider import Outsider
from louver.tables.hiding.problem import UNBOUNDED, Attacker, Demand, PatternProblem
from louver.tables.problem import Forms
from louver.tables.system import IntArray, System

__all__ = ["HiddenRows", "cheap_pattern"]

Bools = NDArray[np.bool_]

STEPS = 0
"""Number of rounds of the engine's search: only its first pattern, which takes moments."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HiddenRows:
    """Rows of a system that can be hidden.

    Attributes
    ----------
    rows : int64 (cells,)
        Their numbers in the system.
    hidden, may_hide : bool (cells,)
        Rows that are already hidden, and rows that may also be hidden; the others remain shown.
    shown_lower, shown_upper : int64 (cells,)
        Bounds that a row states if it is shown.
    lower, upper : int64 (cells,)
        Bounds that a reader knows if it is hidden.
    cost : float64 (cells,)
    """

    rows: IntArray
    hidden: Bools
    may_hide: Bools
    shown_lower: IntArray
    shown_upper: IntArray
    lower: IntArray
    upper: IntArray
    cost: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProposedPattern:
    """Which rows to hide, and tables of the unknowns in which some count is outside its window."""

    hidden: Bools
    witnesses: tuple[IntArray, ...]


def cheap_pattern(
    system: System,
    own: HiddenRows,
    counts: Forms,
    floor: IntArray,
    ceiling: IntArray,
    run: Run,
    seconds: float,
) -> ProposedPattern | None:
    """Rows to hide so that each count can be outside its window; None if the engine cannot represent the problem.

    This is a proposal: the caller must find the counts that remain confined, since the engine may assume too little about a reader or find
    no whole numbers.
    """
    is_exact = own.shown_lower == own.shown_upper
    if system.truth is None or (np.abs(system.matrix.data) != 1).any() or not is_exact[own.may_hide].all():
        return None
    cells = _Cells(system, own)
    up, down = (cells.places(form) for form in (counts.upper, counts.lower))
    problem = cells.problem(())
    ways = [
        [one for one in (_way(problem, a, 1, high + 1), _way(problem, b, -1, low - 1)) if one is not None]
        for a, b, low, high in zip(up, down, floor.tolist(), ceiling.tolist(), strict=True)
    ]
    demands = _one_each(problem, ways, run)
    problem = cells.problem(demands)
    found = hide(problem, run, steps=STEPS, seconds=max(0.1, seconds))
    proofs = certify(replace(problem, demands=found.demands), found.hidden, found.witnesses, run)
    return ProposedPattern(
        hidden=own.hidden | (own.may_hide & found.hidden[cells.number[cells.n_unknowns + own.rows]]),
        witnesses=cells.tables(proofs.changes),
    )


class _Cells:
    """The cells of the engine: unknowns, then rows, then counts that are neither."""

    def __init__(self, system: System, own: HiddenRows) -> None:
        assert system.truth is not None
        self.matrix = csr_array(system.matrix)
        self.truth, self.n_unknowns = system.truth, system.n_columns
        n, m = self.n_unknowns, system.n_rows
        sums = self.matrix @ system.truth
        lower = np.concatenate([system.lower, system.row_lower])
        upper = np.concatenate([system.upper, system.row_upper])
        places = n + own.rows
        lower[places], upper[places] = own.lower, own.upper
        self.may = np.zeros(n + m, dtype=bool)
        self.may[places] = own.may_hide
        self.must = np.concatenate([np.ones(n, dtype=bool), system.row_lower < system.row_upper])
        self.must[places] = own.hidden
        self.cost = np.zeros(n + m)
        self.cost[places] = np.where(own.hidden, 0.0, own.cost)
        self.values = np.concatenate([system.truth, sums])
        self.down = np.where(lower <= -UNBOUNDED, UNBOUNDED, self.values - lower)
        self.up = np.where(upper >= UNBOUNDED, UNBOUNDED, upper - self.values)
        self._of_row = {self._key(row): n + row for row in range(m)[::-1]}
        self.number = np.arange(n + m)
        is_trivial = self._merged(own)
        lines = np.flatnonzero(~is_trivial)
        identity = csr_array((np.ones(m, dtype=np.int64), (np.arange(m), np.arange(m))), shape=(m, m))
        self._sums = [csr_array(hstack([-self.matrix, identity], format="csr")[lines])]

    def _key(self, row: int) -> bytes:
        own = slice(self.matrix.indptr[row], self.matrix.indptr[row + 1])
        order = np.argsort(self.matrix.indices[own])
        return _key(self.matrix.indices[own][order].astype(np.int64), self.matrix.data[own][order])

    def _merged(self, own: HiddenRows) -> Bools:
        """Identify an unknown that a row shows by itself with that row; return the rows that then need no sum."""
        is_trivial = np.zeros(self.matrix.shape[0], dtype=bool)
        for row in own.rows.tolist():
            start, stop = self.matrix.indptr[row : row + 2].tolist()
            if stop - start != 1 or self.matrix.data[start] != 1:
                continue
            unknown, cell = int(self.matrix.indices[start]), self.n_unknowns + row
            if self.number[unknown] != unknown:
                continue
            self.number[unknown] = cell
            is_trivial[row] = True
            self.down[cell] = min(self.down[cell], self.down[unknown])
            self.up[cell] = min(self.up[cell], self.up[unknown])
        return is_trivial

    def places(self, forms: csr_array) -> list[int]:
        """The cell of each form; missing ones are added."""
        found = []
        forms = csr_array(forms)
        forms.sort_indices()
        for line in range(forms.shape[0]):
            own = slice(forms.indptr[line], forms.indptr[line + 1])
            unknowns, factors = forms.indices[own].astype(np.int64), forms.data[own]
            if len(unknowns) == 1 and factors[0] == 1:
                found.append(int(self.number[unknowns[0]]))
                continue
            key = _key(unknowns, factors)
            if key not in self._of_row:
                self._of_row[key] = self._add(unknowns, factors)
            found.append(self._of_row[key])
        return found

    def _add(self, unknowns: IntArray, factors: IntArray) -> int:
        """A cell that no table shows, as a sum of unknowns."""
        place = len(self.values)
        self.values = np.append(self.values, int(factors @ self.truth[unknowns]))
        self.must, self.may = np.append(self.must, True), np.append(self.may, False)
        self.cost = np.append(self.cost, 0.0)
        self.down, self.up = np.append(self.down, UNBOUNDED), np.append(self.up, UNBOUNDED)
        self.number = np.append(self.number, place)
        cells = np.append(unknowns, place)
        line = csr_array(
            (np.append(-factors, 1), (np.zeros(len(cells), dtype=int), cells)), shape=(1, place + 1)
        )
        self._sums.append(line)
        return place

    def tables(self, changes: Sequence[tuple[IntArray, IntArray] | None]) -> tuple[IntArray, ...]:
        """The unknowns of every table that differs from the records by one of some changes."""
        found: dict[bytes, IntArray] = {}
        for change in changes:
            if change is not None:
                values = self.values.copy()
                values[change[0]] += change[1]
                table = values[self.number[: self.n_unknowns]]
                found[table.tobytes()] = table
        return tuple(found.values())

    def problem(self, demands: tuple[Demand, ...]) -> PatternProblem:
        """The problem for the engine; unknowns that are rows are in no sum."""
        n = len(self.values)
        lines = [one.tocoo() for one in self._sums]
        start = np.cumsum([0, *(one.shape[0] for one in lines)])
        rows = np.concatenate([one.row + at for one, at in zip(lines, start[:-1], strict=True)])
        cells = self.number[np.concatenate([one.col for one in lines])]
        signs = np.concatenate([one.data for one in lines]).astype(np.int8)
        nothing = np.zeros(0, dtype=np.int64)
        return PatternProblem(
            values=self.values,
            sums=csr_array((signs, (rows, cells)), shape=(int(start[-1]), n)),
            must_hide=self.must,
            may_hide=self.may & ~self.must,
            cost=self.cost,
            down=self.down,
            up=self.up,
            attackers=(Attacker("a reader", nothing, nothing, nothing),),
            demands=demands,
        )


def _key(unknowns: IntArray, factors: IntArray) -> bytes:
    return unknowns.tobytes() + factors.astype(np.int64).tobytes()


def _way(problem: PatternProblem, cell: int, sign: int, end: int) -> Demand | None:
    """A demand that a cell reaches an end of its range; None if that is impossible."""
    need = sign * (end - int(problem.values[cell]))
    room = int((problem.up if sign > 0 else problem.down)[cell])
    is_open = bool(problem.must_hide[cell] or problem.may_hide[cell])
    return Demand(cell, sign, need, 0) if is_open and 0 < need <= room and end >= 0 else None


def _one_each(problem: PatternProblem, ways: Sequence[Sequence[Demand]], run: Run) -> tuple[Demand, ...]:
    """The cheaper way out of the window for each count, given those of earlier counts; in large tables the first way."""
    if is_large(problem.n_cells):
        return tuple(dict.fromkeys(own[0] for own in ways if own))
    outsider = Outsider(problem, run)
    hidden, found = problem.must_hide.copy(), []
    for own in ways:
        run.check()
        is_met = [outsider.reach(one, hidden.astype(np.float64)).witness is not None for one in own]
        if any(is_met):
            found.append(own[is_met.index(True)])
            continue
        best: tuple[float, Demand, Bools] | None = None
        for one in own:
            change = outsider.cheapest(one, hidden, problem.cost, problem.may_hide)
            if change is not None:
                more = hidden.copy()
                more[change.cells] = True
                price = problem.spent(more)
                best = (price, one, more) if best is None or price < best[0] else best
        if best is not None:
            found.append(best[1])
            hidden = best[2]
    return tuple(dict.fromkeys(found))
