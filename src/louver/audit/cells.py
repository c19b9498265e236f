"""Cells that an audit examines, as sums of unknowns, and how many people or units they contain.

Units are households, or patients with several records: nine people of one household are one unit. Numbers of units do not add up over
cells, because a unit may have members in several. `UnitCounts.weights` do add up and never exceed the number of units of a group, so a
search by sums misses no group with few units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from louver.data.histogram import Histogram
from louver.tables.pieces import Domain
from louver.tables.problem import Forms, TablesProblem, forms_of
from louver.tables.system import IntArray

__all__ = [
    "AuditCells",
    "Small",
    "UnitCounts",
    "forms_for",
    "units_of",
    "window",
]


def window(true: IntArray, within: float) -> tuple[IntArray, IntArray]:
    """Range of counts within a given percentage of the true ones."""
    share = Fraction(str(within)) / 100
    floor = [-(-(int(x) * (1 - share)) // 1) for x in true]
    ceiling = [int(x) * (1 + share) // 1 for x in true]
    return np.array(floor, dtype=np.int64), np.array(ceiling, dtype=np.int64)


WHOLE = 720_720
"""The weight of a unit: divisible by any number of cells up to 16 without a remainder."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitCounts:
    """The units of a set of records.

    Attributes
    ----------
    column : str
        The column that identifies units.
    cell, unit : int64 (pairs,)
        Joint cells and the units with a member in them, each pair once, by cell.
    n : int
        Number of distinct units.
    weights : int64 (n_cells,)
        Weight of each joint cell: a unit weighs at most `WHOLE`, in equal parts over all cells in which it has a member.
    """

    column: str
    cell: IntArray
    unit: IntArray
    n: int
    weights: IntArray

    def count(self, assign: IntArray, n_groups: int) -> IntArray:
        """Number of distinct units in each group; `assign` (n_cells,) gives the group of each joint cell, -1 for none."""
        group = assign[self.cell]
        pairs = np.unique(group[group >= 0] * self.n + self.unit[group >= 0])
        return np.bincount(pairs // self.n, minlength=n_groups).astype(np.int64)

    def among(self, cells: IntArray) -> int:
        """Number of distinct units with a member in some joint cells."""
        start, stop = np.searchsorted(self.cell, cells), np.searchsorted(self.cell, cells, side="right")
        parts = [self.unit[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True) if a < b]
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def within(self, is_kept: NDArray[np.bool_]) -> UnitCounts:
        """Number of distinct units, counting only the people of some joint cells."""
        chosen = is_kept[self.cell]
        return replace(
            self,
            cell=self.cell[chosen],
            unit=self.unit[chosen],
            weights=np.where(is_kept, self.weights, 0),
        )

    @staticmethod
    def limit(small: int) -> int:
        """A group of fewer than `small` units weighs less than this."""
        return (small - 1) * WHOLE + 1


def units_of(domain: Domain, histogram: Histogram, column: str) -> UnitCounts:
    """The units of records that are counted by the attributes of the domain and by the column of units, which comes last."""
    flat = np.zeros(len(histogram.codes), dtype=np.int64)
    for axis, classes in enumerate(domain.classes):
        flat = flat * domain.shape[axis] + classes[histogram.codes[:, axis]]
    n = max(1, histogram.attributes[-1].size)
    pairs = np.unique(flat * n + histogram.codes[:, -1])
    cell, unit = pairs // n, pairs % n
    n_cells_of = np.bincount(unit, minlength=n)
    weights = np.zeros(domain.n_cells, dtype=np.int64)
    np.add.at(weights, cell, np.maximum(1, WHOLE // n_cells_of[unit]))
    return UnitCounts(column=column, cell=cell, unit=unit, n=n, weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditCells:
    """Cells of several crosses: the joint cells of each cross, and which of its cells are selected.

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

    def pick(self, chosen: IntArray) -> AuditCells:
        """The cells with the given numbers."""
        starts = np.cumsum([0, *(len(cells) for cells in self.cells)])
        picked = [
            cells[chosen[(chosen >= a) & (chosen < b)] - a]
            for cells, a, b in zip(self.cells, starts[:-1], starts[1:], strict=True)
        ]
        return AuditCells(assigns=self.assigns, cells=tuple(picked))


def forms_for(problem: TablesProblem, cells: AuditCells) -> Forms:
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Small:
    """Small cells that the pieces together disclose, with the interval they must not be confined to."""

    cells: AuditCells
    floor: IntArray
    ceiling: IntArray

    def pick(self, chosen: IntArray) -> Small:
        return Small(cells=self.cells.pick(chosen), floor=self.floor[chosen], ceiling=self.ceiling[chosen])

    def followed_by(self, other: Small) -> Small:
        return Small(
            cells=AuditCells(
                assigns=(*self.cells.assigns, *other.cells.assigns),
                cells=(*self.cells.cells, *other.cells.cells),
            ),
            floor=np.concatenate([self.floor, other.floor]),
            ceiling=np.concatenate([self.ceiling, other.ceiling]),
        )
