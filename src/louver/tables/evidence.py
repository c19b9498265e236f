"""Knowledge about the quantities of a system: proved bounds, values that tables attain, and quantities that vary between tables.

Let x0 be one table that agrees with everything published, and x1, x2, ... others. A sum g is determined if and only if g (xi - x0) is 0 for
all of them. The moves are one combination of all differences, with coefficients spread over 64 bits: where g times the combination is not
0, it is proved that some table changes g. Where it is 0, almost surely none of the tables found changes g, and g has to be decided
separately.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver._mixing import GOLDEN, mixed
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.run import Run
from louver.tables.system import IntArray, Intervals, System

if TYPE_CHECKING:
    from louver.tables.problem import TablesProblem

__all__ = ["BoundEvidence", "Moves", "Probe", "Sides", "Witnesses", "coefficients"]


@dataclass(slots=True, eq=False)
class Sides:
    """Bounds still to be settled: quantities, whether the upper bound is meant, and the value that a table should reach.

    A table settles an upper side when it reaches the goal or more, a lower side when it reaches the goal or less.
    """

    quantity: IntArray
    is_upper: NDArray[np.bool_]
    goal: IntArray

    def __len__(self) -> int:
        return len(self.quantity)

    def pick(self, chosen: NDArray[np.bool_] | IntArray) -> Sides:
        return Sides(self.quantity[chosen], self.is_upper[chosen], self.goal[chosen])


@dataclass(slots=True, eq=False)
class BoundEvidence:
    """Quantities are a system's columns, and then the sums of its rows; a bound is certified where the proved and attained ones meet.

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
        """Add a table that is checked in integers, and update every quantity whose attained bound it improves; False if it is not valid."""
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
        """Add a difference of tables, or a combination of such differences."""
        self.moves += coefficients(self.n_tables, 1)[0] * change
        self.n_tables += 1

    def trust(self, columns: IntArray) -> None:
        """Mark unknowns whose bounds are known to be attained."""
        self.attained_lower[columns] = self.lower[columns]
        self.attained_upper[columns] = self.upper[columns]

    def settle(self, is_fixed: NDArray[np.bool_]) -> None:
        """Mark quantities that are the same in every table."""
        self.lower[is_fixed] = self.upper[is_fixed] = self.attained_lower[is_fixed]

    def prove(self, quantity: int, is_upper: bool, bound: int) -> None:
        """Record a bound that holds for every table."""
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
        """The given lower and upper bounds that are not certified, nearest goals first; unbounded sides are left out."""
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


Moves = NDArray[np.uint64]


def coefficients(start: int, length: int) -> Moves:
    """Distinct numbers for the positions of one long stream; all are odd, so that none is 0."""
    keys = np.arange(start + 1, start + length + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mixed(keys) | np.uint64(1)


@dataclass(slots=True, eq=False)
class Witnesses:
    """Moves of the unknowns of one problem, and a table from which to start.

    Attributes
    ----------
    base : int64 (unknowns,)
        A table that agrees with everything published: the records, if they are known.
    is_based : bool (unknowns,)
        Whether `base` is known.
    moves : uint64 (unknowns,)
    is_met : bool (unknowns,)
        Unknowns for which tables were sought, or that are fixed.
    """

    base: IntArray
    is_based: NDArray[np.bool_]
    moves: Moves
    is_met: NDArray[np.bool_]
    n_added: int = field(default=0)

    @classmethod
    def of(cls, system: System) -> Witnesses:
        """Start without moves; unknowns that intervals fix do not move."""
        is_fixed = system.lower == system.upper
        base = system.lower.copy() if system.truth is None else system.truth.copy()
        is_based = is_fixed if system.truth is None else np.ones(len(base), dtype=bool)
        return cls(
            base=base,
            is_based=is_based.copy(),
            moves=np.zeros(len(base), dtype=np.uint64),
            is_met=is_fixed.copy(),
        )

    def add(self, columns: IntArray, known: BoundEvidence) -> None:
        """Add the tables found for one part."""
        self.n_added += 1
        factor = coefficients(2**40 + self.n_added, 1)[0]
        self.moves[columns] += factor * known.moves[: len(columns)]
        self.is_met[columns] = True
        if known.base is not None and not self.is_based[columns].all():
            self.base[columns] = known.base[: len(columns)]
            self.is_based[columns] = True

    def by_cell(self, problem: TablesProblem) -> tuple[IntArray, Moves]:
        """Counts and moves of the joint cells; cells of one unknown may divide its people in any way."""
        n_cells = len(problem.group)
        counts, moves = np.zeros(n_cells, dtype=np.int64), np.zeros(n_cells, dtype=np.uint64)
        alive = np.flatnonzero(problem.group >= 0)
        groups = problem.group[alive]
        first = alive[np.unique(groups, return_index=True)[1]]
        own = self.moves[: problem.n_groups]
        # An unknown that moves is more than 0 in some table.
        is_positive = (self.base[: problem.n_groups] > 0) | (own != 0)
        shares = np.where(is_positive[groups], coefficients(2**41, n_cells)[alive], np.uint64(0))
        is_first = np.zeros(n_cells, dtype=bool)
        is_first[first] = True
        shares[is_first[alive]] = 0
        moves[alive] = shares
        total = np.zeros(problem.n_groups, dtype=np.uint64)
        np.add.at(total, groups, shares)
        moves[first] = own - total
        counts[first] = self.base[: problem.n_groups]
        return counts, moves


@dataclass(slots=True, eq=False)
class Probe:
    """A probe that confines one quantity after another, as long as no row rules this out."""

    intervals: Intervals
    system: System
    run: Run

    def reach(self, quantity: int, least: int, most: int) -> bool:
        """Confine a quantity to [least, most] and return True, unless intervals rule this out."""
        system, n_columns = self.system, self.system.n_columns
        is_waiting = np.zeros(system.n_rows, dtype=bool)
        if quantity < n_columns:
            lower, upper = _confined(system.lower, system.upper, quantity, least, most)
            trial = replace(system, lower=lower, upper=upper)
            is_waiting[self.intervals.rows_of(quantity)] = True
            is_empty = lower[quantity] > upper[quantity]
        else:
            row = quantity - n_columns
            lower, upper = _confined(system.row_lower, system.row_upper, row, least, most)
            trial = replace(system, row_lower=lower, row_upper=upper)
            is_waiting[row] = True
            is_empty = lower[row] > upper[row]
        if is_empty:
            return False
        found, clash = self.intervals.tightened(trial, is_waiting, self.run)
        if clash >= 0:
            return False
        self.system = found
        return True

    def allows(self, sides: Sides) -> NDArray[np.bool_]:
        """Sides whose goal is still within the bounds of its unknown; sums of rows are not examined."""
        is_column = sides.quantity < self.system.n_columns
        columns = np.where(is_column, sides.quantity, 0)
        is_high = self.system.upper[columns] >= sides.goal
        is_low = self.system.lower[columns] <= sides.goal
        allowed: NDArray[np.bool_] = ~is_column | np.where(sides.is_upper, is_high, is_low)
        return allowed


def _confined(
    lower: IntArray, upper: IntArray, place: int, least: int, most: int
) -> tuple[IntArray, IntArray]:
    lower, upper = lower.copy(), upper.copy()
    lower[place], upper[place] = max(lower[place], least), min(upper[place], most)
    return lower, upper
