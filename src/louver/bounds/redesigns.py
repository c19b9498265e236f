"""All redesigns of one arrangement: which merges are allowed, how to enumerate them, and how much information they keep.

A redesign gives each attribute a role (row, column, summed over) and a partition of its codes into groups, each ascending.
Neighbours of ordered attributes may be merged, any categories of nominal ones, and levels where there is a hierarchy. Numbers and
classes of numbers are ordered unless a spec says that they are categories.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, pairwise
from math import prod

import numpy as np

from louver._arrays import Floats, Ints
from louver.bounds.problem import Arrangement
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

__all__ = [
    "MergedCategories",
    "Merging",
    "Partition",
    "Redesigns",
    "State",
    "Wishes",
    "order_of",
    "recoded_order",
]

Partition = tuple[tuple[int, ...], ...]

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
CLASS = re.compile(
    rf"(?P<sign>[<>≤≥]=?)?\s*(?P<low>{NUMBER})(?:\s*(?:[-–]|to|-<)\s*{NUMBER})?\s*(?P<end>\+)?"
)

MANY, BANDS = 12, (2, 5, 10, 20)
"""Number of ordered categories from which on bands are offered, and their sizes."""

FAR = 0.5
"""Categories are far apart if they span more than this share of the order, or of the levels of a hierarchy."""

ROW, COL, OMIT = "row", "col", "omit"
State = tuple[tuple[str, Partition], ...]

LEAST_INFORMATION = 1e-9
"""Bits below which a table is assumed to have no information about its columns."""

DENSE_CELLS = 100_000
"""Up to this many cells, an entropy is summed over all cells; with more, over those that occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What redesigns must leave unchanged.

    Parameters
    ----------
    fix : names
        Attributes whose position and categories must be kept.
    apart : mapping of name to sets of labels
        Labels no two of which may be merged.
    categories : names
        Attributes that a spec declares categories, so that their numbers have no order.
    """

    fix: Collection[str] = ()
    apart: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    categories: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class MergedCategories:
    """Categories of one attribute that a redesign merges, and the name of the merged category."""

    attribute: str
    name: str
    labels: tuple[str, ...]


class Redesigns:
    """All redesigns of one arrangement: how to enumerate them, and the information they keep."""

    def __init__(self, histogram: Histogram, arrangement: Arrangement, wishes: Wishes | None = None) -> None:
        wishes = Wishes() if wishes is None else wishes
        self.original = histogram.marginalise((*arrangement.rows, *arrangement.cols))
        self.histogram = self.original.recode(*arrangement.recodes)
        self.attributes = self.histogram.attributes
        self.fixed = frozenset(i for i, a in enumerate(self.attributes) if a.name in wishes.fix)
        self._base = [_base_codes(attribute, arrangement) for attribute in self.original.attributes]
        self._merging = [
            Merging(
                attribute=attribute,
                order=recoded_order(order_of(before, wishes.categories), base.tolist(), attribute),
                is_fixed=i in self.fixed,
                apart=wishes.apart.get(attribute.name, ()),
            )
            for i, (attribute, before, base) in enumerate(
                zip(self.attributes, self.original.attributes, self._base, strict=True)
            )
        ]
        self.responses = frozenset(arrangement.cols)
        self._maps: dict[tuple[int, Partition], Ints] = {}
        self._recodes: dict[tuple[int, Partition], Recode | None] = {}
        self._roles = [COL if a.name in self.responses else ROW for a in self.attributes]

    def start(self) -> State:
        return tuple(
            (role, merging.finest()) for role, merging in zip(self._roles, self._merging, strict=True)
        )

    def moves(self) -> Iterator[State]:
        """The first arrangement with one attribute moved between rows and columns, nothing merged or left out."""
        for state in self.children(self.start()):
            if self.is_plain(state):
                yield state

    def is_plain(self, state: State) -> bool:
        """Whether attributes were only moved."""
        return all(
            role != OMIT and len(partition) == attribute.size
            for (role, partition), attribute in zip(state, self.attributes, strict=True)
        )

    def is_far(self, state: State) -> bool:
        """Whether categories that are far apart were merged."""
        return any(
            merging.is_far(partition) for (_, partition), merging in zip(state, self._merging, strict=True)
        )

    def merged(self, state: State) -> tuple[MergedCategories, ...]:
        """The merges in the table as first arranged: every group of more than one category."""
        return tuple(
            MergedCategories(merging.attribute.name, merging.label(group), merging.labels(group))
            for (_, partition), merging in zip(state, self._merging, strict=True)
            for group in partition
            if len(group) > 1
        )

    def children(self, state: State) -> Iterator[State]:
        """States one step coarser: a merge, an attribute summed over, or one moved across.

        At least one predictor, one response in the columns and one row attribute are kept.
        """
        for i, (role, partition) in enumerate(state):
            if role == OMIT or i in self.fixed:
                continue
            is_response = self.attributes[i].name in self.responses
            steps = [(role, merged) for merged in self._merging[i].coarser(partition)]
            steps.append((OMIT, ()))
            if role == (COL if is_response else ROW):
                steps.append((ROW if role == COL else COL, partition))
            for step in steps:
                child = (*state[:i], step, *state[i + 1 :])
                if self._is_valid(child):
                    yield child

    def _is_valid(self, state: State) -> bool:
        roles = [
            (role, a.name in self.responses) for (role, _), a in zip(state, self.attributes, strict=True)
        ]
        return (
            any(role == ROW for role, _ in roles)
            and (COL, True) in roles
            and any(role != OMIT and not is_response for role, is_response in roles)
        )

    def arrangement(self, state: State) -> Arrangement:
        """The redesign as an arrangement of the original attributes."""
        rows: list[str] = []
        cols: list[str] = []
        recodes: list[Recode] = []
        for i, ((role, partition), attribute) in enumerate(zip(state, self.attributes, strict=True)):
            if role == OMIT:
                continue
            (rows if role == ROW else cols).append(attribute.name)
            recode = self._recode(i, partition)
            if recode is not None:
                recodes.append(recode)
        return Arrangement(rows=tuple(rows), cols=tuple(cols), recodes=tuple(recodes))

    def bits(self, state: State) -> float:
        """I(X'; Y' | Z') of the empirical distribution."""
        predictors, responses, given = self._split(state)
        return (
            self._entropy(state, predictors + given)
            + self._entropy(state, responses + given)
            - self._entropy(state, predictors + responses + given)
            - self._entropy(state, given)
        )

    def bits_bound(self, state: State) -> float:
        """An upper bound on what this state or any coarser one keeps.

        Merging labels of Z' can raise I(X'; Y' | Z'), but never above I(X'; Y', Z').
        """
        predictors, responses, given = self._split(state)
        if all(len(state[i][1]) <= 2 for i in given):
            return self.bits(state)
        both = responses + given
        return (
            self._entropy(state, predictors)
            + self._entropy(state, both)
            - self._entropy(state, predictors + both)
        )

    def _split(self, state: State) -> tuple[list[int], list[int], list[int]]:
        predictors: list[int] = []
        responses: list[int] = []
        given: list[int] = []
        for i, ((role, _), attribute) in enumerate(zip(state, self.attributes, strict=True)):
            if role != OMIT:
                is_response = attribute.name in self.responses
                (given if is_response and role == ROW else responses if is_response else predictors).append(i)
        return predictors, responses, given

    def _entropy(self, state: State, kept: Sequence[int]) -> float:
        """Entropy in bits of the kept attributes after merging."""
        index = np.zeros(len(self.histogram.counts), dtype=np.int64)
        for i in kept:
            index *= len(state[i][1])
            index += self._map(i, state[i][1])[self.histogram.codes[:, i]]
        if prod(len(state[i][1]) for i in kept) > DENSE_CELLS:
            _, index = np.unique(index, return_inverse=True)
        return _entropy_bits(np.bincount(index, weights=self.histogram.counts), self.histogram.total)

    def _map(self, i: int, partition: Partition) -> Ints:
        if (i, partition) not in self._maps:
            new_codes = np.zeros(self.attributes[i].size, dtype=np.int64)
            for group, codes in enumerate(partition):
                new_codes[list(codes)] = group
            self._maps[i, partition] = new_codes
        return self._maps[i, partition]

    def _recode(self, i: int, partition: Partition) -> Recode | None:
        if (i, partition) not in self._recodes:
            merging, labels = self._merging[i], self.original.attributes[i].labels
            merge: dict[str, tuple[str, ...]] = {}
            for group in partition:
                old = tuple(labels[code] for code in np.flatnonzero(np.isin(self._base[i], group)))
                new = merging.label(group)
                if len(old) > 1 or (old and old != (new,)):
                    merge[_unlike(new, set(labels).difference(old))] = old
            self._recodes[i, partition] = Recode(merging.attribute.name, merge=merge) if merge else None
        return self._recodes[i, partition]


def _unlike(name: str, others: Collection[str]) -> str:
    """The name, changed if a remaining category already has it."""
    return name if name not in others else _unlike(f"{name} (merged)", others)


def _base_codes(attribute: Attribute, arrangement: Arrangement) -> Ints:
    """Code of each label of an attribute after the recodes of the first arrangement."""
    codes = np.arange(attribute.size)
    for recode in arrangement.recodes:
        if recode.attribute == attribute.name:
            attribute, mapping = attribute.recoded(recode)
            codes = mapping[codes]
    return codes


def order_of(attribute: Attribute, categories: Collection[str] = ()) -> tuple[int, ...] | None:
    """Codes in the order of their labels, missing values last; None if there is no order.

    Labels have an order by their kind, or because all are numbers or classes of numbers and no spec declares them categories.

    Examples
    --------
    >>> age = Attribute(name="age", labels=("25-54", "55+", "<25"))
    >>> order_of(age), order_of(age, {"age"})
    ((2, 0, 1), None)
    """
    if attribute.is_ordered:
        return tuple(range(attribute.size))
    values = {
        code: _place(label) for code, label in enumerate(attribute.labels) if label != attribute.missing
    }
    known = {code: place for code, place in values.items() if place is not None}
    if attribute.name in categories or len(known) < len(values) or len(set(known.values())) < len(known):
        return None
    missing = [code for code in range(attribute.size) if code not in values]
    return (*sorted(known, key=known.__getitem__), *missing)


def recoded_order(
    order: tuple[int, ...] | None, codes: Sequence[int], attribute: Attribute
) -> tuple[int, ...] | None:
    """The order after a recode (old code -> new code) to the attribute; None if it merged categories that are not neighbours."""
    if order is None or attribute.is_ordered:
        return tuple(range(attribute.size)) if attribute.is_ordered else None
    new = [code for code, _ in groupby(codes[old] for old in order)]
    return tuple(new) if len(set(new)) == len(new) == attribute.size else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """The merges of one attribute.

    Parameters
    ----------
    attribute : Attribute
    order : sequence of int, optional
        Codes in their order: only neighbours may be merged. Without an order, any may be merged.
    is_fixed : bool
        Whether nothing may be merged.
    apart : sequence of sequences of str
        Labels no two of which may be merged.
    """

    attribute: Attribute
    order: tuple[int, ...] | None = None
    is_fixed: bool = False
    apart: Sequence[Sequence[str]] = ()
    _apart: tuple[frozenset[int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        sets = tuple(
            frozenset(self._code(label, place) for place, label in enumerate(one, 1)) for one in self.apart
        )
        object.__setattr__(self, "_apart", sets)

    def finest(self) -> Partition:
        return tuple((code,) for code in range(self.attribute.size))

    def coarser(self, partition: Partition) -> Iterator[Partition]:
        """Coarser partitions with at least two groups, because one group would be the same as summing over."""
        if self.is_fixed:
            return
        steps = self._levels(partition) if self.attribute.hierarchy is not None else self._merges(partition)
        yield from (step for step in steps if all(self._is_allowed(group) for group in step))

    def is_far(self, partition: Partition) -> bool:
        """Whether a group combines categories far apart in the order or in the hierarchy, or missing values with others."""
        return any(len(group) > 1 and self._distance(group) > FAR for group in partition)

    def label(self, codes: Sequence[int]) -> str:
        """The name of a group."""
        labels = [self.attribute.labels[code] for code in self._sorted(codes)]
        if len(labels) == 1:
            return labels[0]
        is_run = self.order is not None and self.attribute.missing not in labels
        return f"{labels[0]} to {labels[-1]}" if is_run else " | ".join(labels)

    def labels(self, codes: Sequence[int]) -> tuple[str, ...]:
        """The labels of a group, in their order."""
        return tuple(self.attribute.labels[code] for code in self._sorted(codes))

    def _sorted(self, codes: Sequence[int]) -> list[int]:
        return sorted(codes, key=None if self.order is None else self.order.index)

    def _merges(self, partition: Partition) -> Iterator[Partition]:
        if len(partition) > 2:
            order = self.order
            pairs: Iterable[Sequence[tuple[int, ...]]] = combinations(partition, 2)
            if order is not None:
                in_order = sorted(partition, key=lambda group: min(map(order.index, group)))
                pairs = pairwise(in_order)
                yield from self._bands(in_order)
            for first, second in pairs:
                merged = tuple(sorted((*first, *second)))
                rest = [group for group in partition if group not in (first, second)]
                yield tuple(sorted([*rest, merged]))

    def _bands(self, groups: Sequence[tuple[int, ...]]) -> Iterator[Partition]:
        """Bands of equal numbers of groups: shortcuts for merging many groups pair by pair."""
        missing = self.attribute.missing
        alone = [group for group in groups if missing in self.labels(group)]
        known = [group for group in groups if group not in alone]
        for width in BANDS if len(known) >= MANY else ():
            starts = range(0, len(known), width)
            merged = [tuple(sorted(sum(known[start : start + width], ()))) for start in starts]
            if len(merged) + len(alone) > 1:
                yield tuple(sorted([*merged, *alone]))

    def _levels(self, partition: Partition) -> Iterator[Partition]:
        """The next level of the hierarchy that differs from this partition."""
        hierarchy = self.attribute.hierarchy
        assert hierarchy is not None
        for level in range(1, hierarchy.n_levels):
            groups: dict[str, list[int]] = {}
            for code, label in enumerate(self.attribute.labels):
                groups.setdefault(hierarchy.ancestor_of(label, level), []).append(code)
            lifted = tuple(sorted(tuple(codes) for codes in groups.values()))
            if 2 <= len(lifted) < len(partition):
                yield lifted
                return

    def _is_allowed(self, group: Sequence[int]) -> bool:
        return all(len(one.intersection(group)) < 2 for one in self._apart)

    def _distance(self, group: Sequence[int]) -> float:
        """Distance from 0 (nearest) to 1."""
        attribute, hierarchy = self.attribute, self.attribute.hierarchy
        labels = [attribute.labels[code] for code in group]
        if attribute.missing in labels:
            return 1.0
        if hierarchy is not None:
            levels = range(hierarchy.n_levels)
            shared = (
                level for level in levels if len({hierarchy.ancestor_of(x, level) for x in labels}) == 1
            )
            return next(shared, hierarchy.n_levels) / max(1, hierarchy.n_levels - 1)
        if self.order is None:
            return 0.0
        places = [self.order.index(code) for code in group]
        return (max(places) - min(places)) / (attribute.size - (attribute.missing is not None) - 1)

    def _code(self, label: str, place: int) -> int:
        if not self.attribute.has_label(label):
            raise InputError(
                f'option --apart: label {place} for column "{self.attribute.name}" is not one of its categories; check '
                "the spelling (after the recode, if there is one).",
                option="--apart",
                column=self.attribute.name,
            )
        return self.attribute.code_of(label)


def _place(label: str) -> tuple[float, float] | None:
    """The position of a number or a class of numbers: "<25", "25", "25-54", ">54", "55+"; None for other labels.

    Examples
    --------
    >>> sorted(["55+", "25-54", "<25", "-1"], key=_place)
    ['-1', '<25', '25-54', '55+']
    """
    found = CLASS.fullmatch(label.strip())
    if found is None:
        return None
    is_above = 1.0 if found["sign"] in (">", "≥", ">=") or found["end"] else 0.0
    return float(found["low"]), -1.0 if found["sign"] in ("<", "≤", "<=") else is_above


def information_kept(histogram: Histogram, base: Arrangement, arrangement: Arrangement) -> float | None:
    """Share of the information about the columns of `base` that an arrangement keeps: I(X'; Y' | Z') of I(X; Y).

    None if it has none of these columns, or attributes that `base` does not have.
    """
    names = (*arrangement.rows, *arrangement.cols)
    responses = [name for name in arrangement.cols if name in base.cols]
    if not responses or not {*names} <= {*base.rows, *base.cols}:
        return None
    whole = histogram.marginalise((*base.rows, *base.cols)).recode(*base.recodes)
    first = _information(whole, base.rows, base.cols, ())
    now = histogram.marginalise(names).recode(*arrangement.recodes)
    given = [name for name in arrangement.rows if name in base.cols]
    predictors = [name for name in names if name not in base.cols]
    return _information(now, predictors, responses, given) / first if first > LEAST_INFORMATION else 1.0


def _information(histogram: Histogram, x: Iterable[str], y: Iterable[str], z: Iterable[str]) -> float:
    """I(X; Y | Z) in bits."""
    x, y, z = tuple(x), tuple(y), tuple(z)
    if not x or not y:
        return 0.0

    def entropy(names: tuple[str, ...]) -> float:
        return _entropy_bits(histogram.marginalise(names).counts, histogram.total) if names else 0.0

    return entropy((*x, *z)) + entropy((*y, *z)) - entropy((*x, *y, *z)) - entropy(z)


def _entropy_bits(counts: Ints | Floats, total: int) -> float:
    p = counts[counts > 0] / total
    return float(-(p * np.log2(p)).sum())
