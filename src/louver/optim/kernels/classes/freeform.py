"""Matching records to records, one round after another, for freeform generalisation.

Every function returns early once `stop` is set; its output is then meaningless.
"""

from __future__ import annotations

import heapq

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import spread_with

__all__ = ["FORBIDDEN", "assignment", "complete_inplace", "greedy_round", "round_costs", "sort_greedy_round"]

FORBIDDEN = np.int32(2**31 - 1)
"""Cost of a match that was made in an earlier round."""


@kernel
def round_costs(geometry, codes, lower, upper, words, matches, n_rounds, costs, stop):
    """Loss of each record's region once stretched to each other record; FORBIDDEN where a match already covers that record."""
    n = codes.shape[0]
    for i in range(n):
        if stop[0] != 0:
            return
        for j in range(n):
            costs[i, j] = spread_with(geometry, lower[i], upper[i], words[i], codes[j])
        for r in range(n_rounds):
            costs[i, matches[i, r]] = FORBIDDEN


@kernel
def greedy_round(costs, match, stop):
    """Each record in turn takes its cheapest free partner; -1 where there is none."""
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    for i in range(n):
        if stop[0] != 0:
            return
        best = -1
        for j in range(n):
            if not is_taken[j] and costs[i, j] < FORBIDDEN and (best < 0 or costs[i, j] < costs[i, best]):
                best = j
        match[i] = best
        if best >= 0:
            is_taken[best] = True


@kernel
def sort_greedy_round(costs, match, stop):
    """Cheapest pairs first, ties broken by row order; -1 for a record left unmatched.

    A heap holds the cheapest free partner of every record. Partners are only ever taken, so a key whose partner is
    gone bounds the record's next one from below, and is replaced when it comes up.
    """
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    match[:] = -1
    heap = [(np.int64(0), np.int64(0), np.int64(0)) for _ in range(0)]
    for i in range(n):
        if stop[0] != 0:
            return
        j = cheapest_free(costs[i], is_taken)
        if j >= 0:
            heapq.heappush(heap, (np.int64(costs[i, j]), np.int64(i), np.int64(j)))
    while len(heap) > 0 and stop[0] == 0:
        _, record, partner = heapq.heappop(heap)
        if not is_taken[partner]:
            match[record] = partner
            is_taken[partner] = True
            continue
        j = cheapest_free(costs[record], is_taken)
        if j >= 0:
            heapq.heappush(heap, (np.int64(costs[record, j]), record, np.int64(j)))


@kernel
def cheapest_free(costs, is_taken):
    """The cheapest of a record's partners that is free, ties going to the first; -1 if there is none."""
    best = -1
    for j in range(costs.shape[0]):
        if not is_taken[j] and costs[j] < FORBIDDEN and (best < 0 or costs[j] < costs[best]):
            best = j
    return best


@kernel
def assignment(costs, stop):
    """The match of each record that minimises the sum of the costs; a forbidden pair costs more than all others together.

    Shortest augmenting paths after Jonker & Volgenant (1987), in the form and with the ties of Crouse (2016).
    """
    n = costs.shape[0]
    forbidden = np.float64(FORBIDDEN) * n
    row_price, column_price = np.zeros(n), np.zeros(n)
    path, row_of = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    match = np.full(n, -1, np.int64)
    shortest, left = np.empty(n), np.empty(n, np.int64)
    in_rows, in_columns = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for start in range(n):
        for t in range(n):
            left[t] = n - t - 1
        n_left, i, sink, least = n, start, -1, 0.0
        in_rows[:], in_columns[:], shortest[:] = False, False, np.inf
        while sink < 0:
            if stop[0] != 0:
                return match
            in_rows[i] = True
            index, lowest = -1, np.inf
            for t in range(n_left):
                j = left[t]
                cost = np.float64(costs[i, j]) if costs[i, j] < FORBIDDEN else forbidden
                distance = least + cost - row_price[i] - column_price[j]
                if distance < shortest[j]:
                    path[j], shortest[j] = i, distance
                if shortest[j] < lowest or (shortest[j] == lowest and row_of[j] < 0):
                    lowest, index = shortest[j], t
            least = lowest
            j = left[index]
            if row_of[j] < 0:
                sink = j
            else:
                i = row_of[j]
            in_columns[j] = True
            n_left -= 1
            left[index] = left[n_left]
        row_price[start] += least
        for i in range(n):
            if in_rows[i] and i != start:
                row_price[i] += least - shortest[match[i]]
        for j in range(n):
            if in_columns[j]:
                column_price[j] -= least - shortest[j]
        j = sink
        while True:
            i = path[j]
            row_of[j] = i
            j, match[i] = match[i], j
            if i == start:
                break
    return match


@kernel
def complete_inplace(costs, match, stop):
    """Match each unmatched record by an exchange with another record; returns how many remain unmatched."""
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    for i in range(n):
        if match[i] >= 0:
            is_taken[match[i]] = True
    n_open = 0
    for i in range(n):
        if match[i] >= 0 or stop[0] != 0:
            continue
        best, best_free, best_cost = -1, -1, np.int64(2**62)
        for free in range(n):
            if is_taken[free]:
                continue
            for other in range(n):
                j = match[other]
                if j < 0 or costs[i, j] == FORBIDDEN or costs[other, free] == FORBIDDEN:
                    continue
                cost = np.int64(costs[i, j]) + costs[other, free] - costs[other, j]
                if cost < best_cost:
                    best, best_free, best_cost = other, free, cost
        if best < 0:
            n_open += 1
            continue
        match[i] = match[best]
        match[best] = best_free
        is_taken[best_free] = True
    return n_open
