"""Quasi-identifiers of three types, each with its loss, and sensitive columns with their requirements on a class.

Numbers become intervals; categories become sets or nodes of a tree.

Every type defines its loss twice: in real numbers, as published (`class_losses`), and in whole units for the kernels
(`encode`), for which sums and ties are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.errors import InputError
from louver.optim.kernels.classes.diversity import (
    DISTANCE,
    EQUAL,
    FARTHEST,
    LEAST_DISTINCT,
    LEAST_ENTROPY,
    N_LIMITS,
    ORDERED,
    RATIO,
    START,
    STOP,
    TABLES,
    TREE_DISTANCE,
    Requirements,
)
from louver.optim.kernels.classes.diversity import LEVELS as DISTANCE_LEVELS
from louver.optim.kernels.classes.loss import (
    FULL,
    GAPPED,
    INTERVAL,
    IS_OPEN,
    KIND,
    LEAVES,
    LEVELS,
    N_FIELDS,
    OPEN,
    SET,
    TABLE,
    TREE,
    WORD_BITS,
    WORD_START,
    WORD_STOP,
)

__all__ = [
    "Distance",
    "Guarantee",
    "LKind",
    "NumericColumn",
    "QuasiColumn",
    "Sensitive",
    "SetColumn",
    "TreeColumn",
    "build_requirements",
    "encode",
    "given_values",
    "of_rows",
]


TOTAL_UNITS = 2**30
"""Units lost by a record with no published value: small enough for sums over columns to fit in 32 bits."""

OUTSIDE = TOTAL_UNITS + 1
"""Position of a number of the population that lies outside the table's range."""


