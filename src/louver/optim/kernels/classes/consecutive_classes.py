"""The cheapest cut of a sequence of records into classes."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread

__all__ = ["best_segments"]


@kernel
def best_segments(geometry, codes, k):
    """Labels of the cheapest classes of k to 2k - 1 consecutive records; trusts n >= k."""
    n, m = codes.shape
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    cost = np.full(n + 1, 2**62, np.int64)
    size = np.zeros(n + 1, np.int64)
    cost[0] = 0
    # cost[i] is the least loss of the first i records, size[i] the length of their last class.
    for i in range(k, n + 1):
        clear_inplace(lower, upper, words)
        for s in range(1, min(2 * k - 1, i) + 1):
            add_inplace(geometry, lower, upper, words, codes[i - s])
            if s >= k and cost[i - s] < 2**62:
                total = cost[i - s] + s * spread(geometry, lower, upper, words)
                if total < cost[i]:
                    cost[i], size[i] = total, s
    labels = np.empty(n, np.int64)
    stop, label = n, 0
    while stop > 0:
        labels[stop - size[stop] : stop] = label
        stop -= size[stop]
        label += 1
    return labels
