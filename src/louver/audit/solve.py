"""Tight integer bounds of many quantities of one system, each proved and attained.

A bound is *proved* by intervals, by the equalities alone, or by a linear program whose duals are rounded and then counted
in integers; it is *attained* by a whole table that was looked at in integers. Where both meet it is certified.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from louver.audit.coordinates import Coordinates
from louver.audit.system import IntArray, System
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.kernels.audit.safe import scaled_lower_bound
from louver.optim.status import Status
from louver.optim.warm import Relaxation, WarmProgram
from louver.run import Run

__all__ = ["Bounds", "Component"]

SCALE = 2**20
"""Duals are rounded to multiples of 1 / SCALE."""

SHORT, LONG = 1000, 6000
"""Steps of a first and of a last repair."""

MIN_GAIN = 4
"""Sides that a program for many targets has to settle for the next one to be worth it."""

KEPT_TABLES = 128
BLENDS = (1.0, 0.5, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Proved and attained bounds of quantities; attained ones are None where no table is known."""

    lower: IntArray
    upper: IntArray
    attained_lower: IntArray | None
    attained_upper: IntArray | None


@dataclass(slots=True, eq=False)
class Component:
    """One connected system at work. Quantities are its columns, and then the sums of its rows."""

    system: System
    run: Run
    deadline: float = np.inf
    lower: IntArray = field(init=False)
    upper: IntArray = field(init=False)
    attained_lower: IntArray = field(init=False)
    attained_upper: IntArray = field(init=False)
    coordinates: Coordinates | None = field(init=False, default=None)
    programs: int = field(init=False, default=0)
    repairs: int = field(init=False, default=0)
    _tables: list[IntArray] = field(init=False, default_factory=list)
    _lowest: IntArray = field(init=False)
    _highest: IntArray = field(init=False)
    _program: WarmProgram | None = field(init=False, default=None)
    _each: csr_array = field(init=False)

    def __post_init__(self) -> None:
        system = self.system
        least, most = system.row_bounds()
        self.lower = np.concatenate([system.lower, least])
        self.upper = np.concatenate([system.upper, most])
        self._each = csr_array(vstack([eye_array(system.n_columns, dtype=np.int64), system.matrix]).tocsr())
        self._lowest = np.zeros(len(self.lower), dtype=np.int64)
        self._highest = np.zeros(len(self.lower), dtype=np.int64)
        if system.truth is not None:
            quantities = system.quantities(system.truth)
            self.attained_lower, self.attained_upper = quantities.copy(), quantities.copy()
            self._tables.append(system.truth)
            self.coordinates = Coordinates.of(system, self.run)
            self._settle_constants()

    def _settle_constants(self) -> None:
        """What no step can move is determined by the equalities."""
        if self.coordinates is not None:
            fixed = self.coordinates.position == -1
            self.lower[fixed] = self.upper[fixed] = self.attained_lower[fixed]

    def open_sides(self, wanted: IntArray) -> tuple[IntArray, IntArray]:
        """Quantities whose lower and whose upper bound is not certified."""
        below = wanted[self.attained_lower[wanted] > self.lower[wanted]]
        above = wanted[self.attained_upper[wanted] < self.upper[wanted]]
        return below, above

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def solve(self, wanted: IntArray) -> None:
        """Work on the bounds of these quantities until all are certified, nothing helps, or time is up."""
        if self.system.truth is not None and self.coordinates is not None:
            self._sweep(wanted)
        self._one_by_one(wanted, SHORT, LONG)

    # Many at once -----------------------------------------------------------------------------------------------

    def _sweep(self, wanted: IntArray) -> None:
        """Vertices that favour all open sides together: near each one lies a table that settles many."""
        misses = 0
        number = 0
        while misses < 3 and not self.is_late():
            below, above = self.open_sides(wanted)
            if len(below) + len(above) < 2 * MIN_GAIN:
                return
            number += 1
            weights = np.zeros(len(self.lower))
            pull = 0.5 + _stream(number, len(weights))
            weights[above] -= (pull / np.maximum(1, self.upper))[above]
            weights[below] += (pull / np.maximum(1, self.attained_lower))[below]
            if number % 2 and len(above):
                weights[below] = 0
            answer = self._relaxed(self._each.T @ weights)
            if answer is None:
                return
            before = len(below) + len(above)
            self._repair_near(answer.point, number)
            below, above = self.open_sides(wanted)
            misses = misses + 1 if before - len(below) - len(above) < MIN_GAIN else 0

    def _repair_near(self, point: NDArray[np.float64], seed: int) -> None:
        start = np.rint(point).astype(np.int64)
        self._attempt(start, (), LONG, seed)

    # One at a time ----------------------------------------------------------------------------------------------

    def _one_by_one(self, wanted: IntArray, short: int, long: int) -> None:
        below, above = self.open_sides(wanted)
        sides = [(int(q), True) for q in above] + [(int(q), False) for q in below]
        for number, (quantity, is_upper) in enumerate(sides):
            if self.is_late():
                return
            self.side(quantity, is_upper, short, long, number + 1)

    def side(self, quantity: int, is_upper: bool, short: int, long: int, seed: int) -> None:
        """One bound of one quantity: repair, then a program, then repair from its vertex."""
        if self._is_settled(quantity, is_upper) or self._aim(quantity, is_upper, None, short, seed):
            return
        answer = self._prove(quantity, is_upper)
        if answer is None or self._is_settled(quantity, is_upper):
            return
        assert self.system.truth is not None
        for blend in BLENDS:
            start = self.system.truth + blend * (answer.point - self.system.truth)
            if self._aim(quantity, is_upper, np.rint(start).astype(np.int64), long, seed):
                return

    def _is_settled(self, quantity: int, is_upper: bool) -> bool:
        if is_upper:
            return bool(self.attained_upper[quantity] >= self.upper[quantity])
        return bool(self.attained_lower[quantity] <= self.lower[quantity])

    def _aim(self, quantity: int, is_upper: bool, start: IntArray | None, steps: int, seed: int) -> bool:
        """Look for a table at the proved bound, from a point or from the nearest table known."""
        goal = int(self.upper[quantity] if is_upper else self.lower[quantity])
        if self.coordinates is None or abs(goal) >= UNBOUNDED:
            return False
        if start is None:
            nearest = self._highest if is_upper else self._lowest
            start = self._tables[nearest[quantity]]
        return self._attempt(start, ((quantity, goal),), steps, seed)

    def _attempt(self, start: IntArray, goals: Sequence[tuple[int, int]], steps: int, seed: int) -> bool:
        assert self.coordinates is not None
        self.repairs += 1
        point = self.coordinates.repaired(start, goals, steps, seed, self.run)
        if point is None:
            return False
        self._record(point)
        return True

    def _record(self, point: IntArray) -> None:
        """A whole table: every quantity it pushes further is pushed."""
        values = self.system.quantities(point)
        is_lower, is_higher = values < self.attained_lower, values > self.attained_upper
        np.minimum(self.attained_lower, values, out=self.attained_lower)
        np.maximum(self.attained_upper, values, out=self.attained_upper)
        if len(self._tables) < KEPT_TABLES:
            number = len(self._tables)
            self._tables.append(point)
        else:
            number = 1 + self.repairs % (KEPT_TABLES - 1)
            self._lowest[self._lowest == number] = 0
            self._highest[self._highest == number] = 0
            self._tables[number] = point
        self._lowest[is_lower] = number
        self._highest[is_higher] = number

    # Programs ---------------------------------------------------------------------------------------------------

    def _prove(self, quantity: int, is_upper: bool) -> Relaxation | None:
        """Tighten a proved bound by a linear program; None where there is none."""
        if abs(self.lower[quantity]) >= UNBOUNDED or abs(self.upper[quantity]) >= UNBOUNDED:
            return None
        cost = self._each[[quantity]].toarray()[0]
        answer = self._relaxed((-cost if is_upper else cost).astype(np.float64))
        if answer is None:
            return None
        least = self._safe(-cost if is_upper else cost, answer.duals)
        if is_upper:
            self.upper[quantity] = min(self.upper[quantity], -least)
        else:
            self.lower[quantity] = max(self.lower[quantity], least)
        return answer

    def _relaxed(self, cost: NDArray[np.float64]) -> Relaxation | None:
        if self._program is None:
            self._program = _program(self.system)
        self.programs += 1
        answer = self._program.minimise(cost)
        return answer if answer.status is Status.OPTIMAL else None

    def _safe(self, cost: IntArray, duals: NDArray[np.float64]) -> int:
        """A lower bound on cost @ x, in integers whatever the duals are."""
        system = self.system
        rounded = np.rint(SCALE * duals).astype(np.int64)
        rounded[(rounded > 0) & (system.row_lower <= -UNBOUNDED)] = 0
        rounded[(rounded < 0) & (system.row_upper >= UNBOUNDED)] = 0
        residual = SCALE * cost - system.matrix.T @ rounded
        total = scaled_lower_bound(
            rounded, system.row_lower, system.row_upper, residual, system.lower, system.upper
        )
        return -(-int(total) // SCALE)


def _program(system: System) -> WarmProgram:
    return WarmProgram(
        csr_array(system.matrix.astype(np.float64)),
        _as_floats(system.row_lower),
        _as_floats(system.row_upper),
        _as_floats(system.lower),
        _as_floats(system.upper),
    )


def _as_floats(bounds: IntArray) -> NDArray[np.float64]:
    floats = bounds.astype(np.float64)
    floats[bounds >= UNBOUNDED] = np.inf
    floats[bounds <= -UNBOUNDED] = -np.inf
    return floats


def _stream(number: int, length: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) without a random generator: the fractional parts of multiples of the golden ratio."""
    return np.modf((np.arange(length) + 1) * (0.6180339887498949 + 0.0137 * number))[0]
