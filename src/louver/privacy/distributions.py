"""Discrete Laplace and discrete Gaussian noise as exact cumulative thresholds.

Answers: for the magnitude of a noise value, integers that provably enclose 2^bits * P(|X| < k), to any number
of bits; and the table that the sampling kernel walks. Scales are rational numbers, never floats.

Notes
-----
**Implements**: two-sided geometric noise (Ghosh, Roughgarden & Sundararajan 2009), P(x) proportional to
e^(-|x| / scale); discrete Gaussian noise (Canonne, Kamath & Steinke 2020), P(x) proportional to
e^(-x^2 / (2 sigma^2)).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from louver.errors import InputError
from louver.privacy.intervals import Interval, ceil_divide, exp_minus

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distribution",
    "Geometric",
    "Table",
    "Thresholds",
    "table_of",
]

TOP_BITS = 63
"""Bits of a uniform that the kernel compares; one bit of each 64-bit word is the sign."""

STORED_BITS = TOP_BITS + 128
"""Bits kept of every threshold of a table."""

WORK_BITS = 64
"""Extra bits while thresholds are computed; they narrow the enclosures and are not needed for their truth."""

LARGEST_TABLE = 1 << 15
"""Most thresholds in a table: 256 KiB for the kernel. Beyond it noise is drawn by a slower exact method."""

LARGEST_SCALE = 1 << 40
"""Largest scale (and standard deviation) accepted; noise above it drowns any count."""

TAIL_BITS = 16
"""A geometric table ends where a share below 2^-TAIL_BITS remains; memorylessness restarts it there."""


class Thresholds(NamedTuple):
    """2^bits * P(magnitude < k) lies in [lower[k-1], upper[k-1] + 1) for k = 1, 2, ...; both ascend."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]


class Table(NamedTuple):
    """What the kernel walks: see `louver.optim.kernels.sampling.inverse_cdf.look_up`."""

    thresholds: NDArray[np.uint64]
    guide: NDArray[np.uint16]
    shift: int


