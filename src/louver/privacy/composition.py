"""The cost of many discrete Gaussian measurements together, as epsilon and delta: an upper bound close to the truth.

Computes the delta that a list of measurements implies at an epsilon, and the largest rho whose shares stay within an epsilon and a delta.
Going through rho alone overstates the cost, because rho bounds every moment of the privacy loss and not its distribution. The proof that
the numbers are upper bounds is `docs/proofs/composition.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from louver._arrays import Floats
from louver.errors import BudgetError, InputError
from louver.privacy.budget import epsilon_at

__all__ = ["ChangedCounts", "Changes", "check_promise", "delta_at", "enough_rho", "largest_rho"]

GRID_POINTS = 1 << 17
"""Number of grid points; the excess of the bound falls with its square."""

DEVIATIONS = 40.0
"""Number of standard deviations of the total loss over which `GRID_POINTS` are spread."""

TAIL_SHARE = 2.0**-45
"""Share of delta that all truncated tails together may use."""

UNIT_ROUNDOFF = 2.0**-53
FFT_CONSTANT = 64.0
"""Error of a transform in units of log2(size) x unit roundoff: eight times Higham's Theorem 24.2 with twiddles rounded once."""

LEAST_EXPONENT = -500.0
"""Exponents below this are not used, so that no factor becomes zero; so small a delta is useless."""

POSITION_ERROR = 2.0**-28
"""Added to fractional positions on the grid: more than their rounding error, so that losses are never rounded down."""

ROUNDING = 2.0**-30
"""Relative error allowed for sums and products of positive numbers and for the exponential function."""

VALUE_ERROR = 2.0**-50
"""Relative error allowed for losses on the grid and for epsilon, so that their difference is never rounded down."""

LARGEST_TRANSFORM = 1 << 23

TOO_LARGE = "this many counts or this much noise cannot be composed; give the budget as rho."

LONGEST_SUM = 1 << 13
"""Maximum number of possible values of a sum of counts that is convolved exactly; with more, each count is put on the grid by itself."""

RHO_DIGITS = 5
"""Number of significant digits of a rho found by search: few, so that every machine finds the same value."""

LEAST_EPSILON, LEAST_DELTA = Fraction(1, 10**6), Fraction(1, 10**100)
MOST_EPSILON = 10**4
"""Limits of composed budgets; beyond them, rho is as good."""


