"""Post-processing: optimal where claimed, consistent where claimed, on awkward shapes."""

from __future__ import annotations

import numpy as np
import pytest

from louver.errors import InputError, SolverError
from louver.groups.mechanisms import MECHANISMS, count_violations, find_mechanism
from louver.groups.problem import NoisyAnswers, SizeQuery, answers
from louver.optim.trees import LevelTree
from louver.privacy.neighbours import Relation
from oracles.groups import is_table, tables

SHAPES = {
    "one region": LevelTree.from_counts([]),
    "pair": LevelTree.from_counts([[2]]),
    "narrow": LevelTree.from_counts([[1], [2]]),
    "three levels": LevelTree.from_counts([[2], [2, 1]]),
    "four levels": LevelTree.from_counts([[2], [1, 1], [2, 1]]),
}
CONSISTENT = [m.name for m in MECHANISMS.values() if m.is_consistent]


def _noisy(
    tree: LevelTree, query: SizeQuery, n_sizes: int, total: int, seed: int, spread: int = 3
) -> NoisyAnswers:
    rng = np.random.default_rng(seed)
    leaves = rng.multinomial(total, np.full(tree.n_leaves * n_sizes, 1 / (tree.n_leaves * n_sizes)))
    true = answers(tree.sum_up(leaves.reshape(tree.n_leaves, n_sizes)), query, tree)
    noise = rng.integers(-spread, spread + 1, true.shape)
    variances = tuple(float(v) for v in rng.uniform(1, 9, tree.n_levels))
    return NoisyAnswers(tree, true + noise, variances, total)


@pytest.mark.parametrize("name", CONSISTENT)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("total", [0, 1, 6])
def test_conditions_2_to_4_hold(name: str, shape: str, total: int) -> None:
    mechanism, tree = MECHANISMS[name], SHAPES[shape]
    for n_sizes in (1, 2):
        noisy = _noisy(tree, mechanism.query, n_sizes, total, seed=n_sizes)
        released = mechanism.solve(noisy)
        assert is_table(released, tree, total)
        assert count_violations(released, tree) == 0


@pytest.mark.parametrize("name", ["louver", "M_H^dp", "M_c^dp", "M_c^ch", "TopDown"])
def test_conditions_hold_under_heavy_noise(name: str) -> None:
    tree = LevelTree.from_counts([[4], [3, 1, 5, 2]])
    noisy = _noisy(tree, MECHANISMS[name].query, 20, 300, seed=8, spread=200)
    assert is_table(MECHANISMS[name].solve(noisy), tree, 300)


@pytest.mark.parametrize("name", ["louver", "M_H^dp"])
def test_without_a_public_total(name: str) -> None:
    tree = SHAPES["three levels"]
    for seed in range(5):
        query = MECHANISMS[name].open_query
        assert query is not None
        noisy = _noisy(tree, query, 4, 30, seed)
        open_total = NoisyAnswers(tree, noisy.rows, noisy.variances, None)
        released = MECHANISMS[name].solve(open_total)
        assert is_table(released, tree, None)
        assert abs(int(released[0].sum()) - 30) <= 12
    nothing = NoisyAnswers(tree, np.full((tree.n_regions, 3), -5), noisy.variances, None)
    assert MECHANISMS[name].solve(nothing).sum() == 0


def test_a_poorly_measured_root_does_not_cap_the_number_of_groups() -> None:
    tree = LevelTree.from_counts([[2]])
    rows = np.array([[150, 40], [100, 30], [100, 30]])
    released = MECHANISMS["louver"].solve(NoisyAnswers(tree, rows, (20_000.0, 2.0), None))
    assert abs(int(released[0].sum()) - 200) <= 1


@pytest.mark.parametrize(
    "name", [m.name for m in MECHANISMS.values() if m.open_query is None and m.name != "M_H^r"]
)
def test_a_public_total_is_asked_for(name: str) -> None:
    tree = SHAPES["pair"]
    with pytest.raises(SolverError):
        MECHANISMS[name].solve(NoisyAnswers(tree, np.ones((3, 2), np.int64), (1.0, 1.0), None))


