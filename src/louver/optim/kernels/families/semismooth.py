"""Least squares for the children of one parent, by Newton's method on the dual.

One *family* is a parent with m children and the n cells its children may fill. Minimise over h >= 0

    1/2 sum_c [ sum_i a_ci (h_ci - detail_ci)^2 + v_c sum_G (h_c(G) - grouped_c(G))^2
                + sum_k w_kc (h_c(L_k) - noisy_ck)^2 ]

subject to sum_c h_c = parent, cell by cell, and to the sums over types lying in each child's polymatroid. The
groups G partition the cells; so do the rows L_k of every further query (a *link*), among them the types,
whose weights are equal within a child: their projection is Euclidean.

With multipliers `price` (one per cell, for the parent's sums) and z (one per link row and child, for
g_ck = h_c(L_k)) the best h and g have closed forms: a threshold within each group of each child, and a
projection of the type counts. The dual is concave and piecewise quadratic. For given z it is maximised over
the prices exactly, group by group; a Newton step on z follows, eliminating whichever of the two sides is
smaller; the step length comes from the slope alone, which stays exact near the optimum.

Counts are kept in *slots*: slot j m + c holds the cells of group j that child c may fill.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from louver.optim.kernels import inner, kernel
from louver.optim.kernels.families.cholesky import factor_inplace, solve_inplace, solve_transposed_inplace
from louver.optim.kernels.families.polymatroid import project_inplace

__all__ = ["SOLVED", "STALLED", "FamilyArrays", "solve_family_inplace", "weigh"]

SOLVED = 0
STALLED = 1

MAX_STEPS = 120  # Newton steps on z
MAX_GROUP_STEPS = 60  # Newton steps on the prices of one group
MAX_TRIALS = 30  # maximum number of step lengths tried along one direction
MAX_IDLE = 60  # steps on z allowed without halving the residual; after that, what remains is rounding error
MAX_GROUP_IDLE = 12  # the same for the prices of one group
ENOUGH = 0.2  # a step may overshoot until the slope is minus this share of the initial one
FAR = 0.7  # a step is too short while this share of the slope is left
LONGEST = 256.0  # longest step, as a multiple of the Newton step
MAX_TYPES = 16


class FamilyArrays(NamedTuple):
    """One parent and its children, as arrays; the module docstring explains them.

    Cells are sorted by group, group j being cells group_start[j] to group_start[j + 1]. Entry e, one cell of one child, belongs to cell[e];
    slot s holds entries slot_start[s] to slot_start[s + 1]. `a` and `detail` have one value per entry, `v` and `grouped` one per slot,
    `weight` and `noisy` one per row and child. Quantities derived from these are stored: `share`, the a of a slot's first entry over this
    one's; `inverse`, 1 / (a + v); `alone`, the a of a group's first entry over a + v; `ratio`, a + v of it over this one's. `row` is
    (links, n). Rows 0 to n_types - 1 are the types; where is_bounded, keep[c] is the mask of those child c may fill, lower[c] and upper[c]
    its bounds restricted to them. `parent` is ignored where has_parent is False (the root).
    """

    a: np.ndarray
    v: np.ndarray
    share: np.ndarray
    inverse: np.ndarray
    alone: np.ndarray
    ratio: np.ndarray
    has_parent: bool
    parent: np.ndarray
    group_start: np.ndarray
    slot_start: np.ndarray
    cell: np.ndarray
    detail: np.ndarray
    grouped: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    noisy: np.ndarray
    n_types: int
    is_bounded: bool
    keep: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@kernel
def weigh(n_groups, slot_start, a, v):
    """The quantities a family stores about its weights: share, inverse, alone and ratio."""
    m = (slot_start.shape[0] - 1) // n_groups
    share, inverse = np.empty(a.shape[0]), np.empty(a.shape[0])
    alone, ratio = np.empty(a.shape[0]), np.empty(a.shape[0])
    for j in range(n_groups):
        base, both = 0.0, 0.0
        for slot in range(j * m, (j + 1) * m):
            first = slot_start[slot]
            for e in range(first, slot_start[slot + 1]):
                if base == 0.0:
                    base, both = a[e], a[e] + v[slot]
                share[e], inverse[e] = a[first] / a[e], 1.0 / (a[e] + v[slot])
                alone[e], ratio[e] = base / (a[e] + v[slot]), both / (a[e] + v[slot])
    return share, inverse, alone, ratio


@inner
def _respond_inplace(first, last, a, v, share, cell, detail, grouped, price, zeta, h):
    """Best counts in one slot (entries first to last) for given multipliers."""
    total, shared = 0.0, 0.0
    for e in range(first, last):
        h[e] = detail[e] + (price[cell[e]] - zeta[e]) / a[e]
        total += h[e]
        shared += share[e]
    shift = 0.0
    n_active, n_before = last - first, last - first + 1
    # Every round drops counts below the threshold, which can only raise the threshold.
    while v > 0.0 and 0 < n_active < n_before:
        n_before = n_active
        shift = (total - grouped) / (shared + a[first] / v)
        n_active, total, shared = 0, 0.0, 0.0
        for e in range(first, last):
            if h[e] > shift * share[e]:
                n_active += 1
                total += h[e]
                shared += share[e]
    for e in range(first, last):
        h[e] = max(h[e] - shift * share[e], 0.0)


@inner
def _price_single_inplace(family, j, price, zeta, h, tolerance):
    """The price of a group of one cell: the sum of max(0, base + price / slope) is convex and increasing."""
    a, v, ratio, m = family.a, family.v, family.ratio, family.noisy.shape[1]
    slot_start, detail, grouped = family.slot_start, family.detail, family.grouped
    i = family.group_start[j]
    goal = family.parent[i]
    first, last = slot_start[j * m], slot_start[(j + 1) * m]
    if first == last:
        return
    inverse, highest = family.inverse, -np.inf
    for slot in range(j * m, (j + 1) * m):
        for e in range(slot_start[slot], slot_start[slot + 1]):
            h[e] = (a[e] * detail[e] + v[slot] * grouped[slot] - zeta[e]) * inverse[e]
            highest = max(highest, h[e] / ratio[e])
    # From the second round on the sum is at least the goal and falls, so the active set can only shrink.
    shift = max(price[i] * inverse[first], -highest)
    for _ in range(MAX_GROUP_STEPS):
        total, active = 0.0, 0.0
        for e in range(first, last):  # without branches, because the processor could not predict them
            value = h[e] + shift * ratio[e]
            total += max(value, 0.0)
            active += ratio[e] * (value > 0.0)
        if active == 0.0:
            shift = goal - highest
            continue
        shift += (goal - total) / active
        if abs(goal - total) <= tolerance:
            break
    for e in range(first, last):
        h[e] = max(h[e] + shift * ratio[e], 0.0)
    price[i] = shift * _reference(family, j)[1]


@inner
def _reference(family, j):
    """The weights a and a + v of the first entry of group j, the unit of curvatures and prices; 1 if there are no entries."""
    m = family.noisy.shape[1]
    for slot in range(j * m, (j + 1) * m):
        first = family.slot_start[slot]
        if first < family.slot_start[slot + 1]:
            return family.a[first], family.a[first] + family.v[slot]
    return 1.0, 1.0


@inner
def _coupling(a, v, share, first, last, h):
    """Coupling between the active entries of a slot, relative to the weight of the first."""
    if first == last:
        return 0.0
    shared = 0.0
    for e in range(first, last):
        if h[e] > 0.0:
            shared += share[e]
    return v / (a[first] + v * shared)


@inner
def _group_gradient(family, j, price, zeta, h, gradient, curvature):
    """Fill h, parent - sum of h, and the dual's curvature in the prices of group j; the largest residual."""
    a, v, m = family.a, family.v, family.noisy.shape[1]
    slot_start, cell, detail, grouped = family.slot_start, family.cell, family.detail, family.grouped
    start, size, parent = (
        family.group_start[j],
        family.group_start[j + 1] - family.group_start[j],
        family.parent,
    )
    base, share = _reference(family, j)[0], family.share
    for p in range(size):
        gradient[p] = parent[start + p]
        for q in range(size):
            curvature[p, q] = 0.0
    for slot in range(j * m, (j + 1) * m):
        first, last = slot_start[slot], slot_start[slot + 1]
        if last - first == 1:  # most children can fill only one cell of a group
            p = cell[first] - start
            s = (
                a[first] * detail[first] + v[slot] * grouped[slot] + price[cell[first]] - zeta[first]
            ) * family.inverse[first]
            h[first] = max(s, 0.0)
            gradient[p] -= h[first]
            curvature[p, p] += family.alone[first] * (s > 0.0)
            continue
        _respond_inplace(first, last, a, v[slot], share, cell, detail, grouped[slot], price, zeta, h)
        theta = _coupling(a, v[slot], share, first, last, h)
        for e in range(first, last):
            if h[e] > 0.0:
                p = cell[e] - start
                gradient[p] -= h[e]
                curvature[p, p] += base / a[e]
                less = theta * (base / a[e])
                for other in range(e, last):
                    if h[other] > 0.0:
                        curvature[p, cell[other] - start] -= less * share[other]
    worst = 0.0
    for p in range(size):
        worst = max(worst, abs(gradient[p]))
        for q in range(p, size):
            curvature[p, q] /= base
    return worst