def _checked(value: Fraction, largest: int, what: str) -> None:
    if not 0 < value <= largest:
        raise InputError(
            f"the {what} of the noise is not in (0, {largest}]; change the budget or its shares."
        )


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(X >= k) = e^(-k / scale), k = 0, 1, ...: the tail of Laplace noise, started afresh."""

    scale: Fraction

    @property
    def n_thresholds(self) -> int:
        """Magnitudes in one table; what lies beyond is that number plus a fresh draw."""
        return math.ceil(self.scale * TAIL_BITS * Fraction(7, 10))

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(X < k) = 1 - a^k, a = e^(-1 / scale), for k = 1 .. n_thresholds."""
        return _cumulative(self, bits)

    def enclosures(self, bits: int) -> Iterator[Interval]:
        one = 1 << bits
        for power in _powers(exp_minus(1 / self.scale, bits), bits):
            yield Interval(one - power.upper, one - power.lower)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Two-sided geometric noise: P(x) = (1 - a) / (1 + a) * a^|x| with a = e^(-1 / scale).

    Parameters
    ----------
    scale : Fraction
        L1 sensitivity divided by epsilon.

    Examples
    --------
    >>> round(DiscreteLaplace(Fraction(10)).variance, 3)
    199.833
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _checked(self.scale, LARGEST_SCALE, "scale")

    @property
    def variance(self) -> float:
        """Variance of one draw, 2a / (1 - a)^2."""
        inverse = float(1 / self.scale)
        return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2

    @property
    def tail(self) -> Geometric:
        """What |X| - n_thresholds is distributed as, given that it is not negative."""
        return Geometric(self.scale)

    @property
    def n_thresholds(self) -> int:
        return self.tail.n_thresholds

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(|X| < k) = 1 - 2 a^k / (1 + a) for k = 1 .. n_thresholds."""
        return _cumulative(self, bits)

    def enclosures(self, bits: int) -> Iterator[Interval]:
        one = 1 << bits
        a = exp_minus(1 / self.scale, bits)
        for power in _powers(a, bits):
            outside_lower = (power.lower << bits + 1) // (one + a.upper)
            outside_upper = ceil_divide(power.upper << bits + 1, one + a.lower)
            yield Interval(max(0, one - outside_upper), one - outside_lower)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise: P(x) proportional to e^(-x^2 / (2 sigma_squared)).

    Parameters
    ----------
    sigma_squared : Fraction
        Squared L2 sensitivity divided by 2 rho.

    Examples
    --------
    >>> DiscreteGaussian(Fraction(100)).variance
    100.0
    >>> round(DiscreteGaussian(Fraction(1, 4)).variance, 6)      # below sigma_squared
    0.215013
    """

    sigma_squared: Fraction

    def __post_init__(self) -> None:
        _checked(self.sigma_squared, LARGEST_SCALE**2, "variance")

    @property
    def variance(self) -> float:
        """Variance of one draw; from sigma = 4 on it equals sigma_squared to all digits of a float."""
        v = float(self.sigma_squared)
        if v >= 16:
            return v
        weights = [math.exp(-k * k / (2 * v)) for k in range(64)]
        return 2 * math.fsum(k * k * w for k, w in enumerate(weights)) / (2 * math.fsum(weights) - 1)

    @property
    def n_thresholds(self) -> int:
        """At least as many magnitudes as `TOP_BITS` bits can tell apart."""
        return 10 * (math.isqrt(math.ceil(self.sigma_squared)) + 1)

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(|X| < k) for k = 1, 2, ... up to the first that reaches 1 - 2^-bits."""
        return _cumulative(self, bits)

    def enclosures(self, bits: int) -> Iterator[Interval]:
        weights, rest = self._weights(bits)
        one = 1 << bits
        total = Interval(
            one + 2 * sum(w.lower for w in weights), one + 2 * (sum(w.upper for w in weights) + rest)
        )
        inside_lower = inside_upper = one
        for weight in weights:
            yield Interval(
                (inside_lower << bits) // total.upper, ceil_divide(inside_upper << bits, total.lower)
            )
            inside_lower += 2 * weight.lower
            inside_upper += 2 * weight.upper

    def _weights(self, bits: int) -> tuple[list[Interval], int]:
        """Enclose e^(-k^2 / (2 sigma^2)) for k = 1, 2, ... while not negligible; bound what follows."""
        step = exp_minus(1 / self.sigma_squared, bits)
        ratio = weight = exp_minus(1 / (2 * self.sigma_squared), bits)
        weights = []
        while weight.lower > 0:
            weights.append(weight)
            ratio = _product(ratio, step, bits)
            weight = _product(weight, ratio, bits)
        weights.append(weight)
        # From here each weight is at most `ratio` times the one before it: a geometric series bounds them.
        ratio = _product(ratio, step, bits)
        return weights, ceil_divide(weight.upper << bits, (1 << bits) - ratio.upper)


Distribution = DiscreteLaplace | DiscreteGaussian


def _product(x: Interval, y: Interval, bits: int) -> Interval:
    """Enclose the product of two numbers in [0, 1]."""
    return Interval(x.lower * y.lower >> bits, ceil_divide(x.upper * y.upper, 1 << bits))


def _powers(a: Interval, bits: int) -> Iterator[Interval]:
    """Enclose a, a^2, a^3, ..."""
    power = a
    while True:
        yield power
        power = _product(power, a, bits)


@lru_cache(maxsize=64)
def _cumulative(distribution: Distribution | Geometric, bits: int) -> Thresholds:
    """Bring the enclosures of a distribution to `bits` bits, up to its last threshold."""
    lower, upper = [], []
    enclosures = distribution.enclosures(bits + WORK_BITS)
    if not isinstance(distribution, DiscreteGaussian):
        enclosures = islice(enclosures, distribution.n_thresholds)
    for enclosure in enclosures:
        lower.append(enclosure.lower >> WORK_BITS)
        upper.append(enclosure.upper >> WORK_BITS)
        if isinstance(distribution, DiscreteGaussian) and lower[-1] >= (1 << bits) - 1:
            break
    return Thresholds(tuple(lower), tuple(upper))


@lru_cache(maxsize=64)
def table_of(distribution: Distribution) -> Table | None:
    """Build the kernel's table, or None where only the slower method will do.

    Notes
    -----
    **Cost**: 2 to 5 microseconds for each threshold; at scale 1,000 about 11,000 of them.
    """
    if distribution.n_thresholds > LARGEST_TABLE:
        return None
    largest = (1 << TOP_BITS) - 1
    spare = STORED_BITS - TOP_BITS
    lower, upper = distribution.cumulative(STORED_BITS)
    if any(u - k >= 1 << spare for k, u in zip(lower, upper, strict=True)):  # the kernel allows one unit
        return None
    top = [k >> spare for k in lower]
    top = top[: bisect_left(top, largest) + 1]
    thresholds = np.array([*top, largest], dtype=np.uint64)
    guide_bits = max(1, len(top).bit_length())
    starts = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(TOP_BITS - guide_bits)
    # A threshold may be skipped only if it lies below u - 1 for every u of the cell.
    guide = np.searchsorted(thresholds + np.uint64(1), starts, side="left").astype(np.uint16)
    for array in (thresholds, guide):
        array.setflags(write=False)
    return Table(thresholds, guide, TOP_BITS - guide_bits)
