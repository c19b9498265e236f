"""Rigorous bounds for exponentials and logarithms, in whole numbers.

Computes two integers that provably enclose 2^bits * e^-x, or 2^bits * ln x, for a rational x. Nothing is rounded to nearest: lower ends are
rounded down and upper ends up, so an enclosure is a proof, and only its width depends on the working precision.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

__all__ = ["Enclosure", "ceil_divide", "exp_minus", "logarithm"]

GUARD_BITS = 32
"""Extra working bits; they narrow the enclosure and are not needed for its validity."""


class Enclosure(NamedTuple):
    """The enclosed real number lies in [lower, upper], both in units of 2^-bits."""

    lower: int
    upper: int


def ceil_divide(numerator: int, denominator: int) -> int:
    """Round the quotient up; `//` rounds it down."""
    return -(-numerator // denominator)


def exp_minus(x: Fraction, bits: int) -> Enclosure:
    """Enclose 2^bits * e^-x.

    Parameters
    ----------
    x : Fraction
        Not negative.
    bits : int
        Bits after the binary point.

    Notes
    -----
    **Implements**: e^-x = (e^(-x / 2^h))^(2^h); the alternating series on an argument below 2^-7, whose
    remainder is at most the last term added; h squarings with directed rounding.
    **Cost**: O(bits / 7 + log x) products of integers of about `bits` bits.

    Examples
    --------
    >>> exp_minus(Fraction(1), 32)      # 2^32 / e = 1580030168.7...
    Enclosure(lower=1580030168, upper=1580030169)
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 8)
    work = bits + halvings + GUARD_BITS
    scaled = x.numerator << work
    lower = _exp_minus_series(ceil_divide(scaled, x.denominator << halvings), work).lower
    upper = _exp_minus_series(scaled // (x.denominator << halvings), work).upper
    for _ in range(halvings):
        lower = lower * lower >> work
        upper = ceil_divide(upper * upper, 1 << work)
    spare = work - bits
    return Enclosure(lower >> spare, ceil_divide(upper, 1 << spare))


def _exp_minus_series(r: int, work: int) -> Enclosure:
    """Enclose 2^work * e^-(r / 2^work) for 0 <= r < 2^(work - 6)."""
    lower = upper = 1 << work
    term_lower = term_upper = 1 << work
    j = 0
    while term_upper > 1:
        j += 1
        term_lower = term_lower * r // (j << work)
        term_upper = ceil_divide(term_upper * r, j << work)
        if j % 2:
            lower, upper = lower - term_upper, upper - term_lower
        else:
            lower, upper = lower + term_lower, upper + term_upper
    # Terms alternate in sign and decrease, so the remainder is at most the last term.
    return Enclosure(max(0, lower - term_upper), upper + term_upper)


def logarithm(x: Fraction, bits: int) -> Enclosure:
    """Enclose 2^bits * ln x for a rational x > 0.

    Notes
    -----
    **Implements**: x = 2^e * m with 1/2 < m < 2; ln m = 2 artanh((m - 1) / (m + 1)), and ln 2 likewise.
    **Cost**: O(bits) products of integers of about `bits` bits.

    Examples
    --------
    >>> logarithm(Fraction(2), 32)      # 2^32 * 0.693147... = 2977044471.8...
    Enclosure(lower=2977044471, upper=2977044472)
    """
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    work = bits + abs(exponent).bit_length() + GUARD_BITS
    mantissa = x / Fraction(2) ** exponent
    m = _twice_artanh((mantissa - 1) / (mantissa + 1), work)
    two = _twice_artanh(Fraction(1, 3), work)
    ends = (exponent * two.lower, exponent * two.upper)
    spare = work - bits
    return Enclosure((m.lower + min(ends)) >> spare, ceil_divide(m.upper + max(ends), 1 << spare))


def _twice_artanh(z: Fraction, work: int) -> Enclosure:
    """Enclose 2^work * 2 artanh(z) for |z| <= 1/3."""
    if z < 0:
        mirrored = _twice_artanh(-z, work)
        return Enclosure(-mirrored.upper, -mirrored.lower)
    scaled, square = z.numerator << work, z * z
    power_lower, power_upper = scaled // z.denominator, ceil_divide(scaled, z.denominator)
    lower = upper = 0
    j = 1
    while power_upper > 1:
        lower += power_lower // j
        upper += ceil_divide(power_upper, j)
        power_lower = power_lower * square.numerator // square.denominator
        power_upper = ceil_divide(power_upper * square.numerator, square.denominator)
        j += 2
    # The terms left out form a series below power * (1 + 1/9 + 1/81 + ...) < 2 * power.
    return Enclosure(2 * lower, 2 * (upper + 2 * power_upper))
