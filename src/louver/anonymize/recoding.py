"""One recoding for the whole file: the codings of each column, the loss of a recoding, and its result.

A *coding* gives every value of a column, its *atom*, a block, and all records of a block publish the same: numbers and
ordered labels are cut into runs of neighbours, labels under a hierarchy climb to one level of it, other labels are put
into sets. The codings of one column are partially ordered from the coarsest, which has one block, to the finest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import LKind, NumericColumn, QuasiColumn, SetColumn, TreeColumn
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, Partition, renumbered
from louver.optim.kernels.classes.recoding import diverse_groups, group_points
from louver.optim.status import Status

__all__ = ["Codings", "ColumnCodings", "Exceptions", "Recoded", "Recoding", "RecodingSpace", "domain_of"]

Codings = tuple[Ints, ...]
"""One coding per column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoding:
    """A recoding that may be published, with its loss: `loss` includes the records left out, at full loss."""

    codings: Codings
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exceptions:
    """Records whose classes are generalised one by one: all others have one recoding.

    Attributes
    ----------
    members : int64
        Records of the problem, ascending.
    classes : Partition
        Classes of these.
    """

    members: Ints
    classes: Partition


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecodingSpace:
    """The problem in the form used for recoding whole columns.

    Attributes
    ----------
    domains : tuple of ColumnCodings
    weights : float64 (m,)
    atoms : int32 (p, m)
        Distinct combinations of values.
    multiplicity : int64 (p,)
    of_record : int64 (n,)
        The combination that each record of the problem has.
    problem : AnonymizeProblem
    max_out : int
        Records that may be in classes too small to be published by the recoding.
    out_share : float
        The loss of each of these records, as a share of all its values: 1 if it is left out, less if it is an exception to the recoding.
    """

    domains: tuple[ColumnCodings, ...]
    weights: Floats
    atoms: NDArray[np.int32]
    multiplicity: Ints
    of_record: Ints
    problem: AnonymizeProblem
    max_out: int
    out_share: float = 1.0

    @classmethod
    def of(cls, problem: AnonymizeProblem) -> RecodingSpace:
        domains = tuple(domain_of(column, problem.rows) for column in problem.columns)
        records = np.stack([domain.atoms for domain in domains], axis=1).astype(np.int32)
        group, sizes = _divided(
            records, [np.arange(d.size) for d in domains], np.ones(len(records), np.int64)
        )
        first = np.empty(len(sizes), np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        return cls(
            domains=domains,
            weights=np.array([column.weight for column in problem.columns]),
            atoms=records[first],
            multiplicity=sizes,
            of_record=group,
            problem=problem,
            max_out=problem.max_suppressed,
        )

    @property
    def coarsest(self) -> Codings:
        return tuple(domain.coarsest() for domain in self.domains)

    @property
    def has_bound(self) -> bool:
        """Whether every recoding loses at least as much as its columns would with no record left out."""
        is_tree = all(d.level(d.coarsest()) is not None for d in self.domains)
        return self.max_out == 0 or (is_tree and self.out_share >= 1)

    @property
    def is_monotone(self) -> bool:
        """Whether no coarser recoding leaves more records out.

        The union of publishable classes meets every requirement, so no further record has to be left out. But where
        records may be left out, entropy and closeness may fail for the union of a class that is published and one that is not.
        """
        is_counting = all(one.t is None and one.l_kind is LKind.DISTINCT for one in self.problem.sensitive)
        return self.max_out == 0 or is_counting

    def least_loss(self, codings: Codings) -> float:
        """Lower bound on the loss of every record: exact if no record is left out, only a bound for hierarchies."""
        return float(sum(self.column_loss(place, coding) for place, coding in enumerate(codings)))

    def column_loss(self, place: int, coding: Ints) -> float:
        """Loss of a column if no record is left out."""
        domain = self.domains[place]
        return float(self.weights[place]) * domain.loss(coding, domain.counts)

    def groups(self, codings: Codings) -> tuple[Ints, Ints, Bools]:
        """The group of each point, the records in each group, and which groups may be published."""
        problem = self.problem
        group, sizes = _divided(self.atoms, codings, self.multiplicity)
        passed = sizes >= problem.least_size
        if problem.sensitive:
            needs = problem.requirements
            passed &= diverse_groups(needs.limits, needs.sensitive, group[self.of_record], sizes)
        return group, sizes, passed

    def judged(self, codings: Codings) -> Recoding | None:
        """The recoding, with its loss; None if too many records would be left out.

        Classes that may not be published are left out, and the loss of the others is measured from published values: the ends of an
        interval are those of published records.
        """
        group, sizes, passed = self.groups(codings)
        n_out = int(sizes[~passed].sum())
        if n_out > self.max_out:
            return None
        if n_out == 0:
            return Recoding(codings=codings, loss=self.least_loss(codings))
        loss = n_out * self.out_share * float(self.weights.sum())
        return Recoding(codings=codings, loss=loss + self.kept_loss(codings, passed[group]))

    def kept_loss(self, codings: Codings, is_kept: Bools) -> float:
        """Loss of the records that a recoding publishes, given for each point whether it does."""
        kept, loss = self.multiplicity * is_kept, 0.0
        for place, (domain, coding) in enumerate(zip(self.domains, codings, strict=True)):
            counts = np.bincount(self.atoms[:, place], kept, minlength=domain.size).astype(np.int64)
            loss += float(self.weights[place]) * domain.loss(coding, counts)
        return loss

    def answer(
        self,
        best: Recoding,
        *,
        method: str,
        status: Status,
        lower_bound: float | None,
        exceptions: Exceptions | None = None,
    ) -> Recoded:
        """The result of a recoding, with separate classes for the exceptions to it."""
        group, sizes, passed = self.groups(best.codings)
        labels = np.where(passed[group], group, SUPPRESSED)[self.of_record]
        is_exception = np.zeros(len(labels), np.bool_)
        if exceptions is not None:
            own = exceptions.classes.labels
            labels[exceptions.members] = np.where(own >= 0, own + len(sizes), SUPPRESSED)
            is_exception[exceptions.members] = True
        labels = renumbered(labels)
        of_class = np.zeros(int(labels.max(initial=-1)) + 1, np.bool_)
        of_class[labels[labels >= 0]] = is_exception[labels >= 0]
        codings = zip(self.domains, best.codings, strict=True)
        unit = self.problem.unit
        return Recoded(
            labels=labels,
            blocks=np.stack([coding[domain.atoms] for domain, coding in codings]),
            column_levels=tuple(
                d.level(coding) for d, coding in zip(self.domains, best.codings, strict=True)
            ),
            is_exception=of_class,
            loss=round(best.loss / unit),
            lower_bound=None if lower_bound is None else round(lower_bound / unit),
            status=status,
            method=method,
        )


def _divided(atoms: NDArray[np.int32], codings: Sequence[Ints], weight: Ints) -> tuple[Ints, Ints]:
    """The group of each point, equal where all blocks are equal, and the records in each group."""
    group, sizes = np.zeros(len(atoms), np.int64), np.empty(len(atoms), np.int64)
    start = np.cumsum([0, *(len(coding) for coding in codings[:-1])])
    n_blocks = np.array([int(coding.max(initial=0)) + 1 for coding in codings])
    blocks = np.concatenate(codings).astype(np.int32)
    n_groups = 1
    for columns in _words(n_blocks.tolist(), len(atoms)):
        n_groups = group_points(atoms, blocks, start, n_blocks, columns, weight, group, sizes)
    return group, sizes[:n_groups]


def _words(n_blocks: Sequence[int], n_points: int) -> list[Ints]:
    """Columns with more than one block, divided so that the numbers of their combinations with groups of points fit in 63 bits."""
    parts: list[list[int]] = [[]]
    n_keys = n_points
    for column, n in enumerate(n_blocks):
        if n_keys * n >= 2**63:
            parts.append([])
            n_keys = n_points
        if n > 1:
            parts[-1].append(column)
            n_keys *= n
    return [np.array(part, np.int64) for part in parts]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recoded:
    """Records recoded column by column; a `Grouping`.

    Attributes
    ----------
    labels : int64 (n,)
        Class of each record, from 0 by first record; -1 is suppressed.
    blocks : int64 (m, n)
        Block of each record in each column.
    column_levels : tuple of int or None
        Level of each column with a hierarchy.
    is_exception : bool (classes,)
        Whether a class is generalised by itself, as an exception to the recoding.
    """

    labels: Ints
    blocks: Ints
    column_levels: tuple[int | None, ...]
    is_exception: Bools
    loss: int
    lower_bound: int | None
    status: Status
    method: str

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.labels[self.labels >= 0])

    @property
    def n_suppressed(self) -> int:
        return int((self.labels == SUPPRESSED).sum())

    def grouped(self) -> tuple[Ints, Ints]:
        """Records by class, and where each class starts among them."""
        members = np.argsort(self.labels, kind="stable")[self.n_suppressed :]
        return members, np.cumsum(self.sizes) - self.sizes

    @property
    def levels(self) -> tuple[Ints | None, ...]:
        n_own = int(self.is_exception.sum())
        found: list[Ints | None] = []
        for column, level in enumerate(self.column_levels):
            n_blocks = len(self.covered(column)[1]) - n_own
            found.append(None if level is None else np.repeat([level, -1], [n_blocks, n_own]))
        return tuple(found)

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """The published records by block and then by exceptional class, where each of these starts, and the one that each class uses."""
        kept = np.flatnonzero(self.labels >= 0)
        of_class = self.labels[kept]
        keys = np.where(
            self.is_exception[of_class],
            int(self.blocks[column].max()) + 1 + of_class,
            self.blocks[column, kept],
        )
        _, of_kept = np.unique(keys, return_inverse=True)
        of_kept = of_kept.reshape(-1)
        sizes = np.bincount(of_kept)
        block_of = np.empty(len(self.sizes), np.int64)
        block_of[of_class] = of_kept
        return kept[np.argsort(of_kept, kind="stable")], np.cumsum(sizes) - sizes, block_of


