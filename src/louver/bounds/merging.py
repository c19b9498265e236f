"""Which categories of an attribute may be merged, how far apart they are, and what a merged one is called.

Neighbours of ordered attributes, any categories of nominal ones, levels where there is a hierarchy. Numbers and classes of numbers
are ordered unless a spec says that they are categories. A partition of the codes holds groups, each ascending.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby, pairwise

from louver.errors import InputError
from louver.schema.attribute import Attribute

__all__ = ["Merging", "Partition", "order_of", "recoded_order"]

Partition = tuple[tuple[int, ...], ...]

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)"
CLASS = re.compile(
    rf"(?P<sign>[<>≤≥]=?)?\s*(?P<low>{NUMBER})(?:\s*(?:[-–]|to|-<)\s*{NUMBER})?\s*(?P<end>\+)?"
)

MANY, BANDS = 12, (2, 5, 10, 20)
"""From so many categories in order on, bands of so many are offered."""

FAR = 0.5
"""Categories are far apart if they span more than this share of an order or of the levels of a hierarchy."""


def order_of(attribute: Attribute, categories: Collection[str] = ()) -> tuple[int, ...] | None:
    """Codes in the order of their labels, missing values last; None where there is no order.

    Labels are in order by their kind, or because all are numbers or classes of numbers and no spec calls them categories.

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
    """The order after a recode (old code -> new code) to the attribute; None where it merged what are no neighbours."""
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
        Codes in their order: only neighbours may be merged. Any may without it.
    is_fixed : bool
        Whether nothing may be merged.
    apart : sequence of sequences of str
        Labels of which no two may be merged.
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
        """Coarser partitions with at least two groups left; one group would be the same as summing over."""
        if self.is_fixed:
            return
        steps = self._levels(partition) if self.attribute.hierarchy is not None else self._merges(partition)
        yield from (step for step in steps if all(self._is_allowed(group) for group in step))

    def is_far(self, partition: Partition) -> bool:
        """Whether a group unites what is far apart in the order or in the hierarchy, or missing values with others."""
        return any(len(group) > 1 and self._distance(group) > FAR for group in partition)

    def label(self, codes: Sequence[int]) -> str:
        """What a group is called."""
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
        """Bands of equal numbers of groups: short cuts to what pair after pair would reach, where there are many."""
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
        """From 0, as near as can be known, to 1."""
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
                f'option --apart: label {place} for column "{self.attribute.name}" is none of its categories; check its '
                "spelling, after the recode where there is one.",
                option="--apart",
                column=self.attribute.name,
            )
        return self.attribute.code_of(label)


def _place(label: str) -> tuple[float, float] | None:
    """Where a number or a class of numbers stands: "<25", "25", "25-54", ">54", "55+"; None for other labels.

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
