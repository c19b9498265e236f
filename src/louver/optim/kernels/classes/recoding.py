"""Classes of records that one recoding per column makes equal."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import count_inplace, is_diverse, n_sensitive_values

__all__ = ["diverse_groups", "group_points"]


@kernel
def group_points(atoms, blocks, start, group):
    """Number the points so that those with equal blocks in all columns have equal numbers.

    Parameters
    ----------
    atoms : int32 (p, m)
        Value of each point in each column, by number.
    blocks : int32
        Block of every value, column after column.
    start : int64 (m,)
        Where each column starts in `blocks`.
    group : int64 (p,)
        Filled: the group of each point, by first point.

    Returns
    -------
    Number of groups.
    """
    p, m = atoms.shape
    n_slots = 2
    while n_slots < 2 * p:
        n_slots *= 2
    slots, first = np.full(n_slots, -1, np.int32), np.empty(p, np.int32)
    n = 0
    for i in range(p):
        key = np.uint64(0)
        for j in range(m):
            key = (key ^ np.uint64(blocks[start[j] + atoms[i, j]])) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
        at = np.int64(key & np.uint64(n_slots - 1))
        # Slots hold groups; a group with another first point's blocks moves on to the next slot.
        while True:
            g = slots[at]
            if g < 0:
                slots[at], first[n], group[i] = n, i, n
                n += 1
                break
            is_equal = True
            for j in range(m):
                if blocks[start[j] + atoms[i, j]] != blocks[start[j] + atoms[first[g], j]]:
                    is_equal = False
                    break
            if is_equal:
                group[i] = g
                break
            at = (at + 1) % n_slots
    return n


@kernel
def diverse_groups(limits, sensitive, group, sizes):
    """Which groups of records meet what is asked of their sensitive values; `group` is that of each record."""
    counts = np.zeros((sizes.shape[0], n_sensitive_values(limits)), np.int64)
    for i in range(group.shape[0]):
        count_inplace(limits, counts[group[i]], sensitive[i], 1)
    passed = np.empty(sizes.shape[0], np.bool_)
    for g in range(sizes.shape[0]):
        passed[g] = is_diverse(limits, counts[g])
    return passed
