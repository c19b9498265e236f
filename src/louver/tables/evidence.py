"""What is known about the quantities of a system: bounds that are proved, and values that tables attain."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.system import IntArray, System
from louver.tables.witnesses import Moves, coefficients

__all__ = ["Evidence", "Sides"]


@dataclass(slots=True, eq=False)
class Sides:
    """Bounds to be worked on: quantities, whether their upper bound is meant, and a value that a table is to reach.

    A table settles an upper side when it has the goal or more, a lower side when it has the goal or less.
    """

    quantity: IntArray
    is_upper: NDArray[np.bool_]
    goal: IntArray

    def __len__(self) -> int:
        return len(self.quantity)

    def pick(self, chosen: NDArray[np.bool_] | IntArray) -> Sides:
        return Sides(self.quantity[chosen], self.is_upper[chosen], self.goal[chosen])


@dataclass(slots=True, eq=False)
class Evidence:
    """Quantities are a system's columns, and then the sums of its rows; a bound is certified where both kinds meet.

    `base` is the first table, and `moves` (columns,) what the others change.
    """

    system: System
    reach: int
    lower: IntArray = field(init=False)
    upper: IntArray = field(init=False)
    attained_lower: IntArray = field(init=False)
    attained_upper: IntArray = field(init=False)
    base: IntArray | None = field(init=False, default=None)
    moves: Moves = field(init=False)
    n_tables: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        system = self.system
        least, most = system.row_bounds()
        self.lower = np.concatenate([system.lower, least])
        self.upper = np.concatenate([system.upper, most])
        self.attained_lower = np.full(len(self.lower), UNBOUNDED, dtype=np.int64)
        self.attained_upper = np.full(len(self.lower), -UNBOUNDED, dtype=np.int64)
        self.moves = np.zeros(system.n_columns, dtype=np.uint64)
        if system.truth is not None:
            self.record(system.truth)

    def record(self, point: IntArray) -> bool:
        """A table, looked at in integers: every quantity it pushes further is pushed. False if it does not hold."""
        values = self.system.quantities(point, self.reach)
        if values is None:
            return False
        np.minimum(self.attained_lower, values, out=self.attained_lower)
        np.maximum(self.attained_upper, values, out=self.attained_upper)
        if self.base is None:
            self.base = point
        else:
            self.add_moves((point - self.base).astype(np.uint64))
        return True

    def add_moves(self, change: Moves) -> None:
        """A difference of tables, or a combination of such."""
        self.moves += coefficients(self.n_tables, 1)[0] * change
        self.n_tables += 1

    def trust(self, columns: IntArray) -> None:
        """Unknowns whose bounds are known to be attained."""
        self.attained_lower[columns] = self.lower[columns]
        self.attained_upper[columns] = self.upper[columns]

    def settle(self, is_fixed: NDArray[np.bool_]) -> None:
        """Quantities that are the same in every table."""
        self.lower[is_fixed] = self.upper[is_fixed] = self.attained_lower[is_fixed]

    def prove(self, quantity: int, is_upper: bool, bound: int) -> None:
        """A bound that holds for every table."""
        if is_upper:
            self.upper[quantity] = min(self.upper[quantity], bound)
        else:
            self.lower[quantity] = max(self.lower[quantity], bound)

    def bound(self, quantity: int, is_upper: bool) -> int:
        return int(self.upper[quantity] if is_upper else self.lower[quantity])

    def is_settled(self, quantity: int, is_upper: bool) -> bool:
        """Whether a bound is certified."""
        if is_upper:
            return bool(self.attained_upper[quantity] >= self.upper[quantity])
        return bool(self.attained_lower[quantity] <= self.lower[quantity])

    def open_sides(self, below: IntArray, above: IntArray) -> Sides:
        """Of these lower and upper bounds the ones that are not certified, nearest goals first; none without a bound."""
        low = below[self.attained_lower[below] > self.lower[below]]
        high = above[(self.attained_upper[above] < self.upper[above]) & (self.upper[above] < UNBOUNDED)]
        quantity = np.concatenate([high, low])
        is_upper = np.arange(len(quantity)) < len(high)
        goal = np.where(is_upper, self.upper[quantity], self.lower[quantity])
        order = np.argsort(np.where(is_upper, goal, self.attained_lower[quantity]), kind="stable")
        return Sides(quantity[order], is_upper[order], goal[order])

    def is_unreached(self, sides: Sides) -> NDArray[np.bool_]:
        """Sides whose goal no table has reached, though no proof says that none can."""
        q, goal = sides.quantity, sides.goal
        is_high = (self.attained_upper[q] < goal) & (goal <= self.upper[q])
        is_low = (self.attained_lower[q] > goal) & (goal >= self.lower[q])
        unreached: NDArray[np.bool_] = np.where(sides.is_upper, is_high, is_low)
        return unreached
