"""Histogram: a sparse, labelled, integer contingency table.

It belongs on the confidential side of the wall, because its counts are true counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from louver._arrays import Ints
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Histogram"]

MAX_COUNT = 2**63 - 1
MAX_DENSE_CELLS = 2**28  # 2 GiB of counts
MAX_AXES = 64  # of NumPy
SMALL_TABLE_CELLS = 2**14  # below this size, scattering into a dense array is faster than sorting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Histogram:
    """Counts of the cells that occur; build one with `from_codes` or `from_dense`.

    Parameters
    ----------
    attributes : tuple of Attribute
        The d dimensions.
    codes : ndarray of int64, shape (n, d)
        Distinct cells with a count, in lexicographic order; read-only.
    counts : ndarray of int64, shape (n,)
        Their counts, all positive; read-only.

    Notes
    -----
    **Cost**: every operation is O(n log n) time and O(n d) memory in the n cells that occur, never in the
    product of the domains; tables of few cells are scattered in O(n + cells) instead of sorted.

    Examples
    --------
    >>> sex = Attribute(name="sex", labels=("female", "male"))
    >>> smoker = Attribute(name="smoker", labels=("no", "yes"))
    >>> table = Histogram.from_dense([[5, 1], [4, 0]], (sex, smoker))
    >>> table.total, table.codes.tolist()
    (10, [[0, 0], [0, 1], [1, 0]])
    >>> table.marginalise(["smoker"]).counts.tolist()
    [9, 1]
    >>> table.slice("sex", "male").counts.tolist()
    [4]
    """

    attributes: tuple[Attribute, ...]
    codes: Ints
    counts: Ints

    def __post_init__(self) -> None:
        self.codes.flags.writeable = False
        self.counts.flags.writeable = False

    @classmethod
    def from_codes(cls, attributes: Sequence[Attribute], codes: ArrayLike, counts: ArrayLike) -> Histogram:
        """Build from cells in any order; equal cells are added up and zero counts left out.

        Parameters
        ----------
        attributes : sequence of Attribute
            The d dimensions.
        codes : array of int, shape (n, d)
            One cell per row.
        counts : array of int, shape (n,)
            Non-negative counts whose sum fits 64 bits.
        """
        attributes = tuple(attributes)
        names = [attribute.name for attribute in attributes]
        if len(set(names)) < len(names):
            raise InputError("a histogram cannot have one attribute twice.")
        cells = _as_integers(codes, "codes")
        weights = _as_integers(counts, "counts")
        if cells.shape != (len(weights), len(attributes)) or weights.ndim != 1:
            raise InputError("a histogram needs one row of codes per count and one column per attribute.")
        if len(cells) and ((cells < 0).any() or (cells >= _shape(attributes)).any()):
            raise InputError("a histogram has a code that is not among its attribute's labels.")
        if len(weights) and int(weights.min()) < 0:
            raise InputError("a histogram cannot have a negative count.")
        _check_total(weights)
        positive = weights > 0
        if not positive.all():
            cells, weights = cells[positive], weights[positive]
        return _aggregate(attributes, cells, weights)

    @classmethod
    def from_dense(cls, array: ArrayLike, attributes: Sequence[Attribute]) -> Histogram:
        """Build from an array with one axis per attribute."""
        dense = _as_integers(array, "counts")
        if dense.shape != tuple(attribute.size for attribute in attributes):
            raise InputError("a dense table needs one axis per attribute, as long as its labels.")
        cells = np.argwhere(dense != 0)
        return cls.from_codes(attributes, cells, dense[dense != 0])

    @property
    def total(self) -> int:
        """Sum of all counts."""
        return int(self.counts.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of labels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name."""
        return self.attributes[self._axis(name)]

    def marginalise(self, names: Sequence[str]) -> Histogram:
        """Keep these attributes, in this order, and add up over the others."""
        axes = [self._axis(name) for name in names]
        if len(set(axes)) < len(axes):
            raise InputError("a margin cannot have one attribute twice.")
        attributes = tuple(self.attributes[axis] for axis in axes)
        return _aggregate(attributes, self.codes[:, axes], self.counts)

    def slice(self, name: str, label: str) -> Histogram:
        """The cells with one label of an attribute, without that attribute."""
        axis = self._axis(name)
        inside = self.codes[:, axis] == self.attributes[axis].code_of(label)
        attributes = self.attributes[:axis] + self.attributes[axis + 1 :]
        # Fixing one coordinate keeps the cells distinct and in order.
        codes = np.delete(self.codes[inside], axis, axis=1)
        return Histogram(attributes=attributes, codes=codes, counts=self.counts[inside])

    def recode(self, *recodes: Recode) -> Histogram:
        """Apply recodes one after another and add up cells that become equal."""
        attributes = list(self.attributes)
        codes = self.codes.copy()
        for recode in recodes:
            axis = self._axis(recode.attribute)
            attributes[axis], mapping = attributes[axis].recoded(recode)
            codes[:, axis] = mapping[codes[:, axis]]
        return _aggregate(tuple(attributes), codes, self.counts)

    def to_dense(self) -> Ints:
        """All counts, zeros included, with one axis per attribute."""
        if math.prod(self.shape) > MAX_DENSE_CELLS:
            raise InputError("the table has too many cells to be written with all its zeros.")
        dense = np.zeros(math.prod(self.shape), dtype=np.int64)
        dense[_flat(self.codes, self.shape)] = self.counts
        return dense.reshape(self.shape)

    def to_frame(self) -> pyarrow.Table:
        """Arrow table with one dictionary column per attribute and the column `count`."""
        import pyarrow as pa

        columns = {
            attribute.name: pa.DictionaryArray.from_arrays(
                pa.array(self.codes[:, axis].astype(np.int32)), pa.array(attribute.labels, type=pa.string())
            )
            for axis, attribute in enumerate(self.attributes)
        }
        return pa.table([*columns.values(), pa.array(self.counts)], names=[*columns, "count"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return (
            self.attributes == other.attributes
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.counts, other.counts)
        )

    def __repr__(self) -> str:
        by = " x ".join(f"{attribute.name} ({attribute.size})" for attribute in self.attributes)
        return f"Histogram of {by or 'the total'}; confidential"

    def _axis(self, name: str) -> int:
        for axis, attribute in enumerate(self.attributes):
            if attribute.name == name:
                return axis
        raise InputError(f'the table has no attribute "{name}"; check the name.', column=name)


def _as_integers(values: ArrayLike, what: str) -> Ints:
    """A 64-bit copy; values that are not whole numbers in range are refused, not rounded."""
    array: NDArray[Any] = np.asarray(values)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and int(array.max()) > MAX_COUNT):
        raise InputError(f"a histogram needs {what} that are 64-bit integers.")
    return array.astype(np.int64)


