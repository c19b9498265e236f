"""The tree of regions, level by level, from the root to the leaves, which is public.

Every level lists its regions in ascending order of their labels, and the children of a region are adjacent in the level below. Verbs differ
in the origin of the root and in the names of regions, so each has its own way to build a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np

from louver._arrays import Ints
from louver.errors import InputError
from louver.optim.trees import LevelTree

__all__ = ["ROOT", "SEPARATOR", "RegionTree"]

SEPARATOR = "/"
"""Separator of the labels in the path of a region."""

ROOT = "total"
"""Name of a root level that has no column."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionTree:
    """Regions by level; build one with `from_prefixes`, `from_columns` or, with a root above all columns, `from_leaves`.

    Parameters
    ----------
    names : tuple of str
        Names of the levels, the root first.
    codes : tuple of tuple of str
        Public names of the regions of each level, unique within it.
    leaf_labels : sequence of tuple of str
        For every leaf, the values of the data's region columns: its labels from the first column on, or only its code.
    starts : tuple of ndarray of int64
        For each level but the last: region i has the children starts[i] to starts[i + 1] of the next level.

    Examples
    --------
    >>> spine = RegionTree.from_prefixes(["44001", "44003", "44005"], ("state", "county"), (2, 5))
    >>> spine.sizes, spine.codes[0]
    ((1, 3), ('44',))
    >>> spine.children(0, 0)
    (0, 3)
    """

    names: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    leaf_labels: Sequence[tuple[str, ...]]
    starts: tuple[Ints, ...]

    def __post_init__(self) -> None:
        for start in self.starts:
            start.flags.writeable = False

    @classmethod
    def from_prefixes(cls, leaves: Sequence[str], names: Sequence[str], lengths: Sequence[int]) -> RegionTree:
        """Build from leaf codes whose prefixes name the regions above.

        Parameters
        ----------
        leaves : sequence of str
            Codes, all as long as the last length.
        names : sequence of str
            Names of the levels.
        lengths : sequence of int
            Prefix lengths, increasing; 0 stands for a root above all regions.
        """
        if (
            len(names) != len(lengths)
            or any(a >= b for a, b in pairwise(lengths))
            or min(lengths, default=0) < 0
        ):
            raise InputError(
                "the spine needs one prefix length per level, in increasing order.", option="prefixes"
            )
        for row, leaf in enumerate(leaves, start=1):
            if len(leaf) != lengths[-1]:
                message = (
                    f"leaf code {row} does not have {lengths[-1]} characters; correct the code or prefixes."
                )
                raise InputError(message, row=row, option="prefixes")
        # Codes of equal length are in the order of their prefixes.
        order = sorted(range(len(leaves)), key=leaves.__getitem__)
        return cls._checked(names, _Prefixes(leaves, lengths), _Alone(leaves), order)

    @classmethod
    def from_columns(cls, rows: Sequence[Sequence[str]], names: Sequence[str]) -> RegionTree:
        """Build from one row per leaf with a label for each level; equal labels under two parents are two regions.

        The code of a region is the path to it: the labels from the first level on, joined by slashes.
        """
        for row, labels in enumerate(rows, start=1):
            if len(labels) != len(names) or not all(labels):
                message = f"leaf row {row} does not have a label for every level; complete the row."
                raise InputError(message, row=row, option="columns")
            if any(SEPARATOR in label for label in labels):
                raise InputError(
                    f"leaf row {row} has a label with a slash; rename it.", row=row, option="columns"
                )
        paths = [tuple(SEPARATOR.join(labels[: depth + 1]) for depth in range(len(names))) for labels in rows]
        order = sorted(range(len(paths)), key=paths.__getitem__)
        return cls._checked(names, paths, [tuple(labels) for labels in rows], order)

    @classmethod
    def from_leaves(cls, levels: Sequence[str], leaves: Sequence[tuple[str, ...]]) -> RegionTree:
        """Build from the labels of the leaves, one for each of `levels`, under an additional root.

        The code of a region is its labels joined by slashes, and the root's is empty. Slashes and backslashes inside a label are preceded
        by a backslash, and an empty label is written as a backslash and a dash, so that no two regions share a code.

        Examples
        --------
        >>> tree = RegionTree.from_leaves(("state", "county"), [("NY", "Kings"), ("GA", "Cobb"), ("NY", "Bronx")])
        >>> tree.labels
        ((), ('GA',), ('NY',), ('GA', 'Cobb'), ('NY', 'Bronx'), ('NY', 'Kings'))
        >>> RegionTree.from_leaves(("a", "b"), [("x/", "y"), ("x", "/y"), ("", "z")]).node_names
        ('', '\\\\-', 'x', 'x\\\\/', '\\\\-/z', 'x/\\\\/y', 'x\\\\//y')
        """
        if not leaves:
            raise InputError(
                "the domain lists no regions; it needs one row per leaf region.", option="domain"
            )
        if len(set(leaves)) < len(leaves):
            row = next(i for i, leaf in enumerate(leaves) if leaf in leaves[:i]) + 1
            message = f"the domain repeats a leaf region on row {row}; list each once."
            raise InputError(message, row=row, option="domain")
        if ROOT in levels:
            raise InputError(
                f'a region level is named "{ROOT}", which is the root\'s name; rename it.', option="regions"
            )
        paths = [("", *leaf) for leaf in leaves]
        order = sorted(range(len(paths)), key=paths.__getitem__)
        return cls._build((ROOT, *levels), paths, leaves, order, _joined)

    @classmethod
    def _checked(
        cls,
        names: Sequence[str],
        paths: Sequence[tuple[str, ...]],
        labels: Sequence[tuple[str, ...]],
        order: list[int],
    ) -> RegionTree:
        """Build from codes that are complete at every level; refuse anything that is not a tree with one root."""
        if not names or len(set(names)) < len(names):
            raise InputError("the spine needs at least one level, and distinct names.", option="levels")
        if not paths:
            raise InputError("the list of leaves is empty; it needs at least one leaf.", option="leaves")
        for before, after in pairwise(order):
            if paths[before][-1] == paths[after][-1]:
                row = max(before, after) + 1
                raise InputError(
                    f"leaf row {row} occurs twice; list every leaf once.", row=row, option="leaves"
                )
        built = cls._build(names, paths, labels, order, lambda path: path[-1])
        if len(built.codes[0]) != 1:
            message = (
                f'level "{names[0]}" has more than one region; add a level above it that contains them all.'
            )
            raise InputError(message, option="levels")
        return built

    @classmethod
    def _build(
        cls,
        names: Sequence[str],
        paths: Sequence[tuple[str, ...]],
        labels: Sequence[tuple[str, ...]],
        order: list[int],
        code_of: Callable[[tuple[str, ...]], str],
    ) -> RegionTree:
        """Go through the leaves in order; a region begins where a path differs from the previous one."""
        codes: list[list[str]] = [[] for _ in names]
        starts: list[list[int]] = [[] for _ in names[1:]]
        previous: tuple[str, ...] = ()
        for i in order:
            path = paths[i]
            depth = next((d for d, (a, b) in enumerate(zip(path, previous, strict=False)) if a != b), 0)
            for level in range(depth, len(names)):
                codes[level].append(code_of(path[: level + 1]))
                if level + 1 < len(names):
                    starts[level].append(len(codes[level + 1]))
            previous = path
        return cls(
            names=tuple(names),
            codes=tuple(tuple(level) for level in codes),
            leaf_labels=_Alone(codes[-1]) if isinstance(labels, _Alone) else tuple(labels[i] for i in order),
            starts=tuple(
                np.array([*start, len(below)], dtype=np.int64)
                for start, below in zip(starts, codes[1:], strict=True)
            ),
        )

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.names)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of regions of each level."""
        return tuple(len(level) for level in self.codes)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Codes of the last level."""
        return self.codes[-1]

    def level_of(self, name: str) -> int:
        """Number of a level."""
        if name not in self.names:
            raise InputError(f'there is no level "{name}"; name a level of the spine.', option="levels")
        return self.names.index(name)

    def children(self, level: int, node: int) -> tuple[int, int]:
        """First child of a region, and the position after its last one."""
        return int(self.starts[level][node]), int(self.starts[level][node + 1])

    def leaf_range(self, level: int, start: int, stop: int) -> tuple[int, int]:
        """First leaf under the regions start to stop of a level, and the position after the last one."""
        for below in range(level, self.n_levels - 1):
            start, stop = int(self.starts[below][start]), int(self.starts[below][stop])
        return start, stop

    def add_up(self, level: int, counts: Ints) -> Ints:
        """Sum rows that belong to the regions of level + 1 into rows for those of `level`."""
        sums: Ints = np.add.reduceat(counts, self.starts[level][:-1], axis=0)
        return sums

    @cached_property
    def tree(self) -> LevelTree:
        """The same tree as arrays, regions numbered level by level."""
        return LevelTree.from_counts([np.diff(start).tolist() for start in self.starts])

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """For every region, level by level, its labels from the first column down to its own level."""
        above = self.n_levels - len(self.leaf_labels[0])
        return tuple(
            self.leaf_labels[self.leaf_range(level, region, region + 1)[0]][: level + 1 - above]
            for level, codes in enumerate(self.codes)
            for region in range(len(codes))
        )

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """One public name for every region, level by level, as used in measurements."""
        return tuple(code for level in self.codes for code in level)


@dataclass(frozen=True, slots=True)
class _Alone(Sequence[tuple[str, ...]]):
    """Labels of leaves named by a single column: there may be millions, each made into a tuple only when needed."""

    codes: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> _Alone: ...
    def __getitem__(self, place: int | slice) -> tuple[str, ...] | _Alone:
        return _Alone(self.codes[place]) if isinstance(place, slice) else (self.codes[place],)


@dataclass(frozen=True, slots=True)
class _Prefixes(Sequence[tuple[str, ...]]):
    """Prefixes of codes, also made into tuples only when needed."""

    codes: Sequence[str]
    lengths: Sequence[int]

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> tuple[str, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> _Prefixes: ...
    def __getitem__(self, place: int | slice) -> tuple[str, ...] | _Prefixes:
        if isinstance(place, slice):
            return _Prefixes(self.codes[place], self.lengths)
        return tuple(self.codes[place][:length] for length in self.lengths)


def _joined(path: tuple[str, ...]) -> str:
    """The labels below the root, joined into one unique name."""
    return SEPARATOR.join(
        label.replace("\\", "\\\\").replace(SEPARATOR, "\\/") or "\\-" for label in path[1:]
    )
