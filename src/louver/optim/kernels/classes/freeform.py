"""Matching records to records, one round after another, for freeform generalisation."""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import kernel
from louver.optim.kernels.classes.loss import spread_with

__all__ = ["FORBIDDEN", "complete_inplace", "greedy_round", "round_costs", "sort_greedy_round"]

FORBIDDEN = np.int32(2**31 - 1)
"""Cost of a match that was made in an earlier round."""


@kernel
def round_costs(geometry, codes, lower, upper, words, matches, n_rounds, costs):
    """Loss of each record's region once stretched to each other record; FORBIDDEN where it covers it by a match."""
    n = codes.shape[0]
    for i in range(n):
        for j in range(n):
            costs[i, j] = spread_with(geometry, lower[i], upper[i], words[i], codes[j])
        for r in range(n_rounds):
            costs[i, matches[i, r]] = FORBIDDEN


@kernel
def greedy_round(costs, match):
    """Each record in turn takes the cheapest that is free; -1 where none is."""
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    for i in range(n):
        best = -1
        for j in range(n):
            if not is_taken[j] and costs[i, j] < FORBIDDEN and (best < 0 or costs[i, j] < costs[i, best]):
                best = j
        match[i] = best
        if best >= 0:
            is_taken[best] = True


@kernel
def sort_greedy_round(costs, order, match):
    """The cheapest pairs of all first; `order` sorts the flattened costs."""
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    match[:] = -1
    for pair in order:
        i, j = pair // n, pair % n
        if match[i] < 0 and not is_taken[j] and costs[i, j] < FORBIDDEN:
            match[i] = j
            is_taken[j] = True


@kernel
def complete_inplace(costs, match):
    """Give each record left without a match one, by an exchange with another record; returns how many still lack one."""
    n = costs.shape[0]
    is_taken = np.zeros(n, np.bool_)
    for i in range(n):
        if match[i] >= 0:
            is_taken[match[i]] = True
    n_open = 0
    for i in range(n):
        if match[i] >= 0:
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
