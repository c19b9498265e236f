"""Areas of a tree by brute force: the fewest regions that make them, and their variance by one dense system."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np


def inside(parents):
    """For every level the regions as rows of zeros and ones over the leaves."""
    n_leaves = len(parents[-1]) if parents else 1
    levels = [np.eye(n_leaves, dtype=int)]
    for parent in reversed(parents):
        levels.insert(
            0, np.array([levels[0][parent == region].sum(axis=0) for region in range(parent.max() + 1)])
        )
    return levels


def fewest_regions(parents, leaves):
    """The least number of regions whose sum, each taken with plus or minus one, is the area."""
    regions = np.concatenate(inside(parents))
    wanted = np.zeros(regions.shape[1], dtype=int)
    wanted[list(leaves)] = 1
    for number in range(len(regions) + 1):
        for chosen in combinations(range(len(regions)), number):
            for signs in product((1, -1), repeat=number):
                if (
                    (np.array(signs, dtype=int) @ regions[list(chosen)] == wanted).all()
                    if number
                    else not wanted.any()
                ):
                    return number
    raise AssertionError


def union_variance(parents, precisions, leaves):
    """Variance of an area under least squares over all measurements; a level with infinite precision is known."""
    levels = inside(parents)
    n = levels[-1].shape[0]
    information, exact = np.zeros((n, n)), np.zeros((0, n))
    for own, precision in zip(levels, precisions, strict=True):
        if np.isinf(precision):
            exact = np.concatenate([exact, own])
        else:
            information += precision * own.T @ own
    wanted = np.zeros(n)
    wanted[list(leaves)] = 1.0
    free = np.linalg.svd(exact)[2][np.linalg.matrix_rank(exact) :] if len(exact) else np.eye(n)
    along = free @ wanted
    return float(along @ np.linalg.inv(free @ information @ free.T) @ along)
