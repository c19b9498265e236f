"""Classes of records that become equal under one recoding per column."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import count_inplace, is_diverse, n_sensitive_values

__all__ = ["diverse_groups", "group_points"]


@kernel
def group_points(atoms, blocks, start, n_blocks, columns, weight, group, sizes):
    """Divide groups of points by their blocks in some columns, and count each group.

    Parameters
    ----------
    atoms : int32 (p, m)
        Number of the value of each point in each column.
    blocks : int32
        Block of every value, column after column.
    start, n_blocks : int64 (m,)
        Where each column starts in `blocks`, and how many blocks it has.
    columns : int64
        Columns to divide by. The number of groups times the product of their numbers of blocks is below 2^63.
    weight : int64 (p,)
        Records of each point.
    group : int64 (p,)
        The group of each point so far; overwritten with the new group, numbered by first point.
    sizes : int64 (p,)
        Filled: records of each group.

    Returns
    -------
    Number of groups.
    """
    p = atoms.shape[0]
    n_slots, shift = 2, 63
    while n_slots < 2 * p:
        n_slots, shift = 2 * n_slots, shift - 1
    slots, keys = np.full(n_slots, -1, np.int32), np.empty(p, np.uint64)
    n = 0
    for i in range(p):
        # Blocks are digits of the key, each to the base of its column: equal keys mean equal blocks in all columns.
        key = np.uint64(group[i])
        for j in columns:
            key = key * np.uint64(n_blocks[j]) + np.uint64(blocks[start[j] + atoms[i, j]])
        at = np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))
        while slots[at] >= 0 and keys[slots[at]] != key:
            at = (at + 1) & (n_slots - 1)
        g = slots[at]
        if g < 0:
            slots[at], keys[n], sizes[n], group[i] = n, key, weight[i], n
            n += 1
        else:
            sizes[g] += weight[i]
            group[i] = g
    return n


@kernel
def diverse_groups(limits, sensitive, group, sizes):
    """Which groups of records meet the requirements on their sensitive values; `group` gives the group of each record."""
    counts = np.zeros((sizes.shape[0], n_sensitive_values(limits)), np.int64)
    for i in range(group.shape[0]):
        count_inplace(limits, counts[group[i]], sensitive[i], 1)
    passed = np.empty(sizes.shape[0], np.bool_)
    for g in range(sizes.shape[0]):
        passed[g] = is_diverse(limits, counts[g])
    return passed
