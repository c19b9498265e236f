"""Proof that a pattern protects: for every demand, an integer table that agrees with everything the attacker knows, checked exactly.

The search works in floating point. Here each of its witnesses is rounded to whole units, repaired where a sum is then off by a few units,
and checked without any tolerance. A demand whose witness cannot be repaired counts as not met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from louver._arrays import Bools, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.outsider import Witness
from louver.tables.hiding.problem import LARGEST, Demand, PatternProblem

__all__ = ["Certificate", "ChangeCheck", "certify"]

MENDED = (4, 64, 4096)
"""Numbers of units by which a repaired witness may differ from the rounded one, smallest first."""

NODES = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """The result of the check.

    Attributes
    ----------
    changes : tuple
        For every demand the cells that change and by how many units, in exact agreement with it; None if there is none.
    """

    changes: tuple[tuple[Ints, Ints] | None, ...]

    @property
    def missing(self) -> list[int]:
        """Demands without a witness."""
        return [number for number, change in enumerate(self.changes) if change is None]


def certify(
    problem: PatternProblem, hidden: Bools, witnesses: Sequence[Witness | None], run: Run
) -> Certificate:
    """Check every witness in exact arithmetic."""
    check = ChangeCheck(problem, hidden)
    changes: list[tuple[Ints, Ints] | None] = []
    kept: dict[int, tuple[Ints, Ints]] = {}
    for place, (demand, witness) in enumerate(zip(problem.demands, witnesses, strict=True)):
        run.check()
        if place % 1024 == 0:
            run.report("checking every proof", place, len(witnesses))
        if witness is None:
            changes.append(None)
            continue
        # Stored changes were already checked against the pattern, the sums and the outsider; only the demand itself remains to be checked.
        change = kept.get(id(witness))
        if change is None or not check.meets(demand, *change):
            change = _rounded(witness)
            if not (check.holds(*change) and check.meets(demand, *change)):
                mended = exact_witness(problem, demand, hidden, witness, run)
                if mended is None:
                    changes.append(None)
                    continue
                change = np.flatnonzero(mended), mended[mended != 0]
            kept[id(witness)] = change
        changes.append(change)
    if problem.demand_of is not None:
        _ask_others(problem, changes)
    return Certificate(changes=tuple(changes))


def _ask_others(problem: PatternProblem, changes: list[tuple[Ints, Ints] | None]) -> None:
    """Withdraw a proof for the outsider if another attacker can rule out this change and has no separate witness."""
    assert problem.demand_of is not None
    known: dict[int, list[tuple[int, int, int]]] = {}
    for number, attacker in enumerate(problem.attackers):
        limits = zip(attacker.cells.tolist(), attacker.down.tolist(), attacker.up.tolist(), strict=True)
        for cell, down, up in limits:
            known.setdefault(cell, []).append((number, down, up))
    proved = {
        (demand.cell, demand.sign, demand.attacker): demand.need
        for demand, change in zip(problem.demands, changes, strict=True)
        if change is not None
    }
    for n, demand in enumerate(problem.demands):
        change = changes[n]
        if demand.attacker or change is None:
            continue
        against = {
            number
            for cell, by in zip(change[0].tolist(), change[1].tolist(), strict=True)
            for number, down, up in known.get(cell, ())
            if by > up or -by > down
        }
        for number in against:
            needed = problem.demand_of(number, demand)
            if needed is not None and proved.get((demand.cell, demand.sign, number), 0) < needed.need:
                changes[n] = None


class ChangeCheck:
    """What `Problem.broken` checks, for changes of a few cells."""

    def __init__(self, problem: PatternProblem, hidden: Bools) -> None:
        self._problem, self._hidden = problem, hidden
        columns = problem.sums.tocsc()
        self._start, self._row = columns.indptr, columns.indices
        self._sign = columns.data.astype(np.int64)

    def holds(self, cells: Ints, change: Ints) -> bool:
        """Whether a change agrees with the shown cells, with all sums and with what the outsider knows."""
        problem = self._problem
        if not self._hidden[cells].all() or np.abs(change).max(initial=0) > LARGEST:
            return False
        if (change > problem.up[cells]).any() or (-change > problem.down[cells]).any():
            return False
        places = [np.arange(self._start[cell], self._start[cell + 1]) for cell in cells]
        if not places:
            return True
        of_cell = np.repeat(np.arange(len(cells)), [len(one) for one in places])
        at = np.concatenate(places)
        rows, row_of = np.unique(self._row[at], return_inverse=True)
        left = np.zeros(len(rows), dtype=np.int64)
        np.add.at(left, row_of, self._sign[at] * change[of_cell])
        return not left.any()

    def meets(self, demand: Demand, cells: Ints, change: Ints) -> bool:
        """Whether the cell of a demand moves far enough, and its attacker considers the change possible."""
        attacker = self._problem.attackers[demand.attacker]
        place = int(cells.searchsorted(demand.cell))
        if place == len(cells) or cells[place] != demand.cell or demand.sign * change[place] < demand.need:
            return False
        _, own, known = np.intersect1d(cells, attacker.cells, assume_unique=True, return_indices=True)
        return bool(
            (change[own] <= attacker.up[known]).all() and (-change[own] <= attacker.down[known]).all()
        )


def _rounded(witness: Witness) -> tuple[Ints, Ints]:
    """A witness rounded to whole units, not yet checked."""
    change = np.rint(np.clip(witness.change, -LARGEST, LARGEST)).astype(np.int64)
    return witness.cells[change != 0], change[change != 0]


def exact_witness(
    problem: PatternProblem, demand: Demand, hidden: Bools, witness: Witness, run: Run
) -> Ints | None:
    """A witness in whole units close to one in floating point; None if none is found."""
    down, up = problem.room(demand.attacker)
    change = np.zeros(problem.n_cells, dtype=np.int64)
    change[witness.cells] = np.rint(np.clip(witness.change, -LARGEST, LARGEST)).astype(np.int64)
    change = np.clip(change, -np.minimum(down, LARGEST), np.minimum(up, LARGEST))
    if problem.broken(demand, hidden, change) is None:
        return change
    for room in MENDED:
        mended = _mended(problem, demand, hidden, change, room, run)
        if mended is not None:
            return mended
    return None


def _mended(
    problem: PatternProblem, demand: Demand, hidden: Bools, change: Ints, room: int, run: Run
) -> Ints | None:
    """The nearest integer table in which all sums hold, at most `room` units away in each cell."""
    down, up = problem.room(demand.attacker)
    own = np.flatnonzero(hidden)
    sums = csr_array(problem.sums[:, own]).astype(np.float64)
    rest = -(problem.sums.astype(np.int64) @ change)
    used = np.unique(sums.nonzero()[0])
    if rest[np.setdiff1d(np.arange(len(rest)), used)].any():
        return None
    lower = np.maximum(-room, -down[own] - change[own])
    upper = np.minimum(room, up[own] - change[own])
    place = int(np.searchsorted(own, demand.cell))
    short = demand.need - demand.sign * int(change[demand.cell])
    if demand.sign > 0:
        lower[place] = max(lower[place], short)
    else:
        upper[place] = min(upper[place], -short)
    if (lower > upper).any():
        return None
    n = len(own)
    least = np.concatenate([np.maximum(0, lower), np.maximum(0, -upper)])
    most = np.concatenate([np.maximum(0, upper), np.maximum(0, -lower)])
    program = Program(
        csr_array(hstack([sums[used], -sums[used]])),
        rest[used],
        rest[used],
        least.astype(np.float64),
        most.astype(np.float64),
        is_integer=np.ones(2 * n, dtype=bool),
        run=run,
    )
    program.set_cost(np.ones(2 * n))
    found = program.solve(nodes=NODES)
    if found.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    step = np.rint(found.point[:n] - found.point[n:]).astype(np.int64)
    mended = change.copy()
    mended[own] += step
    return mended if problem.broken(demand, hidden, mended) is None else None
