"""Cutting a file into parts by counts: a few Mondrian-style splits on a coarse grid over the quasi-identifiers.

The values of each column are put into a few bins of neighbours: numbers and ordered labels by their order, labels under a hierarchy by its
nodes, other labels by frequency. Records are counted in the cells of all bins together, and the cells are cut in two repeatedly, along the
column with the widest range. So equal records stay together, and no record is held in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from louver._arrays import Ints
from louver.anonymize.columns import QuasiColumn, SetColumn, TreeColumn

__all__ = ["GridCells", "bins_of", "cut"]

MOST_BINS = 16
"""Maximum number of bins of a column; missing values have an additional one."""

MOST_CELLS = 2**20
"""Maximum number of cells counted; if more occur, neighbouring bins are merged."""

KEY_BITS = 62
FAIR = 0.5
"""A cut is fair if both sides have at least this fraction of the records intended for them."""


@dataclass(slots=True, kw_only=True)
class GridCells:
    """Counts of records by the bins of all columns together.

    Parameters
    ----------
    bins : list of int64 (values,)
        Bin of each value of each column, from 0.

    Attributes
    ----------
    keys : int64 (cells,)
        Ascending; the bins of a cell, packed.
    counts : int64 (cells,)
    """

    bins: list[Ints]
    most: int = MOST_CELLS
    keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(bins.max(initial=0)) + 1 for bins in self.bins)

    def keys_of(self, values: Sequence[Ints]) -> Ints:
        """The cell of each given record."""
        return _packed([b[v] for b, v in zip(self.bins, values, strict=False)], self.shape)

    def add(self, values: Sequence[Ints]) -> None:
        """Count records, given the codes of their values."""
        new, counts = np.unique(self.keys_of(values), return_counts=True)
        self._unite(np.concatenate([self.keys, new]), np.concatenate([self.counts, counts]))
        while len(self.keys) > self.most and max(self.shape) > 1:
            bins = self.unpacked()
            self.bins = [b // 2 for b in self.bins]
            self._unite(_packed(list(bins.T // 2), self.shape), self.counts)

    def unpacked(self) -> Ints:
        """Bins (cells, columns)."""
        found, rest = [], self.keys
        for size in reversed(self.shape):
            rest, bins = np.divmod(rest, size)
            found.append(bins)
        return np.stack(found[::-1], axis=1)

    def _unite(self, keys: Ints, counts: Ints) -> None:
        self.keys, place = np.unique(keys, return_inverse=True)
        self.counts = np.bincount(place, counts, minlength=len(self.keys)).astype(np.int64)


def _packed(bins: Sequence[Ints], shape: tuple[int, ...]) -> Ints:
    """One number for the bins of a cell, in mixed radix; numpy's own function supports at most 64 columns."""
    keys = np.zeros(len(bins[0]), np.int64)
    for column, size in zip(bins, shape, strict=True):
        keys = keys * size + column
    return keys


