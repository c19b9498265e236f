"""Delta of several discrete Gaussian counts by enumerating every outcome, in decimal arithmetic of 50 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

TAIL_DIGITS = 40


def enumerated_delta(
    epsilon: Fraction, sigma_squares: list[Fraction], shifts: list[int] | None = None
) -> Decimal:
    """E_P[max(0, 1 - e^(epsilon - ln P/Q))], Q being P with every count moved by its shift, or by one."""
    with localcontext() as context:
        context.prec = 50
        moves = shifts or [1] * len(sigma_squares)
        tables = [_table(*one) for one in zip(sigma_squares, moves, strict=True)]
        total = Decimal(0)
        for outcome in product(*tables):
            p = q = Decimal(1)
            for mass, moved in outcome:
                p, q = p * mass, q * moved
            total += max(Decimal(0), p - _decimal(epsilon).exp() * q)
        return total


def _table(sigma_squared: Fraction, shift: int) -> list[tuple[Decimal, Decimal]]:
    """Masses of x under both neighbours, for all x that matter in 40 digits."""
    reach = int((float(sigma_squared) * 2 * 2.31 * TAIL_DIGITS) ** 0.5) + 3
    weight = {
        x: (-_decimal(Fraction(x * x) / (2 * sigma_squared))).exp() for x in range(-reach, reach + 1 + shift)
    }
    norm = sum(weight[x] for x in range(-reach, reach + 1))
    return [(weight[x] / norm, weight[x + shift] / norm) for x in range(-reach, reach + 1)]


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
