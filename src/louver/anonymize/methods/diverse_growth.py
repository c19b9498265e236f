"""Diverse growth: classes grown record by record towards k, l and t together; one of the starts of `auto`."""

from __future__ import annotations

import numpy as np

from louver.anonymize.methods.method import repaired
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.watch import Watch
from louver.optim.kernels.classes.diverse_growth import diverse_labels
from louver.optim.kernels.classes.diversity import n_sensitive_values

__all__ = ["is_useful", "solve"]

MOST_VALUES = 1000
"""Maximum number of sensitive values: the time for each record considered is proportional to it."""

STRICTNESS = (0.0, 0.5)
"""Share of the greatest possible step towards the requirements that a record must make: a small share prefers cheap records, a large one
small classes."""


def is_useful(problem: AnonymizeProblem) -> bool:
    """Whether classes have requirements other than size, and can be grown to meet them."""
    n_values = n_sensitive_values(problem.requirements.limits)
    return 0 < n_values <= MOST_VALUES and not problem.requirements.matches


def solve(problem: AnonymizeProblem, watch: Watch) -> Partition:
    """The better of two partitions whose classes were grown until they met all requirements.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch
        Once its time is up, no further class is grown.

    Notes
    -----
    A class starts from the first record left in the sorted order. Of the nearest remaining records that bring it nearer to l and t, it
    takes the one by which its region grows least, until it has k records and meets both. Records without a class join the cheapest one that
    remains publishable. Uniting whole classes of k records instead, as all other methods do, makes classes of several times the size that t
    needs.

    **Cost**: classes x (the search for near records + records of a class x values).
    """
    best: Partition | None = None
    for strictness in STRICTNESS:
        if best is not None and watch.is_over:
            break
        labels = diverse_labels(
            problem.geometry,
            problem.requirements,
            problem.codes,
            np.arange(problem.n_records),
            problem.least_size,
            strictness,
            watch.stop,
        )
        watch.run.check()
        alone = np.flatnonzero(labels < 0)
        labels[alone] = labels.max(initial=-1) + 1 + np.arange(len(alone))
        found = problem.partition(repaired(problem, labels, watch), method="auto")
        if best is None or found.loss < best.loss:
            best = found
    assert best is not None
    return best
