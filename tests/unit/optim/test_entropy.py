"""Counts near noisy sums: the conditions of optimality, and what is kept exactly."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.optim.entropy import GroupSums, Inequality, NoisySums, fit


def indicator(group, n):
    return (group[None, :] == np.arange(n)[:, None]).astype(float)


@few_or_many(4, 20, given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 4.0, 50.0])))
def test_the_gradient_is_a_combination_of_the_exact_sums(seed, variance):
    """log(h / prior) + (sum of h - noisy) / variance vanishes but along the exact sums: the conditions for the least."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns = 4, 5
    rows, columns = np.repeat(np.arange(n_rows), n_columns), np.tile(np.arange(n_columns), n_rows)
    truth = rng.poisson(3.0, n_rows * n_columns) + 1.0
    prior = rng.gamma(2.0, 1.0, len(truth)) + 0.1
    query = rng.integers(0, 3, len(truth))
    noisy = np.bincount(query, truth, minlength=3) + rng.normal(0, np.sqrt(variance), 3)
    exact = [GroupSums(rows, np.bincount(rows, truth)), GroupSums(columns, np.bincount(columns, truth))]
    counts = fit(prior, exact, [NoisySums(query, noisy, variance)], sweeps=2000)
    known = np.vstack([indicator(rows, n_rows), indicator(columns, n_columns)])
    asked = indicator(query, 3)
    assert np.allclose(known @ counts, known @ truth, atol=1e-6)
    gradient = np.log(counts / prior) + asked.T @ (asked @ counts - noisy) / variance
    multipliers = np.linalg.lstsq(known.T, gradient, rcond=None)[0]
    assert np.allclose(known.T @ multipliers, gradient, atol=1e-4)


def test_each_noisy_sum_may_have_a_variance_of_its_own():
    """The second order condition of each sum alone: log(x / prior) + (x - noisy) / variance = 0."""
    variance = np.array([0.5, 40.0])
    prior, noisy = np.array([3.0, 3.0]), np.array([9.0, 9.0])
    counts = fit(prior, [], [NoisySums(np.arange(2), noisy, variance)], sweeps=50)
    assert np.allclose(np.log(counts / prior) + (counts - noisy) / variance, 0.0, atol=1e-9)
    assert counts[0] > counts[1]


def test_inequalities_hold_where_they_can():
    group = np.zeros(4, dtype=np.int64)
    both = [GroupSums(group, np.array([10.0]))]
    rule = Inequality(np.arange(2), group[:2], np.array([1.0, -1.0]), np.zeros(1))
    prior = np.array([1.0, 5.0, 2.0, 2.0])
    counts = fit(prior, both, [], [rule], sweeps=200)
    assert abs(counts[0] - counts[1]) < 1e-6 and abs(counts.sum() - 10) < 1e-9
    assert np.allclose(counts[2:], counts[2])
    idle = fit(prior, both, [], [Inequality(np.arange(4), group, np.ones(4), np.array([9.0]))])
    assert np.allclose(idle, prior)  # it holds already
    most = fit(
        prior, both, [], [Inequality(np.array([1]), group[:1], -np.ones(1), np.array([-3.0]))], sweeps=200
    )
    assert abs(most[1] - 3.0) < 1e-6


def test_what_is_not_there_stays_nothing():
    exact = [GroupSums(np.array([0, 0, 1]), np.array([4.0, 0.0]))]
    noisy = [NoisySums(np.array([0, 1, 1]), np.array([-50.0, 3.0]), 1.0)]
    counts = fit(np.array([1.0, 1.0, 0.0]), exact, noisy)
    assert counts[2] == 0 and counts[0] < 1e-6 and abs(counts[1] - 4) < 1e-6
