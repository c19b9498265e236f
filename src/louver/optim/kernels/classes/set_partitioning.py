"""Classes priced against a value per record: the columns of the set-partitioning problem, and their exact cover.

Records that are equal in everything that matters are one *point* with a multiplicity, so that choices which differ only in equal records
are examined once. A class is a list of points, each as often as it takes records of it, in ascending order; its *head* is the first.

Every point has a price; the reduced cost of a class is its loss less the prices of its records. Prices under which no
class has a negative reduced cost prove that every partition loses at least the sum of the prices of all records, and
that a partition which loses at most `budget` more consists of classes with reduced costs of at most `budget` in all.
Everything is in whole units, so the proofs are exact.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import count_inplace, n_sensitive_values
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.classes.publishable import may_publish

__all__ = ["NO_COST", "STOPPED", "cover", "fit_prices_inplace", "list_classes"]

NO_COST = np.int64(2**62)
STOPPED = -1
"""Status: the limit on work was reached before the answer was complete."""

PROBES = 16
"""Slots probed in the table of sets that were reached before."""


@kernel
def optimistic(size, width, value, price, spare, first, n_candidates, least_size, most_size):
    """A lower bound on the reduced cost of all classes that contain `size` records and some of the candidates.

    `width` is the loss per record that is certain, `value` the sum of the prices so far; `price[first:]` are the
    candidates' prices, descending, and `spare` how many records each has: a further record costs at least `width`
    less its price.
    """
    total = size * width - value
    for c in range(first, n_candidates):
        if size >= most_size:
            break
        if size < least_size:
            n_forced = min(spare[c], least_size - size)
            n_taken = min(spare[c], most_size - size) if price[c] > width else n_forced
        elif price[c] > width:
            n_taken = min(spare[c], most_size - size)
        else:
            break
        total += n_taken * (width - price[c])
        size += n_taken
    return total if size >= least_size else NO_COST


@kernel
def list_classes(
    geometry,
    requirements,
    codes,
    multiplicity,
    prices,
    limits,
    is_minimising,
    least_size,
    most_size,
    max_nodes,
    out,
    out_cost,
    stop,
):
    """List classes whose reduced cost is at most the limit of their head.

    Parameters
    ----------
    codes : int32 (p, m)
        Points.
    multiplicity, prices : int64 (p,)
    limits : int64 (p,)
        Per head; with `is_minimising`, lowered below the reduced cost of each class found, so that each class listed is better than the
        last.
    max_nodes : int
        Limit on the nodes of the search; `stop` ends it from outside.
    out : int32 (capacity, most_size + 1)
        Number of records, then the points, of each class; the points after the head in no order.
    out_cost : int64 (capacity,)
        Their losses.

    Returns
    -------
    Number of classes, or STOPPED when `max_nodes` or the capacity did not suffice, and the nodes visited.
    """
    p, m = codes.shape
    lower = np.empty((most_size + 1, m), np.int32)
    upper = np.empty((most_size + 1, m), np.int32)
    words = np.empty((most_size + 1, n_words(geometry, m)), np.uint64)
    counts = np.zeros((most_size + 1, n_sensitive_values(requirements.limits)), np.int64)
    candidate, spare = np.empty((most_size + 1, p), np.int64), np.empty((most_size + 1, p), np.int64)
    price, width = np.empty((most_size + 1, p), np.int64), np.empty((most_size + 1, p), np.int64)
    n_candidates, at = np.zeros(most_size + 1, np.int64), np.zeros(most_size + 1, np.int64)
    value, spreads = np.zeros(most_size + 1, np.int64), np.zeros(most_size + 1, np.int64)
    chosen = np.empty(most_size + 1, np.int64)
    by_price = np.argsort(-prices, kind="mergesort")
    n_found, n_nodes = 0, 0
    for head in range(p):
        # Depth d of the search holds a class of d + 1 records; depth 0 the head alone.
        chosen[0], value[0], spreads[0] = head, prices[head], 0
        clear_inplace(lower[0], upper[0], words[0])
        add_inplace(geometry, lower[0], upper[0], words[0], codes[head])
        counts[0] = 0
        count_inplace(requirements.limits, counts[0], requirements.sensitive[head], 1)
        total = 0
        for i in by_price:
            n_spare = multiplicity[i] - (1 if i == head else 0)
            if i >= head and n_spare > 0:
                candidate[0, total], price[0, total], spare[0, total] = i, prices[i], n_spare
                total += 1
        n_candidates[0] = filter_inplace(
            geometry, codes, lower[0], upper[0], words[0], 1, value[0], candidate[0], price[0], spare[0], width[0],
            total, limits[head], least_size, most_size,
        )  # fmt: skip
        at[0] = 0
        depth, is_new = 0, True
        while depth >= 0:
            if is_new:
                n_nodes += 1
                size = depth + 1
                reduced = size * spreads[depth] - value[depth]
                if (
                    size >= least_size
                    and reduced <= limits[head]
                    and may_publish(
                        geometry,
                        requirements,
                        lower[depth],
                        upper[depth],
                        words[depth],
                        counts[depth],
                        size,
                        least_size,
                    )
                ):
                    if n_found == out.shape[0]:
                        return STOPPED, n_nodes
                    out[n_found, 0] = size
                    for t in range(size):
                        out[n_found, 1 + t] = chosen[t]
                    out_cost[n_found] = size * spreads[depth]
                    n_found += 1
                    if is_minimising:
                        limits[head] = reduced - 1
                if n_nodes > max_nodes or stop[0] != 0:
                    return STOPPED, max(n_nodes, max_nodes + 1)
                is_new = False
            c = at[depth]
            if c >= n_candidates[depth] or depth + 1 >= most_size:
                depth -= 1
                continue
            at[depth] = c + 1
            # The record itself is counted among the candidates that may follow, which only lowers the bound.
            bound = optimistic(
                depth + 2, width[depth, c], value[depth] + price[depth, c], price[depth], spare[depth], c,
                n_candidates[depth], least_size, most_size,
            )  # fmt: skip
            if bound > limits[head]:
                continue
            below = depth + 1
            chosen[below] = candidate[depth, c]
            value[below] = value[depth] + price[depth, c]
            spreads[below] = width[depth, c]
            lower[below], upper[below], words[below] = lower[depth], upper[depth], words[depth]
            add_inplace(geometry, lower[below], upper[below], words[below], codes[chosen[below]])
            counts[below] = counts[depth]
            count_inplace(requirements.limits, counts[below], requirements.sensitive[chosen[below]], 1)
            total = 0
            for d in range(c, n_candidates[depth]):
                n_spare = spare[depth, d] - (1 if d == c else 0)
                if n_spare > 0:
                    candidate[below, total], price[below, total] = candidate[depth, d], price[depth, d]
                    spare[below, total] = n_spare
                    total += 1
            n_candidates[below] = filter_inplace(
                geometry, codes, lower[below], upper[below], words[below], below + 1, value[below], candidate[below],
                price[below], spare[below], width[below], total, limits[head], least_size, most_size,
            )  # fmt: skip
            at[below] = 0
            depth, is_new = below, True
    return n_found, n_nodes


@kernel
def filter_inplace(
    geometry,
    codes,
    lower,
    upper,
    words,
    size,
    value,
    candidate,
    price,
    spare,
    width,
    total,
    limit,
    least_size,
    most_size,
):
    """Keep the candidates that may be part of a class within the limit, together with the loss per record they lead to."""
    kept = 0
    for c in range(total):
        certain = spread_with(geometry, lower, upper, words, codes[candidate[c]])
        # While candidates move up, `price` stays descending and holds every remaining record at least once.
        bound = optimistic(size + 1, certain, value + price[c], price, spare, 0, total, least_size, most_size)
        if bound <= limit:
            candidate[kept], price[kept], spare[kept], width[kept] = candidate[c], price[c], spare[c], certain
            kept += 1
    return kept


@kernel
def fit_prices_inplace(
    classes, costs, multiplicity, prices, fee, full, max_suppressed, upper_bound, n_rounds, stop
):
    """Raise the lower bound that the listed classes allow by subgradient steps.

    Parameters
    ----------
    classes : int32 (c, most_size + 1)
    costs : int64 (c,)
    multiplicity : int64 (p,)
    prices : float64 (p,)
        Start and best answer.
    fee : float64 (1,)
        Price of leaving one record out, in addition to its full loss; start and best answer.
    upper_bound : float
        Loss of a known partition, which sets the length of the steps.

    Returns
    -------
    The bound; it holds for partitions into the listed classes only.

    Notes
    -----
    At given prices, each head takes its cheapest class, as often as it has records, if that has a negative reduced
    cost, and each record is left out if that does. The subgradient is how many records a point has less how many of
    them are covered.
    """
    p = prices.shape[0]
    trial, trial_fee = prices.copy(), fee[0]
    best = -np.inf
    lowest, slope = np.empty(p), np.empty(p)
    choice = np.empty(p, np.int64)
    length, n_idle = 1.0, 0
    for _ in range(n_rounds):
        if stop[0] != 0:
            break
        lowest[:] = 0.0
        choice[:] = -1
        for c in range(classes.shape[0]):
            reduced = np.float64(costs[c])
            for t in range(1, classes[c, 0] + 1):
                reduced -= trial[classes[c, t]]
            if reduced < lowest[classes[c, 1]]:
                lowest[classes[c, 1]], choice[classes[c, 1]] = reduced, c
        bound = -trial_fee * max_suppressed
        fee_slope = -np.float64(max_suppressed)
        for i in range(p):
            bound += multiplicity[i] * (trial[i] + lowest[i])
            slope[i] = multiplicity[i]
            if max_suppressed > 0 and full + trial_fee < trial[i]:
                bound += multiplicity[i] * (full + trial_fee - trial[i])
                slope[i] -= multiplicity[i]
                fee_slope += multiplicity[i]
        for i in range(p):
            if choice[i] >= 0:
                for t in range(1, classes[choice[i], 0] + 1):
                    slope[classes[choice[i], t]] -= multiplicity[i]
        if bound > best:
            best, n_idle = bound, 0
            prices[:] = trial
            fee[0] = trial_fee
        else:
            n_idle += 1
            if n_idle == 8:
                length, n_idle = length / 2, 0
                trial[:] = prices
                trial_fee = fee[0]
                continue
        steepness = (slope * slope).sum() + fee_slope * fee_slope
        if steepness == 0.0 or upper_bound - bound < 0.5 or length < 1e-3:
            break
        step = length * (upper_bound - bound) / steepness
        trial += step * slope
        if max_suppressed > 0:
            trial_fee = max(0.0, trial_fee + step * fee_slope)
    return best


@kernel
def was_reached(table, table_cost, table_used, left, last, cost, used):
    """Whether the same records remained before, at no higher cost and with no more left out; if not, remember them."""
    n_slots, p = table.shape[0], left.shape[0]
    key = np.uint64(last)
    for i in range(p):
        key = (key ^ np.uint64(left[i])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    slot = np.int64(key & np.uint64(n_slots - 1))
    for _ in range(PROBES):
        if table_cost[slot] < 0:
            table[slot, :p] = left
            table[slot, p] = last
            table_cost[slot], table_used[slot] = cost, used
            return False
        is_same = table[slot, p] == last
        for i in range(p):
            if table[slot, i] != left[i]:
                is_same = False
                break
        if is_same:
            if table_cost[slot] <= cost and table_used[slot] <= used:
                return True
            if table_cost[slot] >= cost and table_used[slot] >= used:
                table_cost[slot], table_used[slot] = cost, used
            return False
        slot = (slot + 1) & (n_slots - 1)
    return False


@kernel
def cover(
    classes,
    reduced,
    start,
    multiplicity,
    leave_out,
    fee,
    max_suppressed,
    budget,
    max_nodes,
    n_slots,
    chosen,
    stop,
):
    """Put every record into exactly one class, or leave it out, within a budget of reduced costs.

    Parameters
    ----------
    classes : int32 (c, most_size + 1)
        By head and then by reduced cost.
    reduced : int64 (c,)
        Reduced costs, none negative.
    start : int64 (p + 1,)
        Where the classes of each head start.
    multiplicity, leave_out : int64 (p,)
        Records of each point, and the reduced cost of leaving one of them out.
    fee : int
        Cost of each record that could be left out and is not.
    n_slots : int
        Size of the table of sets that were reached before, a power of two.
    chosen : int64 (n,)
        Out: the classes of the best cover, then -1.

    Returns
    -------
    The least cost of a cover, NO_COST if none was found within the budget, and the nodes visited: if these are more
    than `max_nodes` the search is not complete.
    """
    p, n = multiplicity.shape[0], chosen.shape[0]
    table = np.zeros((n_slots, p + 1), np.int32)
    table_cost = np.full(n_slots, -1, np.int64)
    table_used = np.zeros(n_slots, np.int64)
    left = multiplicity.astype(np.int32)
    head, option, pick = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.full(n + 1, -1, np.int64)
    cost, used = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    best, n_nodes, depth = NO_COST, 0, 0
    option[0] = start[0]
    # At each depth `head` is the first point with records left, and the options before `option` were tried; the last
    # option of a head, numbered start[head + 1], is to leave one record out. Equal heads take options in ascending
    # order, because the order of their classes does not matter. pick is -1 while nothing is taken at a depth.
    while depth >= 0:
        i, c = head[depth], option[depth]
        if pick[depth] >= 0:
            put_back_inplace(classes, start, left, i, pick[depth])
            pick[depth] = -1
        limit = min(budget, best - 1) - cost[depth]
        if c < start[i + 1] and reduced[c] > limit:
            c = start[i + 1]
        option[depth] = c + 1
        if c > start[i + 1]:
            depth -= 1
            continue
        below = depth + 1
        if c == start[i + 1]:
            if used[depth] >= max_suppressed or leave_out[i] > limit:
                continue
            left[i] -= 1
            cost[below], used[below] = cost[depth] + leave_out[i], used[depth] + 1
        else:
            if not take_inplace(classes, left, c):
                continue
            cost[below], used[below] = cost[depth] + reduced[c], used[depth]
        pick[depth] = c
        n_nodes += 1
        if n_nodes > max_nodes or stop[0] != 0:
            n_nodes = max(n_nodes, max_nodes + 1)
            break
        following = i
        while following < p and left[following] == 0:
            following += 1
        if following == p:
            total = cost[below] + fee * (max_suppressed - used[below])
            if total < best and total <= budget:
                best = total
                keep_inplace(chosen, start, head, pick, below)
            continue
        first = c if following == i else start[following]
        if was_reached(table, table_cost, table_used, left, first, cost[below], used[below]):
            continue
        head[below], option[below], pick[below] = following, first, -1
        depth = below
    return best, n_nodes


@kernel
def take_inplace(classes, left, c):
    """Take the records of class c out of those left, unless one is missing."""
    for t in range(1, classes[c, 0] + 1):
        left[classes[c, t]] -= 1
        if left[classes[c, t]] < 0:
            for back in range(1, t + 1):
                left[classes[c, back]] += 1
            return False
    return True


@kernel
def put_back_inplace(classes, start, left, i, c):
    """Undo the choice of option c for head i."""
    if c == start[i + 1]:
        left[i] += 1
        return
    for t in range(1, classes[c, 0] + 1):
        left[classes[c, t]] += 1


@kernel
def keep_inplace(chosen, start, head, pick, depth):
    """Note the classes picked down to a depth."""
    chosen[:] = -1
    n_chosen = 0
    for d in range(depth):
        if pick[d] < start[head[d] + 1]:
            chosen[n_chosen] = pick[d]
            n_chosen += 1
