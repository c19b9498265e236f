"""Greedy Search and k-member as plain scans over all records left, in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Spreads = Callable[[np.ndarray, list[int]], np.ndarray]
"""Loss per record of a class (list of records) with each of the candidates (array of records)."""


def interval_spreads(codes: np.ndarray) -> Spreads:
    """For columns that are all intervals."""
    wide = codes.astype(np.int64)

    def spreads(candidates: np.ndarray, members: list[int]) -> np.ndarray:
        low, high = wide[members].min(axis=0), wide[members].max(axis=0)
        return (np.maximum(high, wide[candidates]) - np.minimum(low, wide[candidates])).sum(axis=1)

    return spreads


def plain_labels(n: int, k: int, spreads: Spreads, *, farthest_first: bool = False) -> np.ndarray:
    """Labels of the classes of k records; -1 for the fewer than k left over."""
    labels = np.full(n, -1)
    left = np.arange(n)
    last, label = 0, 0
    while len(left) >= k:
        seed = int(left[np.argmax(spreads(left, [last]))]) if farthest_first else int(left[0])
        members = [seed]
        left = left[left != seed]
        while len(members) < k:
            chosen = int(left[np.argmin(spreads(left, members))])
            members.append(chosen)
            left = left[left != chosen]
        labels[members] = label
        last, label = members[-1], label + 1
    return labels
