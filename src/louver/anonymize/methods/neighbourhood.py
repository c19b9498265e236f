"""The near points of every point, and the loss that they prove no partition can avoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louver.anonymize.problem import Points, Problem
from louver.anonymize.watch import Watch
from louver.engine.local import run_pieces
from louver.optim.kernels.classes.loss_bounds import least_losses
from louver.optim.kernels.classes.record_tree import NUMBER_MASK, build_tree, nearest

__all__ = ["Neighbourhood", "TimeUpError", "find_neighbours"]

CHUNK = 2048
"""Points whose neighbours are sought in one piece of work."""

TRIPLES_SOUGHT, PAIRS_SOUGHT = 24, 64
"""Neighbours that are sought for the sake of the bound, by triples of points while classes need half of them or fewer."""


class TimeUpError(Exception):
    """The time was up before all neighbours were found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbourhood:
    """Neighbours of all points.

    Attributes
    ----------
    near : int32 (p, l)
        Near other points, nearest first; at equal distance by number.
    lower_bound : int
        Units that every partition loses at least.
    """

    near: NDArray[np.int32]
    lower_bound: int


def find_neighbours(
    problem: Problem, points: Points, watch: Watch, *, n_wanted: int, workers: int = 1
) -> Neighbourhood:
    """The `n_wanted` nearest points of every point, or all where there are no more; and what they prove.

    Where columns are many, some of those listed may be near but not the nearest.

    Notes
    -----
    The distance of two records is the loss per record of a class of both.

    **Lower bound**: a record that is published lies in a class of at least k records, whose loss per record is at least
    what `louver.optim.kernels.classes.loss_bounds` proves for the record's point from its neighbours. A record that is left out loses
    everything, which is no less. The sum over all records is therefore a bound, whatever else is asked of the classes.

    **Time**: once it is up, `TimeUpError` is raised: neither a search nor a bound is to be had.

    **Cost**: O(p (log p + l^2 m)) for l neighbours sought; O(p l) memory.
    """
    codes, multiplicity = points.codes, points.multiplicity
    tree = build_tree(problem.geometry, codes, np.arange(len(codes)))
    n_wanted = min(n_wanted, len(codes) - 1)
    with_triples = 2 * (problem.least_size - 1) <= TRIPLES_SOUGHT
    n_useful = TRIPLES_SOUGHT if with_triples else min(PAIRS_SOUGHT, problem.least_size - 1)
    n_sought = min(max(n_wanted, n_useful), len(codes) - 1)

    def part(first: int) -> tuple[NDArray[np.int32], int]:
        watch.run.check()
        if watch.is_over:
            raise TimeUpError
        last = min(len(codes), first + CHUNK)
        keys, reach = nearest(tree, problem.geometry, first, last, n_sought)
        near = (keys[:, :n_wanted] & NUMBER_MASK).astype(np.int32)
        least = least_losses(
            problem.geometry, codes, multiplicity, keys, reach, first, problem.least_size, with_triples
        )
        return near, int(multiplicity[first:last] @ least)

    if n_wanted == 0:
        return Neighbourhood(near=np.zeros((len(codes), 0), np.int32), lower_bound=0)
    parts = list(run_pieces(part, range(0, len(codes), CHUNK), workers=workers))
    return Neighbourhood(
        near=np.concatenate([near for near, _ in parts]), lower_bound=sum(bound for _, bound in parts)
    )
