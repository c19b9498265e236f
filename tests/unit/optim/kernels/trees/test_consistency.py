"""Closed forms over a tree and along rows, against general solvers and optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from louver.optim.kernels.trees.consistency import (
    deal_inplace,
    nonincreasing_inplace,
    project_inplace,
    simplex_inplace,
    subtree_weights,
)
from louver.optim.trees import LevelTree

TREES = [LevelTree.from_counts(c) for c in ([], [[2]], [[3], [1, 2, 2]], [[2], [2, 1], [1, 1, 2]])]


@pytest.mark.parametrize("tree", TREES, ids=["one", "pair", "three levels", "four levels"])
@pytest.mark.parametrize("is_fixed", [False, True])
def test_projection_is_weighted_least_squares_on_the_leaves(tree, is_fixed):
    random = np.random.default_rng(tree.n_regions)
    y, weight = random.normal(5, 4, (tree.n_regions, 3)), random.uniform(0.2, 3, tree.n_regions)
    up = np.stack(
        [tree.sum_up(leaf[:, None])[:, 0] for leaf in np.eye(tree.n_leaves, dtype=np.int64)], axis=1
    )
    scale = np.sqrt(weight)[:, None]
    expected = up @ np.linalg.lstsq(scale * up, scale * y, rcond=None)[0]
    if is_fixed:  # the first column has a total: a very heavy root
        heavy = scale.copy()
        heavy[0] = 1e6
        told = y.copy()
        told[0, 0] = 40.0
        expected[:, 0] = (up @ np.linalg.lstsq(heavy * up, heavy * told, rcond=None)[0])[:, 0]
    precision, share = np.empty(tree.n_regions), np.empty(tree.n_regions)
    subtree_weights(weight, tree.first_child, precision, share)
    project_inplace(y, weight, precision, share, tree.first_child, 0, 2, 0 if is_fixed else -1, 40.0)
    project_inplace(y, weight, precision, share, tree.first_child, 2, 3, 0 if is_fixed else -1, 40.0)
    assert y == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 9, 200])
def test_rows_that_never_increase_are_isotonic_regressions(n):
    random = np.random.default_rng(n)
    for _ in range(20):
        row = random.normal(0, 3, n).round(1)
        expected = np.clip(isotonic_regression(row, increasing=False).x, -2.0, 2.5)
        nonincreasing_inplace(row, -2.0, 2.5, np.empty(n), np.empty(n))
        assert row == pytest.approx(expected)


@pytest.mark.parametrize("total", [0.0, 1.0, 7.5])
def test_simplex_projection(total: float) -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        y = rng.normal(0, 3, 6)
        x = y.copy()
        simplex_inplace(x, total)
        assert x.min() >= 0 and x.sum() == pytest.approx(total)
        used = x > 1e-9
        if used.any():
            assert np.ptp((x - y)[used]) < 1e-9
            assert ((x - y)[~used] >= (x - y)[used].max() - 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_dealt_adds_up_and_stays_near(seed):
    random = np.random.default_rng(seed)
    truth = np.sort(random.integers(0, 30, (4, 7)), axis=1)[:, ::-1].copy()
    means = truth + random.normal(0, 0.3, truth.shape)
    values = np.empty(truth.shape, np.int64)
    deal_inplace(truth.sum(axis=0), means, values)
    assert values.sum(axis=0).tolist() == truth.sum(axis=0).tolist()
    assert values.min() >= 0 and (np.diff(values, axis=1) <= 0).all()
    assert np.abs(values - means).max() < 4
    exact = np.empty(truth.shape, np.int64)
    deal_inplace(truth.sum(axis=0), truth.astype(float), exact)
    assert exact.tolist() == truth.tolist()