@pytest.mark.parametrize("seed", range(6))
def test_three_ways_to_the_same_optimum(seed: int) -> None:
    tree = SHAPES["three levels"]
    noisy = _noisy(tree, SizeQuery.SIZES, 2, 5, seed)
    costs = {
        name: int(((MECHANISMS[name].solve(noisy) - noisy.rows) ** 2).sum())
        for name in ("M_H", "M_dp^OP", "M_H^dp")
    }
    assert len(set(costs.values())) == 1


@pytest.mark.parametrize("seed", range(5))
def test_m_c_is_the_best_of_all_tables(seed: int) -> None:
    tree = SHAPES["pair"]
    noisy = _noisy(tree, SizeQuery.PREFIX, 3, 4, seed)

    def cost(table: np.ndarray) -> int:
        return int(((answers(table, SizeQuery.PREFIX, tree) - noisy.rows) ** 2).sum())

    assert cost(MECHANISMS["M_c"].solve(noisy)) == min(cost(t) for t in tables(tree, 3, 4))


@pytest.mark.parametrize("seed", range(5))
def test_m_c_ch_solves_model_3(seed: int) -> None:
    tree = SHAPES["three levels"]
    noisy = _noisy(tree, SizeQuery.CHAIN, 2, 4, seed)

    def cost(table: np.ndarray) -> int:
        return int(((answers(table, SizeQuery.CHAIN, tree) - noisy.rows) ** 2).sum())

    assert cost(MECHANISMS["M_c^ch"].solve(noisy)) == min(cost(t) for t in tables(tree, 2, 4))


def test_without_noise_every_mechanism_returns_the_truth() -> None:
    tree = LevelTree.from_counts([[2], [2, 1]])
    counts = tree.sum_up(np.array([[4, 3, 0, 1], [0, 5, 2, 0], [1, 0, 0, 2]]))
    for mechanism in MECHANISMS.values():
        noisy = NoisyAnswers(tree, answers(counts, mechanism.query, tree), (1.0, 1.0, 1.0), 18)
        assert np.array_equal(mechanism.solve(noisy), counts), mechanism.name


def test_relaxed_mechanisms_violate_sums_and_it_is_counted() -> None:
    tree = LevelTree.from_counts([[5], [3] * 5])
    for name in ("M_H^r", "M_c^r"):
        noisy = _noisy(tree, MECHANISMS[name].query, 6, 200, seed=1, spread=20)
        released = MECHANISMS[name].solve(noisy)
        assert (released >= 0).all()
        by_hand = sum(
            int((released[tree.children(r)].sum(axis=0) != released[r]).sum())
            for r in range(int(tree.level_start[-2]))
        )
        assert count_violations(released, tree) == by_hand > 0


def test_level_variances_matter() -> None:
    """The default trusts the level with less noise."""
    tree = SHAPES["pair"]
    rows = np.array([[60, 100], [20, 30], [20, 30]])
    exact_root = MECHANISMS["louver"].solve(NoisyAnswers(tree, rows, (1e-6, 1e3), 100))
    exact_leaves = MECHANISMS["louver"].solve(NoisyAnswers(tree, rows, (1e3, 1e-6), 100))
    assert exact_root[0].tolist() == [60, 40] and exact_leaves[0].tolist() == [40, 60]


def test_noise_without_variance_counts_as_exact() -> None:
    """A large epsilon leaves no variance that a float can hold."""
    tree = SHAPES["pair"]
    released = MECHANISMS["louver"].solve(
        NoisyAnswers(tree, np.array([[3, 5], [1, 2], [2, 3]]), (0.0, 0.0), 5)
    )
    assert released.tolist() == [[3, 2], [1, 1], [2, 1]]


def test_names_and_limits() -> None:
    assert find_mechanism("M_c^dp", Relation.ADD_REMOVE_RECORD).query is SizeQuery.PREFIX
    with pytest.raises(InputError, match="must be one of louver") as caught:
        find_mechanism("magic", Relation.ADD_REMOVE_RECORD)
    assert caught.value.option == "mechanism"
    big = NoisyAnswers(LevelTree.from_counts([[50]]), np.zeros((51, 100), np.int64), (1.0, 1.0), 1000)
    for name in ("M_H", "M_c", "M_dp^OP"):
        with pytest.raises(InputError, match="too large for a general solver"):
            MECHANISMS[name].solve(big)