MOST_CODINGS = 300
"""A column with more codings than this is not searched exhaustively."""

MOST_CUTS = 32
"""Number of positions at which a split of a run is tried."""


class ColumnCodings(ABC):
    """A column's values as atoms 0, 1, 2, ..., and how many records have each.

    Attributes
    ----------
    atoms : int64 (n,)
        The atom of each given source row.
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
        """Sum over records (`counts` of each atom) of the share lost in their block, based on the values that occur."""

    @abstractmethod
    def splits(self, coding: Ints) -> Iterator[Ints]:
        """Codings immediately below a coding: one block divided."""

    @abstractmethod
    def others(self, coding: Ints) -> Iterator[Ints]:
        """Codings near a coding or immediately above it: a boundary moved, a value in another block, two blocks united."""

    @abstractmethod
    def codings(self) -> list[Ints] | None:
        """All codings; None if there are too many."""

    def level(self, coding: Ints) -> int | None:
        """The level of the hierarchy that a coding corresponds to, if any."""
        return None


@dataclass(frozen=True, eq=False)
class IntervalCodings(ColumnCodings):
    """Numbers or ordered labels, cut into runs; missing values, the last atom, stay separate unless everything is one block."""

    atoms: Ints
    counts: Ints
    values: Floats
    span: float
    has_missing: bool

    @classmethod
    def of(cls, column: NumericColumn, rows: Ints) -> IntervalCodings:
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
class LevelCodings(ColumnCodings):
    """Labels under a hierarchy: the same level for all of them."""

    atoms: Ints
    counts: Ints
    nodes: Ints
    losses: Floats

    @classmethod
    def of(cls, column: TreeColumn, rows: Ints) -> LevelCodings:
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
        # Two levels may have the same nodes; the first of them is the neighbour of the finer level.
        level = self.level(coding)
        if level:
            yield self.nodes[level - 1]

    def others(self, coding: Ints) -> Iterator[Ints]:
        yield from self.nodes[self.level(coding) + 1 :]

    def codings(self) -> list[Ints]:
        return list(self.nodes)


@dataclass(frozen=True, eq=False)
class SetCodings(ColumnCodings):
    """Labels without order or hierarchy: any partition of them into sets."""

    atoms: Ints
    counts: Ints
    loss_by_count: Floats

    @classmethod
    def of(cls, column: SetColumn, rows: Ints) -> SetCodings:
        atoms = column.codes[rows]
        return cls(atoms, np.bincount(atoms, minlength=column.n_labels), column.loss_by_count)

    def loss(self, coding: Ints, counts: Ints) -> float:
        records = np.bincount(coding, counts)
        labels = np.bincount(coding, counts > 0).astype(np.int64)
        return float(records @ self.loss_by_count[labels])

    def splits(self, coding: Ints) -> Iterator[Ints]:
        """Separate one label, or the more frequent half of a set, from the others."""
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


def domain_of(column: QuasiColumn, rows: Ints) -> ColumnCodings:
    """The codings of a column over the given source rows."""
    if isinstance(column, NumericColumn):
        return IntervalCodings.of(column, rows)
    if isinstance(column, TreeColumn):
        return LevelCodings.of(column, rows)
    assert isinstance(column, SetColumn)
    return SetCodings.of(column, rows)
