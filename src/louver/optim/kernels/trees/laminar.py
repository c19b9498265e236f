"""Least squares over copies of a tree with one total: in real numbers, then exactly in whole numbers.

Given numbers y[s, r], with one row for each of B copies of a region tree and one column for each of its R regions,
finds the values x[s, r] >= 0 closest to them in weighted squares, such that in every copy a region is the sum of its children, and
the roots of all copies sum to a given total.

The tree is *level ordered*: regions are numbered level by level from the root, the children of a region are consecutive and
in the order of their parents, and all leaves lie on the last level. `first_child[r] .. first_child[r + 1]` are r's children
(none for a leaf), `level_start[k] .. level_start[k + 1]` the regions of level k.

Notes
-----
**Implements**: Fioretto, Van Hentenryck & Zhu (2021), Model 1 (H1)-(H4), by the recurrence (4a)-(4d) on the hierarchy
T^dp of section 6.
**Departs**: cost tables (Algorithm 1) are replaced by their slopes, so no domain is cut (ERRATA G4). In real numbers the
total of a subtree is a convex piecewise linear function of a price, with one breakpoint for each leaf. In whole numbers the
problem is solved once no unit can be moved with profit from one child of a region to another: the cost is separable and
convex over a laminar family, so a local optimum is a global one. From the rounded real solution few units have to move.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel

__all__ = ["exchange_inplace", "price_of_total", "relaxed_values", "root_curves", "rounded_values"]

NEVER = np.int64(1) << np.int64(61)
"""Price of removing a unit that is not there."""


@kernel
def _curves(y, weight, first_child, level_start, mu, lam, rate, step):
    """Breakpoints of every region's total as a function of its price, from the leaves to the root.

    Each region owns as many positions of its level's row as it has leaves. At a breakpoint its price is `lam` and the price
    its children see `mu`; after it the total grows by `rate` with mu, and by `step` more than before with lam.
    """
    n_leaves = mu.shape[1]
    last = level_start.shape[0] - 2
    for i in range(n_leaves):
        r = level_start[last] + i
        mu[last, i] = lam[last, i] = -weight[r] * y[r]
        step[last, i] = rate[last, i] = 1.0 / weight[r]
    below = np.ones(n_leaves, np.int64)
    for level in range(last - 1, -1, -1):
        position = 0
        for r in range(level_start[level], level_start[level + 1]):
            begin = position
            for c in range(first_child[r], first_child[r + 1]):
                position += below[c - level_start[level + 1]]
            _merge(y[r], weight[r], begin, position, level, mu, lam, rate, step)
            below[r - level_start[level]] = position - begin


@kernel
def _merge(y, weight, begin, end, level, mu, lam, rate, step):
    """Breakpoints of one region from those of its children, which stand at the same positions one level down."""
    order = np.argsort(lam[level + 1, begin:end])
    total = before = slope = earlier = 0.0
    for i in range(end - begin):
        child = begin + order[i]
        own = begin + i
        price = lam[level + 1, child]
        total += slope * (price - before)
        before = price
        slope += step[level + 1, child]
        mu[level, own] = price
        lam[level, own] = price + weight * (total - y)
        rate[level, own] = slope
        step[level, own] = slope / (1.0 + weight * slope) - earlier
        earlier += step[level, own]


@kernel
def root_curves(y, weight, first_child, level_start, prices, steps):
    """For each copy the breakpoints of its root's total as a function of the price; see `_curves`.

    Parameters
    ----------
    y : float64 (B, R)
    weight : float64 (R,)
        Positive.
    first_child : int64 (R + 1,)
    level_start : int64 (n_levels + 1,)
    prices, steps : float64 (B, n_leaves)
        Filled: prices ascend in each row; above each of them, the total grows by `steps` more per unit of price.
    """
    n_levels, n_leaves = level_start.shape[0] - 1, prices.shape[1]
    mu = np.empty((n_levels, n_leaves))
    lam, rate, step = np.empty_like(mu), np.empty_like(mu), np.empty_like(mu)
    for s in range(y.shape[0]):
        _curves(y[s], weight, first_child, level_start, mu, lam, rate, step)
        prices[s] = lam[0]
        steps[s] = step[0]


@kernel
def price_of_total(prices, steps, total):
    """The price at which the roots of all copies together reach `total`, by bisection; total >= 0."""
    low = high = prices[0, 0]
    for s in range(prices.shape[0]):
        low = min(low, prices[s, 0])
        high = max(high, prices[s, -1])
    width = max(1.0, high - low)
    while _total_at(prices, steps, high) < total:
        high += width
        width *= 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if _total_at(prices, steps, middle) < total:
            low = middle
        else:
            high = middle
    return high if total > 0 else low


@kernel
def _total_at(prices, steps, price):
    total = 0.0
    for s in range(prices.shape[0]):
        for i in range(prices.shape[1]):
            if prices[s, i] >= price:
                break
            total += steps[s, i] * (price - prices[s, i])
    return total


@kernel
def relaxed_values(y, weight, first_child, level_start, price, x):
    """The real solution of every copy at the price of the roots; x is float64 (B, R)."""
    n_levels = level_start.shape[0] - 1
    n_leaves = level_start[-1] - level_start[-2]
    mu = np.empty((n_levels, n_leaves))
    lam, rate, step = np.empty_like(mu), np.empty_like(mu), np.empty_like(mu)
    seen = np.empty(y.shape[1])
    for s in range(y.shape[0]):
        _curves(y[s], weight, first_child, level_start, mu, lam, rate, step)
        seen[0] = price
        for level in range(n_levels - 1):
            position = 0
            for r in range(level_start[level], level_start[level + 1]):
                n_below = _leaves_below(r, first_child, level, n_levels)
                children_see = _children_price(
                    seen[r], weight[r], mu[level], lam[level], rate[level], position, position + n_below
                )
                for c in range(first_child[r], first_child[r + 1]):
                    seen[c] = children_see
                position += n_below
        for r in range(level_start[n_levels - 1], level_start[n_levels]):
            x[s, r] = max(0.0, y[s, r] + seen[r] / weight[r])
        for r in range(level_start[n_levels - 1] - 1, -1, -1):
            x[s, r] = 0.0
            for c in range(first_child[r], first_child[r + 1]):
                x[s, r] += x[s, c]


@kernel
def _leaves_below(r, first_child, level, n_levels):
    begin, end = r, r + 1
    for _ in range(n_levels - 1 - level):
        begin, end = first_child[begin], first_child[end]
    return end - begin


@kernel
def _children_price(price, weight, mu, lam, rate, begin, end):
    """Invert price = mu + weight * (total(mu) - y) on one region's breakpoints."""
    if price <= lam[begin]:
        return mu[begin] + price - lam[begin]
    low, high = begin, end - 1
    while low < high:  # the last breakpoint at or below the price
        middle = (low + high + 1) // 2
        if lam[middle] <= price:
            low = middle
        else:
            high = middle - 1
    return mu[low] + (price - lam[low]) / (1.0 + weight * rate[low])


