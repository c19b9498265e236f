"""Least squares over a forest of equal trees with one total: in real numbers, then exactly in whole numbers.

Answers: for numbers y[s, r] (one row for each of B copies of a region tree, one column for each of R regions), the
values x[s, r] >= 0 closest to them in weighted squares, such that every region is the sum of its children in each
copy and the roots of all copies sum to a given total.

The tree is *level ordered*: regions are numbered level by level from the root, the children of a region are
consecutive and in the order of their parents, and all leaves lie on the last level. `first_child[r]` is r's first child and
`first_child[r + 1]` the end of its children; for leaves both are equal.

Notes
-----
**Implements**: Fioretto, Van Hentenryck & Zhu (2021), Model 1 (H1)-(H4) by the recurrence (4a)-(4d).
**Departs**: cost tables (Algorithm 1) are replaced by their slopes, so no domain is cut (ERRATA G4). In real numbers a
subtree's best total is a convex piecewise linear function of a price, with one breakpoint for each leaf. In whole
numbers a laminar separable convex problem is solved when no unit can be moved with profit from one child to another at any
region; starting from the rounded real solution few units have to move.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = ["exchange_inplace", "price_of_total", "relaxed_values", "root_curves", "round_down_tree"]

NEVER = np.int64(1) << np.int64(61)
"""Price of a unit that is not there to be taken away."""


@kernel
def _curves(y, weight, first_child, level_start, mu, lam, slope):
    """Breakpoints of every region's total as a function of its price, from the leaves to the root.

    Position i of a level belongs to a leaf below the region at that position; within a region breakpoints ascend.
    `lam` is the price of the region, `mu` the price its children see there, `slope` the change of the total with mu.
    """
    n_levels = level_start.shape[0] - 1
    n_leaves = mu.shape[1]
    last = n_levels - 1
    for i in range(n_leaves):
        r = level_start[last] + i
        mu[last, i] = -weight[r] * y[r]
        lam[last, i] = mu[last, i]
        slope[last, i] = 1.0 / weight[r]
    # The number of leaves below each region of the level just done, so that regions know their positions.
    below = np.ones(n_leaves, np.int64)
    for level in range(last - 1, -1, -1):
        position = 0
        child_index = 0
        for r in range(level_start[level], level_start[level + 1]):
            begin = position
            for c in range(first_child[r], first_child[r + 1]):
                position += below[child_index]
                child_index += 1
            _merge(y[r], weight[r], begin, position, mu, lam, slope, level)
            below[r - level_start[level]] = position - begin
    return


@kernel
def _merge(y, weight, begin, end, mu, lam, slope, level):
    """Breakpoints of one region from those of its children, which stand at the same positions one level down."""
    child_lam = lam[level + 1, begin:end]
    order = np.argsort(child_lam)
    # Slopes of the children's totals with their own price: s / (1 + w s), recorded as steps when curves were made.
    total = 0.0
    rate = 0.0
    before = 0.0
    for i in range(end - begin):
        j = begin + order[i]
        price = lam[level + 1, j]
        total += rate * (price - before)
        before = price
        rate += slope[level + 1, j]
        mu[level, begin + i] = price
        lam[level, begin + i] = price + weight * (total - y)
        slope[level, begin + i] = rate
    # Turn cumulative rates in mu into steps of rates in lam, which is what the parent adds up.
    earlier = 0.0
    for i in range(begin, end):
        now = slope[level, i] / (1.0 + weight * slope[level, i])
        slope[level, i] = now - earlier
        earlier = now
