"""Which categories of an attribute may be merged, how far apart they are, and what a merged one is called.

Neighbours of ordered attributes, any categories of nominal ones, levels where there is a hierarchy. Numbers are ordered unless a
spec says that they are categories. A partition of the codes holds groups, each ascending.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from louver.errors import InputError
from louver.schema.attribute import Attribute

__all__ = ["Merging", "Partition", "is_in_order"]

Partition = tuple[tuple[int, ...], ...]

FAR = 0.5
"""Categories are far apart if they span more than this share of an order or of the levels of a hierarchy."""


def is_in_order(attribute: Attribute, categories: Collection[str] = ()) -> bool:
    """Whether the labels have an order: by their kind, or because all are numbers and no spec calls them categories.

    Examples
    --------
    >>> age = Attribute(name="age", labels=("8", "9", "10"))
    >>> is_in_order(age), is_in_order(age, {"age"})
    (True, False)
    """
    if attribute.is_ordered or attribute.name in categories:
        return attribute.is_ordered
    values = [_number(label) for label in attribute.labels if label != attribute.missing]
    return all(a < b for a, b in pairwise(values)) and not any(map(math.isnan, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """The merges of one attribute.

    Parameters
    ----------
    attribute : Attribute
    in_order : bool
        Whether only neighbours may be merged.
    is_fixed : bool
        Whether nothing may be merged.
    apart : sequence of sequences of str
        Labels of which no two may be merged.
    """

    attribute: Attribute
    in_order: bool = False
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
        """Partitions one step coarser with at least two groups left; one group would be the same as summing over."""
        if self.is_fixed:
            return
        steps = self._levels(partition) if self.attribute.hierarchy is not None else self._merges(partition)
        yield from (step for step in steps if all(self._is_allowed(group) for group in step))

    def is_far(self, partition: Partition) -> bool:
        """Whether a group unites what is far apart in the order or in the hierarchy, or missing values with others."""
        return any(len(group) > 1 and self._distance(group) > FAR for group in partition)

    def label(self, codes: Sequence[int]) -> str:
        """What a group is called."""
        labels = [self.attribute.labels[code] for code in codes]
        if len(labels) == 1:
            return labels[0]
        has_missing = self.attribute.missing in labels
        return f"{labels[0]} to {labels[-1]}" if self.in_order and not has_missing else " | ".join(labels)

    def _merges(self, partition: Partition) -> Iterator[Partition]:
        if len(partition) > 2:
            pairs = pairwise(partition) if self.in_order else combinations(partition, 2)
            for first, second in pairs:
                merged = tuple(sorted((*first, *second)))
                rest = [group for group in partition if group not in (first, second)]
                yield tuple(sorted([*rest, merged]))

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
        n_known = attribute.size - (attribute.missing is not None)
        return (group[-1] - group[0]) / (n_known - 1) if self.in_order else 0.0

    def _code(self, label: str, place: int) -> int:
        if not self.attribute.has_label(label):
            raise InputError(
                f'option --apart: label {place} for column "{self.attribute.name}" is none of its categories; check its '
                "spelling, after the recode where there is one.",
                option="--apart",
                column=self.attribute.name,
            )
        return self.attribute.code_of(label)


def _number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.nan
