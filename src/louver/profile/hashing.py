"""Records as random 64-bit numbers, one for each set of columns: equal where all values are equal.

Two records with different values get the same number with probability 2^-64, so that a table of a million records is told
wrongly about once in forty million. A sample by the number itself keeps all records of a combination or none: who is
alone in the sample is alone in the whole table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver._mixing import GOLDEN, mixed
from louver.data.coded import CodedColumn
from louver.profile.problem import Problem

__all__ = ["Numbers", "RecordHash", "distinct_and_alone", "sampled"]

Numbers = NDArray[np.uint64]

SAMPLED_FROM = 2**18  # records
SAMPLE = 2**16


class RecordHash:
    """Sums of a random number for every value of every column."""

    def __init__(self, problem: Problem) -> None:
        self._columns = problem.columns
        self._kept: dict[int, Numbers] = {}

    def of(self, *columns: int) -> Numbers:
        """One number a record, for the columns at these positions."""
        total = self._of_one(columns[0])
        for column in columns[1:]:
            total = total + self._of_one(column)
        return total

    def _of_one(self, column: int) -> Numbers:
        if column not in self._kept:
            self._kept[column] = _mixed(self._columns[column], column)
        return self._kept[column]


def _mixed(column: CodedColumn, seed: int) -> Numbers:
    """A well spread number for each (column, code)."""
    pairs = np.arange(column.n_values + 1, dtype=np.uint64) + np.uint64((seed + 1) << 32)
    return mixed(pairs * np.uint64(GOLDEN))[column.codes]


def sampled(numbers: Numbers, units: Ints | None = None) -> tuple[Numbers, Ints | None, int]:
    """About 100,000 records with their units, and one in how many they are; all of a table that is not much larger."""
    if len(numbers) <= SAMPLED_FROM:
        return numbers, units, 1
    every = 1 << ((len(numbers) // SAMPLE).bit_length() - 1)
    chosen = (numbers & np.uint64(every - 1)) == 0
    return numbers[chosen], None if units is None else units[chosen], every


def distinct_and_alone(numbers: Numbers, units: Ints | None = None) -> tuple[int, int]:
    """How many different numbers there are, and how many records have one that nobody else has, outside of their unit."""
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
