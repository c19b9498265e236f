"""Posteriors of noisy counts by enumeration of every size, factor and count."""

from __future__ import annotations

from itertools import product
from math import exp, lgamma, log, log1p

MOST = 420


def negative_binomial(count, mean, variation):
    """Chance of a count with variance mean + (variation x mean)^2."""
    if mean == 0:
        return float(count == 0)
    size = 1 / variation**2
    told = lgamma(count + size) - lgamma(size) - lgamma(count + 1)
    return exp(told - size * log1p(mean / size) + count * log(mean / (size + mean)))


def cell_posterior(expected, factors, weights, variation, density):
    """Mean and variance of a count seen through noise; density(k) is the chance of what is seen given the count k."""
    joint = [
        sum(w * negative_binomial(k, expected * f, variation) for f, w in zip(factors, weights, strict=True))
        * density(k)
        for k in range(MOST)
    ]
    mean = sum(k * p for k, p in enumerate(joint)) / sum(joint)
    return mean, sum(k * k * p for k, p in enumerate(joint)) / sum(joint) - mean**2


def group_posterior(cells, factors, factor_weights, departures, departure_weights, variation, density):
    """Of the counts of a group: chances of the factors, means, variances, the variance of the sum, and how often each departure.

    `cells` lists what is expected and seen of each; every choice of a factor and of a departure for each cell is enumerated.
    `departure_weights` has one list for each cell.
    """
    n = len(cells)
    scales = {f * d for f in factors for d in departures}
    given = [{s: _given([cell], s, variation, density) for s in scales} for cell in cells]
    chances, mass, first, second, whole = [0.0] * len(factors), 0.0, [0.0] * n, [0.0] * n, 0.0
    departed = [[0.0] * len(departures) for _ in cells]
    for i, factor in enumerate(factors):
        for chosen in product(range(len(departures)), repeat=n):
            found = [given[c][factor * departures[d]] for c, d in enumerate(chosen)]
            weight = factor_weights[i]
            for c, (likelihood, _, _) in enumerate(found):
                weight *= departure_weights[c][chosen[c]] * likelihood
            mass += weight
            chances[i] += weight
            means = [one[1][0] for one in found]
            squares = [one[2][0] for one in found]
            for c in range(n):
                first[c] += weight * means[c]
                second[c] += weight * squares[c]
                departed[c][chosen[c]] += weight * (factor > 0)
            apart = sum(square - mean**2 for mean, square in zip(means, squares, strict=True))
            whole += weight * (sum(means) ** 2 + apart)
    mean = [x / mass for x in first]
    variance = [x / mass - m**2 for x, m in zip(second, mean, strict=True)]
    of_sum = whole / mass - sum(mean) ** 2
    return [x / mass for x in chances], mean, variance, of_sum, [[x / mass for x in own] for own in departed]


def leaf_posterior(groups, sizes, size_weights, factors, factor_weights, variation, density):
    """Means and variances of the counts of one leaf, group by group; and the weights of its sizes.

    `groups` lists for each group what its cells are expected to hold and what was seen; density(seen, k) is the
    chance of the noise.
    """
    weights, means, squares = [], [], []
    for size, prior in zip(sizes, size_weights, strict=True):
        likelihood, own_means, own_squares = prior, [], []
        for cells in groups:
            found = [_given(cells, size * f, variation, density) for f in factors]
            total = sum(w * one[0] for w, one in zip(factor_weights, found, strict=True))
            likelihood *= total
            for i, power in product(range(len(cells)), (1, 2)):
                value = (
                    sum(w * one[0] * one[power][i] for w, one in zip(factor_weights, found, strict=True))
                    / total
                )
                (own_means if power == 1 else own_squares).append(value)
        weights.append(likelihood)
        means.append(own_means)
        squares.append(own_squares)
    weights = [weight / sum(weights) for weight in weights]
    mean = [sum(w * m for w, m in zip(weights, column, strict=True)) for column in zip(*means, strict=True)]
    square = [
        sum(w * m for w, m in zip(weights, column, strict=True)) for column in zip(*squares, strict=True)
    ]
    return mean, [s - m * m for s, m in zip(square, mean, strict=True)], weights


def _given(cells, scale, variation, density):
    """Likelihood of what was seen of a group at one scale, and two moments of every count."""
    likelihood, first, second = 1.0, [], []
    for expected, seen in cells:
        joint = [negative_binomial(k, expected * scale, variation) * density(seen, k) for k in range(MOST)]
        likelihood *= sum(joint)
        first.append(sum(k * p for k, p in enumerate(joint)) / sum(joint))
        second.append(sum(k * k * p for k, p in enumerate(joint)) / sum(joint))
    return likelihood, first, second
