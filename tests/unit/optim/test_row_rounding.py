"""Rounding: the flow equals an integer program, and keeps every property."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from louver.errors import SolverError
from louver.optim.kernels.trees.consistency import deal_inplace
from louver.optim.row_rounding import MOST_FLOW_CELLS, min_cost_flow, round_children, round_tree
from louver.optim.trees import LevelTree


def _program(parent: np.ndarray, rows: np.ndarray) -> float:
    """Least sum of squares, by unit steps with rising prices in a general integer program."""
    n_children, n_columns = rows.shape
    cells, most = rows.size, int(parent[0])
    prices = (2 * (np.arange(most) - rows.reshape(-1, 1)) + 1).ravel()
    steps = np.hstack([np.eye(cells), -np.kron(np.eye(cells), np.ones((1, most)))])
    pad = np.zeros((n_columns, cells * most))
    sums = np.hstack([np.tile(np.eye(n_columns), n_children), pad])
    falling = np.kron(
        np.eye(n_children), np.eye(n_columns - 1, n_columns) - np.eye(n_columns - 1, n_columns, 1)
    )
    falling = np.hstack([falling, np.zeros((len(falling), cells * most))])
    lower = np.concatenate([np.zeros(cells), parent, np.zeros(len(falling))])
    upper = np.concatenate([np.zeros(cells), parent, np.full(len(falling), np.inf)])
    solved = milp(
        np.concatenate([np.zeros(cells), prices]),
        constraints=LinearConstraint(np.vstack([steps, sums, falling]), lower, upper),
        integrality=np.repeat([1, 0], [cells, cells * most]),
        bounds=Bounds(0, np.concatenate([np.full(cells, most), np.ones(cells * most)])),
    )
    assert solved.success
    return float(solved.fun + (rows**2).sum())


@pytest.mark.parametrize("seed", range(25))
def test_rounding_equals_an_integer_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_children, n_columns = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    real = np.sort(rng.uniform(0, rng.choice([1.5, 6]), (n_children, n_columns)), axis=1)[:, ::-1]
    parent = np.maximum(np.rint(real.sum(axis=0) + rng.normal(0, 0.7, n_columns)), 0).astype(np.int64)
    parent = np.maximum.accumulate(parent[::-1])[::-1]
    rounded = round_children(parent, real)
    assert (rounded >= 0).all() and (np.diff(rounded, axis=1) <= 0).all()
    assert np.array_equal(rounded.sum(axis=0), parent)
    if parent[0]:
        assert ((rounded - real) ** 2).sum() == pytest.approx(_program(parent, real), abs=1e-3)


def test_rounding_far_from_the_real_rows_widens_its_window() -> None:
    rounded = round_children(np.array([60, 60, 1]), np.array([[1.0, 0.5, 0.0], [2.0, 1.5, 0.2]]))
    assert rounded.sum(axis=0).tolist() == [60, 60, 1]
    assert sorted(rounded[:, 0].tolist()) == [29, 31] or sorted(rounded[:, 0].tolist()) == [30, 30]


def test_an_empty_parent_has_empty_children() -> None:
    assert round_children(np.zeros(3, np.int64), np.ones((2, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("total", [None, 40, 0])
def test_a_whole_tree_keeps_sums_and_monotony(total: int | None) -> None:
    rng = np.random.default_rng(5)
    tree = LevelTree.from_counts([[3], [2, 1, 4]])
    leaves = np.sort(rng.uniform(0, 7, (tree.n_leaves, 8)), axis=1)[:, ::-1]
    real = np.vstack([leaves.sum(axis=0)[None], np.add.reduceat(leaves, [0, 2, 3], axis=0), leaves])
    rounded = round_tree(real, tree, total)
    assert (rounded >= 0).all() and (np.diff(rounded, axis=1) <= 0).all()
    for r in range(int(tree.level_start[-2])):
        assert np.array_equal(rounded[tree.children(r)].sum(axis=0), rounded[r])
    if total is None:
        assert np.abs(rounded[0] - real[0]).max() <= 0.5
    else:
        assert rounded[0, 0] == total


def _many(n_children: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Real rows that fall, and whole sums of them, with a size in every column."""
    rng = np.random.default_rng(n_columns)
    real = np.sort(rng.exponential(3.0, (n_children, n_columns)), axis=1)[:, ::-1] * n_columns
    parent = np.rint(real.sum(axis=0)).astype(np.int64)
    return np.maximum.accumulate(parent[::-1])[::-1].copy(), np.ascontiguousarray(real)


def test_large_problems_are_dealt_out() -> None:
    parent, real = _many(40, 300)
    assert real.size > MOST_FLOW_CELLS
    rounded = round_children(parent, real)
    assert (rounded >= 0).all() and (np.diff(rounded, axis=1) <= 0).all()
    assert np.array_equal(rounded.sum(axis=0), parent)
    assert np.abs(rounded - real).max() < 4


@pytest.mark.parametrize("shape", [(1, 7), (3, 40), (20, 60)])
def test_dealing_is_not_much_worse_than_the_flow(shape: tuple[int, int]) -> None:
    parent, real = _many(*shape)
    dealt = np.empty(shape, np.int64)
    deal_inplace(parent, real, dealt)
    assert (dealt >= 0).all() and (np.diff(dealt, axis=1) <= 0).all()
    assert np.array_equal(dealt.sum(axis=0), parent)
    best = ((round_children(parent, real) - real) ** 2).sum()
    assert best - 1e-6 <= ((dealt - real) ** 2).sum() <= 2 * best + 1e-6


def test_a_flow_without_solution_is_said() -> None:
    one = np.array([0]), np.array([1]), np.array([1]), np.array([1])
    with pytest.raises(SolverError, match="no solution"):
        min_cost_flow(*one, np.array([3, -3]))