@inner
def _price_group_inplace(family, j, price, zeta, h, work, tolerance):
    """The prices of a group of several cells, by Newton's method on its part of the dual."""
    start = family.group_start[j]
    size = family.group_start[j + 1] - start
    gradient, step, old = work[size], work[size + 1], work[size + 2]
    reference, fallback, reach = work[size + 3], work[size + 4], work[size + 5]
    base = _reference(family, j)[0]
    worst = _group_gradient(family, j, price, zeta, h, gradient, work)
    least, n_idle = worst, 0
    for _ in range(MAX_GROUP_STEPS):
        if worst <= tolerance or n_idle > MAX_GROUP_IDLE:
            return
        n_idle = 0 if worst < 0.5 * least else n_idle + 1
        least = min(least, worst)
        has_woken = False
        for p in range(size):
            if work[p, p] <= 0.0:
                # No child fills this cell yet: raise its price to where the first one does and further, but not far past the optimum.
                wanted, beyond = gradient[p], base * gradient[p]
                woken = price[start + p] + _wake(family, j, p, price, zeta, h)
                for _ in range(MAX_TRIALS):
                    price[start + p] = woken + beyond
                    worst = _group_gradient(family, j, price, zeta, h, gradient, work)
                    if gradient[p] >= -ENOUGH * wanted:
                        break
                    beyond *= 0.25
                has_woken = True
        if has_woken:
            continue
        for p in range(size):
            step[p], old[p] = gradient[p], price[start + p]
            reference[p], fallback[p], reach[p] = work[p, p], 1.0 / base, 0.0
        factor_inplace(work, size, reference, fallback)
        solve_inplace(work, size, step, reach)
        slope = 0.0
        for p in range(size):
            slope += step[p] * gradient[p]
        low, low_slope, high, high_slope = 0.0, slope, 0.0, 0.0
        t = 1.0
        for _ in range(MAX_TRIALS):
            for p in range(size):
                price[start + p] = old[p] + t * step[p]
            worst = _group_gradient(family, j, price, zeta, h, gradient, work)
            now = 0.0
            for p in range(size):
                now += step[p] * gradient[p]
            if worst <= tolerance or -ENOUGH * slope <= now <= FAR * slope or t == LONGEST:
                break
            if now > 0.0:
                low, low_slope = t, now
            else:
                high, high_slope = t, now
            t = _next_length(low, low_slope, high, high_slope)


