"""Cholesky factors against NumPy's, and solutions of systems with dependent rows."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.families.cholesky import (
    factor_inplace,
    solve_inplace,
    solve_transposed_inplace,
)


def factored(matrix):
    factor = matrix.copy()
    factor_inplace(factor, len(matrix), np.diag(matrix).copy(), np.ones(len(matrix)))
    return factor


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_positive_definite_systems(n):
    random = np.random.default_rng(n)
    root = random.normal(size=(n, n + 3))
    matrix, right = root @ root.T, random.normal(size=n)
    factor = factored(matrix)
    assert np.triu(factor) == pytest.approx(np.linalg.cholesky(matrix).T)
    x, half = right.copy(), right.copy()
    solve_inplace(factor, n, x, np.zeros(n))
    assert x == pytest.approx(np.linalg.solve(matrix, right))
    solve_transposed_inplace(factor, n, half, np.zeros(n))
    assert np.triu(factor).T @ half == pytest.approx(right)


def test_dependent_rows_are_marked_and_consistent_systems_still_solved():
    random = np.random.default_rng(0)
    root = random.normal(size=(4, 6))
    rows = np.vstack([root, root[0] + root[1]])
    matrix = rows @ rows.T
    factor = factored(matrix)
    assert (np.diag(factor) < 0).tolist() == [False, False, False, False, True]
    right = matrix @ random.normal(size=5)
    x = right.copy()
    solve_inplace(factor, 5, x, np.zeros(5))
    assert matrix @ x == pytest.approx(right)


def test_a_dependent_row_that_is_missed_is_pushed_in_its_direction():
    matrix = np.zeros((1, 1))
    for right in (2.0, -2.0):
        x = np.array([right])
        factor = factored(matrix)
        solve_inplace(factor, 1, x, np.array([3.0]))
        assert x[0] == pytest.approx(right + np.copysign(3.0, right))
