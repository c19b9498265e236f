"""Rows of households that agree with people: closest rows, whole rows, exchanges; against trying everything."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from louver._arrays import Floats
from louver.errors import SolverError
from louver.optim.agreement import HousedPeople, fit_agreeing, round_agreeing
from louver.optim.kernels.trees.agreement import fit_row_inplace, round_rows
from louver.optim.trees import LevelTree
from oracles.agreement import best_tree, has_rows, rows_of

TREES = [LevelTree.from_counts(counts) for counts in ([[2]], [[3]], [[2], [2, 1]], [[1], [2]])]


def _fitted(row: Floats, total: float, lower: float, upper: float) -> Floats:
    fitted = row.copy()
    fit_row_inplace(fitted, total, lower, upper, *np.empty((2, len(row))))
    return fitted


def _leaves_of(tree: LevelTree) -> list[list[int]]:
    """The leaves of every region."""
    memberships = tree.sum_up(np.eye(tree.n_leaves, dtype=np.int64))
    return [np.flatnonzero(row).tolist() for row in memberships]


def _known(tree: LevelTree, rng: np.random.Generator, n_sizes: int, most: int = 6) -> HousedPeople:
    people = rng.integers(0, most + 1, tree.n_leaves)
    lower = np.zeros_like(people)
    upper = np.maximum(-(-people // n_sizes), rng.integers(0, most + 1, tree.n_leaves))
    return HousedPeople.of_leaves(tree, people, lower, upper, n_sizes)


@pytest.mark.parametrize("seed", range(40))
def test_a_row_is_the_closest_possible_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    row = rng.normal(3, 6, n)
    total = float(rng.integers(0, 20))
    upper = float(rng.integers(np.ceil(total / n), total + 1))
    lower = float(rng.integers(np.ceil(total / n), upper + 1))
    fitted = _fitted(row, total, lower, upper)
    assert fitted.sum() == pytest.approx(total, abs=1e-8)
    assert (np.diff(fitted) <= 1e-9).all() and (fitted >= 0).all()
    assert lower - 1e-9 <= fitted[0] <= upper + 1e-9
    start = np.full(n, total / n)
    start[0] = max(lower, total / n)
    start[1:] = (total - start[0]) / max(n - 1, 1)
    edges = [LinearConstraint(np.ones((1, n)), total, total)]
    if n > 1:
        edges.append(LinearConstraint(np.diff(np.eye(n), axis=0), -np.inf, 0))
    bounds = [(lower, upper), *[(0, None)] * (n - 1)]
    found = minimize(
        lambda x: float(((x - row) ** 2).sum()), start, method="SLSQP", bounds=bounds, constraints=edges
    )
    assert float(((fitted - row) ** 2).sum()) <= found.fun + 1e-5


def test_a_row_with_ties_and_large_numbers_keeps_its_sum() -> None:
    fitted = _fitted(np.array([1e6, 1e6, 1e6, -5.0]), 2_000_003.0, 500_001.0, 1_500_000.0)
    assert fitted.sum() == pytest.approx(2_000_003.0)
    assert _fitted(np.array([0.0, 0.0]), 0.0, 0.0, 0.0).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n_sizes", [1, 2, 3])
def test_people_fit_exactly_where_some_row_does(n_sizes: int) -> None:
    for people, least, most in product(range(7), range(5), range(5)):
        tree, one = LevelTree.from_counts([[1]]), np.ones(1, np.int64)
        try:
            HousedPeople.of_leaves(tree, people * one, least * one, most * one, n_sizes)
        except SolverError:
            assert not has_rows(people, n_sizes, least, most), (people, least, most)
        else:
            assert has_rows(people, n_sizes, least, most), (people, least, most)


@pytest.mark.parametrize("seed", range(30))
def test_whole_rows_are_possible_and_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = int(rng.integers(0, 30))
    least = -(-people // 4)
    most = int(rng.integers(least, people + 1))
    row = _fitted(rng.normal(5, 5, 4), people, least, most)
    whole = np.empty((1, 4), np.int64)
    assert round_rows(row[None], np.array([people]), np.array([most]), whole) == -1
    assert whole.sum() == people and (np.diff(whole[0]) <= 0).all() and (whole >= 0).all()
    assert least <= whole[0, 0] <= most and (np.abs(whole - row) < 4).all()


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.level_sizes))
def test_exchanges_come_to_the_best_table_or_next_to_it(tree: LevelTree) -> None:
    rng = np.random.default_rng(5)
    found, least, n_best = 0.0, 0.0, 0
    for _ in range(40):
        known = _known(tree, rng, n_sizes=3)
        noisy = tree.sum_up(rng.integers(0, 4, (tree.n_leaves, 3)))
        fitted = fit_agreeing(noisy, tree, [1.0] * tree.n_levels, known)
        whole = round_agreeing(fitted, tree, known)
        leaves = tree.level(tree.n_levels - 1)
        choices = [
            list(rows_of(*map(int, row)))
            for row in zip(
                known.people[leaves],
                np.full(tree.n_leaves, 3),
                known.lower[leaves],
                known.upper[leaves],
                strict=True,
            )
        ]
        assert all(tuple(row) in own for row, own in zip(whole[leaves].tolist(), choices, strict=True))
        assert (tree.sum_up(whole[leaves]) == whole).all()
        own = float(((whole - fitted) ** 2).sum())
        best = best_tree(fitted.tolist(), _leaves_of(tree), choices)
        assert own >= best - 1e-9
        found, least, n_best = found + own, least + best, n_best + (own <= best + 1e-9)
    assert found <= 1.03 * least + 1e-9 and n_best >= 38


def test_without_noise_the_truth_comes_back() -> None:
    tree, rng = LevelTree.from_counts([[3], [4, 2, 5]]), np.random.default_rng(1)
    counts = rng.integers(0, 6, (tree.n_leaves, 4))
    rows = tree.sum_up(counts[:, ::-1].cumsum(axis=1)[:, ::-1])
    people = counts @ np.arange(1, 5)
    known = HousedPeople.of_leaves(tree, people, np.zeros_like(people), people, 4)
    assert (round_agreeing(fit_agreeing(rows, tree, [0.0] * 3, known), tree, known) == rows).all()


def test_noise_leaves_the_shape_of_the_parent() -> None:
    """With noise far above the numbers, leaves have their share of what the root has."""
    tree = LevelTree.from_counts([[2]])
    people = np.array([300, 100])
    rows = np.array([[200, 120, 80], [10_000, -9_000, 500], [-20_000, 7_000, 3]])
    known = HousedPeople.of_leaves(tree, people, np.zeros_like(people), people, 3)
    fitted = fit_agreeing(rows, tree, [0.01, 1e12], known)
    assert np.abs(fitted[1] - [150, 90, 60]).max() < 1 and np.abs(fitted[2] - [50, 30, 20]).max() < 1


def test_counted_groups_are_kept() -> None:
    tree = LevelTree.from_counts([[3]])
    people, heads = np.array([10, 4, 0]), np.array([4, 4, 0])
    known = HousedPeople.of_leaves(tree, people, heads, heads, 5)
    assert known.is_counted
    rng = np.random.default_rng(2)
    whole = round_agreeing(fit_agreeing(rng.integers(0, 9, (4, 5)), tree, [2.0, 2.0], known), tree, known)
    assert whole[1:, 0].tolist() == [4, 4, 0] and whole[1:].sum(axis=1).tolist() == [10, 4, 0]


@pytest.mark.parametrize("seed", range(10))
def test_odd_trees_and_noise_give_possible_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts, below = [], 1
    for _ in range(int(rng.integers(1, 4))):
        counts.append(rng.integers(1, 5, below).tolist())
        below = sum(counts[-1])
    tree = LevelTree.from_counts(counts)
    n_sizes = int(rng.integers(1, 8))
    known = _known(tree, rng, n_sizes, most=int(rng.choice([0, 1, 40])))
    noisy = rng.integers(-1000, 1000, (tree.n_regions, n_sizes))
    variances = rng.choice([0.0, 1e-9, 1.0, 1e8], tree.n_levels).tolist()
    whole = round_agreeing(fit_agreeing(noisy, tree, variances, known), tree, known)
    assert (whole.sum(axis=1) == known.people).all() and (np.diff(whole, axis=1) <= 0).all()
    assert (whole[:, 0] >= known.lower).all() and (whole[:, 0] <= known.upper).all() and (whole >= 0).all()
