"""Whether statements about sets of cells in sets of leaves agree, by an integer program over a table of three leaves and 2 x 2 cells."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

LABELS = [{"a": a, "b": b} for a in "xy" for b in "uv"]


def has_solution(statements) -> bool:
    """Statements are (cells as one label of some attributes, leaves, lower, upper)."""
    statements = list(statements)
    if not statements:
        return True
    rows = np.array(
        [
            [
                float(leaf in leaves and all(labels[name] == label for name, label in cells.items()))
                for leaf in range(3)
                for labels in LABELS
            ]
            for cells, leaves, _, _ in statements
        ]
    )
    lower, upper = ([one[i] for one in statements] for i in (2, 3))
    answer = milp(
        np.zeros(12),
        constraints=LinearConstraint(rows, lower, upper),
        bounds=Bounds(np.zeros(12), np.full(12, 100.0)),
        integrality=np.ones(12),
    )
    return answer.status == 0