def bins_of(columns: Sequence[QuasiColumn], counts: Sequence[Ints]) -> list[Ints]:
    """A bin for each value of each column, in the order used for cuts; as many columns as space allows have several bins."""
    bits = max(2, KEY_BITS // len(columns))
    most = min(MOST_BINS, 2**bits - 1)
    binned = [_binned(column, count, most) for column, count in zip(columns, counts, strict=False)]
    return [bins if place < KEY_BITS // bits else np.zeros_like(bins) for place, bins in enumerate(binned)]


def _binned(column: QuasiColumn, counts: Ints, most: int) -> Ints:
    """Bins of neighbours with about as many records each, with missing values in a separate bin at the end."""
    ranks = column.ranks
    is_missing = np.isnan(ranks)
    keys = np.where(is_missing, 0, ranks)
    if isinstance(column, SetColumn):
        keys = np.lexsort([np.arange(len(counts)), -counts]).argsort().astype(np.float64)
    elif isinstance(column, TreeColumn):
        keys = _nodes(column, np.where(is_missing, 0, column.places), most).astype(np.float64)
    _, place = np.unique(keys, return_inverse=True)
    total = np.bincount(place, np.where(is_missing, 0, counts))
    middle = np.cumsum(total) - total / 2
    bins = (middle * most / max(1.0, total.sum())).astype(np.int64)[place]
    bins[is_missing] = most
    return np.unique(bins, return_inverse=True)[1].astype(np.int64)


def _nodes(column: TreeColumn, places: Ints, most: int) -> Ints:
    """For each leaf, the first leaf (depth first) under its node at the lowest level below the root that has few enough nodes."""
    nodes, _ = column.tree
    for level in nodes[:-1] if len(nodes) > 1 else nodes:
        _, first, node = np.unique(level, return_index=True, return_inverse=True)
        if len(first) <= most:
            break
    return np.asarray(first[node][places], np.int64)


def cut(cells: GridCells, columns: Sequence[QuasiColumn], n_parts: int, least: int) -> Ints:
    """The part of each cell, numbered so that parts near one another have numbers near one another.

    Parameters
    ----------
    cells : GridCells
    columns : sequence of QuasiColumn
        Defined on the values binned by `cells`; they determine the loss of a range of bins.
    n_parts : int
        Wanted number of parts; there are fewer if the cells do not allow it.
    least : int
        Minimum number of records in a part.

    Notes
    -----
    LeFevre, DeWitt & Ramakrishnan (2006), strict: the column with the largest loss is cut, here not at the median but where each side gets
    as many records as its remaining parts need; the next column is tried where that cannot be done fairly.
    """
    bins, counts = cells.unpacked(), cells.counts
    widths = [_Width(column, of_value) for column, of_value in zip(columns, cells.bins, strict=True)]
    part = np.zeros(len(counts), np.int64)
    waiting, n_made = [(np.arange(len(counts)), n_parts)], 0
    while waiting:
        members, wanted = waiting.pop()
        found = _best_cut(bins[members], counts[members], widths, wanted, least) if wanted > 1 else None
        if found is None:
            part[members] = n_made
            n_made += 1
            continue
        is_left, n_left = found
        waiting += [(members[~is_left], wanted - n_left), (members[is_left], n_left)]
    return part


class _Width:
    """The loss of ranges of bins of a column, based on the values that occur in the file."""

    def __init__(self, column: QuasiColumn, bins: Ints) -> None:
        self._column, self._bins = column, bins
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, low: int, high: int) -> float:
        if (low, high) not in self._known:
            rows = np.flatnonzero((self._bins >= low) & (self._bins <= high))
            lost = self._column.class_losses(rows, np.zeros(1, np.int64))[0]
            self._known[low, high] = float(lost) * self._column.weight
        return self._known[low, high]


def _best_cut(
    bins: Ints, counts: Ints, widths: Sequence[_Width], wanted: int, least: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], int] | None:
    """The cells on the left side, and the number of their parts; None if no cut is possible."""
    low, high = bins.min(axis=0), bins.max(axis=0)
    lost = [width(int(a), int(b)) for width, a, b in zip(widths, low, high, strict=True)]
    best: tuple[float, int, int, int] | None = None
    for j in np.argsort([-x for x in lost], kind="stable").tolist():
        below = np.cumsum(np.bincount(bins[:, j], counts, minlength=int(high[j]) + 1))[int(low[j]) : -1]
        n = int(counts.sum())
        is_allowed = (below >= least) & (n - below >= least)
        if not is_allowed.any():
            continue
        off = np.where(is_allowed, np.abs(below / n - (wanted // 2) / wanted), np.inf)
        place = int(np.argmin(off))
        n_left = int(np.clip(round(wanted * below[place] / n), 1, wanted - 1))
        fairness = min(below[place] / n_left, (n - below[place]) / (wanted - n_left)) / (n / wanted)
        if best is None or fairness > best[0]:
            best = (float(fairness), j, int(low[j]) + place, n_left)
        if fairness >= FAIR:
            break
    return None if best is None else (bins[:, best[1]] <= best[2], best[3])
