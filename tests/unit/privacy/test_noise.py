"""Draws: exact distributions at fixed keys, ties, tails, replay; tests that must reject, and do."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from louver.errors import BudgetError, InputError
from louver.optim.kernels.sampling.chacha20 import GROUP_WORDS
from louver.privacy import exact
from louver.privacy import gaussian as gaussian_module
from louver.privacy import laplace as laplace_module
from louver.privacy import noise as noise_module
from louver.privacy.distributions import STORED_BITS, DiscreteGaussian, DiscreteLaplace, Distribution
from louver.privacy.exact import NOISE_LIMIT
from louver.privacy.noise import (
    MAX_COUNT,
    MAX_DRAWS,
    MAX_GROUPS,
    NOISY_LIMIT,
    KeyedNoise,
    Nonce,
    OpenDPNoise,
    perturb,
    settle,
)
from oracles.noise import DIGITS, gaussian_weights, laplace_weights, p_value, pooled_p_value

ACCEPT = 1e-4  # at fixed keys: a right sampler passes for good
REJECT = 1e-9
N = 400_000

LAPLACE = [Fraction(1, 2), Fraction(1), Fraction(10, 3), Fraction(25), Fraction(1000)]
GAUSSIAN = [Fraction(1, 4), Fraction(1), Fraction(50, 3), Fraction(625), Fraction(10**6)]


def _weights(distribution: Distribution) -> list[Decimal]:
    if isinstance(distribution, DiscreteLaplace):
        return laplace_weights(distribution.scale, 12 * math.ceil(distribution.scale))
    return gaussian_weights(
        distribution.sigma_squared, 8 * math.ceil(math.sqrt(distribution.sigma_squared)) + 20
    )


ALL = [DiscreteLaplace(b) for b in LAPLACE] + [DiscreteGaussian(v) for v in GAUSSIAN]


@pytest.mark.parametrize("distribution", ALL, ids=str)
def test_mass_function(distribution: Distribution) -> None:
    draws = KeyedNoise.from_seed(11).draw(distribution, N, Nonce(0, 0, 0))
    assert p_value(draws, _weights(distribution)) > ACCEPT


@pytest.mark.parametrize("factor", [Fraction(20, 21), Fraction(21, 20)])
@pytest.mark.parametrize("scale", LAPLACE[1:])
def test_laplace_scales_five_percent_off_are_rejected(scale: Fraction, factor: Fraction) -> None:
    draws = KeyedNoise.from_seed(12).draw(DiscreteLaplace(scale * factor), N, Nonce(0, 0, 0))
    assert p_value(draws, _weights(DiscreteLaplace(scale))) < REJECT


@pytest.mark.parametrize("factor", [Fraction(20, 21), Fraction(21, 20)])
@pytest.mark.parametrize("sigma_squared", GAUSSIAN[1:])
def test_gaussian_scales_five_percent_off_are_rejected(sigma_squared: Fraction, factor: Fraction) -> None:
    off = DiscreteGaussian(sigma_squared * factor**2)
    draws = KeyedNoise.from_seed(12).draw(off, N, Nonce(0, 0, 0))
    assert p_value(draws, _weights(DiscreteGaussian(sigma_squared))) < REJECT


def _zero_twice(draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A sign put on a geometric variable without drawing minus zero again."""
    geometric = rng.geometric(1 - math.exp(-1 / 10), len(draws)) - 1
    return geometric * rng.choice([-1, 1], len(draws))


def _floored(draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.floor(rng.laplace(0, 10, len(draws))).astype(np.int64)


def _one_sided_bias(draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(draws)) < 0.02, np.abs(draws), draws)


