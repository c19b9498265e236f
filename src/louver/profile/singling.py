"""Which columns single people out, alone and together: the smallest sets with enough unique records.

A set is listed if at least the requested share of records has values that no other record has, and none of its subsets reaches that share.
A record that is unique in a set is unique in every larger one, so no superset of a listed set is examined. If a column numbers households,
the records of a household count as one: they are unique if no other household has their values.

Records are compared by random 64-bit numbers, one for each set of columns, equal where all values are equal. Two records with different
values get the same number with probability 2^-64, so about one in forty million tables of a million records is misjudged. A sample drawn by
this number contains all records of a combination or none, so a record that is unique in the sample is unique in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver._mixing import GOLDEN, mixed
from louver.data.coded import CodedColumn
from louver.profile.load import ProfileProblem
from louver.run import Run

__all__ = [
    "Numbers",
    "RecordHash",
    "SinglingSet",
    "SinglingSets",
    "distinct_and_alone",
    "find_singling_sets",
    "sampled",
]

MAX_EXAMINED = 600
"""Maximum number of sets tried per size, those with most combinations of values first."""
MAX_LISTED = 30
"""Maximum number of sets listed per size, those that single out most records first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglingSet:
    """Columns that together single people out.

    Attributes
    ----------
    columns : tuple of str
    n_alone : int
        Number of records whose combination of values occurs nowhere else.
    share : float
        The same as a share of all records.
    """

    columns: tuple[str, ...]
    n_alone: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglingSets:
    """The sets found, smallest first, and within one size the most revealing first.

    Attributes
    ----------
    sets : tuple of SinglingSet
    n_found : int
        Number of sets found, including those not listed.
    n_examined : int
        Number of sets tried.
    is_complete : bool
        Whether all sets that could reach the share were tried.
    alone : tuple of int
        Number of records with a unique value in each column.
    """

    sets: tuple[SinglingSet, ...]
    n_found: int
    n_examined: int
    is_complete: bool
    alone: tuple[int, ...]


def find_singling_sets(problem: ProfileProblem, largest: int, share: float, run: Run) -> SinglingSets:
    """Minimal sets of up to `largest` columns in which at least `share` of the records are unique.

    Notes
    -----
    A set has at most as many unique records as its columns have combinations of values; sets with too few are not tried.
    Large tables are tried on a sample of combinations (see `hashing`), and what is listed is counted on all records.
    **Cost**: for each set tried one pass over the records and a sort of the sample.
    """
    search = _SubsetSearch(problem, share, run)
    for size in range(1, largest + 1):
        search.look_at(size)
    return SinglingSets(
        sets=tuple(search.found),
        n_found=search.n_found,
        n_examined=search.n_examined,
        is_complete=search.is_complete,
        alone=tuple(map(search.alone, range(len(problem.columns)))),
    )


