"""All feasible multiples of every row: sum of row_sums * nu = gap, lower <= nu <= upper."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.semigroups.apery import leave_one_out_apery
from louver.optim.kernels.semigroups.bitset import leave_one_out_bits
from louver.optim.kernels.semigroups.progressions import grown
from louver.optim.kernels.semigroups.reduced_rows import distinct_items

__all__ = ["FEASIBLE", "INFEASIBLE", "TOO_LARGE", "feasible_multiples"]

FEASIBLE, INFEASIBLE, TOO_LARGE = 0, 1, 2

BITS_PER_RESIDUE = 32
"""A pass over this many bits costs about as much as visiting one residue of an Apéry set."""

MAX_RESIDUES = 2**24
"""Largest modulus of an Apéry set (128 MiB; a few sets are kept in memory)."""

MAX_BITS = 2**31
"""Largest sum that is laid out in bits (256 MiB; a few copies are kept in memory)."""


@kernel
def _most_of_bounded(values, limits, copies, target):
    """The largest sum of the bounded items, or target + 1 if that is less."""
    most = np.int64(0)
    for item in range(values.shape[0]):
        if limits[item] >= 0:
            if limits[item] * values[item] > (target - most) // copies[item]:
                return target + 1
            most += limits[item] * values[item] * copies[item]
    return most


@kernel
def _prefers_bits(values, limits, target):
    """Whether a pass over bits costs less than one over an Apéry set, or nothing is unbounded."""
    return limits[0] >= 0 or target < BITS_PER_RESIDUE * values[0]


@kernel
def _is_too_large(values, limits, target, most):
    """Whether the work would exceed the memory, or sums in Apéry sets 64 bits."""
    if _prefers_bits(values, limits, target):
        return target >= MAX_BITS
    for value in values:
        if value > 2**61 // values[0]:
            return True
    is_alone = values.shape[0] == 1 or limits[1] >= 0
    return values[0] > MAX_RESIDUES or (is_alone and most >= MAX_BITS)


@kernel
def _append_shifted(runs, used, part, start, stop, shift):
    """The first `used` runs, then `part[start:stop]` with `shift` added to all values."""
    runs = grown(runs, used, used + stop - start)
    for r in range(start, stop):
        runs[used, 0], runs[used, 1], runs[used, 2] = part[r, 0] + shift, part[r, 1] + shift, part[r, 2]
        used += 1
    return runs


@kernel
def _spread(runs, span, item_of, wanted, lower):
    """Runs of items as runs of rows; lower bounds that were subtracted beforehand are added back."""
    spans = np.zeros((item_of.shape[0], 2), dtype=np.int64)
    used = runs.shape[0]
    for row in range(item_of.shape[0]):
        if wanted[row]:
            start, stop = span[item_of[row], 0], span[item_of[row], 1]
            if lower[row] > 0:
                runs = _append_shifted(runs, used, runs, start, stop, lower[row])
                start, stop = used, used + stop - start
                used = stop
            spans[row, 0], spans[row, 1] = start, stop
    return runs[:used], spans


@kernel
def _wanted_items(item_of, wanted, n_items):
    """Items of the wanted rows; the first item if none is wanted, because one answer shows whether a solution exists."""
    item_wanted = np.zeros(n_items, dtype=np.bool_)
    n_wanted = 0
    for row in range(item_of.shape[0]):
        item_wanted[item_of[row]] |= wanted[row]
        n_wanted += wanted[row]
    item_wanted[0] |= n_wanted == 0
    return item_wanted


@kernel
def feasible_multiples(row_sums, lower, upper, gap, wanted):
    """Feasible nu of the wanted rows as runs.

    Parameters
    ----------
    row_sums, lower, upper : int64 (n,)
        Row sums are at least 1, lower bounds at least 0.
    gap : int64
    wanted : bool (n,)

    Returns
    -------
    status : FEASIBLE, INFEASIBLE or TOO_LARGE
        Runs are given only with the first.
    runs : int64 (k, 3)
        (first, last, step); rows that share reduced sum and bounds share runs.
    span : int64 (n, 2)
        Which runs belong to each row; (0, 0) where unwanted.
    """
    nothing = np.zeros((0, 3), dtype=np.int64)
    nowhere = np.zeros((row_sums.shape[0], 2), dtype=np.int64)
    target, values, limits, copies, item_of = distinct_items(row_sums, lower, upper, gap)
    if target < 0 or row_sums.shape[0] == 0:
        return FEASIBLE if target == 0 else INFEASIBLE, nothing, nowhere
    most = _most_of_bounded(values, limits, copies, target)
    if limits[0] >= 0 and most < target:
        return INFEASIBLE, nothing, nowhere
    if _is_too_large(values, limits, target, most):
        return TOO_LARGE, nothing, nowhere
    item_wanted = _wanted_items(item_of, wanted, values.shape[0])
    by_bits = item_wanted
    least = np.int64(0)
    runs, span, is_alone = nothing, np.zeros((values.shape[0], 2), dtype=np.int64), False
    if not _prefers_bits(values, limits, target):
        runs, span, is_alone = leave_one_out_apery(values, limits, copies, item_wanted, target)
        by_bits = np.zeros(values.shape[0], dtype=np.bool_)
        by_bits[0] = is_alone
        least = max(least, (target - most) // values[0])  # what the others leave for the only unbounded row
    if is_alone or _prefers_bits(values, limits, target):
        more, more_span = leave_one_out_bits(values, limits, copies, by_bits, target - least * values[0])
        used = runs.shape[0]
        runs = _append_shifted(runs, used, more, np.int64(0), more.shape[0], least)[: used + more.shape[0]]
        for item in range(values.shape[0]):
            if by_bits[item]:
                span[item, 0], span[item, 1] = more_span[item, 0] + used, more_span[item, 1] + used
    for item in range(values.shape[0]):
        if item_wanted[item] and span[item, 0] == span[item, 1]:
            return INFEASIBLE, nothing, nowhere
    runs, spans = _spread(runs, span, item_of, wanted, lower)
    return FEASIBLE, runs, spans
