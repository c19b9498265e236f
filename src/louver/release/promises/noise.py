"""What was measured and with what noise: the list of levels and queries, read from the measurements themselves.

A file of measurements has one row group for each batch of regions of one level and query. Every query of a level must have been answered
once in every region of the level: a query measured twice costs its loss twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from louver.release.folder import Folder, Malformed

__all__ = ["MeasuredNoise", "read_noise"]

COLUMNS = ("level", "query", "variance", "node")
NOT_ONCE = "a query was not measured once in every region of its level"


@dataclass(frozen=True, slots=True)
class MeasuredNoise:
    """Variance of the noise of one query at one level, the level's regions, and the number of values measured in each of them."""

    variance: float
    n_regions: int
    n_values: int


def read_noise(
    folder: Folder, file: str, *, is_published: bool = False
) -> Mapping[tuple[str, str], MeasuredNoise]:
    """The noise of every level and query, in the order of the file.

    Parameters
    ----------
    is_published : bool
        Whether another publisher released the measurements: regions may then differ in noise or lack an answer, and the variance is the
        most common one, the smallest in case of ties.
    """
    levels: dict[str, _NoiseLevel] = {}
    variances: dict[tuple[str, str], Counter[float]] = {}
    for rows, n_values in folder.row_groups(file, COLUMNS):
        n_answers = rows.num_rows - (rows["variance"].null_count if is_published else 0)
        if rows.num_rows:
            level, query = (str(_one(rows[name])) for name in COLUMNS[:2])
            n_values -= rows.num_rows - n_answers  # a region without an answer counts as one value
            stated = rows["variance"].drop_null().to_pylist()
            found: Counter[float] = Counter(stated)
            if not is_published:
                _one(rows["variance"])
            if n_values % max(1, n_answers) or not all(isinstance(variance, float) for variance in found):
                raise Malformed("the measured regions do not all have as many numbers")
            own = levels.setdefault(level, _NoiseLevel(query))
            nodes = rows["node"].combine_chunks()
            if not n_answers:
                own.take(query, None, nodes)
                continue
            usual = None if is_published else next(iter(found))
            own.take(query, (usual, n_values // n_answers), nodes)
            variances.setdefault((level, query), Counter()).update(found)
    return {
        (name, query): MeasuredNoise(_usual(variances[name, query]), level.n_regions(), width)
        for name, level in levels.items()
        for query, (_, width) in level.noise.items()
    }


def _usual(variances: Counter[float]) -> float:
    """The most common variance of the regions, the smallest in case of ties."""
    return min(variances, key=lambda variance: (-variances[variance], variance))


class _NoiseLevel:
    """The regions of a level, as its first query lists them; the other queries must list the same."""

    def __init__(self, first: str) -> None:
        self.first, self.noise = first, dict[str, tuple[float | None, int]]()
        self._parts, self._at = list[pa.Array](), dict[str, tuple[int, int]]()

    def take(self, query: str, noise: tuple[float | None, int] | None, regions: pa.Array) -> None:
        """A batch of a query: its noise, None if it has no answers, and the regions that come next."""
        if noise is not None and self.noise.setdefault(query, noise) != noise:
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
        """Number of regions of the level, each answered once by every query."""
        regions = pa.chunked_array(self._parts)
        if regions.null_count or pc.count_distinct(regions).as_py() != len(regions):
            raise Malformed(NOT_ONCE)
        if any(self._at.get(query) != (len(self._parts), 0) for query in self.noise if query != self.first):
            raise Malformed(NOT_ONCE)
        return len(regions)


def _one(column: pa.ChunkedArray) -> object:
    """The value shared by all rows of a batch."""
    values: list[object] = pc.unique(column).to_pylist()
    if len(values) != 1 or values[0] is None:
        raise Malformed("the measurements are not in batches of one query at one level")
    return values[0]
