"""What was measured with which noise: the list of levels and queries, read from the measurements themselves.

A file of measurements has one row group for each batch of regions of one level and query. Every query of a level must have answered
every region of the level once: what is measured twice is lost twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from louver.release.folder import Folder, Malformed

__all__ = ["Measured", "read_noise"]

COLUMNS = ("level", "query", "variance", "node")
NOT_ONCE = "a query was not measured once in every region of its level"


@dataclass(frozen=True, slots=True)
class Measured:
    """Variance of the noise of one query at one level, the level's regions, and the numbers measured in each of them."""

    variance: float
    n_regions: int
    n_values: int


def read_noise(folder: Folder, file: str) -> Mapping[tuple[str, str], Measured]:
    """The noise of every level and query, in the order of the file."""
    levels: dict[str, _Level] = {}
    for rows, n_values in folder.row_groups(file, COLUMNS):
        if rows.num_rows:
            level, query, variance = (_one(rows[name]) for name in COLUMNS[:3])
            if n_values % rows.num_rows or not isinstance(variance, float):
                raise Malformed("the measured regions do not all have as many numbers")
            own = levels.setdefault(str(level), _Level(str(query)))
            own.take(str(query), (variance, n_values // rows.num_rows), rows["node"].combine_chunks())
    return {
        (name, query): Measured(variance, level.n_regions(), width)
        for name, level in levels.items()
        for query, (variance, width) in level.noise.items()
    }


class _Level:
    """The regions of a level, as its first query lists them; the other queries must list the same."""

    def __init__(self, first: str) -> None:
        self.first, self.noise = first, dict[str, tuple[float, int]]()
        self._parts, self._at = list[pa.Array](), dict[str, tuple[int, int]]()

    def take(self, query: str, noise: tuple[float, int], regions: pa.Array) -> None:
        """A batch of a query: its noise, and the regions that it answers next."""
        if self.noise.setdefault(query, noise) != noise:
            raise Malformed("a query was measured with different noise in different regions")
        if query == self.first:
            self._parts.append(regions)
            return
        part, start = self._at.get(query, (0, 0))
        while len(regions):
            if part == len(self._parts):
                raise Malformed(NOT_ONCE)
            n = min(len(self._parts[part]) - start, len(regions))
            if not self._parts[part].slice(start, n).equals(regions.slice(0, n)):
                raise Malformed(NOT_ONCE)
            regions, start = regions.slice(n), start + n
            if start == len(self._parts[part]):
                part, start = part + 1, 0
        self._at[query] = (part, start)

    def n_regions(self) -> int:
        """Regions of the level, of which every query answered each once."""
        regions = pa.chunked_array(self._parts)
        if regions.null_count or pc.count_distinct(regions).as_py() != len(regions):
            raise Malformed(NOT_ONCE)
        if any(self._at.get(query) != (len(self._parts), 0) for query in self.noise if query != self.first):
            raise Malformed(NOT_ONCE)
        return len(regions)


def _one(column: pa.ChunkedArray) -> object:
    """The value that all rows of a batch share."""
    values: list[object] = pc.unique(column).to_pylist()
    if len(values) != 1 or values[0] is None:
        raise Malformed("the measurements are not in batches of one query at one level")
    return values[0]
