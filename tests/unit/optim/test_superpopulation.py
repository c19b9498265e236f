"""Risk of samples against quadrature and against populations that are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from louver.optim.superpopulation import (
    Pitman,
    fit_negative_binomial,
    fit_pitman,
    individual_risk,
    match_risk,
)


@pytest.mark.parametrize(
    ("records", "people"), [(1, 1.0), (1, 2.0), (1, 500.0), (2, 20.0), (3, 7.0), (40, 4000.0)]
)
def test_individual_risk_is_the_integral_of_benedetti_and_franconi(records: int, people: float) -> None:
    p = records / people
    expected = quad(lambda t: (p * np.exp(-t) / (1 - (1 - p) * np.exp(-t))) ** records, 0, np.inf)[0]
    assert individual_risk(np.array([records]), np.array([people]))[0] == pytest.approx(expected, rel=1e-9)


def test_closed_forms_for_one_and_two_records() -> None:
    """Equations (8) and (9) as Benedetti and Franconi print them."""
    p = 0.2
    one, two = individual_risk(np.array([1, 2]), np.array([5.0, 10.0]))
    assert one == pytest.approx(p / (1 - p) * np.log(1 / p))
    assert two == pytest.approx(p / (1 - p) ** 2 * (p * np.log(p) + 1 - p))


def test_individual_risk_is_right_on_average_in_simulated_samples() -> None:
    """Its model is that the logarithm of the people is spread evenly: the mean of 1 / F among records with f equal ones."""
    random = np.random.default_rng(5)
    sizes = np.arange(1, 3_000)
    people = random.choice(sizes, 400_000, p=(1 / sizes) / (1 / sizes).sum())
    sampled = random.binomial(people, 0.1)
    for records in (1, 2, 3):
        true = (1 / people[sampled == records]).mean()
        assert individual_risk(np.array([records]), np.array([10.0 * records]))[0] == pytest.approx(
            true, rel=0.05
        )


def sizes_of(records: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sizes, counts = np.unique(records[records > 0], return_counts=True)
    return sizes.astype(np.int64), counts.astype(np.int64)


@pytest.mark.parametrize(("shape", "mean"), [(0.1, 3.0), (0.5, 20.0), (2.0, 5.0)])
def test_the_negative_binomial_finds_the_uniques_of_its_own_population(shape: float, mean: float) -> None:
    random = np.random.default_rng(1)
    people = random.poisson(random.gamma(shape, mean / shape, 200_000))
    sampled = random.binomial(people, 0.1)
    model = fit_negative_binomial(*sizes_of(sampled), 0.1)
    assert model is not None
    assert model.unique_people() == pytest.approx((people == 1).sum(), rel=0.2)


def test_data_intrusion_simulation_finds_the_share_of_right_matches() -> None:
    random = np.random.default_rng(2)
    people = random.poisson(random.gamma(0.3, 10, 200_000))
    sampled = random.binomial(people, 0.2)
    alone = sampled == 1
    right = (
        alone.sum() / people[alone].sum()
    )  # a person of these combinations matches one record: whose is it?
    found = match_risk(int(alone.sum()), int((sampled == 2).sum()), 0.2)
    assert found == pytest.approx(right, rel=0.05)


def partition(n_people: int, theta: float, alpha: float, random: np.random.Generator) -> np.ndarray:
    """People of each combination, drawn one by one: a new combination, or that of somebody who is there."""
    label, sizes = np.zeros(n_people, dtype=np.int64), [1]
    for i in range(1, n_people):
        if random.random() * (theta + i) < theta + alpha * len(sizes):
            label[i] = len(sizes)
            sizes.append(1)
            continue
        while True:
            chosen = label[random.integers(i)]
            if random.random() < (sizes[chosen] - alpha) / sizes[chosen]:
                break
        label[i] = chosen
        sizes[chosen] += 1
    return label


def test_the_pitman_formula_finds_the_uniques_of_its_own_population() -> None:
    random = np.random.default_rng(3)
    label = partition(20_000, 200.0, 0.6, random)
    people = np.bincount(label)
    model = fit_pitman(*sizes_of(np.bincount(label[random.random(20_000) < 0.2])))
    assert model is not None
    assert model.alpha == pytest.approx(0.6, abs=0.05)
    assert model.unique_people(20_000) == pytest.approx((people == 1).sum(), rel=0.1)


def test_expected_uniques_of_the_pitman_formula_by_enumeration() -> None:
    """Three people: alone with the chance that nobody else joins."""
    theta, alpha = 1.5, 0.4
    alone_of_three = (theta + alpha) / (theta + 1) * (theta + 1 + alpha) / (theta + 2)
    assert Pitman(theta=theta, alpha=alpha).unique_people(3) == pytest.approx(3 * alone_of_three)


@pytest.mark.parametrize("records", [[1] * 30, [5, 5, 5], [2]])
def test_samples_that_say_nothing_fit_no_model(records: list[int]) -> None:
    sizes, counts = sizes_of(np.array(records))
    assert fit_pitman(sizes, counts) is None
    assert fit_negative_binomial(sizes, counts, 0.1) is None


def test_no_pairs_and_no_uniques_say_nothing_about_matches() -> None:
    assert match_risk(0, 0, 0.1) is None
