"""Budgets in exact fractions; conversions against definitions and independent minimisation."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from louver.errors import BudgetError, InputError
from louver.privacy.budget import (
    Loss,
    Measure,
    compose_sequential,
    convert,
    epsilon_at,
    fraction_of,
    split,
)
from louver.privacy.neighbours import Relation

RECORD, CHANGE, UNIT = Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD, Relation.ADD_REMOVE_UNIT


def _epsilon(amount: str | int, neighbours: Relation = RECORD) -> Loss:
    return Loss(Fraction(amount), Measure.EPSILON, neighbours)


def _rho(amount: str | int, neighbours: Relation = RECORD) -> Loss:
    return Loss(Fraction(amount), Measure.RHO, neighbours)


def test_amounts_are_read_exactly() -> None:
    for value in (0.1, "0.1", "1/10", Fraction(1, 10), " 1e-1 "):
        assert fraction_of(value, "epsilon") == Fraction(1, 10)
    assert fraction_of(2, "epsilon") == 2
    assert fraction_of("5e+0001", "epsilon") == 50


@pytest.mark.parametrize(
    "value", [0, -1, "", "one", float("nan"), float("inf"), None, "1/0", "1e400", 10**9 + 1, [1]], ids=repr
)
def test_amounts_that_are_refused(value: object) -> None:
    with pytest.raises(InputError) as caught:
        fraction_of(value, "epsilon")
    assert caught.value.option == "epsilon"


@pytest.mark.parametrize(
    "value",
    ["1e99999999", "1e-99999999", "1E1000000000", "1" * 5000, 10**5000, "1/" + "3" * 4000],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else "integer",
)
def test_amounts_that_would_fill_the_memory_are_refused_at_once(value: object) -> None:
    with pytest.raises(InputError) as caught:
        fraction_of(value, "epsilon")
    assert caught.value.option == "epsilon"


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_shares_are_worth_the_budget(weights: list[int]) -> None:
    shares = [Fraction(w, sum(weights)) for w in weights]
    parts = split(_epsilon("7/10"), shares)
    assert compose_sequential(parts) == _epsilon("7/10")


def test_shares_that_do_not_sum_to_one_are_refused() -> None:
    """ERRATA T1: k + 1 levels at 1/k each would overspend."""
    with pytest.raises(BudgetError, match="sum to 4/3") as caught:
        split(_epsilon(1), [Fraction(1, 3)] * 4)
    assert caught.value.requested == Fraction(4, 3)
    with pytest.raises(BudgetError, match="sum to 3/10"):
        split(_epsilon(1), [Fraction(1, 10), Fraction(1, 5)])
    for bad in ([], [Fraction(2), Fraction(-1)], [Fraction(0), Fraction(1)]):
        with pytest.raises(BudgetError, match="not positive"):
            split(_epsilon(1), bad)


def test_composition() -> None:
    assert compose_sequential([_rho("1/3"), _rho("1/6")]) == _rho("1/2")
    for other in (_rho(1), _epsilon(1, UNIT)):
        with pytest.raises(BudgetError, match="differ"):
            compose_sequential([_epsilon(1), other])


def test_conversions() -> None:
    assert convert(_epsilon("1/10"), Measure.EPSILON, CHANGE) == _epsilon("1/5", CHANGE)
    assert convert(_rho("1/10"), Measure.RHO, CHANGE) == _rho("2/5", CHANGE)
    assert convert(_epsilon("1/10"), Measure.RHO, RECORD) == _rho("1/200")
    assert convert(_epsilon("1/10"), Measure.RHO, CHANGE) == _rho("1/50", CHANGE)
    assert convert(_epsilon(1), Measure.EPSILON, UNIT, largest_unit=7) == _epsilon(7, UNIT)
    assert convert(_rho(1, UNIT), Measure.RHO, RECORD) == _rho(4)
    with pytest.raises(BudgetError, match="implies none"):
        convert(_epsilon(1, CHANGE), Measure.EPSILON, RECORD)
    with pytest.raises(BudgetError, match="no rho implies"):
        convert(_rho(1), Measure.EPSILON, RECORD)


def _delta(epsilon: float, rho: float) -> float:
    """The delta that Renyi divergences alpha * rho imply at epsilon, by direct minimisation over alpha."""

    def log_delta(t: float) -> float:
        a = 1 + math.exp(t)
        return (a - 1) * (a * rho - epsilon) - t + a * math.log1p(-1 / a)

    starts = [i / 4 for i in range(-40, 80)]
    best = min(starts, key=log_delta)
    return math.exp(optimize.minimize_scalar(log_delta, bounds=(best - 1, best + 1), method="bounded").fun)


@pytest.mark.parametrize("rho", ["1/1000", "7/100", "1/2", "2.56", "50"])
@pytest.mark.parametrize("power", [2, 6, 10, 30])
def test_epsilon_at_is_sound_and_tight(rho: str, power: int) -> None:
    delta = Fraction(1, 10**power)
    epsilon = float(epsilon_at(Fraction(rho), delta, decimals=6))
    assert _delta(epsilon, float(Fraction(rho))) <= float(delta) * (1 + 1e-9)
    if epsilon > 2e-6:
        assert _delta(epsilon - 2e-6, float(Fraction(rho))) > float(delta)
    assert epsilon < float(Fraction(rho)) + 2 * math.sqrt(Fraction(rho) * power * math.log(10)) + 1e-6


def test_epsilon_at_is_rounded_up() -> None:
    fine = epsilon_at(Fraction(1), Fraction(1, 10**6), decimals=9)
    coarse = epsilon_at(Fraction(1), Fraction(1, 10**6), decimals=1)
    assert 0 <= coarse - fine < Fraction(1, 10)
    assert epsilon_at(Fraction(1, 10**9), Fraction(1, 2)) == 0


@pytest.mark.parametrize(("rho", "delta"), [(0, "1/2"), (1, 0), (1, 1)])
def test_epsilon_at_refuses(rho: int, delta: str | int) -> None:
    with pytest.raises(InputError):
        epsilon_at(Fraction(rho), Fraction(delta))


def test_words() -> None:
    assert str(_rho("1/3", UNIT)) == "rho = 1/3 (add-remove-unit)"
    assert Measure.RHO.meaning == "zero-concentrated differential privacy"
