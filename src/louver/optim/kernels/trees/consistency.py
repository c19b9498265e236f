"""Consistency over a tree and monotonicity along rows: closed forms, and the passes that join them.

Given numbers y[r, s], with one row for each region of a level-ordered tree (see `laminar`) and one column for each size, finds the closest
rows that sum from children to parents, and the closest rows that never increase.

Notes
-----
**Implements**: generalised least squares over a tree in two passes (Hay et al. 2010, for unequal variances); isotonic
regression by pooling adjacent violators; projection on a simplex by sorting.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = [
    "column_pass",
    "deal_inplace",
    "nonincreasing_inplace",
    "project_inplace",
    "row_pass",
    "simplex_inplace",
    "subtree_weights",
]


@kernel
def subtree_weights(weight, first_child, precision, share):
    """How precisely the subtree of each region determines it, and how children share a correction.

    Parameters
    ----------
    weight : float64 (R,)
        One over the variance of a region's own numbers.
    first_child : int64 (R + 1,)
    precision : float64 (R,)
        Filled: one over the variance of the best estimate from the subtree.
    share : float64 (R,)
        Filled: part of its parent's correction that a region takes; sums to one over children.
    """
    for r in range(weight.shape[0] - 1, -1, -1):
        precision[r] = weight[r]
        variance = 0.0
        for c in range(first_child[r], first_child[r + 1]):
            variance += 1.0 / precision[c]
        if variance > 0.0:
            precision[r] += 1.0 / variance
            for c in range(first_child[r], first_child[r + 1]):
                share[c] = 1.0 / precision[c] / variance
    share[0] = 0.0


@kernel
def project_inplace(y, weight, precision, share, first_child, begin, end, fixed, total):
    """Replace columns begin .. end of y by the closest numbers that are sums of their children.

    Parameters
    ----------
    y : float64 (R, B)
    weight, precision, share : float64 (R,)
        As `subtree_weights` gives them; squares are weighted by `weight`.
    first_child : int64 (R + 1,)
    fixed : int
        Column whose root is set to `total`; -1 for none.
    """
    below = np.empty(end - begin)
    for r in range(y.shape[0] - 1, -1, -1):
        if first_child[r] < first_child[r + 1]:
            below[:] = 0.0
            for c in range(first_child[r], first_child[r + 1]):
                for s in range(begin, end):
                    below[s - begin] += y[c, s]
            own = weight[r] / precision[r]
            for s in range(begin, end):
                y[r, s] = own * y[r, s] + (1.0 - own) * below[s - begin]
    if begin <= fixed < end:
        y[0, fixed] = total
    for r in range(y.shape[0]):
        if first_child[r] < first_child[r + 1]:
            for s in range(begin, end):
                below[s - begin] = y[r, s]
            for c in range(first_child[r], first_child[r + 1]):
                for s in range(begin, end):
                    below[s - begin] -= y[c, s]
            for c in range(first_child[r], first_child[r + 1]):
                for s in range(begin, end):
                    y[c, s] += share[c] * below[s - begin]


@kernel
def nonincreasing_inplace(y, lower, upper, mean, count):
    """Replace a row by the closest row that never increases, within [lower, upper].

    `mean` and `count` are workspace as long as the row. Clipping the isotonic regression gives the bounded one.
    """
    top = 0
    for s in range(y.shape[0]):
        mean[top] = y[s]
        count[top] = 1.0
        # Invariant: the means of the blocks below `top` never increase.
        while top > 0 and mean[top - 1] < mean[top]:
            both = count[top - 1] + count[top]
            mean[top - 1] = (mean[top - 1] * count[top - 1] + mean[top] * count[top]) / both
            count[top - 1] = both
            top -= 1
        top += 1
    at = 0
    for block in range(top):
        value = min(max(mean[block], lower), upper)
        for _ in range(np.int64(count[block])):
            y[at] = value
            at += 1


@kernel
def column_pass(y, z, u, x, penalty, weight, precision, share, first_child, begin, end, fixed, total):
    """Consistency half of a step: x = the projection of (y + penalty (z - u)) / (1 + penalty), columns begin .. end."""
    for r in range(y.shape[0]):
        for s in range(begin, end):
            x[r, s] = (y[r, s] + penalty * (z[r, s] - u[r, s])) / (1.0 + penalty)
    project_inplace(x, weight, precision, share, first_child, begin, end, fixed, total)


@kernel
def row_pass(x, z, u, relaxation, lower, upper, begin, end):
    """Monotone half of a step for rows begin .. end; returns the largest |x - z| and the largest change of z."""
    n_bins = x.shape[1]
    mean, count, row = np.empty(n_bins), np.empty(n_bins), np.empty(n_bins)
    gap = change = 0.0
    for r in range(begin, end):
        for s in range(n_bins):
            u[r, s] += relaxation * x[r, s] + (1.0 - relaxation) * z[r, s]
            row[s] = u[r, s]
        nonincreasing_inplace(row, lower, upper, mean, count)
        for s in range(n_bins):
            u[r, s] -= row[s]
            gap = max(gap, abs(x[r, s] - row[s]))
            change = max(change, abs(z[r, s] - row[s]))
            z[r, s] = row[s]
    return gap, change


@kernel
def simplex_inplace(y, total):
    """Replace a vector by the closest non-negative one that sums to `total` >= 0."""
    ordered = np.sort(y)[::-1]
    above = 0.0
    shift = 0.0
    for i in range(ordered.shape[0]):
        above += ordered[i]
        candidate = (above - total) / (i + 1)
        if ordered[i] >= candidate:
            shift = candidate
    for i in range(y.shape[0]):
        y[i] = max(0.0, y[i] - shift)


@kernel
def deal_inplace(sums, means, values):
    """Whole-number rows that never increase and have given sums, each column dealt out close to the means, starting from the last one.

    Parameters
    ----------
    sums : int64 (B,)
        Never increases, not negative.
    means : float64 (C, B)
    values : int64 (C, B)
        Filled: every column sums to `sums`.
    """
    n_rows, n_columns = means.shape
    held = np.zeros(n_rows, np.int64)
    wanted = np.empty(n_rows)
    dealt = np.int64(0)
    for j in range(n_columns - 1, -1, -1):
        for c in range(n_rows):
            wanted[c] = means[c, j] - held[c]
        simplex_inplace(wanted, np.float64(sums[j] - dealt))
        # Invariant: `held` sums to `dealt`, and no row gives up what it holds.
        for c in range(n_rows):
            whole = np.int64(np.floor(wanted[c]))
            wanted[c] -= whole
            held[c] += whole
            dealt += whole
        order = np.argsort(-wanted)
        for i in range(sums[j] - dealt):
            held[order[i]] += 1
        dealt = sums[j]
        for c in range(n_rows):
            values[c, j] = held[c]
