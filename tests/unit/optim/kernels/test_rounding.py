"""Annealing of rounded numbers: every state adds up, and the cost that is returned is that of the best state."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels.rounding.descent import SCALE, anneal_inplace


def cost(steps: np.ndarray, rest: np.ndarray, base: int, penalty: int) -> int:
    most = (rest > 0).astype(int)
    beyond = np.maximum(0, np.maximum(-steps, steps - most))
    return int((np.abs(steps * base - rest) + penalty * beyond).sum())


def test_the_gain_is_that_of_the_best_state_which_adds_up() -> None:
    """Four parts, two sums of two, and a total."""
    starts, cells = np.array([0, 3, 6, 9, 12]), np.array([0, 4, 6, 1, 4, 6, 2, 5, 6, 3, 5, 6])
    rest = np.array([4, 4, 4, 4, 3, 3, 1])
    first = np.array([3, 0, 0, 0, 3, 0, 3])
    for seed in (1, 7):
        steps, best = first.copy(), first.copy()
        temperatures = np.linspace(5 * SCALE, 0, 30).astype(np.int64)
        gain = anneal_inplace(
            starts,
            cells,
            steps,
            np.zeros(7, np.int64),
            rest,
            np.full(7, 5),
            np.full(7, 5),
            temperatures,
            50,
            seed,
            best,
        )
        assert gain == cost(first, rest, 5, 5) - cost(best, rest, 5, 5) > 0
        for state in (steps, best):
            assert state[4] == state[0] + state[1] and state[5] == state[2] + state[3]
            assert state[6] == state[4] + state[5] and (state >= 0).all()
