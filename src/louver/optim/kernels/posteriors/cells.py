"""Counts of cells in groups: negative binomials whose means are known up to factors, seen through normal noise.

The mean is expected x factor x departure: the factor is common to the cells of a group, the departure a cell's own. Each is one of a list
with given weights, zero (nobody) first. Both lists have the same steps on a logarithmic scale, so that their products form one list, too,
the scales: zero, then the product of the first factor and the first departure above zero, and so on. A negative binomial with mean m and
mixing variation c has variance m + (c m)^2; sums over counts are exact up to `LARGE`, beyond which count and noise are treated as normal.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["LARGE", "draws_inplace", "expectations_inplace", "likelihoods_inplace", "posteriors_inplace"]

LARGE = 200.0  # mean above which a count is treated as normal
REACH = 12.0  # standard deviations of noise covered by the sum
WIDTH = 9.0  # standard deviations of the count covered by the sum
NOTHING = 1e-280  # likelihood below which a value counts as unexplained
DOUBT = (
    1e-60  # likelihood of any value at all, so that two cells that contradict each other leave a posterior
)


@inner
def _n_counts(variation):
    """How many counts a sum may cover."""
    return int(LARGE + WIDTH * np.sqrt(LARGE + (variation * LARGE) ** 2)) + 10


@inner
def _noise_inplace(value, variance, noise):
    """Density of normal noise, up to a factor, for counts 0, 1, ... seen as `value` (1 at the nearest count), and how many matter."""
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
def likelihoods_inplace(expected, values, variances, scales, variation, out):
    """out[i, j]: likelihood of value i where its mean is expected[i] x scales[j], the largest of a row being 1."""
    noise = np.empty(_n_counts(variation))
    table = np.empty((1, scales.shape[0], 3))
    for i in range(values.shape[0]):
        _table_inplace(expected, values, variances, scales, variation, i, i + 1, noise, table)
        for j in range(scales.shape[0]):
            out[i, j] = table[0, j, 0]


@inner
def _table_inplace(expected, values, variances, scales, variation, first, last, noise, table):
    """table[i, j, q]: sums of count^q x likelihood at scale j, for the cells of a group; the largest likelihood of a cell is 1.

    If nothing explains a value, all likelihoods of its cell are zero.
    """
    for i in range(first, last):
        n_noise = _noise_inplace(values[i], variances[i], noise)
        largest = 0.0
        for j in range(scales.shape[0]):
            density, one, two = _moments(
                expected[i] * scales[j], variation, values[i], variances[i], noise, n_noise
            )
            table[i - first, j, 0], table[i - first, j, 1], table[i - first, j, 2] = density, one, two
            largest = max(largest, density)
        for j in range(scales.shape[0]):
            for q in range(3):
                table[i - first, j, q] = table[i - first, j, q] / largest if largest > NOTHING else 0.0


@inner
def _scale(factor, departure):
    """Place of the product of a factor and a departure in the list of scales."""
    return 0 if factor == 0 or departure == 0 else factor + departure - 1


@inner
def _factors_inplace(likelihood, factor_weights, departure_weights, kind, first, last, given, chance):
    """given[i, f]: likelihood of cell i of a group given its factor; chance[f]: posterior of the factors, from those of all its cells.

    `likelihood[i, j]` is that of cell first + i at scale j.
    """
    for f in range(factor_weights.shape[0]):
        chance[f] = factor_weights[f]
    for i in range(last - first):
        own, largest = kind[first + i], 0.0
        for f in range(factor_weights.shape[0]):
            given[i, f] = 0.0
            for d in range(departure_weights.shape[1]):
                given[i, f] += departure_weights[own, d] * likelihood[i, _scale(f, d)]
            chance[f] *= given[i, f] + DOUBT
            largest = max(largest, chance[f])
        for f in range(factor_weights.shape[0]):
            chance[f] /= largest
    summed = np.sum(chance)
    for f in range(factor_weights.shape[0]):
        chance[f] /= summed


@kernel
def expectations_inplace(
    start, likelihood, factor_weights, factor_kind, departure_weights, kind, factors, departures
):
    """Add the expected numbers of each factor and each departure, by class, from likelihoods (cells, scales); one step of EM."""
    n_factors, n_departures = factor_weights.shape[1], departure_weights.shape[1]
    given, chance = np.empty((_longest(start), n_factors)), np.empty(n_factors)
    for g in range(start.shape[0] - 1):
        first, last = start[g], start[g + 1]
        of_group = likelihood[first:last]
        _factors_inplace(
            of_group, factor_weights[factor_kind[g]], departure_weights, kind, first, last, given, chance
        )
        for f in range(n_factors):
            factors[factor_kind[g], f] += chance[f]
            for i in range(last - first):
                if f > 0 and given[i, f] > 0.0:  # if the factor is zero, nothing is learnt about departures
                    own = kind[first + i]
                    for d in range(n_departures):
                        joint = departure_weights[own, d] * of_group[i, _scale(f, d)]
                        departures[own, d] += chance[f] * joint / given[i, f]


@inner
def _longest(start):
    """Greatest number of cells in a group."""
    longest = 1
    for g in range(start.shape[0] - 1):
        longest = max(longest, start[g + 1] - start[g])
    return longest


@kernel
def posteriors_inplace(
    start, expected, values, variances, scales, variation, factor_weights, factor_kind, departure_weights, kind, mean, variance
):  # fmt: skip
    """Posterior mean and variance of every count; group g has the cells start[g] to start[g + 1].

    Errors of the counts of a group are correlated. Their variances are multiplied by one number, so that they add up to the variance of
    their sum.
    """
    n_factors, longest = factor_weights.shape[1], _longest(start)
    table, noise = np.empty((longest, scales.shape[0], 3)), np.empty(_n_counts(variation))
    given, chance = np.empty((longest, n_factors)), np.empty(n_factors)
    sums = np.empty((n_factors, 2))
    for g in range(start.shape[0] - 1):
        first, last = start[g], start[g + 1]
        _table_inplace(expected, values, variances, scales, variation, first, last, noise, table)
        _factors_inplace(
            table[:, :, 0],
            factor_weights[factor_kind[g]],
            departure_weights,
            kind,
            first,
            last,
            given,
            chance,
        )
        for f in range(n_factors):
            sums[f, 0], sums[f, 1] = 0.0, 0.0
        apart = 0.0
        for i in range(first, last):
            zeroth, one, two = 0.0, 0.0, 0.0
            for f in range(n_factors):
                if given[i - first, f] > DOUBT:
                    own, square = 0.0, 0.0
                    for d in range(departure_weights.shape[1]):
                        weight = departure_weights[kind[i], d] / given[i - first, f]
                        own += weight * table[i - first, _scale(f, d), 1]
                        square += weight * table[i - first, _scale(f, d), 2]
                    zeroth += chance[f]
                    one += chance[f] * own
                    two += chance[f] * square
                    sums[f, 0] += own
                    sums[f, 1] += square - own * own
            if zeroth < DOUBT:  # nothing explains the value: take it as it is
                mean[i], variance[i] = max(values[i], 0.0), variances[i]
            else:
                mean[i] = one / zeroth
                variance[i] = max(two / zeroth - mean[i] * mean[i], 0.0)
            apart += variance[i]
        one, two = 0.0, 0.0
        for f in range(n_factors):
            one += chance[f] * sums[f, 0]
            two += chance[f] * (sums[f, 0] ** 2 + sums[f, 1])
        ratio = max(two - one * one, apart) / max(apart, 1e-9)
        for i in range(first, last):
            variance[i] *= ratio


@kernel
def draws_inplace(
    start, expected, values, variances, scales, variation, factor_weights, factor_kind, departure_weights, kind, by_group,
    by_departure, uniform, normal, drawn, variance,
):  # fmt: skip
    """One draw of every count: a factor for each group, a departure for each cell, then the count; and the resulting variance.

    `by_group`, `by_departure` and `uniform` are the numbers between 0 and 1 that decide these draws; `normal` is `uniform` in standard
    deviations, for counts that are treated as normal.
    """
    n_factors, n_departures, longest = factor_weights.shape[1], departure_weights.shape[1], _longest(start)
    table, noise = np.empty((longest, scales.shape[0], 3)), np.empty(_n_counts(variation))
    given, chance, departures = np.empty((longest, n_factors)), np.empty(n_factors), np.empty(n_departures)
    for g in range(start.shape[0] - 1):
        first, last = start[g], start[g + 1]
        _table_inplace(expected, values, variances, scales, variation, first, last, noise, table)
        _factors_inplace(
            table[:, :, 0],
            factor_weights[factor_kind[g]],
            departure_weights,
            kind,
            first,
            last,
            given,
            chance,
        )
        f = _drawn(chance, by_group[g])
        for i in range(first, last):
            if given[i - first, f] <= DOUBT:  # nothing explains the value: take it as it is
                drawn[i] = max(values[i] + np.sqrt(variances[i]) * normal[i], 0.0)
                variance[i] = variances[i]
                continue
            for d in range(n_departures):
                departures[d] = departure_weights[kind[i], d] * table[i - first, _scale(f, d), 0]
            place = _scale(f, _drawn(departures, by_departure[i]))
            one = table[i - first, place, 1] / table[i - first, place, 0]
            variance[i] = max(table[i - first, place, 2] / table[i - first, place, 0] - one * one, 0.0)
            mean = expected[i] * scales[place]
            if mean == 0.0:
                drawn[i] = 0.0
            elif mean > LARGE:
                drawn[i] = max(one + np.sqrt(variance[i]) * normal[i], 0.0)
            else:
                n_noise = _noise_inplace(values[i], variances[i], noise)
                density = _moments(mean, variation, values[i], variances[i], noise, n_noise)[0]
                drawn[i] = _count(mean, variation, noise, n_noise, uniform[i] * density)


@inner
def _drawn(chance, uniform):
    """The first place up to which chances add up to more than this part of their sum."""
    left = uniform * np.sum(chance)
    for place in range(chance.shape[0]):
        left -= chance[place]
        if left < 0.0:
            return place
    return np.argmax(chance)


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
