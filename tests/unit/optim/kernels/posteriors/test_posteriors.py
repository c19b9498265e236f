"""Posterior means of counts against enumeration; totals at one quantile; draws against the moments they must have."""

from __future__ import annotations

from itertools import pairwise
from math import exp

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from louver.optim.kernels.posteriors.cells import (
    draws_inplace,
    expectations_inplace,
    likelihoods_inplace,
    posteriors_inplace,
)
from louver.optim.kernels.posteriors.leaves import draw_leaves_inplace, leaves_inplace, totals_inplace
from louver.topdown.estimation.noise_tables import STEP, column_of, tabulate_noise
from oracles.posteriors import cell_posterior, group_posterior, leaf_posterior

FACTORS = np.array([0.0, 0.5, 1.0, 2.0])
DEPARTURES = np.array([0.0, 0.5, 1.0, 2.0])
SCALES = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0])
WEIGHTS = np.array([[0.2, 0.2, 0.4, 0.2], [0.05, 0.3, 0.6, 0.05]])
OWN_WEIGHTS = np.array([[0.1, 0.2, 0.5, 0.2], [0.0, 0.0, 1.0, 0.0]])
ALONE = np.ones(1, np.int64)
EXPECTED = np.array([0.3, 4.0, 30.0, 0.0, 12.0, 2.0])
VALUES = np.array([1.7, -3.2, 41.5, 2.0, 35.0, 0.4])
VARIANCES = np.array([4.0, 9.0, 25.0, 2.0, 16.0, 0.5])
START, KIND, OWN_KIND = np.array([0, 1, 3, 6]), np.array([0, 1, 0]), np.array([1, 0, 0, 0, 0, 0])


def groups():
    """Cells of each group as the oracle takes them, with the weights of its factors and departures."""
    for g, (first, last) in enumerate(pairwise(START)):
        cells = [(EXPECTED[i], (VALUES[i], VARIANCES[i])) for i in range(first, last)]
        yield slice(first, last), cells, WEIGHTS[KIND[g]], OWN_WEIGHTS[OWN_KIND[first:last]]


def normal(seen, k):
    return exp(-((seen[0] - k) ** 2) / (2 * seen[1]))


def test_groups_of_cells_are_what_enumeration_finds():
    """A cell alone, two that disagree, and three of which nobody is expected in one."""
    mean, variance = np.empty(6), np.empty(6)
    posteriors_inplace(
        START, EXPECTED, VALUES, VARIANCES, SCALES, 0.12, WEIGHTS, KIND, OWN_WEIGHTS, OWN_KIND, mean, variance
    )  # fmt: skip
    for own, cells, weights, own_weights in groups():
        _, means, variances, of_sum, _ = group_posterior(
            cells, FACTORS, weights, DEPARTURES, own_weights, 0.12, normal
        )
        assert mean[own] == pytest.approx(means, rel=1e-6, abs=1e-9)
        wider = max(of_sum, sum(variances)) / max(
            sum(variances), 1e-9
        )  # so that the variance of the sum is right
        assert variance[own] == pytest.approx([wider * x for x in variances], rel=1e-5, abs=1e-8)


def test_a_group_of_one_cell_is_a_mixture_of_factors():
    mean, variance = np.empty(1), np.empty(1)
    one = (np.array([30.0]), np.array([41.5]), np.array([25.0]))
    posteriors_inplace(
        np.array([0, 1]), *one, SCALES, 0.12, WEIGHTS, ALONE, OWN_WEIGHTS, ALONE, mean, variance
    )
    wanted = cell_posterior(30.0, FACTORS, WEIGHTS[1], 0.12, lambda k: normal((41.5, 25.0), k))
    assert (mean[0], variance[0]) == pytest.approx(wanted, rel=1e-6)


def test_a_step_of_em_counts_factors_and_departures():
    likelihood = np.empty((6, len(SCALES)))
    likelihoods_inplace(EXPECTED, VALUES, VARIANCES, SCALES, 0.12, likelihood)
    assert likelihood.max(axis=1) == pytest.approx(np.ones(6))
    factors, departures = np.zeros(WEIGHTS.shape), np.zeros(OWN_WEIGHTS.shape)
    expectations_inplace(START, likelihood, WEIGHTS, KIND, OWN_WEIGHTS, OWN_KIND, factors, departures)
    wanted, own_wanted = np.zeros(WEIGHTS.shape), np.zeros(OWN_WEIGHTS.shape)
    for g, (own, cells, weights, own_weights) in enumerate(groups()):
        chances, _, _, _, departed = group_posterior(
            cells, FACTORS, weights, DEPARTURES, own_weights, 0.12, normal
        )
        wanted[KIND[g]] += chances
        np.add.at(own_wanted, OWN_KIND[own], np.array(departed))
    assert factors == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert departures == pytest.approx(own_wanted, rel=1e-6, abs=1e-9)