def _without_tail(draws: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(draws, -50, 50)


@pytest.mark.parametrize("broken", [_zero_twice, _floored, _one_sided_bias, _without_tail])
def test_broken_samplers_are_caught(broken: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> None:
    distribution = DiscreteLaplace(Fraction(10))
    right = KeyedNoise.from_seed(13).draw(distribution, 4 * N, Nonce(0, 0, 0))
    assert p_value(right, _weights(distribution)) > ACCEPT
    assert p_value(broken(right, np.random.default_rng(1)), _weights(distribution)) < REJECT


def test_a_skipped_threshold_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break our own sampler: move one threshold of its table by 0.3 % of the mass."""
    distribution = DiscreteLaplace(Fraction(10))
    table = noise_module.table_of(distribution)
    assert table is not None
    moved = table.thresholds.copy()
    moved[4] -= np.uint64(int(0.003 * 2**63))
    moved.setflags(write=False)
    monkeypatch.setattr(noise_module, "table_of", lambda _: table._replace(thresholds=moved))
    draws = KeyedNoise.from_seed(13).draw(distribution, 4 * N, Nonce(0, 0, 0))
    assert p_value(draws, _weights(distribution)) < REJECT


def _fresh(seed: int) -> Iterator[int]:
    """Words for `settle`, from the stream of a seed."""
    state = KeyedNoise.from_seed(seed)._claim(Nonce(9, 9, 9))
    return noise_module._words(state, 0)


ALL_ONES = 2**64 - 1


def test_laplace_tail_restarts_as_a_geometric() -> None:
    distribution = DiscreteLaplace(Fraction(3))
    words = _fresh(1)
    draws = np.array([settle(distribution, ALL_ONES, words) for _ in range(4000)])
    assert (draws < 0).all()
    beyond = -draws - distribution.n_thresholds
    assert beyond.min() == 0
    a = math.exp(-1 / 3)
    expected = np.array([4000 * (1 - a) * a**k for k in range(40)])
    observed = np.bincount(np.minimum(beyond, 40), minlength=41).astype(float)
    assert pooled_p_value(observed, np.append(expected, 4000 - expected.sum())) > ACCEPT


def test_geometric_tables_are_passed_more_than_once() -> None:
    distribution = DiscreteLaplace(Fraction(2))
    reach = distribution.n_thresholds
    words = iter([ALL_ONES] * 2 + [ALL_ONES] * 3 + [ALL_ONES] * 3 + [0, 0, 0])
    assert settle(distribution, ALL_ONES - 1, words) == 3 * reach


def test_gaussian_tail_extends_on_demand() -> None:
    """Given that 63 bits are all ones, the magnitude follows the far tail."""
    sigma_squared = Fraction(9)
    words = _fresh(2)
    draws = np.array([settle(DiscreteGaussian(sigma_squared), ALL_ONES, words) for _ in range(3000)])
    weights = gaussian_weights(sigma_squared, 80)
    with localcontext() as context:
        context.prec = DIGITS
        cut = 1 - Decimal(2) ** -63
        below = [sum(weights[:k], Decimal(0)) for k in range(61)]
        masses = [max(Decimal(0), below[k + 1] - max(below[k], cut)) * 2**63 for k in range(60)]
    expected = np.array([3000 * float(m) for m in masses])
    observed = np.bincount(-draws, minlength=60).astype(float)
    assert len(observed) == 60
    assert pooled_p_value(observed[25:], expected[25:]) > ACCEPT
    assert observed[:25].sum() == 0


def test_gaussian_tail_beyond_the_stored_bits() -> None:
    distribution = DiscreteGaussian(Fraction(9))
    lower, _ = distribution.cumulative(255)
    ones = iter([ALL_ONES, ALL_ONES, 0, ALL_ONES])
    magnitude = settle(distribution, ALL_ONES - 1, ones)
    u = ((1 << STORED_BITS) - 1) << 64
    assert lower[magnitude - 1] < u < lower[magnitude]
    assert magnitude > 40  # more than 13 standard deviations


@pytest.mark.parametrize(
    "distribution", [DiscreteLaplace(Fraction(7, 2)), DiscreteGaussian(Fraction(40))], ids=str
)
@pytest.mark.parametrize("k", [0, 1, 5, 17])
def test_a_tie_in_all_stored_bits_is_settled_by_further_bits(distribution: Distribution, k: int) -> None:
    stored = distribution.cumulative(STORED_BITS).lower[k]
    further = distribution.cumulative(STORED_BITS + 64).lower[k]
    assert further >> 64 == stored
    word = stored >> 128 << 1
    head = [stored >> 64 & ALL_ONES, stored & ALL_ONES]
    last = further & ALL_ONES
    assert settle(distribution, word, iter([*head, last - 1])) == k
    assert settle(distribution, word, iter([*head, last + 1])) == k + 1
    still = settle(distribution, word, iter([*head, last, 0]))  # below all 255 bits and then 64 zeros
    assert still == k


def test_undecided_draws_are_settled_in_a_batch() -> None:
    """Tails occur in a batch, are settled from later words, and leave the other draws as they are."""
    distribution = DiscreteLaplace(Fraction(5))
    draws = KeyedNoise.from_seed(3).draw(distribution, 1_000_000, Nonce(1, 2, 3))
    tails = np.abs(draws) >= distribution.n_thresholds
    assert 0 < tails.sum() < 60
    prefix = KeyedNoise.from_seed(3).draw(distribution, 1000, Nonce(1, 2, 3))
    assert np.array_equal(prefix, draws[:1000])


@pytest.mark.parametrize(
    "distribution",
    [
        DiscreteLaplace(Fraction(5000)),
        DiscreteLaplace(Fraction(2**33, 3)),
        DiscreteGaussian(Fraction(5000) ** 2),
    ],
    ids=str,
)
def test_large_scales_by_the_slower_method(distribution: Distribution) -> None:
    n = 4000
    draws = KeyedNoise.from_seed(5).draw(distribution, n, Nonce(0, 0, 0))
    # Sort into 40 cells of equal mass by the continuous law; at these scales it differs by less than 1e-6.
    if isinstance(distribution, DiscreteLaplace):
        b = float(distribution.scale)
        cdf = np.where(draws < 0, np.exp(draws / b) / 2, 1 - np.exp(-draws / b) / 2)
    else:
        sigma = math.sqrt(distribution.sigma_squared)
        cdf = np.array([0.5 * math.erfc(-x / sigma / math.sqrt(2)) for x in draws])
    observed = np.bincount(np.minimum((cdf * 40).astype(int), 39), minlength=40).astype(float)
    assert pooled_p_value(observed, np.full(40, n / 40)) > ACCEPT


def test_the_slower_method_on_scales_that_a_table_can_check() -> None:
    """Small scales drawn by the slow method have the exact mass, zero included."""
    words = _fresh(6)
    laplace = np.array([laplace_module.draw_large_laplace(Fraction(3, 2), words) for _ in range(4000)])
    assert p_value(laplace, _weights(DiscreteLaplace(Fraction(3, 2)))) > ACCEPT
    gaussian = np.array([gaussian_module.draw_large_gaussian(Fraction(5, 2), words) for _ in range(4000)])
    assert p_value(gaussian, _weights(DiscreteGaussian(Fraction(5, 2)))) > ACCEPT


def test_acceptance_reads_on_until_it_is_certain() -> None:
    x = Fraction(189, 1000)
    lower, upper = exact.exp_minus(x, 64)
    assert exact.is_accepted(x, iter([lower - 1]))
    assert not exact.is_accepted(x, iter([upper]))
    long_lower, long_upper = exact.exp_minus(x, 128)
    assert long_lower >> 64 == lower
    assert exact.is_accepted(x, iter([lower, (long_lower & ALL_ONES) - 1]))
    assert not exact.is_accepted(x, iter([lower, long_upper & ALL_ONES]))


def test_replay_gives_the_same_draws_and_nonces_differ() -> None:
    distribution = DiscreteGaussian(Fraction(30))
    nonces = [Nonce(0, 0, 0), Nonce(1, 0, 0), Nonce(0, 1, 0), Nonce(0, 0, 1)]
    first, second = KeyedNoise(bytes(range(32))), KeyedNoise(bytes(range(32)))
    draws = [first.draw(distribution, 100, nonce).tolist() for nonce in nonces]
    again = [second.draw(distribution, 100, nonce).tolist() for nonce in reversed(nonces)]
    assert draws == again[::-1]
    assert len({tuple(d) for d in draws}) == len(nonces)
    assert KeyedNoise(bytes(32)).draw(distribution, 100, nonces[0]).tolist() not in draws


def test_draws_are_pinned() -> None:
    """A change of these numbers breaks the replay of debits reserved by an earlier version."""
    noise = KeyedNoise(bytes(range(32)))
    assert noise.draw(DiscreteLaplace(Fraction(25)), 6, Nonce(1, 2, 3)).tolist() == [-7, 2, 33, -4, 11, -16]
    assert noise.draw(DiscreteGaussian(Fraction(625)), 6, Nonce(1, 2, 4)).tolist() == [20, 4, 6, 1, 23, 6]
    large = noise.draw(DiscreteLaplace(Fraction(9999)), 6, Nonce(1, 2, 5))
    assert large.tolist() == [-14726, 29059, -35849, -4419, 657, 6119]


def test_neighbouring_draws_are_independent() -> None:
    draws = KeyedNoise.from_seed(8).draw(DiscreteLaplace(Fraction(2)), N, Nonce(0, 0, 0))
    sign = np.sign(draws)
    table = np.zeros((3, 3))
    np.add.at(table, (sign[:-1] + 1, sign[1:] + 1), 1.0)
    expected = table.sum(1)[:, None] * table.sum(0)[None, :] / table.sum()
    statistic = ((table - expected) ** 2 / expected).sum()
    assert statistic < 30  # 4 degrees of freedom


def test_a_nonce_is_served_once() -> None:
    noise = KeyedNoise.from_seed(1)
    noise.draw(DiscreteLaplace(Fraction(1)), 1, Nonce(0, 0, 0))
    with pytest.raises(BudgetError, match="twice"):
        noise.draw(DiscreteLaplace(Fraction(1)), 1, Nonce(0, 0, 0))


def test_what_a_source_refuses() -> None:
    with pytest.raises(InputError, match="32 bytes"):
        KeyedNoise(b"short")
    noise = KeyedNoise.from_seed(1)
    with pytest.raises(InputError, match="nonce"):
        noise.draw(DiscreteLaplace(Fraction(1)), 1, Nonce(0, 1 << 32, 0))
    with pytest.raises(InputError, match="draws"):
        noise.draw(DiscreteLaplace(Fraction(1)), MAX_DRAWS + 1, Nonce(0, 0, 0))
    with pytest.raises(BudgetError, match="copied"):
        pickle.dumps(noise)
    noise._process += 1
    with pytest.raises(BudgetError, match="another process"):
        noise.draw(DiscreteLaplace(Fraction(1)), 1, Nonce(0, 0, 0))
    assert "key" not in repr(noise).lower().replace("keyednoise", "")


def test_a_stream_ends_before_its_counter_wraps() -> None:
    state = KeyedNoise.from_seed(1)._claim(Nonce(0, 0, 0))
    words = noise_module._words(state, MAX_GROUPS - 1)
    assert len([next(words) for _ in range(GROUP_WORDS)]) == GROUP_WORDS
    with pytest.raises(BudgetError, match="used up"):
        next(words)


class _Fixed:
    is_private = False
    is_replayable = True

    def __init__(self, value: int) -> None:
        self.value = value

    def draw(self, distribution: Distribution, n: int, nonce: Nonce) -> np.ndarray:
        return np.full(n, self.value, np.int64)

    def price(self, distribution: Distribution, sensitivity: Fraction) -> Fraction:
        return Fraction(0)


def test_sums_never_wrap_around() -> None:
    distribution = DiscreteLaplace(Fraction(1))
    for sign in (-1, 1):
        counts = np.array([MAX_COUNT, -MAX_COUNT, 0])
        noisy = perturb(counts, distribution, _Fixed(sign * NOISE_LIMIT), Nonce(0, 0, 0))
        assert noisy.tolist() == [sign * NOISY_LIMIT] * 3
    with pytest.raises(InputError, match="2\\^53"):
        perturb(np.array([MAX_COUNT + 1]), distribution, _Fixed(0), Nonce(0, 0, 0))
    assert perturb(np.zeros((0, 3), np.int64), distribution, _Fixed(0), Nonce(0, 0, 0)).shape == (0, 3)


def test_noise_is_cut_before_it_overflows() -> None:
    assert exact.signed(2**70, 1) == -NOISE_LIMIT
    assert exact.signed(2**70, 0) == NOISE_LIMIT


def test_price() -> None:
    assert DiscreteLaplace(Fraction(10)).price(Fraction(2)) == Fraction(1, 5)
    assert DiscreteGaussian(Fraction(10)).price(Fraction(2)) == Fraction(1, 10)
    assert KeyedNoise.from_seed(0).price(DiscreteLaplace(Fraction(10)), Fraction(2)) == Fraction(1, 5)


@pytest.mark.parametrize("distribution", [DiscreteLaplace(b) for b in LAPLACE], ids=str)
def test_laplace_loss_is_at_most_its_price(distribution: DiscreteLaplace) -> None:
    """By definition, on the mass function: neighbouring outputs differ by at most e^epsilon."""
    weights = [float(w) for w in laplace_weights(distribution.scale, 40)]
    mass = [weights[0], *(w / 2 for w in weights[1:])]
    for sensitivity in (1, 2, 3):
        epsilon = float(distribution.price(Fraction(sensitivity)))
        worst = max(math.log(mass[abs(x)] / mass[abs(x - sensitivity)]) for x in range(-30, 31))
        assert worst == pytest.approx(epsilon)


@pytest.fixture
def opendp_noise() -> OpenDPNoise:
    pytest.importorskip("opendp", reason="needs the extra opendp")
    return OpenDPNoise()


@pytest.mark.parametrize(
    "distribution", [DiscreteLaplace(Fraction(37, 10)), DiscreteGaussian(Fraction(30))], ids=str
)
def test_agreement_with_opendp(opendp_noise: OpenDPNoise, distribution: Distribution) -> None:
    theirs = opendp_noise.draw(distribution, 60_000, Nonce(0, 0, 0))
    ours = KeyedNoise.from_seed(21).draw(distribution, 60_000, Nonce(0, 0, 0))
    edges = np.arange(-12, 14)
    a, b = (np.histogram(np.clip(x, -12, 12), edges)[0].astype(float) for x in (ours, theirs))
    statistic = ((a - b) ** 2 / (a + b)).sum()  # 24 degrees of freedom; OpenDP's draws are not fixed
    assert statistic < 110  # chance of a false alarm below 1e-12
    assert p_value(theirs, _weights(distribution)) > 1e-12


@pytest.mark.parametrize(
    ("distribution", "sensitivity"),
    [
        (DiscreteLaplace(Fraction(10)), Fraction(1)),
        (DiscreteLaplace(Fraction(20, 3)), Fraction(2)),
        (DiscreteGaussian(Fraction(7, 3)), Fraction(2)),
        (DiscreteGaussian(Fraction(1, 3)), Fraction(3)),
    ],
    ids=str,
)
def test_opendp_is_paid_what_its_map_says(
    opendp_noise: OpenDPNoise, distribution: Distribution, sensitivity: Fraction
) -> None:
    paid = opendp_noise.price(distribution, sensitivity)
    d_in = math.sqrt(sensitivity) if isinstance(distribution, DiscreteGaussian) else float(sensitivity)
    assert paid >= Fraction(opendp_noise._measurement(distribution).map(d_in))
    assert paid == distribution.price(sensitivity)  # the scale was rounded up by enough


def test_opendp_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opendp.prelude", None)
    with pytest.raises(InputError, match="louver\\[opendp\\]") as caught:
        OpenDPNoise()
    assert caught.value.option == "noise"


def test_float_rounding_is_upward() -> None:
    for x in (Fraction(1, 3), Fraction(2, 3), Fraction(10**20 + 1, 7), Fraction(5)):
        assert Fraction(exact.float_up(x)) >= x
        assert Fraction(exact.sqrt_up(x)) ** 2 >= x
        assert exact.float_up(x) <= math.nextafter(float(x), math.inf)
