"""Which remainders can be formed from row sums: Apéry sets, and one such set with each row left out.

The sums that rows with reduced row sums v can form are a numerical semigroup. Modulo one of its generators m
it is described by its Apéry set: `apery[c]` is the least reachable number congruent to c, so that x is
reachable exactly when x >= apery[x % m]. Nothing here depends on the sample size.

A row with an upper bound adds only finitely many multiples. As long as m itself is unbounded the set is
still closed under adding m, and the same description holds.

The trusted input: values >= 1, `limits` -1 for "no upper bound", headroom m * max(values) < 2**61.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.semigroups.leave_one_out import copy_inplace, leave_one_out_plan, plan_depth
from louver.optim.kernels.semigroups.progressions import append_runs, gcd, grown, put_run_inplace

__all__ = [
    "UNREACHABLE",
    "add_bounded_inplace",
    "add_unbounded_inplace",
    "append_apery_runs",
    "leave_one_out_apery",
]

UNREACHABLE = np.int64(2**62)


@kernel
def add_unbounded_inplace(apery, value):
    """Add a generator: the round-robin algorithm, one turn per residue cycle from its least entry."""
    m = apery.shape[0]
    step = value % m
    if step == 0:
        return
    n_cycles = gcd(m, step)
    length = m // n_cycles
    for first in range(n_cycles):
        best = first
        position = first
        for _ in range(length):
            if apery[position] < apery[best]:
                best = position
            position += step
            if position >= m:
                position -= m
        current = apery[best]
        if current == UNREACHABLE:
            continue
        position = best
        for _ in range(length - 1):
            position += step
            if position >= m:
                position -= m
            current += value
            if apery[position] < current:
                current = apery[position]
            else:
                apery[position] = current


@kernel
def add_bounded_inplace(apery, value, limit, work, queue):
    """Add 0 to `limit` copies of `value`: a sliding-window minimum around each residue cycle.

    `work` (length 2m) holds the cycle unrolled twice, minus what the walk itself has added; `queue` (length
    2m) the positions of the rising minima inside the window.
    """
    m = apery.shape[0]
    step = value % m
    if limit == 0 or step == 0:
        return
    n_cycles = gcd(m, step)
    length = m // n_cycles
    if limit >= length - 1:
        add_unbounded_inplace(apery, value)
        return
    for first in range(n_cycles):
        position = first
        for t in range(length):
            work[t] = apery[position]
            work[t + length] = apery[position]
            position += step
            if position >= m:
                position -= m
        head = 0
        tail = 0
        position = first
        # Invariant: queue[head:tail] are positions in [t - limit, t] with rising work[s] - s * value.
        for t in range(2 * length):
            if work[t] != UNREACHABLE:
                key = work[t] - t * value
                while tail > head and work[queue[tail - 1]] - queue[tail - 1] * value >= key:
                    tail -= 1
                queue[tail] = t
                tail += 1
            while head < tail and queue[head] < t - limit:
                head += 1
            if t >= length:
                if head < tail:
                    apery[position] = work[queue[head]] + (t - queue[head]) * value
                else:
                    apery[position] = UNREACHABLE
                position += step
                if position >= m:
                    position -= m


@kernel
def _regular_part(apery):
    """(conductor, gcd) when every large multiple of the gcd is reachable, else (-1, 0)."""
    m = apery.shape[0]
    largest = np.int64(0)
    n_reachable = 0
    divisor = m
    for c in range(m):
        if apery[c] != UNREACHABLE:
            n_reachable += 1
            divisor = gcd(divisor, c)
            largest = max(largest, apery[c])
    if n_reachable * divisor != m:
        return np.int64(-1), np.int64(0)
    return max(np.int64(0), largest - m + 1), np.int64(divisor)


@kernel
def append_apery_runs(runs, span, item, apery, target, value, limit):
    """`append_runs` of all nu in [0, limit] with target - nu * value reachable; limit -1 for none.

    Above the conductor the feasible nu are one arithmetic progression and are not visited.
    """
    m = apery.shape[0]
    top = target // value
    if limit >= 0:
        top = min(top, limit)
    first, count = np.int64(0), np.int64(0)
    stride, nu = np.int64(1), np.int64(0)
    conductor, divisor = _regular_part(apery)
    if conductor >= 0:
        if divisor > 1:
            stride = divisor // gcd(divisor, value)
            while nu < stride and (target - nu * value) % divisor != 0:
                nu += 1
            if nu == stride:
                top = np.int64(-1)
        bulk_top = min(top, (target - conductor) // value)
        if bulk_top >= nu:
            first = nu
            count = (bulk_top - nu) // stride + 1
            nu = first + count * stride
    found = np.empty((64, 1), dtype=np.int64)
    n_found = np.int64(0)
    while nu <= top:
        remainder = target - nu * value
        if remainder >= apery[remainder % m]:
            found = grown(found, n_found, n_found + 1)
            found[n_found, 0] = nu
            n_found += 1
        nu += stride
    return append_runs(runs, span, item, found[:n_found, 0], first, stride, count)


@kernel
def _add_inplace(apery, value, limit, n_copies, work, queue):
    if limit < 0:
        add_unbounded_inplace(apery, value)
    else:
        add_bounded_inplace(apery, value, limit * n_copies, work, queue)


@kernel
def _everything_but(values, limits, copies, skip, modulus, work, queue):
    """The sums of the items not skipped, modulo an unbounded value among them; unbounded items come first."""
    apery = np.full(modulus, UNREACHABLE, dtype=np.int64)
    apery[0] = 0
    for item in range(values.shape[0]):
        if skip[item] or (limits[item] < 0 and apery[values[item] % modulus] <= values[item]):
            continue
        _add_inplace(apery, values[item], limits[item], copies[item], work, queue)
    return apery


@kernel
def _needs_own_set(values, limits, copies):
    """Items whose removal changes the set.

    Removing one of several unbounded copies, or a value that smaller unbounded values generate, changes
    nothing, whatever else there is.
    """
    generated = np.full(values[0], UNREACHABLE, dtype=np.int64)
    generated[0] = 0
    needs = np.zeros(values.shape[0], dtype=np.bool_)
    for item in range(values.shape[0]):
        is_new = item == 0 or generated[values[item] % values[0]] > values[item]
        needs[item] = is_new and (limits[item] >= 0 or copies[item] == 1)
        if limits[item] < 0 and is_new:
            add_unbounded_inplace(generated, values[item])
    return needs


@kernel
def leave_one_out_apery(values, limits, copies, wanted, target):
    """For each wanted item, the feasible multiples of one copy of it, given all other items.

    Parameters
    ----------
    values, limits, copies : int64 (q,)
        Distinct (value, limit) items, unbounded ones (limit -1) first and ascending; how many rows share
        each. At least one item is unbounded.
    wanted : bool (q,)
    target : int64
        The sum that all rows together must reach.

    Returns
    -------
    runs : int64 (n, 3)
    span : int64 (q, 2)
        The runs of item i are `runs[span[i, 0]:span[i, 1]]`; none if unwanted or infeasible.
    alone : bool
        Item 0 is wanted and all others are bounded: it has no modulus and must be handled with bits.

    Notes
    -----
    Cost: O(q log q) additions of O(values[0]) each, whatever the target.
    """
    n_items = values.shape[0]
    has_second = n_items > 1 and limits[1] < 0
    room = 2 * (values[1] if has_second else values[0])
    work = np.empty(room, dtype=np.int64)
    queue = np.empty(room, dtype=np.int64)
    runs = np.empty((64, 3), dtype=np.int64)
    span = np.zeros((n_items + 1, 2), dtype=np.int64)

    needs_own = _needs_own_set(values, limits, copies)
    skip = needs_own & wanted
    skip[0] = False
    own = np.nonzero(skip)[0]
    plan = leave_one_out_plan(own.shape[0])
    level = np.empty((plan_depth(plan), values[0]), dtype=np.int64)
    copy_inplace(level[0], _everything_but(values, limits, copies, skip, values[0], work, queue))
    for s in range(plan.shape[0]):
        depth = plan[s, 0]
        if depth > 0:
            copy_inplace(level[depth], level[depth - 1])
        for i in range(plan[s, 1], plan[s, 2]):
            _add_inplace(level[depth], values[own[i]], limits[own[i]], copies[own[i]], work, queue)
        if plan[s, 3] >= 0:
            item = own[plan[s, 3]]
            if copies[item] > 1:
                _add_inplace(level[depth], values[item], limits[item], copies[item] - 1, work, queue)
            runs = append_apery_runs(runs, span, item, level[depth], target, values[item], limits[item])

    nothing = np.zeros(n_items, dtype=np.bool_)
    whole = _everything_but(values, limits, copies, nothing, values[0], work, queue)
    conductor, divisor = _regular_part(whole)
    runs = grown(runs, span[-1, 1], span[-1, 1] + n_items)
    is_modulus_unique = copies[0] == 1
    for item in range(n_items):
        if not wanted[item] or (needs_own[item] and item > 0) or (item == 0 and is_modulus_unique):
            continue
        top = target // values[item]
        if limits[item] >= 0:
            top = min(top, limits[item])
        if divisor == 1 and target - top * values[item] >= conductor and span[-1, 1] < runs.shape[0]:
            put_run_inplace(runs, span, item, np.int64(0), top, np.int64(1))
        else:
            runs = append_apery_runs(runs, span, item, whole, target, values[item], limits[item])

    if wanted[0] and is_modulus_unique and has_second:
        nothing[0] = True
        rest = _everything_but(values, limits, copies, nothing, values[1], work, queue)
        runs = append_apery_runs(runs, span, np.int64(0), rest, target, values[0], limits[0])
    return runs[: span[-1, 1]], span[:-1], wanted[0] and is_modulus_unique and not has_second
