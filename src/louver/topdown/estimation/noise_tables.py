"""The likelihood of a count with known mean, given a noisy count: tables over noisy values and means.

The count is negative binomial, the noise discrete Laplace or Gaussian. All of this is public.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, xlogy

from louver._arrays import Floats, Ints
from louver.optim.kernels.posteriors.leaves import Seen
from louver.privacy.distributions import DiscreteGaussian, DiscreteLaplace

__all__ = ["STEP", "column_of", "tabulate_noise"]

STEP = 0.1
"""Step between the logarithms of two means."""

LOWEST_MEAN = -7.0  # logarithm
LARGEST_MEAN = 200.0  # beyond this, counts and noise are treated as normal
WIDTH = 10.0  # standard deviations of the noise that the tables span, and of the largest counts
MOST_ROWS = 2_000  # of noisy values on either side
LEAST_DENSITY = 1e-140
OTHER = 1e-10  # of Laplace noise mixed into Gaussian noise, whose tails would rule everything out


def tabulate_noise(variance: float, noise: str, variation: float) -> Seen:
    """Tables for noise of this name and variance, and counts whose means vary by `variation` beyond Poisson's.

    Notes
    -----
    **Cost**: rows x columns x counts, a fifth of a second.
    """
    logs = np.arange(LOWEST_MEAN, np.log(LARGEST_MEAN), STEP)
    means = np.exp(logs)
    highest = int(LARGEST_MEAN + WIDTH * np.sqrt(LARGEST_MEAN + (variation * LARGEST_MEAN) ** 2))
    counts = np.arange(highest + 1)
    reach = int(min(WIDTH * np.sqrt(variance) + 1, MOST_ROWS))
    values = np.arange(-reach, highest + reach + 1)
    drawn = PROBABILITIES[noise](values[:, None] - counts, variance)
    chances = _negative_binomial(counts, means[:, None], variation)
    zeroth, first, second = (drawn @ (chances * counts**power).T for power in (0, 1, 2))
    lost = zeroth < LEAST_DENSITY
    safe = np.where(lost, 1.0, zeroth)
    mean = np.where(lost, means, first / safe)
    square = np.where(lost, means + means**2, second / safe)
    empty = np.zeros((len(values), 1))
    return Seen(
        lowest=-reach,
        first=float(logs[0]),
        step=STEP,
        variation=variation,
        noise_variance=variance,
        density=np.log(np.maximum(np.hstack([drawn[:, :1], zeroth]), LEAST_DENSITY)),
        mean=np.hstack([empty, mean]),
        square=np.hstack([empty, np.maximum(square, mean**2)]),
    )


def column_of(expected: Floats, seen: Seen) -> Ints:
    """Column of a mean, which may lie at any distance beyond the tables; far below them where the mean is zero."""
    log = np.log(np.maximum(expected, 1e-12))
    place = np.rint((log - seen.first) / seen.step).astype(np.int64) + 1
    return np.where(expected > 0, place, -(1 << 40))


def _laplace(away: Ints, variance: float) -> Floats:
    """Probability of discrete Laplace noise of this size."""
    both = 1.0 + 1.0 / variance
    ratio = both - np.sqrt(both**2 - 1.0)  # of one step to the next, from the variance 2 r / (1 - r)^2
    return np.asarray((1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(away).astype(np.float64))


def _gaussian(away: Ints, variance: float) -> Floats:
    """Probability of discrete Gaussian noise of this size, with a trace of Laplace noise."""
    gaussian = np.exp(-(away.astype(np.float64) ** 2) / (2.0 * variance)) / np.sqrt(2.0 * np.pi * variance)
    return np.asarray((1.0 - OTHER) * gaussian + OTHER * _laplace(away, variance))


PROBABILITIES = {DiscreteLaplace.name: _laplace, DiscreteGaussian.name: _gaussian}
"""Probability of each distance from the true count, by the name of the noise."""


def _negative_binomial(counts: Ints, means: Floats, variation: float) -> Floats:
    """Probabilities of counts with variance mean + (variation x mean)^2."""
    size = 1.0 / variation**2
    logs = gammaln(counts + size) - gammaln(size) - gammaln(counts + 1.0)
    logs = logs - size * np.log1p(means / size) + xlogy(counts, means / (size + means))
    return np.asarray(np.exp(logs))
