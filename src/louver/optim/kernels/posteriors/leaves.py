"""Counts of whole leaves: an unknown size, shared by all cells, and an unknown factor, shared by the cells of a group.

The count of cell i in a leaf is negative binomial with mean size x factor x e^base_i, seen through noise. Sizes and factors
are lists of exponents with given weights, the first of each being zero: the leaf, or the group, is empty. For every
size the groups are independent; knowledge about the total is included as if the leaf's counts were normal.

What a noisy count says about a count of a given mean is looked up in tables: column 0 for a mean of zero, column t
for e^(first + step (t - 1)). Beyond the last column, count and noise are treated as normal.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["Seen", "draw_leaves_inplace", "leaves_inplace", "totals_inplace"]

N_POINTS = 40  # points of a leaf's distribution of totals
MOST = 30.0  # largest distance from a normal mean, in standard deviations, that is distinguished


class Seen(NamedTuple):
    """Tables (noisy values x means) of the log density of the noisy value and of two moments of the count."""

    lowest: int
    first: float
    step: float
    variation: float
    noise_variance: float
    density: np.ndarray
    mean: np.ndarray
    square: np.ndarray


@inner
def _look_up(seen, value, place):
    """Log density, mean and mean square of a count whose mean stands in column `place`, seen as `value`."""
    if place < seen.density.shape[1]:
        y = min(max(int(value) - seen.lowest, 0), seen.density.shape[0] - 1)
        return seen.density[y, place], seen.mean[y, place], seen.square[y, place]
    mean = np.exp(seen.first + seen.step * (place - 1))
    spread = mean + (seen.variation * mean) ** 2
    both = spread + seen.noise_variance
    first = max(mean + spread / both * (value - mean), 0.0)
    away = (value - mean) ** 2 / both
    density = -0.5 * (min(away, 600.0) + np.log(2.0 * np.pi * both))
    return density, first, first * first + spread * seen.noise_variance / both


@inner
def _group_inplace(seen, values, place, first, last, offsets, log_weight, posterior, moments):
    """One group of cells (first to last) at one size: moments of each cell and of their sum, and the log likelihood.

    `offsets` are the columns that each factor adds, the first meaning zero; `posterior` gets the factors' weights;
    moments is (cells, 2). Returns the log likelihood, and mean and variance of the sum.
    """
    n = offsets.shape[0]
    highest = -np.inf
    for j in range(n):
        total = log_weight[j]
        for i in range(first, last):
            column = 0 if j == 0 or place[i] < -(1 << 30) else max(place[i] + offsets[j], 1)
            total += _look_up(seen, values[i], column)[0]
        posterior[j] = total
        highest = max(highest, total)
    summed = 0.0
    for j in range(n):
        posterior[j] = np.exp(posterior[j] - highest)
        summed += posterior[j]
    for i in range(first, last):
        moments[i, 0], moments[i, 1] = 0.0, 0.0
    sum_mean, sum_square = 0.0, 0.0
    for j in range(n):
        posterior[j] /= summed
        if posterior[j] < 1e-9:
            continue
        own_mean, own_variance = 0.0, 0.0
        for i in range(first, last):
            column = 0 if j == 0 or place[i] < -(1 << 30) else max(place[i] + offsets[j], 1)
            _, mean, square = _look_up(seen, values[i], column)
            moments[i, 0] += posterior[j] * mean
            moments[i, 1] += posterior[j] * square
            own_mean += mean
            own_variance += square - mean * mean
        sum_mean += posterior[j] * own_mean
        sum_square += posterior[j] * (own_variance + own_mean * own_mean)
    return highest + np.log(summed), sum_mean, max(sum_square - sum_mean * sum_mean, 0.0)


@inner
def _longest(start):
    """The length of the longest run."""
    longest = 0
    for i in range(start.shape[0] - 1):
        longest = max(longest, start[i + 1] - start[i])
    return longest


@kernel
def leaves_inplace(
    seen, start, group_start, values, place, kind, size_offsets, size_weight, size_kind, factor_offsets,
    factor_weight, total, total_variance, mean, variance, sizes, size_mean, size_variance, factors,
):  # fmt: skip
    """Posterior of every leaf.

    Leaf c has the cells start[c] to start[c + 1]; `values` and `place` (column of e^base) have one entry per cell,
    groups are runs of cells between `group_start`, and kind[g] names the factor weights of group g. size_weight and
    factor_weight hold logarithms. total_variance < 0 means that the total was not measured. Filled: mean and variance of
    every cell; sizes (leaves, sizes) with size_mean and size_variance, the mixture of totals; factors (kinds,
    factors), the weights of all groups added up.
    """
    n_sizes, n_factors = size_offsets.shape[0], factor_offsets.shape[0]
    widest = _longest(start)
    moments, all_moments = np.empty((widest, 2)), np.empty((n_sizes, widest, 2))
    moved = np.empty(widest, dtype=np.int64)
    posterior = np.empty(n_factors)
    most = _longest(group_start)
    kept = np.empty((n_sizes, max(widest, most) + 1, n_factors))
    g = 0
    for c in range(start.shape[0] - 1):
        first, n = start[c], start[c + 1] - start[c]
        g_first = g
        highest = -np.inf
        for s in range(n_sizes):
            for i in range(n):
                is_none = (s == 0 and n_sizes > 1) or place[first + i] < -(1 << 30)
                moved[i] = -(1 << 40) if is_none else place[first + i] + size_offsets[s]
            g = g_first
            log_likelihood, total_mean, total_spread = size_weight[size_kind[c], s], 0.0, 0.0
            while g < group_start.shape[0] - 1 and group_start[g] < start[c + 1]:
                like, one, two = _group_inplace(
                    seen, values[first : first + n], moved, group_start[g] - first, group_start[g + 1] - first,
                    factor_offsets, factor_weight[kind[g]], posterior, moments,
                )  # fmt: skip
                log_likelihood += like
                total_mean += one
                total_spread += two
                for j in range(n_factors):
                    kept[s, g - g_first, j] = posterior[j]
                g += 1
            gain, away = 0.0, 0.0
            if total_variance >= 0.0:
                both = total_spread + total_variance
                away = total[c] - total_mean
                log_likelihood += -0.5 * (min(away * away / both, 600.0) + np.log(both))
                gain = 1.0 / both
            for i in range(n):
                own = max(moments[i, 1] - moments[i, 0] * moments[i, 0], 0.0)
                shifted = max(moments[i, 0] + own * gain * away, 0.0)
                all_moments[s, i, 0] = shifted
                all_moments[s, i, 1] = shifted * shifted + max(own - own * own * gain, 0.0)
            sizes[c, s] = log_likelihood
            size_mean[c, s] = max(total_mean + total_spread * gain * away, 0.0)
            size_variance[c, s] = max(total_spread - total_spread * total_spread * gain, 0.0)
            highest = max(highest, log_likelihood)
        summed = 0.0
        for s in range(n_sizes):
            sizes[c, s] = np.exp(sizes[c, s] - highest)
            summed += sizes[c, s]
        for i in range(n):
            mean[first + i], variance[first + i] = 0.0, 0.0
        for s in range(n_sizes):
            sizes[c, s] /= summed
            for i in range(n):
                mean[first + i] += sizes[c, s] * all_moments[s, i, 0]
                variance[first + i] += sizes[c, s] * all_moments[s, i, 1]
            if s > 0 or n_sizes == 1:
                for own in range(g_first, g):
                    for j in range(n_factors):
                        factors[kind[own], j] += sizes[c, s] * kept[s, own - g_first, j]
        for i in range(n):
            variance[first + i] = max(variance[first + i] - mean[first + i] ** 2, 0.0)


@inner
def _drawn(seen, value, place, uniform, normal):
    """A draw of one count whose mean stands in column `place`, seen as `value`, and the variance of such counts."""
    if place == 0:
        return 0.0, 0.0
    density, mean, square = _look_up(seen, value, place)
    variance = max(square - mean * mean, 0.0)
    if place >= seen.density.shape[1]:
        return max(mean + np.sqrt(variance) * normal, 0.0), variance
    y = min(max(int(value) - seen.lowest, 0), seen.density.shape[0] - 1)
    expected = np.exp(seen.first + seen.step * (place - 1))
    size = 1.0 / (seen.variation * seen.variation)
    step = expected / (size + expected)
    chance = np.exp(-size * np.log1p(expected / size))
    left = uniform * np.exp(density)
    for k in range(seen.density.shape[0]):
        left -= chance * np.exp(seen.density[max(y - k, 0), 0])
        if left < 0.0:
            return float(k), variance
        chance *= step * (size + k) / (k + 1.0)
        if chance < 1e-300 and k > expected:
            break
    return mean, variance


@kernel
def draw_leaves_inplace(
    seen, start, group_start, values, place, kind, offset, factor_offsets, factor_weight, uniform_group, uniform, normal,
    drawn, variance,
):  # fmt: skip
    """Counts of every leaf drawn given its size: a factor for each group, then the counts; and the variances they then have.

    offset[c] gives the size of leaf c (very far below zero if it is empty); the others are as for `leaves_inplace`; uniform_group has one
    entry per group, uniform and normal (the same in standard deviations) one per cell.
    """
    n_factors = factor_offsets.shape[0]
    widest = _longest(start)
    moments, moved, posterior = np.empty((widest, 2)), np.empty(widest, dtype=np.int64), np.empty(n_factors)
    g = 0
    for c in range(start.shape[0] - 1):
        first, n = start[c], start[c + 1] - start[c]
        for i in range(n):
            is_none = offset[c] < -(1 << 30) or place[first + i] < -(1 << 30)
            moved[i] = -(1 << 40) if is_none else place[first + i] + offset[c]
        while g < group_start.shape[0] - 1 and group_start[g] < start[c + 1]:
            begin, end = group_start[g] - first, group_start[g + 1] - first
            _group_inplace(
                seen, values[first : first + n], moved, begin, end, factor_offsets, factor_weight[kind[g]], posterior, moments
            )  # fmt: skip
            left, j = uniform_group[g], 0
            while j < n_factors - 1 and left >= posterior[j]:
                left -= posterior[j]
                j += 1
            for i in range(begin, end):
                column = 0 if j == 0 or moved[i] < -(1 << 30) else max(moved[i] + factor_offsets[j], 1)
                drawn[first + i], variance[first + i] = _drawn(
                    seen, values[first + i], column, uniform[first + i], normal[first + i]
                )
            g += 1


@inner
def _quantile(points, cumulative, q):
    """Where a distribution given at some points reaches q, linearly between them; 0 at or below the first."""
    if q <= cumulative[0]:
        return points[0]
    low, high = 0, points.shape[0] - 1
    if q >= cumulative[high]:
        return points[high]
    while high - low > 1:
        middle = (low + high) // 2
        if cumulative[middle] < q:
            low = middle
        else:
            high = middle
    rise = cumulative[high] - cumulative[low]
    return points[low] + (points[high] - points[low]) * ((q - cumulative[low]) / rise if rise > 0.0 else 1.0)


@inner
def _up_to(point, sizes, size_mean, size_variance):
    """Chance of a count of at most `point` under a mixture of normals."""
    below = 0.0
    for s in range(sizes.shape[0]):
        if sizes[s] > 1e-9:
            spread = math.sqrt(size_variance[s]) + 1e-3
            x = (point + 0.5 - size_mean[s]) / spread
            below += sizes[s] * 0.5 * math.erfc(-min(max(x, -MOST), MOST) / math.sqrt(2.0))
    return below


@inner
def _at_odds(q, odds):
    """The quantile whose odds are a given multiple of those of q."""
    return q if odds == 1.0 else q * odds / (1.0 - q + q * odds)


@kernel
def totals_inplace(child_start, parent_total, sizes, size_mean, size_variance, odds, lower, upper, totals):
    """Totals of leaves that add up to their parent: all at one quantile of their posteriors, or at given odds relative to it.

    `sizes`, `size_mean` and `size_variance` are (leaves, sizes): mixtures of normals, cut to lower <= total <= upper, which are whole
    numbers of zero or more, or infinite. With the odds u / (1 - u) of uniform u, totals are drawn from the posteriors, and moved together
    as far as they must to add up.
    """
    widest = _longest(child_start)
    points, cumulative = np.empty((widest, N_POINTS)), np.empty((widest, N_POINTS))
    cut = np.empty((widest, 2))  # posterior mass below the lower bound, and up to the upper one
    for f in range(child_start.shape[0] - 1):
        first, m = child_start[f], child_start[f + 1] - child_start[f]
        for c in range(m):
            end = 1.0
            for s in range(sizes.shape[1]):
                if sizes[first + c, s] > 1e-7:
                    end = max(end, size_mean[first + c, s] + 6.0 * math.sqrt(size_variance[first + c, s]))
            for t in range(N_POINTS):
                points[c, t] = end * (t / (N_POINTS - 1.0)) ** 2
                cumulative[c, t] = _up_to(
                    points[c, t], sizes[first + c], size_mean[first + c], size_variance[first + c]
                )
            cut[c, 0], cut[c, 1] = 0.0, 1.0
            if lower[first + c] > 0.0:
                cut[c, 0] = _up_to(
                    lower[first + c] - 1.0, sizes[first + c], size_mean[first + c], size_variance[first + c]
                )
            if upper[first + c] < np.inf:
                cut[c, 1] = _up_to(
                    upper[first + c], sizes[first + c], size_mean[first + c], size_variance[first + c]
                )
        low, high = 0.0, 1.0
        for _ in range(60):
            q = 0.5 * (low + high)
            held = 0.0
            for c in range(m):
                q_own = cut[c, 0] + _at_odds(q, odds[first + c]) * (cut[c, 1] - cut[c, 0])
                held += min(
                    max(_quantile(points[c], cumulative[c], q_own), lower[first + c]), upper[first + c]
                )
            if held < parent_total[f]:
                low = q
            else:
                high = q
        held = 0.0
        for c in range(m):
            q_own = cut[c, 0] + _at_odds(0.5 * (low + high), odds[first + c]) * (cut[c, 1] - cut[c, 0])
            totals[first + c] = min(
                max(_quantile(points[c], cumulative[c], q_own), lower[first + c]), upper[first + c]
            )
            held += totals[first + c]
        for c in range(m):  # what remains after the last step, or lies beyond all likely totals
            totals[first + c] = (
                totals[first + c] * parent_total[f] / held if held > 0.0 else parent_total[f] / m
            )
