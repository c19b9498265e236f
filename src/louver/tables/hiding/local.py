"""Large tables: a pattern grown and repaired demand by demand, each within a small part of the tables.

1. **Grow.** Demands in order of size. Where no known change meets one, a linear program looks for a cheap change in which several primary
   cells move, whose shown cells are hidden; it meets further demands by the way. Where there is none in whole units, a program over a part
   of the tables around one cell looks for a change of that cell, and the part grows until it holds one. Then each demand looks for
   a smaller change through hidden cells, and cells that no change uses are shown. Sub-tables of all levels of the hierarchies, and linked
   tables, are protected together and need no repair.
2. **Show again.** Every further cell is shown, dearest first, if the demands whose changes use it have other changes through hidden cells.
3. **Exchange.** The same with changes through any cells, if these cost no more than the cells that are no longer needed.
4. **Bound.** A linear program over the shares of hidden cells: in each sum that contains a primary cell, other cells must be able to
   balance it; and no sum hides a further cell alone, since the others would determine it. It looks at one sum at a time.

Every limit counts nodes and rounds; only `seconds` uses the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Bools, Floats, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.certify import exact_witness
from louver.tables.hiding.outsider import Outsider, Witness, cheapest_joint
from louver.tables.hiding.problem import LARGEST, Attacker, Demand, PatternProblem
from louver.tables.hiding.state import SearchState

__all__ = ["LocalSearch", "Sums", "lone_cells"]

PARTS = (200, 1_000, 5_000, 25_000)
"""Sizes, in cells, of the parts of tables in which a linear program seeks a change."""

WIDE, TOGETHER = 100_000, 8
"""Cells of the part in which one change for several demands is sought, and the number of these; others that it meets come free."""

SMALL = 200
"""Cells of a change that needs no smaller one."""

NEAR = (150, 600)
"""The same sizes if only hidden cells may change."""

MOST_USERS = 400
"""Number of demands beyond which the program does not try to show a cell again."""

VIOLATED = 1e-4
ROUNDS, STALLED = 40, 1e-2
"""Maximum number of rounds that improve the bound, and the share by which it must grow in one round to continue."""


class Sums:
    """The sums by rows and by cells, and the workspace of a search."""

    def __init__(self, problem: PatternProblem) -> None:
        rows = problem.sums.astype(np.int64)
        rows.sort_indices()
        columns = rows.tocsc()
        columns.sort_indices()
        self.rows = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
        self.columns = columns.indptr.astype(np.int64), columns.indices.astype(np.int64), columns.data

    def of_cell(self, cell: int) -> Ints:
        """Rows that contain a cell."""
        start, row, _ = self.columns
        return row[start[cell] : start[cell + 1]]

    def cells_of(self, row: int) -> Ints:
        start, cell, _ = self.rows
        return cell[start[row] : start[row + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class _Change:
    """A witness in whole units."""

    number: int
    cells: Ints
    change: Ints
    against: frozenset[int]
    """Attackers who rule it out."""

    def at(self, cell: int) -> int:
        place = int(self.cells.searchsorted(cell))
        return int(self.change[place]) if place < len(self.cells) and self.cells[place] == cell else 0


class LocalSearch:
    """Patterns of a large problem."""

    def __init__(
        self,
        problem: PatternProblem,
        run: Run,
        deadline: float,
        hidden: Bools | None = None,
        state: SearchState | None = None,
    ) -> None:
        self.problem, self.run, self.deadline, self.state = problem, run, deadline, state
        self.sums = Sums(problem)
        self.hidden = (problem.must_hide if hidden is None else hidden).copy()
        self._twins_of, self._price = problem.twins_of(), problem.price
        self.demands = list(problem.demands)
        self._listed: dict[tuple[int, int, int], int] = {}
        """Demands of attackers outside the problem, in the order in which they are found."""
        self._down, self._up = np.minimum(problem.down, LARGEST), np.minimum(problem.up, LARGEST)
        self._known: dict[int, list[tuple[int, int, int]]] = {}
        for number, attacker in enumerate(problem.attackers):
            for cell, down, up in zip(
                attacker.cells.tolist(), attacker.down.tolist(), attacker.up.tolist(), strict=True
            ):
                self._known.setdefault(cell, []).append((number, down, up))
        self.made = 0
        self.chosen: dict[int, _Change] = {}
        self.fractional: dict[int, Witness] = {}
        """Changes for demands for which none was found in whole units."""
        self._serving: dict[int, list[_Change]] = {}
        self._users: dict[int, set[int]] = {}  # cell -> demands whose change uses it

    # Changes ----------------------------------------------------------------------------------------------------

    def grow(self) -> None:
        """Hide more cells until every demand that can be met is met: several demands by one change, then each by a smaller one."""
        order = sorted(range(len(self.demands)), key=lambda n: (-self.demands[n].need, n))
        for place, n in enumerate(order):
            self._tell("protecting cells", place, len(order))
            if n not in self.chosen:
                self._meet_several([m for m in order[place:] if m not in self.chosen])
            if n not in self.chosen:
                self._meet(n)
        self._separate(order)

    def _tell(self, step: str, place: int, most: int) -> None:
        self.run.check()
        if place % 256 == 0:
            self.run.report(step, place, most)
            if self.state is not None:
                self.state.write_sometimes(self.problem, self.hidden, self._changes)

    def _meet_several(self, open_demands: Sequence[int]) -> None:
        """Meet the first of some demands, and others, by one change in which several cells move that share no sum."""
        known = self._serving_one(self.demands[open_demands[0]])
        if known is not None:
            self._choose(open_demands[0], known)
            return
        usable = self.problem.must_hide | self.problem.may_hide
        cells = np.flatnonzero(usable)
        if len(cells) > WIDE:
            cells = self._around(self.demands[open_demands[0]].cell, usable, WIDE)
        together = self._apart(open_demands, cells)
        while len(together) > 1:
            change = self._joint(together, cells)
            if change is not None:
                self._hide(change.cells)
                for n in open_demands:
                    own = (
                        self._serving_one(self.demands[n], [change])
                        if change.at(self.demands[n].cell)
                        else None
                    )
                    if own is not None:
                        self._choose(n, own)
                return
            together = together[: len(together) // 4]

    def _apart(self, open_demands: Sequence[int], cells: Ints) -> list[int]:
        """The first demands on different cells of a part that are in no sum together."""
        is_inside = np.zeros(self.problem.n_cells, dtype=bool)
        is_inside[cells] = True
        found: list[int] = []
        seen: set[int] = set()
        for n in open_demands:
            demand = self.demands[n]
            rows = self.sums.of_cell(demand.cell).tolist()
            if is_inside[demand.cell] and not demand.attacker and seen.isdisjoint(rows):
                found.append(n)
                seen.update(rows)
                if len(found) == TOGETHER:
                    break
        return found

    def _joint(self, together: Sequence[int], cells: Ints) -> _Change | None:
        """A cheap change in whole units that meets several demands, and whose mirror image is possible, too."""
        demands = [self.demands[n] for n in together]
        part = restricted(self.problem, cells, demands[0])
        place = np.searchsorted(cells, [demand.cell for demand in demands])
        need = np.array([demand.need for demand in demands])
        found = cheapest_joint(part, place, need, self.hidden[cells], self._price[cells], self.run)
        if found is None:
            return None
        change = np.rint(found).astype(np.int64)
        if (part.sums.astype(np.int64) @ change).any() or not self._is_possible(cells, change):
            return None
        moved = np.flatnonzero(change)
        return self._new(cells[moved], change[moved])

    def _separate(self, order: Sequence[int]) -> None:
        """Replace changes that meet many demands by smaller ones through hidden cells, and show what no change uses any more."""
        for place, n in enumerate(order):
            self._tell("separating changes", place, len(order))
            change = self.chosen.get(n)
            if change is not None and len(change.cells) > SMALL:
                known = self._serving.get(self.demands[n].cell, [])[::-1]
                small = [one for one in known if len(one.cells) <= SMALL]
                own = self._serving_one(self.demands[n], small) or self._rerouted(self.demands[n])
                if own is not None and len(own.cells) < len(change.cells):
                    self._choose(n, own)
        for n in order:
            if n in self.chosen:
                for other in self._others(n, self.chosen[n]):
                    if other not in self.chosen:
                        self._meet(other)
        self._show_unused()

    def keep(self) -> None:
        """Write the pattern and its changes to the state, if there is one."""
        if self.state is not None:
            self.state.write(self.problem, self.hidden, self._changes())

    def _changes(self) -> dict[int, tuple[Ints, Ints]]:
        """The changes of the demands of the problem."""
        n_own = len(self.problem.demands)
        return {n: (one.cells, one.change) for n, one in self.chosen.items() if n < n_own}

    def restore(self, n: int, cells: Ints, change: Ints) -> None:
        """Give a demand a change that is known to meet it."""
        found = self._new(cells, change)
        self._choose(n, found)
        self._hide(cells)
        for other in self._others(n, found):
            if other not in self.chosen:
                self._meet(other)

    def _show_unused(self) -> None:
        """Show the further cells that no change uses."""
        for cell in np.flatnonzero(self.hidden & self.problem.may_hide & ~self.problem.must_hide).tolist():
            own = self._twins(cell)
            if self.hidden[cell] and not self._users_of(own) and not self._is_needed(own):
                self.hidden[own] = self.problem.must_hide[own]

    def _meet(self, n: int) -> None:
        """Give a demand a change, and hide its cells; then add the attackers who do not consider the change possible."""
        change = self._serving_one(self.demands[n]) or self._routed(n)
        if change is None:
            if n in self.fractional:
                self._hide(self.fractional[n].cells)
            return
        self._choose(n, change)
        self._hide(change.cells)
        for other in self._others(n, change):
            if other not in self.chosen:
                self._meet(other)

    def _others(self, n: int, change: _Change) -> list[int]:
        """Demands of attackers who do not consider a change for the outsider's demand possible, numbered as they are found."""
        demand = self.demands[n]
        if self.problem.demand_of is None or demand.attacker:
            return []
        found = []
        for attacker in sorted(change.against):
            key = demand.cell, demand.sign, attacker
            if key not in self._listed:
                demanded = self.problem.demand_of(attacker, demand)
                if demanded is None:
                    continue
                self._listed[key] = len(self.demands)
                self.demands.append(demanded)
            found.append(self._listed[key])
        return found

    def _serving_one(self, demand: Demand, among: Iterable[_Change] | None = None) -> _Change | None:
        """A known change, or its mirror image, that meets a demand with the cells that are currently hidden."""
        for change in self._serving.get(demand.cell, [])[::-1][:6] if among is None else among:
            if demand.attacker in change.against:
                continue
            moved = demand.sign * change.at(demand.cell)
            if abs(moved) < demand.need or not self.hidden[change.cells].all():
                continue
            if moved > 0:
                return change
            if self._is_possible(change.cells, -change.change):
                mirrored = self._new(change.cells, -change.change)
                if demand.attacker not in mirrored.against:
                    return mirrored
        return None

    def _is_possible(self, cells: Ints, change: Ints) -> bool:
        return bool((change <= self._up[cells]).all() and (-change <= self._down[cells]).all())

    def _new(self, cells: Ints, change: Ints) -> _Change:
        against = set()
        for cell, by in zip(cells.tolist(), change.tolist(), strict=True):
            for number, down, up in self._known.get(cell, ()):
                if by > up or -by > down:
                    against.add(number)
        self.made += 1
        return _Change(self.made, cells, change, frozenset(against))

    def _hide(self, cells: Ints) -> None:
        self.hidden[cells] = True
        if self._twins_of:
            for cell in cells.tolist():
                self.hidden[self._twins(cell)] = True

    def _twins(self, cell: int) -> Ints:
        """The cells that are hidden and shown with a cell, itself included."""
        return self._twins_of.get(cell, np.array([cell]))

    def _users_of(self, cells: Ints) -> list[int]:
        """Demands whose change uses one of some cells."""
        return sorted(set[int]().union(*(self._users.get(cell, set()) for cell in cells.tolist())))

    def _is_needed(self, cells: Ints) -> bool:
        """Whether some cells are part of a change that is not whole."""
        return any(np.isin(cells, one.cells).any() for one in self.fractional.values())

    def _choose(self, n: int, change: _Change) -> None:
        before = self.chosen.get(n)
        if before is not None:
            for cell in before.cells.tolist():
                self._users[cell].discard(n)
        self.chosen[n] = change
        for cell in change.cells.tolist():
            self._users.setdefault(cell, set()).add(n)
            if self.problem.must_hide[cell]:
                listed = self._serving.setdefault(cell, [])
                if not listed or listed[-1] is not change:
                    listed.append(change)
                    del listed[:-12]

    def _routed(self, n: int, closed: Ints | None = None) -> _Change | None:
        """A cheap change by linear programs over growing parts of the tables, through shown cells, except closed ones, if necessary."""
        demand = self.demands[n]
        usable = self.problem.must_hide | self.problem.may_hide
        if closed is not None:
            usable[closed] = False
        for cells in self._parts(demand.cell, usable, PARTS):
            part = restricted(self.problem, cells, demand)
            hidden = self.hidden[cells]
            price = self._price[cells]
            witness = Outsider(part, self.run).cheapest(part.demands[0], hidden, price, part.may_hide)
            change = self._repeated_change(part, cells, witness)
            if change is not None:
                return change
            if witness is not None and closed is None:
                self.fractional[n] = Witness(cells[witness.cells], witness.change)
        return None

    def _rerouted(self, demand: Demand) -> _Change | None:
        """A change through hidden cells only."""
        for cells in self._parts(demand.cell, self.hidden, NEAR):
            part = restricted(self.problem, cells, demand)
            reach = Outsider(part, self.run).reach(part.demands[0], np.ones(len(cells)))
            change = self._repeated_change(part, cells, reach.witness)
            if change is not None:
                return change
        return None

    def _repeated_change(self, part: PatternProblem, cells: Ints, witness: Witness | None) -> _Change | None:
        """A witness over a part of the tables in whole units."""
        if witness is None:
            return None
        hidden = np.zeros(len(cells), dtype=bool)
        hidden[witness.cells] = True
        change = exact_witness(part, part.demands[0], hidden, witness, self.run)
        if change is None:
            return None
        moved = np.flatnonzero(change)
        return self._new(cells[moved], change[moved])

    def _parts(self, cell: int, usable: Bools, sizes: Sequence[int]) -> Iterable[Ints]:
        """Increasingly large parts of the tables around a cell."""
        size = -1
        for most in sizes:
            cells = self._around(cell, usable, most)
            if len(cells) == size:
                return
            size = len(cells)
            yield cells

    def _around(self, cell: int, usable: Bools, most: int) -> Ints:
        """Cells near a cell by the sums that they share, hidden ones first."""
        found, waiting, seen = {cell}, [cell], set()
        for here in waiting:
            for row in self.sums.of_cell(here).tolist():
                if row in seen:
                    continue
                seen.add(row)
                inside = self.sums.cells_of(row)
                inside = inside[usable[inside]]
                for other in inside[np.argsort(~self.hidden[inside], kind="stable")].tolist():
                    if other not in found:
                        found.add(other)
                        waiting.append(other)
            if len(found) >= most:
                break
        return np.array(sorted(found), dtype=np.int64)

    # Improvement ------------------------------------------------------------------------------------------------

    def show_again(self) -> int:
        """Try to show every further cell, dearest first; return how many were shown."""
        further = np.flatnonzero(self.hidden & self.problem.may_hide & ~self.problem.must_hide)
        used = np.array([len(self._users.get(cell, ())) for cell in further.tolist()], dtype=np.int64)
        order = further[np.lexsort((further, used, -self._price[further]))]
        shown = 0
        for place, cell in enumerate(order.tolist()):
            self.run.check()
            if self.is_late():
                break
            if place % 64 == 0:
                self.run.report("showing cells again", place, len(order), self._lost())
            shown += bool(self.hidden[cell]) and self.without(cell)
        return shown

    def without(self, cell: int) -> bool:
        """Show a cell if all demands whose changes use it can be met by other changes."""
        cells = self._twins(cell)
        users = self._users_of(cells)
        if len(users) > MOST_USERS or self._is_needed(cells):
            return False
        self.hidden[cells] = False
        found: dict[int, _Change] = {}
        fresh: list[_Change] = []
        for n in users:  # the list grows by attackers who can rule out a new change
            demand = self.demands[n]
            change = self._serving_one(demand, fresh[::-1][:8]) or self._serving_one(demand)
            if change is None:
                change = self._rerouted(demand)
                if change is None:
                    self.hidden[cells] = True
                    return False
                fresh.append(change)
            found[n] = change
            users += [m for m in self._others(n, change) if m not in self.chosen and m not in users]
        for n, change in found.items():
            self._choose(n, change)
        return True

    def exchange(self) -> bool:
        """Try to do without each further cell, using other cells that cost no more; return whether the pattern became cheaper."""
        before = self.problem.spent(self.hidden)
        for place, cell in enumerate(np.flatnonzero(self.hidden & ~self.problem.must_hide).tolist()):
            self.run.check()
            if self.is_late():
                break
            if place % 16 == 0:
                self.run.report("exchanging cells", place, int(self.hidden.sum()), self._lost())
            if self.hidden[cell]:
                self._exchanged(cell)
        return self.problem.spent(self.hidden) < before

    def _exchanged(self, cell: int) -> None:
        """Give the demands whose changes use a cell other changes, and keep these unless they hide more."""
        cells = self._twins(cell)
        users = self._users_of(cells)
        if len(users) > MOST_USERS or self._is_needed(cells):
            return
        chosen = {n: self.chosen[n] for n in users}
        touched = set(cells.tolist()).union(*(change.cells.tolist() for change in chosen.values()))
        hidden = self.hidden.copy()
        self.hidden[cells] = False
        for n in users:  # the list grows by attackers who can rule out a new change
            change = (
                self._serving_one(self.demands[n])
                or self._rerouted(self.demands[n])
                or self._routed(n, cells)
            )
            if change is None:
                break
            self._choose(n, change)
            self._hide(change.cells)
            users += [m for m in self._others(n, change) if m not in self.chosen and m not in users]
        else:
            for own in {int(twins[0]): twins for twins in map(self._twins, touched)}.values():
                if not self.problem.must_hide[own].any() and not self._users_of(own):
                    self.hidden[own] = False
            if self.problem.spent(self.hidden) <= self.problem.spent(hidden):
                return
        self.hidden = hidden
        for n in users:
            if n in chosen:
                self._choose(n, chosen[n])
            elif n in self.chosen:
                for used in self.chosen.pop(n).cells.tolist():
                    self._users[used].discard(n)

    def _lost(self) -> float:
        """Cost of the pattern as a share of that of all cells that may be hidden."""
        free = self.problem.may_hide & ~self.problem.must_hide
        return self.problem.spent(self.hidden) / (float(self.problem.cost[free].sum()) or 1.0)

    def is_late(self) -> bool:
        return self.run.is_hurried or time.monotonic() > self.deadline

    def answers(self) -> tuple[tuple[Demand, ...], tuple[Witness | None, ...]]:
        """All demands that must be met, each with the change that meets it."""
        needed = list(range(len(self.problem.demands)))
        for n in range(len(self.problem.demands)):
            if n in self.chosen:
                needed += self._others(n, self.chosen[n])
        made: dict[int, Witness] = {}
        found: list[Witness | None] = []
        for n in needed:
            change = self.chosen.get(n)
            if change is None:
                found.append(self.fractional.get(n))
                continue
            if change.number not in made:
                made[change.number] = Witness(change.cells, change.change.astype(np.float64))
            found.append(made[change.number])
        return tuple(self.demands[n] for n in needed), tuple(found)


