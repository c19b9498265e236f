"""The cheapest cut of a sequence of records into classes."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread

__all__ = ["best_segments"]


@kernel
def best_segments(geometry, codes, k, stop):
    """Labels of the cheapest classes of k to 2k - 1 consecutive records; trusts n >= k.

    Once `stop` is set, every k records from there on form a class; the last one takes what remains.
    """
    n, m = codes.shape
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    cost = np.full(n + 1, 2**62, np.int64)
    size = np.zeros(n + 1, np.int64)
    cost[0] = 0
    # cost[i] is the least loss of the first i records, size[i] the length of their last class.
    done = 0
    for i in range(k, n + 1):
        if stop[0] != 0:
            break
        clear_inplace(lower, upper, words)
        for s in range(1, min(2 * k - 1, i) + 1):
            add_inplace(geometry, lower, upper, words, codes[i - s])
            if s >= k and cost[i - s] < 2**62:
                total = cost[i - s] + s * spread(geometry, lower, upper, words)
                if total < cost[i]:
                    cost[i], size[i] = total, s
        done = i
    labels = np.empty(n, np.int64)
    end, label = done, 0
    while end > 0:
        labels[end - size[end] : end] = label
        end -= size[end]
        label += 1
    last = 0  # the class of the records before `done`, joined by those that cannot form a class of their own
    for i in range(done, n):
        if (i - done) % k == 0 and n - i >= k:
            last = label
            label += 1
        labels[i] = last
    return labels