class _SubsetSearch:
    def __init__(self, problem: ProfileProblem, share: float, run: Run) -> None:
        self._problem, self._run = problem, run
        self._hash = RecordHash(problem)
        self._units = problem.units()
        self._largest_unit = 1 if self._units is None else int(np.bincount(self._units).max(initial=1))
        self._least = share * problem.n_rows
        self._minimal: list[frozenset[int]] = []
        self._combinations: dict[tuple[int, ...], float] = {
            (i,): float(column.n_codes) for i, column in enumerate(problem.columns)
        }
        self.found: list[SinglingSet] = []
        self.n_examined = self.n_found = 0
        self.is_complete = True

    def look_at(self, size: int) -> None:
        """Try the sets of one size."""
        sets = self._candidates(size)
        self.is_complete &= len(sets) <= MAX_EXAMINED
        hits: dict[tuple[int, ...], int] = {}
        for number, one in enumerate(sets[:MAX_EXAMINED]):
            self._run.report(f"sets of {size} columns", number, min(len(sets), MAX_EXAMINED))
            n_alone = self._about_alone(one)
            if n_alone >= self._least:
                hits[one] = n_alone
        self.n_found += len(hits)
        self._minimal += map(frozenset, hits)
        self._count(sorted(hits, key=lambda one: (-hits[one], one))[:MAX_LISTED])

    def _candidates(self, size: int) -> list[tuple[int, ...]]:
        """Sets that contain no minimal set and have enough combinations of values, in descending order."""
        settled = {i for one in self._minimal if len(one) == 1 for i in one}
        open_columns = [
            i
            for i, column in enumerate(self._problem.columns)
            if i not in settled and i != self._problem.unit and column.n_codes > 1
        ]
        sets = {
            one: self._most_combinations(one)
            for one in combinations(open_columns, size)
            if not any(part <= set(one) for part in self._minimal)
        }
        least = self._least / self._largest_unit
        return sorted((one for one in sets if sets[one] >= least), key=lambda one: (-sets[one], one))

    def _most_combinations(self, one: tuple[int, ...]) -> float:
        """Bound on the combinations of values, from the subsets already counted."""
        if len(one) == 1:
            return self._combinations[one]
        parts = (
            self._combinations.get((*one[:i], *one[i + 1 :]), float("inf")) * self._combinations[(one[i],)]
            for i in range(len(one))
        )
        product = 1.0
        for i in one:
            product *= self._combinations[(i,)]
        return min(product, *parts)

    def _about_alone(self, one: tuple[int, ...]) -> int:
        """Unique records in a set; for a large table, based on a sample."""
        self.n_examined += 1
        if len(one) == 1:
            return self.alone(one[0])
        numbers, units, every = sampled(self._hash.of(*one), self._units)
        distinct, alone = distinct_and_alone(numbers, units)
        self._combinations[one] = distinct * every * (1.0 if every == 1 else 1.2)
        return alone * every

    def alone(self, column: int) -> int:
        """Records with a unique value in one column."""
        if self._units is None or column == self._problem.unit:
            return self._problem.columns[column].n_alone
        return distinct_and_alone(self._hash.of(column), self._units)[1]

    def _count(self, listed: list[tuple[int, ...]]) -> None:
        """Count the listed sets on all records; those that the sample overestimated drop out."""
        counted = []
        for one in listed:
            self._run.check()
            counted.append(self._counted(one))
        counted.sort(key=lambda one: -one.n_alone)
        self.found += [one for one in counted if one.n_alone >= self._least]

    def _counted(self, one: tuple[int, ...]) -> SinglingSet:
        columns = self._problem.columns
        n_alone = (
            self.alone(one[0]) if len(one) == 1 else distinct_and_alone(self._hash.of(*one), self._units)[1]
        )
        return SinglingSet(
            columns=tuple(columns[i].name for i in one),
            n_alone=n_alone,
            share=n_alone / self._problem.n_rows,
        )


Numbers = NDArray[np.uint64]

SAMPLED_FROM = 2**18  # records
SAMPLE = 2**16


class RecordHash:
    """Sums of random numbers, one for every value of every column."""

    def __init__(self, problem: ProfileProblem) -> None:
        self._columns = problem.columns
        self._kept: dict[int, Numbers] = {}

    def of(self, *columns: int) -> Numbers:
        """One number per record, for the columns at these positions."""
        total = self._of_one(columns[0])
        for column in columns[1:]:
            total = total + self._of_one(column)
        return total

    def _of_one(self, column: int) -> Numbers:
        if column not in self._kept:
            self._kept[column] = _mixed(self._columns[column], column)
        return self._kept[column]


def _mixed(column: CodedColumn, seed: int) -> Numbers:
    """A well-mixed number for each (column, code)."""
    pairs = np.arange(column.n_values + 1, dtype=np.uint64) + np.uint64((seed + 1) << 32)
    return mixed(pairs * np.uint64(GOLDEN))[column.codes]


def sampled(numbers: Numbers, units: Ints | None = None) -> tuple[Numbers, Ints | None, int]:
    """About 100,000 records with their units, and the sampling interval (1 in n); all records if the table is not much larger."""
    if len(numbers) <= SAMPLED_FROM:
        return numbers, units, 1
    every = 1 << ((len(numbers) // SAMPLE).bit_length() - 1)
    chosen = (numbers & np.uint64(every - 1)) == 0
    return numbers[chosen], None if units is None else units[chosen], every


def distinct_and_alone(numbers: Numbers, units: Ints | None = None) -> tuple[int, int]:
    """The number of distinct numbers, and of records whose number occurs nowhere outside their unit."""
    if not len(numbers):
        return 0, 0
    if units is None:
        ordered = np.sort(numbers)
        is_first = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
        return int(is_first[:-1].sum()), int((is_first[:-1] & is_first[1:]).sum())
    order = np.lexsort((units, numbers))
    ordered, of = numbers[order], units[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(starts, len(ordered)))
    return len(starts), int(sizes[of[starts] == of[starts + sizes - 1]].sum())
