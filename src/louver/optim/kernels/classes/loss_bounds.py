"""A lower bound on the loss per record of any class around a point, from the point's nearest neighbours and their sensitive values."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.diversity import (
    DISTANCE,
    EQUAL,
    FARTHEST,
    LEAST_DISTINCT,
    LEAST_ENTROPY,
    LEVELS,
    N_LIMITS,
    ORDERED,
    START,
    STOP,
    TABLES,
    n_sensitive_values,
)
from louver.optim.kernels.classes.loss import add_inplace, clear_inplace, n_words, spread_with
from louver.optim.kernels.classes.record_tree import NUMBER_BITS, NUMBER_MASK

__all__ = ["diverse_reach", "least_losses"]

FAR = np.int64(2**62)
NO_KEY = np.int64(2**63 - 1)
SLACK = 1e-9


@kernel
def insert_inplace(values, weights, n, value, weight):
    """Put a value into an ascending list of n; the greatest falls out of a full list. Returns the new length."""
    if n == values.shape[0]:
        if value >= values[n - 1]:
            return n
        n -= 1
    at = n
    while at > 0 and values[at - 1] > value:
        values[at], weights[at] = values[at - 1], weights[at - 1]
        at -= 1
    values[at], weights[at] = value, weight
    return n + 1


@kernel
def reached_at(values, weights, n, needed):
    """The least of the ascending values up to which the weights add up to `needed`; FAR if they do not."""
    for t in range(n):
        needed -= weights[t]
        if needed <= 0:
            return values[t]
    return FAR


@kernel
def least_losses(geometry, codes, multiplicity, keys, reach, first, k, with_triples):
    """A lower bound on the loss per record of every class of k records or more that holds a point.

    Parameters
    ----------
    geometry : int64
    codes : int32 (p, m)
    multiplicity : int64 (p,)
        Records of each point.
    keys : int64 (h, l)
        Neighbours of points `first` to `first` + h - 1, as `nearest` returns them.
    reach : int64 (h,)
        Points that are not listed are at least this far away.
    first, k : int
    with_triples : bool
        Whether to look at triples; at pairs only if not.

    Returns
    -------
    int64 (h,)

    Notes
    -----
    A class S around point i holds `needed` = k - (records of i) further ones. Each point c of S gives a bound on the loss of a class that
    holds i, c and enough others: the value up to which the triples (i, c, d), in ascending order of loss, supply the records still needed.
    As S holds them all and loses no less than any triple, none of these bounds exceeds the loss of S. Together the points of S have
    `needed` records, so the loss of S is at least the value up to which the bounds, in ascending order, supply that many. Without triples,
    the bound of c is its distance from i. A class that holds an unlisted point loses at least the reach.

    **Cost**: O(h l (l m + needed)), without triples O(h l needed).
    """
    n_near, m = keys.shape[1], codes.shape[1]
    lower, upper = np.empty(m, np.int32), np.empty(m, np.int32)
    words = np.empty(n_words(geometry, m), np.uint64)
    least = np.zeros(keys.shape[0], np.int64)
    room = max(1, min(k, n_near))
    answers, answer_weights = np.empty(room, np.int64), np.empty(room, np.int64)
    triples, triple_weights = np.empty(room, np.int64), np.empty(room, np.int64)
    for h in range(keys.shape[0]):
        needed = k - multiplicity[first + h]
        if needed <= 0:
            continue
        n_answers = 0
        for a in range(n_near):
            c = keys[h, a] & NUMBER_MASK
            answer = keys[h, a] >> NUMBER_BITS
            if n_answers == room and answer >= answers[room - 1]:
                break
            if with_triples and multiplicity[c] < needed:
                clear_inplace(lower, upper, words)
                add_inplace(geometry, lower, upper, words, codes[first + h])
                add_inplace(geometry, lower, upper, words, codes[c])
                n_triples = 0
                for b in range(n_near):
                    d = keys[h, b] & NUMBER_MASK
                    if b != a and (n_triples < room or keys[h, b] >> NUMBER_BITS < triples[room - 1]):
                        loss = spread_with(geometry, lower, upper, words, codes[d])
                        n_triples = insert_inplace(triples, triple_weights, n_triples, loss, multiplicity[d])
                answer = reached_at(triples, triple_weights, n_triples, needed - multiplicity[c])
            n_answers = insert_inplace(answers, answer_weights, n_answers, answer, multiplicity[c])
        least[h] = reached_at(answers, answer_weights, n_answers, needed)
        if n_near < codes.shape[0] - 1 or reach[h] < keys[h, n_near - 1] >> NUMBER_BITS:
            least[h] = min(least[h], reach[h])
    return least


@kernel
def diverse_reach(limits, sensitive, start, keys, reach, first, least_size, is_table_whole):
    """A lower bound on the loss per record of every class that holds a point and is diverse.

    Parameters
    ----------
    limits : float64
    sensitive : int32 (n, s)
        Of all records, by point.
    start : int64 (p + 1,)
        Where the records of each point start.
    keys, reach, first
        As in `least_losses`.
    least_size : int
        Minimum number of records of a diverse class.
    is_table_whole : bool
        Whether closeness is measured against the table in `limits` and every record has a value; if not, closeness is ignored.

    Returns
    -------
    int64 (h,)

    Notes
    -----
    The records of a class that loses less than d are among those nearer than d. As long as no class of these can be diverse
    (`may_hold_class`), the class must reach further.

    **Cost**: O(l (records of a point + values)) for l neighbours, without "values" where only distinct values are required.
    """
    n_near = keys.shape[1]
    found = np.zeros(keys.shape[0], np.int64)
    counts = np.zeros(n_sensitive_values(limits), np.int64)
    n_distinct = np.zeros(sensitive.shape[1], np.int64)
    for h in range(keys.shape[0]):
        add_point_inplace(limits, sensitive, start, first + h, 1, counts, n_distinct)
        n_added, is_used_up = 0, False
        while not may_hold_class(limits, counts, n_distinct, least_size, is_table_whole):
            if n_added == n_near or keys[h, n_added] == NO_KEY:
                is_used_up = True
                break
            add_point_inplace(limits, sensitive, start, keys[h, n_added] & NUMBER_MASK, 1, counts, n_distinct)
            found[h] = keys[h, n_added] >> NUMBER_BITS
            n_added += 1
        if n_near < start.shape[0] - 2:
            found[h] = max(found[h], reach[h]) if is_used_up else min(found[h], reach[h])
        add_point_inplace(limits, sensitive, start, first + h, -1, counts, n_distinct)
        for a in range(n_added):
            add_point_inplace(limits, sensitive, start, keys[h, a] & NUMBER_MASK, -1, counts, n_distinct)
    return found


@kernel
def add_point_inplace(limits, sensitive, start, point, step, counts, n_distinct):
    """Add the records of a point to the counts of values, or take them away."""
    for i in range(start[point], start[point + 1]):
        for s in range(sensitive.shape[1]):
            if sensitive[i, s] < 0:
                continue
            at = np.int64(limits[s * N_LIMITS + START]) + sensitive[i, s]
            counts[at] += step
            if step > 0 and counts[at] == 1:
                n_distinct[s] += 1
            elif step < 0 and counts[at] == 0:
                n_distinct[s] -= 1


@kernel
def may_hold_class(limits, counts, n_distinct, least_size, is_table_whole):
    """False where no class of these records is diverse: too few values, or too far from the table whichever records are taken.

    In a class of n >= `least_size` records the share of a value is at most counts / n, and so at most counts / least_size.
    """
    for s in range(np.int64(limits[0])):
        field = s * N_LIMITS
        if n_distinct[s] < limits[field + LEAST_DISTINCT]:
            return False
        if (
            limits[field + LEAST_ENTROPY] > 0
            and n_distinct[s] < np.exp(limits[field + LEAST_ENTROPY]) - SLACK
        ):
            return False
        farthest = limits[field + FARTHEST]
        if (
            farthest >= 0
            and is_table_whole
            and least_distance(limits, s, counts, least_size) > farthest + SLACK
        ):
            return False
    return True


@kernel
def least_distance(limits, s, counts, least_size):
    """A lower bound on the distance from the whole table, in column s, of classes of `least_size` records or more within these counts."""
    field = s * N_LIMITS
    first, last = np.int64(limits[field + START]), np.int64(limits[field + STOP])
    table, kind, n_values = np.int64(limits[field + TABLES]), limits[field + DISTANCE], last - first
    if kind == ORDERED:
        size = np.int64(0)
        for v in range(n_values):
            size += counts[first + v]
        total, below, share = 0.0, 0.0, 0.0
        for v in range(n_values - 1):
            below += counts[first + v]
            share += limits[table + v]
            total += max(0.0, max(share - below / least_size, 1 - share - (size - below) / least_size))
        return total / max(np.int64(1), n_values - 1)
    total = 1.0
    for v in range(n_values):
        total -= min(limits[table + v], counts[first + v] / least_size)
    if kind == EQUAL:
        return total
    levels = np.int64(limits[field + LEVELS])
    inside, shares = np.empty(n_values), np.empty(n_values)
    for h in range(levels - 1):
        inside[:], shares[:] = 0.0, 0.0
        nodes = table + (h + 1) * n_values
        for v in range(n_values):
            node = np.int64(limits[nodes + v])
            inside[node] += counts[first + v] / least_size
            shares[node] += limits[table + v]
        total += 1.0
        for v in range(n_values):
            total -= min(shares[v], inside[v])
    return total / levels
