"""Cutting classes of records into pieces that lie close together."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import class_regions
from louver.optim.kernels.classes.record_tree import select_inplace

__all__ = ["cut_pieces", "mixed"]

SAMPLE = 2048
"""Number of classes by which a cut is judged."""
LEAST_SHARE = 0.3
"""Minimum share of the classes on either side of a cut."""


@kernel
def mixed(key):
    """A well spread 64-bit number (splitmix64)."""
    key += np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def random_share(key):
    """A real number between 0 and 1 that depends on the key."""
    return np.float64(mixed(key) >> np.uint64(11)) * 2.0**-53


@kernel
def best_cut(lower, upper, order, first, last, seed):
    """The column and code at which few of the classes order[first:last] are split; column -1 if there is none.

    Classes whose least code in the column is below the code lie on the first side. Each column is tried at a random
    position near the middle, and scored with a random factor, so that cuts differ from seed to seed.
    """
    stride = (last - first + SAMPLE - 1) // SAMPLE
    sample = order[first:last:stride]
    chosen, code, fewest = -1, np.int32(0), np.inf
    lows = np.empty(sample.shape[0], np.int32)
    for j in range(lower.shape[1]):
        for t in range(sample.shape[0]):
            lows[t] = lower[sample[t], j]
        share = 0.4 + 0.2 * random_share(seed + np.uint64(2 * j))
        place = np.int64(share * sample.shape[0])
        ranked = np.arange(sample.shape[0])
        select_inplace(ranked, lows, 0, sample.shape[0], place)
        middle = lows[ranked[place]]
        n_below, n_cut = 0, 0
        for t in range(sample.shape[0]):
            if lows[t] < middle:
                n_below += 1
                n_cut += upper[sample[t], j] >= middle
        if min(n_below, sample.shape[0] - n_below) < LEAST_SHARE * sample.shape[0]:
            continue
        cost = (n_cut / sample.shape[0] + 0.05) * (0.3 + random_share(seed + np.uint64(2 * j + 1)))
        if cost < fewest:
            chosen, code, fewest = j, middle, cost
    return chosen, code


@kernel
def divide_inplace(lower, order, first, last, column, code):
    """Bring the classes whose least code is below `code` to the front; returns where the others start."""
    middle = first
    for t in range(first, last):
        if lower[order[t], column] < code:
            order[middle], order[t] = order[t], order[middle]
            middle += 1
    return middle


@kernel
def cut_pieces(geometry, codes, labels, most_classes, seed):
    """Cut the classes in two repeatedly, at places that depend on the seed, until the pieces are small enough.

    Parameters
    ----------
    labels : int64 (n,)
        The first record of each record's class; -1 for a record left out, which is treated as a class of its own.
    most_classes : int
        Maximum number of classes in a piece.
    seed : uint64

    Returns
    -------
    Records piece by piece (n,), ascending within each, and where each piece starts (pieces + 1,).
    """
    n = labels.shape[0]
    number = np.empty(n, np.int64)
    n_classes = 0
    for i in range(n):
        if labels[i] < 0 or labels[i] == i:
            number[i] = n_classes
            n_classes += 1
        else:
            number[i] = number[labels[i]]
    lower, upper, _, _ = class_regions(geometry, codes, number, n_classes)
    order = np.arange(n_classes)
    piece_of = np.empty(n_classes, np.int64)
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n_classes
    depth, n_pieces = 1, 0
    while depth > 0:
        depth -= 1
        first, last = stack[depth, 0], stack[depth, 1]
        seed = mixed(seed)
        column, code = -1, np.int32(0)
        if last - first > most_classes:
            column, code = best_cut(lower, upper, order, first, last, seed)
        if column < 0:
            for t in range(first, last):
                piece_of[order[t]] = n_pieces
            n_pieces += 1
            continue
        middle = divide_inplace(lower, order, first, last, column, code)
        stack[depth, 0], stack[depth, 1] = first, middle
        stack[depth + 1, 0], stack[depth + 1, 1] = middle, last
        depth += 2
    start = np.zeros(n_pieces + 1, np.int64)
    for i in range(n):
        start[piece_of[number[i]] + 1] += 1
    for piece in range(n_pieces):
        start[piece + 1] += start[piece]
    following = start[:-1].copy()
    members = np.empty(n, np.int64)
    for i in range(n):
        piece = piece_of[number[i]]
        members[following[piece]] = i
        following[piece] += 1
    return members, start
