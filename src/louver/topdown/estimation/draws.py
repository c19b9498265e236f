"""Numbers between 0 and 1 that drive a draw of the truth given the measurements: public, and always equal for the same place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver._mixing import GOLDEN, mixed

__all__ = ["Draws"]


@dataclass(frozen=True, slots=True)
class Draws:
    """The key of a draw, or of one of its levels.

    Parameters
    ----------
    seed : int
        Below 2^64.
    """

    seed: int

    def at(self, level: int) -> Draws:
        """The key of a level."""
        return Draws(int(_mixed(np.array([self.seed], np.uint64) + np.uint64(level))[0]))

    def uniform(self, stream: str, *places: Ints) -> Floats:
        """One number strictly between 0 and 1 for every place; it does not depend on the batch that the place is in."""
        keys = np.full(len(places[0]), self.seed, np.uint64) + np.frombuffer(
            stream.encode().ljust(8)[:8], "<u8"
        )
        for place in places:
            keys = _mixed(keys) + place.astype(np.uint64)
        return np.asarray(((_mixed(keys) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53)


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well-mixed 64-bit keys."""
    return mixed(keys + np.uint64(GOLDEN))
