"""Cumulative household counts whose sum is known: the closest rows in real numbers, in whole numbers, and exchanges between sizes.

A row holds, for one region, how many households have at least 1, 2, ... members. It never increases, begins with the number of
households, and sums to the number of people in households, since a household of size s counts in s of its entries.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.trees.consistency import nonincreasing_inplace

__all__ = ["exchange_inplace", "fit_children_inplace", "fit_row_inplace", "round_rows"]

STEPS = 200
"""Maximum number of steps towards one shift; each at least halves the interval, or is exact."""


@kernel
def shift_inplace(y, total, upper):
    """Add one number to the non-increasing entries, clipped to [0, upper], so that they sum to `total`."""
    low, high = -y[0], upper - y[y.shape[0] - 1]
    # Invariant: the clipped sum is at most total at `low` and at least total at `high`.
    shift = 0.0
    for _ in range(STEPS):
        shift = min(max(shift, low), high)
        found, inside = 0.0, 0
        for s in range(y.shape[0]):
            value = y[s] + shift
            found += min(max(value, 0.0), upper)
            inside += 0.0 < value < upper
        gap = total - found
        if abs(gap) <= 1e-12 * (1.0 + total) or low == high:
            break
        if gap > 0.0:
            low = shift
        else:
            high = shift
        step = shift + gap / inside if inside > 0 else low - 1.0
        shift = step if low < step < high else 0.5 * (low + high)
    for s in range(y.shape[0]):
        y[s] = min(max(y[s] + shift, 0.0), upper)


@kernel
def fit_row_inplace(y, total, lower, upper, mean, count):
    """Replace a row by the closest one that never increases, sums to `total` and begins within [lower, upper].

    Needs lower <= total <= upper * len(y), and lower * len(y) >= total wherever the first entry is pushed up to `lower`.
    Adding a number to a row adds it to its isotonic regression, so one shift and clipping give the optimum.
    """
    kept = y.copy()
    nonincreasing_inplace(y, -np.inf, np.inf, mean, count)
    shift_inplace(y, total, upper)
    if y[0] < lower:
        # The first entry is at its bound in the optimum, which bounds the others.
        y[:] = kept
        y[0] = lower
        if y.shape[0] > 1:
            nonincreasing_inplace(y[1:], -np.inf, np.inf, mean, count)
            shift_inplace(y[1:], total - lower, lower)


@kernel
def fit_children_inplace(x, spread, first_child, begin, end, totals, lower, upper, sweeps, tolerance):
    """Bring the children of the regions begin .. end close to rows that sum to their parent and are possible themselves.

    Parameters
    ----------
    x : float64 (R, S)
        Rows of parents, which are left unchanged; those of their children are changed.
    spread : float64 (R, S)
        Children share the difference from their parent in proportion to this.
    totals, lower, upper : float64 (R,)
        As for `fit_row_inplace`.
    """
    n_sizes = x.shape[1]
    mean, count = np.empty(n_sizes), np.empty(n_sizes)
    for p in range(begin, end):
        for _ in range(sweeps):
            worst = 0.0
            for s in range(n_sizes):
                missing, weight = x[p, s], 0.0
                for c in range(first_child[p], first_child[p + 1]):
                    missing -= x[c, s]
                    weight += spread[c, s]
                worst = max(worst, abs(missing))
                if weight > 0.0:
                    for c in range(first_child[p], first_child[p + 1]):
                        x[c, s] += missing * spread[c, s] / weight
            for c in range(first_child[p], first_child[p + 1]):
                fit_row_inplace(x[c], totals[c], lower[c], upper[c], mean, count)
            if worst <= tolerance:
                break


@kernel
def round_rows(x, totals, upper, whole):
    """Fill `whole` with whole rows next to possible real ones: never increasing, the same sums, the first entry within bounds.

    Entries are rounded down; the units missing from the sum then go one by one to the entry that lost most among those that may grow.
    """
    for r in range(x.shape[0]):
        left = totals[r]
        for s in range(x.shape[1]):
            whole[r, s] = np.int64(np.floor(x[r, s] + 1e-9))
            left -= whole[r, s]
        while left > 0:
            best, most = -1, -np.inf
            for s in range(x.shape[1]):
                room = upper[r] if s == 0 else whole[r, s - 1]
                if whole[r, s] < room and x[r, s] - whole[r, s] > most:
                    best, most = s, x[r, s] - whole[r, s]
            if best < 0:
                return r
            whole[r, best] += 1
            left -= 1
        if left < 0:
            return r
    return -1


@kernel
def exchange_inplace(whole, off, parent, first_leaf, lower, upper, threshold):
    """Take one from one entry and add one to another of the same leaf, as long as that lowers the squared distance by `threshold`.

    Parameters
    ----------
    whole : int64 (L, S)
        Rows of the leaves: possible before and after.
    off : float64 (R, S)
        By how much the rows of all regions, as sums of leaves, exceed their targets; kept up to date.
    parent : int64 (R,)
    first_leaf : int
        Number of the first leaf among all regions.
    lower, upper : int64 (L,)
        Bounds of the first entry of each leaf.

    Returns
    -------
    int
        Exchanges made.
    """
    n_sizes = whole.shape[1]
    pull = np.empty(n_sizes)
    grows, shrinks = np.empty(n_sizes, np.int64), np.empty(n_sizes, np.int64)
    made = 0
    for leaf in range(whole.shape[0]):
        row = whole[leaf]
        while True:
            depth = 0
            pull[:] = 0.0
            r = first_leaf + leaf
            while r >= 0:
                for s in range(n_sizes):
                    pull[s] += off[r, s]
                depth += 1
                r = parent[r]
            # Only the first and the last entry of each run of equal ones can change: few, as their sum is known.
            n_grow, n_shrink = 0, 0
            for s in range(n_sizes):
                if row[s] < (upper[leaf] if s == 0 else row[s - 1]):
                    grows[n_grow] = s
                    n_grow += 1
                after = row[s + 1] if s + 1 < n_sizes else 0
                if row[s] > (max(after, lower[leaf]) if s == 0 else after):
                    shrinks[n_shrink] = s
                    n_shrink += 1
            best, up, down = -threshold, -1, -1
            for j in range(n_shrink):
                t = shrinks[j]
                for i in range(n_grow):
                    s = grows[i]
                    if s == t or (s == t + 1 and row[s] + 1 > row[t] - 1):
                        continue
                    gain = 2.0 * (pull[s] - pull[t]) + 2.0 * depth
                    if gain < best:
                        best, up, down = gain, s, t
            if up < 0:
                break
            row[up] += 1
            row[down] -= 1
            made += 1
            r = first_leaf + leaf
            while r >= 0:
                off[r, up] += 1.0
                off[r, down] -= 1.0
                r = parent[r]
    return made
