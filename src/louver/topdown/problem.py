"""The problem that estimation solves: regions, cells, queries and public knowledge. All of this is public.

A `Design` is a checked TopDown spec: everything public that measuring and estimating need.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.data.regions import RegionTree
from louver.errors import InputError
from louver.privacy.budget import Loss
from louver.schema.attribute import Attribute
from louver.schema.spec import SourceOptions, Spec
from louver.schema.validate import validated
from louver.topdown.knowledge.implied import Implied
from louver.topdown.options import TopDownOptions
from louver.topdown.spine.arrange import ArrangedSpine

__all__ = [
    "DETAILED",
    "UNMEASURED",
    "Covariate",
    "Design",
    "Evidence",
    "EvidenceSource",
    "Families",
    "Histograms",
    "NoisyCounts",
    "Problem",
    "Query",
    "RegionNoise",
    "SparseLevel",
    "Statement",
    "Workload",
    "add_levels",
    "region_range",
    "split_batches",
]

BATCH_VALUES = 1 << 19  # noisy values of one batch, about 4 MiB; never depends on the number of workers
ADDED_AT_ONCE = 1 << 22  # number of counts that are added up together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A marginal: every cell counts in one row of the answer.

    Parameters
    ----------
    name : str
    row_of : ndarray of int64, shape (cells,)
        The row each cell counts in.
    n_rows : int
    axes : tuple of int or None
        Attributes whose labels form the rows, all labels kept distinct; None if labels are merged.
    """

    name: str
    row_of: Ints
    n_rows: int
    axes: tuple[int, ...] | None = None
    is_detailed: bool = field(init=False)
    """Whether the rows are the cells themselves, in order."""

    def __post_init__(self) -> None:
        self.row_of.flags.writeable = False
        is_detailed = np.array_equal(self.row_of, np.arange(self.n_rows))
        object.__setattr__(self, "is_detailed", is_detailed)

    def answer(self, histograms: SparseLevel) -> Ints:
        """Answers for every region, (regions, rows)."""
        region = np.repeat(np.arange(histograms.n_regions), np.diff(histograms.start))
        place = region * self.n_rows + self.row_of[histograms.cell]
        answers = np.zeros(histograms.n_regions * self.n_rows, dtype=np.int64)
        np.add.at(answers, place, histograms.count)
        return answers.reshape(-1, self.n_rows)


