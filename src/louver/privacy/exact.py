"""Building blocks of all exact distributions: enclosures to any number of bits, and decisions by words of a stream.

No decision here depends on rounding: an interval that does not settle it is recomputed with more bits. `docs/proofs/noise.md` relies
on the lines of this module.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import ClassVar, NamedTuple, Protocol

from louver.errors import InputError
from louver.privacy.intervals import Enclosure, ceil_divide, exp_minus

__all__ = [
    "LARGEST_SCALE",
    "NOISE_LIMIT",
    "STORED_BITS",
    "TOP_BITS",
    "WORK_BITS",
    "Enclosed",
    "Geometric",
    "Thresholds",
    "check_parameter",
    "draw_geometric",
    "enclosed",
    "float_up",
    "is_accepted",
    "locate",
    "powers",
    "product",
    "signed",
    "sqrt_up",
]

TOP_BITS = 63
"""Bits of a uniform variate that the kernel compares; one bit of each 64-bit word is the sign."""

STORED_BITS = TOP_BITS + 128
"""Bits kept of every threshold of a table."""

WORK_BITS = 64
"""Extra bits while thresholds are computed; they narrow the enclosures but are not needed for correctness."""

LARGEST_SCALE = 1 << 40
"""Largest scale (and standard deviation) accepted; larger noise would hide any count."""

TAIL_BITS = 16
"""A geometric table ends where less than 2^-TAIL_BITS of the probability remains, and is restarted there (memorylessness)."""

NOISE_LIMIT = 1 << 62
"""Limit at which noise is cut, so that a true count can be added without overflow."""


class Thresholds(NamedTuple):
    """2^bits * P(magnitude < k) lies in [lower[k-1], upper[k-1] + 1) for k = 1, 2, ...; both ascend."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]


class Enclosed(Protocol):
    """A distribution of magnitudes whose cumulative probabilities can be enclosed to any number of bits."""

    @property
    def n_thresholds(self) -> int:
        """Number of magnitudes in one table."""
        ...

    is_whole: ClassVar[bool]
    """Whether enclosures continue up to the first that cannot be distinguished from 1; if not, the table ends at n_thresholds."""

    def enclosures(self, bits: int) -> Iterator[Enclosure]:
        """Enclose 2^bits P(magnitude < k), k = 1, 2, ..."""
        ...

    def cumulative(self, bits: int) -> Thresholds:
        """The same, cut to `bits` bits."""
        ...


def check_parameter(value: Fraction, largest: int, what: str) -> None:
    """Refuse a scale or variance that no exact method supports."""
    if not 0 < value <= largest:
        raise InputError(
            f"the {what} of the noise is not in (0, {largest}]; change the budget or its shares."
        )


def product(x: Enclosure, y: Enclosure, bits: int) -> Enclosure:
    """Enclose the product of two numbers in [0, 1]."""
    return Enclosure(x.lower * y.lower >> bits, ceil_divide(x.upper * y.upper, 1 << bits))


def powers(a: Enclosure, bits: int) -> Iterator[Enclosure]:
    """Enclose a, a^2, a^3, ..."""
    power = a
    while True:
        yield power
        power = product(power, a, bits)


@lru_cache(maxsize=64)
def enclosed(distribution: Enclosed, bits: int) -> Thresholds:
    """Compute the enclosures of a distribution to `bits` bits, up to its last threshold."""
    lower, upper = [], []
    enclosures = distribution.enclosures(bits + WORK_BITS)
    if not distribution.is_whole:
        enclosures = islice(enclosures, distribution.n_thresholds)
    for enclosure in enclosures:
        lower.append(enclosure.lower >> WORK_BITS)
        upper.append(enclosure.upper >> WORK_BITS)
        if distribution.is_whole and lower[-1] >= (1 << bits) - 1:
            break
    return Thresholds(tuple(lower), tuple(upper))


@dataclass(frozen=True, slots=True)
class Geometric:
    """P(X >= k) = e^(-k / scale), k = 0, 1, ...: the tail of Laplace noise, restarted."""

    scale: Fraction
    is_whole: ClassVar[bool] = False

    @property
    def n_thresholds(self) -> int:
        """Number of magnitudes in one table; a larger magnitude is that number plus a fresh draw."""
        return math.ceil(self.scale * TAIL_BITS * Fraction(7, 10))

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(X < k) = 1 - a^k, a = e^(-1 / scale), for k = 1 .. n_thresholds."""
        return enclosed(self, bits)

    def enclosures(self, bits: int) -> Iterator[Enclosure]:
        one = 1 << bits
        for power in powers(exp_minus(1 / self.scale, bits), bits):
            yield Enclosure(one - power.upper, one - power.lower)


def locate(distribution: Enclosed, u: int, words: Iterator[int]) -> int:
    """Count the thresholds below U, whose first 63 bits are `u`, reading more bits as needed."""
    bits, wanted = TOP_BITS, STORED_BITS
    while True:
        while bits < wanted:
            u = u << 64 | next(words)
            bits += 64
        lower, upper = distribution.cumulative(bits)
        above = bisect_left(upper, u)
        # `above` thresholds are certainly below U; those with lower > u are certainly above it.
        if above == bisect_right(lower, u):
            return above
        wanted = bits + 64


def draw_geometric(tail: Geometric, words: Iterator[int]) -> int:
    """Draw a geometric variable; past the end of the table, start again from there (memorylessness)."""
    total = 0
    while True:
        k = locate(tail, next(words) >> 1, words)
        total += k
        if k < tail.n_thresholds:
            return total


def signed(magnitude: int, word: int) -> int:
    """A magnitude with the sign given by the lowest bit of a word, capped so that no sum overflows."""
    magnitude = min(magnitude, NOISE_LIMIT)
    return -magnitude if word & 1 else magnitude


def is_accepted(x: Fraction, words: Iterator[int]) -> bool:
    """Return True with probability exactly e^-x."""
    u = bits = 0
    while True:
        u = u << 64 | next(words)
        bits += 64
        lower, upper = exp_minus(x, bits)
        if u < lower:
            return True
        if u >= upper:
            return False


def float_up(x: Fraction) -> float:
    """Return the smallest float at or above x."""
    nearest = float(x)
    return nearest if Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def sqrt_up(x: Fraction) -> float:
    """Return a float at or above the square root of x, and within two units of it."""
    root = math.sqrt(float_up(x))
    return root if Fraction(root) ** 2 >= x else math.nextafter(root, math.inf)
