"""Group sizes over a hierarchy of regions: the table, the queries on it, and the changes that one person can cause.

It holds the number of groups (households, trips) of each size in every region, in the form of counts to which noise is added, and the L1
and squared L2 sensitivity of each kind of count under each neighbour relation.

Sizes are the columns: from `first_size` to the largest size. If the list of units is public (`Total.PUBLIC`), size 0 is among them, because
a unit that loses its only member remains in the list, unless these units are counted at size 1. If it is not (`Total.NOISY`), sizes begin
with 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import BudgetError
from louver.optim.trees import LevelTree
from louver.privacy.composition import Changes
from louver.privacy.neighbours import Relation, steps

__all__ = [
    "GroupTable",
    "NoisyAnswers",
    "SizeQuery",
    "Total",
    "answers",
    "first_size",
    "sensitivity",
    "sizes_of",
    "squared_sensitivity",
    "ways_to_change",
]


class Total(StrEnum):
    """Whether the number of groups is published exactly."""

    PUBLIC = "public"
    NOISY = "noisy"


class SizeQuery(StrEnum):
    """The counts of a region to which noise is added."""

    SIZES = "sizes"
    PREFIX = "prefix"
    SUFFIX = "suffix"
    CHAIN = "chain"


def first_size(total: Total, smallest: int) -> int:
    """Size counted by the first column: without a public list, no unit is empty."""
    return smallest if total is Total.PUBLIC else 1


@dataclass(frozen=True, slots=True, eq=False)
class GroupTable:
    """Numbers of groups by region and size. True counts stay inside the wall; released ones are estimates.

    Attributes
    ----------
    regions : RegionTree
    counts : int64 (n_regions, n_sizes)
        Read-only.
    first_size : int
        Size that the first column counts: 0 or 1.
    """

    regions: RegionTree
    counts: Ints
    first_size: int

    def __post_init__(self) -> None:
        self.counts.setflags(write=False)

    @classmethod
    def from_cells(
        cls,
        regions: RegionTree,
        cells: Mapping[tuple[tuple[str, ...], int], int],
        largest: int,
        total: Total,
        smallest: int = 0,
    ) -> GroupTable:
        """Build a table from numbers of groups by leaf region and size, sizes already capped at `largest`.

        Groups smaller than `smallest` are counted at this size. This moves no two sizes further apart, so it does not change any
        sensitivity.
        """
        first = first_size(total, smallest)
        leaf_counts = np.zeros((len(regions.leaf_labels), largest + 1 - first), np.int64)
        row_of = {leaf: row for row, leaf in enumerate(regions.leaf_labels)}
        for (leaf, size), groups in cells.items():
            leaf_counts[row_of[leaf], max(size, first) - first] += groups
        return cls(regions, regions.tree.sum_up(leaf_counts), first)

    @property
    def n_groups(self) -> int:
        return int(self.counts[0].sum())

    @property
    def largest_size(self) -> int:
        return self.first_size + int(self.counts.shape[1]) - 1


@dataclass(frozen=True, slots=True, eq=False)
class NoisyAnswers:
    """The input of post-processing: noisy answers to one query on all regions, and nothing confidential.

    Attributes
    ----------
    tree : LevelTree
    rows : int64 (n_regions, n_sizes)
    variances : tuple of float
        Variance of the noise on each level.
    total : int or None
        Exact number of groups, if it is public.
    """

    tree: LevelTree
    rows: Ints
    variances: tuple[float, ...]
    total: int | None


def answers(counts: Ints, query: SizeQuery, tree: LevelTree) -> Ints:
    """Return the counts of a query, for every region and size.

    Parameters
    ----------
    counts : int64 (n_regions, n_sizes)
        Groups of each size.
    query : SizeQuery
        SIZES: groups of this size. PREFIX: of this size or less. SUFFIX: of this size or more. CHAIN: groups of a smaller
        size in any region of the level, or of this size in this region or one before it (Fioretto et al. 2021, 9.2.1).
    tree : LevelTree

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2]])
    >>> counts = np.array([[3, 1, 2], [2, 0, 1], [1, 1, 1]])      # US, GA, NY: Table 4, sizes 1 to 3
    >>> answers(counts, SizeQuery.SUFFIX, tree).tolist()
    [[6, 3, 2], [3, 1, 1], [3, 2, 1]]
    >>> answers(counts, SizeQuery.CHAIN, tree).tolist()
    [[3, 4, 6], [2, 3, 5], [3, 4, 6]]
    """
    if query is SizeQuery.SIZES:
        return counts.copy()
    if query is SizeQuery.PREFIX:
        return counts.cumsum(axis=1)
    if query is SizeQuery.SUFFIX:
        return np.ascontiguousarray(counts[:, ::-1].cumsum(axis=1)[:, ::-1])
    chained = np.empty_like(counts)
    for k in range(tree.n_levels):
        level = counts[tree.level(k)]
        chained[tree.level(k)] = level.T.ravel().cumsum().reshape(level.T.shape).T
    return chained


def sizes_of(rows: Ints, query: SizeQuery, tree: LevelTree | None = None) -> Ints:
    """Turn the counts of a query back into numbers of groups of each size; the chain needs the tree."""
    if query is SizeQuery.SIZES:
        return rows
    if query is SizeQuery.PREFIX:
        return np.diff(rows, axis=1, prepend=0)
    if query is SizeQuery.SUFFIX:
        return -np.diff(rows, axis=1, append=0)
    assert tree is not None
    counts = np.empty_like(rows)
    for k in range(tree.n_levels):
        level = rows[tree.level(k)]
        counts[tree.level(k)] = np.diff(level.T.ravel(), prepend=0).reshape(level.T.shape).T
    return counts


def sensitivity(
    query: SizeQuery,
    neighbours: Relation,
    total: Total,
    *,
    n_level_regions: int,
    n_sizes: int,
    largest_quantity: int = 1,
) -> int:
    """L1 sensitivity of a query on all regions of one level together.

    Parameters
    ----------
    query : SizeQuery
    neighbours : Relation
    total : Total
        With a public total, neighbours share the list of units, so units cannot be added or removed.
    n_level_regions, n_sizes : int
        Regions of the level, and sizes (columns) counted.
    largest_quantity : int
        The largest number that one record can add to its unit's size.

    Notes
    -----
    **Departs**: Lemma 6 (prefix counts, sensitivity 1) requires that no unit appears or vanishes; suffix counts do not
    (ERRATA G2). The chain's sensitivity is the number of regions of the level, not 1 (ERRATA G1).

    A record moves one unit of one region from size a to a + q. That changes two sizes, q prefix or suffix counts, and, in the chain, the
    entries from (a, region) to just before (a + q, region). A new unit of q records is one more size, and q suffix counts. Replacing a
    record is at most twice that. A unit that is added or removed changes one size, and a number of suffix counts equal to its size.
    """
    if neighbours is Relation.ADD_REMOVE_UNIT:
        if total is Total.PUBLIC:
            raise BudgetError(
                "a public total fixes the list of units; use --total noisy with add-remove-unit neighbours."
            )
        if query is SizeQuery.SIZES:
            return 1
        if query is SizeQuery.SUFFIX:
            return n_sizes
    if total is Total.NOISY and query in (SizeQuery.PREFIX, SizeQuery.CHAIN):
        raise BudgetError(f"{query} counts are private only with a public total; use suffix counts.")
    most = min(largest_quantity, n_sizes)
    once = {
        SizeQuery.SIZES: 2,
        SizeQuery.PREFIX: most,
        SizeQuery.SUFFIX: most,
        SizeQuery.CHAIN: most * n_level_regions,
    }[query]
    times = steps(Relation.ADD_REMOVE_RECORD, neighbours)
    assert times is not None
    return once * times


SQUARED_SIZES = {
    Relation.ADD_REMOVE_RECORD: 2,
    Relation.CHANGE_RECORD: 6,
    Relation.ADD_REMOVE_UNIT: 1,
}


def squared_sensitivity(query: SizeQuery, neighbours: Relation, l1: int) -> int:
    """Squared L2 sensitivity of a query on all regions of one level together, from its L1 sensitivity.

    Notes
    -----
    **Privacy**: docs/proofs/groups.md, "Squared L2 sensitivities". A cumulative count changes by at most one, because the changes caused by
    a removed and an added record have opposite signs. A changed record may take two groups from one size and add them to two other sizes.
    """
    return SQUARED_SIZES[neighbours] if query is SizeQuery.SIZES else l1


def ways_to_change(query: SizeQuery, neighbours: Relation, l1: Sequence[int]) -> list[list[Changes]]:
    """How one step may change the counts of all levels, given each level's L1 sensitivity: every way, or a larger one that covers it.

    Notes
    -----
    The two units that a changed record leaves and enters are in one region down to some level, and in different regions below it. In
    one region three sizes may change by 2, 1 and 1; otherwise four change by 1.
    """
    if query is not SizeQuery.SIZES:
        return [[((1, count),) for count in l1]]
    if neighbours is not Relation.CHANGE_RECORD:
        return [[((1, SQUARED_SIZES[neighbours]),)] * len(l1)]
    together, apart = ((2, 1), (1, 2)), ((1, 4),)
    return [[together] * k + [apart] * (len(l1) - k) for k in range(len(l1) + 1)]