@kernel
def rounded_values(x, first_child, total, v):
    """Whole numbers v close to x that preserve every sum: largest remainders, from the roots down; v is int64 (B, R)."""
    n_copies, n_regions = x.shape
    roots = np.ascontiguousarray(x[:, 0])
    shares = np.empty(n_copies, np.int64)
    _largest_remainders(roots, total, shares)
    for s in range(n_copies):
        v[s, 0] = shares[s]
        for r in range(n_regions):
            begin, end = first_child[r], first_child[r + 1]
            if begin < end:
                _largest_remainders(x[s, begin:end], v[s, r], v[s, begin:end])


@kernel
def _largest_remainders(x, total, v):
    """Whole numbers that sum to total, close to x; where the sums are far apart the last units are taken anywhere."""
    fraction = np.empty(x.shape[0])
    missing = total
    for i in range(x.shape[0]):
        v[i] = np.int64(np.floor(x[i]))
        fraction[i] = v[i] - x[i]
        missing -= v[i]
    order = np.argsort(fraction)
    while missing > 0:
        for i in range(min(missing, order.shape[0])):
            v[order[i]] += 1
        missing -= min(missing, order.shape[0])
    while missing < 0:
        for i in range(order.shape[0] - 1, -1, -1):
            if missing < 0 and v[order[i]] > 0:
                v[order[i]] -= 1
                missing += 1


# Whole numbers. For region r of copy s, gain[s, r] is the cost of the cheapest unit more in its subtree, and loss[s, r] that
# of the cheapest unit less. A region keeps two tournaments over its children, one for each quantity; node 1 is the winner, and the
# children of tournament node j are 2 j and 2 j + 1. Its nodes 0 .. 2 k - 1 stand at slot[r] for k children.


@kernel
def _play(tournament, keys, at, k, first):
    """Play a whole tournament of k children, numbered from `first`."""
    for i in range(k):
        tournament[at + k + i] = first + i
    for j in range(k - 1, 0, -1):
        a, b = tournament[at + 2 * j], tournament[at + 2 * j + 1]
        tournament[at + j] = a if keys[a] <= keys[b] else b


@kernel
def _replay(tournament, keys, at, k, place):
    """Play again the matches of the child at `place`."""
    j = (k + place) // 2
    while j >= 1:
        a, b = tournament[at + 2 * j], tournament[at + 2 * j + 1]
        tournament[at + j] = a if keys[a] <= keys[b] else b
        j //= 2


