"""Model 1: exact on small trees of depth 1 to 4, from any start, with level weights and without a total."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.errors import SolverError
from louver.optim.allocation import allocate, allocate_relaxed
from louver.optim.kernels.trees.laminar import exchange_inplace
from louver.optim.trees import LevelTree
from oracles.groups import best_cost, is_table

TREES = [
    LevelTree.from_counts(counts)
    for counts in ([], [[2]], [[3]], [[1]], [[2], [1, 2]], [[1], [2]], [[2], [2, 1], [1, 1, 2]])
]


def _cost(values: np.ndarray, noisy: np.ndarray, tree: LevelTree, weights: list[int]) -> int:
    return int((np.repeat(weights, tree.level_sizes)[:, None] * (values - noisy) ** 2).sum())


@st.composite
def problems(draw: st.DrawFn) -> tuple[LevelTree, np.ndarray, int, list[int]]:
    tree = draw(st.sampled_from(TREES))
    n_sizes = draw(st.integers(1, 4 if tree.n_leaves == 1 else 2))
    cells = tree.n_regions * n_sizes
    noisy = np.array(draw(st.lists(st.integers(-6, 8), min_size=cells, max_size=cells)))
    weights = draw(st.lists(st.integers(1, 4), min_size=tree.n_levels, max_size=tree.n_levels))
    return tree, noisy.reshape(tree.n_regions, n_sizes), draw(st.integers(0, 5)), weights


@given(problems())
@settings(max_examples=150, deadline=None)
def test_the_best_of_all_tables(problem: tuple[LevelTree, np.ndarray, int, list[int]]) -> None:
    tree, noisy, total, weights = problem
    values = allocate(noisy, tree, total, weights)
    assert is_table(values, tree, total)
    assert _cost(values, noisy, tree, weights) == best_cost(noisy, tree, total, weights)


@given(problems())
@settings(max_examples=60, deadline=None)
def test_an_open_total_is_the_best_of_all_totals(
    problem: tuple[LevelTree, np.ndarray, int, list[int]],
) -> None:
    tree, noisy, _, weights = problem
    noisy = np.minimum(noisy, 3) if tree.n_leaves * noisy.shape[1] <= 3 else np.minimum(noisy, 1)
    values = allocate(noisy, tree, None, weights)
    assert is_table(values, tree, None)
    most = int(np.maximum(noisy, 0).sum()) if noisy.size <= 6 else 6
    best = min(best_cost(noisy, tree, total, weights) for total in range(min(most, 9) + 1))
    assert _cost(values, noisy, tree, weights) <= best


@given(problems(), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_exchange_reaches_the_optimum_from_any_start(
    problem: tuple[LevelTree, np.ndarray, int, list[int]], seed: int
) -> None:
    tree, noisy, total, weights = problem
    leaves = np.random.default_rng(seed).multinomial(
        total, np.full(tree.n_leaves * noisy.shape[1], 1 / (tree.n_leaves * noisy.shape[1]))
    )
    start = np.ascontiguousarray(tree.sum_up(leaves.reshape(tree.n_leaves, -1)).T)
    weight = np.repeat(weights, tree.level_sizes)
    exchange_inplace(np.ascontiguousarray(noisy.T), weight, tree.first_child, tree.parent, False, start)
    assert is_table(start.T, tree, total)
    assert _cost(start.T, noisy, tree, weights) == best_cost(noisy, tree, total, weights)


def test_exchange_moves_units() -> None:
    tree = LevelTree.from_counts([[2]])
    noisy = np.array([[4], [4], [0]])
    start = np.array([[4, 0, 4]])
    moved = exchange_inplace(
        np.ascontiguousarray(noisy.T), np.ones(3, np.int64), tree.first_child, tree.parent, False, start
    )
    assert moved == 4 and start.tolist() == [[4, 4, 0]]


@given(problems())
@settings(max_examples=60, deadline=None)
def test_the_relaxation_meets_its_optimality_conditions(
    problem: tuple[LevelTree, np.ndarray, int, list[int]],
) -> None:
    """Prices: a leaf's price is what one unit more costs along its path; equal where used, no lower elsewhere."""
    tree, noisy, total, _ = problem
    values = allocate_relaxed(noisy, tree, total)
    assert values.min() >= 0 and values[0].sum() == pytest.approx(total, abs=1e-7)
    path = values - noisy
    for r in range(1, tree.n_regions):
        path[r] += path[tree.parent[r]]
        assert np.allclose(values[tree.children(r)].sum(axis=0), values[r]) or r >= tree.level_start[-2]
    leaves = tree.level(tree.n_levels - 1)
    used = values[leaves] > 1e-7
    if used.any():
        assert np.ptp(path[leaves][used]) < 1e-6
        assert (path[leaves][~used] > path[leaves][used].min() - 1e-6).all()


def test_the_relaxation_is_a_lower_bound() -> None:
    rng = np.random.default_rng(3)
    tree = LevelTree.from_counts([[4], [3, 1, 5, 2]])
    noisy = rng.integers(-30, 60, (tree.n_regions, 7))
    whole, real = allocate(noisy, tree, 500), allocate_relaxed(noisy, tree, 500)
    assert (
        ((real - noisy) ** 2).sum() <= ((whole - noisy) ** 2).sum() < ((real - noisy) ** 2).sum() + noisy.size
    )


def test_a_large_tree_is_optimal_by_its_certificate() -> None:
    """No unit can be moved with profit: checked on every pair of siblings, by definition of the path costs."""
    rng = np.random.default_rng(4)
    tree = LevelTree.from_counts([[6], rng.integers(1, 30, 6).tolist()])
    noisy = rng.integers(-40, 40, (tree.n_regions, 50)) + rng.integers(0, 300, 50)
    values = allocate(noisy, tree, 20_000, [1, 3, 2])
    assert is_table(values, tree, 20_000)
    weight = np.repeat([1, 3, 2], tree.level_sizes)[:, None]
    gain = weight * (2 * (values - noisy) + 1)
    loss = np.where(values > 0, weight * (2 * (noisy - values) + 1), 10**9)
    for r in range(int(tree.level_start[-2]) - 1, -1, -1):
        children = tree.children(r)
        assert (gain[children].min(axis=0) + loss[children].min(axis=0) >= 0).all()
        gain[r] += gain[children].min(axis=0)
        loss[r] += loss[children].min(axis=0)
    assert gain[0].min() + loss[0].min() >= 0


def test_numbers_too_large_to_compare_are_refused() -> None:
    with pytest.raises(SolverError, match="too large"):
        allocate(np.full((3, 1), 1 << 58), LevelTree.from_counts([[2]]), 5)