def _check_total(counts: Ints) -> None:
    """Refuse counts whose sum exceeds 64 bits; every later sum is then safe."""
    if len(counts) == 0 or int(counts.max()) * len(counts) <= MAX_COUNT:
        return
    if sum(counts.tolist()) > MAX_COUNT:
        raise InputError("the counts add up to more than 64 bits can hold.")


def _shape(attributes: Sequence[Attribute]) -> Ints:
    return np.array([attribute.size for attribute in attributes], dtype=np.int64)


def _aggregate(attributes: tuple[Attribute, ...], codes: Ints, counts: Ints) -> Histogram:
    """Sort valid cells, add up equal ones; `counts` are positive and their sum fits."""
    shape = tuple(attribute.size for attribute in attributes)
    n_cells = math.prod(shape)
    if len(counts) == 0 or n_cells > MAX_COUNT or len(shape) > MAX_AXES:
        merged, sums = _merge_lexsorted(codes, counts)
        return Histogram(attributes=attributes, codes=merged, counts=sums)
    flat = _flat(codes, shape)
    if n_cells <= max(SMALL_TABLE_CELLS, len(counts)):
        dense = np.zeros(n_cells, dtype=np.int64)
        np.add.at(dense, flat, counts)
        occupied = np.flatnonzero(dense)
        sums = dense[occupied]
    else:
        order = np.argsort(flat, kind="stable")
        flat = flat[order]
        starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
        occupied = flat[starts]
        sums = np.add.reduceat(counts[order], starts)
    return Histogram(attributes=attributes, codes=_unflatten(occupied, shape), counts=sums)


def _flat(codes: Ints, shape: tuple[int, ...]) -> Ints:
    """Number of each cell, the last attribute fastest."""
    if not shape:
        return np.zeros(len(codes), np.int64)
    flat: Ints = np.ravel_multi_index(tuple(codes.T), shape)
    return flat


def _unflatten(flat: Ints, shape: tuple[int, ...]) -> Ints:
    """Codes of flat cell numbers."""
    if not shape:
        return np.zeros((len(flat), 0), np.int64)
    return np.stack(np.unravel_index(flat, shape), axis=1)


def _merge_lexsorted(codes: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The same without flat numbers, for domains whose size exceeds 64 bits or that have more attributes than NumPy allows axes."""
    if len(counts) == 0:
        return codes.copy(), counts.copy()
    order = np.lexsort(codes.T[::-1])
    codes = codes[order]
    starts = np.flatnonzero(np.r_[True, (codes[1:] != codes[:-1]).any(axis=1)])
    return codes[starts], np.add.reduceat(counts[order], starts)
