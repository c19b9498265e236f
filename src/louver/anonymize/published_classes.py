"""The classes that a reader of the file sees: records whose published quasi-identifiers are equal.

A method may form several classes that publish the same values. For a reader they are one, and every figure about classes counts them
as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from louver._arrays import Ints
from louver.anonymize.generalise import Published

__all__ = ["PublishedClasses", "UnitsFound", "published_classes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitsFound:
    """How classes that were formed without regard to units hold them, by a column that looks like the number of a household.

    Attributes
    ----------
    column : str
    classes : int
    below_k, single : int
        Classes with records of fewer than k units, and of one.
    """

    column: str
    k: int
    classes: int
    below_k: int
    single: int

    def __str__(self) -> str:
        return (
            f'{self.below_k:,} of {self.classes:,} classes have records of fewer than {self.k} households by column "{self.column}", '
            f"{self.single:,} of a single one, and relatives do not hide each other: name it in --unit, so that k counts households"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedClasses:
    """Classes as published.

    Attributes
    ----------
    of_group : int64 (groups,)
        The class of each group that a method formed.
    first : int64 (classes,)
        A group of each class.
    sizes : int64 (classes,)
        Records in each.
    """

    of_group: Ints
    first: Ints
    sizes: Ints

    @property
    def n(self) -> int:
        return len(self.sizes)

    def of_records(self, labels: Ints) -> Ints:
        """The class of each record, by its group; -1 where it is left out."""
        return np.where(labels >= 0, np.append(self.of_group, 0)[labels], -1)

    def count_units(self, labels: Ints, units: Ints) -> Ints:
        """Different units with records in each class; `units` has the unit of each record."""
        of_record, is_kept = self.of_records(labels), labels >= 0
        pairs = np.unique(np.stack([of_record[is_kept], units[is_kept]], axis=1), axis=0)
        return np.bincount(pairs[:, 0], minlength=self.n)


def published_classes(published: Sequence[Published], sizes: Ints, *, as_bounds: bool) -> PublishedClasses:
    """Classes of equal published values.

    Parameters
    ----------
    sizes : int64 (groups,)
        Records published as each group.
    """
    if not len(sizes):
        nothing = np.zeros(0, np.int64)
        return PublishedClasses(of_group=nothing, first=nothing, sizes=nothing)
    of_group = np.zeros(len(sizes), np.int64)
    for p in published:
        printed = _printed(p, as_bounds)
        of_group = of_group * (int(printed.max()) + 1) + printed[p.of_group]
        _, first, of_group = np.unique(of_group, return_index=True, return_inverse=True)
    counted = np.bincount(of_group, sizes, minlength=len(first)).astype(np.int64)
    return PublishedClasses(of_group=of_group, first=first, sizes=counted)


def _printed(published: Published, as_bounds: bool) -> Ints:
    """A number for each meaning of a column, equal where the same is printed."""
    every = replace(published, of_group=np.arange(len(published.meanings)))
    columns = [values.to_pylist() for _, values in every.columns(as_bounds)]
    number: dict[tuple[object, ...], int] = {}
    return np.array(
        [number.setdefault(line, len(number)) for line in zip(*columns, strict=True)], dtype=np.int64
    )
