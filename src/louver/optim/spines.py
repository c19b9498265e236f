"""Areas that are unions of leaves of a tree: how far they are from its regions, and how precisely least squares estimates them.

An area is given by the leaves that lie in it. Every quantity computed for a region and an area depends on the leaves of the region alone,
so one pass from the leaves to the root is enough, and only regions that meet the area are visited.

Notes
-----
**Implements**: the off-spine distance of Cumings-Menon et al. (2021), *Geographic spines in the 2020 Census Disclosure Avoidance System*:
the least number of regions that have to be added and subtracted to make an area. **Implements**: the variance of a union of leaves under
least squares on a tree (Hay et al., 2010). Given the count of a region, the part of it that lies in an area is a share of that count and a
rest of known variance, which does not depend on anything outside the region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints

__all__ = ["Parts", "members", "off_spine_distances", "union_variances", "upward_variances"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """For every pair of a region of a level and an area that meet: what is known about the people in both.

    Parameters
    ----------
    region, area : ndarray of int64, shape (pairs,)
        Pairs that meet, in ascending order of region, then area.
    share : ndarray of float64, shape (pairs,)
        Expected share of the region's count that lies in the area.
    rest : ndarray of float64, shape (pairs,)
        Variance that remains where the region's count is known.
    """

    region: Ints
    area: Ints
    share: Floats
    rest: Floats

    def above(self, parent: Ints, variance: Floats, n_areas: int) -> Parts:
        """Return the same for the parents.

        Parameters
        ----------
        parent : ndarray of int64, shape (regions,)
        variance : ndarray of float64, shape (regions,)
            Of each count, from the region's own subtree.
        n_areas : int
        """
        region, area, place = _grouped(parent[self.region], self.area, n_areas)
        n = len(region)
        own = variance[self.region]
        summed = np.bincount(parent, variance)[region]
        first = np.bincount(place, self.share * own, n)
        second = np.bincount(place, self.share**2 * own, n)
        share = np.divide(first, summed, out=np.zeros(n), where=summed > 0)
        rest = np.bincount(place, self.rest, n) + np.maximum(second - first * share, 0.0)
        return Parts(region=region, area=area, share=share, rest=rest)

    def climb(self, parents: Sequence[Ints], variances: Sequence[Floats], n_areas: int) -> Floats:
        """Variances (areas,) of the areas, from those of all counts of a tree whose lowest level this is."""
        parts = self
        for parent, variance in zip(reversed(parents), reversed(variances[1:]), strict=True):
            parts = parts.above(parent, variance, n_areas)
        found = np.zeros(n_areas)
        found[parts.area] = parts.rest + parts.share**2 * variances[0][parts.region]
        return found


def _grouped(region: Ints, area: Ints, n_areas: int) -> tuple[Ints, Ints, Ints]:
    """Distinct pairs in ascending order, and the place of every given pair among them."""
    keys, place = np.unique(region * n_areas + area, return_inverse=True)
    found_region, found_area = np.divmod(keys, n_areas)
    return found_region, found_area, place


def members(area_of: Ints) -> tuple[Ints, Ints]:
    """Pairs (leaf, area) of all leaves that lie in an area; -1 stands for none."""
    leaf = np.flatnonzero(area_of >= 0)
    return leaf, area_of[leaf]


def off_spine_distances(parents: Sequence[Ints], leaf: Ints, area: Ints, n_areas: int) -> Ints:
    """The least number of regions that have to be added and subtracted to make each area.

    Parameters
    ----------
    parents : sequence of ndarray of int64
        For each level but the first, the parent of every region; the last are those of the leaves. The first level has one region.
    leaf, area : ndarray of int64, shape (pairs,)
        Which leaves lie in which areas; no pair twice.
    n_areas : int

    Returns
    -------
    ndarray of int64, shape (areas,)
        Zero for an area without leaves.

    Notes
    -----
    To make the part of a region that lies in the area, its children are made one by one, or the part outside is made and subtracted from
    the region. A region that the area does not meet costs nothing inside and one region outside.

    Examples
    --------
    Four leaves under two regions; an area of three leaves is the root minus one leaf.

    >>> off_spine_distances([np.array([0, 0]), np.array([0, 0, 1, 1])], np.array([0, 1, 2]), np.array([0, 0, 0]), 1)
    array([2])
    """
    region, of_area, place = _grouped(leaf, area, n_areas)
    inside, outside = np.ones(len(region), np.int64), np.zeros(len(region), np.int64)
    for parent in reversed(parents):
        n_children = np.bincount(parent)
        region, of_area, place = _grouped(parent[region], of_area, n_areas)
        n = len(region)
        met = np.bincount(place, minlength=n)
        added = np.bincount(place, inside, n).astype(np.int64)
        left = np.bincount(place, outside, n).astype(np.int64) + n_children[region] - met
        inside, outside = np.minimum(added, 1 + left), np.minimum(left, 1 + added)
    distances = np.zeros(n_areas, np.int64)
    distances[of_area] = inside
    return distances


def upward_variances(parents: Sequence[Ints], precisions: Sequence[float], lowest: Floats) -> list[Floats]:
    """Variances of the count of every region from its own subtree, level by level from the root.

    Parameters
    ----------
    parents : sequence of ndarray
        As for `off_spine_distances`.
    precisions : sequence of float
        For each level but the lowest, the inverse variance of its measurement of a region's count; infinite where the count is exact.
    lowest : ndarray of float64, shape (regions,)
        Variances at the lowest level.
    """
    found = [lowest]
    for parent, precision in zip(reversed(parents), reversed(precisions), strict=True):
        summed = np.bincount(parent, found[0])
        below = np.divide(1.0, summed, out=np.full(len(summed), np.inf), where=summed > 0)
        found.insert(0, 1.0 / (precision + below))
    return found


def union_variances(
    parents: Sequence[Ints], precisions: Sequence[float], leaf: Ints, area: Ints, n_areas: int
) -> Floats:
    """Variances of the least-squares estimates of areas from all measurements of a tree.

    Parameters
    ----------
    parents, leaf, area, n_areas
        As for `off_spine_distances`.
    precisions : sequence of float
        For each level the inverse variance of its measurement of a region's count; infinite where the count is exact. That of the
        leaves is positive.

    Returns
    -------
    ndarray of float64, shape (areas,)

    Examples
    --------
    A root and two leaves, each measured with variance 1: the sum of the two leaves is the root, known with 1 / (1 + 1/2).

    >>> union_variances([np.array([0, 0])], [1.0, 1.0], np.array([0, 1]), np.array([0, 0]), 1).round(4)
    array([0.6667])
    """
    region, of_area, _ = _grouped(leaf, area, n_areas)
    parts = Parts(region=region, area=of_area, share=np.ones(len(region)), rest=np.zeros(len(region)))
    n_leaves = len(parents[-1]) if parents else 1
    lowest = np.full(n_leaves, 1.0 / precisions[-1])
    variances = upward_variances(parents, precisions[:-1], lowest)
    return parts.climb(parents, variances, n_areas)