UNMEASURED = 1e-9
"""Precision, relative to the usual one, used for a query without an answer: almost zero, so that sums stay finite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionNoise:
    """Noise that differs between the regions of a level.

    Parameters
    ----------
    kinds : ndarray of float64, shape (kinds, queries)
        Inverse variances, relative to the usual ones; 0 for a query that was not measured.
    kind_of : ndarray of int, shape (regions,)
        The kind of every region.
    """

    kinds: Floats
    kind_of: NDArray[np.integer[Any]]

    def precisions(self, start: int, stop: int) -> Floats:
        """Relative inverse variances (regions, queries) of the regions start to stop."""
        found: Floats = np.maximum(self.kinds, UNMEASURED)[self.kind_of[start:stop]]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The queries measured at one level, and the variance of each noisy value."""

    queries: tuple[Query, ...]
    variances: tuple[float, ...]
    noise: str = "laplace"
    """Name of the distribution of the noise."""
    by_region: RegionNoise | None = None
    """How regions deviate from these variances; None if none does."""

    @property
    def n_values(self) -> int:
        """Noisy values per region."""
        return sum(query.n_rows for query in self.queries)

    @property
    def is_even(self) -> bool:
        """Whether every region that was measured has the usual variances."""
        if self.by_region is None:
            return True
        used = self.by_region.kinds[np.unique(self.by_region.kind_of)]
        return bool((used[(used > 0).any(axis=1)] == 1.0).all())

    def precisions(self, start: int, stop: int) -> tuple[Floats, ...]:
        """Inverse variances of each query in the regions start to stop: arrays (regions, 1), or (1, 1) if all are equal."""
        usual = [1.0 / variance for variance in self.variances]
        if self.by_region is None:
            return tuple(np.full((1, 1), one) for one in usual)
        found = self.by_region.precisions(start, stop) * np.array(usual)
        return tuple(found[:, place : place + 1] for place in range(len(usual)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """The objective for some regions: the sum of weight x (answer - value)^2 over all rows of all queries.

    Parameters
    ----------
    queries : tuple of Query
        Must include the detailed query.
    values : tuple of ndarray, shape (regions, rows)
        One for each query.
    weights : tuple of ndarray of float64
        Inverse variances, likewise. An axis of length one stands for all regions or rows.
    """

    queries: tuple[Query, ...]
    values: tuple[Ints | Floats, ...]
    weights: tuple[Floats, ...]

    @classmethod
    def measured(cls, workload: Workload, noisy: tuple[Ints, ...], start: int) -> Evidence:
        """The noisy answers themselves, of consecutive regions from `start` on."""
        weights = workload.precisions(start, start + len(noisy[0]))
        return cls(queries=workload.queries, values=noisy, weights=weights)

    @property
    def detailed(self) -> int:
        """Position of the query for all cells."""
        return next(i for i, query in enumerate(self.queries) if query.is_detailed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariate:
    """A public number for every leaf that correlates with how many people live there.

    Parameters
    ----------
    column, file : str
        The column and file of the numbers.
    sha256 : str
        Hash of that file, which is public.
    cells : ndarray of bool, shape (cells,)
        The people that it correlates with.
    values : ndarray of float64, shape (leaves,)
        Not negative, in the order of the spine's leaves.
    """

    column: str
    file: str
    sha256: str
    cells: Bools
    values: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """Everything that estimation may use except the noisy counts.

    Parameters
    ----------
    spine : RegionTree
    n_cells : int
    is_possible : ndarray of bool, shape (cells,)
        False for structural zeros.
    type_of : ndarray of int64, shape (cells,)
        The type each cell belongs to.
    implied : Implied
        Bounds on sets of types, for every region.
    workloads : tuple of Workload
        One for each level.
    shape : tuple of int
        Labels of each attribute; empty where the cells are not known to be combinations.
    covariates : tuple of Covariate
        Public numbers that the prior of the leaves may use.
    """

    spine: RegionTree
    n_cells: int
    is_possible: Bools
    type_of: Ints
    implied: Implied
    workloads: tuple[Workload, ...]
    shape: tuple[int, ...] = ()
    covariates: tuple[Covariate, ...] = ()
    has_exact_leaves: bool = field(init=False)
    """Whether, for some type, the number of people is known exactly in most leaves that can have any."""

    def __post_init__(self) -> None:
        stated = self.implied.statements[-1]
        inhabited = stated.upper > 0
        exact = inhabited & (stated.lower == stated.upper)
        has_exact_leaves = bool((2 * exact.sum(axis=0) > np.maximum(inhabited.sum(axis=0), 1)).any())
        object.__setattr__(self, "has_exact_leaves", has_exact_leaves)
        if len(self.workloads) != self.spine.n_levels:
            raise InputError("every level needs a workload; give one for each.", option="workload")
        for name, workload in zip(self.spine.names, self.workloads, strict=True):
            if not any(query.is_detailed for query in workload.queries):
                message = f'level "{name}" does not measure the detailed cells; add a share for them.'
                raise InputError(message, option="workload")


class Histograms(Protocol):
    """Histograms of all regions of a level, wherever they are stored."""

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        ...

    def part(self, first: int, last: int) -> SparseLevel:
        """The regions first to last."""
        ...


class NoisyCounts(Protocol):
    """A source of noisy answers."""

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for the regions start to stop, arrays (regions, rows)."""
        ...


class EvidenceSource(Protocol):
    """A source of evidence in place of a region's own noisy answers."""

    def read(self, level: int, start: int, stop: int) -> Evidence:
        """Evidence about the regions of a level from `start` to `stop`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparseLevel:
    """Histograms of consecutive regions, zeros left out.

    Region i has the counts `count[start[i]:start[i + 1]]` in the cells `cell[...]`, which ascend.
    """

    start: Ints
    cell: Ints
    count: Ints

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.start) - 1

    @property
    def people(self) -> Ints:
        """People of every region."""
        return np.diff(np.concatenate([[0], np.cumsum(self.count)])[self.start])

    def part(self, first: int, last: int) -> SparseLevel:
        """The regions first to last."""
        span = slice(self.start[first], self.start[last])
        return SparseLevel(
            start=self.start[first : last + 1] - self.start[first],
            cell=self.cell[span],
            count=self.count[span],
        )

    def take(self, regions: Ints) -> SparseLevel:
        """Some regions, in any order, possibly with repeats."""
        length = np.diff(self.start)[regions]
        start = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        place = np.arange(start[-1]) + np.repeat(self.start[regions] - start[:-1], length)
        return SparseLevel(start=start, cell=self.cell[place], count=self.count[place])

    def to_dense(self, n_cells: int) -> Ints:
        """All counts, (regions, cells)."""
        dense = np.zeros((self.n_regions, n_cells), dtype=np.int64)
        dense[np.repeat(np.arange(self.n_regions), np.diff(self.start)), self.cell] = self.count
        return dense

    def add_up(self, starts: Ints, n_cells: int) -> SparseLevel:
        """Sums of consecutive regions: parent i holds the regions starts[i] to starts[i + 1]."""
        held = self.start[starts]  # where the counts of each parent begin
        parts, first = [], 0
        while first < len(starts) - 1:
            last = max(first + 1, int(np.searchsorted(held, held[first] + ADDED_AT_ONCE, side="right")) - 1)
            parts.append(self._added(held[first : last + 1], n_cells))
            first = last
        return SparseLevel.concatenate(parts)

    def _added(self, held: Ints, n_cells: int) -> SparseLevel:
        """Sums of the counts held[i] to held[i + 1]."""
        own = slice(held[0], held[-1])
        parent = np.repeat(np.arange(len(held) - 1), np.diff(held))
        place, group = np.unique(parent * n_cells + self.cell[own], return_inverse=True)
        count = np.zeros(len(place), dtype=np.int64)
        np.add.at(count, group, self.count[own])
        start = np.searchsorted(place // n_cells, np.arange(len(held)))
        return SparseLevel(start=start.astype(np.int64), cell=place % n_cells, count=count)

    @classmethod
    def from_dense(cls, counts: Ints) -> SparseLevel:
        """The nonzero counts of an array (regions, cells)."""
        region, cell = np.nonzero(counts)
        start = np.searchsorted(region, np.arange(len(counts) + 1))
        return cls(start=start.astype(np.int64), cell=cell.astype(np.int64), count=counts[region, cell])

    @classmethod
    def concatenate(cls, parts: Sequence[SparseLevel]) -> SparseLevel:
        """Regions of several parts, concatenated."""
        lengths = np.concatenate([np.diff(part.start) for part in parts])
        return cls(
            start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            cell=np.concatenate([part.cell for part in parts]),
            count=np.concatenate([part.count for part in parts]),
        )


def add_levels(spine: RegionTree, leaves: SparseLevel, n_cells: int) -> tuple[SparseLevel, ...]:
    """Histograms of every level, the root first, from those of the leaves."""
    levels = [leaves]
    for starts in reversed(spine.starts):
        levels.insert(0, levels[0].add_up(starts, n_cells))
    return tuple(levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Families:
    """Consecutive parents, their children, and the evidence about the children.

    Parameters
    ----------
    level : int
        Level of the children.
    first_parent, first_child : int
        Numbers of the first parent and child within their levels.
    parents : SparseLevel or None
        Histograms of the parents; None for the root, which has none.
    child_start : ndarray of int64
        Parent i has the children child_start[i] to child_start[i + 1], counted from first_child.
    evidence : Evidence
        Evidence to which the children are fitted.
    lower, upper : ndarray of int64, shape (children, 2^types)
        Bounds on sets of types; without columns where the level is not constrained.
    """

    level: int
    first_parent: int
    first_child: int
    parents: SparseLevel | None
    child_start: Ints
    evidence: Evidence
    lower: Ints
    upper: Ints

    @property
    def n_families(self) -> int:
        """Number of parents."""
        return len(self.child_start) - 1

    @property
    def is_bounded(self) -> bool:
        """Whether any child is constrained."""
        return bool(self.upper.shape[1] > 0)

    @classmethod
    def gather(
        cls,
        problem: Problem,
        level: int,
        parents: SparseLevel | None,
        span: tuple[int, int],
        noisy: NoisyCounts,
        tree: EvidenceSource | None = None,
    ) -> Families:
        """Collect the children of the parents `span` (all histograms of their level given), or the root.

        They are fitted to their noisy answers, or to the evidence that `tree` provides in place of these.
        """
        first, last = span
        start, stop = region_range(problem.spine, level, span)
        child_start = np.array([0, 1], dtype=np.int64)
        if level > 0:
            child_start = problem.spine.starts[level - 1][first : last + 1] - start
        lower = upper = np.zeros((stop - start, 0), dtype=np.int64)
        if problem.implied.constrained[level]:
            lower, upper = problem.implied.bounds(level, start, stop)
        return cls(
            level=level,
            first_parent=first,
            first_child=start,
            parents=None if parents is None else parents.part(first, last),
            child_start=child_start,
            evidence=Evidence.measured(problem.workloads[level], noisy.read(level, start, stop), start)
            if tree is None
            else tree.read(level, start, stop),
            lower=np.ascontiguousarray(lower),
            upper=np.ascontiguousarray(upper),
        )

    def cells_of(self, family: int, is_possible: Bools) -> tuple[Ints, Ints | None]:
        """Cells the children of one parent may fill, and the parent's counts in them (None for the root)."""
        if self.parents is None:
            return np.flatnonzero(is_possible), None
        span = slice(self.parents.start[family], self.parents.start[family + 1])
        return self.parents.cell[span], self.parents.count[span]


def split_batches(spine: RegionTree, level: int, n_values: int) -> list[tuple[int, int]]:
    """Divide the parents of a level's regions into batches of consecutive ones.

    Parameters
    ----------
    spine : RegionTree
    level : int
    n_values : int
        Noisy values per region.

    Returns
    -------
    list of (first, last)
        Ranges of parents, of the root itself at level 0. They depend only on the problem, so that nothing
        depends on which worker handles a batch.
    """
    if level == 0:
        return [(0, 1)]
    starts = spine.starts[level - 1]
    limit = max(1, BATCH_VALUES // n_values)
    batches = []
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + limit, side="right")) - 1)
        batches.append((first, last))
        first = last
    return batches


def region_range(spine: RegionTree, level: int, batch: tuple[int, int]) -> tuple[int, int]:
    """Regions of a level that the parents of a batch have as children."""
    if level == 0:
        return 0, 1
    starts = spine.starts[level - 1]
    return int(starts[batch[0]]), int(starts[batch[1]])


DETAILED = "detailed"
TOTAL = "total"
"""The query of all cells."""

FOR_ESTIMATION = {
    "bounds",
    "covariates",
    "extended_by",
    "rules",
    "household",
    "acknowledge_invariants",
    "estimator",
    "shrink",
    "intervals",
}  # options that do not affect measuring


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statement:
    """A public statement about the people in a set of cells, for every region of a level.

    Parameters
    ----------
    name : str
    level : int
    cells : ndarray of bool, shape (cells,)
    labels : mapping
        The same set by attributes and labels.
    lower, upper : ndarray of int64, shape (regions,)
        Bounds from a public table. Empty for an invariant, whose values come from `measure`.
    """

    name: str
    level: int
    cells: Bools
    labels: Mapping[str, tuple[str, ...]]
    lower: Ints
    upper: Ints

    @property
    def is_invariant(self) -> bool:
        """Whether its values are published exactly."""
        return len(self.lower) == 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """A checked spec: everything public that measuring and estimating need.

    Parameters
    ----------
    spec : Spec
        The spec from which it was made.
    data : path, uri or dataframe
        The records; None if neither the spec nor the call names any.
    is_own_file : bool
        Whether the spec itself names a file of records.
    options : TopDownOptions
    attributes : tuple of Attribute
        Attributes that form the cells, in the order of the spec.
    is_possible : ndarray of bool, shape (cells,)
        False for structural zeros.
    spine : RegionTree
    queries : tuple of Query
        All queries, the detailed one last.
    query_attributes : tuple of tuple of Attribute
        Attributes of the rows of each query, the last attribute fastest.
    level_shares : tuple of Fraction
    query_shares : tuple of mapping of str to Fraction
        For each level the share of every query it measures.
    statements : tuple of Statement
    covariates : tuple of Covariate
    budget : Loss
    notes : tuple of str
        Notes for the user before anything is spent.
    has_chosen_shares : bool
        Whether the spec leaves the shares to louver; `options` contains them in any case.
    extends : str
        Hash of the measurements of the release that it extends; empty if it extends none.
    arrangement : ArrangedSpine or None
        How the spine was arranged for areas; None if it is the geography.
    """

    spec: Spec
    data: Any
    is_own_file: bool
    options: TopDownOptions
    attributes: tuple[Attribute, ...]
    is_possible: Bools
    spine: RegionTree
    queries: tuple[Query, ...]
    query_attributes: tuple[tuple[Attribute, ...], ...]
    level_shares: tuple[Fraction, ...]
    query_shares: tuple[Mapping[str, Fraction], ...]
    statements: tuple[Statement, ...]
    budget: Loss
    covariates: tuple[Covariate, ...] = ()
    notes: tuple[str, ...] = ()
    has_chosen_shares: bool = False
    extends: str = ""
    arrangement: ArrangedSpine | None = None

    @property
    def published_queries(self) -> tuple[Query, ...]:
        """Queries whose errors are described: those of the spec, preceded by the total if the spec does not have it."""
        if any(query.n_rows == 1 for query in self.queries):
            return self.queries
        name = TOTAL if all(query.name.casefold() != TOTAL for query in self.queries) else f"({TOTAL})"
        everybody = Query(name=name, row_of=np.zeros(self.n_cells, np.int64), n_rows=1, axes=())
        return (everybody, *self.queries)

    @property
    def published_tables(self) -> tuple[tuple[Query, tuple[Attribute, ...]], ...]:
        """Queries with a table of their own (all of these except the detailed one), with the meaning of their rows."""
        meanings = {q.name: m for q, m in zip(self.queries, self.query_attributes, strict=True)}
        return tuple((q, meanings.get(q.name, ())) for q in self.published_queries if q.name != DETAILED)

    @property
    def shape(self) -> tuple[int, ...]:
        """Labels of each attribute."""
        return tuple(attribute.size for attribute in self.attributes)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def geography_columns(self) -> tuple[str, ...]:
        """Columns of the data that give a person's location."""
        geography = self.options.geography
        return () if geography is None else geography.region_columns

    @property
    def prefixes(self) -> list[int] | None:
        """Lengths of the codes of each level's regions, where a prefix of the leaf's code names them."""
        geography = self.options.geography
        return None if geography is None or self.arrangement is not None else geography.prefixes

    @property
    def geographic(self) -> RegionTree:
        """The regions of the geography, which the spine may have rearranged."""
        return self.spine if self.arrangement is None else self.arrangement.geographic

    def stated_options(self) -> dict[str, Any]:
        """All options, in the form of a manifest."""
        kept = self.options.model_dump(mode="json")
        if self.options.spine is None:  # as they were before covariates existed
            kept.pop("spine", None)
        return kept

    @property
    def shrink(self) -> float | None:
        """The cap on shrinking, or None."""
        return None if isinstance(self.options.shrink, str) else self.options.shrink

    def estimated(self, **how: Any) -> Design:
        """The same with other options of estimation; options that are None remain unchanged."""
        given = {name: value for name, value in how.items() if value is not None}
        if not given:
            return self
        return replace(self, options=validated(TopDownOptions, {**self.options.model_dump(), **given}))

    def without_source(self) -> Design:
        """The same for a worker on another machine, which learns neither the records nor their location."""
        spec = replace(self.spec, path=Path(self.spec.path.name), source=SourceOptions(), verbs={})
        return replace(self, spec=spec, data=None, is_own_file=False)

    def measured_fingerprint(self) -> str:
        """Hash of everything that determines the true answers and their noise, except the records themselves.

        The records are covered by the ledger's keyed hash. The way they are read is part of this hash, so that a debit is never resumed
        with other true answers; bounds from public tables and the estimator are not part of it.
        """
        return _hash(
            [
                self.options.model_dump_json(exclude=FOR_ESTIMATION | self._without()).encode(),
                self.spec.source.noted().encode(),
                repr(self.spec.schema).encode(),
                repr(self.attributes).encode(),
                repr((self.spine.names, self.spine.leaves)).encode(),
                *([self.extends.encode()] if self.extends else []),
                *([] if self.arrangement is None else [repr(self.arranged_regions()).encode()]),
            ]
        )

    def arranged_regions(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Every level above the leaves: its name, and where the children of its regions begin."""
        names = self.spine.names
        return tuple(
            (name, tuple(start.tolist())) for name, start in zip(names, self.spine.starts, strict=False)
        )

    def _without(self) -> set[str]:
        """Options that a hash leaves out if they are not given, so that hashes from before they existed stay the same."""
        return {name for name in ("published", "spine") if getattr(self.options, name, None) is None}

    def fingerprint(self) -> str:
        """Hash of everything that determines what is measured and how it is processed."""
        options = self.options.model_dump_json(
            exclude={"intervals"} | self._without()
        )  # no count depends on these
        parts = [self.measured_fingerprint().encode(), options.encode()]
        parts.append(self.is_possible.tobytes())
        for statement in self.statements:
            parts.extend([statement.cells.tobytes(), statement.lower.tobytes(), statement.upper.tobytes()])
        for covariate in self.covariates:
            parts.extend([covariate.cells.tobytes(), covariate.values.tobytes()])
        return _hash(parts)


def _hash(parts: Sequence[bytes]) -> str:
    """Hash of several texts, each with its length before it."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "big"))
        hasher.update(part)
    return hasher.hexdigest()
