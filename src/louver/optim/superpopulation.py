"""What a sample says about its population: how many people share a combination of values, estimated from how many do in the sample.

Individual risk by sampling weights (Benedetti & Franconi 1998) and two models of all combinations at once: the Pitman sampling
formula (Hoshino 2001) and a zero-truncated negative binomial distribution (Bethlehem, Keller & Pannekoek 1990).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, gammaln, hyp2f1

from louver._arrays import Floats, Ints

__all__ = [
    "NegativeBinomial",
    "Pitman",
    "fit_negative_binomial",
    "fit_pitman",
    "individual_risk",
    "match_risk",
]

LEAST_COMBINATIONS = 10
"""With fewer combinations in the sample, a model with two parameters is not estimated."""
LEAST_ALPHA, MOST_ALPHA = 1e-6, 1 - 1e-6
MOST_SHAPE = 1e4
"""From this shape on, a negative binomial distribution is treated as a Poisson distribution."""


def individual_risk(frequencies: Ints, weight_sums: Floats) -> Floats:
    """Chance that a record of the sample is linked to the right person by someone who knows the combination of values.

    Parameters
    ----------
    frequencies : ndarray of int64, shape (c,)
        Records of the sample with each combination, at least 1.
    weight_sums : ndarray of float64, shape (c,)
        Sums of their sampling weights, which estimate the people of the population; at least the frequency.

    Returns
    -------
    ndarray of float64, shape (c,)
        Expected 1 / F, where F is the number of people of the population with the combination.

    Notes
    -----
    **Implements** Benedetti & Franconi (1998): given f records, F is f plus a negative binomial number of others with success
    probability p = f / (sum of weights). E[1/F] is the integral over t > 0 of (p e^-t / (1 - (1-p) e^-t))^f, which Euler's
    transformation turns into (p / f) 2F1(1, 1; f + 1; 1 - p), a series of positive terms.

    Examples
    --------
    >>> individual_risk(np.array([1, 2]), np.array([1.0, 20.0])).round(3).tolist()
    [1.0, 0.083]
    """
    f = frequencies.astype(np.float64)
    p = np.minimum(f / weight_sums, 1.0)
    risk: Floats = np.minimum(p / f * hyp2f1(1.0, 1.0, f + 1.0, 1.0 - p), 1.0 / f)
    return risk


def match_risk(n_ones: int, n_twos: int, fraction: float) -> float | None:
    """Chance that a match is right, given that a person of the population matches exactly one record of the sample.

    Notes
    -----
    **Implements** Skinner & Elliot (2002), data intrusion simulation: n1 f / (n1 f + 2 n2 (1 - f)) for a sample of the
    fraction f with n1 combinations of one record and n2 of two. None if there are neither.

    Examples
    --------
    >>> match_risk(100, 50, 0.1)
    0.1
    """
    right, wrong = n_ones * fraction, 2 * n_twos * (1 - fraction)
    return right / (right + wrong) if right + wrong else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pitman:
    """The Pitman sampling formula: a partition of people into combinations of values.

    Attributes
    ----------
    theta, alpha : float
        theta > -alpha, 0 < alpha < 1.
    """

    theta: float
    alpha: float

    def unique_people(self, n_people: int) -> float:
        """Expected people of a population who share their combination with no one else: N (theta + alpha)_(N-1) / (theta + 1)_(N-1)."""
        theta, alpha = self.theta, self.alpha
        rising = gammaln(theta + alpha + n_people - 1) - gammaln(theta + alpha)
        falling = gammaln(theta + n_people) - gammaln(theta + 1)
        return float(n_people * np.exp(rising - falling))


def fit_pitman(sizes: Ints, counts: Ints) -> Pitman | None:
    """Maximum likelihood from the sample; the population follows the same formula.

    Parameters
    ----------
    sizes, counts : ndarray of int64, shape (s,)
        `counts[i]` combinations have `sizes[i]` records each; sizes are at least 1 and distinct.

    Returns
    -------
    Pitman or None
        None if there are fewer than ten combinations, or none with two records: the likelihood has no maximum.

    Notes
    -----
    **Implements** Hoshino (2001), eq. (2): the chance of a partition of n records into u combinations is
    prod_{i<u} (theta + i alpha) / (theta + 1)_(n-1) times prod (1 - alpha)_(size - 1).
    """
    n, u = int(sizes @ counts), int(counts.sum())
    if u < LEAST_COMBINATIONS or u == n:
        return None

    def negative(point: Floats) -> float:
        theta, alpha = _pitman_parameters(point)
        value = (u - 1) * np.log(alpha) + gammaln(u + theta / alpha) - gammaln(1 + theta / alpha)
        value -= gammaln(theta + n) - gammaln(theta + 1)
        value += counts @ (gammaln(sizes - alpha) - gammaln(1 - alpha))
        return -float(value)

    starts = [np.array([np.log(t), a]) for t in (1.0, n / 10 + 1) for a in (-2.0, 0.0, 2.0)]
    theta, alpha = _pitman_parameters(_best(negative, starts))
    return Pitman(theta=theta, alpha=alpha)


def _pitman_parameters(point: Floats) -> tuple[float, float]:
    """Map unconstrained numbers to parameters within their limits."""
    alpha = float(np.clip(expit(point[1]), LEAST_ALPHA, MOST_ALPHA))
    return float(np.exp(np.clip(point[0], -30.0, 40.0))) - alpha * (1 - 1e-9), alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class NegativeBinomial:
    """People of the population per combination of values: Poisson with a gamma-distributed mean.

    Attributes
    ----------
    shape : float
    mean : float
        People of the population per combination, including those that occur nowhere.
    n_combinations : float
        All combinations, including those that no record of the sample has.
    """

    shape: float
    mean: float
    n_combinations: float

    def unique_people(self) -> float:
        """Expected people of the population who share their combination with no one else."""
        a, m = self.shape, self.mean
        return float(self.n_combinations * m * (a / (a + m)) ** (a + 1))


def fit_negative_binomial(sizes: Ints, counts: Ints, fraction: float) -> NegativeBinomial | None:
    """Maximum likelihood from the sample, in which combinations without a record are not observed.

    Parameters
    ----------
    sizes, counts : ndarray of int64, shape (s,)
        As in `fit_pitman`.
    fraction : float
        Share of the population that was sampled.

    Notes
    -----
    **Implements** Bethlehem, Keller & Pannekoek (1990), section 5, with the truncation at zero of Skinner & Holmes (1998): a
    combination with F people has Binomial(F, f) records, so records per combination are negative binomial with the same
    shape and f times the mean; the number of combinations is the number seen divided by the probability of being seen.
    """
    seen = int(counts.sum())
    if seen < LEAST_COMBINATIONS or seen == int(sizes @ counts):
        return None

    def negative(point: Floats) -> float:
        a, m = _shape_and_mean(point)
        rest = np.log1p(m / a)
        value = gammaln(sizes + a) - gammaln(a) - gammaln(sizes + 1.0) - (a + sizes) * rest
        value += sizes * np.log(m / a)
        return -float(counts @ value - seen * np.log(-np.expm1(-a * rest)))

    average = float(sizes @ counts) / seen
    starts = [np.array([np.log(a), np.log(average)]) for a in (0.01, 0.3, 10.0)]
    a, m = _shape_and_mean(_best(negative, starts))
    is_seen = -np.expm1(-a * np.log1p(m / a))
    return NegativeBinomial(shape=a, mean=m / fraction, n_combinations=float(seen / is_seen))


def _shape_and_mean(point: Floats) -> tuple[float, float]:
    a, m = np.exp(np.clip(point, -25.0, 25.0))
    return float(min(a, MOST_SHAPE)), float(m)


def _best(negative: Callable[[Floats], float], starts: list[Floats]) -> Floats:
    """The lowest of several descents; the likelihood may have more than one valley."""
    tries = [
        minimize(
            negative, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000}
        )
        for start in starts
    ]
    found: Floats = min(tries, key=lambda one: float(one.fun)).x
    return found
