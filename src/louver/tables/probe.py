"""A system in which some quantities are confined further, and what intervals say then about all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from louver.run import Run
from louver.tables.evidence import Sides
from louver.tables.system import IntArray, Intervals, System

__all__ = ["Probe"]


@dataclass(slots=True, eq=False)
class Probe:
    """Confines one quantity after another, as long as no row says that it cannot be."""

    intervals: Intervals
    system: System
    run: Run

    def reach(self, quantity: int, least: int, most: int) -> bool:
        """Whether a quantity may lie in [least, most] as far as intervals tell; if so it is confined to it."""
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
        """Sides whose goal is still within the bounds of its unknown; sums of rows are not looked at."""
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
