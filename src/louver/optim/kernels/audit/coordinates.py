"""Integer coordinates of all tables that agree with equality rows, and steps in them.

**Elimination** with pivots +1 and -1 only. With T A = tableau and a pivot (r, j) of size one, x_j = constant - (tableau row r without
j) x_N, all in integers. Only T (rows x rows) is kept, so memory does not depend on the number of columns.

**Repair**, from a table that meets all equalities to one that also meets all bounds. A step of one free unknown moves the basic ones by
whole numbers and preserves the equalities, so only bounds can be violated. A violated bound is chosen at random, steps that fix it are
weighed by their effect on all other bounds, and bounds that stay violated gain weight (tabu search with weights).

**A walk** among tables that agree with everything, to find which single free unknowns can step in some of them.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["eliminate", "repair_inplace", "walk_inplace"]

MAX_ENTRY = 2**24
"""Entries of T beyond this are refused: products with them could exceed 64 bits."""

LISTED, TENURE = 24, 4
"""Candidates considered per violated bound, and the number of steps during which a step may not be undone."""

LONGEST = 4
"""Largest step; walks stay near their start, because only steps of size one matter."""


@inner
def _tableau_column(j, indptr, indices, coefs, transform, out):
    """out = T a_j; columns of A in CSC."""
    out[:] = 0
    for k in range(indptr[j], indptr[j + 1]):
        row, a = indices[k], coefs[k]
        for i in range(len(out)):
            out[i] += transform[i, row] * a


@inner
def _pivot_inplace(r, column, transform):
    """Make the column a unit vector at row r; False if an entry grew too large."""
    m = len(column)
    if column[r] < 0:
        for k in range(m):
            transform[r, k] = -transform[r, k]
        column[r] = -column[r]
    for i in range(m):
        factor = column[i]
        if i != r and factor != 0:
            for k in range(m):
                if transform[r, k] != 0:
                    transform[i, k] -= factor * transform[r, k]
                    if abs(transform[i, k]) > MAX_ENTRY:
                        return False
    return True


@kernel
def eliminate(indptr, indices, coefs, n_rows, order, flag):
    """Pivot on columns (CSC) in the given order.

    Returns
    -------
    transform : int64 (n_rows, n_rows)
        T.
    basic : int64 (n_rows,)
        The column that each row was solved for; -1 for a row without one: dependent on others, or without a pivot of
        size one. An empty `basic` means that numbers grew too large.
    """
    transform = np.zeros((n_rows, n_rows), dtype=np.int64)
    basic = np.full(n_rows, -1, dtype=np.int64)
    for r in range(n_rows):
        transform[r, r] = 1
    column = np.zeros(n_rows, dtype=np.int64)
    n_basic, n_idle = 0, 0
    for position in range(len(order)):
        # Dependent rows never take a pivot: after a long run without one, the rest can be treated as dependent.
        if n_basic == n_rows or n_idle > 4 * n_rows + 1000 or flag[0]:
            break
        j = order[position]
        _tableau_column(j, indptr, indices, coefs, transform, column)
        chosen = -1
        for r in range(n_rows):
            if basic[r] < 0 and (column[r] == 1 or column[r] == -1):
                chosen = r
                break
        if chosen < 0:
            n_idle += 1
            continue
        n_idle = 0
        if not _pivot_inplace(chosen, column, transform):
            return transform, np.zeros(0, dtype=np.int64)
        basic[chosen] = j
        n_basic += 1
    return transform, basic


@inner
def _next(state):
    """Xorshift: a deterministic stream whose state the caller keeps."""
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
    """Change in weighted violation caused by a step of free unknown j."""
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
        State of the random number stream.
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


@inner
def _room(j, sign, col_ptr, col_basic, col_coef, free, free_low, free_high, basic, low, high):
    """How far a free unknown can step in one direction, at most `LONGEST`."""
    room = LONGEST
    room = min(room, free_high[j] - free[j] if sign > 0 else free[j] - free_low[j])
    for k in range(col_ptr[j], col_ptr[j + 1]):
        if room <= 0:
            return 0
        i = col_basic[k]
        change = col_coef[k] * sign
        if change > 0:
            room = min(room, (high[i] - basic[i]) // change)
        else:
            room = min(room, (basic[i] - low[i]) // -change)
    return max(0, room)


@kernel
def walk_inplace(cols, free, free_low, free_high, basic, low, high, is_taken, n_rounds, state, flag):
    """Step through feasible tables and mark every free unknown that could step.

    Parameters
    ----------
    cols : (indptr, indices, data)
        Effect of a step of each free unknown on the basic ones.
    free, basic : int64
        A table that meets all bounds; on return, the last one visited.
    is_taken : bool (n_free,)
        Set where the unknown could step by one.
    state : uint64 (1,)
        State of the random number stream that chooses directions and lengths.

    Returns
    -------
    Rounds walked; fewer than `n_rounds` where every unknown has stepped.
    """
    col_ptr, col_basic, col_coef = cols
    n_taken = 0
    for j in range(len(free)):
        if is_taken[j]:
            n_taken += 1
    for number in range(n_rounds):
        if n_taken == len(free) or flag[0]:
            return number
        for j in range(len(free)):
            x = state[0]
            x ^= x << np.uint64(13)
            x ^= x >> np.uint64(7)
            x ^= x << np.uint64(17)
            state[0] = x
            sign = 1 if x & np.uint64(1) else -1
            room = _room(j, sign, col_ptr, col_basic, col_coef, free, free_low, free_high, basic, low, high)
            if room == 0:
                sign = -sign
                room = _room(
                    j, sign, col_ptr, col_basic, col_coef, free, free_low, free_high, basic, low, high
                )
            if room == 0:
                continue
            if not is_taken[j]:
                is_taken[j] = True
                n_taken += 1
            step = sign * (1 + np.int64((x >> np.uint64(8)) % np.uint64(room)))
            free[j] += step
            for k in range(col_ptr[j], col_ptr[j + 1]):
                basic[col_basic[k]] += col_coef[k] * step
    return n_rounds
