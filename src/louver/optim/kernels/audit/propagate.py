"""Interval propagation: bounds that each row alone implies for its unknowns, repeated until nothing changes.

Dobra & Fienberg (2010) call it the shuttle algorithm; here rows may have any integer coefficients and bounds on both
sides. A number at or beyond `UNBOUNDED` in size stands for "no bound". A row has a *reach*, `UNBOUNDED` over the sum of its
coefficients' sizes: bounds beyond it count as none there, so that no sum can exceed 64 bits.
"""

from __future__ import annotations

from louver.optim.kernels import inner, kernel

__all__ = ["UNBOUNDED", "activity_bounds", "propagate_inplace"]

UNBOUNDED = 2**60


@inner
def _row_range(start, stop, indices, coefs, reach, lower, upper):
    """Smallest and largest finite part of a row, and how many unbounded terms each side has."""
    least, most = 0, 0
    free_below, free_above = 0, 0
    for k in range(start, stop):
        a, low, high = coefs[k], lower[indices[k]], upper[indices[k]]
        if a < 0:
            low, high = high, low
        if -reach < low < reach:
            least += a * low
        else:
            free_below += 1
        if -reach < high < reach:
            most += a * high
        else:
            free_above += 1
    return least, most, free_below, free_above


@inner
def _tighten(j, a, reach, row_range, row_lower, row_upper, lower, upper):
    """Bounds of one unknown from one row; 0 if nothing changed, 1 if a bound did, -1 if no value is possible."""
    least, most, free_below, free_above = row_range
    low, high = lower[j], upper[j]
    first, last = (low, high) if a > 0 else (high, low)
    is_first_free, is_last_free = not -reach < first < reach, not -reach < last < reach
    new_low, new_high = low, high
    if row_upper < UNBOUNDED and free_below == is_first_free:
        room = row_upper - (least if is_first_free else least - a * first)
        if a > 0:
            new_high = min(new_high, room // a)
        else:
            new_low = max(new_low, -(room // -a))
    if row_lower > -UNBOUNDED and free_above == is_last_free:
        need = row_lower - (most if is_last_free else most - a * last)
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
def propagate_inplace(
    indptr,
    indices,
    coefs,
    reach,
    col_ptr,
    col_rows,
    row_lower,
    row_upper,
    lower,
    upper,
    is_waiting,
    max_rounds,
    flag,
):
    """Tighten `lower` and `upper` (n,) by the rows (CSR) until nothing changes or `max_rounds` is reached.

    Parameters
    ----------
    reach : int64 (m,)
        UNBOUNDED over the sum of the sizes of each row's coefficients.
    col_ptr, col_rows : int (n + 1,), (entries,)
        Rows of each column.
    is_waiting : bool (m,)
        Rows to examine; a row is added whenever a bound of one of its unknowns changes.

    Returns -1, or the number of a row that cannot hold.
    """
    n_rows = len(indptr) - 1
    for _ in range(max_rounds):
        has_moved = False
        for row in range(n_rows):
            if not is_waiting[row]:
                continue
            is_waiting[row] = False
            start, stop = indptr[row], indptr[row + 1]
            if row_lower[row] <= -UNBOUNDED and row_upper[row] >= UNBOUNDED:
                continue
            row_range = _row_range(start, stop, indices, coefs, reach[row], lower, upper)
            least, most, free_below, free_above = row_range
            if free_below == 0 and least > row_upper[row]:
                return row
            if free_above == 0 and most < row_lower[row]:
                return row
            # An interval that is no wider than the slack of its row cannot be tightened.
            spare = -1 if free_below or free_above else min(row_upper[row] - least, most - row_lower[row])
            # Bounds only tighten, so the range computed before the loop stays valid within it.
            for k in range(start, stop):
                j, a = indices[k], coefs[k]
                if spare >= 0 and abs(a) * (upper[j] - lower[j]) <= spare:
                    continue
                moved = _tighten(j, a, reach[row], row_range, row_lower[row], row_upper[row], lower, upper)
                if moved < 0:
                    return row
                if moved > 0:
                    has_moved = True
                    for other in range(col_ptr[j], col_ptr[j + 1]):
                        is_waiting[col_rows[other]] = True
        if not has_moved or flag[0]:
            break
    return -1


@kernel
def activity_bounds(indptr, indices, coefs, reach, row_lower, row_upper, lower, upper, out_lower, out_upper):
    """Bounds of every row's sum, from the bounds of its unknowns and its own."""
    for row in range(len(indptr) - 1):
        least, most, free_below, free_above = _row_range(
            indptr[row], indptr[row + 1], indices, coefs, reach[row], lower, upper
        )
        out_lower[row] = row_lower[row] if free_below else max(row_lower[row], least)
        out_upper[row] = row_upper[row] if free_above else min(row_upper[row], most)
