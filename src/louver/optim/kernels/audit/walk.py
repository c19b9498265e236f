"""A walk among tables: which steps of single free unknowns some table that agrees with everything can take."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["walk_inplace"]

LONGEST = 4
"""Largest step; walks stay near where they begin, where steps of one are what is looked for."""


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
        What a step of each free unknown does to the basic ones.
    free, basic : int64
        A table that meets all bounds; the last one visited at the end.
    is_taken : bool (n_free,)
        Set where the unknown could step by one.
    state : uint64 (1,)
        Of the stream that chooses directions and lengths.

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
