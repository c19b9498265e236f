"""Proof that a pattern protects: for every demand a whole table that agrees with everything the attacker knows, checked in integers.

The search works in floating point. Here each of its witnesses is rounded to whole units, mended where a sum is then off by a few units, and
checked without any tolerance. A demand whose witness cannot be mended counts as not met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from louver._arrays import Bools, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.protect.outsider import Witness
from louver.protect.problem import LARGEST, Demand, Problem
from louver.run import Run

__all__ = ["Certificate", "certify"]

MENDED = (4, 64, 4096)
"""By how many units a mended witness may differ from the rounded one; small first."""

NODES = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Certificate:
    """What was checked.

    Attributes
    ----------
    changes : tuple
        For every demand the cells that change and by how many units, in exact agreement with it; None where there is none.
    """

    changes: tuple[tuple[Ints, Ints] | None, ...]

    @property
    def missing(self) -> list[int]:
        """Demands without a witness."""
        return [number for number, change in enumerate(self.changes) if change is None]


def certify(problem: Problem, hidden: Bools, witnesses: Sequence[Witness | None], run: Run) -> Certificate:
    """Check every witness in exact arithmetic."""
    changes: list[tuple[Ints, Ints] | None] = []
    kept: dict[int, tuple[Ints, tuple[Ints, Ints]]] = {}
    for demand, witness in zip(problem.demands, witnesses, strict=True):
        run.check()
        if witness is None:
            changes.append(None)
            continue
        # What is kept was checked against the pattern, the sums and the outsider; the demand itself is left.
        if id(witness) not in kept or problem.unfit(demand, kept[id(witness)][0]) is not None:
            change = exact_witness(problem, demand, hidden, witness, run)
            if change is None:
                changes.append(None)
                continue
            kept[id(witness)] = change, _sparse(change)
        changes.append(kept[id(witness)][1])
    return Certificate(changes=tuple(changes))


def exact_witness(problem: Problem, demand: Demand, hidden: Bools, witness: Witness, run: Run) -> Ints | None:
    """A witness in whole units near one in floats; None where none is found."""
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
    problem: Problem, demand: Demand, hidden: Bools, change: Ints, room: int, run: Run
) -> Ints | None:
    """The nearest whole table in which all sums hold, at most `room` units away in each cell."""
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


def _sparse(change: Ints) -> tuple[Ints, Ints]:
    cells = np.flatnonzero(change)
    return cells, change[cells]
