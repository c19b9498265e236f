"""Generalised least squares over a whole tree, as one dense system over the cells of all leaves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def tree_least_squares(members, queries, variances, answers):
    """Estimate and covariance of all leaf cells, flattened leaf by leaf.

    `members[level]` is (regions, leaves), 1 where a leaf lies in a region; `queries[level]` are arrays that give the row
    of each cell; `answers[level][q]` is (regions, rows).
    """
    rows, goal, weight = [], [], []
    for inside, level_queries, level_variances, level_answers in zip(
        members, queries, variances, answers, strict=True
    ):
        for row_of, variance, values in zip(level_queries, level_variances, level_answers, strict=True):
            marginal = (row_of == np.arange(row_of.max() + 1)[:, None]).astype(float)
            rows.append(np.kron(inside, marginal))
            goal.append(values.ravel())
            weight.append(np.full(values.size, 1.0 / variance))
    matrix, goal, weight = np.concatenate(rows), np.concatenate(goal), np.concatenate(weight)
    covariance = np.linalg.inv(matrix.T @ (weight[:, None] * matrix))
    return covariance @ (matrix.T @ (weight * goal)), covariance


def exact_least_squares(rows, is_open, add):
    """Least squares in exact arithmetic: what `add` makes of the unknowns, and its covariance, as floats.

    `rows` are (coefficients, weight, value); unknowns that are not open are zero for certain.
    """
    n = len(is_open)
    kept = np.flatnonzero(is_open)
    matrix = [[Fraction(0)] * len(kept) for _ in kept]
    right = [Fraction(0)] * len(kept)
    for coefficients, weight, value in rows:
        inside = [i for i, k in enumerate(kept) if coefficients[k]]
        for i in inside:
            right[i] += weight * value
            for j in inside:
                matrix[i][j] += weight
    inverse = _inverted(matrix)
    covariance = np.zeros((n, n))
    best = np.zeros(n)
    for i, k in enumerate(kept):
        best[k] = float(sum(inverse[i][j] * right[j] for j in range(len(kept))))
        for j, other in enumerate(kept):
            covariance[k, other] = float(inverse[i][j])
    return add.T @ best, add.T @ covariance @ add


def _inverted(matrix):
    """Gauss and Jordan in fractions."""
    n = len(matrix)
    rows = [list(row) + [Fraction(int(i == j)) for j in range(n)] for i, row in enumerate(matrix)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        scale = rows[i][i]
        rows[i] = [x / scale for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i] != 0:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]
