"""Cholesky factors of small and medium-sized symmetric positive semidefinite matrices.

Written out rather than left to a BLAS, so that the digits do not depend on a library or its number of
threads. Upper triangles are used throughout: inner loops then run along rows and need no reductions.

A row that depends on others, so that its pivot is only rounding error, is decoupled and gets a pivot of its own, stored with a minus sign.
Solving leaves its unknown at zero where the right-hand side is below NOISE there; otherwise `reach` is added to the right-hand side, in its
direction.
"""

from __future__ import annotations

from louver.optim.kernels import inner

__all__ = ["factor_inplace", "solve_inplace", "solve_transposed_inplace"]

NOISE = 1e-10  # persons
DEPENDENT = 1e-8  # a pivot below this share of its reference marks a dependent row


@inner
def factor_inplace(matrix, n, reference, fallback):
    """Replace the upper triangle of a matrix M by U with M = U'U.

    `reference` holds the diagonal that M had before anything was subtracted from it, `fallback` the pivots
    of dependent rows.
    """
    # Before step j the triangle from (j, j) on holds the Schur complement of the first j rows.
    for j in range(n):
        pivot = matrix[j, j]
        if not pivot > DEPENDENT * reference[j]:
            matrix[j, j] = -(fallback[j] ** 0.5)
            for k in range(j + 1, n):
                matrix[j, k] = 0.0
            continue
        root = pivot**0.5
        matrix[j, j] = root
        inverse = 1.0 / root
        for k in range(j + 1, n):
            matrix[j, k] *= inverse
        for i in range(j + 1, n):
            scale = matrix[j, i]
            if scale != 0.0:
                for k in range(i, n):
                    matrix[i, k] -= scale * matrix[j, k]


@inner
def solve_transposed_inplace(factor, n, x, reach):
    """Solve U'y = x in place."""
    for j in range(n):
        if factor[j, j] < 0.0:
            if abs(x[j]) <= NOISE:
                x[j] = 0.0
            else:
                x[j] += reach[j] if x[j] > 0.0 else -reach[j]
        x[j] /= abs(factor[j, j])
        for k in range(j + 1, n):
            x[k] -= factor[j, k] * x[j]


@inner
def solve_inplace(factor, n, x, reach):
    """Solve U'U y = x in place."""
    solve_transposed_inplace(factor, n, x, reach)
    for j in range(n - 1, -1, -1):
        total = x[j]
        for k in range(j + 1, n):
            total -= factor[j, k] * x[k]
        x[j] = total / abs(factor[j, j])