def test_large_counts_are_taken_as_normal_and_hopeless_ones_are_believed():
    mean, variance = np.empty(3), np.empty(3)
    alone, first = np.zeros(3, np.int64), np.array([[0.0, 1.0]])
    posteriors_inplace(
        np.arange(4), np.array([1000.0, 199.0, 1.0]), np.array([1100.0, 230.0, 5e5]), np.array([400.0, 400.0, 4.0]),
        np.array([0.0, 1.0]), 0.12, np.array([[0.1, 0.9]]), alone, first, alone, mean, variance,
    )  # fmt: skip
    spread = 1000 + 120**2
    assert mean[0] == pytest.approx(1000 + 100 * spread / (spread + 400))
    nearly = cell_posterior(199.0, [0.0, 1.0], [0.1, 0.9], 0.12, lambda k: exp(-((230 - k) ** 2) / 800))
    assert mean[1] == pytest.approx(nearly[0], rel=1e-3)
    assert mean[2] == 5e5


def test_a_hopeless_value_leaves_the_others_of_its_group_alone():
    both, one = (np.empty(2), np.empty(2)), (np.empty(1), np.empty(1))
    zeros, first = np.zeros(2, np.int64), np.array([[0.0, 1.0]])
    seen = (np.array([1.0, 20.0]), np.array([5e5, 26.0]), np.array([4.0, 9.0]))
    rest = (np.array([0.0, 1.0]), 0.12, np.array([[0.1, 0.9]]))
    posteriors_inplace(np.array([0, 2]), *seen, *rest, zeros[:1], first, zeros, *both)
    posteriors_inplace(np.array([0, 1]), *(x[1:] for x in seen), *rest, zeros[:1], first, zeros[:1], *one)
    assert both[0].tolist() == pytest.approx([5e5, one[0][0]])


EVENLY = (np.arange(4000) + 0.5) / 4000
SHUFFLED = np.argsort(np.argsort((EVENLY * 0.6180339887498949 * 4000) % 1.0)) / 4000 + 0.5 / 4000


@pytest.mark.parametrize(
    ("expected", "value", "noise_variance"), [(0.3, 1.7, 4.0), (4.0, -3.2, 9.0), (30.0, 41.5, 25.0), (900.0, 950.0, 400.0), (1.0, 5e5, 4.0)]
)  # fmt: skip
def test_draws_of_cells_are_as_their_posteriors(expected, value, noise_variance):
    mean, variance, n = np.empty(1), np.empty(1), 4000
    one = (np.array([expected]), np.array([value]), np.array([noise_variance]))
    prior = (SCALES, 0.12, WEIGHTS, ALONE, OWN_WEIGHTS)
    posteriors_inplace(np.array([0, 1]), *one, *prior, ALONE, mean, variance)
    drawn, given, alone = np.empty(n), np.empty(n), np.ones(n, np.int64)
    draws_inplace(
        np.arange(n + 1), *(np.repeat(x, n) for x in one), SCALES, 0.12, WEIGHTS, alone, OWN_WEIGHTS, alone,
        EVENLY, EVENLY, SHUFFLED, ndtri(SHUFFLED), drawn, given,
    )  # fmt: skip
    assert drawn.mean() == pytest.approx(mean[0], rel=0.02, abs=0.005)
    assert drawn.var() == pytest.approx(variance[0], rel=0.05, abs=0.01)
    assert given.mean() <= variance[0] * 1.001 and drawn.min() >= 0


def test_draws_of_a_group_depart_together():
    """Two cells: means, variances and the variance of the sum are those of enumeration."""
    n, random = 20_000, np.random.default_rng(4)
    expected, values, variances = np.array([8.0, 5.0]), np.array([14.0, 2.0]), np.array([60.0, 60.0])
    cells = [(e, (v, s)) for e, v, s in zip(expected, values, variances, strict=True)]
    _, means, spread, of_sum, _ = group_posterior(
        cells, FACTORS, WEIGHTS[0], DEPARTURES, OWN_WEIGHTS[[0, 0]], 0.12, normal
    )
    drawn, given, kind = np.empty(2 * n), np.empty(2 * n), np.zeros(2 * n, np.int64)
    by_group, by_departure, uniform = random.random(n), random.random(2 * n), random.random(2 * n)
    draws_inplace(
        2 * np.arange(n + 1), *(np.tile(x, n) for x in (expected, values, variances)), SCALES, 0.12, WEIGHTS, kind[:n],
        OWN_WEIGHTS, kind, by_group, by_departure, uniform, ndtri(uniform), drawn, given,
    )  # fmt: skip
    both = drawn.reshape(n, 2)
    assert both.mean(axis=0) == pytest.approx(means, rel=0.03)
    assert both.var(axis=0) == pytest.approx(spread, rel=0.05)
    assert both.sum(axis=1).var() == pytest.approx(of_sum, rel=0.05)
    assert of_sum > 1.2 * sum(spread)  # what one cell says is said of the other too


