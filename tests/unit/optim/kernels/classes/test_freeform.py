"""Rounds of matching against plain scans, and their repair by exchanges against all exchanges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from louver.optim.kernels.classes.freeform import (
    FORBIDDEN,
    assignment,
    complete_inplace,
    greedy_round,
    round_costs,
    sort_greedy_round,
)
from louver.optim.kernels.classes.loss import class_regions
from mixed_records import GOING, STOPPED, mixed_problem


def random_costs(n, seed, n_forbidden):
    """Costs with ties; the diagonal and a few more are forbidden."""
    random = np.random.default_rng(seed)
    costs = random.integers(0, 6, (n, n)).astype(np.int32)
    np.fill_diagonal(costs, FORBIDDEN)
    costs[random.integers(0, n, n_forbidden), random.integers(0, n, n_forbidden)] = FORBIDDEN
    return costs


def test_costs_are_losses_of_stretched_regions():
    problem = mixed_problem(8, 2)
    matches = np.array([[i, (i + 1) % 8] for i in range(8)])
    regions = [np.stack(parts) for parts in zip(*(region_of(problem, pair) for pair in matches), strict=True)]
    costs = np.empty((8, 8), np.int32)
    round_costs(problem.geometry, problem.codes, *regions, matches, 2, costs, GOING)
    for i in range(8):
        for j in range(8):
            members = sorted({*matches[i].tolist(), j})
            expected = FORBIDDEN if j in matches[i] else problem.class_loss(members) // len(members)
            assert costs[i, j] == expected


def region_of(problem, members):
    labels = np.full(problem.n_records, -1)
    labels[members] = 0
    return [part[0] for part in class_regions(problem.geometry, problem.codes, labels, 1)[:3]]


@pytest.mark.parametrize("seed", range(6))
def test_greedy_rounds(seed):
    costs = random_costs(7, seed, 10)
    in_turn, by_cost = np.empty(7, np.int64), np.empty(7, np.int64)
    greedy_round(costs, in_turn, GOING)
    free = set(range(7))
    for i in range(7):
        allowed = [j for j in sorted(free) if costs[i, j] < FORBIDDEN]
        expected = min(allowed, key=lambda j: costs[i, j], default=-1)
        assert in_turn[i] == expected
        free -= {expected}
    sort_greedy_round(costs, by_cost, GOING)
    expected_pairs, rows, columns = {}, set(range(7)), set(range(7))
    while pairs := [(costs[i, j], i, j) for i in rows for j in columns if costs[i, j] < FORBIDDEN]:
        _, i, j = min(pairs)
        expected_pairs[i] = j
        rows.remove(i)
        columns.remove(j)
    assert by_cost.tolist() == [expected_pairs.get(i, -1) for i in range(7)]


@pytest.mark.parametrize("seed", range(12))
def test_one_open_record_is_matched_by_the_cheapest_exchange(seed):
    costs = random_costs(6, seed, 4)
    match = np.roll(np.arange(6), 1)
    costs[np.arange(6), match] = 3
    open_record = seed % 6
    match[open_record] = -1
    free = (set(range(6)) - set(match.tolist())).pop()
    costs[open_record, free] = FORBIDDEN
    kept = {i: int(match[i]) for i in range(6) if i != open_record}
    exchanges = [
        int(costs[open_record, j]) + int(costs[i, free]) - int(costs[i, j])
        for i, j in kept.items()
        if costs[open_record, j] < FORBIDDEN and costs[i, free] < FORBIDDEN
    ]
    before = sum(int(costs[i, j]) for i, j in kept.items())
    n_open = complete_inplace(costs, match, GOING)
    assert n_open == (0 if exchanges else 1)
    if exchanges:
        assert sorted(match.tolist()) == list(range(6))
        assert sum(int(costs[i, match[i]]) for i in range(6)) == before + min(exchanges)


@pytest.mark.parametrize("n_values", [1, 4, 10**6])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_assignment_is_that_of_scipy_ties_included(n, n_values):
    random = np.random.default_rng(n + n_values)
    costs = random.integers(0, n_values, (n, n)).astype(np.int32)
    costs[random.random((n, n)) < 0.1] = FORBIDDEN
    prices = np.where(costs == FORBIDDEN, float(FORBIDDEN) * n, costs)
    assert assignment(costs, GOING).tolist() == linear_sum_assignment(prices)[1].tolist()


def test_a_stopped_matching_returns():
    assert (assignment(random_costs(60, 1, 3), STOPPED) == -1).any()
