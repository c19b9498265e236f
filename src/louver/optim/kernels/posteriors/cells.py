"""Counts of single cells: a negative binomial whose mean is known up to a factor, seen through normal noise.

The mean is expected x factor, the factor one of a list with given weights (zero among them: the cell is empty). A
negative binomial with mean m and mixing variation c has variance m + (c m)^2; sums over counts are exact up to `LARGE`, beyond
which count and noise are taken as normal.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["LARGE", "draws_inplace", "likelihoods_inplace", "posteriors_inplace"]

LARGE = 200.0  # mean above which a count is treated as normal
REACH = 12.0  # standard deviations of noise covered by the sum
WIDTH = 9.0  # standard deviations of the count covered by the sum


@inner
def _noise_inplace(value, variance, noise):
    """Density of normal noise, up to a factor, for counts 0, 1, ... observed as `value`: 1 at the nearest count; and how many matter."""
    nearest = max(value, 0.0)
    last = min(noise.shape[0], int(nearest + REACH * np.sqrt(variance)) + 2)
    for k in range(last):
        noise[k] = np.exp(((value - nearest) ** 2 - (value - k) ** 2) / (2.0 * variance))
    return last


@inner
def _moments(mean, variation, value, variance, noise, n_noise):
    """Sums of NB(k) noise(value - k) k^q for q = 0, 1, 2."""
    if mean == 0.0:
        return noise[0], 0.0, 0.0
    spread = mean + (variation * mean) ** 2
    if mean > LARGE:
        both = spread + variance
        shift = min(value, 0.0) ** 2 / (2.0 * variance)
        density = np.sqrt(variance / both) * np.exp(shift - (value - mean) ** 2 / (2.0 * both))
        first = max(mean + spread / both * (value - mean), 0.0)
        return density, density * first, density * (first * first + spread * variance / both)
    size = 1.0 / (variation * variation)
    step = mean / (size + mean)
    p = np.exp(-size * np.log1p(mean / size))
    last = min(n_noise, int(mean + WIDTH * np.sqrt(spread)) + 10)
    zeroth, first, second = 0.0, 0.0, 0.0
    for k in range(last):
        density = p * noise[k]
        zeroth += density
        first += density * k
        second += density * k * k
        p *= step * (size + k) / (k + 1.0)
    return zeroth, first, second


@kernel
def likelihoods_inplace(expected, values, variances, factors, variation, out):
    """out[i, j]: likelihood of value i where its mean is expected[i] x factors[j], the largest of a row being 1."""
    noise = np.empty(int(LARGE + WIDTH * np.sqrt(LARGE + (variation * LARGE) ** 2)) + 10)
    for i in range(values.shape[0]):
        n_noise = _noise_inplace(values[i], variances[i], noise)
        largest = 1e-290
        for j in range(factors.shape[0]):
            out[i, j] = _moments(
                expected[i] * factors[j], variation, values[i], variances[i], noise, n_noise
            )[0]
            largest = max(largest, out[i, j])
        for j in range(factors.shape[0]):
            out[i, j] /= largest


@kernel
def posteriors_inplace(expected, values, variances, factors, variation, weights, kind, mean, variance):
    """Posterior mean and variance of every count; entry i has the factor weights weights[kind[i]]."""
    noise = np.empty(int(LARGE + WIDTH * np.sqrt(LARGE + (variation * LARGE) ** 2)) + 10)
    for i in range(values.shape[0]):
        n_noise = _noise_inplace(values[i], variances[i], noise)
        zeroth, first, second = 0.0, 0.0, 0.0
        for j in range(factors.shape[0]):
            density, one, two = _moments(
                expected[i] * factors[j], variation, values[i], variances[i], noise, n_noise
            )
            zeroth += weights[kind[i], j] * density
            first += weights[kind[i], j] * one
            second += weights[kind[i], j] * two
        if zeroth < 1e-280:  # nothing explains the value: take it as it is
            mean[i], variance[i] = max(values[i], 0.0), variances[i]
        else:
            mean[i] = first / zeroth
            variance[i] = max(second / zeroth - mean[i] * mean[i], 0.0)


@kernel
def draws_inplace(
    expected, values, variances, factors, variation, weights, kind, uniform, normal, drawn, variance
):
    """One draw of the count from every posterior: a factor is drawn, then the count given it; and the resulting variance.

    `uniform` decides the factor and, as far as it is left, the count; `normal` is the same in standard deviations, for counts that
    are taken as normal.
    """
    noise = np.empty(int(LARGE + WIDTH * np.sqrt(LARGE + (variation * LARGE) ** 2)) + 10)
    chance = np.empty(factors.shape[0])
    for i in range(values.shape[0]):
        n_noise = _noise_inplace(values[i], variances[i], noise)
        summed = 0.0
        for j in range(factors.shape[0]):
            mean = expected[i] * factors[j]
            density = _moments(mean, variation, values[i], variances[i], noise, n_noise)[0]
            chance[j] = weights[kind[i], j] * density
            summed += chance[j]
        if summed < 1e-280:  # nothing explains the value: take it as it is
            drawn[i], variance[i] = max(values[i] + np.sqrt(variances[i]) * normal[i], 0.0), variances[i]
            continue
        left, j = uniform[i] * summed, 0
        while j < factors.shape[0] - 1 and (left >= chance[j] or chance[j] == 0.0):
            left -= chance[j]
            j += 1
        mean = expected[i] * factors[j]
        density, one, two = _moments(mean, variation, values[i], variances[i], noise, n_noise)
        one, two = one / density, two / density
        variance[i] = max(two - one * one, 0.0)
        if mean == 0.0:
            drawn[i] = 0.0
        elif mean > LARGE:
            drawn[i] = max(one + np.sqrt(variance[i]) * normal[i], 0.0)
        else:
            drawn[i] = _count(mean, variation, noise, n_noise, min(left / chance[j], 1.0) * density)


@inner
def _count(mean, variation, noise, n_noise, left):
    """The first count up to which NB(k) noise(value - k) adds up to more than `left`."""
    size = 1.0 / (variation * variation)
    step = mean / (size + mean)
    p = np.exp(-size * np.log1p(mean / size))
    last = min(n_noise, int(mean + WIDTH * np.sqrt(mean + (variation * mean) ** 2)) + 10)
    for k in range(last):
        left -= p * noise[k]
        if left < 0.0:
            return k
        p *= step * (size + k) / (k + 1.0)
    return last - 1
