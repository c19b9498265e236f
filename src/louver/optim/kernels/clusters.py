"""Classes priced against a value per record: the columns of the set-partitioning problem, and their exact cover.

Every record i has a price; the reduced cost of a class is its loss less the prices of its records. Prices under which
no class has a negative reduced cost prove that every partition loses at least their sum, and that a partition which
loses at most `budget` more consists of classes with reduced costs of at most `budget` in all.

The *head* of a class is its first record. Everything is in whole units, so the proofs are exact.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.diversity import count_inplace, n_sensitive_values
from louver.optim.kernels.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.repair import may_publish

__all__ = ["cover", "fit_prices_inplace", "list_classes"]

NO_COST = np.int64(2**62)
STOPPED = -1
"""Status: the limit on work was reached before the answer was complete."""


@kernel
def optimistic(size, width, value, prices, first, n_candidates, least_size, most_size):
    """A lower bound on the reduced cost of all classes that contain `size` records and some of the candidates.

    `width` is the loss per record that is certain, `value` the sum of the prices so far, `prices[first:]` the
    candidates' prices, descending: each further record costs at least `width` less its price.
    """
    total = size * width - value
    taken = 0
    for c in range(first, n_candidates):
        if size + taken >= most_size or (size + taken >= least_size and prices[c] <= width):
            break
        total += width - prices[c]
        taken += 1
    return total if size + taken >= least_size else NO_COST


@kernel
def list_classes(
    geometry,
    requirements,
    codes,
    prices,
    limits,
    is_minimising,
    least_size,
    most_size,
    max_nodes,
    out,
    out_cost,
):
    """List classes whose reduced cost is at most the limit of their head.

    Parameters
    ----------
    prices : int64 (n,)
    limits : int64 (n,)
        Per head; with `is_minimising` lowered below each class found, so that only ever better ones are listed.
    max_nodes : int
        Limit on the nodes of the search.
    out : int32 (capacity, most_size + 1)
        Number of records, then the records, of each class.
    out_cost : int64 (capacity,)
        Their losses.

    Returns
    -------
    Number of classes, or STOPPED when `max_nodes` or the capacity did not suffice, and the nodes visited.
    """
    n, m = codes.shape
    depth_size = min(most_size, n) + 1
    lower = np.empty((depth_size, m), np.int32)
    upper = np.empty((depth_size, m), np.int32)
    words = np.empty((depth_size, n_words(geometry, m)), np.uint64)
    counts = np.zeros((depth_size, n_sensitive_values(requirements.limits)), np.int64)
    candidate = np.empty((depth_size, n), np.int64)
    price = np.empty((depth_size, n), np.int64)
    width = np.empty((depth_size, n), np.int64)
    n_candidates = np.zeros(depth_size, np.int64)
    at = np.zeros(depth_size, np.int64)
    value = np.zeros(depth_size, np.int64)
    spreads = np.zeros(depth_size, np.int64)
    chosen = np.empty(depth_size, np.int64)
    by_price = np.argsort(-prices, kind="mergesort")
    n_found, n_nodes = 0, 0
    for head in range(n):
        chosen[0], value[0], spreads[0] = head, prices[head], 0
        clear_inplace(lower[0], upper[0], words[0])
        add_inplace(geometry, lower[0], upper[0], words[0], codes[head])
        counts[0] = 0
        count_inplace(requirements.limits, counts[0], requirements.sensitive[head], 1)
        total = 0
        for i in by_price:
            if i > head:
                candidate[0, total], price[0, total] = i, prices[i]
                total += 1
        n_candidates[0] = filter_inplace(
            geometry,
            codes,
            lower[0],
            upper[0],
            words[0],
            1,
            value[0],
            candidate[0],
            price[0],
            width[0],
            total,
            limits[head],
            least_size,
            most_size,
        )
        at[0] = 0
        depth = 0
        is_new = True
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
            c = at[depth]
            if c >= n_candidates[depth] or depth + 1 >= most_size or n_nodes > max_nodes:
                if n_nodes > max_nodes:
                    return STOPPED, n_nodes
                depth -= 1
                is_new = False
                continue
            at[depth] = c + 1
            bound = optimistic(
                depth + 2,
                width[depth, c],
                value[depth] + price[depth, c],
                price[depth],
                c + 1,
                n_candidates[depth],
                least_size,
                most_size,
            )
            if bound > limits[head]:
                is_new = False
                continue
            i = candidate[depth, c]
            below = depth + 1
            chosen[below] = i
            value[below] = value[depth] + price[depth, c]
            spreads[below] = width[depth, c]
            lower[below], upper[below], words[below] = lower[depth], upper[depth], words[depth]
            add_inplace(geometry, lower[below], upper[below], words[below], codes[i])
            counts[below] = counts[depth]
            count_inplace(requirements.limits, counts[below], requirements.sensitive[i], 1)
            total = 0
            for d in range(c + 1, n_candidates[depth]):
                candidate[below, total], price[below, total] = candidate[depth, d], price[depth, d]
                total += 1
            n_candidates[below] = filter_inplace(
                geometry,
                codes,
                lower[below],
                upper[below],
                words[below],
                below + 1,
                value[below],
                candidate[below],
                price[below],
                width[below],
                total,
                limits[head],
                least_size,
                most_size,
            )
            at[below] = 0
            depth = below
            is_new = True
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
    width,
    total,
    limit,
    least_size,
    most_size,
):
    """Keep the candidates that may be part of a class within the limit, with the loss per record they lead to."""
    kept = 0
    for c in range(total):
        certain = spread_with(geometry, lower, upper, words, codes[candidate[c]])
        # While candidates move up, `price` stays descending and holds every price that is left at least once.
        bound = optimistic(size + 1, certain, value + price[c], price, 0, total, least_size, most_size)
        if bound <= limit:
            candidate[kept], price[kept], width[kept] = candidate[c], price[c], certain
            kept += 1
    return kept


@kernel
def fit_prices_inplace(classes, costs, prices, fee, full, max_suppressed, upper_bound, n_rounds):
    """Raise the lower bound that the listed classes allow by subgradient steps.

    Parameters
    ----------
    classes : int32 (c, most_size + 1)
    costs : int64 (c,)
    prices : float64 (n,)
        Start and best answer.
    fee : float64 (1,)
        Price of leaving one record out, beside its full loss; start and best answer.
    upper_bound : float
        Loss of a known partition, which sets the length of the steps.

    Returns
    -------
    The bound; it holds for partitions into the listed classes only.

    Notes
    -----
    At given prices, each head takes its cheapest class if that has a negative reduced cost, and each record is left
    out if that does. The subgradient is 1 less how often a record is covered.
    """
    n = prices.shape[0]
    trial, trial_fee = prices.copy(), fee[0]
    best = -np.inf
    lowest = np.empty(n)
    choice = np.empty(n, np.int64)
    slope = np.empty(n)
    length, n_idle = 1.0, 0
    for _ in range(n_rounds):
        lowest[:] = 0.0
        choice[:] = -1
        for c in range(classes.shape[0]):
            reduced = np.float64(costs[c])
            for t in range(1, classes[c, 0] + 1):
                reduced -= trial[classes[c, t]]
            if reduced < lowest[classes[c, 1]]:
                lowest[classes[c, 1]], choice[classes[c, 1]] = reduced, c
        slope[:] = 1.0
        bound = trial.sum() + lowest.sum() - trial_fee * max_suppressed
        for i in range(n):
            if choice[i] >= 0:
                for t in range(1, classes[choice[i], 0] + 1):
                    slope[classes[choice[i], t]] -= 1.0
        fee_slope = -np.float64(max_suppressed)
        if max_suppressed > 0:
            for i in range(n):
                if full + trial_fee < trial[i]:
                    bound += full + trial_fee - trial[i]
                    slope[i] -= 1.0
                    fee_slope += 1.0
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
def look_up(table, table_cost, table_used, mask, cost, used):
    """Whether this set of covered records was reached before at no higher cost; otherwise remember it."""
    n_slots, n_mask = table.shape
    key = np.uint64(0x9E3779B97F4A7C15)
    for w in range(n_mask):
        key = (key ^ mask[w]) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    slot = np.int64(key & np.uint64(n_slots - 1))
    for _ in range(16):
        if table_cost[slot] < 0:
            table[slot] = mask
            table_cost[slot], table_used[slot] = cost, used
            return False
        is_same = True
        for w in range(n_mask):
            if table[slot, w] != mask[w]:
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
def cover(masks, reduced, start, leave_out, fee, max_suppressed, budget, max_nodes, n_slots, chosen):
    """Cover every record exactly once with classes, or leave it out, within a budget of reduced costs.

    Parameters
    ----------
    masks : uint64 (c, words)
        Records of each class, classes by head and then by reduced cost.
    reduced : int64 (c,)
        Reduced costs, none negative.
    start : int64 (n + 1,)
        Where the classes of each head start.
    leave_out : int64 (n,)
        Reduced cost of leaving a record out.
    fee : int
        Cost of each record that could be left out and is not.
    n_slots : int
        Size of the memory of sets reached before, a power of two.
    chosen : int64 (n,)
        Out: for each head of the best cover its class, -1 where it is left out, -2 for other records.

    Returns
    -------
    The least cost of a cover, NO_COST if there is none within the budget, or STOPPED with `max_nodes` reached; and
    the nodes visited.
    """
    n = start.shape[0] - 1
    n_mask = masks.shape[1]
    table = np.zeros((n_slots, n_mask), np.uint64)
    table_cost = np.full(n_slots, -1, np.int64)
    table_used = np.zeros(n_slots, np.int64)
    covered = np.zeros((n + 1, n_mask), np.uint64)
    head, option, pick = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    cost, used = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    best = NO_COST
    n_nodes = 0
    depth = 0
    option[0] = start[0]
    # Invariant: at each depth `head` is the first record not covered, and the options before `option` were tried;
    # the last option of a head, numbered start[head + 1], is to leave it out.
    while depth >= 0:
        i, c = head[depth], option[depth]
        option[depth] = c + 1
        limit = min(budget, best - 1) - cost[depth]
        if c > start[i + 1] or n_nodes > max_nodes:
            if n_nodes > max_nodes:
                return STOPPED, n_nodes
            depth -= 1
            continue
        below = depth + 1
        if c == start[i + 1]:
            if used[depth] >= max_suppressed or leave_out[i] > limit:
                continue
            covered[below] = covered[depth]
            covered[below, i // 64] |= np.uint64(1) << np.uint64(i % 64)
            cost[below], used[below], pick[depth] = cost[depth] + leave_out[i], used[depth] + 1, -1
        else:
            if reduced[c] > limit:
                option[depth] = start[i + 1]
                continue
            is_free = True
            for w in range(n_mask):
                if covered[depth, w] & masks[c, w]:
                    is_free = False
                    break
            if not is_free:
                continue
            for w in range(n_mask):
                covered[below, w] = covered[depth, w] | masks[c, w]
            cost[below], used[below], pick[depth] = cost[depth] + reduced[c], used[depth], c
        n_nodes += 1
        following = i + 1
        while following < n and (covered[below, following // 64] >> np.uint64(following % 64)) & np.uint64(1):
            following += 1
        if following == n:
            total = cost[below] + fee * (max_suppressed - used[below])
            if total < best and total <= budget:
                best = total
                chosen[:] = -2
                for d in range(below):
                    chosen[head[d]] = pick[d]
            continue
        if look_up(table, table_cost, table_used, covered[below], cost[below], used[below]):
            continue
        head[below], option[below] = following, start[following]
        depth = below
    return best, n_nodes