def restricted(problem: PatternProblem, cells: Ints, demand: Demand) -> PatternProblem:
    """The problem of one demand over some cells, with all others fixed."""
    sums = problem.sums[:, cells]
    sums = csr_array(sums[np.diff(sums.indptr) > 0])
    place = np.searchsorted(cells, demand.cell)
    attacker = problem.attackers[demand.attacker]
    own = np.isin(attacker.cells, cells)
    nothing = np.zeros(0, dtype=np.int64)
    known = Attacker(
        attacker.name, np.searchsorted(cells, attacker.cells[own]), attacker.down[own], attacker.up[own]
    )
    return PatternProblem(
        values=problem.values[cells],
        sums=sums,
        must_hide=problem.must_hide[cells],
        may_hide=problem.may_hide[cells],
        cost=problem.cost[cells],
        down=problem.down[cells],
        up=problem.up[cells],
        attackers=(Attacker("an outsider", nothing, nothing, nothing), known),
        demands=(Demand(int(place), demand.sign, demand.need, 1),),
    )


# Bounds -----------------------------------------------------------------------------------------------------------


def balancing_rows(
    problem: PatternProblem, sums: Sums, demands: Iterable[Demand]
) -> tuple[csr_array, Floats]:
    """`rows @ y >= 1`: in each sum with a primary cell, other cells must be able to move as far as a demand needs.

    Every demand must be met by some pattern; only those of the outsider are considered.
    """
    start: list[int] = [0]
    cells: list[Ints] = []
    shares: list[Floats] = []
    lower: list[float] = []
    _, _, coef = sums.columns
    for demand in demands:
        if demand.attacker:
            continue
        at = int(sums.columns[0][demand.cell])
        for place, row in enumerate(sums.of_cell(demand.cell).tolist()):
            inside = sums.cells_of(row)
            signs = sums.rows[2][sums.rows[0][row] : sums.rows[0][row + 1]]
            towards = -demand.sign * coef[at + place] * signs  # the direction that balances the cell
            room = np.where(towards > 0, problem.up[inside], problem.down[inside])
            share = np.minimum(1.0, room / demand.need)
            is_other = inside != demand.cell
            given = is_other & problem.must_hide[inside]
            rest = 1.0 - math.fsum(share[given].tolist())
            own = is_other & problem.may_hide[inside] & (share > 0)
            if rest <= 0 or not own.any():
                continue
            cells.append(inside[own])
            shares.append(np.minimum(share[own] / rest, 1.0))
            start.append(start[-1] + int(own.sum()))
            lower.append(1.0)
    columns = np.concatenate(cells) if cells else np.zeros(0, dtype=np.int64)
    data = np.concatenate(shares) if shares else np.zeros(0)
    rows = csr_array((data, columns, np.array(start)), shape=(len(lower), problem.n_cells))
    return rows, np.array(lower)


