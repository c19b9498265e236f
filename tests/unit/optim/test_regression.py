"""Fits against statsmodels-like formulas written out, and Rubin's rules against his example."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from louver.optim.regression import Fit, combine, fit_linear, fit_logistic, fit_mean


def test_least_squares_by_the_normal_equations_and_their_sandwich() -> None:
    random = np.random.default_rng(1)
    x = np.column_stack([np.ones(60), random.normal(size=(60, 2))])
    y, weights = x @ [1.0, 2.0, -1.0] + random.normal(size=60), random.uniform(1, 3, 60)
    fit = fit_linear(x, y, weights)
    root = np.sqrt(weights)
    expected = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
    assert fit.estimates == pytest.approx(expected)
    bread = np.linalg.inv(sum(w * np.outer(r, r) for w, r in zip(weights, x, strict=True)))
    rest = weights * (y - x @ expected)
    meat = sum(e**2 * np.outer(r, r) for e, r in zip(rest, x, strict=True)) * 60 / 57
    assert fit.standard_errors == pytest.approx(np.sqrt(np.diag(bread @ meat @ bread)))


def test_a_mean_has_the_standard_error_of_a_textbook() -> None:
    y = np.array([1.0, 4.0, 2.0, 9.0])
    fit = fit_mean(y, np.ones(4))
    assert fit.estimates[0] == 4.0 and fit.standard_errors[0] == pytest.approx(y.std(ddof=1) / 2)


def test_logistic_scores_vanish_at_the_maximum() -> None:
    random = np.random.default_rng(2)
    x = np.column_stack([np.ones(300), random.normal(size=(300, 2))])
    y = (random.random(300) < expit(x @ [-0.5, 1.0, 0.3])).astype(float)
    weights = random.uniform(1, 2, 300)
    fit = fit_logistic(x, y, weights)
    assert x.T @ (weights * (y - expit(x @ fit.estimates))) == pytest.approx(np.zeros(3), abs=1e-6)


def test_what_the_data_do_not_determine_has_no_estimate() -> None:
    x = np.column_stack([np.ones(6), np.arange(6.0), 2 * np.arange(6.0)])
    assert np.isnan(fit_linear(x, np.arange(6.0), np.ones(6)).estimates).tolist() == [False, False, True]
    separated = fit_logistic(x[:, :2], np.array([0, 0, 0, 1, 1, 1.0]), np.ones(6))
    assert np.isnan(separated.estimates).all()


def test_rules_of_rubin() -> None:
    """Three copies: variance within 1.0, between 0.25 * 4/3."""
    fits = [
        Fit(estimates=np.array([e]), standard_errors=np.array([1.0]), freedom=np.array([np.inf]))
        for e in (1.5, 2.0, 2.5)
    ]
    found = combine(fits)
    between = 0.25 * 4 / 3
    assert found.estimates[0] == 2.0
    assert found.standard_errors[0] == pytest.approx(np.sqrt(1 + between))
    assert found.freedom[0] == pytest.approx(2 * (1 + 1 / between) ** 2)
    assert combine(fits[:1]).standard_errors[0] == 1.0
