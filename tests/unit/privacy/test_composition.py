"""Composing discrete Gaussians: an upper bound of delta, close to enumeration and to another program's."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.errors import BudgetError, InputError
from louver.privacy import composition
from louver.privacy.budget import epsilon_at
from louver.privacy.composition import ChangedCounts, delta_at, largest_rho
from oracles.privacy_loss import enumerated_delta

PRODUCTION_2020 = [Fraction(share, 1000) for share in (25, 351, 109, 168, 306, 40)]
"""Shares of rho at US, state, county, tract, block group and block in the 2020 redistricting data."""

ONE = [[((1, 1),)]]

variances = st.fractions(Fraction(1, 3), 6, max_denominator=12)
epsilons = st.fractions(0, 12, max_denominator=20)


@few_or_many(8, 40, given(epsilon=epsilons, sigma_squares=st.lists(variances, min_size=1, max_size=2)))
def test_delta_is_at_least_that_of_every_outcome_enumerated_and_hardly_more(epsilon, sigma_squares):
    exact = float(enumerated_delta(epsilon, sigma_squares))
    bound = delta_at(epsilon, [ChangedCounts(sigma_squared, 1) for sigma_squared in sigma_squares])
    assert bound >= exact * (1 - 1e-12)
    if exact > 1e-25:  # the enumeration leaves out what is smaller
        assert bound <= exact * (1 + 1e-6)


@few_or_many(
    5,
    25,
    given(
        epsilon=epsilons,
        counts=st.lists(st.tuples(variances, st.sampled_from([1, 2, 3])), min_size=1, max_size=2),
        is_long=st.booleans(),
    ),
)
def test_counts_that_change_by_more_than_one_are_bounded_as_well(epsilon, counts, is_long):
    """Also where sums are not convolved but every count is put on the grid by itself."""
    sigma_squares, shifts = [one for one, _ in counts], [shift for _, shift in counts]
    exact = float(enumerated_delta(epsilon, sigma_squares, shifts))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(composition, "LONGEST_SUM", 1 if is_long else 1 << 13)
        bound = delta_at(epsilon, [ChangedCounts(sigma_squared, 1, shift) for sigma_squared, shift in counts])
    assert bound >= exact * (1 - 1e-12)
    if exact > 1e-25:
        assert bound <= exact * (1 + 1e-6)


@pytest.mark.parametrize("count", [2, 5, 60])
def test_counts_put_on_the_grid_one_by_one_cost_hardly_more(count, monkeypatch):
    measured = [ChangedCounts(Fraction(count * 7, 3), count), ChangedCounts(Fraction(11), 2, 2)]
    together = delta_at(Fraction(2), measured)
    monkeypatch.setattr(composition, "LONGEST_SUM", 1)
    assert together * (1 - 1e-9) <= delta_at(Fraction(2), measured) <= together * (1 + 1e-5)


def test_a_wide_count_and_several_narrow_ones_are_different_things():
    """Squared changes 4 as 1 + 1 + 1 + 1 or as 2 x 2 lose the same rho, but not the same delta: both ways are looked at."""
    apart, at_once = ChangedCounts(Fraction(3), 4), ChangedCounts(Fraction(3), 1, 2)
    assert apart.rho == at_once.rho
    found = [delta_at(Fraction(2), [one]) for one in (apart, at_once)]
    exact = [float(enumerated_delta(Fraction(2), [Fraction(3)] * len(s), s)) for s in ([1, 1, 1, 1][:1], [2])]
    assert found[0] != pytest.approx(found[1], rel=1e-3) and found[1] == pytest.approx(exact[1], rel=1e-6)
    both = largest_rho(Fraction(2), Fraction(1, 10**6), [Fraction(1)], [[((1, 4),)], [((2, 1),)]])
    each = [
        largest_rho(Fraction(2), Fraction(1, 10**6), [Fraction(1)], [[way]]) for way in (((1, 4),), ((2, 1),))
    ]
    assert both == min(each)


def test_losses_off_any_common_lattice_are_bounded_too():
    close = [Fraction(1), Fraction(1_000_003, 1_000_000)]
    exact = float(enumerated_delta(Fraction(3), close))
    bound = delta_at(Fraction(3), [ChangedCounts(sigma_squared, 1) for sigma_squared in close])
    assert exact <= bound <= exact * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [1, 3, 5])
def test_delta_agrees_with_dp_accounting(epsilon):
    shares, rho = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)], Fraction(1, 2)
    measured = [ChangedCounts(1 / (rho * share), 2) for share in shares]
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
    measured = [ChangedCounts(2 / share, 2) for share in (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))]
    assert delta_at(Fraction("5.776766"), measured) <= 1e-8 < delta_at(Fraction("5.776765"), measured)


def test_the_production_run_is_within_a_millionth_of_dp_accounting():
    """Epsilon of the noise of 2020; theirs by connecting dots, with no tail cut off."""
    measured = [ChangedCounts(1 / (Fraction("2.56") * share), 2) for share in PRODUCTION_2020]
    theirs = None
    for part in measured:
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            math.sqrt(part.sigma_squared), value_discretization_interval=1e-3, use_connect_dots=True
        ).self_compose(2, tail_mass_truncation=0)
        theirs = one if theirs is None else theirs.compose(one, tail_mass_truncation=0)
    epsilon = theirs.get_epsilon_for_delta(1e-10)
    near = [delta_at(Fraction(epsilon * (1 + side * 1e-6)), measured) for side in (1, -1)]
    assert near[0] <= 1e-10 <= near[1]


@few_or_many(
    3,
    15,
    given(
        shares=st.lists(st.integers(1, 50), min_size=1, max_size=5),
        epsilon=st.fractions(Fraction(1, 4), 20, max_denominator=8),
        digits=st.integers(5, 12),
        count=st.sampled_from([1, 2]),
    ),
)
def test_the_rho_found_keeps_the_promise_and_beats_the_general_conversion(shares, epsilon, digits, count):
    delta = Fraction(1, 10**digits)
    parts = [Fraction(share, sum(shares)) for share in shares]
    rho = largest_rho(epsilon, delta, parts, [[((1, count),)] * len(parts)])
    measured = [ChangedCounts(count / (2 * rho * share), count) for share in parts]
    assert delta_at(epsilon, measured) <= delta
    assert epsilon_at(rho, delta, decimals=9) > epsilon
    more = [ChangedCounts(part.sigma_squared * Fraction(999, 1000), count) for part in measured]
    assert delta_at(epsilon, more) > delta


def test_the_production_shares_of_2020_allow_more_rho_for_the_same_promise():
    rho, delta = Fraction("2.56"), Fraction(1, 10**10)
    epsilon = epsilon_at(rho, delta, decimals=4)
    better = largest_rho(epsilon, delta, PRODUCTION_2020, [[((1, 2),)] * 6])
    assert 1.06 < better / rho < 1.09


def test_more_noise_and_larger_epsilon_never_cost_more():
    noisy, noisier = [ChangedCounts(Fraction(4), 2)], [ChangedCounts(Fraction(5), 2)]
    assert delta_at(Fraction(2), noisier) < delta_at(Fraction(2), noisy) < delta_at(Fraction(1), noisy)


def test_bad_budgets_are_refused_in_a_sentence():
    one = [ChangedCounts(Fraction(4), 1)]
    for call in (
        lambda: delta_at(Fraction(-1), one),
        lambda: delta_at(Fraction(1), []),
        lambda: largest_rho(Fraction(0), Fraction(1, 100), [Fraction(1)], ONE),
        lambda: largest_rho(Fraction(1), Fraction(1), [Fraction(1)], ONE),
        lambda: largest_rho(Fraction(1, 10**7), Fraction(1, 100), [Fraction(1)], ONE),
        lambda: largest_rho(Fraction(10**5), Fraction(1, 100), [Fraction(1)], ONE),
        lambda: largest_rho(Fraction(1), Fraction(1, 10**101), [Fraction(1)], ONE),
    ):
        with pytest.raises(InputError):
            call()


def test_what_would_take_too_much_memory_is_refused(monkeypatch):
    monkeypatch.setattr(composition, "LARGEST_TRANSFORM", 1 << 10)
    with pytest.raises(BudgetError, match="cannot be composed"):
        delta_at(
            Fraction(1), [ChangedCounts(Fraction(1), 1), ChangedCounts(Fraction(1_000_003, 1_000_000), 1)]
        )


def test_thousands_of_counts_are_refused_at_once():
    with pytest.raises(BudgetError, match="give the budget as rho"):
        largest_rho(Fraction(1), Fraction(1, 10**6), [Fraction(1)], [[((1, 5000),)]])
    with pytest.raises(BudgetError, match="give the budget as rho"):
        largest_rho(Fraction(1, 10**6), Fraction(1, 10**100), [Fraction(1)], ONE)


def test_the_rho_found_does_not_depend_on_where_the_search_ends(monkeypatch):
    """It is the largest of five digits, so other rounding on another machine finds the same."""
    shares = [Fraction(1, 3), Fraction(2, 3)]
    ways = ((((1, 2),), ((1, 2),)),)
    asked = (Fraction(3), Fraction(1, 10**8), tuple(shares), ways)
    found = composition._largest_rho.__wrapped__(*asked)
    for shift in (0.9999, 1.0001):
        monkeypatch.setattr(composition, "brentq", lambda *_, shift=shift, **__: float(found) * shift)
        assert composition._largest_rho.__wrapped__(*asked) == found
    assert len(str(found.numerator * 10**12 // found.denominator).rstrip("0")) <= composition.RHO_DIGITS


@pytest.mark.parametrize(("epsilon", "delta"), [("1e-6", "0.99"), ("10000", "1e-100"), ("10000", "0.001")])
def test_budgets_at_the_edges_are_composed(epsilon, delta):
    rho = largest_rho(Fraction(epsilon), Fraction(delta), [Fraction(1)], [[((1, 2),)]])
    assert delta_at(Fraction(epsilon), [ChangedCounts(1 / rho, 2)]) <= Fraction(delta)


@pytest.mark.parametrize("delta", ["1e-10", "1e-20", "1e-50", "1e-100"])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "20"])
def test_composing_is_never_worse_than_converting_rho(epsilon, delta):
    asked = Fraction(epsilon), Fraction(delta)
    rho = largest_rho(*asked, [Fraction(1)], [[((1, 2),)]])
    assert rho >= composition.enough_rho(*asked)
    assert epsilon_at(rho, asked[1]) >= 0 and delta_at(asked[0], [ChangedCounts(1 / rho, 2)]) <= asked[1]


@pytest.mark.parametrize(
    ("epsilon", "rho"), [(1.0, 1e-3), (0.1, 1e-5), (20.0, 0.7), (1e4, 4e3), (1e-6, 1e-15), (3.0, 5.0)]
)
def test_the_delta_that_rho_implies_is_an_upper_bound_of_the_exact_formula(epsilon, rho):
    """The same formula in 60 digits, at its smallest over all orders, is never above what floats say, and hardly below."""
    with mpmath.workdps(60):

        def exact(log_order):
            order = 1 + mpmath.exp(log_order)
            return (
                mpmath.exp((order - 1) * (order * mpmath.mpf(rho) - epsilon + mpmath.log(1 - 1 / order)))
                / order
            )

        low, high = mpmath.mpf(-30), mpmath.mpf(60)
        for _ in range(400):  # one minimum, so thirds are cut off
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, right) if exact(left) < exact(right) else (left, high)
        smallest, found = exact(low), mpmath.mpf(composition._converted_delta(epsilon, rho))
        assert smallest <= found <= max(smallest * (1 + mpmath.mpf("1e-6")), mpmath.mpf("1e-300"))


def test_an_epsilon_far_beyond_the_loss_leaves_next_to_nothing():
    assert 0 <= delta_at(Fraction(10), [ChangedCounts(Fraction(500), 1)]) < 1e-200