def lone_cells(
    problem: PatternProblem, sums: Sums, shares: Floats, seen: set[tuple[int, int]]
) -> tuple[csr_array, Floats]:
    """`rows @ y >= 0` for sums in which a further cell is hidden to a larger share than all others together.

    A further cell that is hidden alone in a sum follows from it. It cannot change in any witness, so it might as well be shown: some
    optimal pattern has no such cell.
    """
    start, inside, _ = sums.rows
    row_of = np.repeat(np.arange(len(start) - 1), np.diff(start))
    own = shares[inside]
    total = np.bincount(row_of, weights=own, minlength=len(start) - 1)
    is_lone = (2 * own > total[row_of] + VIOLATED) & ~problem.must_hide[inside]
    is_lone &= ~np.isin(inside, list(problem.twins_of()))  # other cells may require them to be hidden
    rows: list[Ints] = []
    data: list[Floats] = []
    for at in np.flatnonzero(is_lone).tolist():
        row, cell = int(row_of[at]), int(inside[at])
        if (row, cell) in seen:
            continue
        seen.add((row, cell))
        cells = inside[start[row] : start[row + 1]]
        rows.append(cells)
        data.append(np.where(cells == cell, -1.0, 1.0))
    ends = np.cumsum([0, *(len(one) for one in rows)])
    columns = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    values = np.concatenate(data) if data else np.zeros(0)
    return csr_array((values, columns, ends), shape=(len(rows), problem.n_cells)), np.zeros(len(rows))


