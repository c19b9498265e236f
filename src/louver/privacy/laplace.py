"""Discrete Laplace noise, for pure epsilon.

**Implements**: two-sided geometric noise (Ghosh, Roughgarden & Sundararajan 2009), P(x) proportional to e^(-|x| / scale).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from louver.privacy.budget import Measure
from louver.privacy.exact import (
    LARGEST_SCALE,
    Geometric,
    Thresholds,
    check_parameter,
    draw_geometric,
    enclosed,
    float_up,
    is_accepted,
    powers,
    signed,
)
from louver.privacy.intervals import Enclosure, ceil_divide, exp_minus

__all__ = ["OPENDP_MARGIN", "DiscreteLaplace", "draw_large_laplace"]

SMALL_SCALE = 1024
"""Scale of the geometric variable that the slower method draws from a table."""

OPENDP_MARGIN = 1 + Fraction(1, 1 << 48)
"""Factor by which a scale is raised for OpenDP, whose privacy map rounds up."""


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
    is_whole: ClassVar[bool] = False
    name: ClassVar[str] = "laplace"
    measure: ClassVar[Measure] = Measure.EPSILON

    @classmethod
    def paying(cls, amount: Fraction, l1: int, l2_squared: int) -> DiscreteLaplace:
        """The noise whose loss is `amount` on an integer query of this sensitivity."""
        return cls(l1 / amount)

    def __post_init__(self) -> None:
        check_parameter(self.scale, LARGEST_SCALE, "scale")

    @property
    def variance(self) -> float:
        """Variance of one draw, 2a / (1 - a)^2."""
        inverse = float(1 / self.scale)
        return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2

    @property
    def tail(self) -> Geometric:
        """The distribution of |X| - n_thresholds, given that it is not negative."""
        return Geometric(self.scale)

    @property
    def n_thresholds(self) -> int:
        return self.tail.n_thresholds

    def price(self, sensitivity: Fraction) -> Fraction:
        """The loss, in epsilon, on an integer query of this L1 sensitivity."""
        return sensitivity / self.scale

    def sensitivity(self, l1: int, l2_squared: int) -> Fraction:
        """The one of the two sensitivities that `price` takes."""
        return Fraction(l1)

    def draw_large(self, words: Iterator[int]) -> int:
        """Draw if a table would be too large."""
        return draw_large_laplace(self.scale, words)

    def by_opendp(self, opendp: Any, domain: Any) -> Any:
        """The same noise as an OpenDP measurement, with its scale rounded up to a float."""
        scale = float_up(self.scale * OPENDP_MARGIN)
        return opendp.m.make_laplace(domain, opendp.l1_distance(T="f64"), scale=scale)

    def opendp_sensitivity(self, sensitivity: Fraction) -> float:
        """A sensitivity in the form used by OpenDP's privacy map."""
        return float_up(sensitivity)

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(|X| < k) = 1 - 2 a^k / (1 + a) for k = 1 .. n_thresholds."""
        return enclosed(self, bits)

    def enclosures(self, bits: int) -> Iterator[Enclosure]:
        one = 1 << bits
        a = exp_minus(1 / self.scale, bits)
        for power in powers(a, bits):
            outside_lower = (power.lower << bits + 1) // (one + a.upper)
            outside_upper = ceil_divide(power.upper << bits + 1, one + a.lower)
            yield Enclosure(max(0, one - outside_upper), one - outside_lower)


def draw_large_laplace(scale: Fraction, words: Iterator[int]) -> int:
    """Draw offset + width * block: a geometric variable splits into these independent parts."""
    width = 1 << max(0, math.ceil(scale / SMALL_SCALE) - 1).bit_length()
    blocks = Geometric(scale / width)
    while True:
        word = next(words)
        offset = (word >> 1) % width
        if not is_accepted(offset / scale, words):
            continue
        magnitude = offset + width * draw_geometric(blocks, words)
        if magnitude or not word & 1:  # minus zero is drawn again, or zero would be twice as likely
            return signed(magnitude, word)
