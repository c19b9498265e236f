"""Trees of regions as arrays, numbered level by level from the root."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints

__all__ = ["LevelTree"]


@dataclass(frozen=True, slots=True, eq=False)
class LevelTree:
    """A tree whose leaves all lie on the last level.

    Attributes
    ----------
    first_child : int64 (n_regions + 1,)
        Children of r are first_child[r] .. first_child[r + 1]; none for a leaf.
    parent : int64 (n_regions,)
        -1 for the root.
    level_start : int64 (n_levels + 1,)
        Regions of level k are level_start[k] .. level_start[k + 1].

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2], [1, 3]])
    >>> tree.n_regions, tree.parent.tolist()
    (7, [-1, 0, 0, 1, 2, 2, 2])
    >>> tree.sum_up(np.array([[1], [2], [3], [4]]))[:, 0].tolist()
    [10, 1, 9, 1, 2, 3, 4]
    """

    first_child: Ints
    parent: Ints
    level_start: Ints

    @classmethod
    def from_counts(cls, counts: Sequence[Sequence[int]]) -> LevelTree:
        """Build a tree from the number of children of every region, level by level; each must have at least one."""
        level_start, parent, first_child = [0, 1], [-1], []
        for level in counts:
            for offset, n_children in enumerate(level):
                first_child.append(len(parent))
                parent += [level_start[-2] + offset] * n_children
            level_start.append(len(parent))
        first_child += [len(parent)] * (len(parent) + 1 - len(first_child))
        arrays = [np.array(values, np.int64) for values in (first_child, parent, level_start)]
        for array in arrays:
            array.setflags(write=False)
        return cls(*arrays)

    @property
    def n_regions(self) -> int:
        return len(self.parent)

    @property
    def n_levels(self) -> int:
        return len(self.level_start) - 1

    @property
    def n_leaves(self) -> int:
        return int(self.level_start[-1] - self.level_start[-2])

    @property
    def level_sizes(self) -> tuple[int, ...]:
        """Number of regions on each level."""
        return tuple(np.diff(self.level_start).tolist())

    def level(self, k: int) -> slice:
        """Return the regions of level k."""
        return slice(int(self.level_start[k]), int(self.level_start[k + 1]))

    def children(self, r: int) -> slice:
        """Return the children of region r."""
        return slice(int(self.first_child[r]), int(self.first_child[r + 1]))

    def sum_up(self, leaves: Ints) -> Ints:
        """Return rows for all regions from rows for the leaves."""
        rows = [leaves]
        for k in range(self.n_levels - 2, -1, -1):
            starts = self.first_child[self.level(k)] - self.level_start[k + 1]
            rows.insert(0, np.add.reduceat(rows[0], starts, axis=0))
        return np.concatenate(rows)
