"""Generalised least squares over a whole tree, as one dense system over the cells of all leaves."""

from __future__ import annotations

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
