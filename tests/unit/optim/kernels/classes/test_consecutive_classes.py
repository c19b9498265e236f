"""The cheapest cut of a sequence against all cuts."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.classes.consecutive_classes import best_segments
from mixed_records import GOING, mixed_problem


def cuts(n, k):
    """All ways to write n as a sum of numbers of k or more, in order."""
    if n == 0:
        yield ()
    for size in range(k, n + 1):
        for rest in cuts(n - size, k):
            yield (size, *rest)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("n", [5, 8, 11])
def test_the_cheapest_of_all_cuts(n, k):
    problem = mixed_problem(n, n + k, k=k)
    labels = best_segments(problem.geometry, problem.codes, k, GOING)
    changes = np.flatnonzero(np.diff(labels)) + 1
    assert len(set(labels.tolist())) == len(changes) + 1  # consecutive records
    sizes = np.diff([0, *changes, n])
    assert sizes.min() >= k and sizes.max() <= 2 * k - 1

    def loss(cut):
        ends = np.cumsum(cut).tolist()
        return sum(problem.class_loss(range(end - size, end)) for size, end in zip(cut, ends, strict=True))

    assert loss(sizes.tolist()) == min(loss(cut) for cut in cuts(n, k))
