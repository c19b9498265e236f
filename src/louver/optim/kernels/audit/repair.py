"""Repair: from a table that meets all equalities to one that also meets all bounds, by single steps.

In the coordinates of `pivots` a step of one free unknown moves the basic ones by whole numbers and never leaves the
equalities, so only bounds can be violated. A violated bound is chosen at random, steps that mend it are weighed by what
they do to all other bounds, and bounds that stay violated grow heavier (tabu search with weights).
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["repair_inplace"]

LISTED, TENURE = 24, 4
"""Candidates weighed for one violated bound, and steps for which a step is not undone."""


@inner
def _next(state):
    """Xorshift: a deterministic stream, kept by the caller."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@inner
def _violation(value, low, high):
    if value < low:
        return low - value
    return value - high if value > high else 0


@inner
def _change(j, step, col_ptr, col_basic, col_coef, basic, low, high, weight):
    """Weighted violation after a step of free unknown j, less that before."""
    total = 0
    for k in range(col_ptr[j], col_ptr[j + 1]):
        i = col_basic[k]
        before = basic[i]
        after = before + col_coef[k] * step
        total += weight[i] * (_violation(after, low[i], high[i]) - _violation(before, low[i], high[i]))
    return total


@inner
def _mark(i, is_violated, violated, place, n_violated):
    """Add to or remove from the list of violated bounds; returns its length."""
    if is_violated and place[i] < 0:
        place[i] = n_violated
        violated[n_violated] = i
        return n_violated + 1
    if not is_violated and place[i] >= 0:
        last = violated[n_violated - 1]
        violated[place[i]] = last
        place[last] = place[i]
        place[i] = -1
        return n_violated - 1
    return n_violated


@inner
def _best_step(i, rows, cols, free, free_low, free_high, basic, low, high, weight, tabu, now, state):
    """The best step for violated bound i: free unknown, step, change in weighted violation."""
    row_ptr, row_free, row_coef = rows
    col_ptr, col_basic, col_coef = cols
    missing = low[i] - basic[i] if basic[i] < low[i] else high[i] - basic[i]
    start, length = row_ptr[i], row_ptr[i + 1] - row_ptr[i]
    best_j, best_step, best_change = -1, 0, 2**62
    offset = np.int64(_next(state) % np.uint64(max(1, length)))
    n_weighed = 0
    for turn in range(length):
        k = start + (offset + turn) % length
        j, a = row_free[k], row_coef[k]
        step = (abs(missing) + abs(a) - 1) // abs(a)
        if (missing > 0) != (a > 0):
            step = -step
        step = min(step, free_high[j] - free[j]) if step > 0 else max(step, free_low[j] - free[j])
        if step == 0 or tabu[j] > now:
            continue
        change = _change(j, step, col_ptr, col_basic, col_coef, basic, low, high, weight)
        if change < best_change:
            best_j, best_step, best_change = j, step, change
        if step > 1 or step < -1:
            one = 1 if step > 0 else -1
            change = _change(j, one, col_ptr, col_basic, col_coef, basic, low, high, weight)
            if change < best_change:
                best_j, best_step, best_change = j, one, change
        n_weighed += 1
        if n_weighed >= LISTED:
            break
    return best_j, best_step, best_change


@kernel
def repair_inplace(
    rows,
    cols,
    free,
    free_low,
    free_high,
    basic,
    low,
    high,
    max_steps,
    state,
    weight,
    tabu,
    violated,
    place,
    flag,
):
    """Change `free` and `basic` until every basic value lies in [low, high].

    Parameters
    ----------
    rows : tuple of arrays
        CSR of the effect R (basic x free): basic += R step.
    cols : tuple of arrays
        The same as CSC.
    free, free_low, free_high : int64 (n_free,)
        Always within their bounds.
    basic, low, high : int64 (n_basic,)
    state : uint64 (1,)
        Of the stream of random numbers.
    weight, tabu, violated, place : int64
        Work space: (n_basic,), (n_free,), (n_basic,), (n_basic,).

    Returns
    -------
    int
        Steps taken if all bounds hold, otherwise -1.
    """
    col_ptr, col_basic, col_coef = cols
    weight[:] = 1
    tabu[:] = 0
    place[:] = -1
    n_violated = 0
    for i in range(len(basic)):
        n_violated = _mark(i, _violation(basic[i], low[i], high[i]) > 0, violated, place, n_violated)
    for now in range(1, max_steps + 1):
        if n_violated == 0:
            return now - 1
        if flag[0]:
            return -1
        i = violated[np.int64(_next(state) % np.uint64(n_violated))]
        j, step, change = _best_step(
            i, rows, cols, free, free_low, free_high, basic, low, high, weight, tabu, now, state
        )
        if j < 0 or change >= 0:
            for k in range(n_violated):
                weight[violated[k]] += 1
        if j < 0:
            continue
        free[j] += step
        tabu[j] = now + TENURE
        for k in range(col_ptr[j], col_ptr[j + 1]):
            b = col_basic[k]
            basic[b] += col_coef[k] * step
            n_violated = _mark(b, _violation(basic[b], low[b], high[b]) > 0, violated, place, n_violated)
    return -1 if n_violated else max_steps
