"""The true histograms of a level, on disk: a nation's do not fit into memory. Confidential."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.data.scratch import PairFile, SortedCounts
from louver.run import Run
from louver.topdown.problem import SparseLevel

__all__ = ["StoredLevel", "store_levels"]


class StoredLevel:
    """Histograms of all regions of a level, zeros left out, read some regions at a time.

    Parameters
    ----------
    folder : Path
        Private. The file in it has no name, and goes with the process.
    n_regions : int
    """

    def __init__(self, folder: Path, n_regions: int) -> None:
        self.n_regions = n_regions
        self._pairs = PairFile(folder)
        self._start = np.zeros(n_regions + 1, dtype=np.int64)  # lengths, one place on, until all is there

    def append(self, region: Ints, cell: Ints, count: Ints) -> None:
        """Write counts after those that are there, in the order of regions and cells."""
        if len(region):
            length = np.bincount(region - region[0])
            self._start[region[0] + 1 : region[-1] + 2] += length
            self._pairs.append(cell, count)

    def finish(self) -> None:
        """Say that all is there."""
        np.cumsum(self._start, out=self._start)

    def part(self, first: int, last: int) -> SparseLevel:
        """The regions first to last."""
        start = self._start[first : last + 1]
        cell, count = self._pairs.read(int(start[0]), int(start[-1]))
        return SparseLevel(start=start - start[0], cell=cell, count=count)

    def whole(self) -> SparseLevel:
        """All regions, in memory."""
        return self.part(0, self.n_regions)


def store_levels(
    spine: RegionTree, counts: SortedCounts, n_cells: int, folder: Path, run: Run
) -> tuple[StoredLevel, ...]:
    """Histograms of every level, the root first, from counts by leaf * n_cells + cell, which are used up."""
    levels: list[StoredLevel] = []
    for level in range(spine.n_levels - 1, -1, -1):
        own, above = StoredLevel(folder, spine.sizes[level]), SortedCounts(folder, run)
        for key, count in counts.merged():
            region, cell = np.divmod(key, n_cells)
            own.append(region, cell, count)
            if level > 0:
                parent = np.searchsorted(spine.starts[level - 1], region, side="right") - 1
                above.add(parent * n_cells + cell, count)
        own.finish()
        levels.insert(0, own)
        counts = above
    return tuple(levels)
