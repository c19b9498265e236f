"""Vectors of type counts whose sums over every set of types are bounded: projection, exchange, nearest point.

A set of types is a bit mask. `lower[S]` and `upper[S]` bound the sum over S for all 2^k sets of k types, and describe a generalised
polymatroid: both are attained, `upper` is submodular, `lower` supermodular, and they are compatible (`upper[S] - upper[S - R] >= ...`).
Adding one more element, the ground, whose count is minus the sum of the others, turns it into the base polytope of

    f(S) = upper[S]                 for S without the ground,
    f(S + ground) = -lower[V - S]   for S with it,

so that every algorithm below is one for base polytopes (Fujishige, Submodular Functions and Optimization).
The ground is bit k of a mask. The trusted input is a non-empty polymatroid with integer bounds.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = [
    "UNBOUNDED",
    "box_inplace",
    "exchange_masks_inplace",
    "is_member",
    "nearest_inplace",
    "project_inplace",
    "restrict_inplace",
]

UNBOUNDED = np.int64(1 << 40)
"""A bound that never binds; the sum of a million of them fits in 64 bits."""

SLACK = 1e-9  # in persons: floating-point violations of a set beyond this count


@kernel
def restrict_inplace(lower, upper, keep, own_lower, own_upper):
    """Bounds on the k types in the mask `keep`, the others fixed at zero; returns k."""
    n_types = 0
    place = np.zeros(64, np.int64)
    for bit in range(63):
        if keep >> bit & 1:
            place[n_types] = bit
            n_types += 1
    outside = (upper.shape[0] - 1) & ~keep
    for s in range(1 << n_types):
        full = 0
        for j in range(n_types):
            if s >> j & 1:
                full |= 1 << place[j]
        own_upper[s] = upper[full]
        own_lower[s] = lower[full | outside]
    # The empty set sums to zero; the caller checks the bounds of the types outside.
    own_lower[0] = 0
    own_upper[0] = 0
    return n_types


@inner
def _value(lower, upper, k, s):
    """f of a set that may contain the ground (bit k)."""
    if s >> k & 1:
        return -lower[((1 << k) - 1) & ~s]
    return upper[s]


@kernel
def project_inplace(lower, upper, k, wanted, out, block):
    """The point of the polymatroid nearest to `wanted`.

    `out[t]` is its count of type t. Types with the same `block` move together with a fixed sum; block 0 is
    free (its types stay at `wanted`).

    Implements: the decomposition algorithm for separable quadratics on a base polytope.
    Cost: O(k 2^k) at worst, O(2^k) where nothing binds.
    """
    stack = np.empty((2 * k + 4, 2), np.int64)
    everything = (1 << k) - 1
    n_blocks = 1
    if lower[everything] == upper[everything]:
        stack[0, 0], stack[0, 1] = 0, everything
    else:
        stack[0, 0], stack[0, 1] = 0, everything | 1 << k
    depth = 1
    # The stack holds a chain of sets whose bounds the answer attains; each entry is one link (low, high).
    while depth > 0:
        depth -= 1
        low, high = stack[depth, 0], stack[depth, 1]
        free = high & ~low
        has_ground = free >> k & 1 == 1
        total = np.float64(_value(lower, upper, k, high) - _value(lower, upper, k, low))
        own_sum = 0.0
        n_own = 0
        for t in range(k):
            if free >> t & 1:
                own_sum += wanted[t]
                n_own += 1
        shift = 0.0 if has_ground or n_own == 0 else (total - own_sum) / n_own
        ground = total - own_sum
        for t in range(k):
            if free >> t & 1:
                out[t] = wanted[t] + shift
        if n_own + (1 if has_ground else 0) <= 1:
            worst = 0
        else:
            worst = _worst_set(lower, upper, k, low, free, out, ground)
        if worst == 0:
            name = 0
            if not has_ground:
                name = n_blocks
                n_blocks += 1
            for t in range(k):
                if free >> t & 1:
                    block[t] = name
        else:
            stack[depth, 0], stack[depth, 1] = low, low | worst
            stack[depth + 1, 0], stack[depth + 1, 1] = low | worst, high
            depth += 2


@inner
def _worst_set(lower, upper, k, low, free, counts, ground):
    """The subset of `free` that exceeds its bound most; 0 if none does."""
    offset = np.float64(_value(lower, upper, k, low))
    worst = 0
    excess = SLACK
    s = (free - 1) & free
    while s > 0:
        held = ground if s >> k & 1 else 0.0
        for t in range(k):
            if s >> t & 1:
                held += counts[t]
        over = held - (np.float64(_value(lower, upper, k, low | s)) - offset)
        if over > excess:
            excess = over
            worst = s
        s = (s - 1) & free
    return worst


@inner
def is_member(lower, upper, k, counts):
    """Whether integer counts respect every bound."""
    for s in range(1, 1 << k):
        held = 0
        for t in range(k):
            if s >> t & 1:
                held += counts[t]
        if held < lower[s] or held > upper[s]:
            return False
    return True


@inner
def exchange_masks_inplace(lower, upper, k, counts, allow):
    """`allow[i]` is the set of types j that can give one person to type i; bit k and `allow[k]` mean the ground.

    A set is tight where the counts attain its bound. One more of i and one fewer of j stays inside if and only if
    every tight set that holds i also holds j.
    """
    everything = (1 << (k + 1)) - 1
    for i in range(k + 1):
        allow[i] = everything
    for s in range(1 << k):
        held = 0
        for t in range(k):
            if s >> t & 1:
                held += counts[t]
        if s > 0 and held == upper[s]:
            for i in range(k):
                if s >> i & 1:
                    allow[i] &= s
        if s > 0 and held == lower[s]:
            lifted = everything & ~s
            for i in range(k + 1):
                if lifted >> i & 1:
                    allow[i] &= lifted


@inner
def nearest_inplace(lower, upper, k, wanted, out, allow):
    """An integer point of the polymatroid with the least sum of |out - wanted|; all integers.

    Type by type takes the nearest count that the earlier ones leave possible, then makes single exchanges while they help. For a separable
    convex function on a polymatroid, a point that no exchange improves is optimal.
    """
    for t in range(k):
        highest, lowest = upper[1 << t], lower[1 << t]
        for s in range(1, 1 << t):
            held = 0
            for j in range(t):
                if s >> j & 1:
                    held += out[j]
            highest = min(highest, upper[s | 1 << t] - held)
            lowest = max(lowest, lower[s | 1 << t] - held)
        out[t] = min(max(wanted[t], lowest), highest)
    is_better = True
    while is_better:
        is_better = False
        exchange_masks_inplace(lower, upper, k, out, allow)
        for i in range(k + 1):
            for j in range(k + 1):
                if i == j or not allow[i] >> j & 1 or is_better:
                    continue
                gain = 0
                if i < k:
                    gain += 1 if out[i] < wanted[i] else -1
                if j < k:
                    gain += 1 if out[j] > wanted[j] else -1
                if gain > 0:
                    if i < k:
                        out[i] += 1
                    if j < k:
                        out[j] -= 1
                    is_better = True


@inner
def box_inplace(lower, upper, k, at_least, at_most, new_lower, new_upper):
    """Intersect with bounds on every single type; False if nothing is left.

    Implements: Frank & Tardos (1988), the border functions of a generalised polymatroid cut by a box.
    Cost: O(4^k k).
    """
    for t in range(k):
        if at_least[t] > at_most[t]:
            return False
    for s in range(1, 1 << k):
        least, most = 0, 0
        for t in range(k):
            if s >> t & 1:
                least += at_least[t]
                most += at_most[t]
        if least > upper[s] or lower[s] > most or lower[s] > upper[s]:
            return False
    for s in range(1 << k):
        best_upper, best_lower = upper[s], lower[s]
        for x in range(1 << k):
            high, low = upper[x], lower[x]
            for t in range(k):
                if s >> t & 1 and not x >> t & 1:
                    high += at_most[t]
                    low += at_least[t]
                elif x >> t & 1 and not s >> t & 1:
                    high -= at_least[t]
                    low -= at_most[t]
            best_upper = min(best_upper, high)
            best_lower = max(best_lower, low)
        new_upper[s] = min(best_upper, UNBOUNDED)
        new_lower[s] = best_lower
    return True
