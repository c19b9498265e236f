"""Cells of linked tables: one number is one cell, whichever tables show it and whatever the names of its codes.

A cell is identified by what is measured and, for every attribute, the set of leaves for which its code stands; an attribute of which it is
a total does not matter. Two codes with the same leaves are one code, and equal totals of two tables are one cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Ints
from louver.errors import InputError
from louver.protect.hierarchy import Tree

__all__ = ["Axis", "CellIndex", "ColumnCodes", "Grid", "axis_of", "sums_of"]

MOST_PLACES = 20_000_000
"""Maximum number of combinations of codes in one table."""

Leaves = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCodes:
    """The codes of a column.

    Attributes
    ----------
    name : str
    total : str
        Code of the total.
    trees : tuple of Tree
        Hierarchies over the same leaves.
    of : str
        The attribute for whose leaves its codes stand; its own name if it is not a coarser copy of another.
    stands_for : mapping
        Leaf of this attribute -> leaves of the attribute in `of`.
    is_linked : bool
        Whether this follows only from the records (`links`); a release then does not state it.
    """

    name: str
    total: str
    trees: tuple[Tree, ...]
    of: str
    stands_for: Mapping[str, Leaves]
    is_linked: bool = False

    def meaning(self, tree: Tree, code: str) -> Leaves:
        """Leaves, in the attribute named by `of`, for which a code stands."""
        below = [self.stands_for[leaf] for leaf in tree.leaves[code]]
        return frozenset[str]().union(*below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of a table.

    Attributes
    ----------
    attribute : ColumnCodes
    codes : tuple of str
        Codes, the total first.
    meanings : tuple of frozenset
        The leaves for which each code stands.
    parts : tuple of (int, tuple of int)
        Codes that are sums, and the codes that they add up, by position.
    """

    attribute: ColumnCodes
    codes: tuple[str, ...]
    meanings: tuple[Leaves, ...]
    parts: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def place_of(self) -> dict[str, int]:
        return {code: place for place, code in enumerate(self.codes)}


def axis_of(attribute: ColumnCodes, depth: int | None) -> Axis:
    """The codes of an attribute down to a depth, and their sums."""
    places: dict[str, int] = {}
    meanings: list[Leaves] = []
    parts: list[tuple[int, tuple[int, ...]]] = []
    for tree in attribute.trees:
        kept = [code for code in tree.codes if depth is None or tree.depth[code] <= depth]
        for code in kept:
            meaning = attribute.meaning(tree, code)
            if code not in places:
                places[code] = len(places)
                meanings.append(meaning)
            elif meanings[places[code]] != meaning:
                raise InputError(
                    f'two hierarchies of "{attribute.name}" give the same code different parts; rename it in one of them.',
                    column=attribute.name,
                )
        for code in kept:
            below = tree.parts.get(code, ())
            if below and below[0] in places and (depth is None or tree.depth[below[0]] <= depth):
                parts.append((places[code], tuple(places[part] for part in below)))
    return Axis(attribute=attribute, codes=tuple(places), meanings=tuple(meanings), parts=tuple(parts))


class CellIndex:
    """Assigns numbers to the cells of all tables."""

    def __init__(self) -> None:
        self._number: dict[tuple[object, ...], int] = {}
        self._meaning: dict[tuple[str, Leaves], int] = {}
        self.keys: list[tuple[str, tuple[tuple[str, int], ...]]] = []
        self.leaves: list[Leaves] = []

    def __len__(self) -> int:
        return len(self.keys)

    def meanings(self, axis: Axis) -> list[tuple[str, int] | None]:
        """A number for the leaves of each code of an axis; None for the total."""
        everything = axis.meanings[0]
        found: list[tuple[str, int] | None] = []
        for leaves in axis.meanings:
            if leaves == everything:
                found.append(None)
                continue
            key = axis.attribute.of, leaves
            if key not in self._meaning:
                self._meaning[key] = len(self.leaves)
                self.leaves.append(leaves)
            found.append((axis.attribute.of, self._meaning[key]))
        return found

    def number(self, measured: str, meanings: Iterable[tuple[str, int] | None]) -> int:
        """The number of a cell; a new cell is given a new number."""
        key = measured, tuple(sorted(one for one in meanings if one is not None))
        found = self._number.setdefault(key, len(self.keys))
        if found == len(self.keys):
            self.keys.append(key)
        return found

    def is_inside(self, inner: int, outer: int) -> bool:
        """Whether contributing to one cell implies contributing to another, as far as the codes show."""
        (measured, inside), (other, outside) = self.keys[inner], self.keys[outer]
        if measured != other:
            return False
        own = dict(inside)
        return all(
            attribute in own and self.leaves[own[attribute]] <= self.leaves[leaves]
            for attribute, leaves in outside
        )

    def is_crossing(self, one: int, other: int) -> bool:
        """Whether someone could contribute to both cells, as far as the codes show."""
        (measured, inside), (also, outside) = self.keys[one], self.keys[other]
        own = dict(inside)
        return measured == also and all(
            attribute not in own or self.leaves[own[attribute]] & self.leaves[leaves]
            for attribute, leaves in outside
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: the cell at each combination of codes, -1 where it has none (no contributors, or not shown)."""

    name: str
    axes: tuple[Axis, ...]
    cells: Ints


def check_size(name: str, axes: Sequence[Axis]) -> None:
    """Refuse a table that does not fit into memory."""
    places = 1
    for axis in axes:
        places *= len(axis.codes)
    if places > MOST_PLACES:
        raise InputError(
            f'table "{name}" has more than {MOST_PLACES:,} combinations of codes; limit its depth or drop an attribute.',
            option="tables",
        )


def sums_of(grids: Sequence[Grid], n_cells: int) -> csr_array:
    """Every distinct sum of every table: 1 for the total, -1 for each part; totals that a table does not show are left out."""
    seen: dict[tuple[int, ...], None] = {}
    for grid in grids:
        for number, axis in enumerate(grid.axes):
            cells = np.moveaxis(grid.cells, number, 0).reshape(len(axis.codes), -1)
            for total, parts in axis.parts:
                for column in np.flatnonzero(cells[total] >= 0):
                    below = cells[list(parts), column]
                    listed = sorted(int(cell) for cell in below[below >= 0])
                    whole = int(cells[total, column])
                    if listed and listed != [whole]:
                        seen.setdefault((whole, *listed))
    lengths = [len(row) for row in seen]
    ends = np.cumsum([0, *lengths])
    columns = np.fromiter((cell for row in seen for cell in row), np.int64, int(ends[-1]))
    data = np.full(len(columns), -1, dtype=np.int8)
    data[ends[:-1]] = 1
    return csr_array((data, columns, ends), shape=(len(seen), n_cells))
