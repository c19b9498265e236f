"""A proved bound from any vector of duals, in integers: no floating-point number decides."""

from __future__ import annotations

from louver.optim.kernels import kernel

__all__ = ["scaled_lower_bound"]


@kernel
def scaled_lower_bound(duals, row_lower, row_upper, residual, lower, upper):
    """Least of duals.s + residual.x over row_lower <= s <= row_upper and lower <= x <= upper.

    With s = A x and residual = scale c - A'duals this bounds scale c.x from below, whatever the duals are.
    """
    total = 0
    for i in range(len(duals)):
        if duals[i] > 0:
            total += duals[i] * row_lower[i]
        elif duals[i] < 0:
            total += duals[i] * row_upper[i]
    for j in range(len(residual)):
        if residual[j] > 0:
            total += residual[j] * lower[j]
        elif residual[j] < 0:
            total += residual[j] * upper[j]
    return total
