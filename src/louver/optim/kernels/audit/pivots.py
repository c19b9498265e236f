"""Integer coordinates of all tables that agree with equality rows: elimination with pivots +1 and -1 only.

With T A = tableau and a pivot (r, j) of size one, x_j = constant - (tableau row r without j) x_N, all in integers. Only
T (rows x rows) is kept, so that memory does not depend on the number of columns.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["eliminate"]

MAX_ENTRY = 2**24
"""Entries of T beyond this are refused: products with them could leave 64 bits."""


@inner
def _tableau_column(j, indptr, indices, coefs, transform, out):
    """out = T a_j; columns of A in CSC."""
    out[:] = 0
    for k in range(indptr[j], indptr[j + 1]):
        row, a = indices[k], coefs[k]
        for i in range(len(out)):
            out[i] += transform[i, row] * a


@inner
def _pivot_inplace(r, column, transform):
    """Make the column a unit vector at row r; False if an entry grew too large."""
    m = len(column)
    if column[r] < 0:
        for k in range(m):
            transform[r, k] = -transform[r, k]
        column[r] = -column[r]
    for i in range(m):
        factor = column[i]
        if i != r and factor != 0:
            for k in range(m):
                if transform[r, k] != 0:
                    transform[i, k] -= factor * transform[r, k]
                    if abs(transform[i, k]) > MAX_ENTRY:
                        return False
    return True


@kernel
def eliminate(indptr, indices, coefs, n_rows, order, flag):
    """Pivot on columns (CSC) in the given order.

    Returns
    -------
    transform : int64 (n_rows, n_rows)
        T.
    basic : int64 (n_rows,)
        The column that each row was solved for; -1 for a row without one: dependent on others, or without a pivot of
        size one. An empty `basic` says that numbers grew too large.
    """
    transform = np.zeros((n_rows, n_rows), dtype=np.int64)
    basic = np.full(n_rows, -1, dtype=np.int64)
    for r in range(n_rows):
        transform[r, r] = 1
    column = np.zeros(n_rows, dtype=np.int64)
    n_basic, n_idle = 0, 0
    for position in range(len(order)):
        # Dependent rows never take a pivot: after a long run without one the rest is dependent, or as good as.
        if n_basic == n_rows or n_idle > 4 * n_rows + 1000 or flag[0]:
            break
        j = order[position]
        _tableau_column(j, indptr, indices, coefs, transform, column)
        chosen = -1
        for r in range(n_rows):
            if basic[r] < 0 and (column[r] == 1 or column[r] == -1):
                chosen = r
                break
        if chosen < 0:
            n_idle += 1
            continue
        n_idle = 0
        if not _pivot_inplace(chosen, column, transform):
            return transform, np.zeros(0, dtype=np.int64)
        basic[chosen] = j
        n_basic += 1
    return transform, basic
