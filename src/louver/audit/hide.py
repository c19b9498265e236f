"""Further cells to hide, so that no small cell of the tables can be derived (secondary suppression).

Small counts are hidden first. A count is protected when some table that agrees with everything a reader knows has it outside its window;
the shown cells in which that table differs from the truth must be hidden, too. All tables that hide small cells are one problem. For each
count that is still confined a linear program looks for a nearby table that differs in few shown cells, cells that are not needed are shown
again, and for small tables a constraint solver looks for the minimum. Every pattern is judged by the audit's own decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, hstack, vstack

from louver.audit.cells import AuditCells, Small, forms_for, window
from louver.audit.counts import HIDDEN, bounds_of_mark
from louver.audit.explain import Copy, Rules, fewest
from louver.audit.load import LoadedTables
from louver.audit.options import MAX_COUNT, AuditTableOptions
from louver.audit.pattern import HiddenRows, cheap_pattern
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.pieces import Margin, Piece
from louver.tables.problem import TablesProblem
from louver.tables.solve import decide
from louver.tables.system import IntArray, as_floats

__all__ = ["Ask", "Pattern", "hide"]

REWEIGHTED = 4
"""Number of rounds in which cells that moved little are made more expensive, so that fewer move."""

EXACT_SIZE = 6_000
"""Product of unknowns and protected counts up to which the minimum number of hidden cells is sought."""

ONE_EFFORT, ALL_EFFORT = 2.0, 6.0
"""Deterministic time of the constraint solver, for one count that the linear program did not free and for all."""

Bools = NDArray[np.bool_]

Ask = Callable[[LoadedTables, float], tuple[Small, bool]]
"""The small counts that the audit finds disclosed, or possibly so, within a time limit; whether the search was complete."""


class Reader(IntEnum):
    """The reader from whom a count is protected.

    The knowing reader can recognise the hidden cells that are small: those are from 1 to below the limit, and the others are not. The plain
    reader sees one mark for all hidden cells, and knows its meaning.
    """

    KNOWING = 0
    PLAIN = 1
    NOBODY = 2
    """No pattern that protects it is known."""
    NOBODY_EVER = 3
    """Proved: no pattern can protect it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pattern:
    """Cells of one table that remain hidden.

    Attributes
    ----------
    primary, hidden : tuple of bool arrays
        Small cells, and all hidden cells, by margin of the table.
    added : tuple of bool arrays
        Hidden cells that the table did not hide before.
    is_safe : bool
        Whether every small cell leaves its window in some table that agrees with all that a reader knows, and the audit
        finds no other small count disclosed that hiding could protect.
    is_possible : bool
        False if it is proved that no pattern protects all small cells.
    is_least : bool
        Whether it is proved that no fewer further cells are enough, in all tables together.
    by_mark : int
        Small cells that are protected only while readers cannot tell small cells from others with the same mark.
    piece : Piece
        The table with these cells hidden.
    """

    primary: tuple[Bools, ...]
    hidden: tuple[Bools, ...]
    added: tuple[Bools, ...]
    is_safe: bool
    is_possible: bool
    is_least: bool
    by_mark: int
    piece: Piece

    @property
    def n_primary(self) -> int:
        return sum(int(cells.sum()) for cells in self.primary)

    @property
    def n_added(self) -> int:
        return sum(int(cells.sum()) for cells in self.added)


def hide(
    loaded: LoadedTables,
    tables: Sequence[AuditTableOptions],
    within: float,
    ask: Ask,
    run: Run,
    deadline: float,
) -> dict[int, Pattern]:
    """A pattern for every table with `below`, by its number: together they protect all its counts from 1 to below `below`.

    No small cell may be known to within `within` per cent, or exactly if that is 0. `ask` returns further small counts.
    """
    work = _Work(loaded, tables, within, run, deadline)
    hidden, bound, n_improved = work.before, 0, -1
    kept = np.zeros(len(hidden), dtype=bool)
    answered: tuple[Bools, bool] | None = None
    while not work.is_late():
        proposed = work.proposed(hidden)
        if proposed is not None:
            hidden = kept = proposed
        hidden = work.pruned(work.grown(hidden), kept)
        if work.is_late():
            break
        more, is_whole = ask(work.published(hidden, work.knowing), work.left())
        if work.add(more, hidden):
            continue
        answered = hidden, is_whole
        if n_improved == len(work.reader) or work.n_unknowns * work.n_counts > EXACT_SIZE:
            break
        n_improved = len(work.reader)
        hidden, bound = work.improved(hidden)
        if hidden is answered[0]:
            break
    hidden, is_answered = answered or (hidden, False)
    return work.patterns(hidden, is_answered, bound)


