"""The best of the methods that the time allows."""

from __future__ import annotations

import time

from louver.anonymize import exact, greedy
from louver.anonymize import sorted as sorted_order
from louver.anonymize.problem import Partition, Problem

__all__ = ["solve"]

EXACT_RECORDS = 40
"""Up to this many records the optimum is worth trying first."""

NODES_PER_STEP = 10_000


def solve(problem: Problem, *, seconds: float | None = 10.0, steps: int | None = None) -> Partition:
    """The partition with the least loss among the best cut of the sorted order, Greedy Search and, for few records, the optimum."""
    started = time.perf_counter()
    found = [sorted_order.solve(problem), greedy.solve(problem)]
    best = min(found, key=lambda partition: partition.loss)
    if problem.n_records <= EXACT_RECORDS:
        left = None if seconds is None else max(0.1, seconds - (time.perf_counter() - started))
        nodes = None if steps is None else NODES_PER_STEP * steps
        return exact.solve(problem, seconds=left, max_nodes=nodes, start=best)
    return best
