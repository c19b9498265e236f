"""Further cells to hide, so that no small cell of a table can be worked out (secondary suppression).

Small counts are hidden first. A small cell is protected when some table that agrees with everything else has it outside its
window. The cells in which such a table differs from the truth must be hidden, too: for each cell that is still confined a
linear program looks for a near table that differs in few published cells, what is not needed is shown again, and for small
tables a constraint solver looks for the fewest of all. Every pattern is judged by the engine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from louver.audit.explain import Cells, forms_for
from louver.audit.joint import decide
from louver.audit.load import Loaded
from louver.audit.pieces import Margin, Piece
from louver.audit.problem import Problem, build
from louver.audit.system import as_floats
from louver.audit.window import window
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.status import Status
from louver.optim.warm import WarmProgram
from louver.run import Run

__all__ = ["Pattern", "hide"]

REWEIGHTED = 4
"""Rounds in which cells that moved little are made dearer, so that fewer move."""

EXACT_SIZE = 6_000
"""Joint cells times small cells up to which the fewest hidden cells are proved."""

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """Cells of one table that stay hidden.

    Attributes
    ----------
    primary, hidden : tuple of bool arrays
        Small cells, and all hidden ones, by margin of the table.
    is_safe : bool
        Whether the engine found every small cell outside its window in some table that agrees with all that is shown.
    fewest : int or None
        Proved lower bound on the number of further cells; None where it was not looked for.
    piece : Piece
        The table with these cells hidden.
    """

    primary: tuple[Bools, ...]
    hidden: tuple[Bools, ...]
    is_safe: bool
    fewest: int | None
    piece: Piece

    @property
    def n_primary(self) -> int:
        return sum(int(cells.sum()) for cells in self.primary)

    @property
    def n_secondary(self) -> int:
        return sum(int(cells.sum()) for cells in self.hidden) - self.n_primary

    @property
    def is_least(self) -> bool:
        return self.fewest is not None and self.n_secondary <= self.fewest


def hide(
    loaded: Loaded,
    number: int,
    below: int,
    within: float,
    run: Run,
    deadline: float,
) -> Pattern:
    """A pattern for table `number` that protects its counts from 1 to below `below`, beside all other pieces.

    No small cell may be known to within `within` percent; not exactly, where that is 0.
    """
    work = _Work(loaded, number, below, within, run, deadline)
    hidden = work.primary.copy()
    hidden = work.grown(hidden)
    hidden = work.pruned(hidden)
    fewest = None
    if work.n_groups * int(work.primary.sum()) <= EXACT_SIZE and not work.is_late():
        hidden, fewest = work.proved(hidden)
    return Pattern(
        primary=work.by_margin(work.primary),
        hidden=work.by_margin(hidden),
        is_safe=not work.confined(hidden).any(),
        fewest=fewest,
        piece=work.piece(hidden),
    )


class _Work:
    """One table among others: its rows in the joint system, and what is asked of its small cells."""

    def __init__(
        self,
        loaded: Loaded,
        number: int,
        below: int,
        within: float,
        run: Run,
        deadline: float,
    ) -> None:
        assert loaded.truth is not None
        self.loaded, self.number, self.run, self.deadline = loaded, number, run, deadline
        margins = loaded.pieces[number].margins
        self.assigns = [loaded.domain.assign(margin.cross) for margin in margins]
        self.counts = [loaded.domain.sums(margin.cross, loaded.truth) for margin in margins]
        self.values = np.concatenate(self.counts)
        self.primary = (self.values > 0) & (self.values < below)
        self.floor, self.ceiling = window(self.values[self.primary], within)
        self.shown = self._problem(np.zeros(len(self.values), dtype=bool))
        self.rows = np.flatnonzero(self.shown.row_piece == number)
        self.cost = 1 + self.values / max(1, int(loaded.truth.sum()))

    @property
    def n_groups(self) -> int:
        return self.shown.n_groups

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def by_margin(self, cells: Bools) -> tuple[Bools, ...]:
        ends = np.cumsum([len(counts) for counts in self.counts])[:-1]
        return tuple(np.split(cells, ends))

    def _problem(self, hidden: Bools) -> Problem:
        """All pieces, this one with some cells hidden."""
        pieces = list(self.loaded.pieces)
        pieces[self.number] = self.piece(hidden)
        return build(self.loaded.domain, pieces, self.loaded.truth, self.loaded.is_possible)

    def piece(self, hidden: Bools) -> Piece:
        """The table with some cells hidden."""
        before = self.loaded.pieces[self.number]
        margins = [
            Margin(cross=margin.cross, lower=np.where(h, 0, counts), upper=np.where(h, UNBOUNDED, counts))
            for margin, counts, h in zip(before.margins, self.counts, self.by_margin(hidden), strict=True)
        ]
        return Piece(name=before.name, margins=tuple(margins))

    def confined(self, hidden: Bools) -> Bools:
        """Which small cells are not shown to leave their window."""
        problem = self._problem(hidden)
        chosen = tuple(np.flatnonzero(cells) for cells in self.by_margin(self.primary))
        forms = forms_for(problem, Cells(assigns=tuple(self.assigns), cells=chosen))
        is_confined: Bools = decide(problem, forms, self.floor, self.ceiling, self.run) != 0
        return is_confined

    def grown(self, hidden: Bools) -> Bools:
        """Hide more cells until every small cell is protected."""
        hidden = hidden.copy()
        given_up = np.zeros(len(self.floor), dtype=bool)
        while not self.is_late():
            confined = np.flatnonzero(self.confined(hidden) & ~given_up)
            if not len(confined):
                break
            more = self._nearest(int(confined[0]), hidden)
            if more is None or not (more & ~hidden).any():
                given_up[confined[0]] = True
            else:
                hidden |= more
        return hidden

    def _nearest(self, small: int, hidden: Bools) -> Bools | None:
        """Shown cells in which a near table with the small cell outside its window differs; the cheaper of two ways."""
        cell = int(np.flatnonzero(self.primary)[small])
        found: list[tuple[float, Bools]] = []
        for least, most in ((float(self.ceiling[small]) + 1, np.inf), (0.0, float(self.floor[small]) - 1)):
            moved = self._moved(cell, least, most, hidden) if most >= least else None
            if moved is not None:
                found.append((float(self.cost[moved & ~hidden].sum()), moved))
        return min(found, key=lambda entry: entry[0])[1] if found else None

    def _moved(self, cell: int, least: float, most: float, hidden: Bools) -> Bools | None:
        """Sparse change by a program whose weights follow the last answer."""
        system = self.shown.system
        n_rows, n_own = system.n_rows, len(self.rows)
        signs = csr_array((np.ones(n_own), (self.rows, np.arange(n_own))), shape=(n_rows, n_own))
        matrix = hstack([system.matrix.astype(np.float64), -signs, signs], format="csr")
        row_lower, row_upper = as_floats(system.row_lower), as_floats(system.row_upper)
        ask = csr_array(system.matrix[[self.rows[cell]]].astype(np.float64))
        full = vstack([matrix, hstack([ask, csr_array((1, 2 * n_own))])], format="csr")
        n_columns = full.shape[1]
        program = WarmProgram(
            csr_array(full),
            np.append(row_lower, least),
            np.append(row_upper, most),
            np.zeros(n_columns),
            np.full(n_columns, float(self.values.sum() + 1)),
            self.run,
        )
        price = np.where(hidden, 1e-6, self.cost)
        weight = price.copy()
        moved = None
        for _ in range(REWEIGHTED):
            answer = program.minimise(np.concatenate([np.zeros(system.n_columns), weight, weight]))
            if answer.status is not Status.OPTIMAL:
                return None
            change = answer.point[system.n_columns : -n_own] + answer.point[-n_own:]
            moved = change > 1e-6
            weight = price / (change + 0.2)
        return moved

    def pruned(self, hidden: Bools) -> Bools:
        """Show again what is not needed, dearest first."""
        hidden = hidden.copy()
        base = self.confined(hidden)
        second = np.flatnonzero(hidden & ~self.primary)
        for cell in second[np.argsort(-self.cost[second], kind="stable")]:
            if self.is_late():
                break
            hidden[cell] = False
            if (self.confined(hidden) & ~base).any():
                hidden[cell] = True
        return hidden

    def proved(self, hidden: Bools) -> tuple[Bools, int | None]:
        """Fewest further cells, by a constraint solver that holds one table for every small cell."""
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        is_hidden = [model.new_bool_var("") for _ in self.values]
        for cell, is_small in enumerate(self.primary):
            model.add_hint(is_hidden[cell], bool(hidden[cell]))
            if is_small:
                model.add(is_hidden[cell] == 1)
            elif self.values[cell] == 0:
                model.add(is_hidden[cell] == 0)
        for small, place in enumerate(np.flatnonzero(self.primary)):
            self._add_table(model, is_hidden, int(place), int(self.floor[small]), int(self.ceiling[small]))
        model.minimize(sum(is_hidden))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = max(0.1, self.deadline - time.monotonic())
        with self.run.interrupting(solver.stop_search):
            status = solver.solve(model)
        n_small = int(self.primary.sum())
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return hidden, None
        fewest = round(solver.best_objective_bound) - n_small
        better = np.array([bool(solver.value(cell)) for cell in is_hidden])
        if better.sum() < hidden.sum() and not self.confined(better).any():
            return better, fewest
        return hidden, fewest

    def _add_table(self, model, is_hidden, cell: int, floor: int, ceiling: int) -> None:  # type: ignore[no-untyped-def]
        """Whole numbers that agree with all that is shown and have one cell outside its window."""
        system, total = self.shown.system, int(self.values.sum())
        unknowns = [model.new_int_var(0, total, "") for _ in range(system.n_columns)]
        matrix = system.matrix
        own = {int(row): place for place, row in enumerate(self.rows)}
        for row in range(system.n_rows):
            span = slice(matrix.indptr[row], matrix.indptr[row + 1])
            terms = sum(
                int(a) * unknowns[j] for j, a in zip(matrix.indices[span], matrix.data[span], strict=True)
            )
            low, high = int(system.row_lower[row]), int(system.row_upper[row])
            if row in own:
                if span.stop > span.start:
                    model.add(terms == low).only_enforce_if(~is_hidden[own[row]])
                if own[row] == cell:
                    is_above = model.new_bool_var("")
                    model.add(terms >= ceiling + 1).only_enforce_if(is_above)
                    model.add(terms <= floor - 1).only_enforce_if(~is_above)
            elif span.stop > span.start:
                model.add(terms >= low)
                if high < UNBOUNDED:
                    model.add(terms <= high)
