"""Rows of a two-way table as the items of a knapsack: reduced counts, and rows that behave alike."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.semigroups.progressions import gcd

__all__ = ["distinct_items", "reduced_rows"]

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@kernel
def reduced_rows(counts):
    """Counts of each row divided by their greatest common divisor, and the sums of the rows; no row is all zero."""
    reduced = counts.copy()
    row_sums = np.zeros(counts.shape[0], dtype=np.int64)
    for row in range(counts.shape[0]):
        divisor = np.int64(0)
        for col in range(counts.shape[1]):
            divisor = gcd(counts[row, col], divisor)
        for col in range(counts.shape[1]):
            if divisor > 1:
                reduced[row, col] //= divisor
            row_sums[row] += reduced[row, col]
    return reduced, row_sums


@kernel
def _slot(slots, items, value, limit):
    """Slot of an open-addressed table that holds the item, or the empty slot (-1) where it belongs."""
    mask = slots.shape[0] - 1
    slot = np.int64((np.uint64(value + 31 * limit) * HASH_FACTOR) >> np.uint64(32)) & mask
    while slots[slot] >= 0 and (items[slots[slot], 0] != value or items[slots[slot], 1] != limit):
        slot = (slot + 1) & mask
    return slot


@kernel
def _group_inplace(row_sums, lower, upper, target, items, item_of):
    """Number the distinct (value, limit) pairs by first appearance and count each; return their number."""
    size = 2
    while size < 2 * row_sums.shape[0]:
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    n_items = 0
    for row in range(row_sums.shape[0]):
        limit = upper[row] - lower[row]
        if limit >= target or limit >= target // row_sums[row]:
            limit = -1
        slot = _slot(slots, items, row_sums[row], limit)
        if slots[slot] < 0:
            slots[slot] = n_items
            items[n_items, 0], items[n_items, 1] = row_sums[row], limit
            n_items += 1
        items[slots[slot], 2] += 1
        item_of[row] = slots[slot]
    return n_items


@kernel
def _comes_before(items, a, b):
    """Unbounded items come before bounded ones, and in ascending order."""
    if items[a, 1] < 0 and items[b, 1] < 0:
        return items[a, 0] < items[b, 0]
    return items[a, 1] < 0 and items[b, 1] >= 0


@kernel
def _order(items, n_items):
    """Shell sort; numpy's sorts take seconds to compile."""
    order = np.arange(n_items)
    step = 1
    while step < n_items // 3:
        step = 3 * step + 1
    while step > 0:
        for i in range(step, n_items):
            item = order[i]
            place = i
            while place >= step and _comes_before(items, item, order[place - step]):
                order[place] = order[place - step]
                place -= step
            order[place] = item
        step //= 3
    return order


@kernel
def distinct_items(row_sums, lower, upper, gap):
    """Rows that share their reduced sum and the room left between their bounds, as one item each.

    Rows that differ only in a lower bound behave alike once it is subtracted.

    Parameters
    ----------
    row_sums, lower, upper : int64 (n,)
        Reduced sums, and bounds on the multiples of each row, lower >= 0.
    gap : int64
        Total that all rows together must reach.

    Returns
    -------
    target : int64
        The gap minus what the lower bounds take. Negative if they take more or exceed an upper bound; there are no items then.
    values, limits, copies : int64 (q,)
        Unbounded items (limit -1: nothing but the target bounds them) first and ascending.
    item_of : int64 (n,)
    """
    n = row_sums.shape[0]
    items = np.zeros((n, 3), dtype=np.int64)
    item_of = np.empty(n, dtype=np.int64)
    target = gap
    n_items = 0
    for row in range(n):
        if lower[row] > upper[row] or (lower[row] > 0 and lower[row] > target // row_sums[row]):
            target = -1
        if target < 0:
            break
        target -= lower[row] * row_sums[row]
    if target >= 0:
        n_items = _group_inplace(row_sums, lower, upper, target, items, item_of)
    order = _order(items, n_items)
    rank = np.empty(n_items, dtype=np.int64)
    ordered = np.empty((3, n_items), dtype=np.int64)
    for place in range(n_items):
        rank[order[place]] = place
        for part in range(3):
            ordered[part, place] = items[order[place], part]
    for row in range(n if target >= 0 else 0):
        item_of[row] = rank[item_of[row]]
    return target, ordered[0], ordered[1], ordered[2], item_of
