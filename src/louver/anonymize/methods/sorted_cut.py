"""Classes of consecutive records in the sorted order."""

from __future__ import annotations

import numpy as np

from louver.anonymize.methods.method import Method, repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.consecutive_classes import best_segments

__all__ = ["METHOD", "initial", "solve"]


def solve(problem: AnonymizeProblem, watch: Watch | None = None) -> Partition:
    """The cheapest cut of the sorted order into classes.

    Notes
    -----
    Implements: Liang & Samavi (2020), section 2.3, for the order.
    Departs: the paper cuts after every k records (`initial`); here dynamic programming over the last class of k to
    2k - 1 records finds the best of all cuts. Longer classes need not be tried: if cut in two, they lose no more.

    **Cost**: O(n k m) time, O(n) memory.
    """
    watch = watch or Watch()
    labels = best_segments(problem.geometry, problem.codes, problem.least_size, watch.stop)
    return problem.partition(repaired(problem, labels, watch), method="sorted")


def initial(problem: AnonymizeProblem) -> Partition:
    """The initial feasible solution of section 2.3: every k records form a class; the last also takes what remains."""
    k = problem.least_size
    labels = np.minimum(np.arange(problem.n_records) // k, problem.n_records // k - 1)
    return problem.partition(repaired(problem, labels, Watch()), method="initial")


METHOD = Method(name="sorted", solve=lambda problem, watch, _: solve(problem, watch))
