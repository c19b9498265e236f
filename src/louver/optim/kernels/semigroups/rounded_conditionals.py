"""Row totals and cell counts that rounded conditionals allow.

A published proportion k / unit (unit = 10**decimals) and a row total t leave each cell an interval of counts.
Cells, known sums of cells that nest, and the row itself form a tree whose nodes carry bounds; children stand
before their parents and the row is the last node. Sums of integer intervals are integer intervals, so passing
them up and down such a tree is exact.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.semigroups.bitset import is_set, shift_or_inplace
from louver.optim.kernels.semigroups.progressions import append_regions, grown

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
def _cell_intervals_inplace(published, unit, t, half_even, parent, at_least, at_most, lower, upper, others):
    """Intervals of all nodes for a feasible total t; `others` (2, nodes) is workspace."""
    n_nodes = parent.shape[0]
    _intervals_inplace(published, unit, t, half_even, parent, at_least, at_most, lower, upper)
    others[:] = 0
    for node in range(n_nodes - 1):
        others[0, parent[node]] += lower[node]
        others[1, parent[node]] += upper[node]
    lower[n_nodes - 1] = t
    upper[n_nodes - 1] = t
    # Top down: the parent's bounds minus the most and the least that the siblings take.
    for node in range(n_nodes - 2, -1, -1):
        up = parent[node]
        low = lower[up] - (others[1, up] - upper[node])
        high = upper[up] - (others[0, up] - lower[node])
        lower[node] = max(lower[node], low)
        upper[node] = min(upper[node], high)


@kernel
def _turn(rising, rising_step, falling, falling_step, most):
    """First m in [0, most] at which rising + m rising_step >= falling + m falling_step; falling_step < rising_step."""
    if rising >= falling:
        return np.int64(0)
    return min(most, -((rising - falling) // (rising_step - falling_step)))


@kernel
def solid_extent(published, unit, half_even, first, last, lowest, highest):
    """Least and greatest count of each cell over all totals first..last of a row with no known sums.

    Notes
    -----
    With period P = 2 unit every interval end moves by a constant when t grows by P. So along t, t + P, t + 2P, ...
    the lower end of a cell is the larger of two linear sequences and the upper end the smaller of two, and
    their extremes lie at an end or where the two cross. Cost: O(unit * cells), whatever the totals.
    """
    n_cells = published.shape[0]
    period = 2 * unit
    low_step = np.empty(n_cells, dtype=np.int64)
    high_step = np.empty(n_cells, dtype=np.int64)
    low = np.empty(n_cells, dtype=np.int64)
    high = np.empty(n_cells, dtype=np.int64)
    for cell in range(n_cells):
        low_step[cell] = max(np.int64(0), 2 * published[cell] - 1)
        high_step[cell] = min(period, 2 * published[cell] + 1)
    lowest[:] = np.int64(2**62)
    highest[:] = -1
    for t in range(first, min(last, first + period - 1) + 1):
        for cell in range(n_cells):
            low[cell], high[cell] = count_interval(published[cell], unit, t, half_even)
        sum_low, sum_high = low.sum(), high.sum()
        most = (last - t) // period
        for cell in range(n_cells):
            # Lower end: the cell's own, or what the others leave at their highest.
            rest, rest_step = t - sum_high + high[cell], period - high_step.sum() + high_step[cell]
            turn = _turn(low[cell], low_step[cell], rest, rest_step, most) if rest_step < 0 else np.int64(0)
            for m in (turn, max(np.int64(0), turn - 1)):
                end = max(low[cell] + m * low_step[cell], rest + m * rest_step)
                lowest[cell] = min(lowest[cell], end)
            # Upper end: the cell's own, or what the others leave at their lowest.
            rest, rest_step = t - sum_low + low[cell], period - low_step.sum() + low_step[cell]
            turn = _turn(high[cell], high_step[cell], rest, rest_step, most) if rest_step < 0 else most
            for m in (turn, max(np.int64(0), turn - 1)):
                end = min(high[cell] + m * high_step[cell], rest + m * rest_step)
                highest[cell] = max(highest[cell], end)


@kernel
def cell_runs(published, unit, half_even, parent, at_least, at_most, totals, first, last):
    """The values of each cell over some feasible row totals, as runs and their spans.

    The totals are those listed and, in a row with no known sums, all of first..last (none if first > last); these must be large enough for
    the intervals of neighbouring totals to overlap.
    """
    n_cells = published.shape[0]
    n_nodes = parent.shape[0]
    lower = np.empty(n_nodes, dtype=np.int64)
    upper = np.empty(n_nodes, dtype=np.int64)
    others = np.empty((2, n_nodes), dtype=np.int64)
    n_listed = totals.shape[0]
    lowest = np.empty((n_cells, n_listed + 1), dtype=np.int64)
    highest = np.empty((n_cells, n_listed + 1), dtype=np.int64)
    for i in range(n_listed):
        _cell_intervals_inplace(
            published, unit, totals[i], half_even, parent, at_least, at_most, lower, upper, others
        )
        for cell in range(n_cells):
            lowest[cell, i], highest[cell, i] = lower[cell], upper[cell]
    n_intervals = n_listed
    if first <= last:
        solid_extent(published, unit, half_even, first, last, lowest[:, n_listed], highest[:, n_listed])
        n_intervals += 1
    runs = np.empty((64, 3), dtype=np.int64)
    span = np.zeros((n_cells + 1, 2), dtype=np.int64)
    for cell in range(n_cells):
        runs = append_regions(runs, span, cell, lowest[cell, :n_intervals], highest[cell, :n_intervals])
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
    words[n_words:] = 0
    for w in range(n_words):
        words[w] = work[w]
    if new_length & 63:
        words[n_words - 1] &= (np.uint64(1) << np.uint64(new_length & 63)) - np.uint64(1)
    while size[1] == 1 and new_length > 0 and is_set(words, new_length - 1):
        new_length -= 1
        words[new_length >> 6] &= ~(np.uint64(1) << np.uint64(new_length & 63))
    size[0] = new_length


@kernel
def matching_totals(own, own_size, others, others_size, target):
    """All x with x in the row's own set and target - x in the others' (bits and sizes as above).

    Returns
    -------
    listed : int64
        Those for which a bit had to be checked, ascending, without those covered by `solid`.
    solid : (first, last)
        All of first..last hold as well; none if first > last.
    """
    first, last = own_size[0], target - others_size[0]
    if own_size[1] == 0 or others_size[1] == 0 or first > last:
        first, last = target + 1, target
    found = np.empty((256, 1), dtype=np.int64)
    n_found = np.int64(0)
    stop = target if own_size[1] == 1 else min(target, own_size[0] - 1)
    x = np.int64(0) if others_size[1] == 1 else max(np.int64(0), target - others_size[0] + 1)
    while x <= stop:
        if x == first:
            x = last + 1
            continue
        rest = target - x
        mine = own_size[1] == 1 if x >= own_size[0] else is_set(own, x)
        theirs = others_size[1] == 1 if rest >= others_size[0] else is_set(others, rest)
        if mine and theirs:
            found = grown(found, n_found, n_found + 1)
            found[n_found, 0] = x
            n_found += 1
        x += 1
    return found[:n_found, 0].copy(), first, last
