"""The paper's mixed integer program (21)-(28) of k-anonymity, handed to HiGHS as it stands."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_array


def solve_milp(
    values: np.ndarray, k: int, weights: np.ndarray | None = None, *, seconds: float | None = None
) -> tuple[float, bool]:
    """Objective (34) and whether it is proved optimal.

    Variables y (n x m), z (n x m) and v (one per pair, symmetric). Integer columns keep (27) by themselves: at an
    optimum y and z are values of the table. The constraint (26) is the inequality (K3), U and z the upper ends (K1).
    """
    n, m = values.shape
    weights = np.ones(m) if weights is None else weights
    low, high = values.min(axis=0), values.max(axis=0)
    width = np.where(high > low, high - low, 1)
    pairs = list(combinations(range(n), 2))
    n_variables = 2 * n * m + len(pairs)
    y = np.arange(n * m).reshape(n, m)
    z = n * m + y
    v = {pair: 2 * n * m + p for p, pair in enumerate(pairs)}
    rows = lil_array((4 * len(pairs) * m + n, n_variables))
    upper = np.full(rows.shape[0], np.inf)
    lower = np.full(rows.shape[0], -np.inf)
    at = 0
    for i, h in pairs:
        for j in range(m):
            big_y = max(values[i, j], values[h, j]) - low[j]  # (29), (30)
            big_z = high[j] - min(values[i, j], values[h, j])  # (31), (32)
            for variable, big in ((y, big_y), (z, big_z)):
                for sign in (1, -1):  # (22), (23), (24), (25)
                    rows[at, variable[i, j]], rows[at, variable[h, j]] = sign, -sign
                    rows[at, v[i, h]] = big
                    upper[at] = big
                    at += 1
    for i in range(n):  # (26)
        for pair in pairs:
            if i in pair:
                rows[at, v[pair]] = 1
        lower[at] = k - 1
        at += 1
    cost = np.zeros(n_variables)
    cost[y], cost[z] = -weights / width, weights / width
    bounds = Bounds(
        np.concatenate([np.tile(low, n), values.ravel(), np.zeros(len(pairs))]),
        np.concatenate([values.ravel(), np.tile(high, n), np.ones(len(pairs))]),
    )
    integrality = np.concatenate([np.zeros(2 * n * m), np.ones(len(pairs))])
    options = {} if seconds is None else {"time_limit": seconds}
    found = milp(
        cost,
        constraints=LinearConstraint(rows.tocsr(), lower, upper),
        integrality=integrality,
        bounds=bounds,
        options={"mip_rel_gap": 1e-9, **options},
    )
    return float(found.fun), found.status == 0