@inner
def _pressure(family, slot, h):
    """The threshold that the counts in a slot, times their weights, must exceed to be positive."""
    if family.v[slot] == 0.0:
        return 0.0
    held = 0.0
    for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
        held += h[e]
    return (held - family.grouped[slot]) * family.v[slot]


@inner
def _wake(family, j, p, price, zeta, h):
    """How far the price of cell p in group j must rise until some child begins to fill it."""
    m = family.noisy.shape[1]
    i = family.group_start[j] + p
    rise = np.inf
    for slot in range(j * m, (j + 1) * m):
        for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
            if family.cell[e] == i:
                s = family.detail[e] + (price[i] - zeta[e]) / family.a[e]
                rise = min(rise, (_pressure(family, slot, h) / family.a[e] - s) * family.a[e])
    return max(rise, 0.0)


@inner
def _next_length(low, low_slope, high, high_slope):
    """The step length at which the falling slope crosses zero, between two lengths, or beyond them if it has not crossed yet."""
    if high == 0.0:
        return min(4.0 * low, LONGEST)
    t = low + (high - low) * low_slope / (low_slope - high_slope)
    margin = 0.05 * (high - low)
    return min(max(t, low + margin), high - margin)


@inner
def _responses_inplace(family, price, z, zeta, h, work, tolerance):
    """Best prices and counts for given z."""
    a, v, m = family.a, family.v, family.noisy.shape[1]
    row, cell, detail, grouped = family.row, family.cell, family.detail, family.grouped
    slot_start, group_start = family.slot_start, family.group_start
    n_links = row.shape[0]
    for j in range(group_start.shape[0] - 1):
        for c in range(m):
            for e in range(slot_start[j * m + c], slot_start[j * m + c + 1]):
                zeta[e] = 0.0
                for q in range(n_links):
                    zeta[e] += z[row[q, cell[e]], c]
        if not family.has_parent:
            for slot in range(j * m, (j + 1) * m):
                first, last = slot_start[slot], slot_start[slot + 1]
                _respond_inplace(
                    first, last, a, v[slot], family.share, cell, detail, grouped[slot], price, zeta, h
                )
        elif group_start[j + 1] - group_start[j] == 1:
            _price_single_inplace(family, j, price, zeta, h, tolerance)
        else:
            _price_group_inplace(family, j, price, zeta, h, work, tolerance)