def chance_of_noise(variance, name):
    """Chance of `seen` given a count, up to a factor."""
    r = 1 + 1 / variance - ((1 + 1 / variance) ** 2 - 1) ** 0.5
    if name == "gaussian":
        return lambda seen, k: exp(-((seen - k) ** 2) / (2 * variance))
    return lambda seen, k: r ** abs(seen - k)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_leaves_are_what_enumeration_finds(noise):
    variance, variation = 18.0, 0.2
    seen = tabulate_noise(variance, noise, variation)
    expected = np.exp(seen.first + seen.step * np.array([60.0, 75.0, 90.0, 70.0]))
    values = np.array([9.0, -2.0, 14.0, 0.0])
    size_steps, factor_steps = np.array([0, -6, 0, 6]), np.array([0, -4, 0, 8])
    size_weights, factor_weights = np.array([[0.2, 0.3, 0.4, 0.1]]), np.array([[0.1, 0.3, 0.5, 0.1]])
    mean, found_variance = np.empty(4), np.empty(4)
    sizes, size_mean, size_variance = (np.empty((1, 4)) for _ in range(3))
    added = np.zeros((1, 4))
    leaves_inplace(
        seen, np.array([0, 4]), np.array([0, 2, 4]), values, column_of(expected, seen), np.zeros(2, np.int64),
        size_steps, np.log(size_weights), np.zeros(1, np.int64), factor_steps, np.log(factor_weights), np.zeros(1), -1.0,
        mean, found_variance, sizes, size_mean, size_variance, added,
    )  # fmt: skip
    groups = [
        list(zip(expected[:2], values[:2], strict=True)),
        list(zip(expected[2:], values[2:], strict=True)),
    ]
    wanted = leaf_posterior(
        groups, [0, *np.exp(STEP * size_steps[1:])], size_weights[0], [0, *np.exp(STEP * factor_steps[1:])],
        factor_weights[0], variation, chance_of_noise(variance, noise),
    )  # fmt: skip
    assert mean == pytest.approx(wanted[0], rel=1e-5, abs=1e-7)
    assert found_variance == pytest.approx(wanted[1], rel=1e-4, abs=1e-6)
    assert sizes[0] == pytest.approx(wanted[2], rel=1e-5)
    assert (sizes @ size_mean.T)[0, 0] == pytest.approx(sum(wanted[0]), rel=1e-6)
    assert added.sum() == pytest.approx(2 * (1 - sizes[0, 0]))


def test_a_measured_total_moves_the_cells():
    seen = tabulate_noise(18.0, "laplace", 0.2)
    expected, values = np.array([4.0, 8.0]), np.array([5.0, 9.0])
    means = []
    for total, variance in ((30.0, 1.0), (0.0, -1.0)):
        mean, spread, sizes = np.empty(2), np.empty(2), np.empty((1, 1))
        leaves_inplace(
            seen, np.array([0, 2]), np.array([0, 1, 2]), values, column_of(expected, seen), np.zeros(2, np.int64),
            np.zeros(1, np.int64), np.zeros((1, 1)), np.zeros(1, np.int64), np.array([0, 0]), np.log(np.full((1, 2), 0.5)),
            np.array([total]), variance, mean, spread, sizes, np.empty((1, 1)), np.empty((1, 1)), np.zeros((1, 2)),
        )  # fmt: skip
        means.append(mean)
    assert abs(means[0].sum() - 30) < 2 < means[0].sum() - means[1].sum()


def free(n):
    """No bounds on so many totals."""
    return np.zeros(n), np.full(n, np.inf)


