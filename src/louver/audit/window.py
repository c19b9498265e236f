"""The counts that lie within so many percent of a count."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from louver.tables.system import IntArray

__all__ = ["window"]


def window(true: IntArray, within: float) -> tuple[IntArray, IntArray]:
    """Counts within so many percent of the true ones."""
    share = Fraction(str(within)) / 100
    floor = [-(-(int(x) * (1 - share)) // 1) for x in true]
    ceiling = [int(x) * (1 + share) // 1 for x in true]
    return np.array(floor, dtype=np.int64), np.array(ceiling, dtype=np.int64)
