"""The coded problem that all methods share, its one loss, and the partition they return.

Liang & Samavi (2020), section 2: records with m quasi-identifiers are put into classes of at least k; the loss is the
sum over records and columns of weight times the share of the column that the class spans.

Records are numbered in the order of section 2.3 (columns by ascending variance (36), then by value), so that the answer of a deterministic
method does not depend on the order of the rows, and records that are equal in all quasi-identifiers are adjacent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver._mixing import GOLDEN, mixed
from louver.anonymize.columns import (
    Distance,
    LKind,
    QuasiColumn,
    Sensitive,
    SetColumn,
    TreeColumn,
    build_requirements,
    encode,
)
from louver.errors import InputError
from louver.optim.kernels.classes.diversity import (
    N_LIMITS,
    TABLES,
    Requirements,
    count_inplace,
    has_matches,
    is_diverse,
    n_sensitive_values,
)
from louver.optim.kernels.classes.loss import (
    FULL,
    INTERVAL,
    KIND,
    N_FIELDS,
    class_regions,
    count_matches,
    labels_loss,
    spread,
)
from louver.optim.status import Status

__all__ = [
    "SUPPRESSED",
    "AnonymizeProblem",
    "DistinctRecords",
    "Grouping",
    "Partition",
    "RecordUnits",
    "column_as_published",
    "renumbered",
]

SUPPRESSED = -1
"""Label of a record that is not published."""

OVERLAP_SLACK = 1e-9
"""Allowance for rounding in shares, on the safe side, because it lowers the bound."""

REFINEMENTS = 3
"""Number of rounds in which unordered categories are distinguished by the values with which they occur."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistinctRecords:
    """Distinct combinations of quasi-identifiers.

    Attributes
    ----------
    codes : int32 (p, m)
    start : int64 (p + 1,)
        Records start[i] to start[i + 1] - 1 are those of point i.
    of_record : int64 (n,)
    """

    codes: NDArray[np.int32]
    start: Ints
    of_record: Ints

    @property
    def multiplicity(self) -> Ints:
        return np.diff(self.start)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordUnits:
    """Which unit (household, business) each row of the source belongs to.

    Attributes
    ----------
    codes : int64 (rows,)
        From 0.
    n : int
        Number of distinct units.
    shared : tuple of int
        Positions of the quasi-identifiers that are constant within every unit.
    """

    codes: Ints
    n: int
    shared: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnonymizeProblem:
    """Records, coded and sorted; build one with `AnonymizeProblem.build`.

    Attributes
    ----------
    columns : tuple of QuasiColumn
        The quasi-identifiers in the order given, rows as in the source.
    sensitive : tuple of Sensitive
    k : int
        Minimum number of records in a class; with a population, of people who match it.
    max_suppressed : int
        How many records may be left out, each at the loss of all its values.
    rows : int64 (n,)
        Source row of each record.
    codes : int32 (n, m)
    geometry : int64
        The columns in the form used by the kernels of `louver.optim.kernels.classes.loss`.
    requirements : Requirements
    unit : float
        Loss of one unit.
    units : RecordUnits or None
        The units of the records, if k counts distinct units.
    """

    columns: tuple[QuasiColumn, ...]
    sensitive: tuple[Sensitive, ...]
    k: int
    max_suppressed: int
    rows: Ints
    codes: NDArray[np.int32]
    geometry: Ints
    requirements: Requirements
    unit: float
    units: RecordUnits | None = None

    @classmethod
    def build(
        cls,
        columns: Sequence[QuasiColumn],
        *,
        k: int,
        sensitive: Sequence[Sensitive] = (),
        max_suppressed: int = 0,
        population: Ints | None = None,
        is_k_map: bool = True,
        units: RecordUnits | None = None,
    ) -> AnonymizeProblem:
        """Code, sort and check.

        Parameters
        ----------
        columns : sequence of QuasiColumn
        k : int
        sensitive : sequence of Sensitive
        max_suppressed : int
        population : int64 (p,), optional
            Multiplicities of the population, whose values are the last p rows of every column.
        is_k_map : bool
            Whether k counts people of the population that a class matches, instead of records.
        units : RecordUnits, optional
            The units, if k counts distinct units.
        """
        if not columns:
            raise InputError("option --quasi is empty; name at least one column.", option="--quasi")
        if not all(np.isfinite(c.weight) and c.weight >= 0 for c in columns) or not any(
            c.weight for c in columns
        ):
            raise InputError(
                "option --weights needs weights of zero or more, not all zero.", option="--weights"
            )
        if k < 1:
            raise InputError("option -k must be at least 1.", option="-k")
        n = len(columns[0].ranks) - (0 if population is None else len(population))
        label_free = _label_free(columns, n)
        codes, geometry, unit = encode(label_free)
        is_k_map = is_k_map and population is not None
        if n < k and not is_k_map:
            raise InputError(f"the data have fewer than k = {k} records; choose a smaller -k.", option="-k")
        rows = _sorted_rows(label_free, sensitive, n)
        people, multiplicity, key = _people(codes[n:], population, geometry)
        matches = k if is_k_map else 0
        requirements = build_requirements(sensitive, rows, people, multiplicity, matches, key)
        for array in (rows, codes):
            array.flags.writeable = False
        return cls(
            columns=tuple(columns),
            sensitive=tuple(sensitive),
            k=k,
            max_suppressed=max_suppressed,
            rows=rows,
            codes=np.ascontiguousarray(codes[rows]),
            geometry=geometry,
            requirements=requirements,
            unit=unit,
            units=units,
        )

    @property
    def n_records(self) -> int:
        return len(self.codes)

    @property
    def least_size(self) -> int:
        """Minimum number of records in a class: k, or 1 if k counts people of the population."""
        return 1 if self.requirements.matches else self.k

    @property
    def least_publishable(self) -> int:
        """Minimum number of records in a publishable class: more than k if l or t cannot be met by k records.

        Notes
        -----
        l values, or an entropy of log l, need l records. Recursive diversity: a class has r records of the commonest value, at least l - 2
        of the next ones and more than r / c of the others, and the sum is least for r = 1. For t see `_least_distance`. A class without
        known values is close to any table, so t gives no bound if values are missing, nor if records may be left out, since closeness is
        then measured against the rest.
        """
        least = self.least_size
        for place, column in enumerate(self.sensitive):
            least = max(least, ceil(column.l or 0))
            if column.l_kind is LKind.RECURSIVE and column.l is not None and column.c is not None:
                least = max(least, min(self.n_records, ceil(column.l) - 1 + floor(1 / column.c) + 1))
            codes = self.requirements.sensitive[:, place]
            if column.t is None or self.max_suppressed:
                continue
            if len(codes) and codes.min() >= 0:
                first = int(self.requirements.limits[place * N_LIMITS + TABLES])
                shares = self.requirements.limits[first : first + column.n_values]
                while _least_distance(column, shares, least) > column.t + OVERLAP_SLACK and least < len(
                    codes
                ):
                    least += 1
        return least

    @property
    def is_plain(self) -> bool:
        """Whether size is the only requirement on a class, and no record may be left out."""
        return not self.sensitive and not self.requirements.matches and not self.max_suppressed

    @property
    def full_loss(self) -> int:
        """Units that a suppressed record loses."""
        return int(self.geometry[FULL : len(self.columns) * N_FIELDS : N_FIELDS].sum())

    def points(self) -> DistinctRecords:
        """Distinct records with their multiplicities."""
        is_new = np.ones(self.n_records, np.bool_)
        is_new[1:] = (self.codes[1:] != self.codes[:-1]).any(axis=1)
        start = np.append(np.flatnonzero(is_new), self.n_records).astype(np.int64)
        return DistinctRecords(codes=self.codes[start[:-1]], start=start, of_record=np.cumsum(is_new) - 1)

    def part(self, members: Ints) -> AnonymizeProblem:
        """The problem of some records, with size as the only requirement; its records are numbered as in `members`."""
        return replace(
            self,
            units=None,
            k=self.least_size,
            sensitive=(),
            max_suppressed=0,
            rows=self.rows[members],
            codes=self.codes[members],
            requirements=build_requirements((), members, self.codes[:0], np.zeros(0, np.int64), 0),
        )

    def with_k(self, k: int) -> AnonymizeProblem:
        """The problem with another k."""
        if k == self.k:
            return self
        matches = type(self.requirements.matches)(k if self.requirements.matches else 0)
        return replace(self, k=k, requirements=self.requirements._replace(matches=matches))

    def tiny(self) -> AnonymizeProblem:
        """A problem of two of these records, distinct if possible, that calls the same kernels as the whole problem."""
        out = 0 if self.is_plain else 1
        first = self.points().start[:2]  # if all records are equal, this ends with their number
        return replace(self.part(np.minimum(first, self.n_records - 1)), k=1, max_suppressed=out)

    def kept(self, members: Ints) -> AnonymizeProblem:
        """The problem of the published records, with the requirements on classes measured by these records alone.

        The whole table, by which the methods measure closeness, cannot be published too: the difference would reveal the
        sensitive values of the records left out.
        """
        requirements = self.requirements
        return replace(
            self,
            max_suppressed=0,
            rows=self.rows[members],
            codes=self.codes[members],
            requirements=build_requirements(
                self.sensitive,
                self.rows[members],
                requirements.population,
                requirements.multiplicity,
                int(requirements.matches),
                int(requirements.key),
            ),
        )

    def population_matches(self, answer: Grouping) -> Ints:
        """How many people of the population match each published group."""
        requirements = self.requirements
        people, multiplicity = requirements.population, requirements.multiplicity
        return self._matches(answer, people, multiplicity, int(requirements.key))[0]

    def record_matches(self, answer: Grouping) -> Ints:
        """How many published records each record matches, its own included."""
        points = self.points()
        return self._matches(answer, points.codes, points.multiplicity, -1)[1][points.of_record]

    def _matches(
        self, answer: Grouping, rows: NDArray[np.int32], multiplicity: Ints, key: int
    ) -> tuple[Ints, Ints]:
        members, starts = answer.grouped()
        groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(members))))
        lower, upper, words, _ = class_regions(self.geometry, self.codes[members], groups, len(starts))
        found: tuple[Ints, Ints] = count_matches(
            self.geometry, lower, upper, words, answer.sizes, rows, multiplicity, key
        )
        return found

    def class_loss(self, members: Sequence[int] | Ints) -> int:
        """Units that a class of these records loses."""
        members = np.asarray(members, np.int64)
        lower, upper, words, _ = self._region(members)
        return len(members) * int(spread(self.geometry, lower[0], upper[0], words[0]))

    def is_allowed(self, members: Sequence[int] | Ints) -> bool:
        """Whether these records may be published as a class."""
        members = np.asarray(members, np.int64)
        requirements = self.requirements
        counts = np.zeros(n_sensitive_values(requirements.limits), np.int64)
        for codes in requirements.sensitive[members]:
            count_inplace(requirements.limits, counts, codes, 1)
        if len(members) < self.least_size or not is_diverse(requirements.limits, counts):
            return False
        lower, upper, words, _ = self._region(members)
        return bool(has_matches(requirements, self.geometry, lower[0], upper[0], words[0]))

    def total_loss(self, labels: Ints) -> int:
        """Units that a partition loses; label -1 loses everything."""
        n_classes = int(labels.max(initial=-1)) + 1
        return int(labels_loss(self.geometry, self.codes, np.ascontiguousarray(labels, np.int64), n_classes))

    def column_losses(self, answer: Grouping) -> Floats:
        """Sum over records of weight x share of the column that the class spans, per column, in real numbers."""
        losses: Floats = self.lost_shares(answer) * np.array([column.weight for column in self.columns])
        return losses

    def lost_shares(self, answer: Grouping) -> Floats:
        """Sum over records of the share of each column that is lost, ignoring weights."""
        sizes = answer.sizes
        lost = np.full(len(self.columns), float(answer.n_suppressed))
        for place, given in enumerate(self.columns if len(sizes) else ()):
            members, starts, of_group = answer.covered(place)
            column = column_as_published(given, answer.levels[place] if answer.levels else None)
            lost[place] += float(sizes @ column.class_losses(self.rows[members], starts)[of_group])
        return lost

    def information_loss(self, answer: Grouping) -> float:
        """The loss (34) in real numbers; differs from the answer's units only by rounding."""
        return float(self.column_losses(answer).sum())

    def partition(
        self,
        labels: Ints,
        *,
        method: str,
        status: Status = Status.FEASIBLE,
        lower_bound: int | None = None,
        subproblem_sizes: Sequence[int] = (),
    ) -> Partition:
        """The answer of a method: classes numbered by their first record, with their loss."""
        labels = renumbered(np.asarray(labels, np.int64))
        labels.flags.writeable = False
        return Partition(
            labels=labels,
            loss=self.total_loss(labels),
            lower_bound=lower_bound,
            status=status,
            method=method,
            subproblem_sizes=tuple(subproblem_sizes),
        )

    def _region(self, members: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        region: tuple[Ints, Ints, Ints, Ints] = class_regions(
            self.geometry, self.codes[members], np.zeros(len(members), np.int64), 1
        )
        return region


class Grouping(Protocol):
    """The result of a method: groups of records, and the group as which each record is published.

    Attributes
    ----------
    labels : int64 (n,)
        The group as which each record is published; -1 is suppressed.
    sizes : int64 (groups,)
        How many records are published as each group.
    """

    @property
    def labels(self) -> Ints: ...
    @property
    def loss(self) -> int: ...
    @property
    def lower_bound(self) -> int | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def method(self) -> str: ...
    @property
    def sizes(self) -> Ints: ...
    @property
    def n_suppressed(self) -> int: ...
    def grouped(self) -> tuple[Ints, Ints]:
        """Records of all groups, and where each group starts among them."""
        ...

    @property
    def levels(self) -> tuple[Ints | None, ...]:
        """Level of a hierarchy of each value that a column covers (-1: the lowest node); empty where groups choose their own."""
        ...

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """Records covered by the published values of a column, where each value's records start, and the value of each group."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partition:
    """Classes of records as a method found them.

    Attributes
    ----------
    labels : int64 (n,)
        Class of each record of the problem, from 0 by first record; -1 is suppressed.
    loss : int
        Units lost.
    lower_bound : int or None
        Units that every partition loses at least; None if no bound is known.
    status : Status
    method : str
    subproblem_sizes : tuple of int
        Records in each sub-problem of Split & Carry (Table 8).
    """

    labels: Ints
    loss: int
    lower_bound: int | None = None
    status: Status = Status.FEASIBLE
    method: str
    subproblem_sizes: tuple[int, ...] = field(default=())

    @property
    def n_classes(self) -> int:
        return int(self.labels.max(initial=-1)) + 1

    @property
    def n_suppressed(self) -> int:
        return int((self.labels == SUPPRESSED).sum())

    @property
    def sizes(self) -> Ints:
        """Number of records in each class."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_classes)

    @property
    def gap(self) -> float | None:
        """How far the loss may be above the optimum, relative to the bound; None if no bound is known."""
        if self.lower_bound is None or (self.lower_bound <= 0 and self.loss > 0):
            return None
        return 0.0 if self.loss == 0 else self.loss / self.lower_bound - 1

    def grouped(self) -> tuple[Ints, Ints]:
        """Records by class, and where each class starts among them."""
        members = np.argsort(self.labels, kind="stable")[self.n_suppressed :]
        return members, np.cumsum(self.sizes) - self.sizes

    @property
    def levels(self) -> tuple[Ints | None, ...]:
        return ()

    def covered(self, column: int) -> tuple[Ints, Ints, Ints]:
        """The records of each class, for any column."""
        members, starts = self.grouped()
        return members, starts, np.arange(len(starts))

    def classes(self) -> list[Ints]:
        """Records of each class."""
        members, starts = self.grouped()
        return list(np.split(members, starts[1:])) if len(starts) else []


def _least_distance(column: Sensitive, shares: Floats, n: int) -> float:
    """The least distance that a class of n records may have from a table with these shares of values.

    Notes
    -----
    EQUAL: with c_v records of value v it is 1 - sum of min(q_v, c_v / n); the best counts are found record by record, since every min is
    concave in c_v. ORDERED: the sum of |j_v / n - G_v| over all cuts between values, with j_v records and the share G_v of the table below;
    any ascending j is possible, and the nearest whole numbers are best. HIERARCHICAL: the mean over heights of EQUAL of the nodes, each of
    which is at least its own least.
    """
    if column.distance is Distance.EQUAL:
        return 1 - _most_overlap(shares, n)
    if column.distance is Distance.ORDERED:
        below = np.cumsum(shares)[:-1] * n
        return float(np.abs(below - np.rint(below)).sum()) / (n * max(1, column.n_values - 1))
    nodes = [np.asarray(level, np.int64) for level in column.ancestors[:-1]]
    every: list[Floats] = [shares, *(np.bincount(level, shares).astype(np.float64) for level in nodes)]
    return float(np.mean([1 - _most_overlap(one, n) for one in every]))


def _most_overlap(shares: Floats, n: int) -> float:
    """The greatest sum of min(q_v, c_v / n) over whole numbers c_v that add up to n."""
    whole = np.floor(shares * n)
    left = n - int(whole.sum())
    return float(whole.sum() / n + np.sort(shares - whole / n)[::-1][:left].sum())


def _people(
    codes: NDArray[np.int32], multiplicity: Ints | None, geometry: Ints
) -> tuple[NDArray[np.int32], Ints, int]:
    """The population with equal people merged, ascending by the interval column with the most distinct values."""
    if multiplicity is None or not len(codes):
        return np.ascontiguousarray(codes), np.zeros(0, np.int64), -1
    m = codes.shape[1]
    kinds = geometry[: m * N_FIELDS].reshape(m, N_FIELDS)[:, KIND]
    n_values = {j: len(np.unique(codes[:, j])) for j in range(m) if kinds[j] == INTERVAL}
    key = max(n_values, key=lambda j: n_values[j], default=-1)
    order = [max(key, 0), *(j for j in range(m) if j != max(key, 0))]
    people, of_row = np.unique(codes[:, order], axis=0, return_inverse=True)
    total = np.zeros(len(people), np.int64)
    np.add.at(total, of_row.reshape(-1), multiplicity)
    return np.ascontiguousarray(people[:, np.argsort(order)]), total, key


def column_as_published(column: QuasiColumn, level: Ints | None) -> QuasiColumn:
    """The column itself, or with given hierarchy levels."""
    return replace(column, level=level) if isinstance(column, TreeColumn) and level is not None else column


def renumbered(labels: Ints) -> Ints:
    """Classes numbered by their first record, without gaps."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    has_suppressed = len(labels) > 0 and int(labels.min()) == SUPPRESSED
    order = np.argsort(first[has_suppressed:])
    number = np.full(len(first), SUPPRESSED, np.int64)
    number[has_suppressed:][order] = np.arange(len(order))
    return number[inverse.reshape(-1)]


def _sorted_rows(columns: Sequence[QuasiColumn], sensitive: Sequence[Sensitive], n: int) -> Ints:
    """Rows in the order of section 2.3; equal records by their sensitive values, then as in the source.

    Notes
    -----
    Implements: Liang & Samavi (2020), section 2.3 and (36): raw variance over squared weight, ascending; columns of weight zero come last.
    """
    ranks = [column.ranks[:n] for column in columns]
    spreads = []
    for column, values in zip(columns, ranks, strict=True):
        # Sorted, because a floating-point sum depends on its order, and two columns with the same values must remain tied.
        known = np.sort(values[~np.isnan(values)])
        variance = float(known.var()) if known.size else 0.0
        spreads.append(variance / column.weight**2 if column.weight else np.inf)
    keys = [ranks[j] for j in np.argsort(spreads, kind="stable")] + [s.codes[:n] for s in sensitive]
    return np.lexsort(keys[::-1]).astype(np.int64)


def _label_free(columns: Sequence[QuasiColumn], n: int) -> list[QuasiColumn]:
    """The columns, with unordered categories numbered by frequency and by the values with which they occur.

    Thus the names and alphabetical order of categories do not change the answer, unless the data are symmetric in them. Each
    category has a signature, refined by those of the values in the same rows (colour refinement).
    """
    nominal = {j: column for j, column in enumerate(columns) if isinstance(column, SetColumn)}
    counts = {j: np.bincount(c.codes[:n] + 1, minlength=c.n_labels + 1) for j, c in nominal.items()}
    signatures = {j: _mixed(count.astype(np.uint64), j) for j, count in counts.items()}
    for _ in range(REFINEMENTS):
        row_keys = [
            signatures[j][nominal[j].codes[:n] + 1]
            if j in nominal
            else _mixed(c.ranks[:n].view(np.uint64), j)
            for j, c in enumerate(columns)
        ]
        everything = np.sum(row_keys, axis=0, dtype=np.uint64)
        for j, column in nominal.items():
            refined = signatures[j].copy()
            np.add.at(refined, column.codes[:n] + 1, _mixed(everything - row_keys[j], j))
            signatures[j] = _mixed(refined, j)
    renumbered = list(columns)
    for j, column in nominal.items():
        order = np.lexsort([np.arange(column.n_labels), signatures[j][1:], -counts[j][1:]])
        number = np.empty(column.n_labels + 1, np.int64)
        number[order], number[-1] = np.arange(column.n_labels), -1
        renumbered[j] = replace(column, codes=number[column.codes])
    return renumbered


def _mixed(keys: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Well-mixed 64-bit keys."""
    return mixed(keys + np.uint64(GOLDEN * (salt + 1) % 2**64))
