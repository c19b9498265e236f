"""Discrete Gaussian noise, for rho.

**Implements**: Canonne, Kamath & Steinke (2020), P(x) proportional to e^(-x^2 / (2 sigma^2)).
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
    Thresholds,
    check_parameter,
    enclosed,
    is_accepted,
    product,
    sqrt_up,
)
from louver.privacy.intervals import Enclosure, ceil_divide, exp_minus
from louver.privacy.laplace import OPENDP_MARGIN, draw_large_laplace

__all__ = ["DiscreteGaussian"]


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
    is_whole: ClassVar[bool] = True
    name: ClassVar[str] = "gaussian"
    measure: ClassVar[Measure] = Measure.RHO
    tail: ClassVar[None] = None

    @classmethod
    def paying(cls, amount: Fraction, l1: int, l2_squared: int) -> DiscreteGaussian:
        """The noise whose loss is `amount` on an integer query of this sensitivity."""
        return cls(Fraction(l2_squared) / (2 * amount))

    def __post_init__(self) -> None:
        check_parameter(self.sigma_squared, LARGEST_SCALE**2, "variance")

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
        """At least as many magnitudes as `TOP_BITS` bits can distinguish."""
        return 10 * (math.isqrt(math.ceil(self.sigma_squared)) + 1)

    def price(self, sensitivity: Fraction) -> Fraction:
        """The loss, in rho, on an integer query of this squared L2 sensitivity."""
        return sensitivity / (2 * self.sigma_squared)

    def sensitivity(self, l1: int, l2_squared: int) -> Fraction:
        """The one of the two sensitivities that `price` takes."""
        return Fraction(l2_squared)

    def draw_large(self, words: Iterator[int]) -> int:
        """Draw if a table would be too large."""
        return draw_large_gaussian(self.sigma_squared, words)

    def by_opendp(self, opendp: Any, domain: Any) -> Any:
        """The same noise as an OpenDP measurement, with its scale rounded up to a float."""
        scale = sqrt_up(self.sigma_squared * OPENDP_MARGIN)
        return opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)

    def opendp_sensitivity(self, sensitivity: Fraction) -> float:
        """A sensitivity in the form used by OpenDP's privacy map."""
        return sqrt_up(sensitivity)

    def cumulative(self, bits: int) -> Thresholds:
        """Enclose P(|X| < k) for k = 1, 2, ... up to the first that reaches 1 - 2^-bits."""
        return enclosed(self, bits)

    def enclosures(self, bits: int) -> Iterator[Enclosure]:
        weights, rest = self._weights(bits)
        one = 1 << bits
        total = Enclosure(
            one + 2 * sum(w.lower for w in weights), one + 2 * (sum(w.upper for w in weights) + rest)
        )
        inside_lower = inside_upper = one
        for weight in weights:
            yield Enclosure(
                (inside_lower << bits) // total.upper, ceil_divide(inside_upper << bits, total.lower)
            )
            inside_lower += 2 * weight.lower
            inside_upper += 2 * weight.upper

    def _weights(self, bits: int) -> tuple[list[Enclosure], int]:
        """Enclose e^(-k^2 / (2 sigma^2)) for k = 1, 2, ... while not negligible; also bound the rest."""
        step = exp_minus(1 / self.sigma_squared, bits)
        ratio = weight = exp_minus(1 / (2 * self.sigma_squared), bits)
        weights = []
        while weight.lower > 0:
            weights.append(weight)
            ratio = product(ratio, step, bits)
            weight = product(weight, ratio, bits)
        weights.append(weight)
        # From here each weight is at most `ratio` times the one before it: a geometric series bounds them.
        ratio = product(ratio, step, bits)
        return weights, ceil_divide(weight.upper << bits, (1 << bits) - ratio.upper)


def draw_large_gaussian(sigma_squared: Fraction, words: Iterator[int]) -> int:
    """Accept a Laplace draw y with probability exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2)).

    Notes
    -----
    **Implements**: Canonne, Kamath & Steinke (2020), Algorithm 3, on exact acceptance tests.
    """
    t = math.isqrt(math.floor(sigma_squared)) + 1
    while True:
        y = draw_large_laplace(Fraction(t), words)
        distance = abs(y) - sigma_squared / t
        if is_accepted(distance * distance / (2 * sigma_squared), words):
            return y
