"""Composing discrete Gaussians: an upper bound of delta, close to enumeration and to another program's."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.errors import BudgetError, InputError
from louver.privacy import composition
from louver.privacy.budget import epsilon_at
from louver.privacy.composition import Coordinates, delta_at, largest_rho
from oracles.privacy_loss import enumerated_delta

PRODUCTION_2020 = [Fraction(share, 1000) for share in (25, 351, 109, 168, 306, 40)]
"""Shares of rho at US, state, county, tract, block group and block in the 2020 redistricting data."""

variances = st.fractions(Fraction(1, 3), 6, max_denominator=12)
epsilons = st.fractions(0, 12, max_denominator=20)


@given(epsilon=epsilons, sigma_squares=st.lists(variances, min_size=1, max_size=2))
@settings(max_examples=40)
def test_delta_is_at_least_that_of_every_outcome_enumerated_and_hardly_more(epsilon, sigma_squares):
    exact = float(enumerated_delta(epsilon, sigma_squares))
    bound = delta_at(epsilon, [Coordinates(sigma_squared, 1) for sigma_squared in sigma_squares])
    assert bound >= exact * (1 - 1e-12)
    if exact > 1e-25:  # the enumeration leaves out what is smaller
        assert bound <= exact * (1 + 1e-6)


def test_losses_off_any_common_lattice_are_bounded_too():
    close = [Fraction(1), Fraction(1_000_003, 1_000_000)]
    exact = float(enumerated_delta(Fraction(3), close))
    bound = delta_at(Fraction(3), [Coordinates(sigma_squared, 1) for sigma_squared in close])
    assert exact <= bound <= exact * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [1, 3, 5])
def test_delta_agrees_with_dp_accounting(epsilon):
    shares, rho = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], Fraction(1, 2)
    measured = [Coordinates(1 / (rho * share), 2) for share in shares]
    theirs = None
    for part in measured:
        sigma = math.sqrt(part.sigma_squared)
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            sigma, value_discretization_interval=1e-4
        ).self_compose(2)
        theirs = one if theirs is None else theirs.compose(one)
    ours = delta_at(Fraction(epsilon), measured)
    assert theirs is not None
    upper, below = theirs.get_delta_for_epsilon([epsilon, epsilon + 6e-4])  # six roundings up of at most 1e-4
    assert below <= ours <= upper


def test_epsilon_at_a_delta_is_within_a_millionth_of_the_limit_of_dp_accounting():
    """Its epsilon at steps of 1e-3, 1e-4 and 2e-5 was 5.77740, 5.776790 and 5.7767673; the limit is ours."""
    measured = [Coordinates(2 / share, 2) for share in (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))]
    assert delta_at(Fraction("5.776766"), measured) <= 1e-8 < delta_at(Fraction("5.776765"), measured)


@given(
    shares=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    epsilon=st.fractions(Fraction(1, 4), 20, max_denominator=8),
    digits=st.integers(5, 12),
    count=st.sampled_from([1, 2]),
)
@settings(max_examples=15)
def test_the_rho_found_keeps_the_promise_and_beats_the_general_conversion(shares, epsilon, digits, count):
    delta = Fraction(1, 10**digits)
    parts = [Fraction(share, sum(shares)) for share in shares]
    rho = largest_rho(epsilon, delta, parts, count)
    measured = [Coordinates(count / (2 * rho * share), count) for share in parts]
    assert delta_at(epsilon, measured) <= delta
    assert epsilon_at(rho, delta, decimals=9) > epsilon
    more = [Coordinates(part.sigma_squared * Fraction(999, 1000), count) for part in measured]
    assert delta_at(epsilon, more) > delta


def test_the_production_shares_of_2020_allow_more_rho_for_the_same_promise():
    rho, delta = Fraction("2.56"), Fraction(1, 10**10)
    epsilon = epsilon_at(rho, delta, decimals=4)
    better = largest_rho(epsilon, delta, PRODUCTION_2020, 2)
    assert 1.06 < better / rho < 1.09


def test_more_noise_and_larger_epsilon_never_cost_more():
    noisy, noisier = [Coordinates(Fraction(4), 2)], [Coordinates(Fraction(5), 2)]
    assert delta_at(Fraction(2), noisier) < delta_at(Fraction(2), noisy) < delta_at(Fraction(1), noisy)


def test_bad_budgets_are_refused_in_a_sentence():
    one = [Coordinates(Fraction(4), 1)]
    for call in (
        lambda: delta_at(Fraction(-1), one),
        lambda: delta_at(Fraction(1), []),
        lambda: largest_rho(Fraction(0), Fraction(1, 100), [Fraction(1)], 1),
        lambda: largest_rho(Fraction(1), Fraction(1), [Fraction(1)], 1),
    ):
        with pytest.raises(InputError):
            call()


def test_what_would_take_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setattr(composition, "LARGEST_TRANSFORM", 1 << 10)
    with pytest.raises(BudgetError, match="too far apart"):
        delta_at(Fraction(1), [Coordinates(Fraction(1), 1), Coordinates(Fraction(1_000_003, 1_000_000), 1)])


def test_an_epsilon_far_beyond_the_loss_leaves_next_to_nothing():
    assert 0 <= delta_at(Fraction(10), [Coordinates(Fraction(500), 1)]) < 1e-200
