"""Units (households, patients with several records): how many different ones a group of people has.

A group of nine people of one household is a group of one unit. Different units do not add up over cells: a unit may have members in
several. `Units.weights` do add up, and never exceed the different units of a group, so a search by sums misses none that has few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from louver.data.histogram import Histogram
from louver.tables.domain import Domain
from louver.tables.system import IntArray

__all__ = ["Units", "units_of"]

WHOLE = 720_720
"""The weight of a unit: divided by any number of cells up to 16 without a remainder."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Units:
    """The units of a set of records.

    Attributes
    ----------
    column : str
        That tells one unit from another.
    cell, unit : int64 (pairs,)
        Joint cells and units with somebody in common, each pair once, by cell.
    n : int
        Different units.
    weights : int64 (n_cells,)
        Of each joint cell: every unit weighs `WHOLE` at most, in equal parts for all cells that it has somebody in.
    """

    column: str
    cell: IntArray
    unit: IntArray
    n: int
    weights: IntArray

    def count(self, assign: IntArray, n_groups: int) -> IntArray:
        """Different units of each group; `assign` (n_cells,) has the group of each joint cell, -1 for none."""
        group = assign[self.cell]
        pairs = np.unique(group[group >= 0] * self.n + self.unit[group >= 0])
        return np.bincount(pairs // self.n, minlength=n_groups).astype(np.int64)

    def among(self, cells: IntArray) -> int:
        """Different units with somebody in some joint cells."""
        start, stop = np.searchsorted(self.cell, cells), np.searchsorted(self.cell, cells, side="right")
        parts = [self.unit[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True) if a < b]
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def within(self, is_kept: NDArray[np.bool_]) -> Units:
        """The same without the people of some joint cells."""
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


def units_of(domain: Domain, histogram: Histogram, column: str) -> Units:
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
    return Units(column=column, cell=cell, unit=unit, n=n, weights=weights)
