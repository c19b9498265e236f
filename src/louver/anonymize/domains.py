"""What one recoding of a whole column can be, for each sort of column, and what it loses.

A *coding* gives every value of a column, its *atom*, a block, and all records of a block publish the same: numbers and
ordered labels are cut into runs of neighbours, labels under a hierarchy climb to one level of it, other labels are put
into sets. Codings of one column are partly ordered from the coarsest, which has one block, to the finest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from louver._arrays import Floats, Ints
from louver.anonymize.columns import Column, NumericColumn, SetColumn, TreeColumn

__all__ = ["Domain", "domain_of"]

MOST_CODINGS = 300
"""A column with more codings than this is not searched exhaustively."""

MOST_CUTS = 32
"""Places at which a run is tried to be cut in two."""


class Domain(ABC):
    """A column's values as atoms 0, 1, 2, ..., and how many records have each.

    Attributes
    ----------
    atoms : int64 (n,)
        Of each source row asked for.
    counts : int64 (d,)
    """

    atoms: Ints
    counts: Ints

    @property
    def size(self) -> int:
        return len(self.counts)

    def coarsest(self) -> Ints:
        """Everything in one block."""
        return np.zeros(self.size, np.int64)

    @abstractmethod
    def loss(self, coding: Ints, counts: Ints) -> float:
        """Sum over records, `counts` of each atom, of the share that their block loses, by what occurs among them."""

    @abstractmethod
    def splits(self, coding: Ints) -> Iterator[Ints]:
        """Codings next below a coding: one block divided."""

    @abstractmethod
    def others(self, coding: Ints) -> Iterator[Ints]:
        """Codings beside a coding or next above it: a boundary moved, a value in another block, two blocks united."""

    @abstractmethod
    def codings(self) -> list[Ints] | None:
        """All codings; None where they are too many."""

    def level(self, coding: Ints) -> int | None:
        """The level of the hierarchy that a coding is, where there is one."""
        return None


@dataclass(frozen=True, eq=False)
class Runs(Domain):
    """Numbers or ordered labels, cut into runs; missing values, the last atom, stay apart unless all are one block."""

    atoms: Ints
    counts: Ints
    values: Floats
    span: float
    has_missing: bool

    @classmethod
    def of(cls, column: NumericColumn, rows: Ints) -> Runs:
        given = column.values[rows]
        missing = np.isnan(given)
        values, places = np.unique(given[~missing], return_inverse=True)
        atoms = np.full(len(rows), len(values), np.int64)
        atoms[~missing] = places
        low, high = column.span
        counts = np.bincount(atoms, minlength=len(values) + missing.any())
        return cls(atoms, counts, values, high - low, bool(missing.any()))

    @property
    def n_known(self) -> int:
        return len(self.values)

    def loss(self, coding: Ints, counts: Ints) -> float:
        known = np.flatnonzero(counts[: self.n_known])
        if not len(known):
            return 0.0
        if self.has_missing and counts[-1] and coding[-1] == coding[known[0]]:
            return float(counts.sum())
        blocks = coding[known]
        first = np.append(0, np.flatnonzero(np.diff(blocks)) + 1)
        last = np.append(first[1:], len(known)) - 1
        widths = self.values[known[last]] - self.values[known[first]]
        records = np.add.reduceat(counts[known], first)
        return float(records @ widths) / self.span if self.span > 0 else 0.0

    def splits(self, coding: Ints) -> Iterator[Ints]:
        if self.has_missing and self.n_known and coding[-1] == coding[0]:
            yield np.append(np.zeros(self.n_known, np.int64), 1)
            return
        known = coding[: self.n_known]
        starts = np.append(np.flatnonzero(np.diff(known, prepend=-1)), self.n_known)
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            for cut in self._cuts(first, last):
                finer = coding.copy()
                finer[cut:] += 1
                yield finer

    def others(self, coding: Ints) -> Iterator[Ints]:
        starts = np.flatnonzero(np.diff(coding[: self.n_known])) + 1
        for place, start in enumerate(starts.tolist()):
            united = coding.copy()
            united[start:] -= 1
            yield united
            below = starts[place - 1] if place else 0
            above = starts[place + 1] if place + 1 < len(starts) else self.n_known
            for moved in (start - 1, start + 1, (below + start) // 2, (start + above) // 2):
                if below < moved < above and moved != start:
                    finer = united.copy()
                    finer[moved:] += 1
                    yield finer

    def _cuts(self, first: int, last: int) -> list[int]:
        """Where to cut a run: everywhere, or at even shares of its records."""
        if last - first - 1 <= MOST_CUTS:
            return list(range(first + 1, last))
        below = np.cumsum(self.counts[first:last])
        shares = np.linspace(0, below[-1], MOST_CUTS + 2)[1:-1]
        cuts = first + 1 + np.searchsorted(below, shares)
        return sorted(set(np.clip(cuts, first + 1, last - 1).tolist()))

    def codings(self) -> list[Ints] | None:
        n_cuts = max(0, self.n_known - 1)
        if 2**n_cuts > MOST_CODINGS:
            return None
        found = [self.coarsest()] if self.has_missing and self.n_known else []
        for mask in range(2**n_cuts):
            known = np.append(0, np.cumsum([mask >> place & 1 for place in range(n_cuts)]))[: self.n_known]
            found.append(np.append(known, known[-1:].sum() + 1) if self.has_missing else known)
        return [coding.astype(np.int64) for coding in found]


@dataclass(frozen=True, eq=False)
class Levels(Domain):
    """Labels under a hierarchy: one level for all."""

    atoms: Ints
    counts: Ints
    nodes: Ints
    losses: Floats

    @classmethod
    def of(cls, column: TreeColumn, rows: Ints) -> Levels:
        nodes, below = column.tree
        atoms = column.places[rows]
        counts = np.bincount(atoms, minlength=nodes.shape[1])
        return cls(atoms, counts, nodes, (below - 1) / column.n_labels)

    def coarsest(self) -> Ints:
        root: Ints = self.nodes[-1]
        return root

    def level(self, coding: Ints) -> int:
        return int(np.flatnonzero((self.nodes == coding).all(axis=1))[0])

    def loss(self, coding: Ints, counts: Ints) -> float:
        return float(counts @ self.losses[self.level(coding)])

    def splits(self, coding: Ints) -> Iterator[Ints]:
        # Two levels may have the same nodes; the first of them is the finer one's neighbour.
        level = self.level(coding)
        if level:
            yield self.nodes[level - 1]

    def others(self, coding: Ints) -> Iterator[Ints]:
        yield from self.nodes[self.level(coding) + 1 :]

    def codings(self) -> list[Ints]:
        return list(self.nodes)


@dataclass(frozen=True, eq=False)
class Sets(Domain):
    """Labels without order or hierarchy: any partition of them into sets."""

    atoms: Ints
    counts: Ints
    loss_by_count: Floats

    @classmethod
    def of(cls, column: SetColumn, rows: Ints) -> Sets:
        atoms = column.codes[rows]
        return cls(atoms, np.bincount(atoms, minlength=column.n_labels), column.loss_by_count)

    def loss(self, coding: Ints, counts: Ints) -> float:
        records = np.bincount(coding, counts)
        labels = np.bincount(coding, counts > 0).astype(np.int64)
        return float(records @ self.loss_by_count[labels])

    def splits(self, coding: Ints) -> Iterator[Ints]:
        """One label on its own, or the more frequent half of a set apart from the others."""
        for block in np.flatnonzero(np.bincount(coding) > 1).tolist():
            inside = np.flatnonzero(coding == block)
            by_count = inside[np.argsort(-self.counts[inside], kind="stable")]
            parts = [by_count[i : i + 1] for i in range(len(inside))]
            if len(inside) > 3:
                half = int(np.searchsorted(np.cumsum(self.counts[by_count]), self.counts[inside].sum() / 2))
                parts.append(by_count[: min(max(half, 2), len(inside) - 2)])
            for part in parts:
                finer = coding.copy()
                finer[part] = coding.max() + 1
                yield finer

    def others(self, coding: Ints) -> Iterator[Ints]:
        blocks = np.unique(coding)
        for one, other in combinations(blocks.tolist(), 2):
            yield np.where(coding == other, one, coding)
        for label, block in enumerate(coding.tolist()):
            for other in blocks[blocks != block].tolist():
                moved = coding.copy()
                moved[label] = other
                yield moved

    def codings(self) -> list[Ints] | None:
        found = [np.zeros(0, np.int64)]
        for _ in range(self.size):
            found = [
                np.append(coding, block) for coding in found for block in range(coding.max(initial=-1) + 2)
            ]
            if len(found) > MOST_CODINGS:
                return None
        return found


def domain_of(column: Column, rows: Ints) -> Domain:
    """The codings of a column over some source rows."""
    if isinstance(column, NumericColumn):
        return Runs.of(column, rows)
    if isinstance(column, TreeColumn):
        return Levels.of(column, rows)
    assert isinstance(column, SetColumn)
    return Sets.of(column, rows)
