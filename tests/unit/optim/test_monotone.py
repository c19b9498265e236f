"""Isotonic regression, tree projection and both at once, against a general solver and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from louver._arrays import Floats
from louver.optim.kernels.trees.consistency import project_inplace
from louver.optim.monotone import _coefficients, fit_monotone, nonincreasing
from louver.optim.trees import LevelTree

TREES = [LevelTree.from_counts(c) for c in ([], [[2]], [[3], [1, 2, 2]], [[1], [3]])]


def _least_squares(
    noisy: np.ndarray, tree: LevelTree, weights: list[float], total: float | None
) -> np.ndarray:
    """The same problem on the leaves' differences, which are only not negative: a general solver's least squares."""
    n_columns = noisy.shape[1]
    up = np.stack([tree.sum_up(e[:, None])[:, 0] for e in np.eye(tree.n_leaves, dtype=np.int64)], axis=1)
    from_sizes = np.kron(up, np.triu(np.ones((n_columns, n_columns))))
    scale = np.sqrt(np.repeat(np.repeat(weights, tree.level_sizes), n_columns))
    matrix, right = scale[:, None] * from_sizes, scale * noisy.ravel()
    if total is not None:  # a heavy row instead of an equation
        matrix, right = np.vstack([matrix, 1e5 * from_sizes[0]]), np.append(right, 1e5 * total)
    return (from_sizes @ optimize.nnls(matrix, right, maxiter=10_000)[0]).reshape(noisy.shape)


@pytest.mark.parametrize("tree", TREES, ids=["one", "pair", "three levels", "narrow"])
@pytest.mark.parametrize("total", [None, 12.0])
@pytest.mark.parametrize("seed", range(4))
def test_joint_fit_equals_a_general_solver(tree: LevelTree, total: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    noisy = rng.normal(6, 5, (tree.n_regions, 4))
    weights = rng.uniform(0.2, 3, tree.n_levels).tolist()
    fit = fit_monotone(noisy, tree, weights, upper=1e3, total=total, tolerance=1e-9, max_iterations=20_000)
    assert fit.gap < 1e-8
    assert fit.rows == pytest.approx(_least_squares(noisy, tree, weights, total), abs=1e-4)


def test_the_gap_is_what_it_says() -> None:
    rng = np.random.default_rng(0)
    tree = LevelTree.from_counts([[5], [3] * 5])
    noisy = rng.normal(0, 30, (tree.n_regions, 60)) + np.linspace(300, 0, 60)
    fit = fit_monotone(noisy, tree, [1.0, 1.0, 1.0], upper=4000.0, tolerance=0.5)
    for r in range(int(tree.level_start[-2])):
        assert fit.rows[r] == pytest.approx(fit.rows[tree.children(r)].sum(axis=0))
    assert np.diff(fit.rows, axis=1).max() <= 2 * fit.gap + 1e-9
    assert fit.gap <= 0.5 and fit.iterations < 400
    stopped = fit_monotone(noisy, tree, [1.0, 1.0, 1.0], upper=4000.0, tolerance=1e-12, max_iterations=3)
    assert stopped.iterations == 3 and stopped.gap > 0


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_regression_by_the_minimax_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = rng.normal(0, 3, 9).round(1)
    fitted = nonincreasing(row[None, :], -2.0, 2.0)[0]
    for i in range(9):
        value = min(max(row[a : b + 1].mean() for b in range(i, 9)) for a in range(i + 1))
        assert fitted[i] == pytest.approx(min(max(value, -2.0), 2.0))


def project(
    rows: Floats, tree: LevelTree, weights: list[float], fixed: int = -1, value: float = 0.0
) -> Floats:
    """The closest rows that are sums of their children, the root of the first column fixed or not."""
    fitted = rows.copy()
    project_inplace(fitted, *_coefficients(tree, weights), tree.first_child, 0, rows.shape[1], fixed, value)
    return fitted


def test_projection_is_orthogonal_in_its_weights() -> None:
    rng = np.random.default_rng(1)
    tree = TREES[2]
    noisy = rng.normal(0, 5, (tree.n_regions, 3))
    weights = [0.3, 2.0, 1.0]
    fitted = project(noisy, tree, weights)
    weight = np.repeat(weights, tree.level_sizes)[:, None]
    for leaf in range(tree.n_leaves):
        direction = tree.sum_up(np.eye(tree.n_leaves, dtype=np.int64)[:, [leaf]])
        assert (weight * direction * (fitted - noisy)).sum(axis=0) == pytest.approx(0)
    fixed = project(noisy, tree, weights, fixed=0, value=7.0)
    assert fixed[0, 0] == 7.0 and fixed[0, 1:] == pytest.approx(fitted[0, 1:])
    assert fixed[tree.children(0)].sum(axis=0) == pytest.approx(fixed[0])