@kernel
def _link_counts_inplace(family, place, z, g, block):
    """Best g for given z: free rows follow z, type counts are projected onto the child's polymatroid.

    block[k, c] is 0 for a free row, -1 for one the child cannot fill (place is -1), otherwise the number of a
    set of types whose sum is fixed.
    """
    n_rows, m = g.shape
    wanted = np.empty(MAX_TYPES)
    counts = np.empty(MAX_TYPES)
    blocks = np.empty(MAX_TYPES, np.int64)
    for k in range(n_rows):
        for c in range(m):
            is_used = place[k, c] >= 0
            g[k, c] = family.noisy[k, c] + z[k, c] / family.weight[k, c] if is_used else 0.0
            block[k, c] = 0 if is_used else -1
    if not family.is_bounded:
        return
    for c in range(m):
        size = 0
        for k in range(family.n_types):
            if family.keep[c] >> k & 1:
                wanted[size] = g[k, c]
                size += 1
        project_inplace(family.lower[c], family.upper[c], size, wanted, counts, blocks)
        size = 0
        for k in range(family.n_types):
            if family.keep[c] >> k & 1:
                g[k, c] = counts[size]
                block[k, c] = blocks[size]
                size += 1


@inner
def _gradient_inplace(family, h, g, gradient):
    """h_c(L_k) - g_ck; returns the largest."""
    n_rows, m = g.shape
    n_links = family.row.shape[0]
    for k in range(n_rows):
        for c in range(m):
            gradient[k, c] = -g[k, c]
    for j in range(family.group_start.shape[0] - 1):
        for c in range(m):
            for e in range(family.slot_start[j * m + c], family.slot_start[j * m + c + 1]):
                for q in range(n_links):
                    gradient[family.row[q, family.cell[e]], c] += h[e]
    worst = 0.0
    for k in range(n_rows):
        for c in range(m):
            worst = max(worst, abs(gradient[k, c]))
    return worst