@kernel
def _refresh(r, y, weight, first_child, slot, v, gain, loss, most, least):
    """Recompute what one unit more or less costs in the subtree of r."""
    gain[r] = weight[r] * (2 * (v[r] - y[r]) + 1)
    loss[r] = weight[r] * (2 * (y[r] - v[r]) + 1) if v[r] > 0 else NEVER
    if first_child[r] < first_child[r + 1]:
        gain[r] += gain[most[slot[r] + 1]]
        if v[r] > 0:
            loss[r] += loss[least[slot[r] + 1]]


@kernel
def _shift(r, unit, y, weight, first_child, parent, slot, v, gain, loss, most, least):
    """Add one unit to the subtree of r, or take one away, where it is cheapest; refresh r and the path below it."""
    top = r
    while True:
        v[r] += unit
        if first_child[r] == first_child[r + 1]:
            break
        r = most[slot[r] + 1] if unit > 0 else least[slot[r] + 1]
    while True:
        _refresh(r, y, weight, first_child, slot, v, gain, loss, most, least)
        if r == top:
            return
        p = parent[r]
        k, place = first_child[p + 1] - first_child[p], r - first_child[p]
        _replay(most, gain, slot[p], k, place)
        _replay(least, loss, slot[p], k, place)
        r = p


@kernel
def _settle(y, weight, first_child, parent, slot, v, gain, loss, most, least):
    """Make one copy optimal for its root's value; return the number of units moved."""
    moved = 0
    for r in range(y.shape[0] - 1, -1, -1):
        first, k = first_child[r], first_child[r + 1] - first_child[r]
        if k > 0:
            _play(most, gain, slot[r], k, first)
            _play(least, loss, slot[r], k, first)
            # Invariant: every child's subtree is optimal for its value, so a profitable pair has two different children.
            while True:
                a, b = most[slot[r] + 1], least[slot[r] + 1]
                if gain[a] + loss[b] >= 0:
                    break
                _shift(a, 1, y, weight, first_child, parent, slot, v, gain, loss, most, least)
                _shift(b, -1, y, weight, first_child, parent, slot, v, gain, loss, most, least)
                for c in (a, b):
                    _replay(most, gain, slot[r], k, c - first)
                    _replay(least, loss, slot[r], k, c - first)
                moved += 1
        _refresh(r, y, weight, first_child, slot, v, gain, loss, most, least)
    return moved


@kernel
def exchange_inplace(y, weight, first_child, parent, is_free, v):
    """Move units between children, then between copies, while that lowers the cost; return how many were moved.

    Parameters
    ----------
    y : int64 (B, R)
    weight : int64 (R,)
        Positive. The caller has checked that weight * |v - y| * 4 * levels stays below 2^60.
    first_child : int64 (R + 1,)
    parent : int64 (R,)
    is_free : bool
        Whether the total may change: each copy then takes the value that is best for it.
    v : int64 (B, R)
        Consistent and not negative; on return an optimum.
    """
    n_copies, n_regions = y.shape
    slot = np.empty(n_regions, np.int64)
    at = 0
    for r in range(n_regions):
        slot[r] = at
        at += 2 * (first_child[r + 1] - first_child[r])
    gain, loss = np.empty((n_copies, n_regions), np.int64), np.empty((n_copies, n_regions), np.int64)
    most, least = np.empty((n_copies, at), np.int32), np.empty((n_copies, at), np.int32)
    moved = 0
    for s in range(n_copies):
        moved += _settle(y[s], weight, first_child, parent, slot, v[s], gain[s], loss[s], most[s], least[s])
        while is_free and min(gain[s, 0], loss[s, 0]) < 0:
            unit = 1 if gain[s, 0] < 0 else -1
            _shift(
                0, unit, y[s], weight, first_child, parent, slot, v[s], gain[s], loss[s], most[s], least[s]
            )
            moved += 1
    if is_free:
        return moved
    root_gain, root_loss = gain[:, 0].copy(), loss[:, 0].copy()
    top_most, top_least = np.empty(2 * n_copies, np.int32), np.empty(2 * n_copies, np.int32)
    _play(top_most, root_gain, 0, n_copies, 0)
    _play(top_least, root_loss, 0, n_copies, 0)
    while root_gain[top_most[1]] + root_loss[top_least[1]] < 0:
        a, b = top_most[1], top_least[1]
        for s, unit in ((a, 1), (b, -1)):
            _shift(
                0, unit, y[s], weight, first_child, parent, slot, v[s], gain[s], loss[s], most[s], least[s]
            )
            root_gain[s], root_loss[s] = gain[s, 0], loss[s, 0]
            _replay(top_most, root_gain, 0, n_copies, s)
            _replay(top_least, root_loss, 0, n_copies, s)
        moved += 1
    return moved
