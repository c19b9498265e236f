"""All feasible multiples of every row: sum of row_sums * nu = gap, lower <= nu <= upper."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.bitset import leave_one_out_bits
from louver.optim.kernels.items import distinct_items
from louver.optim.kernels.runs import grown
from louver.optim.kernels.semigroup import leave_one_out_apery

__all__ = ["FEASIBLE", "INFEASIBLE", "TOO_LARGE", "feasible_multiples"]

FEASIBLE, INFEASIBLE, TOO_LARGE = 0, 1, 2

BITS_PER_RESIDUE = 32
"""A pass over this many bits costs about as much as visiting one residue of an Apéry set."""

MAX_RESIDUES = 2**24
"""Largest modulus of an Apéry set (128 MiB), of which a few are kept."""

MAX_BITS = 2**31
"""Largest sum that is laid out in bits (256 MiB), a few times."""


@kernel
def _most_of_bounded(values, limits, copies, target):
    """What the bounded items can make together, or target + 1 if that is less."""
    most = np.int64(0)
    for item in range(values.shape[0]):
        if limits[item] >= 0:
            if limits[item] * values[item] > (target - most) // copies[item]:
                return target + 1
            most += limits[item] * values[item] * copies[item]
    return most


@kernel
def _is_too_large(values, limits, target, n_bits):
    """Whether the work would leave memory, or sums in Apéry sets 64 bits."""
    if limits[0] >= 0 or target < BITS_PER_RESIDUE * values[0]:
        return target >= MAX_BITS
    is_alone = values.shape[0] == 1 or limits[1] >= 0
    largest = np.max(values)
    return values[0] > MAX_RESIDUES or largest > 2**61 // values[0] or (is_alone and n_bits >= MAX_BITS)


@kernel
def _solve_items(values, limits, copies, wanted, target, most):
    """Apéry sets or bits, by what a pass over either costs; runs and their spans for each item."""
    finite = target // values
    for item in range(values.shape[0]):
        if limits[item] >= 0:
            finite[item] = min(finite[item], limits[item])
    if limits[0] >= 0 or target < BITS_PER_RESIDUE * values[0]:
        return leave_one_out_bits(values, finite, copies, wanted, target)
    runs, span, is_alone = leave_one_out_apery(values, limits, copies, wanted, target)
    if is_alone:
        # The others leave at least this many multiples to the only unbounded row.
        least = max(np.int64(0), (target - most) // values[0])
        only_first = np.zeros(values.shape[0], dtype=np.bool_)
        only_first[0] = True
        rest = target - least * values[0]
        more, _ = leave_one_out_bits(values, finite, copies, only_first, rest)
        more[:, :2] += least
        span[0, 0], span[0, 1] = runs.shape[0], runs.shape[0] + more.shape[0]
        runs = np.concatenate((runs, more))
    return runs, span


@kernel
def _spread(runs, span, item_of, wanted, lower):
    """Runs of items as runs of rows; lower bounds that were paid for beforehand are added back."""
    spans = np.zeros((item_of.shape[0], 2), dtype=np.int64)
    used = runs.shape[0]
    for row in range(item_of.shape[0]):
        if not wanted[row]:
            continue
        start, stop = span[item_of[row], 0], span[item_of[row], 1]
        if lower[row] > 0:
            runs = grown(runs, used, stop - start)
            for r in range(start, stop):
                runs[used, 0], runs[used, 1] = runs[r, 0] + lower[row], runs[r, 1] + lower[row]
                runs[used, 2] = runs[r, 2]
                used += 1
            start, stop = used - (stop - start), used
        spans[row, 0], spans[row, 1] = start, stop
    return runs[:used], spans


@kernel
def feasible_multiples(row_sums, lower, upper, gap, wanted):
    """Feasible nu of the wanted rows as runs.

    Parameters
    ----------
    row_sums, lower, upper : int64 (n,)
        All row sums and lower bounds are whole and at least 1 and 0.
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
    runs = np.zeros((0, 3), dtype=np.int64)
    spans = np.zeros((row_sums.shape[0], 2), dtype=np.int64)
    target, values, limits, copies, item_of = distinct_items(row_sums, lower, upper, gap)
    if target < 0 or (row_sums.shape[0] == 0 and target > 0):
        return INFEASIBLE, runs, spans
    if row_sums.shape[0] == 0:
        return FEASIBLE, runs, spans
    most = _most_of_bounded(values, limits, copies, target)
    if limits[0] >= 0 and most < target:
        return INFEASIBLE, runs, spans
    if _is_too_large(values, limits, target, most + values[0]):
        return TOO_LARGE, runs, spans
    item_wanted = np.zeros(values.shape[0], dtype=np.bool_)
    for row in range(row_sums.shape[0]):
        item_wanted[item_of[row]] |= wanted[row]
    if not item_wanted.any():
        item_wanted[0] = True  # one answer shows whether there is any
    item_runs, span = _solve_items(values, limits, copies, item_wanted, target, most)
    for item in range(values.shape[0]):
        if item_wanted[item] and span[item, 0] == span[item, 1]:
            return INFEASIBLE, runs, spans
    runs, spans = _spread(item_runs, span, item_of, wanted, lower)
    return FEASIBLE, runs, spans