@dataclass(frozen=True, slots=True)
class ChangedCounts:
    """Independent counts that one step of the neighbour relation changes by `shift`, with equal discrete Gaussian noise.

    Parameters
    ----------
    sigma_squared : Fraction
        The noise parameter.
    count : int
        Number of counts that change: 2 for each query within which a changed record moves, 1 for an added record.
    shift : int
        Size of the change of each of them.
    """

    sigma_squared: Fraction
    count: int
    shift: int = 1

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated loss of all of them."""
        return self.count * self.shift**2 / (2 * self.sigma_squared)

    @property
    def lattice(self) -> Fraction:
        """The number of which the loss is a whole multiple."""
        return self.shift * math.gcd(self.shift, 2) / (2 * self.sigma_squared)


Changes = tuple[tuple[int, int], ...]
"""How one step may change a query: pairs (size of the change, number of counts), each size once."""


def delta_at(epsilon: Fraction, measured: Sequence[ChangedCounts]) -> float:
    """Return a delta such that releasing all noisy counts is (epsilon, delta)-differentially private.

    Notes
    -----
    **Neighbours**, **Sensitivity**: as stated in `ChangedCounts`: every listed count changes by at most its shift, others not at all.
    **Privacy**: docs/proofs/composition.md, Theorem 1.
    **Cost**: one real transform of each distinct variance, some 10^5 to 10^6 points.

    Examples
    --------
    >>> one = ChangedCounts(Fraction(50), 2)                   # rho = 1/50
    >>> bound = delta_at(Fraction(1), [one])
    >>> float(epsilon_at(one.rho, Fraction(1, 10**6))), bool(bound < 1e-6 / 50)
    (0.9, True)
    """
    if epsilon < 0 or not measured:
        raise InputError("give a nonnegative epsilon, and the queries that are measured.", option="epsilon")
    target = float(epsilon)
    rho = float(sum(part.rho for part in measured))
    merged = _merged(measured)
    step = _step(epsilon, rho, merged)
    tilt = max(0.0, (target - rho) / (2 * rho))
    tail = TAIL_SHARE * _chernoff(target, rho, tilt) / sum(part.count for part in measured)
    losses = [_gridded(part, step, tail) for part in merged]
    return min(_hockey_stick(target, float(step), tilt, losses), _converted_delta(target, rho))


def _converted_delta(epsilon: float, rho: float) -> float:
    """A delta implied by rho alone, because for a tiny delta rounding costs more than composition gains.

    Notes
    -----
    **Implements**: Canonne, Kamath & Steinke (2020), delta = e^((alpha - 1) (alpha rho - epsilon + ln(1 - 1/alpha))) / alpha for any
    alpha > 1, found in floating point; the exponent is raised by more than its rounding.
    """

    def exponent(log_order: float) -> float:
        less = math.exp(log_order)  # alpha - 1
        order = 1 + less
        terms = less * order * rho, less * epsilon, less * math.log1p(1 / less), math.log(order)
        return terms[0] - terms[1] - terms[2] - terms[3] + 16 * UNIT_ROUNDOFF * sum(terms)

    found = float(
        minimize_scalar(exponent, bounds=(-30.0, 60.0), method="bounded", options={"xatol": 1e-9}).x
    )
    return min(1.0, max(math.exp(min(0.0, exponent(found))) * (1 + ROUNDING), float(np.finfo(float).tiny)))


def largest_rho(
    epsilon: Fraction, delta: Fraction, shares: Sequence[Fraction], ways: Sequence[Sequence[Changes]]
) -> Fraction:
    """Return the largest rho, of few digits, whose shares spent on queries cost at most (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : Fraction
    shares : sequence of Fraction
        Share of rho of every query; they sum to at most one.
    ways : sequence of sequence of Changes
        Every way in which a step may change the queries, or a way that bounds it: for each way, the change of each query.

    Notes
    -----
    **Privacy**: the rho returned is checked by `delta_at` for every way; the search only proposes it.
    A query is given the noise whose loss is its share of rho at its largest squared L2 sensitivity over all ways.

    Examples
    --------
    >>> rho = largest_rho(Fraction(2), Fraction(1, 10**6), [Fraction(1, 2)] * 2, [[((1, 1),)] * 2])
    >>> bool(epsilon_at(rho, Fraction(1, 10**6)) > 2), bool(delta_at(Fraction(2), [ChangedCounts(1 / rho, 1)] * 2) <= 1e-6)
    (True, True)
    """
    check_promise(epsilon, delta)
    return _largest_rho(epsilon, delta, tuple(shares), tuple(map(tuple, ways)))


def check_promise(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse an epsilon and a delta that are meaningless, or for which composition gains nothing."""
    if epsilon <= 0 or not 0 < delta < 1:
        raise InputError("epsilon is not positive or delta not between 0 and 1; give both.", option="delta")
    if not (LEAST_EPSILON <= epsilon <= MOST_EPSILON and delta >= LEAST_DELTA):
        message = "epsilon with a delta must be from 1e-6 to 10^4 and delta at least 1e-100; or give the budget as rho."
        raise InputError(message, option="delta")


@lru_cache(maxsize=64)
def _largest_rho(
    epsilon: Fraction, delta: Fraction, shares: tuple[Fraction, ...], ways: tuple[tuple[Changes, ...], ...]
) -> Fraction:
    goal = math.log(delta.numerator) - math.log(delta.denominator)
    squared = [max(map(_squared, changes)) for changes in zip(*ways, strict=True)]

    def excess(rho: Fraction) -> float:
        variances = [l2 / (2 * rho * share) for l2, share in zip(squared, shares, strict=True)]
        worst = max(delta_at(epsilon, _coordinates(variances, way)) for way in dict.fromkeys(ways))
        return math.log(max(worst, 5e-324)) - goal

    low = high = enough_rho(epsilon, delta)
    while excess(low) > 0:
        low /= 2
    while excess(high) <= 0:
        high *= 2
    found = brentq(lambda rho: excess(Fraction(rho)), float(low), float(high), rtol=10.0**-RHO_DIGITS)
    rho = _rounded_down(Fraction(found))
    while excess(rho) > 0:  # the search may end on either side
        rho = _rounded_down(rho * (1 - Fraction(1, 10 ** (RHO_DIGITS + 1))))
    while excess(more := _next_up(rho)) <= 0:
        rho = more
    return rho


def _squared(changes: Changes) -> int:
    """Squared L2 norm of a change."""
    return sum(count * shift**2 for shift, count in changes)


def _coordinates(variances: Sequence[Fraction], way: Sequence[Changes]) -> list[ChangedCounts]:
    return [
        ChangedCounts(sigma_squared, count, shift)
        for sigma_squared, changes in zip(variances, way, strict=True)
        for shift, count in changes
    ]


@lru_cache(maxsize=64)
def enough_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """A rho that is enough by the general conversion, whatever is measured: a lower bound on the rho that composition finds."""
    low, high = Fraction(1, 10**18), epsilon  # rho implies no epsilon below itself
    while high / low > 1 + Fraction(1, 1000):
        middle = Fraction(math.sqrt(float(low) * float(high))).limit_denominator(10**21)
        low, high = (middle, high) if epsilon_at(middle, delta, decimals=15) <= epsilon else (low, middle)
    return _rounded_down(low)


def _place(value: Fraction) -> Fraction:
    """The unit of the last of `RHO_DIGITS` significant digits of a value."""
    return Fraction(10) ** (math.floor(math.log10(float(value))) + 1 - RHO_DIGITS)


def _rounded_down(value: Fraction) -> Fraction:
    """Round down to `RHO_DIGITS` significant digits."""
    return math.floor(value / _place(value)) * _place(value)


def _next_up(value: Fraction) -> Fraction:
    return value + _place(value)


def _step(epsilon: Fraction, rho: float, merged: Sequence[ChangedCounts]) -> Fraction:
    """Step of the grid: that of the lattice on which all losses lie if it is wide enough, in which case no loss is moved.

    Otherwise epsilon is made a point of the grid, since the bound is closest to the truth there.
    """
    wanted = Fraction(DEVIATIONS * math.sqrt(2 * rho) / GRID_POINTS)
    lattice = reduce(_common_divisor, (part.lattice for part in merged))
    if lattice >= wanted:
        return lattice
    return epsilon / math.ceil(epsilon / wanted) if epsilon else wanted


def _common_divisor(a: Fraction, b: Fraction) -> Fraction:
    """The largest number of which both are whole multiples."""
    return Fraction(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator
    )


def _chernoff(epsilon: float, rho: float, tilt: float) -> float:
    """Upper bound of the probability that a loss that is rho-concentrated exceeds epsilon."""
    return math.exp(max(LEAST_EXPONENT, min(0.0, tilt * rho + tilt * tilt * rho - tilt * epsilon)))


def _merged(measured: Sequence[ChangedCounts]) -> list[ChangedCounts]:
    """One entry for each variance and shift."""
    counts: dict[tuple[Fraction, int], int] = {}
    for part in measured:
        alike = part.sigma_squared, part.shift
        counts[alike] = counts.get(alike, 0) + part.count
    return [ChangedCounts(sigma_squared, count, shift) for (sigma_squared, shift), count in counts.items()]


@dataclass(frozen=True, slots=True)
class _Loss:
    """Privacy loss on the grid, repeated `count` times: mass at (first + i) x step, and mass beyond the grid at unbounded loss."""

    first: int
    mass: Floats
    unbounded: float
    copies: int = 1


def _gridded(part: ChangedCounts, step: Fraction, tail: float) -> _Loss:
    """Put the loss of counts with equal noise on the grid so that it dominates the true one (Lemmas 1 and 2).

    Their losses add up on a separate lattice, unless so many values are possible that each count is put on the grid by itself. An atom
    between two grid points is divided between them so that its mass under both neighbours is kept.
    """
    sigma_squared = float(part.sigma_squared)
    reach = math.ceil(math.sqrt(2 * sigma_squared * (math.log(4 / tail) + 1))) + 2
    copies = part.count if part.count * (2 * reach + 1) > LONGEST_SUM else 1
    count = part.count // copies
    unit = part.lattice / step
    if part.count * (2 * reach + 1) * max(1.0, float(2 * unit)) > LARGEST_TRANSFORM:
        raise BudgetError(TOO_LARGE)
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    single = np.exp(-x * x / (2 * sigma_squared))
    mass = _repeated(single / single.sum(), count)
    even = math.gcd(part.shift, 2)
    multiple = count * part.shift // even + 2 // even * (np.arange(len(mass)) - count * reach)
    position = multiple * float(unit)
    if unit.denominator > 1:
        position += POSITION_ERROR
    place = np.floor(position)
    above = np.expm1(-(position - place) * float(step)) / math.expm1(-step)
    first = int(place[0])
    index = place.astype(np.int64) - first
    out = np.zeros(int(index[-1]) + 2)
    np.add.at(out, index, mass * (1 - above))
    np.add.at(out, index + 1, mass * above)
    return _Loss(first, out, part.count * tail, copies)


def _repeated(mass: Floats, count: int) -> Floats:
    """Distribution of the sum of `count` independent variables, by products of positive numbers only."""
    if count == 1:
        return mass
    half = _repeated(mass, count // 2)
    double: Floats = np.convolve(half, half)
    return np.convolve(double, mass) if count % 2 else double


def _hockey_stick(epsilon: float, step: float, tilt: float, losses: Sequence[_Loss]) -> float:
    """Upper bound of E[max(0, 1 - e^(epsilon - L))] for the sum L of independent losses (Theorem 1)."""
    length = sum(loss.copies * (len(loss.mass) - 1) for loss in losses) + 1
    size = 1 << (length - 1).bit_length()
    if size > LARGEST_TRANSFORM:
        raise BudgetError(TOO_LARGE)
    tilt = min(tilt, -LEAST_EXPONENT / (step * max(len(loss.mass) for loss in losses)))
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    log_moment, first = 0.0, 0
    for loss in losses:
        places = loss.first + np.arange(len(loss.mass))
        tilted = loss.mass * np.exp(tilt * step * (places - places[-1]))
        moment = float(tilted.sum())
        spectrum *= _power(np.fft.rfft(tilted / moment, size), loss.copies)
        log_moment += loss.copies * (math.log(moment) + tilt * step * float(places[-1]))
        first += loss.copies * loss.first
    density = np.fft.irfft(spectrum, size)[:length]
    value = step * (first + np.arange(length))
    is_above = value > epsilon - step / 2
    least, most = epsilon * (1 - VALUE_ERROR), value[is_above] * (1 + VALUE_ERROR)
    gain = -np.expm1(np.minimum(0.0, least - most))
    weight = gain * np.exp(log_moment - tilt * value[is_above])
    error = FFT_CONSTANT * (sum(loss.copies for loss in losses) + 1) * math.log2(size) * UNIT_ROUNDOFF
    exceeded = float(np.maximum(density[is_above], 0.0) @ weight) + error * float(np.linalg.norm(weight))
    return min(1.0, exceeded * (1 + ROUNDING) + sum(loss.unbounded for loss in losses))


def _power(spectrum: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """An integer power by repeated squaring: numbers of modulus at most one keep a modulus of at most one."""
    if exponent == 1:
        return spectrum
    half = _power(spectrum, exponent // 2)
    return half * half * spectrum if exponent % 2 else half * half
