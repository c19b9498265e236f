"""Enclosures of exp and log against the decimal module."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from louver.privacy.intervals import Enclosure, exp_minus, logarithm
from oracles.noise import decimal_of

rationals = st.builds(Fraction, st.integers(0, 10**12), st.integers(1, 10**9))


def _encloses(interval: Enclosure, value: Decimal, bits: int) -> bool:
    scaled = value * Decimal(2) ** bits
    return interval.lower <= scaled <= interval.upper and interval.upper - interval.lower <= 2


@given(rationals, st.integers(1, 260))
def test_exp_is_enclosed_within_two_units(x: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 120
        assert _encloses(exp_minus(x, bits), (-decimal_of(x)).exp(), bits)


@given(rationals.filter(bool), st.integers(1, 260))
def test_log_is_enclosed_within_two_units(x: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 120
        assert _encloses(logarithm(x, bits), decimal_of(x).ln(), bits)


def test_ends() -> None:
    assert exp_minus(Fraction(0), 10) == Enclosure(1024, 1024)
    assert logarithm(Fraction(1), 10) == Enclosure(0, 0)
    assert exp_minus(Fraction(10**6), 64) == Enclosure(0, 1)