@kernel
def _reach_inplace(family, h, price, z, zeta, g, gradient, reach):
    """For rows to which nothing responds: how far each z must move, in persons, before something does.

    A type count held at a bound stays there as long as it would exceed the bound; a row without filled cells stays empty until the cell
    nearest to being filled is.
    """
    n_rows, m = reach.shape
    n_links = family.row.shape[0]
    reach[:] = 0.0
    for k in range(family.n_types):
        for c in range(m):
            reach[k, c] = abs(family.noisy[k, c] + z[k, c] / family.weight[k, c] - g[k, c])
    rise = np.empty((n_rows, m))
    rise[:] = np.inf
    for j in range(family.group_start.shape[0] - 1):
        for c in range(m):
            slot = j * m + c
            pressure = _pressure(family, slot, h)
            for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
                s = family.detail[e] + (price[family.cell[e]] - zeta[e]) / family.a[e]
                needed = (pressure / family.a[e] - s) * family.a[e]
                for q in range(n_links):
                    k = family.row[q, family.cell[e]]
                    rise[k, c] = min(rise[k, c], needed)
    for k in range(n_rows):
        for c in range(m):
            if gradient[k, c] < 0.0 < rise[k, c] < np.inf:
                reach[k, c] += rise[k, c] / family.weight[k, c]


@inner
def _child_blocks_inplace(family, c, h, block, active, cross, own):
    """For child c: its active entries, the matrix J L' (columns: those entries), and L J L' + dg/dz."""
    n_rows = own.shape[0]
    m = family.noisy.shape[1]
    row, slot_start, cell, a, share = family.row, family.slot_start, family.cell, family.a, family.share
    n_links = row.shape[0]
    own[:] = 0.0
    n_active = 0
    for j in range(family.group_start.shape[0] - 1):
        start, slot = n_active, j * m + c
        first, last = slot_start[slot], slot_start[slot + 1]
        for e in range(first, last):
            if h[e] > 0.0:
                active[n_active] = e
                for k in range(n_rows):
                    cross[k, n_active] = 0.0
                n_active += 1
        if n_active == start:
            continue
        less = _coupling(a, family.v[slot], share, first, last, h) / a[first]
        for p in range(start, n_active):
            e = active[p]
            less_e = less * share[e]
            for q in range(n_links):
                k = row[q, cell[e]]
                cross[k, p] += 1.0 / a[e]
                for other in range(start, n_active):
                    cross[k, other] -= less_e * share[active[other]]
        for p in range(start, n_active):
            for q in range(n_links):
                k = row[q, cell[active[p]]]
                for other in range(k, n_rows):
                    own[k, other] += cross[other, p]
    _add_link_curvature_inplace(family, c, block, own)
    return n_active


@inner
def _add_link_curvature_inplace(family, c, block, own):
    """dg/dz: the identity over the weight, less the mean within each block of types with a fixed sum."""
    for k in range(own.shape[0]):
        if block[k, c] < 0:
            continue
        own[k, k] += 1.0 / family.weight[k, c]
        if block[k, c] > 0:
            size = 0
            for other in range(family.n_types):
                if block[other, c] == block[k, c]:
                    size += 1
            for other in range(k, family.n_types):
                if block[other, c] == block[k, c]:
                    own[k, other] -= 1.0 / (family.weight[k, c] * size)


