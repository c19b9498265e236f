"""Answers of the root one by one: small ones are drawn to what rows of their query are like, large ones stay."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from louver.optim.entropy import GroupSums, NoisySums, fit
from louver.privacy.distributions import DiscreteGaussian, DiscreteLaplace
from louver.run import Run
from louver.topdown.extension.estimation import fit_root
from louver.topdown.extension.root import posterior_of_answers

NOISES = {"laplace": DiscreteLaplace(Fraction(10)), "gaussian": DiscreteGaussian(Fraction(200))}


def noise_of(kind, rng, n):
    """Rounded noise with about the deviation of both distributions."""
    drawn = rng.laplace(0.0, 10.0, n) if kind == "laplace" else rng.normal(0.0, 200.0**0.5, n)
    return np.rint(drawn).astype(np.int64)


@pytest.mark.parametrize("kind", NOISES)
def test_empty_rows_add_nobody_on_average(kind):
    rng = np.random.default_rng(2)
    truth = np.concatenate([np.zeros(300, np.int64), rng.integers(1, 40, 60), rng.integers(500, 9_000, 20)])
    answers = truth + noise_of(kind, rng, len(truth))
    mean, variance = posterior_of_answers(answers, NOISES[kind])
    raised = np.maximum(answers, 0)
    few = truth < 40
    assert abs((mean - truth)[few].sum()) < 0.35 * (raised - truth)[few].sum()  # setting to zero adds people
    assert np.square(mean - truth).sum() < 0.7 * np.square(raised - truth).sum()
    within = np.square(mean - truth)[few].mean() / variance[few].mean()
    assert 0.5 < within < 2.0  # what is said about the error is about as large as it


@pytest.mark.parametrize("kind", NOISES)
def test_large_answers_stay_and_means_rise_with_answers(kind):
    answers = np.array([-60, -10, 0, 10, 30, 80, 141, 142, 4_000])
    mean, variance = posterior_of_answers(answers, NOISES[kind])
    assert mean[-2:].tolist() == [142.0, 4_000.0] and np.allclose(variance[-2:], NOISES[kind].variance)
    assert (
        (np.diff(mean[:-2]) > -1e-9).all()
        and mean[2] < mean[3] < mean[4]
        and mean[0] >= 0
        and (variance >= 0.25).all()
    )
    untouched, _ = posterior_of_answers(answers[-2:], NOISES[kind])
    assert untouched.tolist() == [142.0, 4_000.0]


def test_the_posterior_is_that_of_the_mixture():
    """One answer among many of empty rows: nearly all weight is at zero, and Bayes' rule by hand gives what is left."""
    rng = np.random.default_rng(5)
    answers = np.append(noise_of("laplace", rng, 4_000), 25)
    mean, _ = posterior_of_answers(answers, NOISES["laplace"])
    assert 0 <= mean[-1] < 5 and abs(mean[:-1].mean()) < 0.5


def test_draws_are_as_large_as_means_on_average():
    """Evenly spread numbers take every answer through its posterior: their mean is the posterior's, and none is below zero."""
    answers = np.array([-30, 0, 15, 40, 90, 4_000])
    mean, variance = posterior_of_answers(answers, NOISES["laplace"])
    at = (np.arange(400) + 0.5) / 400
    drawn = np.array([posterior_of_answers(answers, NOISES["laplace"], np.full(6, u))[0] for u in at])
    assert np.allclose(drawn.mean(axis=0), mean, atol=0.3) and drawn.min() == 0.0
    assert (drawn[:, -1] == 4_000).all()
    assert np.allclose(drawn[:, :5].var(axis=0), variance[:5], rtol=0.1, atol=0.5)


def test_a_large_row_far_from_even_counts_keeps_its_answer():
    """Half of 100,000 people in one of 1,000 cells: one fit pulls it down by several times what six fits do."""
    everyone = np.zeros(1_000, np.int64)
    truth = np.full(1_000, 50.0)
    truth[0] = 100_000 - truth[1:].sum()
    rows = np.append([0], np.ones(999, np.int64))
    sums = [NoisySums(rows, np.array([truth[0], truth[1:].sum()]), 50.0)]
    exact = [GroupSums(everyone, np.array([100_000]))]
    once = fit(np.full(1_000, 100.0), exact, sums)
    found = fit_root(np.full(1_000, 100.0), exact, sums, (), Run())
    assert once[0] < truth[0] - 50 and abs(found[0] - truth[0]) < 1.0
    assert np.allclose(found[1:], found[1]) and found.sum() == pytest.approx(100_000)
