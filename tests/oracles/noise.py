"""Mass functions of discrete noise, by their definitions, to 90 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

DIGITS = 90


def decimal_of(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def laplace_weights(scale: Fraction, n: int) -> list[Decimal]:
    """P(|X| = k), k = 0 .. n - 1."""
    with localcontext() as context:
        context.prec = DIGITS
        a = (-1 / decimal_of(scale)).exp()
        zero = (1 - a) / (1 + a)
        return [zero] + [2 * zero * a**k for k in range(1, n)]


def gaussian_weights(sigma_squared: Fraction, n: int) -> list[Decimal]:
    """P(|X| = k), k = 0 .. n - 1; n must reach where nothing is left."""
    with localcontext() as context:
        context.prec = DIGITS
        twice = 2 * decimal_of(sigma_squared)
        weights = [Decimal(1)] + [2 * (-(Decimal(k * k) / twice)).exp() for k in range(1, n)]
        total = sum(weights)
        return [w / total for w in weights]


def p_value(draws: NDArray[np.int64], weights: list[Decimal]) -> float:
    """Chi-square of signed draws against P(|X| = k) split evenly over both signs, tails pooled."""
    half = np.array([float(w) / 2 for w in weights[1:]])
    expected = np.concatenate([half[::-1], [float(weights[0])], half]) * len(draws)
    reach = len(weights) - 1
    inside = np.abs(draws) <= reach
    observed = np.bincount(draws[inside] + reach, minlength=2 * reach + 1).astype(float)
    return pooled_p_value(
        np.append(observed, len(draws) - inside.sum()), np.append(expected, len(draws) - expected.sum())
    )


def pooled_p_value(observed: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """Chi-square with neighbouring cells pooled until each expects at least 20."""
    pooled_observed, pooled_expected = [0.0], [0.0]
    for o, e in zip(observed, expected, strict=True):
        pooled_observed[-1] += o
        pooled_expected[-1] += e
        if pooled_expected[-1] >= 20:
            pooled_observed.append(0.0)
            pooled_expected.append(0.0)
    last_observed, last_expected = pooled_observed.pop(), pooled_expected.pop()
    pooled_observed[-1] += last_observed
    pooled_expected[-1] += last_expected
    statistic = sum((o - e) ** 2 / e for o, e in zip(pooled_observed, pooled_expected, strict=True))
    return float(stats.chi2.sf(statistic, len(pooled_expected) - 1))