@kernel
def _direction_by_cells(family, h, block, gradient, reach, step, price_step):
    """Newton step, eliminating z child by child and solving for the prices."""
    n = family.parent.shape[0]
    n_rows, m = gradient.shape
    schur = np.zeros((n, n))
    reference = np.zeros(n)
    price_step[:] = 0.0
    factors = np.empty((m, n_rows, n_rows))
    reduced = np.empty((m, n_rows))
    active = np.empty(n, np.int64)
    cross = np.empty((n_rows, n))
    own_reference = np.empty(n_rows)
    own_fallback, own_reach = np.empty(n_rows), np.empty(n_rows)
    cell = family.cell
    for c in range(m):
        own = factors[c]
        n_active = _child_blocks_inplace(family, c, h, block, active, cross, own)
        for k in range(n_rows):
            own_reference[k], own_reach[k] = own[k, k], reach[k, c]
            own_fallback[k] = 1.0 / family.weight[k, c]
            reduced[c, k] = gradient[k, c]
        factor_inplace(own, n_rows, own_reference, own_fallback)
        solve_transposed_inplace(own, n_rows, reduced[c], own_reach)
        _add_price_curvature_inplace(family, c, h, schur, reference)
        for k in range(n_rows):
            inverse = 1.0 / abs(own[k, k])
            for p in range(n_active):
                cross[k, p] *= inverse
            for later in range(k + 1, n_rows):
                scale = own[k, later]
                if scale != 0.0:
                    for p in range(n_active):
                        cross[later, p] -= scale * cross[k, p]
            for p in range(n_active):
                scale = cross[k, p]
                if scale != 0.0:
                    price_step[cell[active[p]]] += scale * reduced[c, k]
                    above = schur[cell[active[p]]]
                    for q in range(p, n_active):
                        above[cell[active[q]]] -= scale * cross[k, q]
    fallback = np.empty(n)
    fallback[:] = 1.0 / family.a[0]
    factor_inplace(schur, n, reference, fallback)
    solve_inplace(schur, n, price_step, np.zeros(n))
    for c in range(m):
        for k in range(n_rows):
            own_reach[k], reduced[c, k] = reach[k, c], gradient[k, c]
        _add_reaction_inplace(family, c, h, price_step, reduced[c])
        solve_inplace(factors[c], n_rows, reduced[c], own_reach)
        for k in range(n_rows):
            step[k, c] = reduced[c, k]


@inner
def _add_price_curvature_inplace(family, c, h, schur, reference):
    """Add one child's J to the curvature of the dual in the prices, and its diagonal to `reference`."""
    m = family.noisy.shape[1]
    for j in range(family.group_start.shape[0] - 1):
        slot = j * m + c
        _add_slot_curvature_inplace(family, slot, 0, h, schur)
        for e in range(family.slot_start[slot], family.slot_start[slot + 1]):
            if h[e] > 0.0:
                reference[family.cell[e]] += 1.0 / family.a[e]


@inner
def _add_reaction_inplace(family, c, h, price_step, out):
    """Add L J_c times a change of prices to `out`."""
    m = family.noisy.shape[1]
    row, slot_start, cell, a, share = family.row, family.slot_start, family.cell, family.a, family.share
    for j in range(family.group_start.shape[0] - 1):
        first, last = slot_start[j * m + c], slot_start[j * m + c + 1]
        if first == last:
            continue
        total = 0.0
        for e in range(first, last):
            if h[e] > 0.0:
                total += price_step[cell[e]] * share[e]
        total *= _coupling(a, family.v[j * m + c], share, first, last, h) / a[first]
        for e in range(first, last):
            if h[e] > 0.0:
                i = cell[e]
                for q in range(row.shape[0]):
                    out[row[q, i]] += price_step[i] * (1.0 / a[e]) - total * share[e]


@kernel
def _direction_by_links(family, h, block, gradient, reach, place, size, step, price_step):
    """Newton step, eliminating the prices group by group and solving for z; `place` numbers the `size` rows in use."""
    n = family.parent.shape[0]
    n_rows, m = gradient.shape
    schur = np.zeros((size, size))
    own = np.empty((n_rows, n_rows))
    active = np.empty(n, np.int64)
    cross = np.empty((n_rows, n))
    crossing = np.zeros((n, size))
    x, reference, fallback, own_reach = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for c in range(m):
        n_active = _child_blocks_inplace(family, c, h, block, active, cross, own)
        for k in range(n_rows):
            at = place[k, c]
            if at >= 0:
                x[at], reference[at] = gradient[k, c], own[k, k]
                fallback[at], own_reach[at] = 1.0 / family.weight[k, c], reach[k, c]
                for other in range(k, n_rows):
                    if place[other, c] >= 0:
                        schur[at, place[other, c]] = own[k, other]
                for p in range(n_active):
                    crossing[family.cell[active[p]], at] = cross[k, p]
    factors = _eliminate_prices_inplace(family, h, crossing, schur)
    factor_inplace(schur, size, reference, fallback)
    solve_inplace(schur, size, x, own_reach)
    for k in range(n_rows):
        for c in range(m):
            step[k, c] = x[place[k, c]] if place[k, c] >= 0 else 0.0
    price_step[:] = 0.0
    if not family.has_parent:
        return
    for j in range(family.group_start.shape[0] - 1):
        first, last = family.group_start[j], family.group_start[j + 1]
        # crossing holds U'^-1 of the original rows, so only the second half of the solve is left.
        for i in range(last - 1, first - 1, -1):
            total = 0.0
            for p in range(size):
                total += crossing[i, p] * x[p]
            for q in range(i + 1, last):
                total -= factors[i, q - first] * price_step[q]
            price_step[i] = total / abs(factors[i, i - first])


