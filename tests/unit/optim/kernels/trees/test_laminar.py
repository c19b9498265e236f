"""Least squares over copies of a tree with one total, in real numbers: against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from louver.optim.kernels.trees.laminar import price_of_total, relaxed_values, root_curves, rounded_values
from louver.optim.trees import LevelTree

TREES = [LevelTree.from_counts(c) for c in ([], [[3]], [[2], [1, 2]], [[2], [2, 1], [1, 1, 2]])]
COPIES = 3


def general(y, tree, weight, total):
    """Leaves of all copies that are not negative; the total is a heavy equation, or there is none."""
    up = np.stack(
        [tree.sum_up(leaf[:, None])[:, 0] for leaf in np.eye(tree.n_leaves, dtype=np.int64)], axis=1
    )
    matrix = np.kron(np.eye(COPIES), np.sqrt(weight)[:, None] * up)
    right = (np.sqrt(weight) * y).ravel()
    if total is not None:
        matrix = np.vstack([matrix, np.full((1, matrix.shape[1]), 1e4)])
        right = np.append(right, 1e4 * total)
    leaves = nnls(matrix, right, maxiter=10_000)[0].reshape(COPIES, -1)
    return leaves @ up.T


@pytest.mark.parametrize("tree", TREES, ids=["one", "three", "three levels", "four levels"])
@pytest.mark.parametrize("total", [None, 0, 7, 60])
def test_relaxed_values(tree, total):
    random = np.random.default_rng(tree.n_regions)
    y, weight = random.normal(3, 5, (COPIES, tree.n_regions)), random.uniform(0.3, 2, tree.n_regions)
    prices, steps = np.empty((COPIES, tree.n_leaves)), np.empty((COPIES, tree.n_leaves))
    root_curves(y, weight, tree.first_child, tree.level_start, prices, steps)
    assert (np.diff(prices, axis=1) >= 0).all() and steps.min() > -1e-12
    price = 0.0 if total is None else price_of_total(prices, steps, float(total))
    x = np.empty_like(y)
    relaxed_values(y, weight, tree.first_child, tree.level_start, price, x)
    assert x == pytest.approx(general(y, tree, weight, total), abs=1e-4)


def test_rounding_keeps_every_sum_and_stays_within_one_of_its_share():
    tree, random = TREES[3], np.random.default_rng(1)
    leaves = random.uniform(0, 4, (COPIES, tree.n_leaves))
    up = np.stack(
        [tree.sum_up(leaf[:, None])[:, 0] for leaf in np.eye(tree.n_leaves, dtype=np.int64)], axis=1
    )
    x = leaves @ up.T
    total = round(x[:, 0].sum())
    values = np.empty(x.shape, np.int64)
    rounded_values(x, tree.first_child, total, values)
    assert values[:, 0].sum() == total and values.min() >= 0
    for r in range(int(tree.level_start[-2])):
        assert (values[:, tree.children(r)].sum(axis=1) == values[:, r]).all()
    assert np.abs(values[:, 0] - x[:, 0]).max() < 1