class _Work:
    """All tables that hide small cells: their cells one after another, and the counts to protect.

    Each count is protected from the knowing reader if any pattern can do that, otherwise from the plain reader, otherwise not at all.
    """

    def __init__(
        self,
        loaded: LoadedTables,
        tables: Sequence[AuditTableOptions],
        within: float,
        run: Run,
        deadline: float,
    ) -> None:
        assert loaded.truth is not None
        self.loaded, self.run, self.deadline = loaded, run, deadline
        self.tables = {n: table for n, table in enumerate(tables) if table.below is not None}
        margins = [(n, margin) for n in self.tables for margin in loaded.pieces[n].margins]
        self.table_of = np.repeat([n for n, _ in margins], [len(margin.lower) for _, margin in margins])
        self.values = np.concatenate(
            [loaded.domain.sums(margin.cross, loaded.truth) for _, margin in margins]
        )
        self.shown_lower = np.concatenate([margin.lower for _, margin in margins])
        self.shown_upper = np.concatenate([margin.upper for _, margin in margins])
        self.printed = np.concatenate([_printed(margin) for _, margin in margins])
        self.below = np.array([table.below for table in self.tables.values()])[
            np.searchsorted(list(self.tables), self.table_of)
        ]
        self.primary = (self.values > 0) & (self.values < self.below)
        self.before = self.printed == HIDDEN
        self.may_hide = ~self.before & (self.values > 0) & self._is_in_mark_range()
        self.most = self.before | self.may_hide
        self.knowing = self._known_to_knowing()
        self.cost = 1 + self.values / max(1, int(loaded.truth.sum()))
        self.witnesses: tuple[IntArray, ...] = ()
        self.frame = self._framed()
        self.rows = np.flatnonzero(np.isin(self.frame.row_piece, list(self.tables)))
        chosen = np.split(self.primary, np.cumsum([len(margin.lower) for _, margin in margins])[:-1])
        assigns = tuple(loaded.domain.assign(margin.cross) for _, margin in margins)
        floor, ceiling = window(self.values[self.primary], within)
        cells = AuditCells(assigns=assigns, cells=tuple(np.flatnonzero(cells) for cells in chosen))
        self.counts = Small(cells=cells, floor=floor, ceiling=ceiling)
        self.reader = self._readers(np.arange(len(floor)))
        self.judged: dict[tuple[bytes, int], Bools] = {}

    # Counts to protect -----------------------------------------------------------------------------------

    @property
    def n_unknowns(self) -> int:
        return self.frame.system.n_columns

    @property
    def n_counts(self) -> int:
        return int(self.is_protected.sum())

    @property
    def is_protected(self) -> Bools:
        """Counts that some pattern protects."""
        return np.asarray(self.reader <= Reader.PLAIN)

    def add(self, more: Small, hidden: Bools) -> bool:
        """Protect further counts; returns whether a pattern leaves any unprotected that hiding could protect."""
        before, after = self.counts, len(self.counts.floor) + len(more.floor)
        cells = AuditCells(
            assigns=(*before.cells.assigns, *more.cells.assigns),
            cells=(*before.cells.cells, *more.cells.cells),
        )
        self.counts = Small(
            cells=cells,
            floor=np.concatenate([before.floor, more.floor]),
            ceiling=np.concatenate([before.ceiling, more.ceiling]),
        )
        new = np.arange(len(before.floor), after)
        self.reader = np.append(self.reader, self._readers(new))
        return bool(self.confined(hidden)[new].any())

    def _readers(self, some: IntArray) -> NDArray[np.int8]:
        """The readers from whom counts can be protected: those from whom the pattern that hides most protects them, since hiding more
        never discloses more."""
        readers = np.full(len(some), Reader.KNOWING, dtype=np.int8)
        rest = np.flatnonzero(self._verdicts(self.most, self.knowing, some) != 0)
        verdict = self._verdicts(self.most, self.plain(self.most), some[rest])
        readers[rest] = np.select(
            [verdict == 0, verdict == 1], [Reader.PLAIN, Reader.NOBODY_EVER], Reader.NOBODY
        )
        return readers

    # Readers ----------------------------------------------------------------------------------------------------

    def _is_in_mark_range(self) -> Bools:
        is_in = np.ones(len(self.values), dtype=bool)
        for number, table in self.tables.items():
            if table.mark_range is not None:
                own = self.table_of == number
                low, high = table.mark_range
                is_in[own] = ((self.values >= low) & (self.values <= high))[own]
        return is_in

    def _known_to_knowing(self) -> tuple[IntArray, IntArray]:
        """Bounds on hidden cells for a reader who can tell which of them are small."""
        lower, upper = (
            np.where(self.primary, 1, self.below),
            np.where(self.primary, self.below - 1, UNBOUNDED),
        )
        for number, table in self.tables.items():
            own = self.table_of == number
            if not self.values[self.before & own].all():
                lower[own & ~self.primary] = 0
            if table.mark_range is not None:
                lower[own] = np.maximum(lower[own], table.mark_range[0])
                upper[own] = np.minimum(upper[own], table.mark_range[1])
        return lower, upper

    def plain(self, hidden: Bools) -> tuple[IntArray, IntArray]:
        """Bounds of hidden cells for a reader who sees the same mark in all of them."""
        lower, upper = np.empty_like(self.values), np.empty_like(self.values)
        for number, table in self.tables.items():
            own = self.table_of == number
            lower[own], upper[own] = bounds_of_mark(table, self.values[hidden & own])
        return lower, upper

    def pieces(self, hidden: Bools, content: tuple[IntArray, IntArray]) -> list[Piece]:
        """All pieces: the tables with some cells hidden, and what a reader knows about those cells."""
        lower, upper = (
            np.where(hidden, content[0], self.shown_lower),
            np.where(hidden, content[1], self.shown_upper),
        )
        printed = np.where(hidden, HIDDEN, self.printed)
        pieces, start = list(self.loaded.pieces), 0
        for number in self.tables:
            margins = []
            for margin in pieces[number].margins:
                own = slice(start, start + len(margin.lower))
                margins.append(replace(margin, lower=lower[own], upper=upper[own], printed=printed[own]))
                start = own.stop
            pieces[number] = replace(pieces[number], margins=tuple(margins))
        return pieces

    def _problem(self, hidden: Bools, content: tuple[IntArray, IntArray]) -> TablesProblem:
        return self.published(hidden, content).problem()

    def published(self, hidden: Bools, content: tuple[IntArray, IntArray]) -> LoadedTables:
        """What is published when some cells are hidden, with the tables that the engine believes to agree with it."""
        pieces = tuple(self.pieces(hidden, content))
        return replace(self.loaded, pieces=pieces, proposed=self.witnesses)

    def _framed(self) -> TablesProblem:
        """A row for every cell of the tables, with what the knowing reader would know about it if it were hidden."""
        lower, upper = self.knowing
        return self._problem(self.most, (lower, np.minimum(upper, MAX_COUNT)))

    # Decisions ----------------------------------------------------------------------------------------------------

    def left(self) -> float:
        return max(0.0, self.deadline - time.monotonic())

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def _verdicts(
        self, hidden: Bools, content: tuple[IntArray, IntArray], some: IntArray
    ) -> NDArray[np.int8]:
        """Whether counts are confined to their windows: 1 proved, 0 refuted, -1 not known."""
        if not len(some):
            return np.zeros(0, dtype=np.int8)
        problem = self._problem(hidden, content)
        forms = forms_for(problem, self.counts.cells.pick(some))
        floor, ceiling = self.counts.floor[some], self.counts.ceiling[some]
        return decide(problem, forms, floor, ceiling, self.run, self.left())

    def confined(self, hidden: Bools) -> Bools:
        """Counts that could be protected but have not been shown to leave their window."""
        key = hidden.tobytes(), len(self.reader)
        if key not in self.judged:
            found = np.zeros(len(self.reader), dtype=bool)
            for reader, content in ((Reader.KNOWING, self.knowing), (Reader.PLAIN, self.plain(hidden))):
                some = np.flatnonzero(self.reader == reader)
                found[some] = self._verdicts(hidden, content, some) != 0
            self.judged[key] = found
        return self.judged[key]

    # Search --------------------------------------------------------------------------------------------------

    def grown(self, hidden: Bools) -> Bools:
        """Hide more cells until every count that can be protected is protected."""
        hidden = hidden.copy()
        while not self.is_late():
            confined = np.flatnonzero(self.confined(hidden))
            if not len(confined):
                break
            more = self._nearest(int(confined[0]), hidden)
            if more is None or not (more & ~hidden).any():
                more = self._nearest_whole(int(confined[0]), hidden)
            if more is None or not (more & ~hidden).any():
                more = self.may_hide
            hidden |= more
        return hidden

    def _bounds_for(self, count: int) -> tuple[IntArray, IntArray]:
        """Bounds on every cell, as if it were hidden, for the reader from whom a count is to be protected."""
        return self.knowing if self.reader[count] == Reader.KNOWING else self.plain(self.most)

    def _nearest(self, count: int, hidden: Bools) -> Bools | None:
        """Shown cells that differ in a nearby table with the count outside its window; the cheaper of two ways."""
        forms = forms_for(self.frame, self.counts.cells.pick(np.array([count])))
        floor, ceiling = float(self.counts.floor[count]), float(self.counts.ceiling[count])
        ways = [(forms.upper, ceiling + 1, np.inf)]
        if floor > 0:
            ways.append((forms.lower, -np.inf, floor - 1))
        found: list[tuple[float, Bools]] = []
        for form, least, most in ways:
            moved = self._moved(form, least, most, hidden, self._bounds_for(count))
            if moved is not None:
                found.append((float(self.cost[moved & ~hidden].sum()), moved))
        return min(found, key=lambda entry: entry[0])[1] if found else None

    def _moved(
        self, form: csr_array, least: float, most: float, hidden: Bools, content: tuple[IntArray, IntArray]
    ) -> Bools | None:
        """A sparse change, from a program that is reweighted by its previous solution."""
        system, n_own = self.frame.system, len(self.rows)
        matrix = system.matrix.astype(np.float64)
        row_lower, row_upper = as_floats(system.row_lower), as_floats(system.row_upper)
        is_fixed = ~self.most
        row_lower[self.rows] = as_floats(np.where(is_fixed, self.shown_lower, content[0]))
        row_upper[self.rows] = as_floats(np.where(is_fixed, self.shown_upper, content[1]))
        soft = np.flatnonzero(~hidden & self.may_hide)
        unit = csr_array(eye_array(n_own, format="csr")[soft])
        full = vstack(
            [
                hstack([matrix, csr_array((system.n_rows, 2 * n_own))]),
                hstack([matrix[self.rows[soft]], -unit, unit]),
                hstack([form.astype(np.float64), csr_array((1, 2 * n_own))]),
            ],
            format="csr",
        )
        n_columns = full.shape[1]
        program = Program(
            csr_array(full),
            np.concatenate([row_lower, as_floats(self.shown_lower[soft]), [least]]),
            np.concatenate([row_upper, as_floats(self.shown_upper[soft]), [most]]),
            np.zeros(n_columns),
            np.full(n_columns, float(self.values.sum() + 1)),
            run=self.run,
            is_primal=True,
        )
        weight = self.cost.copy()
        moved = None
        for _ in range(REWEIGHTED):
            answer = program.minimise(np.concatenate([np.zeros(system.n_columns), weight, weight]))
            if answer.status is not Status.OPTIMAL:
                return None
            change = answer.point[system.n_columns : -n_own] + answer.point[-n_own:]
            moved = change > 1e-6
            weight = self.cost / (change + 0.2)
        return moved

    def _nearest_whole(self, count: int, hidden: Bools) -> Bools | None:
        """A sparse change in whole numbers, with the fewest further cells, if the linear program's table is not enough."""
        found = fewest(self._rules(hidden), [self._copy(count)], ONE_EFFORT, self.left(), self.run)
        return found.hidden

    def proposed(self, hidden: Bools) -> Bools | None:
        """A pattern found by the engine for the counts that are protected from the knowing reader; None if none is needed, or if the engine
        cannot represent the problem.

        It extends the hidden cells or starts from nothing, and minimises the number of cells or the number and their people; the best of
        these patterns is chosen.
        """
        counts = np.flatnonzero(self.reader == Reader.KNOWING)
        if not self.confined(hidden)[counts].any():
            return None
        starts = [hidden]
        if (hidden & ~self.before).any():
            starts.append(self.before)
        forms = forms_for(self.frame, self.counts.cells.pick(counts))
        window = self.counts.floor[counts], self.counts.ceiling[counts]
        found = []
        for start in starts:
            for cost in (np.ones(len(hidden)), self.cost):
                pattern = cheap_pattern(
                    self.frame.system,
                    self._hidden_rows(start, cost),
                    forms,
                    *window,
                    self.run,
                    self.left() / 6,
                )
                if pattern is None:
                    return None
                found.append(pattern)
        best = min(found, key=lambda one: (int(one.hidden.sum()), float(self.cost[one.hidden].sum())))
        self.witnesses += best.witnesses
        return best.hidden

    def _hidden_rows(self, hidden: Bools, cost: NDArray[np.float64]) -> HiddenRows:
        """The rows of the tables, some of them hidden, as `Reader.KNOWING` sees them."""
        return HiddenRows(
            rows=self.rows,
            hidden=hidden,
            may_hide=self.may_hide & ~hidden,
            shown_lower=self.shown_lower,
            shown_upper=self.shown_upper,
            lower=self.knowing[0],
            upper=self.knowing[1],
            cost=cost,
        )

    def pruned(self, hidden: Bools, kept: Bools) -> Bools:
        """Show again cells that are not needed, the most expensive first: many cells at once, then fewer, for half of the remaining time.

        With the engine, only cells added to its proposal are tried, since it has already shown again what it could.
        """
        until = time.monotonic() + self.left() / 2
        hidden = hidden.copy()
        base = self.confined(hidden)
        second = np.flatnonzero(hidden & self.may_hide & ~kept)
        waiting = [second[np.argsort(-self.cost[second], kind="stable")]]
        while waiting and time.monotonic() < until:
            self.run.check()
            batch = waiting.pop()
            if not len(batch):
                continue
            hidden[batch] = False
            if (self.confined(hidden) & ~base).any():
                hidden[batch] = True
                if len(batch) > 1:
                    waiting += [batch[len(batch) // 2 :], batch[: len(batch) // 2]]
        return hidden

    def improved(self, hidden: Bools) -> tuple[Bools, int]:
        """The fewest further cells that a constraint solver finds, and the minimum number needed."""
        copies = [self._copy(int(n)) for n in np.flatnonzero(self.is_protected)]
        rules = replace(self._rules(self.before), hint=hidden)
        found = fewest(rules, copies, ALL_EFFORT, self.left() / 2, self.run)
        better = found.hidden
        if better is not None and better.sum() < hidden.sum() and not self.confined(better).any():
            return better, found.bound
        return hidden, found.bound

    def _rules(self, hidden: Bools) -> Rules:
        return Rules(
            system=self.frame.system,
            rows=self.rows,
            shown_lower=self.shown_lower,
            shown_upper=self.shown_upper,
            hidden=hidden,
            may_hide=self.may_hide,
            table_of=self.table_of,
            largest=int(self.values.sum()) + 1,
        )

    def _copy(self, count: int) -> Copy:
        forms = forms_for(self.frame, self.counts.cells.pick(np.array([count])))
        lower, upper = self._bounds_for(count)
        only_small = None if self.reader[count] == Reader.KNOWING else self.plain(self.before)[1]
        return Copy(
            lower=lower,
            upper=upper,
            upper_alone=only_small,
            least=forms.lower,
            most=forms.upper,
            floor=int(self.counts.floor[count]),
            ceiling=int(self.counts.ceiling[count]),
        )

    # Results ---------------------------------------------------------------------------------------------

    def patterns(self, hidden: Bools, is_answered: bool, bound: int) -> dict[int, Pattern]:
        """The pattern of each table; `is_answered` says whether the audit of it was completed."""
        pieces = self.pieces(hidden, self.plain(hidden))
        confined = self.confined(hidden)
        n_primary = int(self.primary.sum())
        owner, reader = self.table_of[self.primary], self.reader[:n_primary]
        is_open = (confined | ~self.is_protected)[:n_primary]
        is_doubtful = not is_answered or bool((confined | (self.reader == Reader.NOBODY))[n_primary:].any())
        is_least = int((hidden & ~self.before).sum()) <= bound
        found, start = {}, 0
        for number in self.tables:
            sizes = [len(margin.lower) for margin in pieces[number].margins]
            own = slice(start, start + sum(sizes))
            start, ends = own.stop, np.cumsum(sizes)[:-1]
            is_own = owner == number
            found[number] = Pattern(
                primary=tuple(np.split(self.primary[own], ends)),
                hidden=tuple(np.split(hidden[own], ends)),
                added=tuple(np.split((hidden & ~self.before)[own], ends)),
                is_safe=not (is_doubtful or is_open[is_own].any()),
                is_possible=not (reader[is_own] == Reader.NOBODY_EVER).any(),
                is_least=is_least,
                by_mark=int((reader[is_own] == Reader.PLAIN).sum()),
                piece=pieces[number],
            )
        return found


def _printed(margin: Margin) -> IntArray:
    assert margin.printed is not None
    return margin.printed
