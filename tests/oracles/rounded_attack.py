"""What readers of one rounded table by two attributes can say about its numbers: integer programs over the public statements.

It knows the published numbers, the base and how far numbers went, and shares nothing with what rounded them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

Key = tuple[str, str]


class RoundedAttack:
    """Whole numbers that add up, each within its distance from the published one.

    Parameters
    ----------
    published : mapping
        (row, column) -> rounded number; the total is called Total, and what is not listed is empty.
    reach : int
        The most that a number differs from its published one.
    least : int
        What every listed number is at least.
    """

    def __init__(self, published: Mapping[Key, int], reach: int, least: int) -> None:
        self.keys = sorted(published)
        self.place = {key: n for n, key in enumerate(self.keys)}
        self.lower = np.array([max(least, published[key] - reach) for key in self.keys], dtype=float)
        self.upper = np.array([published[key] + reach for key in self.keys], dtype=float)
        rows = []
        for axis in (0, 1):
            for label in sorted({key[1 - axis] for key in self.keys}):
                line = np.zeros(len(self.keys))
                for key in self.keys:
                    if key[1 - axis] == label:
                        line[self.place[key]] = -1.0 if key[axis] == "Total" else 1.0
                rows.append(line)
        self.rows = np.array(rows)

    def bounds(self, cell: Key, own: Mapping[Key, int], alone: Mapping[Key, int]) -> tuple[int, int]:
        """Least and greatest possible number for somebody who owns a part of some numbers and the whole of others."""
        lower, upper = self.lower.copy(), self.upper.copy()
        for key, part in own.items():
            lower[self.place[key]] = max(lower[self.place[key]], part)
        for key, part in alone.items():
            lower[self.place[key]] = upper[self.place[key]] = part
        ends = []
        for sign in (1.0, -1.0):
            cost = np.zeros(len(self.keys))
            cost[self.place[cell]] = sign
            found = milp(
                cost,
                constraints=LinearConstraint(self.rows, 0, 0),
                bounds=Bounds(lower, upper),
                integrality=np.ones(len(cost)),
            )
            assert found.status == 0, found.message
            ends.append(round(sign * found.fun))
        return ends[0], ends[1]
