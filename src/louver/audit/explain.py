"""Why a cell is given away: a smallest set of pieces that does it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.audit.load import Loaded
from louver.run import Run
from louver.tables.joint import decide
from louver.tables.problem import Forms, Problem, build, forms_of
from louver.tables.system import IntArray

__all__ = ["Cells", "Reason", "explain", "forms_for", "verdicts"]

EXHAUSTIVE = 400
"""Subsets of pieces that are tried one size after another before sets are shrunk one by one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """Cells of several crosses: the joint cells of each cross, and which cells of it are meant.

    Attributes
    ----------
    assigns : tuple of int64 (n_cells,)
    cells : tuple of int64
        Cells of each cross.
    """

    assigns: tuple[IntArray, ...]
    cells: tuple[IntArray, ...]

    @property
    def size(self) -> int:
        return sum(len(cells) for cells in self.cells)

    def pick(self, chosen: IntArray) -> Cells:
        """Some of them, by their number."""
        starts = np.cumsum([0, *(len(cells) for cells in self.cells)])
        picked = [
            cells[chosen[(chosen >= a) & (chosen < b)] - a]
            for cells, a, b in zip(self.cells, starts[:-1], starts[1:], strict=True)
        ]
        return Cells(assigns=self.assigns, cells=tuple(picked))


@dataclass(frozen=True, slots=True)
class Reason:
    """Pieces, by number, that confine a cell; whether it is proved that no fewer do."""

    pieces: tuple[int, ...]
    is_smallest: bool


def forms_for(problem: Problem, cells: Cells) -> Forms:
    """The cells as sums of the problem's unknowns."""
    parts = [
        forms_of(problem, assign, chosen)
        for assign, chosen in zip(cells.assigns, cells.cells, strict=True)
        if len(chosen)
    ]
    if not parts:
        empty = csr_array((0, problem.system.n_columns), dtype=np.int64)
        return Forms(lower=empty, upper=empty)
    return Forms(
        lower=csr_array(vstack([part.lower for part in parts], format="csr")),
        upper=csr_array(vstack([part.upper for part in parts], format="csr")),
    )


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
