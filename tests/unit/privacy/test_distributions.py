"""Thresholds and tables against mass functions computed to 90 digits."""

from __future__ import annotations

import math
from bisect import bisect_left
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from louver.errors import InputError
from louver.optim.kernels.sampling.inverse_cdf import UNDECIDED, look_up
from louver.privacy.budget import Loss, Measure
from louver.privacy.distributions import DISTRIBUTIONS as REGISTERED
from louver.privacy.distributions import (
    DiscreteGaussian,
    DiscreteLaplace,
    Distribution,
    Geometric,
    noise_for,
    table_of,
)
from louver.privacy.exact import LARGEST_SCALE, STORED_BITS, TOP_BITS
from louver.privacy.neighbours import Relation
from oracles.noise import DIGITS, gaussian_weights, laplace_weights

DISTRIBUTIONS = [
    DiscreteLaplace(Fraction(1, 40)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(25, 3)),
    DiscreteLaplace(Fraction(1000)),
    DiscreteGaussian(Fraction(1, 9)),
    DiscreteGaussian(Fraction(1)),
    DiscreteGaussian(Fraction(1234, 7)),
    DiscreteGaussian(Fraction(160_000)),
]


def _weights(distribution: Distribution) -> list[Decimal]:
    if isinstance(distribution, DiscreteLaplace):
        return laplace_weights(distribution.scale, distribution.n_thresholds)
    return gaussian_weights(
        distribution.sigma_squared, 20 * math.isqrt(math.ceil(distribution.sigma_squared)) + 20
    )


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("bits", [STORED_BITS, 255])
def test_every_threshold_is_enclosed_to_all_bits(distribution: Distribution, bits: int) -> None:
    lower, upper = distribution.cumulative(bits)
    with localcontext() as context:
        context.prec = DIGITS
        exact = [Decimal(2) ** bits * c for c in accumulate(_weights(distribution))]
        assert all(k <= c < u + 1 for k, c, u in zip(lower, exact, upper, strict=False))
    assert sum(k != u for k, u in zip(lower, upper, strict=True)) <= 1  # an exact floor, as a rule
    assert list(lower) == sorted(lower) and list(upper) == sorted(upper)


@pytest.mark.parametrize("scale", [Fraction(1, 40), Fraction(3, 2), Fraction(300)])
def test_geometric_thresholds(scale: Fraction) -> None:
    geometric = Geometric(scale)
    lower, upper = geometric.cumulative(STORED_BITS)
    with localcontext() as context:
        context.prec = DIGITS
        a = (-1 / (Decimal(scale.numerator) / Decimal(scale.denominator))).exp()
        exact = [(1 - a**k) * Decimal(2) ** STORED_BITS for k in range(1, geometric.n_thresholds + 1)]
    assert all(k <= c < u + 1 for k, c, u in zip(lower, exact, upper, strict=True))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_the_table_gives_every_magnitude_its_mass(distribution: Distribution) -> None:
    """Counting words, not drawing them: magnitude k is selected by a known number of the 2^63 inputs."""
    table = table_of(distribution)
    assert table is not None
    top = [0, *(int(t) for t in table.thresholds[:-1])]
    for k, weight in enumerate(_weights(distribution)[: len(top) - 1]):
        share = Decimal(top[k + 1] - top[k]) / Decimal(2) ** TOP_BITS
        assert abs(share - weight) <= Decimal(2) ** -61


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_look_up_is_bisection_and_leaves_ties_open(distribution: Distribution) -> None:
    table = table_of(distribution)
    assert table is not None
    top = [int(t) for t in table.thresholds[:-1]]
    near = {t + d for t in top for d in (-2, -1, 0, 1, 2)}
    cells = {(g << table.shift) + d for g in range(len(table.guide)) for d in (-1, 0, 1)}
    uniforms = sorted(u for u in near | cells if 0 <= u < 1 << TOP_BITS)
    words = np.array([2 * u + (u % 3 == 0) for u in uniforms], np.uint64)
    out = np.empty(len(words), np.int64)
    look_up(words, *table, out)
    for u, drawn in zip(uniforms, out.tolist(), strict=True):
        magnitude = bisect_left(top, u)
        tie = any(t in (u, u - 1) for t in top[max(0, magnitude - 1) : magnitude + 1])
        if tie or magnitude == len(top):
            assert drawn == UNDECIDED
        else:
            assert drawn == (-magnitude if u % 3 == 0 else magnitude)


def test_variances() -> None:
    for distribution in DISTRIBUTIONS:
        weights = _weights(distribution)
        if isinstance(distribution, DiscreteLaplace):
            weights = laplace_weights(distribution.scale, math.ceil(distribution.scale) * 60)
        exact = float(sum(k * k * w for k, w in enumerate(weights)))
        assert distribution.variance == pytest.approx(exact, rel=1e-9)


def test_scales_that_are_refused() -> None:
    for make in (DiscreteLaplace, DiscreteGaussian):
        for value in (Fraction(0), Fraction(-1), Fraction(LARGEST_SCALE**2 + 1)):
            with pytest.raises(InputError, match="of the noise is not in"):
                make(value)


def test_large_scales_have_no_table() -> None:
    assert table_of(DiscreteLaplace(Fraction(10_000))) is None
    assert table_of(DiscreteGaussian(Fraction(10**8))) is None


@pytest.mark.parametrize("kind", REGISTERED.values())
def test_every_distribution_costs_what_it_was_made_for(kind: type[Distribution]) -> None:
    loss = Loss(Fraction(1, 7), kind.measure, Relation.CHANGE_RECORD)
    made = noise_for(loss, l1=3, l2_squared=5, name=kind.name)
    assert isinstance(made, kind)
    assert made.price(made.sensitivity(3, 5)) == loss.amount
    assert made.opendp_sensitivity(Fraction(4)) in (2.0, 4.0)
    assert noise_for(loss, l1=3, l2_squared=5, name=kind.name) == made


@pytest.mark.parametrize("name", ["gaussian", "uniform"])
def test_noise_of_another_measure_or_unknown_is_refused(name: str) -> None:
    loss = Loss(Fraction(1, 7), Measure.EPSILON, Relation.CHANGE_RECORD)
    with pytest.raises(InputError, match="a budget in epsilon requires noise called laplace"):
        noise_for(loss, l1=3, l2_squared=5, name=name)