@kernel
def _eliminate_prices_inplace(family, h, crossing, schur):
    """Subtract the prices' part from the curvature in z; returns the factors of all groups, row by row."""
    if not family.has_parent:
        return np.zeros((0, 0))
    size = schur.shape[0]
    m = family.noisy.shape[1]
    n_groups = family.group_start.shape[0] - 1
    widest = _widest(family.group_start)
    factors = np.zeros((family.parent.shape[0], widest))
    reference = np.empty(widest)
    fallback = np.empty(widest)
    touched = np.empty(size, np.int64)
    for j in range(n_groups):
        first, last = family.group_start[j], family.group_start[j + 1]
        own = factors[first:last]
        fallback[:] = 1.0 / _reference(family, j)[0]
        for slot in range(j * m, (j + 1) * m):
            _add_slot_curvature_inplace(family, slot, first, h, own)
        for i in range(last - first):
            reference[i] = own[i, i]
        factor_inplace(own, last - first, reference, fallback)
        n_touched = 0
        for p in range(size):
            for i in range(first, last):
                if crossing[i, p] != 0.0:
                    touched[n_touched] = p
                    n_touched += 1
                    break
        for i in range(first, last):
            inverse = 1.0 / abs(own[i - first, i - first])
            for s in range(n_touched):
                crossing[i, touched[s]] *= inverse
            for q in range(i + 1, last):
                scale = own[i - first, q - first]
                if scale != 0.0:
                    for s in range(n_touched):
                        crossing[q, touched[s]] -= scale * crossing[i, touched[s]]
            for s in range(n_touched):
                p = touched[s]
                scale = crossing[i, p]
                if scale != 0.0:
                    for r in range(s, n_touched):
                        schur[p, touched[r]] -= scale * crossing[i, touched[r]]
    return factors


@inner
def _add_slot_curvature_inplace(family, slot, start, h, own):
    """Add the curvature of one slot in the prices of its group, cells numbered from `start`."""
    a, cell, share = family.a, family.cell, family.share
    first, last = family.slot_start[slot], family.slot_start[slot + 1]
    if first == last:
        return
    less = _coupling(a, family.v[slot], share, first, last, h) / a[first]
    for e in range(first, last):
        if h[e] > 0.0:
            p = cell[e] - start
            own[p, p] += 1.0 / a[e]
            less_e = less * share[e]
            for other in range(e, last):
                if h[other] > 0.0:
                    own[p, cell[other] - start] -= less_e * share[other]


@kernel
def _rows_in_use(family):
    """Number the (row, child) pairs that have a cell to fill, child by child, with -1 for the others; also return their count."""
    m = family.noisy.shape[1]
    place = np.empty((family.weight.shape[0], m), np.int64)
    place[:] = -1
    for j in range(family.group_start.shape[0] - 1):
        for c in range(m):
            for e in range(family.slot_start[j * m + c], family.slot_start[j * m + c + 1]):
                for q in range(family.row.shape[0]):
                    place[family.row[q, family.cell[e]], c] = 0
    size = 0
    for c in range(m):
        for k in range(place.shape[0]):
            if place[k, c] == 0:
                place[k, c] = size
                size += 1
    return place, size


