"""Sets of sums as bits: bit x of a word array says whether x is reachable.

Used where an Apéry set cannot serve (every other row is bounded), does not pay (the target is small against
the row sums), or has no fixed structure (row totals under rounded conditionals).
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.semigroups.leave_one_out import copy_inplace, leave_one_out_plan, plan_depth
from louver.optim.kernels.semigroups.progressions import append_runs, grown

__all__ = ["add_multiples_inplace", "append_bit_runs", "is_set", "leave_one_out_bits", "shift_or_inplace"]


@kernel
def is_set(words, x):
    return (words[x >> 6] >> np.uint64(x & 63)) & np.uint64(1) != np.uint64(0)


@kernel
def shift_or_inplace(target, source, shift):
    """target |= source << shift; bits beyond the array fall off. Safe when both are the same array."""
    whole = shift >> 6
    part = np.uint64(shift & 63)
    # From the top down: a word is read only before it is written.
    for w in range(target.shape[0] - 1, whole - 1, -1):
        moved = source[w - whole] << part
        if part != np.uint64(0) and w - whole >= 1:
            moved |= source[w - whole - 1] >> (np.uint64(64) - part)
        target[w] |= moved


@kernel
def add_multiples_inplace(words, value, limit):
    """Add 0 to `limit` copies of `value` by doubling: 1, 2, 4, ... and the rest."""
    block = np.int64(1)
    n_bits = words.shape[0] * 64
    while limit > 0 and value < n_bits:
        taken = min(block, limit)
        if taken > n_bits // value:
            return
        shift_or_inplace(words, words, taken * value)
        limit -= taken
        block *= 2


@kernel
def append_bit_runs(runs, span, item, words, target, value, limit):
    """`append_runs` of all nu in [0, limit] with target - nu * value in the set."""
    found = np.empty((64, 1), dtype=np.int64)
    n_found = np.int64(0)
    for nu in range(min(limit, target // value) + 1):
        if is_set(words, target - nu * value):
            found = grown(found, n_found, n_found + 1)
            found[n_found, 0] = nu
            n_found += 1
    return append_runs(runs, span, item, found[:n_found, 0], np.int64(0), np.int64(1), np.int64(0))


@kernel
def leave_one_out_bits(values, limits, copies, wanted, target):
    """As `leave_one_out_apery`, on bits from 0 to `target` and whether or not anything is unbounded.

    Cost: O(q log q log(limit)) passes over target / 64 words.
    """
    n_items = values.shape[0]
    most = np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        most[item] = target // values[item]
        if limits[item] >= 0:
            most[item] = min(most[item], limits[item])
    own = np.nonzero(wanted)[0]
    plan = leave_one_out_plan(own.shape[0])
    level = np.zeros((plan_depth(plan), (target >> 6) + 1), dtype=np.uint64)
    level[0, 0] = np.uint64(1)
    for item in range(n_items):
        if not wanted[item]:
            add_multiples_inplace(level[0], values[item], most[item] * copies[item])

    runs = np.empty((64, 3), dtype=np.int64)
    span = np.zeros((n_items + 1, 2), dtype=np.int64)
    for s in range(plan.shape[0]):
        depth = plan[s, 0]
        if depth > 0:
            copy_inplace(level[depth], level[depth - 1])
        for i in range(plan[s, 1], plan[s, 2]):
            add_multiples_inplace(level[depth], values[own[i]], most[own[i]] * copies[own[i]])
        if plan[s, 3] >= 0:
            item = own[plan[s, 3]]
            add_multiples_inplace(level[depth], values[item], most[item] * (copies[item] - 1))
            runs = append_bit_runs(runs, span, item, level[depth], target, values[item], most[item])
    return runs[: span[-1, 1]], span[:-1]
