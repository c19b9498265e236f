"""Controlled rounding by simulated annealing: finest cells move by one multiple, and all totals above them move with them.

The state is additive at all times. A cell costs its distance from its value, plus a penalty for every multiple beyond the two next to the
value. Everything is in integers, so that the result does not depend on the order of floating-point sums; the random numbers only guide the
search and provide no protection.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels import inner, kernel

__all__ = ["anneal_inplace"]

SCALE = 1024
QUANTILES = np.rint(-np.log((np.arange(512) + 0.5) / 512) * SCALE).astype(np.int64)
"""Quantiles of the exponential distribution in multiples of 1 / SCALE: rounded, so that results do not depend on a machine's logarithm."""


@inner
def next_word(state):
    """The next 64 bits of a xorshift stream."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@inner
def cost_at(steps, remainder, base, penalty):
    """Distance of a cell that is `steps` multiples above the one below its value, including the penalty for going too far."""
    distance = abs(steps * base - remainder)
    if steps < 0:
        return distance - penalty * steps
    most = 1 if remainder > 0 else 0
    return distance + (penalty * (steps - most) if steps > most else 0)


@inner
def change_of(finest, sign, starts, cells, steps, least, remainders, base, penalties):
    """The change in cost when a finest cell moves by one multiple; a very large number where the move is not allowed."""
    change = 0
    for at in range(starts[finest], starts[finest + 1]):
        cell = cells[at]
        now = steps[cell]
        if now + sign < least[cell]:
            return 1 << 60
        penalty = penalties[cell]
        change += cost_at(now + sign, remainders[cell], base[cell], penalty)
        change -= cost_at(now, remainders[cell], base[cell], penalty)
    return change


@inner
def move_inplace(finest, sign, starts, cells, steps):
    for at in range(starts[finest], starts[finest + 1]):
        steps[cells[at]] += sign


@inner
def keep_inplace(best: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
    """Copy like best[:] = steps, which would also compile the message of an error that cannot occur."""
    for i in range(len(best)):
        best[i] = steps[i]


@kernel
def anneal_inplace(
    starts: NDArray[np.int64],
    cells: NDArray[np.int64],
    steps: NDArray[np.int64],
    least: NDArray[np.int64],
    remainders: NDArray[np.int64],
    base: NDArray[np.int64],
    penalties: NDArray[np.int64],
    temperatures: NDArray[np.int64],
    tries: int,
    seed: int,
    best: NDArray[np.int64],
) -> int:
    """Move finest cells, singly or in opposing pairs; moves that raise the cost are accepted ever more rarely (Metropolis).

    Parameters
    ----------
    starts, cells : int arrays
        Cells that move with each finest cell, itself included, one after another.
    steps : int array
        Multiples of each cell above the one below its value; changed.
    least : int array
        Fewest steps of each cell.
    remainders, base, penalties : int arrays
        Of each cell: value minus the multiple below, base, penalty for each multiple too far.
    temperatures : int array
        One for each pass of `tries` moves, in multiples of 1 / SCALE.
    best : int array
        The best steps; filled.

    Returns
    -------
    int
        By how much the best cost is lower than the initial one.
    """
    n = len(starts) - 1
    state = np.uint64(seed)
    cost, lowest = 0, 0
    keep_inplace(best, steps)
    for temperature in temperatures:
        for _ in range(tries):
            # Invariant: `cost` is the increase in the cost of `steps` since the start, and all sums hold.
            state = next_word(state)
            first = np.int64((state >> np.uint64(11)) % np.uint64(n))
            threshold = temperature * QUANTILES[np.int64(state & np.uint64(511))] // (SCALE * SCALE)
            sign = np.int64(1) if state >> np.uint64(10) & np.uint64(1) else np.int64(-1)
            change = change_of(first, sign, starts, cells, steps, least, remainders, base, penalties)
            if change >= 1 << 59:
                continue
            if change <= threshold:
                move_inplace(first, sign, starts, cells, steps)
                cost += change
            else:
                move_inplace(first, sign, starts, cells, steps)
                state = next_word(state)
                # Usually a neighbour in the order of cells, which shares many totals.
                span = np.uint64(n) if state & np.uint64(6) == 0 else np.uint64(min(n, 16))
                second = (first + 1 + np.int64((state >> np.uint64(11)) % span)) % n
                more = change_of(second, -sign, starts, cells, steps, least, remainders, base, penalties)
                if more < 1 << 59 and change + more <= threshold:
                    move_inplace(second, -sign, starts, cells, steps)
                    cost += change + more
                else:
                    move_inplace(first, -sign, starts, cells, steps)
            if cost < lowest:
                lowest = cost
                keep_inplace(best, steps)
    return -lowest
