"""The nearest points of every point, and the loss that they prove no partition can avoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louver.anonymize.columns import Ints
from louver.anonymize.problem import Points, Problem
from louver.engine.run import run_pieces
from louver.optim.kernels.neighbours import NUMBER_BITS, NUMBER_MASK, build_tree, nearest

__all__ = ["Neighbourhood", "find_neighbours"]

CHUNK = 2048
"""Points whose neighbours are sought in one piece of work."""

MOST_SOUGHT = 64
"""Neighbours that are sought for the sake of the bound, at most; k - 1 of them are always enough."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbourhood:
    """Neighbours of all points.

    Attributes
    ----------
    near : int32 (p, l)
        Nearest other points, nearest first; at equal distance by number.
    lower_bound : int
        Units that every partition loses at least.
    """

    near: NDArray[np.int32]
    lower_bound: int


def find_neighbours(problem: Problem, points: Points, *, n_wanted: int, workers: int = 1) -> Neighbourhood:
    """The `n_wanted` nearest points of every point, or all where there are no more; and what they prove.

    Notes
    -----
    The distance of two records is the loss per record of a class of both.

    **Lower bound**: a record i that is published lies in a class of at least k records. The loss per record of a class
    never falls as records are added, so it is at least the distance from i to the member farthest from it, and that
    is at least the distance from i to its (k - 1)-th nearest other record. A record that is left out loses everything,
    which is no less. The sum of these distances over all records is therefore a bound, whatever else is asked of the
    classes. Where fewer neighbours are known, the distance to the last of them is used, which is no more.

    **Cost**: O(p (log p + l)) on clustered data, O(p^2 m) at worst; O(p l) memory.
    """
    codes, multiplicity = points.codes, points.multiplicity
    tree = build_tree(problem.geometry, codes, np.arange(len(codes)))
    n_wanted = min(n_wanted, len(codes) - 1)
    n_sought = min(max(n_wanted, min(problem.least_size - 1, MOST_SOUGHT)), len(codes) - 1)

    def part(first: int) -> tuple[NDArray[np.int32], int]:
        last = min(len(codes), first + CHUNK)
        keys = nearest(tree, problem.geometry, first, last, n_sought)
        near = (keys & NUMBER_MASK).astype(np.int32)
        own = multiplicity[first:last]
        bound = _least_loss(keys >> NUMBER_BITS, own, multiplicity[near], problem.least_size)
        return np.ascontiguousarray(near[:, :n_wanted]), bound

    if n_wanted == 0:
        return Neighbourhood(near=np.zeros((len(codes), 0), np.int32), lower_bound=0)
    parts = list(run_pieces(part, range(0, len(codes), CHUNK), workers=workers))
    return Neighbourhood(
        near=np.concatenate([near for near, _ in parts]), lower_bound=sum(bound for _, bound in parts)
    )


def _least_loss(distances: Ints, own: Ints, others: Ints, k: int) -> int:
    """What the records of some points lose together at least; all by point and neighbour."""
    is_reached = own[:, None] + np.cumsum(others, axis=1) >= k
    at = np.where(is_reached.any(axis=1), is_reached.argmax(axis=1), distances.shape[1] - 1)
    least = np.where(own >= k, 0, distances[np.arange(len(own)), at])
    return int(own @ least)
