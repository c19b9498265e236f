"""Rows of a two-way table as the items of a knapsack: reduced counts, and rows that behave alike."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.runs import gcd

__all__ = ["distinct_items", "reduced_rows"]

HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@kernel
def reduced_rows(counts):
    """Counts of each row over their greatest common divisor, and the sums of the rows; no row is all zero."""
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
    """Where an open-addressed table holds the item, or the empty place (-1) where it belongs."""
    mask = slots.shape[0] - 1
    slot = np.int64((np.uint64(value + 31 * limit) * HASH_FACTOR) >> np.uint64(32)) & mask
    while slots[slot] >= 0 and (items[slots[slot], 0] != value or items[slots[slot], 1] != limit):
        slot = (slot + 1) & mask
    return slot


@kernel
def _group_inplace(row_sums, lower, upper, target, items, item_of):
    """Number the distinct (value, limit) by first appearance and count them; returns how many there are."""
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
def distinct_items(row_sums, lower, upper, gap):
    """Rows that share their reduced sum and the room left between their bounds, as one item each.

    Rows that differ only in a lower bound behave alike once it is paid for.

    Parameters
    ----------
    row_sums, lower, upper : int64 (n,)
        Reduced sums, and bounds on the multiples of each row, lower >= 0.
    gap : int64
        What all rows together must add up to.

    Returns
    -------
    target : int64
        The gap less what the lower bounds take. Negative when they take more or cross an upper bound;
        there are no items then.
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
    keys = np.where(items[:n_items, 1] < 0, items[:n_items, 0], np.iinfo(np.int64).max)
    order = np.argsort(keys)
    rank = np.empty(n_items, dtype=np.int64)
    for place in range(n_items):
        rank[order[place]] = place
    for row in range(n if target >= 0 else 0):
        item_of[row] = rank[item_of[row]]
    return target, items[order, 0], items[order, 1], items[order, 2], item_of
