"""Means, shares and regressions with sampling weights, and how several completed copies are combined.

Standard errors are robust ("sandwich"), as survey analysts expect where records have weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from louver._arrays import Floats

__all__ = ["Fit", "combine", "fit_linear", "fit_logistic", "fit_mean"]

MOST_STEPS = 50
MOST_FREEDOM = 1e6
"""Degrees of freedom from which on a t distribution is treated as normal."""
CONVERGED = 1e-10
"""Tolerance for a Newton step, relative to the coefficients."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Estimates with their standard errors.

    Attributes
    ----------
    estimates, standard_errors : ndarray of float64, shape (k,)
        NaN where the data do not determine a coefficient.
    freedom : ndarray of float64, shape (k,)
        Degrees of freedom of the t distribution; infinite for a normal one.
    """

    estimates: Floats
    standard_errors: Floats
    freedom: Floats

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends."""
        upper = 0.5 + confidence / 2
        is_normal = self.freedom > MOST_FREEDOM
        width = np.where(is_normal, ndtri(upper), stdtrit(np.clip(self.freedom, 1.0, MOST_FREEDOM), upper))
        return self.estimates - width * self.standard_errors, self.estimates + width * self.standard_errors


def fit_mean(y: Floats, weights: Floats) -> Fit:
    """A weighted mean, with its variance by linearisation."""
    return fit_linear(np.ones((len(y), 1)), y, weights)


def fit_linear(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Weighted least squares with the sandwich variance (HC1)."""
    is_used, x_used = _independent(x * np.sqrt(weights)[:, None], x)
    bread = np.linalg.inv(x_used.T @ (weights[:, None] * x_used)).astype(np.float64)
    found = bread @ (x_used.T @ (weights * y))
    return _sandwich(found, bread, x_used * (weights * (y - x_used @ found))[:, None], is_used)


def fit_logistic(x: Floats, y: Floats, weights: Floats) -> Fit:
    """Weighted logistic regression by Newton's method with the sandwich variance.

    Coefficients are NaN where the outcome is separated by the predictors: no maximum exists.
    """
    is_used, x_used = _independent(x * np.sqrt(weights)[:, None], x)
    found = np.zeros(x_used.shape[1])
    for _ in range(MOST_STEPS):
        chance = expit(x_used @ found)
        curvature = x_used.T @ ((weights * chance * (1 - chance))[:, None] * x_used)
        try:
            step = np.linalg.solve(curvature, x_used.T @ (weights * (y - chance)))
        except np.linalg.LinAlgError:
            break
        found = found + step
        if np.abs(step).max() <= CONVERGED * (1 + np.abs(found).max()):
            scores = x_used * (weights * (y - expit(x_used @ found)))[:, None]
            bread = np.linalg.inv(curvature).astype(np.float64)
            return _sandwich(found, bread, scores, is_used)
        if np.abs(found).max() > 1e3:
            break
    nothing = np.full(x.shape[1], np.nan)
    return Fit(estimates=nothing, standard_errors=nothing, freedom=np.full(x.shape[1], np.inf))


def _independent(scaled: Floats, x: Floats) -> tuple[np.ndarray, Floats]:
    """Columns that are not determined by earlier ones, by Gram-Schmidt."""
    is_used = np.zeros(x.shape[1], dtype=bool)
    basis: list[Floats] = []
    for place, column in enumerate(scaled.T):
        rest = column - sum(((column @ b) * b for b in basis), np.zeros(len(column)))
        length = float(np.linalg.norm(rest))
        if length > 1e-8 * max(float(np.linalg.norm(column)), 1e-300):
            basis.append(rest / length)
            is_used[place] = True
    return is_used, x[:, is_used]


def _sandwich(found: Floats, bread: Floats, scores: Floats, is_used: np.ndarray) -> Fit:
    n, k = scores.shape
    meat = scores.T @ scores * (n / max(n - k, 1))
    errors = np.sqrt(np.maximum(np.diag(bread @ meat @ bread), 0.0))
    estimates, standard_errors = np.full(len(is_used), np.nan), np.full(len(is_used), np.nan)
    estimates[is_used], standard_errors[is_used] = found, errors
    return Fit(estimates=estimates, standard_errors=standard_errors, freedom=np.full(len(is_used), np.inf))


def combine(fits: Sequence[Fit]) -> Fit:
    """Combine the fits of several completed copies into one.

    Notes
    -----
    **Implements** Rubin (1987), rule (3.1.6): the variance is the average within copies plus (1 + 1/m) times that between them, with
    (m - 1)(1 + within / ((1 + 1/m) between))^2 degrees of freedom.
    """
    estimates = np.array([fit.estimates for fit in fits])
    m = len(fits)
    within = np.mean([fit.standard_errors**2 for fit in fits], axis=0)
    between = (1 + 1 / m) * (estimates.var(axis=0, ddof=1) if m > 1 else np.zeros(estimates.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(between > 0, (m - 1) * (1 + within / between) ** 2, np.inf)
    return Fit(estimates=estimates.mean(axis=0), standard_errors=np.sqrt(within + between), freedom=freedom)
