"""What an outsider can derive from published tables of counts: no hidden small count may follow from the numbers shown.

Counts of the cross of all attributes are unknown and not negative; every number shown is a sum of some of them, exact or within its
rounding. A hidden count whose largest and smallest possible values agree is known. This outsider knows less than the one assumed by `louver
audit`, who knows what a mark means, what the register holds and which counts are whole: a disclosure found here is certain, but finding
none proves nothing; the audit is stricter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._arrays import Bools, Floats, Ints

if TYPE_CHECKING:  # SciPy takes a third of a second to load, and most verbs check no tables
    from scipy.optimize import LinearConstraint

__all__ = ["ShownCells", "small_count_disclosed"]

MOST_CELLS = 1 << 12
"""Maximum number of cells of a cross that is solved; larger ones are left to the audit."""

MOST_WORK = 1 << 18
"""Maximum number of cells times hidden counts examined."""

NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class ShownCells:
    """A table of counts as it is published.

    Attributes
    ----------
    by : sequence of str
    cells : mapping
        Count by labels; None if it is hidden.
    base : int or None
        Base to multiples of which counts are rounded.
    total : str or None
        The label of totals.
    about : object
        The records that are counted and how labels were merged; tables of the same population are solved together.
    """

    by: Sequence[str]
    cells: Mapping[tuple[str, ...], int | None]
    base: int | None
    total: str | None
    about: object = None

    def labels(self) -> dict[str, tuple[str, ...]]:
        """The labels of every attribute, except the one for totals, in order."""
        columns = zip(*self.cells, strict=True) if self.cells else ((),) * len(self.by)
        return {
            name: tuple(sorted(set(column) - {self.total}))
            for name, column in zip(self.by, columns, strict=True)
        }


@dataclass(slots=True)
class _Cross:
    """Tables that describe the same records by the same labels."""

    about: object
    labels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tables: list[ShownCells] = field(default_factory=list)

    def takes(self, table: ShownCells) -> bool:
        """Add a table, if it belongs here and the cross stays small enough."""
        own = table.labels()
        merged = {**self.labels, **own}
        is_alike = table.about == self.about and all(
            merged[name] == labels for name, labels in self.labels.items()
        )
        if self.tables and not (is_alike and math.prod(map(len, merged.values())) <= MOST_CELLS):
            return False
        self.labels = merged
        self.tables.append(table)
        return True


def small_count_disclosed(tables: Sequence[ShownCells], small: int) -> str | None:
    """Describe a count above 0 and below `small` that the tables show or disclose; None if none is found."""
    for table in tables:
        if table.base is None and any(
            count is not None and 0 < count < small for count in table.cells.values()
        ):
            return f"a count above 0 and below {small} is shown"
    for cross in _crosses(tables):
        if _gives_away(cross, small):
            return f"a hidden count above 0 and below {small} follows from the numbers that are shown"
    return None


def _crosses(tables: Sequence[ShownCells]) -> list[_Cross]:
    """Tables combined where they describe the same records."""
    crosses: list[_Cross] = []
    for table in tables:
        if not any(cross.takes(table) for cross in crosses):
            crosses.append(_Cross(table.about))
            crosses[-1].takes(table)
    return crosses


def _gives_away(cross: _Cross, small: int) -> bool:
    sizes = [len(labels) for labels in cross.labels.values()]
    n_hidden = sum(count is None for table in cross.tables for count in table.cells.values())
    if math.prod(sizes) > MOST_CELLS or math.prod(sizes) * n_hidden > MOST_WORK:
        return False
    place = np.arange(math.prod(sizes)).reshape(sizes)
    sums, hidden = _sums(cross, place)
    is_possible: Bools = np.ones(place.size, np.bool_)
    for cells, _, most in sums:
        if most <= 0:
            is_possible[cells] = False
    number = np.cumsum(is_possible) - 1  # among the cells that may be non-empty
    limits = _Limits.of(sums, is_possible, number)
    return any(limits.is_small(number[cells[is_possible[cells]]], small) for cells in hidden)


Sum = tuple[Ints, int, int]
"""Cells, and the lower and upper bounds on their sum."""


def _sums(cross: _Cross, place: Ints) -> tuple[list[Sum], list[Ints]]:
    """The numbers shown, and the cells of those hidden."""
    sums: list[Sum] = []
    hidden: list[Ints] = []
    names = list(cross.labels)
    position = {name: {label: i for i, label in enumerate(labels)} for name, labels in cross.labels.items()}
    for table in cross.tables:
        slack = 0 if table.base is None else table.base - 1
        for key, count in table.cells.items():
            index: list[Any] = [slice(None)] * len(names)
            for name, label in zip(table.by, key, strict=True):
                if label != table.total:
                    index[names.index(name)] = position[name][label]
            cells = place[tuple(index)].reshape(-1)
            if count is None:
                hidden.append(cells)
            else:
                sums.append((cells, max(0, count - slack), count + slack))
    return sums, hidden


@dataclass(frozen=True, slots=True)
class _Limits:
    """The numbers shown, as limits on sums of the cells that may be non-empty."""

    n_cells: int
    shown: LinearConstraint | None

    @classmethod
    def of(cls, sums: Sequence[Sum], is_possible: Bools, number: Ints) -> _Limits:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import csr_array

        n_cells = int(is_possible.sum())
        if not sums:
            return cls(n_cells, None)
        sets = [number[cells[is_possible[cells]]] for cells, _, _ in sums]
        ends = np.cumsum([0, *map(len, sets)])
        columns = np.concatenate(sets)
        matrix = csr_array((np.ones(len(columns)), columns, ends), shape=(len(sets), n_cells))
        lower, upper = (np.array([one[place] for one in sums], np.float64) for place in (1, 2))
        return cls(n_cells, LinearConstraint(matrix, lower, upper))

    def is_small(self, cells: Ints, small: int) -> bool:
        """Whether a sum of cells is known, above 0 and below `small`."""
        cost = np.zeros(self.n_cells)
        cost[cells] = 1.0
        least = self._least(cost)
        if least is None or not NEAR < least < small - NEAR or abs(least - round(least)) > NEAR:
            return False
        most = self._least(-cost)
        return most is not None and -most - least < NEAR

    def _least(self, cost: Floats) -> float | None:
        from scipy.optimize import milp

        found = milp(cost, constraints=self.shown)
        return float(found.fun) if found.status == 0 else None
