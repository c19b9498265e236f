"""Greedy Search: classes grown one record at a time along the sorted order."""

from __future__ import annotations

import numpy as np

from louver._arrays import Ints
from louver.anonymize.methods.method import Method, repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.consecutive_classes import best_segments
from louver.optim.kernels.classes.greedy import assign_leftovers_inplace, greedy_labels

__all__ = ["METHOD", "grown_classes", "solve"]


def solve(
    problem: AnonymizeProblem, watch: Watch | None = None, *, published_leftovers: bool = False
) -> Partition:
    """Greedy Search.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
        Once its time is up, the remaining records are classed by the best cut of their sorted order.
    published_leftovers : bool
        Put leftover records where the enlarged class is cheapest, as the paper's Table 7 does, rather than where the
        loss rises least.

    Notes
    -----
    Implements: Liang & Samavi (2020), Algorithm 2, with the order of section 2.3 and the weights of (36).
    Departs: leftovers are assigned by the smallest increase in loss (K4). The record to add is found by best-first search over a tree of
    regions (`louver.optim.kernels.classes.record_tree`): the loss of class and record together never falls as the class grows,
    so a value computed for a smaller class is still a lower bound. The classes are those of a plain scan, record by record.
    Requirements in addition to k are met by uniting classes afterwards.

    **Cost**: about n log n for small k on clustered data; O(n^2 m) at worst, as the plain scan (39).
    """
    watch = watch or Watch()
    labels = grown_classes(problem, watch, farthest_first=False, published_leftovers=published_leftovers)
    return problem.partition(repaired(problem, labels, watch), method="greedy")


def grown_classes(
    problem: AnonymizeProblem, watch: Watch, *, farthest_first: bool, published_leftovers: bool = False
) -> Ints:
    """Labels of classes of k records grown from seeds, leftovers assigned."""
    k = problem.least_size
    labels: Ints = greedy_labels(problem.geometry, problem.codes, k, farthest_first, watch.stop)
    watch.run.check()
    left = np.flatnonzero(labels < 0)
    if len(left) >= k:
        flag = watch.run.flag
        labels[left] = labels.max() + 1 + best_segments(problem.geometry, problem.codes[left], k, flag)
        watch.run.check()
    assign_leftovers_inplace(
        problem.geometry, problem.codes, labels, int(labels.max()) + 1, not published_leftovers
    )
    return labels


METHOD = Method(name="greedy", solve=lambda problem, watch, _: solve(problem, watch))
