"""Proportional fitting: a starting point for repair that nearly agrees with all rows. It proves nothing.

Deming & Stephan (1940), for rows with bounds on both sides and unknowns with bounds of their own: each row in turn is scaled
to its nearest bound.
"""

from __future__ import annotations

import numpy as np

from louver.optim.kernels import inner, kernel

__all__ = ["fit_inplace"]


@inner
def _gather(indptr, indices, coefs, lower, upper, point, moving, ends, fixed):
    """The changeable entries of each row, packed, and the sum of the others; a row with a negative coefficient is left empty."""
    n_moving = 0
    for row in range(len(indptr) - 1):
        first, rest = n_moving, 0.0
        for k in range(indptr[row], indptr[row + 1]):
            j = indices[k]
            if coefs[k] < 0:
                n_moving = first
                break
            if lower[j] == upper[j]:
                rest += coefs[k] * point[j]
            else:
                moving[n_moving] = k
                n_moving += 1
        ends[row], fixed[row] = n_moving, rest


@kernel
def fit_inplace(indptr, indices, coefs, row_lower, row_upper, lower, upper, point, n_sweeps, flag):
    """Bring `point` (n,), positive where it may change, closer to all rows (CSR), in `n_sweeps` sweeps."""
    n_rows = len(indptr) - 1
    moving, ends = np.empty(len(indices), dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    fixed = np.empty(n_rows)
    _gather(indptr, indices, coefs, lower, upper, point, moving, ends, fixed)
    for _ in range(n_sweeps):
        start = 0
        for row in range(n_rows):
            total = 0.0
            for place in range(start, ends[row]):
                k = moving[place]
                total += coefs[k] * point[indices[k]]
            goal = min(max(total + fixed[row], float(row_lower[row])), float(row_upper[row])) - fixed[row]
            if goal != total and total > 0.0:
                factor = max(0.0, goal) / total
                for place in range(start, ends[row]):
                    j = indices[moving[place]]
                    point[j] = min(max(point[j] * factor, float(lower[j])), float(upper[j]))
            start = ends[row]
        if flag[0]:
            return