class QuasiColumn(Protocol):
    """The interface of a quasi-identifier to the coded problem."""

    @property
    def name(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def ranks(self) -> Floats: ...
    def class_losses(self, rows: Ints, starts: Ints) -> Floats: ...
    def coded(self, scale: float) -> _Coded: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coded:
    """A column in the form used by the kernels."""

    kind: int
    codes: NDArray[np.int32]
    is_open: bool = False
    n_words: int = 0
    table: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    n_levels: int = 0
    n_leaves: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumericColumn:
    """Numbers, or ordered categories by their position, generalised to intervals.

    Parameters
    ----------
    name : str
    values : float64 (n,)
        NaN where missing; entries beyond `n_sample` are the population, if any.
    weight : float
        w_j of (34), as given.
    lower, upper : float, optional
        L_j and U_j, the permissible values; by default the table's own minimum and maximum.
    missing_matches : bool
        Whether a missing value matches anything; otherwise it is a category of its own, and mixing it with
        numbers loses everything.
    n_sample : int, optional
        How many of the values are to be anonymised; all by default.

    Notes
    -----
    Implements: Liang & Samavi (2020), Definition 4 with the weights of (34).
    Departs: a column with only one value loses nothing (K1: U is the greatest, L the least value).
    """

    name: str
    values: Floats
    weight: float = 1.0
    lower: float | None = None
    upper: float | None = None
    missing_matches: bool = False
    n_sample: int | None = None

    @property
    def span(self) -> tuple[float, float]:
        """L_j and U_j."""
        known = self.values[: self.n_sample]
        known = known[~np.isnan(known)]
        low = self.lower if self.lower is not None else float(known.min(initial=np.inf))
        high = self.upper if self.upper is not None else float(known.max(initial=-np.inf))
        return (low, high) if low <= high else (0.0, 0.0)

    @property
    def ranks(self) -> Floats:
        """The values whose variance determines the order of columns; missing ones come last."""
        return self.values

    def class_losses(self, rows: Ints, starts: Ints) -> Floats:
        """Loss per record, between 0 and 1, of the classes whose rows start at `starts` in `rows`."""
        low, high = self.span
        values = self.values[rows]
        missing = np.isnan(values)
        least = np.minimum.reduceat(np.where(missing, np.inf, values), starts)
        greatest = np.maximum.reduceat(np.where(missing, -np.inf, values), starts)
        known = greatest >= least
        losses = np.zeros(len(starts))
        if high > low:
            losses[known] = (greatest[known] - least[known]) / (high - low)
        if not self.missing_matches:
            losses[known & np.logical_or.reduceat(missing, starts)] = 1.0
        return losses

    def coded(self, scale: float) -> _Coded:
        low, high = self.span
        missing = np.isnan(self.values)
        share = np.zeros(len(self.values))
        if high > low:
            share[~missing] = (self.values[~missing] - low) / (high - low)
        is_inside = (share >= 0) & (share <= 1)
        if not is_inside[: self.n_sample].all():
            raise InputError(
                f'column "{self.name}" has values outside the range given for it.', column=self.name
            )
        positions = np.where(is_inside, np.rint(np.where(is_inside, share, 0) * self.weight * scale), OUTSIDE)
        codes = np.where(missing, -1, positions).astype(np.int32)
        if not missing.any():
            return _Coded(kind=INTERVAL, codes=codes)
        if self.missing_matches:
            return _Coded(kind=OPEN, codes=codes, is_open=True)
        return _Coded(kind=GAPPED, codes=codes, n_words=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetColumn:
    """Unordered categories, generalised to the set of those that occur in a class.

    Parameters
    ----------
    codes : int64 (n,)
        Category of each record, 0 to n_labels - 1; -1 is missing and matches anything.
    n_labels : int
        |a_j|, the number of permissible categories.
    one_hot : bool
        Count the loss as section 2.5 does, one binary attribute of weight 1/|H| per category.

    Notes
    -----
    Implements: Liang & Samavi (2020), Definition 8, (count - 1) / |a|; with `one_hot` section 2.5.
    Departs: the two are not equal, as the paper says they are (K5): one-hot gives count / |H|.
    """

    name: str
    codes: Ints
    n_labels: int
    weight: float = 1.0
    one_hot: bool = False

    @property
    def ranks(self) -> Floats:
        return np.where(self.codes < 0, np.nan, self.codes).astype(np.float64)

    @property
    def loss_by_count(self) -> Floats:
        """Loss of a set of 0, 1, 2, ... categories, up to one more than there are."""
        counts = np.arange(self.n_labels + 2)
        lost = np.where(counts > 1, counts, 0) if self.one_hot else np.maximum(counts - 1, 0)
        return lost / max(1, self.n_labels)

    def class_losses(self, rows: Ints, starts: Ints) -> Floats:
        classes = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        codes = self.codes[rows]
        pairs = np.unique(classes[codes >= 0] * self.n_labels + codes[codes >= 0])
        counts = np.bincount(pairs // self.n_labels, minlength=len(starts))
        losses: Floats = self.loss_by_count[counts]
        return losses

    def coded(self, scale: float) -> _Coded:
        return _Coded(
            kind=SET,
            codes=self.codes.astype(np.int32),
            is_open=bool((self.codes < 0).any()),
            n_words=-(-max(1, self.n_labels) // WORD_BITS),
            table=np.rint(self.loss_by_count * self.weight * scale).astype(np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeColumn:
    """Categories under a hierarchy, generalised to the lowest node that covers all those in a class.

    Parameters
    ----------
    codes : int64 (n,)
        Leaf of each record; -1 is missing and matches anything.
    ancestors : sequence of int64 (leaves,)
        For each level, from the leaves to the root, the number of the node above each leaf.
    level : int64 (classes,), optional
        The level that each class publishes; -1 is the lowest node above its values, which is the default for all classes.

    Notes
    -----
    A node loses (leaves below it - 1) / leaves: Definition 8 with the categories that its label stands for.
    """

    name: str
    codes: Ints
    ancestors: Sequence[Ints]
    weight: float = 1.0
    level: Ints | None = None
    _place: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Depth-first: by the ancestor nearest the root, then the next one down, and so on.
        order = np.lexsort(list(self.ancestors))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        object.__setattr__(self, "_place", place)

    @property
    def n_labels(self) -> int:
        return len(self.ancestors[0])

    @property
    def places(self) -> Ints:
        """Position of each record's leaf in depth-first order, -1 where missing."""
        return np.where(self.codes < 0, -1, self._place[self.codes])

    @property
    def ranks(self) -> Floats:
        return np.where(self.codes < 0, np.nan, self.places).astype(np.float64)

    @property
    def tree(self) -> tuple[Ints, Ints]:
        """Node (levels, leaves) above each leaf in depth-first order, and the number of leaves below it."""
        order = np.argsort(self._place)
        nodes = np.stack([np.asarray(level, np.int64)[order] for level in self.ancestors])
        return nodes, np.stack([np.bincount(level)[level] for level in nodes])

    def class_levels(self, rows: Ints, starts: Ints) -> tuple[Ints, Ints]:
        """Depth-first position of one leaf of each class (-1: all missing) and the level of the node published."""
        nodes, _ = self.tree
        places = self.places[rows]
        first = np.minimum.reduceat(np.where(places < 0, self.n_labels, places), starts)
        last = np.maximum.reduceat(places, starts)
        first = np.where(last < 0, 0, first)
        level = (nodes[:-1, first] != nodes[:-1, np.maximum(last, 0)]).sum(axis=0)
        if self.level is not None:
            level = np.where(self.level < 0, level, self.level)
        return np.where(last < 0, -1, first), level

    def class_losses(self, rows: Ints, starts: Ints) -> Floats:
        _, below = self.tree
        leaf, level = self.class_levels(rows, starts)
        return np.where(leaf < 0, 0.0, (below[level, leaf] - 1) / self.n_labels)

    def coded(self, scale: float) -> _Coded:
        nodes, below = self.tree
        losses = np.rint((below - 1) / self.n_labels * self.weight * scale).astype(np.int64)
        return _Coded(
            kind=TREE,
            codes=self.places.astype(np.int32),
            is_open=bool((self.codes < 0).any()),
            table=np.concatenate([nodes.ravel(), losses.ravel()]),
            n_levels=nodes.shape[0],
            n_leaves=nodes.shape[1],
        )


def given_values(column: QuasiColumn, rows: Ints) -> Floats:
    """Numbers, or codes of labels, as given; NaN where missing."""
    if isinstance(column, NumericColumn):
        return column.values[rows]
    assert isinstance(column, SetColumn | TreeColumn)
    codes = column.codes[rows]
    return np.where(codes < 0, np.nan, codes).astype(np.float64)


def of_rows(column: QuasiColumn, rows: Ints, n_sample: int | None = None) -> QuasiColumn:
    """The column for some rows, its range and categories unchanged; rows beyond `n_sample` are the population."""
    if isinstance(column, NumericColumn):
        low, high = column.span
        return replace(column, values=column.values[rows], lower=low, upper=high, n_sample=n_sample)
    assert isinstance(column, SetColumn | TreeColumn)
    return replace(column, codes=column.codes[rows])


def encode(columns: Sequence[QuasiColumn]) -> tuple[NDArray[np.int32], Ints, float]:
    """Codes (n, m), the geometry of `louver.optim.kernels.classes.loss`, and the loss of one unit."""
    scale = TOTAL_UNITS / sum(column.weight for column in columns)
    coded = [column.coded(scale) for column in columns]
    fields = np.zeros((len(columns), N_FIELDS), np.int64)
    fields[:, KIND] = [c.kind for c in coded]
    fields[:, FULL] = [round(column.weight * scale) for column in columns]
    fields[:, IS_OPEN] = [c.is_open for c in coded]
    fields[:, WORD_STOP] = np.cumsum([c.n_words for c in coded])
    fields[1:, WORD_START] = fields[:-1, WORD_STOP]
    fields[:, TABLE] = fields.size + np.cumsum([0, *(c.table.size for c in coded[:-1])])
    fields[:, LEVELS] = [c.n_levels for c in coded]
    fields[:, LEAVES] = [c.n_leaves for c in coded]
    geometry = np.concatenate([fields.ravel(), *(c.table for c in coded)])
    codes = np.ascontiguousarray(np.stack([c.codes for c in coded], axis=1))
    return codes, geometry, 1 / scale


class LKind(StrEnum):
    """Types of l-diversity (Machanavajjhala et al. 2007)."""

    DISTINCT = "distinct"
    ENTROPY = "entropy"
    RECURSIVE = "recursive"


class Distance(StrEnum):
    """Distances between the values of a sensitive column, for t-closeness (Li, Li & Venkatasubramanian 2007)."""

    EQUAL = "equal"
    ORDERED = "ordered"
    HIERARCHICAL = "hierarchical"


KERNEL_DISTANCE = {
    Distance.EQUAL: EQUAL,
    Distance.ORDERED: ORDERED,
    Distance.HIERARCHICAL: TREE_DISTANCE,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sensitive:
    """A sensitive column and the requirements on every class.

    Parameters
    ----------
    name : str
    codes : int64 (n,)
        Value of each record, 0 to n_values - 1; sorted if the distance is ordered. -1 means missing and does not count as a value.
    n_values : int
    l : float, optional
        Distinct values, or the exponential of the entropy, that every class needs.
    l_kind : LKind
        RECURSIVE: the commonest value of a class has fewer than `c` times as many records as all values from the l-th commonest on.
    c : float, optional
    t : float, optional
        Largest distance between a class and the whole table.
    distance : Distance
    ancestors : sequence of int64 (n_values,)
        Hierarchical distance: the node above each value, from the first level above the values to the root.
    """

    name: str
    codes: Ints
    n_values: int
    l: float | None = None  # noqa: E741 - the field's own name
    l_kind: LKind = LKind.DISTINCT
    c: float | None = None
    t: float | None = None
    distance: Distance = Distance.EQUAL
    ancestors: Sequence[Ints] = ()


def build_requirements(
    sensitive: Sequence[Sensitive],
    order: Ints,
    population: NDArray[np.int32],
    multiplicity: Ints,
    matches: int,
    key: int = -1,
) -> Requirements:
    """Requirements for the kernels; `order` lists the source rows of the records."""
    n = len(order)
    coded = [s.codes[order].astype(np.int32) for s in sensitive]
    return Requirements(
        sensitive=np.ascontiguousarray(np.stack(coded, axis=1)) if coded else np.zeros((n, 0), np.int32),
        limits=_limits(sensitive, coded),
        population=population,
        multiplicity=multiplicity,
        matches=np.int64(matches),
        key=np.int64(key),
    )


def _limits(sensitive: Sequence[Sensitive], coded: Sequence[NDArray[np.int32]]) -> Floats:
    """The array of limits that `louver.optim.kernels.classes.diversity` describes."""
    fields = np.zeros((len(sensitive), N_LIMITS))
    tables: list[Floats] = []
    start, table = 0, 1 + fields.size
    for line, s, codes in zip(fields, sensitive, coded, strict=True):
        is_entropy = s.l_kind is LKind.ENTROPY
        known = codes[codes >= 0]
        shares = np.bincount(known, minlength=s.n_values) / max(1, len(known))
        line[START - 1], line[STOP - 1] = start, start + s.n_values
        line[LEAST_DISTINCT - 1] = ceil(s.l) if s.l is not None and not is_entropy else 0
        line[LEAST_ENTROPY - 1] = log(s.l) if s.l is not None and is_entropy else -1.0
        line[RATIO - 1] = s.c if s.c is not None and s.l_kind is LKind.RECURSIVE else -1.0
        line[FARTHEST - 1] = -1.0 if s.t is None else s.t
        line[DISTANCE - 1] = KERNEL_DISTANCE[s.distance]
        line[TABLES - 1] = table
        line[DISTANCE_LEVELS - 1] = len(s.ancestors)
        tables += [shares, *(np.asarray(level, np.float64) for level in s.ancestors)]
        start += s.n_values
        table += s.n_values * (1 + len(s.ancestors))
    return np.concatenate([[len(sensitive)], fields.ravel(), *tables])


class Guarantee(StrEnum):
    """The guarantee of a release."""

    K_ANONYMITY = "k-anonymity"
    K_MAP = "k-map"
    K_UNITS = "k-units"
    FREEFORM = "freeform"
