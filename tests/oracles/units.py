"""Brute force for units: how many different ones the people of a group belong to, counted from the records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["truth_of", "units_in_groups"]


def truth_of(records: Sequence[tuple[int, int]], shape: Sequence[int]) -> np.ndarray:
    """People of each cell; a record is (cell, unit)."""
    counts = np.zeros(int(np.prod(shape)), dtype=np.int64)
    for cell, _ in records:
        counts[cell] += 1
    return counts.reshape(shape)


def units_in_groups(records: Sequence[tuple[int, int]], groups: np.ndarray) -> np.ndarray:
    """Different units of each group, (groups, cells) -> (groups,)."""
    return np.array([len({unit for cell, unit in records if group[cell]}) for group in groups])
