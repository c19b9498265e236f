"""Interval propagation: what each row alone says about each of its unknowns, until nothing moves.

Dobra & Fienberg (2010) call it the shuttle algorithm; here rows may have any integer coefficients and bounds on both
sides. A number at or beyond `UNBOUNDED` in size stands for "no bound".
"""

from __future__ import annotations

from louver.optim.kernels import inner, kernel

__all__ = ["UNBOUNDED", "activity_bounds", "propagate_inplace"]

UNBOUNDED = 2**60


@inner
def _row_range(start, stop, indices, coefs, lower, upper):
    """Smallest and largest finite part of a row, and how many unbounded terms each side has."""
    least, most = 0, 0
    free_below, free_above = 0, 0
    for k in range(start, stop):
        a, low, high = coefs[k], lower[indices[k]], upper[indices[k]]
        if a < 0:
            low, high = high, low
        if low <= -UNBOUNDED or low >= UNBOUNDED:
            free_below += 1
        else:
            least += a * low
        if high <= -UNBOUNDED or high >= UNBOUNDED:
            free_above += 1
        else:
            most += a * high
    return least, most, free_below, free_above


@inner
def _tighten(k, indices, coefs, row_range, row_lower, row_upper, lower, upper):
    """Bounds of one unknown from one row; 0 if nothing moved, 1 if something did, -1 if none is left."""
    least, most, free_below, free_above = row_range
    j, a = indices[k], coefs[k]
    low, high = lower[j], upper[j]
    first, last = (low, high) if a > 0 else (high, low)
    rest_free_below = free_below - (first <= -UNBOUNDED or first >= UNBOUNDED)
    rest_free_above = free_above - (last <= -UNBOUNDED or last >= UNBOUNDED)
    new_low, new_high = low, high
    if row_upper < UNBOUNDED and rest_free_below == 0:
        room = row_upper - (least - (a * first if free_below == 0 else 0))
        if a > 0:
            new_high = min(new_high, room // a)
        else:
            new_low = max(new_low, -(room // -a))
    if row_lower > -UNBOUNDED and rest_free_above == 0:
        need = row_lower - (most - (a * last if free_above == 0 else 0))
        if a > 0:
            new_low = max(new_low, -(-need // a))
        else:
            new_high = min(new_high, -need // -a)
    if new_low > new_high:
        return -1
    if new_low == low and new_high == high:
        return 0
    lower[j], upper[j] = new_low, new_high
    return 1


@kernel
def propagate_inplace(indptr, indices, coefs, row_lower, row_upper, lower, upper, max_rounds, flag):
    """Tighten `lower` and `upper` (n,) by the rows (CSR) until nothing moves or `max_rounds` are over.

    Returns -1, or the number of a row that cannot hold.
    """
    n_rows = len(indptr) - 1
    for _ in range(max_rounds):
        has_moved = False
        for row in range(n_rows):
            start, stop = indptr[row], indptr[row + 1]
            if row_lower[row] <= -UNBOUNDED and row_upper[row] >= UNBOUNDED:
                continue
            row_range = _row_range(start, stop, indices, coefs, lower, upper)
            least, most, free_below, free_above = row_range
            if free_below == 0 and least > row_upper[row]:
                return row
            if free_above == 0 and most < row_lower[row]:
                return row
            # Bounds only tighten, so the range taken before the loop stays true within it.
            for k in range(start, stop):
                moved = _tighten(k, indices, coefs, row_range, row_lower[row], row_upper[row], lower, upper)
                if moved < 0:
                    return row
                has_moved |= moved > 0
        if not has_moved or flag[0]:
            break
    return -1


@kernel
def activity_bounds(indptr, indices, coefs, row_lower, row_upper, lower, upper, out_lower, out_upper):
    """Bounds of every row's sum from those of its unknowns and its own."""
    for row in range(len(indptr) - 1):
        least, most, free_below, free_above = _row_range(
            indptr[row], indptr[row + 1], indices, coefs, lower, upper
        )
        out_lower[row] = row_lower[row] if free_below else max(row_lower[row], least)
        out_upper[row] = row_upper[row] if free_above else min(row_upper[row], most)
