"""What follows for certain from counts with cell keys: noise is bounded, and the true counts still add up.

A published number shows which true counts can lead to it, and the true counts of parts add up to that of their total. Least and largest
counts are propagated over every sum of every table until nothing changes. An exact solution of all tables together can be tighter.

Notes
-----
**Cost**: a few passes over all tables; each narrows a range of at most 2 D + 1 counts, D being the largest noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.run import Run

if TYPE_CHECKING:
    from louver.protect.cellkey import KeyedTable
    from louver.protect.noise_table import NoiseTable

__all__ = ["Bounds", "bounds_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Least and largest true counts of the cells that are not empty.

    Attributes
    ----------
    keys : uint64 (cells,)
    counts, lower, upper : int64 (cells,)
    """

    keys: NDArray[np.uint64]
    counts: Ints
    lower: Ints
    upper: Ints

    def determined(self, limit: int) -> NDArray[np.uint64]:
        """Keys of the counts below the limit that have only one candidate left."""
        found: NDArray[np.uint64] = self.keys[(self.counts < limit) & (self.lower == self.upper)]
        return found


def bounds_of(tables: Sequence[KeyedTable], noise: NoiseTable, run: Run | None = None) -> Bounds:
    """Propagate bounds on the counts that the published numbers allow over all sums.

    Parameters
    ----------
    tables : sequence of KeyedTable
        The tables, including earlier ones. Cells of the same records are one cell; readers do not know that an empty cell is empty, so each
        empty cell is separate.
    """
    keys = np.concatenate([table.keys.ravel() for table in tables])
    counts = np.concatenate([table.counts.ravel() for table in tables])
    shown = np.concatenate([table.noisy.ravel() for table in tables])
    full = counts > 0
    different, first, inverse = np.unique(keys[full], return_index=True, return_inverse=True)
    place = np.empty(len(keys), dtype=np.int64)
    place[full] = inverse
    place[~full] = len(different) + np.arange(int((~full).sum()))
    numbers = np.zeros(len(different) + int((~full).sum()), dtype=np.int64)
    numbers[place] = shown
    # Candidates: numbers near 0 have their own candidates, and all larger numbers have the same candidates, shifted.
    above, below = _steps(noise)
    kind = np.minimum(numbers, len(above) - 1)
    lower, upper = numbers - noise.most, numbers + noise.most
    sums = list(_sums(tables, place))
    while True:
        offset = np.clip(lower - numbers + noise.most, 0, 2 * noise.most)
        lower = numbers - noise.most + above[kind, offset]
        offset = np.clip(upper - numbers + noise.most, 0, 2 * noise.most)
        upper = numbers - noise.most + below[kind, offset]
        before = int((upper - lower).sum())
        for total, parts in sums:
            if run is not None:
                run.check()
            _narrow(total, parts, numbers, lower, upper)
        if int((upper - lower).sum()) == before:
            break
    n = len(different)
    return Bounds(keys=different, counts=counts[full][first], lower=lower[:n], upper=upper[:n])


def _steps(noise: NoiseTable) -> tuple[Ints, Ints]:
    """For each published number and each count from D below it to D above it: the next candidate from this count on, and the last candidate
    up to it.

    A count of 0 is always published as 0. There are no candidates beyond either end; a count there is moved to the end first.
    """
    most = noise.most
    above, below = [], []
    for shown in range(len(noise.rows) + most + 1):
        possible = [
            place
            for place, count in enumerate(range(shown - most, shown + most + 1))
            if (count == 0 and shown == 0) or (count > 0 and noise.row_of(count).get(shown - count, 0) > 0)
        ] or [0, 2 * most]  # a number that no count leads to is never published
        above.append(
            [min((p for p in possible if p >= at), default=max(possible)) for at in range(2 * most + 1)]
        )
        below.append(
            [max((p for p in possible if p <= at), default=min(possible)) for at in range(2 * most + 1)]
        )
    return np.array(above, dtype=np.int64), np.array(below, dtype=np.int64)


def _sums(tables: Sequence[KeyedTable], place: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Cells of totals (sums,) and of their parts (parts, sums)."""
    start = 0
    for table in tables:
        own = place[start : start + table.counts.size].reshape(table.counts.shape)
        start += table.counts.size
        for number, axis in enumerate(table.axes):
            lines = np.moveaxis(own, number, 0).reshape(len(axis.codes), -1)
            for total, parts in axis.parts:
                yield lines[total], lines[list(parts)]


def _narrow(total: Ints, parts: Ints, numbers: Ints, lower: Ints, upper: Ints) -> None:
    """Narrow the bounds of totals and parts, in place."""
    low, high = lower[parts], upper[parts]
    least, largest = low.sum(axis=0), high.sum(axis=0)
    # A total published with another number than its only listed part has more records: unlisted parts have at least one.
    is_listed = numbers[parts] > 0
    is_alone = is_listed.sum(axis=0) == 1
    listed = np.where(is_listed, numbers[parts], 0).sum(axis=0)
    has_more = is_alone & (listed != numbers[total])
    hidden = ~is_listed & has_more
    others = np.where(hidden, high, 0).sum(axis=0) - high
    low = np.where(hidden, np.maximum(low, 1 - others), low)
    missing = np.where(has_more & (np.where(hidden, low, 0).sum(axis=0) < 1), 1, 0)
    alone_least = np.where(is_listed & has_more, missing, 0)
    least = np.maximum(least, low.sum(axis=0) + missing)
    np.maximum.at(lower, total, least)
    np.minimum.at(upper, total, largest)
    np.maximum.at(lower, parts, np.maximum(low, lower[total] - (largest - high)))
    np.minimum.at(upper, parts, upper[total] - (low.sum(axis=0) - low) - alone_least)
