"""Membership in a projection, asked of a linear or integer program over the system it came from."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp


def extends(equations, inequalities, kept, point, *, whole=False):
    """Whether some values of the other unknowns satisfy (coefficients, constant) rows."""
    rows = [*equations, *inequalities]
    least = np.array([float(constant) for _, constant in rows])
    most = np.where(np.arange(len(rows)) < len(equations), least, np.inf)
    n = len(rows[0][0])
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    lower[list(kept)] = upper[list(kept)] = point
    answer = milp(
        np.zeros(n),
        constraints=LinearConstraint(np.array([a for a, _ in rows], float), least, most),
        bounds=Bounds(lower, upper),
        integrality=np.full(n, int(whole)),
    )
    return answer.status == 0