def test_totals_under_bounds_are_quantiles_of_posteriors_cut_to_them():
    """Against a list of all counts: chances between the bounds, added up and divided by their sum."""
    sizes, size_mean = np.tile([0.4, 0.6], (3, 1)), np.tile([3.0, 20.0], (3, 1))
    size_variance, lower, upper = np.full((3, 2), 9.0), np.array([6.0, 0.0, 0.0]), np.array([25.0, 12.0, 0.0])
    totals = np.empty(3)
    for people in (18.0, 24.0, 30.0):
        totals_inplace(
            np.array([0, 3]), np.array([people]), sizes, size_mean, size_variance, np.ones(3), lower, upper, totals
        )  # fmt: skip
        assert totals.sum() == pytest.approx(people) and totals[2] == 0.0
        assert (totals >= lower).all() and (totals <= upper).all()
        reached = []
        for total, low, high in zip(totals[:2], lower, upper, strict=False):
            counts = np.arange(low, high + 1)
            steps = ndtr((counts[:, None] + [[-0.5, 0.5]] - size_mean[0][:, None, None]) / 3.0)
            chance = np.einsum("s,sk->k", sizes[0], steps[..., 1] - steps[..., 0])
            if low == 0.0:  # the mixture is cut at zero, which has all that is below
                chance[0] += np.dot(sizes[0], ndtr((-0.5 - size_mean[0]) / 3.0))
            reached.append(np.interp(total, counts, np.cumsum(chance) / chance.sum()))
        assert reached[0] == pytest.approx(reached[1], abs=0.06)


def test_totals_stand_at_one_quantile_and_add_up():
    sizes = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    size_mean = np.array([[0.0, 10.0], [0.0, 10.0], [0.0, 5.0], [0.0, 40.0]])
    size_variance = np.array([[0.0, 4.0], [0.0, 4.0], [0.0, 1.0], [0.0, 9.0]])
    totals = np.empty(4)
    for people in (60.0, 30.0, 0.0, 500.0):
        totals_inplace(
            np.array([0, 4]),
            np.array([people]),
            sizes,
            size_mean,
            size_variance,
            np.ones(4),
            *free(4),
            totals,
        )
        assert totals.sum() == pytest.approx(people) and totals[0] == totals[1] and totals.min() >= 0
    totals_inplace(
        np.array([0, 4]), np.array([38.0]), sizes, size_mean, size_variance, np.ones(4), *free(4), totals
    )
    assert totals[0] < 0.1 and totals[3] > 35  # below their median, halves that may be empty are


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_draws_of_leaves_are_as_their_posteriors(noise):
    """One cell in a group of its own, seen through noise: with every pair of numbers that steer factor and count."""
    seen = tabulate_noise(18.0, noise, 0.2)
    steps, weights = np.array([0, -4, 0, 8]), np.log(np.array([[0.1, 0.3, 0.5, 0.1]]))
    for expected, value in ((0.4, 2.0), (9.0, 4.0), (60.0, 75.0), (2000.0, 1900.0)):
        place = column_of(np.array([expected]), seen)
        mean, variance, rest = np.empty(1), np.empty(1), np.empty((1, 1))
        zero, ends = np.zeros(1, np.int64), np.array([0, 1])
        leaves_inplace(
            seen, ends, ends, np.array([value]), place, zero, zero, np.zeros((1, 1)), zero, steps, weights, np.zeros(1),
            -1.0, mean, variance, rest, rest.copy(), rest.copy(), np.zeros((1, 4)),
        )  # fmt: skip
        n = 100 * 80
        by_group, uniform = (x.ravel() for x in np.meshgrid(EVENLY[20::40], EVENLY[25::50]))
        drawn, given = np.empty(n), np.empty(n)
        draw_leaves_inplace(
            seen, np.arange(n + 1), np.arange(n + 1), np.full(n, value), np.repeat(place, n), np.zeros(n, np.int64),
            np.zeros(n, np.int64), steps, weights, by_group, uniform, ndtri(uniform), drawn, given,
        )  # fmt: skip
        assert drawn.mean() == pytest.approx(mean[0], rel=0.03, abs=0.03)
        assert drawn.var() == pytest.approx(variance[0], rel=0.1, abs=0.05)
        nobody = np.full(n, -(1 << 40))
        draw_leaves_inplace(
            seen, np.arange(n + 1), np.arange(n + 1), np.full(n, value), np.repeat(place, n), np.zeros(n, np.int64),
            nobody, steps, weights, by_group, uniform, ndtri(uniform), drawn, given,
        )  # fmt: skip
        assert not drawn.any() and not given.any()


def test_totals_at_odds_are_drawn_and_add_up():
    """Where the parent has what is expected, totals at the odds of uniform numbers are draws of the posteriors."""
    n = 400
    sizes, size_mean = np.tile([0.25, 0.75], (n, 1)), np.tile([0.0, 20.0], (n, 1))
    size_variance, totals = np.tile([0.0, 9.0], (n, 1)), np.empty(n)
    uniform = (np.arange(n) + 0.5) / n
    totals_inplace(
        np.array([0, n]),
        np.array([15.0 * n]),
        sizes,
        size_mean,
        size_variance,
        uniform / (1 - uniform),
        *free(n),
        totals,
    )
    assert totals.sum() == pytest.approx(15.0 * n)
    assert (totals < 1).mean() == pytest.approx(0.25, abs=0.02)
    assert totals[totals > 1].std() == pytest.approx(3.0, abs=0.4)
