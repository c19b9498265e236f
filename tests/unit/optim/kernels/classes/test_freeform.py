"""Matchings against SciPy and against sorting all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from louver.optim.kernels.classes.freeform import FORBIDDEN, assignment, sort_greedy_round

GOING, STOPPED = np.zeros(1, np.uint8), np.ones(1, np.uint8)


def costs_of(n, n_values):
    random = np.random.default_rng(n + n_values)
    costs = random.integers(0, n_values, (n, n)).astype(np.int32)
    costs[random.random((n, n)) < 0.1] = FORBIDDEN
    return costs


@pytest.mark.parametrize("n_values", [1, 4, 10**6])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_assignment_is_that_of_scipy_ties_included(n, n_values):
    costs = costs_of(n, n_values)
    prices = np.where(costs == FORBIDDEN, float(FORBIDDEN) * n, costs)
    assert assignment(costs, GOING).tolist() == linear_sum_assignment(prices)[1].tolist()


@pytest.mark.parametrize("n_values", [1, 4, 10**6])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_cheapest_pairs_come_first(n, n_values):
    costs = costs_of(n, n_values)
    expected, taken = np.full(n, -1), set()
    for pair in np.argsort(costs, axis=None, kind="stable").tolist():
        i, j = divmod(pair, n)
        if expected[i] < 0 and j not in taken and costs[i, j] < FORBIDDEN:
            expected[i] = j
            taken.add(j)
    found = np.empty(n, np.int64)
    sort_greedy_round(costs, found, GOING)
    assert found.tolist() == expected.tolist()


def test_a_stopped_matching_returns():
    assert (assignment(costs_of(60, 9), STOPPED) == -1).any()