def relaxed_bound(problem: PatternProblem, demands: Sequence[Demand], run: Run, deadline: float) -> float:
    """A lower bound on the cost of every pattern that meets some demands, from sums examined one by one."""
    sums = Sums(problem)
    must = problem.must_hide.astype(np.float64)
    may = (problem.must_hide | problem.may_hide).astype(np.float64)
    ties = problem.ties()
    nothing = np.zeros(ties.shape[0])
    program = Program(ties, nothing, nothing, must, may, run=run)
    program.set_cost(problem.cost)
    rows, lower = balancing_rows(problem, sums, demands)
    program.add_rows(rows, lower)
    seen: set[tuple[int, int]] = set()
    best = _packed(rows, problem.cost)
    for number in range(ROUNDS):
        run.check()
        run.report("proving how many cells must be hidden", number, ROUNDS)
        left = deadline - time.monotonic()
        if left <= 0 or run.is_hurried:
            break
        found = program.solve(seconds=left)
        if found.status is not Status.OPTIMAL:
            break
        stalled = number > 2 and found.bound - best < STALLED * max(1.0, best)
        best = max(best, found.bound)
        rows, lower = lone_cells(problem, sums, found.point, seen)
        if stalled or not rows.shape[0]:
            break
        program.add_rows(rows, lower)
    return best


def _packed(rows: csr_array, cost: Floats) -> float:
    """A lower bound on the total cost of inequalities that share no cell; those with few cells are taken first."""
    taken = np.zeros(rows.shape[1], dtype=bool)
    total = 0.0
    for row in np.argsort(np.diff(rows.indptr), kind="stable").tolist():
        own = slice(rows.indptr[row], rows.indptr[row + 1])
        cells = rows.indices[own]
        if not taken[cells].any():
            taken[cells] = True
            total += float((cost[cells] / rows.data[own]).min())
    return total
