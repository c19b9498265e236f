"""Privacy losses as exact rational numbers: splitting, composing, converting.

Computes the amount of a share of a budget, the cost of several measurements together, and the equivalent of a loss in another measure or
for another neighbour relation. Only the conversion of rho to (epsilon, delta) leaves the rationals; it is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from louver.errors import BudgetError, InputError
from louver.privacy.intervals import ceil_divide, logarithm
from louver.privacy.neighbours import Relation, steps

__all__ = [
    "Loss",
    "Measure",
    "amounts_of",
    "compose_sequential",
    "convert",
    "epsilon_at",
    "exact_fraction",
    "fraction_of",
    "split",
]

LARGEST_AMOUNT = 10**9
"""Largest epsilon or rho accepted, far above any value that protects anyone."""

LONGEST_AMOUNT, LONGEST_EXPONENT = 4_000, 3
"""Maximum number of characters of an amount, and of digits of its exponent: 1e99999999 would exhaust memory."""


class Measure(StrEnum):
    """The measure of a privacy loss."""

    EPSILON = "epsilon"
    RHO = "rho"

    @property
    def meaning(self) -> str:
        """The measure in words, for reports."""
        kind = "pure" if self is Measure.EPSILON else "zero-concentrated"
        return f"{kind} differential privacy"


@dataclass(frozen=True, slots=True)
class Loss:
    """An amount of privacy loss: epsilon or rho, for one neighbour relation.

    Examples
    --------
    >>> print(Loss(Fraction(1, 10), Measure.EPSILON, Relation.CHANGE_RECORD))
    epsilon = 1/10 (change-record)
    """

    amount: Fraction
    measure: Measure
    neighbours: Relation

    def __post_init__(self) -> None:
        if self.amount <= 0:
            raise BudgetError("a privacy loss is a positive amount; nothing else can be spent.")

    def __str__(self) -> str:
        return f"{self.measure} = {self.amount} ({self.neighbours})"


def fraction_of(value: object, option: str) -> Fraction:
    """Read a positive amount exactly: "0.1", "1/3", 2, or a float by its shortest decimal form.

    Examples
    --------
    >>> fraction_of(0.1, "epsilon")
    Fraction(1, 10)
    """
    try:
        amount = exact_fraction(value)
    except ValueError:
        amount = Fraction(0)
    if not 0 < amount <= LARGEST_AMOUNT:
        raise InputError(f"{option} is not a number in (0, 10^9]; write it as 0.5 or 1/2.", option=option)
    return amount


def exact_fraction(value: object) -> Fraction:
    """Read a number exactly; ValueError if it is not a number, or is longer or has a larger exponent than any amount needs.

    Examples
    --------
    >>> exact_fraction("2.5e-1")
    Fraction(1, 4)
    """
    text = str(value)  # ValueError for an integer of more than 4,300 digits
    _, _, exponent = text.lower().partition("e")
    if len(text) > LONGEST_AMOUNT or len(exponent.strip().lstrip("+-0_")) > LONGEST_EXPONENT:
        raise ValueError
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError from None


def split(loss: Loss, shares: Sequence[Fraction]) -> tuple[Loss, ...]:
    """Divide a budget; the shares must be positive and sum to exactly one.

    Notes
    -----
    **Departs**: Abowd et al. (2019), section 5.1, gives each of k + 1 levels 1/k of the budget, which
    overspends it (ERRATA T1). Shares that do not sum to one are refused here.

    Examples
    --------
    >>> budget = Loss(Fraction(1), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    >>> [str(part.amount) for part in split(budget, [Fraction(1, 3), Fraction(2, 3)])]
    ['1/3', '2/3']
    """
    if not shares or min(shares) <= 0:
        raise BudgetError("a budget share is not positive; leave out what should not be measured.")
    total = sum(shares, Fraction(0))
    if total != 1:
        raise BudgetError(
            f"the budget shares sum to {total}, not to 1; write them as fractions such as 1/3.",
            requested=total,
            remaining=Fraction(1),
        )
    return tuple(replace(loss, amount=loss.amount * share) for share in shares)


def compose_sequential(losses: Sequence[Loss]) -> Loss:
    """Sum the losses of measurements that may all depend on the same record."""
    _check_alike(losses)
    return replace(losses[0], amount=sum((loss.amount for loss in losses), Fraction(0)))


def _check_alike(losses: Sequence[Loss]) -> None:
    if len({(loss.measure, loss.neighbours) for loss in losses}) != 1:
        raise BudgetError(
            "losses to be composed differ in measure or neighbour relation; convert them first."
        )


def convert(loss: Loss, measure: Measure, neighbours: Relation, *, largest_unit: int | None = None) -> Loss:
    """Restate a loss in another measure or for another neighbour relation, where that is sound.

    Notes
    -----
    **Implements**: Bun & Steinke (2016), Proposition 1.4 (epsilon implies a rho of epsilon^2 / 2) and
    Proposition 1.9 (k steps multiply epsilon by k and rho by k^2). If both change, the order does not
    matter: (k epsilon)^2 / 2 = k^2 (epsilon^2 / 2).

    Examples
    --------
    >>> loss = Loss(Fraction(1, 10), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    >>> convert(loss, Measure.RHO, Relation.CHANGE_RECORD).amount
    Fraction(1, 50)
    """
    k = steps(loss.neighbours, neighbours, largest_unit=largest_unit)
    if k is None:
        raise BudgetError(
            f"a loss for {loss.neighbours} implies none for {neighbours}, the relation of the ledger; use {neighbours} "
            f"(--neighbours, or neighbours in the spec), or pay from a ledger for {loss.neighbours}."
        )
    if loss.measure is Measure.RHO and measure is Measure.EPSILON:
        raise BudgetError("no rho implies a pure epsilon; use a ledger in rho or Laplace noise.")
    amount = loss.amount * (k if loss.measure is Measure.EPSILON else k * k)
    if loss.measure is not measure:
        amount = amount * amount / 2
    return Loss(amount, measure, neighbours)


def epsilon_at(rho: Fraction, delta: Fraction, *, decimals: int = 2) -> Fraction:
    """Return an epsilon such that rho-zCDP implies (epsilon, delta), rounded up to `decimals` digits.

    Notes
    -----
    **Implements**: Canonne, Kamath & Steinke (2020), from Renyi divergence alpha * rho to (epsilon, delta):
    epsilon = alpha rho + ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1) for any alpha > 1. The best
    alpha is sought in floating point; the bound at the alpha found is computed in rigorous intervals, so
    a poor search could only make it larger.

    Examples
    --------
    >>> float(epsilon_at(Fraction(1, 10), Fraction(1, 10**6)))   # rho + 2 sqrt(rho ln(1/delta)) would be 2.46
    2.15
    """
    if rho <= 0 or not 0 < delta < 1:
        raise InputError("rho is not positive or delta not between 0 and 1; give both.", option="delta")
    alpha = _best_alpha(rho, delta)
    bits = 64
    gain = logarithm(1 - 1 / alpha, bits).upper
    cost = (logarithm(1 / delta, bits).upper - logarithm(alpha, bits).lower) / (alpha - 1)
    bound = alpha * rho + (gain + cost) / (1 << bits)
    return max(
        Fraction(0), Fraction(ceil_divide(bound.numerator * 10**decimals, bound.denominator), 10**decimals)
    )


def _best_alpha(rho: Fraction, delta: Fraction) -> Fraction:
    """Search ln(alpha - 1) by golden section; the bound has one minimum there."""
    r, log_inverse = float(rho), math.log(delta.denominator) - math.log(delta.numerator)

    def bound(t: float) -> float:
        a = 1 + math.exp(t)
        return a * r + t - math.log(a) + (log_inverse - math.log(a)) * math.exp(-t)

    low, high = -30.0, 60.0
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return 1 + Fraction(math.exp(low))


def amounts_of(loss: Loss) -> dict[str, float | None]:
    """Epsilon and rho, of which one is None."""
    return {str(measure): float(loss.amount) if loss.measure is measure else None for measure in Measure}
