"""Why a cell is disclosed, or why pieces contradict each other: a smallest set of pieces, and the reason in words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from louver.audit.cells import Cells, forms_for
from louver.audit.load import Loaded
from louver.errors import InfeasibleError
from louver.run import Run
from louver.tables.problem import build
from louver.tables.solve import decide
from louver.tables.solvers import feasible_point
from louver.tables.system import IntArray, split

__all__ = ["Reason", "contradiction", "explain", "in_words", "verdicts"]

EXHAUSTIVE = 400
"""Subsets of pieces that are tried one size after another before sets are shrunk one by one."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Pieces, by number, that confine a cell; whether it is proved that no fewer do."""

    pieces: tuple[int, ...]
    is_smallest: bool


def verdicts(
    loaded: Loaded,
    chosen: Sequence[int],
    cells: Cells,
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
    loaded: Loaded, cells: Cells, floor: IntArray, ceiling: IntArray, run: Run, deadline: float = np.inf
) -> list[Reason | None]:
    """A smallest set of pieces for each cell that all pieces together confine; None where time ran out."""
    search = _Search(loaded, cells, floor, ceiling, run, deadline)
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


class _Search:
    """Cells still to be explained, and the sets found so far."""

    def __init__(
        self,
        loaded: Loaded,
        cells: Cells,
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
        """Explain by this set all open cells that it confines; `is_in_order` says that all smaller sets came before."""
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
        """Leave pieces out, halves first, while the first open cell stays confined; then try the set on all others."""
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
"""Sets of pieces that are tried one size after another before pieces are left out one by one."""

CONTRADICTION_EFFORT = 2.0


def contradiction(loaded: Loaded, run: Run) -> InfeasibleError:
    """The error that names a smallest set of pieces without a table that agrees with all of them."""
    numbers = _smallest(loaded, run)
    names = [f'"{loaded.pieces[number].name}"' for number in numbers]
    if len(names) == 1:
        told = f"table {names[0]} contradicts itself: its numbers do not add up"
    else:
        told = f"tables {', '.join(names[:-1])} and {names[-1]} contradict each other: no table of counts fits them all"
    return InfeasibleError(f"{told}; check their files.", clash=tuple(number + 1 for number in numbers))


def _smallest(loaded: Loaded, run: Run) -> tuple[int, ...]:
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


def _is_impossible(loaded: Loaded, chosen: Sequence[int], run: Run) -> bool:
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


def in_words(loaded: Loaded, cells: NDArray[np.bool_], reason: Reason, lower: int, upper: int) -> str:
    """Why a sum of joint cells (a mask) is known to lie in [lower, upper]."""
    names = [f'"{loaded.pieces[number].name}"' for number in reason.pieces]
    people = _people(lower, upper)
    if len(names) == 1:
        return f"{names[0]} alone tells {people}."
    if len(names) == 2:
        for first, second in ((0, 1), (1, 0)):
            if _is_difference(loaded, cells, reason.pieces[first], reason.pieces[second]):
                return f"{names[first]} minus {names[second]} leaves {people}."
    return f"{', '.join(names[:-1])} and {names[-1]} together leave {people}."


def _people(lower: int, upper: int) -> str:
    noun = "person" if upper == 1 else "people"
    return f"{lower} {noun}" if lower == upper else f"{lower} to {upper} {noun}"


def _is_difference(loaded: Loaded, cells: NDArray[np.bool_], whole: int, part: int) -> bool:
    """Whether a cell of one table is a cell of another and these cells, and nothing else."""
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
