"""Pseudo-random numbers from consecutive numbers, for sketches, orders, searches and simulations; privacy noise comes from `privacy`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["GOLDEN", "mixed"]

GOLDEN = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: the increment of splitmix64."""


def mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64, one to one on 64-bit numbers.

    Examples
    --------
    >>> mixed(np.array([GOLDEN], np.uint64))
    array([16294208416658607535], dtype=uint64)
    """
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
