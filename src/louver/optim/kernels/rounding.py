"""Row totals and cell counts that rounded conditionals allow.

A published proportion k / unit (unit = 10**decimals) and a row total t leave each cell an interval of counts.
Cells, known sums of cells that nest, and the row itself form a tree whose nodes carry bounds; children stand
before their parents and the row is the last node. Sums of integer intervals are integer intervals, so passing
them up and down such a tree is exact.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.bitset import is_set, shift_or_inplace
from louver.optim.kernels.runs import appended, compressed

__all__ = ["add_set_inplace", "cell_runs", "count_interval", "feasible_totals", "matching_totals"]


@kernel
def count_interval(k, unit, t, half_even):
    """Least and greatest count of a cell with published value k / unit in a row with total t.

    Half-up: k - 1/2 <= unit n / t < k + 1/2. Half-even: both ends belong to even k and to no odd one.
    """
    low = (2 * k - 1) * t
    high = (2 * k + 1) * t
    base = 2 * unit
    low_closed = k % 2 == 0 or not half_even
    high_closed = k % 2 == 0 and half_even
    lower = -((-low) // base) if low_closed else low // base + 1
    upper = high // base if high_closed else -((-high) // base) - 1
    return max(lower, 0), min(upper, t)


@kernel
def _intervals_inplace(published, unit, t, half_even, parent, at_least, at_most, lower, upper):
    """Bottom-up intervals of all nodes; False when some node has none or the row cannot reach t."""
    n_cells = published.shape[0]
    n_nodes = parent.shape[0]
    for node in range(n_nodes):
        lower[node] = 0
        upper[node] = 0
    for node in range(n_nodes):
        if node < n_cells:
            lower[node], upper[node] = count_interval(published[node], unit, t, half_even)
        lower[node] = max(lower[node], at_least[node])
        upper[node] = min(upper[node], at_most[node])
        if lower[node] > upper[node]:
            return False
        if node < n_nodes - 1:
            lower[parent[node]] += lower[node]
            upper[parent[node]] += upper[node]
    return lower[n_nodes - 1] <= t <= upper[n_nodes - 1]


@kernel
def feasible_totals(published, unit, half_even, parent, at_least, at_most, largest):
    """Which row totals 0..largest the published row and the known bounds allow (bool array; 0 never)."""
    lower = np.empty(parent.shape[0], dtype=np.int64)
    upper = np.empty(parent.shape[0], dtype=np.int64)
    allowed = np.zeros(largest + 1, dtype=np.bool_)
    for t in range(1, largest + 1):
        allowed[t] = _intervals_inplace(
            published, unit, t, half_even, parent, at_least, at_most, lower, upper
        )
    return allowed


@kernel
def cell_runs(published, unit, half_even, parent, at_least, at_most, totals, most):
    """The values of each cell over all given (feasible) row totals, as runs and their spans.

    `most` is an upper bound on every count.
    """
    n_cells = published.shape[0]
    n_nodes = parent.shape[0]
    lower = np.empty(n_nodes, dtype=np.int64)
    upper = np.empty(n_nodes, dtype=np.int64)
    others_lower = np.empty(n_nodes, dtype=np.int64)
    others_upper = np.empty(n_nodes, dtype=np.int64)
    change = np.zeros((n_cells, most + 2), dtype=np.int32)
    for t in totals:
        _intervals_inplace(published, unit, t, half_even, parent, at_least, at_most, lower, upper)
        for node in range(n_nodes):
            others_lower[node] = 0
            others_upper[node] = 0
        for node in range(n_nodes - 1):
            others_lower[parent[node]] += lower[node]
            others_upper[parent[node]] += upper[node]
        lower[n_nodes - 1] = t
        upper[n_nodes - 1] = t
        # Top down: what the parent may hold, less what the siblings take at most and at least.
        for node in range(n_nodes - 2, -1, -1):
            up = parent[node]
            low = lower[up] - (others_upper[up] - upper[node])
            high = upper[up] - (others_lower[up] - lower[node])
            lower[node] = max(lower[node], low)
            upper[node] = min(upper[node], high)
            if node < n_cells:
                change[node, lower[node]] += 1
                change[node, upper[node] + 1] -= 1
    runs = np.empty((64, 3), dtype=np.int64)
    span = np.zeros((n_cells + 1, 2), dtype=np.int64)
    for cell in range(n_cells):
        covered = np.nonzero(np.cumsum(change[cell]))[0]
        runs = appended(runs, span, cell, compressed(covered, np.int64(0), np.int64(1), np.int64(0)))
    return runs[: span[-1, 1]], span[:-1]


@kernel
def add_set_inplace(words, size, other, other_size, work):
    """words := {a + b}; both sets hold 0.

    `size` is (length, tail): bits from `length` on are all set (tail 1) or all clear (tail 0). Because both
    sets hold 0, a set with a tail keeps it from no later than its own length.
    """
    length, tail = size[0], size[1]
    if tail == 1 and length == 0:
        return
    if tail == 1 and other_size[1] == 1:
        new_length = min(length, other_size[0])
    elif tail == 1:
        new_length = length
    elif other_size[1] == 1:
        new_length = min(other_size[0], words.shape[0] * 64)
    else:
        new_length = min(length + other_size[0] - 1, words.shape[0] * 64)
    n_words = (new_length + 63) >> 6
    work[:n_words] = 0
    for b in range(min(other_size[0], new_length)):
        if is_set(other, b):
            shift_or_inplace(work[:n_words], words[:n_words], b)
    size[1] = max(tail, other_size[1])
    words[:] = 0
    words[:n_words] = work[:n_words]
    if new_length & 63:
        words[n_words - 1] &= (np.uint64(1) << np.uint64(new_length & 63)) - np.uint64(1)
    while size[1] == 1 and new_length > 0 and is_set(words, new_length - 1):
        new_length -= 1
        words[new_length >> 6] &= ~(np.uint64(1) << np.uint64(new_length & 63))
    size[0] = new_length


@kernel
def matching_totals(own, own_size, others, others_size, target):
    """All x with x in the row's own set and target - x in the others' (bits and sizes as above)."""
    found = np.empty(target + 1, dtype=np.int64)
    n_found = 0
    for x in range(target + 1):
        mine = own_size[1] == 1 if x >= own_size[0] else is_set(own, x)
        if not mine:
            continue
        rest = target - x
        theirs = others_size[1] == 1 if rest >= others_size[0] else is_set(others, rest)
        if theirs:
            found[n_found] = x
            n_found += 1
    return found[:n_found]