@kernel
def _parent_residual(family, h):
    """Largest violation of the parent's sums."""
    if not family.has_parent:
        return 0.0
    left = np.empty(family.parent.shape[0])
    for i in range(left.shape[0]):
        left[i] = family.parent[i]
    for e in range(h.shape[0]):
        left[family.cell[e]] -= h[e]
    worst = 0.0
    for i in range(left.shape[0]):
        worst = max(worst, abs(left[i]))
    return worst


@inner
def _widest(start):
    """Length of the longest of consecutive ranges."""
    widest = 0
    for j in range(start.shape[0] - 1):
        widest = max(widest, start[j + 1] - start[j])
    return widest


@inner
def _inner_product(a, b):
    """Sum of the products of two tables."""
    total = 0.0
    for k in range(a.shape[0]):
        for c in range(a.shape[1]):
            total += a[k, c] * b[k, c]
    return total


@inner
def _follow_inplace(price, z, old_price, old_z, t, price_step, step):
    """Set the multipliers to the old ones plus t times the step."""
    for k in range(z.shape[0]):
        for c in range(z.shape[1]):
            z[k, c] = old_z[k, c] + t * step[k, c]
    for i in range(price.shape[0]):
        price[i] = old_price[i] + t * price_step[i]


@kernel
def solve_family_inplace(family, h, price, z, tolerance):
    """Solve one family; h (entries), price (n,) and z (rows, m) are filled; the initial values of price and z are the starting point.

    Returns
    -------
    status, n_steps, residual
        `residual` is the largest violation, in persons, of the parent's sums and of h_c(L_k) = g_ck. All
        other optimality conditions hold exactly.
    """
    n = family.parent.shape[0]
    n_rows, m = family.noisy.shape
    widest = _widest(family.group_start)
    work = np.empty((widest + 6, widest))
    zeta = np.empty(h.shape[0])
    g, gradient, reach = np.empty((n_rows, m)), np.empty((n_rows, m)), np.empty((n_rows, m))
    step, old_z = np.empty((n_rows, m)), np.empty((n_rows, m))
    block = np.empty((n_rows, m), np.int64)
    price_step, old_price = np.empty(n), np.empty(n)
    place, n_in_use = _rows_in_use(family)
    is_by_cells = family.has_parent and n < 2 * n_in_use
    _responses_inplace(family, price, z, zeta, h, work, tolerance)
    _link_counts_inplace(family, place, z, g, block)
    worst = _gradient_inplace(family, h, g, gradient)
    n_steps, n_idle, least = 0, 0, worst
    while worst > tolerance and n_steps < MAX_STEPS and n_idle <= MAX_IDLE:
        _reach_inplace(family, h, price, z, zeta, g, gradient, reach)
        if is_by_cells:
            _direction_by_cells(family, h, block, gradient, reach, step, price_step)
        else:
            _direction_by_links(family, h, block, gradient, reach, place, n_in_use, step, price_step)
        slope = _inner_product(step, gradient)
        for k in range(z.shape[0]):
            for c in range(z.shape[1]):
                old_z[k, c] = z[k, c]
        for i in range(price.shape[0]):
            old_price[i] = price[i]
        low, low_slope, high, high_slope = 0.0, slope, 0.0, 0.0
        t = 1.0
        for _ in range(MAX_TRIALS):
            _follow_inplace(price, z, old_price, old_z, t, price_step, step)
            _responses_inplace(family, price, z, zeta, h, work, tolerance)
            _link_counts_inplace(family, place, z, g, block)
            worst = _gradient_inplace(family, h, g, gradient)
            now = _inner_product(step, gradient)
            if worst <= tolerance or -ENOUGH * slope <= now <= FAR * slope or t == LONGEST:
                break
            if now > 0.0:
                low, low_slope = t, now
            else:
                high, high_slope = t, now
            t = _next_length(low, low_slope, high, high_slope)
        n_steps += 1
        n_idle = 0 if worst < 0.5 * least else n_idle + 1
        least = min(least, worst)
    residual = max(worst, _parent_residual(family, h))
    return (SOLVED if residual <= 10.0 * tolerance else STALLED), n_steps, residual
