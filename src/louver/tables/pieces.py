"""Published pieces, and the joint cells that they describe.

A `Piece` holds margins (bounds on the cells of a cross) and row conditionals. The joint domain crosses every attribute that a
piece names, with labels merged where no piece distinguishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.system import IntArray

if TYPE_CHECKING:
    from louver.tables.transport import FileRecords, Transport

__all__ = ["Cross", "Domain", "Margin", "Piece", "Shares", "cross_attributes", "recoded", "refined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """The cells of some attributes, each optionally recoded, among the records that a filter keeps.

    Attributes
    ----------
    by : tuple of str
        Attributes; none for a single sum.
    recodes : mapping of str to Recode
        Recodes of attributes of `by` or `where`.
    where : mapping of str to tuple of str
        Labels that the filter keeps, after the recode.
    """

    by: tuple[str, ...]
    recodes: Mapping[str, Recode] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes that the cross refers to."""
        return tuple(dict.fromkeys((*self.by, *self.where)))

    def over(self, by: tuple[str, ...]) -> Cross:
        """The same records, crossed by other attributes."""
        return Cross(by=by, recodes=self.recodes, where=self.where)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Margin:
    """Bounds that a piece gives for every cell of a cross, in mixed-radix order of its labels.

    Attributes
    ----------
    lower, upper : int64 (cells,)
        Bounds implied by the printed number or the mark; `UNBOUNDED` if nothing bounds a cell.
    printed : int64 (cells,) or None
        The numbers of a table, with `counts.HIDDEN` for a mark; None if it is not printed as a table.
    """

    cross: Cross
    lower: IntArray
    upper: IntArray
    printed: IntArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shares:
    """Row conditionals of a cross.

    Attributes
    ----------
    cross : Cross
        The attributes of the rows, then those of the columns.
    n_cols : int
        Cells of one row.
    printed : int64 (rows, n_cols)
        Reduced counts if shares are exact; otherwise shares in units of the last decimal. A row of zeros is empty.
    decimals : int or None
        None if shares are exact.
    is_half_even : bool
    is_empty : bool array (rows,)
        Rows published as empty.
    """

    cross: Cross
    n_cols: int
    printed: IntArray
    decimals: int | None
    is_half_even: bool
    is_empty: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """One published item: its name and what it states.

    Attributes
    ----------
    name : str
    margins : tuple of Margin
    shares : tuple of Shares
    is_file : bool
        Whether it is a file of records published earlier.
    columns : tuple of str
        Columns of a file.
    states_more : bool
        Whether readers can work out more from it than the margins and the transport say.
    records : FileRecords or None
        Records of a file that say more than its margins.
    transport : Transport or None
        The same over the domain of all pieces, once it is known.
    """

    name: str
    margins: tuple[Margin, ...] = ()
    shares: tuple[Shares, ...] = ()
    is_file: bool = False
    columns: tuple[str, ...] = ()
    states_more: bool = False
    records: FileRecords | None = None
    transport: Transport | None = None

    @property
    def crosses(self) -> tuple[Cross, ...]:
        return (*(margin.cross for margin in self.margins), *(shares.cross for shares in self.shares))


