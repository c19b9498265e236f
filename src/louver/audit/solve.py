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
from louver.audit.enumerate import LARGEST, best_value, feasible_point
from louver.audit.system import IntArray, System, as_floats
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.kernels.audit.safe import scaled_lower_bound
from louver.optim.status import Status
from louver.optim.warm import Relaxation, WarmProgram
from louver.run import Run

__all__ = ["Component", "Side"]

SCALE = 2**20
"""Duals are rounded to multiples of 1 / SCALE."""

MAX_DUAL = 2.0**50

SHORT, LONG = 1000, 6000
"""Steps of a first repair for every hundred equalities, and of one that starts near a vertex."""


MIN_GAIN = 4
"""Sides that a program for many targets has to settle for the next one to be worth it."""

MAX_MISSES = 3

SMALL_REST = 200
"""Unknowns up to which what is left open goes to a constraint solver."""

KEPT_TABLES = 128
GOLDEN = 0.6180339887498949
BLENDS = (1.0, 0.8)
"""Starts of a repair between the truth and a vertex."""

HEAVIEST, NARROW_EFFORT, TINY = 300, 0.5, 1e-7
"""Unknowns beside a vertex's in a narrow search, and the solver's deterministic seconds for one."""

Side = tuple[int, bool]
"""A quantity, and whether its upper bound is meant."""


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
        each = vstack([eye_array(system.n_columns, dtype=np.int64), system.matrix], format="csr")
        self._each = csr_array(each)
        self._lowest = np.zeros(len(self.lower), dtype=np.int64)
        self._highest = np.zeros(len(self.lower), dtype=np.int64)
        if system.truth is not None:
            quantities = system.quantities(system.truth)
            self.attained_lower, self.attained_upper = quantities.copy(), quantities.copy()
            self._tables.append(system.truth)
            self.coordinates = Coordinates.of(system, self.run)
            self._settle_constants()
        else:
            self.attained_lower = np.full(len(self.lower), UNBOUNDED, dtype=np.int64)
            self.attained_upper = np.full(len(self.lower), -UNBOUNDED, dtype=np.int64)

    @property
    def _short(self) -> int:
        """Programs grow faster than repairs: the more rows, the longer a repair is tried before."""
        n_basic = 0 if self.coordinates is None else len(self.coordinates.basic)
        return SHORT * max(1, n_basic // 100)

    def _settle_constants(self) -> None:
        """What no step can move is determined by the equalities."""
        if self.coordinates is not None:
            fixed = self.coordinates.position == -1
            self.lower[fixed] = self.upper[fixed] = self.attained_lower[fixed]

    def trust(self, columns: IntArray) -> None:
        """Unknowns whose bounds are known to be attained."""
        self.attained_lower[columns] = self.lower[columns]
        self.attained_upper[columns] = self.upper[columns]

    def open_sides(self, below: IntArray, above: IntArray) -> tuple[IntArray, IntArray]:
        """Those whose lower, and those whose upper bound is not certified."""
        still_below = below[self.attained_lower[below] > self.lower[below]]
        still_above = above[self.attained_upper[above] < self.upper[above]]
        return still_below, still_above

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def solve(self, below: IntArray, above: IntArray) -> None:
        """Work on these lower and upper bounds until all are certified, nothing helps, or time is up."""
        if self.coordinates is not None:
            self._sweep(below, above)
        for number, (quantity, is_upper) in enumerate(self._sides(below, above), start=1):
            if self.is_late():
                return
            self.side(quantity, is_upper, number)
        if self.system.n_columns <= SMALL_REST:
            for quantity, is_upper in self._sides(below, above):
                if self.is_late():
                    return
                self._enumerate(quantity, is_upper)

    def decide(self, wanted: IntArray, floor: IntArray, ceiling: IntArray) -> NDArray[np.int8]:
        """Whether each quantity is confined to [floor, ceiling]: 1 proved, 0 refuted by a table, -1 not known."""
        verdict = self._verdict(wanted, floor, ceiling)
        if self.coordinates is not None and (verdict < 0).sum() >= 2 * MIN_GAIN:
            self._sweep(wanted[verdict < 0], wanted[verdict < 0])
        for place in np.flatnonzero(self._verdict(wanted, floor, ceiling) < 0):
            if self.is_late():
                break
            self._escape(int(wanted[place]), int(floor[place]), int(ceiling[place]), int(place) + 1)
        return self._verdict(wanted, floor, ceiling)

    def _verdict(self, wanted: IntArray, floor: IntArray, ceiling: IntArray) -> NDArray[np.int8]:
        is_out = (self.attained_lower[wanted] < floor) | (self.attained_upper[wanted] > ceiling)
        is_in = (self.lower[wanted] >= floor) & (self.upper[wanted] <= ceiling)
        return np.where(is_out, 0, np.where(is_in, 1, -1)).astype(np.int8)

    def _escape(self, quantity: int, floor: int, ceiling: int, seed: int) -> None:
        """A table outside [floor, ceiling], or the proof that there is none."""
        for is_upper in (True, False):
            beyond = ceiling + 1 if is_upper else floor - 1
            bound = self.upper[quantity] if is_upper else self.lower[quantity]
            if (bound <= ceiling) if is_upper else (bound >= floor):
                continue
            if self._reach(quantity, beyond, self._start_of(quantity, is_upper), self._short, seed):
                return
            answer = self._prove(quantity, is_upper)
            bound = self.upper[quantity] if is_upper else self.lower[quantity]
            if answer is None or ((bound <= ceiling) if is_upper else (bound >= floor)):
                continue
            if self._reach(quantity, beyond, np.rint(answer.point).astype(np.int64), LONG, seed):
                return
            if self.coordinates is not None and self._narrow(quantity, is_upper, answer.point):
                return
            if self.system.n_columns <= SMALL_REST:
                self._enumerate(quantity, is_upper)

    def _reach(self, quantity: int, goal: int, start: IntArray | None, steps: int, seed: int) -> bool:
        if self.coordinates is None or start is None:
            return False
        return self._attempt(start, ((quantity, goal),), steps, seed)

    def _start_of(self, quantity: int, is_upper: bool) -> IntArray | None:
        """The table known that is nearest to a bound."""
        nearest = self._highest if is_upper else self._lowest
        return self._tables[nearest[quantity]] if self._tables else None

    def _sides(self, below: IntArray, above: IntArray) -> list[Side]:
        """Open sides, upper ones first."""
        below, above = self.open_sides(below, above)
        return [(int(q), True) for q in above] + [(int(q), False) for q in below]

    # Many at once -----------------------------------------------------------------------------------------------

    def _sweep(self, below: IntArray, above: IntArray) -> None:
        """Vertices that favour all open sides together: near each one lies a table that settles many."""
        n_misses = number = 0
        while n_misses < MAX_MISSES and not self.is_late():
            low, high = self.open_sides(below, above)
            n_open = len(low) + len(high)
            if n_open < 2 * MIN_GAIN:
                return
            number += 1
            answer = self._relaxed(self._favouring(low, high, number))
            if answer is None:
                return
            self._attempt(np.rint(answer.point).astype(np.int64), (), LONG, number)
            low, high = self.open_sides(below, above)
            n_misses = n_misses + 1 if n_open - len(low) - len(high) < MIN_GAIN else 0

    def _favouring(self, low: IntArray, high: IntArray, number: int) -> NDArray[np.float64]:
        """A cost that pulls open sides towards their bounds, each time with other weights."""
        weights = np.zeros(len(self.lower))
        pull = 0.5 + _stream(number, len(weights))
        weights[high] -= (pull / np.maximum(1, self.upper))[high]
        if number % 2 == 0 or not len(high):
            weights[low] += (pull / np.maximum(1, self.attained_lower))[low]
        cost: NDArray[np.float64] = self._each.T @ weights
        return cost

    # One at a time ----------------------------------------------------------------------------------------------

    def side(self, quantity: int, is_upper: bool, seed: int) -> None:
        """One bound of one quantity: repair, then a program, then repair from its vertex."""
        if self._is_settled(quantity, is_upper) or self._aim(quantity, is_upper, None, self._short, seed):
            return
        answer = self._prove(quantity, is_upper)
        if answer is None or self.system.truth is None or self._is_settled(quantity, is_upper):
            return
        for blend in BLENDS:
            start = self.system.truth + blend * (answer.point - self.system.truth)
            if self._aim(quantity, is_upper, np.rint(start).astype(np.int64), LONG, seed):
                return
        self._narrow(quantity, is_upper, answer.point)

    def _narrow(self, quantity: int, is_upper: bool, point: NDArray[np.float64]) -> bool:
        """A table at the bound among those that use only the vertex's unknowns and the heaviest of the truth."""
        system = self.system
        assert system.truth is not None
        goal = self.upper[quantity] if is_upper else self.lower[quantity]
        is_used = point > system.lower + TINY
        is_used[np.argsort(-system.truth, kind="stable")[:HEAVIEST]] = True
        lower, upper = system.lower.copy(), np.where(is_used, system.upper, system.lower)
        row_lower, row_upper = system.row_lower.copy(), system.row_upper.copy()
        if quantity < system.n_columns:
            is_used[quantity] = True
            lower[quantity] = upper[quantity] = goal
        else:
            row_lower[quantity - system.n_columns] = row_upper[quantity - system.n_columns] = goal
        columns = np.flatnonzero(is_used)
        fixed = System(
            matrix=system.matrix, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper
        )
        found = feasible_point(fixed.part(columns, np.arange(system.n_rows)), NARROW_EFFORT).point
        if found is None:
            return False
        table = system.lower.copy()
        table[columns] = found
        if not system.holds(table):
            return False
        self._record(table)
        return True

    def _is_settled(self, quantity: int, is_upper: bool) -> bool:
        if is_upper:
            return bool(self.attained_upper[quantity] >= self.upper[quantity])
        return bool(self.attained_lower[quantity] <= self.lower[quantity])

    def _aim(self, quantity: int, is_upper: bool, start: IntArray | None, steps: int, seed: int) -> bool:
        """Look for a table at the proved bound, from a point or from the nearest table known."""
        goal = int(self.upper[quantity] if is_upper else self.lower[quantity])
        if self.coordinates is None or abs(goal) >= UNBOUNDED:
            return False
        start = self._start_of(quantity, is_upper) if start is None else start
        return self._reach(quantity, goal, start, steps, seed)

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
        if is_upper and self.upper[quantity] >= UNBOUNDED:
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

    def _enumerate(self, quantity: int, is_upper: bool) -> None:
        """What is left, by a constraint solver: exact in integers, for as long as one side may take."""
        if is_upper and self.upper[quantity] >= UNBOUNDED:
            return
        form = self._each[[quantity]]
        columns = form.indices.astype(np.int64)
        found = best_value(self.system, columns, form.data, is_upper, self.system.truth)
        if found.point is not None and self.system.holds(found.point):
            self._record(found.point)
        if is_upper and found.bound is not None:
            self.upper[quantity] = min(self.upper[quantity], found.bound)
        elif found.bound is not None:
            self.lower[quantity] = max(self.lower[quantity], found.bound)

    def _relaxed(self, cost: NDArray[np.float64]) -> Relaxation | None:
        if self._program is None:
            self._program = _program(self.system)
        self.programs += 1
        answer = self._program.minimise(cost)
        return answer if answer.status is Status.OPTIMAL else None

    def _safe(self, cost: IntArray, duals: NDArray[np.float64]) -> int:
        """A lower bound on cost @ x, in integers whatever the duals are."""
        system = self.system
        rounded = np.rint(np.clip(SCALE * duals, -MAX_DUAL, MAX_DUAL)).astype(np.int64)
        rounded[(rounded > 0) & (system.row_lower <= -UNBOUNDED)] = 0
        rounded[(rounded < 0) & (system.row_upper >= UNBOUNDED)] = 0
        upper = np.minimum(system.upper, LARGEST)
        if self._fits(rounded, upper):
            residual = SCALE * cost - system.matrix.T @ rounded
            total = int(
                scaled_lower_bound(rounded, system.row_lower, system.row_upper, residual, system.lower, upper)
            )
        else:
            total = _long_lower_bound(system, cost, rounded, upper)
        return -(-total // SCALE)

    def _fits(self, rounded: IntArray, upper: IntArray) -> bool:
        """Whether no sum in a safe bound can leave 64 bits, by a generous estimate."""
        system, heaviest = self.system, float(np.abs(rounded).max(initial=1))
        entries = float(np.abs(system.matrix.data).max(initial=1))
        residual = SCALE + heaviest * entries * max(1, system.n_rows)
        limits = [
            np.abs(b[np.abs(b) < UNBOUNDED]).max(initial=1) for b in (system.row_lower, system.row_upper)
        ]
        total = residual * float(upper.sum(dtype=np.float64)) + heaviest * system.n_rows * float(max(limits))
        return total < 2.0**62


def _long_lower_bound(system: System, cost: IntArray, rounded: IntArray, upper: IntArray) -> int:
    """The same in integers of any length."""
    duals = [int(y) for y in rounded]
    residual = [SCALE * int(c) for c in cost]
    matrix = system.matrix
    for row, y in enumerate(duals):
        if y:
            for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
                residual[matrix.indices[k]] -= y * int(matrix.data[k])
    total = 0
    for y, low, high in zip(duals, system.row_lower.tolist(), system.row_upper.tolist(), strict=True):
        total += y * low if y > 0 else y * high if y < 0 else 0
    for d, low, high in zip(residual, system.lower.tolist(), upper.tolist(), strict=True):
        total += d * low if d > 0 else d * high if d < 0 else 0
    return total


def _program(system: System) -> WarmProgram:
    return WarmProgram(
        csr_array(system.matrix.astype(np.float64)),
        as_floats(system.row_lower),
        as_floats(system.row_upper),
        as_floats(system.lower),
        as_floats(system.upper),
    )


def _stream(number: int, length: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) without a random generator: the fractional parts of multiples of the golden ratio."""
    fractions: NDArray[np.float64] = np.modf((np.arange(length) + 1) * (GOLDEN + 0.0137 * number))[0]
    return fractions