MAX_CELLS = 2**22
"""Largest joint domain that is stored in full."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """Classes of labels of each attribute, and the cells of their cross.

    Attributes
    ----------
    attributes : tuple of Attribute
        As they appear in the data.
    classes : tuple of int64 (labels,)
        Class of each label.
    shape : tuple of int
        Classes of each attribute.
    """

    attributes: tuple[Attribute, ...]
    classes: tuple[IntArray, ...]
    shape: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        return prod(self.shape)

    def attribute(self, name: str) -> Attribute:
        return next(attribute for attribute in self.attributes if attribute.name == name)

    def assign(self, cross: Cross) -> IntArray:
        """Cell of the cross for each joint cell, -1 for those that its filter leaves out; (n_cells,)."""
        coded = {name: recoded(self.attribute(name), cross) for name in cross.names}
        total = np.zeros(self.shape, dtype=np.int64)
        is_inside = np.ones(self.shape, dtype=bool)
        for name in cross.by:
            attribute, codes = coded[name]
            total *= attribute.size
            total += self._along(name, codes)
        for name, labels in cross.where.items():
            attribute, codes = coded[name]
            wanted = np.isin(codes, [attribute.code_of(label) for label in labels])
            is_inside &= self._along(name, wanted)
        return np.where(is_inside, total, -1).ravel()

    def inside(self, cross: Cross) -> IntArray:
        """Joint cells that pass the filter of the cross, ascending; the others are not examined."""
        chosen = [np.arange(size, dtype=np.int64) for size in self.shape]
        for name in cross.where:
            axis = [entry.name for entry in self.attributes].index(name)
            chosen[axis] = self.classes_inside(name, cross)
        return np.ravel_multi_index(np.ix_(*chosen), self.shape).ravel()

    def classes_inside(self, name: str, cross: Cross) -> IntArray:
        """Classes of one attribute that pass the filter of the cross, ascending."""
        axis = [entry.name for entry in self.attributes].index(name)
        attribute, codes = recoded(self.attributes[axis], cross)
        wanted = np.isin(codes, [attribute.code_of(label) for label in cross.where[name]])
        return np.unique(self.classes[axis][wanted])

    def _along(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Values of an attribute's labels, one per class, shaped to be broadcast along its axis."""
        axis = [attribute.name for attribute in self.attributes].index(name)
        shape = [1] * len(self.shape)
        shape[axis] = self.shape[axis]
        return self._by_class(axis, values).reshape(shape)

    def _by_class(self, axis: int, values: NDArray[Any]) -> NDArray[Any]:
        by_class = np.zeros(self.shape[axis], dtype=values.dtype)
        by_class[self.classes[axis]] = values
        return by_class

    def codes(self, name: str, cross: Cross) -> IntArray:
        """Code of each class of an attribute in a cross."""
        axis = [attribute.name for attribute in self.attributes].index(name)
        return self._by_class(axis, recoded(self.attributes[axis], cross)[1])

    def counts(self, histogram: Histogram) -> IntArray:
        """True counts of the joint cells; the histogram has the same attributes."""
        codes = histogram.marginalise([attribute.name for attribute in self.attributes]).codes
        flat = np.zeros(len(codes), dtype=np.int64)
        for axis, classes in enumerate(self.classes):
            flat = flat * self.shape[axis] + classes[codes[:, axis]]
        out = np.zeros(self.n_cells, dtype=np.int64)
        np.add.at(out, flat, histogram.counts)
        return out

    def size(self, cross: Cross) -> int:
        """Cells of a cross."""
        return prod(attribute.size for attribute in cross_attributes(cross, self.attributes))

    def sums(self, cross: Cross, counts: IntArray) -> IntArray:
        """Counts of the cells of a cross, from those of the joint cells."""
        assign = self.assign(cross)
        total = np.zeros(self.size(cross), dtype=np.int64)
        np.add.at(total, assign[assign >= 0], counts[assign >= 0])
        return total

    def labels(self, cross: Cross, cell: int) -> dict[str, str]:
        """Labels of one cell of a cross."""
        found: dict[str, str] = {}
        for attribute in reversed(cross_attributes(cross, self.attributes)):
            cell, code = divmod(cell, attribute.size)
            found[attribute.name] = attribute.labels[code]
        return dict(reversed(found.items()))


def cross_attributes(cross: Cross, attributes: Sequence[Attribute]) -> list[Attribute]:
    """The attributes of a cross after its recodes."""
    by_name = {attribute.name: attribute for attribute in attributes}
    return [recoded(by_name[name], cross)[0] for name in cross.by]


def refined(attributes: Sequence[Attribute], crosses: Iterable[Cross], extra: Iterable[Cross] = ()) -> Domain:
    """The coarsest domain in which every cross is a union of cells."""
    everything = [*crosses, *extra]
    classes, shape = [], []
    for attribute in attributes:
        traits = _traits(attribute, everything)
        if traits:
            _, numbers = np.unique(np.column_stack(traits), axis=0, return_inverse=True)
            numbers = numbers.reshape(-1).astype(np.int64)
        else:
            numbers = np.zeros(attribute.size, dtype=np.int64)
        # Classes in the order of their first label.
        first: dict[int, int] = {}
        ordered = np.array([first.setdefault(int(number), len(first)) for number in numbers], dtype=np.int64)
        classes.append(ordered)
        shape.append(len(first))
    if prod(shape) > MAX_CELLS:
        raise InputError(
            f"the tables together cross {' x '.join(str(size) for size in shape)} categories, more than {MAX_CELLS:,} "
            "cells; leave out attributes or merge categories.",
            option="tables",
        )
    return Domain(attributes=tuple(attributes), classes=tuple(classes), shape=tuple(shape))


def _traits(attribute: Attribute, crosses: Sequence[Cross]) -> list[NDArray[np.int64]]:
    """For each label of one attribute, its code in every cross, and whether a filter keeps it."""
    traits = []
    for cross in crosses:
        if attribute.name not in cross.names:
            continue
        coded, codes = recoded(attribute, cross)
        if attribute.name in cross.by:
            traits.append(codes)
        if attribute.name in cross.where:
            wanted = [coded.code_of(label) for label in cross.where[attribute.name]]
            traits.append(np.isin(codes, wanted).astype(np.int64))
    return traits


def recoded(attribute: Attribute, cross: Cross) -> tuple[Attribute, NDArray[np.int64]]:
    """An attribute as recoded in a cross, and the new code of each of its labels."""
    recode = cross.recodes.get(attribute.name)
    if recode is None:
        return attribute, np.arange(attribute.size, dtype=np.int64)
    return attribute.recoded(recode)
