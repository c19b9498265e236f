"""Tight integer bounds of many quantities of one system, each proved and attained.

A bound is *proved* by intervals, by the equalities alone, or by a linear program whose duals are rounded and then counted
in integers; it is *attained* by a whole table that was looked at in integers. Where both meet it is certified.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from louver.optim.kernels.audit.fit import fit_inplace
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.optim.warm import Relaxation
from louver.run import Run
from louver.tables.coordinates import Coordinates
from louver.tables.evidence import Evidence, Probe, Sides
from louver.tables.solvers import Relaxed, best_value, feasible_point
from louver.tables.system import IntArray, Intervals, System

__all__ = ["PATIENCE", "Component"]

SHORT, LONG = 1000, 6000
"""Steps of a first repair for every hundred equalities, and of one for a side that has resisted."""

FIRST_BATCH, BATCH_STEPS = 16, 400
"""Sides that one table is to settle, at first, and steps of a repair for several."""

FEW_ROUNDS, MANY_ROUNDS, LIGHT = 8, 40, 1e-3
"""Rounds of proportional fitting, and what an empty cell weighs there."""

MIN_GAIN, MAX_MISSES = 4, 3
"""Sides that a program for many targets has to settle for the next one to be worth it, and failures in a row."""

SMALL_REST = 200
"""Unknowns up to which what is left open goes to a constraint solver."""

BLENDS = (1.0, 0.8)
"""Starts of a repair between the truth and a vertex."""

HEAVIEST, NARROW_EFFORT, TINY = 300, 0.5, 1e-7
"""Unknowns beside a vertex's in a narrow search, and the solver's deterministic seconds for one."""

WALK = 60
"""Rounds of steps that show what tables can move."""

PATIENCE = (1, 4, 16, 64, 256)
"""Times the usual effort that a question may take that stays open, while there is time."""

GOLDEN = 0.6180339887498949


@dataclass(slots=True, eq=False)
class Component:
    """One connected system at work; `known` is what is proved and attained so far."""

    system: System
    run: Run
    deadline: float = np.inf
    known: Evidence = field(init=False)
    coordinates: Coordinates | None = field(init=False, default=None)
    repairs: int = field(init=False, default=0)
    patience: int = field(init=False, default=1)
    _intervals: Intervals = field(init=False)
    _relaxed: Relaxed = field(init=False)
    _each: csr_array = field(init=False)

    def __post_init__(self) -> None:
        system = self.system
        self._intervals = Intervals.of(system.matrix)
        self.known = Evidence(system, self._intervals.least_reach)
        self._relaxed = Relaxed(system, self.run)
        each = vstack([eye_array(system.n_columns, dtype=np.int64), system.matrix], format="csr")
        self._each = csr_array(each)
        if system.truth is not None:
            self.coordinates = Coordinates.of(system, self.run)
        if self.coordinates is not None:
            # What no step can move is determined by the equalities.
            self.known.settle(self.coordinates.position == -1)

    @property
    def programs(self) -> int:
        return self._relaxed.programs

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def _seconds_left(self) -> float:
        """For a solver that takes a limit of its own; the usual effort has none, so that answers do not depend on speed."""
        return np.inf if self.patience == 1 else self.deadline - time.monotonic()

    def solve(self, below: IntArray, above: IntArray) -> None:
        """Work on these lower and upper bounds until all are certified, nothing helps, or time is up."""
        if self.coordinates is not None:
            self._sweep(below, above)
            self._in_batches(self.known.open_sides(below, above), is_bound=True)
        self._each_side(below, above, self._side)
        if self.system.n_columns <= SMALL_REST:
            self._each_side(below, above, self._enumerate)

    def _each_side(self, below: IntArray, above: IntArray, work: Callable[[int, bool], object]) -> None:
        sides = self.known.open_sides(below, above)
        for quantity, is_upper in zip(sides.quantity.tolist(), sides.is_upper.tolist(), strict=True):
            if self.is_late():
                return
            if not self.known.is_settled(quantity, is_upper):
                work(quantity, is_upper)

    def walk(self) -> None:
        """See which single steps some table can take."""
        if self.coordinates is not None:
            self.known.add_moves(self.coordinates.steps(WALK, self.run))

    def decide(
        self, wanted: IntArray, floor: IntArray, ceiling: IntArray, patience: Sequence[int] = PATIENCE[:1]
    ) -> NDArray[np.int8]:
        """Whether each quantity is confined to [floor, ceiling]: 1 proved, 0 refuted by a table, -1 not known.

        `patience` lists times the usual effort, one after another for what stays open.
        """
        if self.system.truth is not None:
            self.known.record(2 * self.system.truth)  # agrees with shares of people whose number is not told
        for is_upper in (True, False):
            goal = ceiling + 1 if is_upper else floor - 1
            is_open = self._verdict(wanted, floor, ceiling) < 0
            sides = Sides(wanted[is_open], np.full(int(is_open.sum()), is_upper), goal[is_open])
            if self.coordinates is not None:
                self._in_batches(sides, is_bound=False)
        for self.patience in patience:
            for place in np.flatnonzero(self._verdict(wanted, floor, ceiling) < 0):
                if self.is_late():
                    break
                if self._verdict(wanted[[place]], floor[[place]], ceiling[[place]])[0] < 0:
                    self._escape(int(wanted[place]), int(floor[place]), int(ceiling[place]))
        return self._verdict(wanted, floor, ceiling)

    def _verdict(self, wanted: IntArray, floor: IntArray, ceiling: IntArray) -> NDArray[np.int8]:
        known = self.known
        is_out = (known.attained_lower[wanted] < floor) | (known.attained_upper[wanted] > ceiling)
        is_in = (known.lower[wanted] >= floor) & (known.upper[wanted] <= ceiling)
        return np.where(is_out, 0, np.where(is_in, 1, -1)).astype(np.int8)

    def _escape(self, quantity: int, floor: int, ceiling: int) -> None:
        """A table outside [floor, ceiling], or the proof that there is none."""
        for is_upper, beyond in ((True, ceiling + 1), (False, floor - 1)):
            if not self._is_reachable(quantity, is_upper, beyond):
                continue
            answer = self._prove(quantity, is_upper)
            if answer is None or not self._is_reachable(quantity, is_upper, beyond):
                continue
            if self._search(quantity, is_upper, beyond, answer):
                return
            if self.system.n_columns <= SMALL_REST * self.patience:
                self._enumerate(quantity, is_upper)

    def _is_reachable(self, quantity: int, is_upper: bool, value: int) -> bool:
        bound = self.known.bound(quantity, is_upper)
        return bound >= value if is_upper else bound <= value

    # Many at once -----------------------------------------------------------------------------------------------

    def _sweep(self, below: IntArray, above: IntArray) -> None:
        """Vertices that favour all open sides together: near each one lies a table that settles many."""
        n_misses = number = 0
        while n_misses < MAX_MISSES and not self.is_late():
            sides = self.known.open_sides(below, above)
            if len(sides) < 2 * MIN_GAIN:
                return
            number += 1
            answer = self._relaxed.minimise(self._favouring(sides, number))
            if answer is None:
                return
            self._attempt(np.rint(answer.point).astype(np.int64), self.system, LONG)
            n_settled = len(sides) - int(self.known.is_unreached(sides).sum())
            n_misses = n_misses + 1 if n_settled < MIN_GAIN else 0

    def _favouring(self, sides: Sides, number: int) -> NDArray[np.float64]:
        """A cost that pulls open sides towards their bounds, each time with other weights."""
        weights = np.zeros(len(self.known.lower))
        pull = 0.5 + _stream(number, len(weights))
        high, low = sides.quantity[sides.is_upper], sides.quantity[~sides.is_upper]
        weights[high] -= (pull / np.maximum(1, self.known.upper))[high]
        if number % 2 == 0 or not len(high):
            weights[low] += (pull / np.maximum(1, self.known.attained_lower))[low]
        cost: NDArray[np.float64] = self._each.T @ weights
        return cost

    def _in_batches(self, sides: Sides, *, is_bound: bool) -> None:
        """Tables that settle several sides each; `is_bound` says that goals are the proved bounds and follow them.

        Sides that fail one by one are left for later.
        """
        width = FIRST_BATCH
        while not self.is_late():
            sides = sides.pick(self.known.is_unreached(sides))
            if not len(sides):
                return
            chosen, stages = self._compatible(sides, width)
            if not chosen:
                self._exclude(sides, is_bound)
                continue
            n_met = self._attempt_halves(stages)
            width = n_met + 1 if n_met == len(chosen) else max(1, n_met)
            if not n_met:
                sides = sides.pick(np.arange(len(sides)) != chosen[0])

    def _compatible(self, sides: Sides, width: int) -> tuple[list[int], list[System]]:
        """Up to so many sides that intervals allow together, the first among them, and the bounds after each of them."""
        probe = Probe(self._intervals, self.system, self.run)
        chosen: list[int] = []
        stages: list[System] = []
        is_left = np.ones(len(sides), dtype=bool)
        while len(chosen) < width:
            is_left &= probe.allows(sides)
            if not is_left.any():
                break
            place = int(np.argmax(is_left))
            is_left[place] = False
            if probe.reach(*self._range(sides, place)):
                chosen.append(place)
                stages.append(probe.system)
            elif not chosen:
                break
        return chosen, stages

    def _range(self, sides: Sides, place: int) -> tuple[int, int, int]:
        """A quantity, and the values between a side's goal and its bound."""
        quantity, goal = int(sides.quantity[place]), int(sides.goal[place])
        if sides.is_upper[place]:
            return quantity, goal, int(self.known.upper[quantity])
        return quantity, int(self.known.lower[quantity]), goal

    def _exclude(self, sides: Sides, is_bound: bool) -> None:
        """No table reaches the goal of the first side, as intervals prove; a bound gives way by growing steps."""
        quantity, is_upper, goal = int(sides.quantity[0]), bool(sides.is_upper[0]), int(sides.goal[0])
        sign, step = (-1 if is_upper else 1), 1
        self.known.prove(quantity, is_upper, goal + sign)
        while is_bound:
            goal = self.known.bound(quantity, is_upper)
            sides.goal[0] = goal
            ends = sorted((goal, goal + sign * (step - 1)))
            if not Probe(self._intervals, self.system, self.run).reach(quantity, *ends):
                self.known.prove(quantity, is_upper, goal + sign * step)
                step *= 2
            elif step == 1:
                break
            else:
                step = 1

    def _attempt_halves(self, stages: list[System]) -> int:
        """How many of the goals a table meets: all, or the first half of them, and so on."""
        n_goals = len(stages)
        while n_goals and not self.is_late():
            within = stages[n_goals - 1]
            steps = self._short if n_goals == 1 else BATCH_STEPS
            if self._attempt(self._fitted(within, FEW_ROUNDS), within, steps):
                break
            n_goals //= 2
        return n_goals

    @property
    def _short(self) -> int:
        """Programs grow faster than repairs: the more rows, the longer a repair is tried before."""
        n_basic = 0 if self.coordinates is None else len(self.coordinates.basic)
        return SHORT * max(1, n_basic // 100)

    # One at a time ----------------------------------------------------------------------------------------------

    def _side(self, quantity: int, is_upper: bool) -> None:
        """One bound of one quantity that resisted: a program, then a search for a table at the bound."""
        answer = self._prove(quantity, is_upper)
        if answer is not None and not self.known.is_settled(quantity, is_upper):
            self._search(quantity, is_upper, self.known.bound(quantity, is_upper), answer)

    def _search(self, quantity: int, is_upper: bool, goal: int, answer: Relaxation) -> bool:
        """A table that reaches a goal: by repair from a fitted table and from the vertex, then among few unknowns."""
        if self.coordinates is None:
            return False
        probe = Probe(self._intervals, self.system, self.run)
        sides = Sides(np.array([quantity]), np.array([is_upper]), np.array([goal]))
        if not probe.reach(*self._range(sides, 0)):
            self._exclude(sides, is_bound=False)
            return False
        within, truth = probe.system, self.coordinates.system.truth
        assert truth is not None
        starts = [truth + blend * (answer.point - truth) for blend in BLENDS]
        steps = LONG * self.patience
        return (
            self._attempt(self._fitted(within, MANY_ROUNDS), within, steps)
            or any(self._attempt(np.rint(start).astype(np.int64), within, steps) for start in starts)
            or self._narrow(within, answer.point)
        )

    def _narrow(self, within: System, point: NDArray[np.float64]) -> bool:
        """A table among those that use only the vertex's unknowns, the heaviest of the truth, and what must be used."""
        assert self.system.truth is not None
        is_used = (point > within.lower + TINY) | (within.lower > self.system.lower)
        is_used[np.argsort(-self.system.truth, kind="stable")[:HEAVIEST]] = True
        columns = np.flatnonzero(is_used)
        part = within.part(columns, np.arange(within.n_rows))
        found = feasible_point(part, NARROW_EFFORT * self.patience, self.run, self._seconds_left()).point
        if found is None:
            return False
        table = within.lower.copy()
        table[columns] = found
        return self.known.record(table)

    def _fitted(self, within: System, n_rounds: int) -> IntArray:
        """The truth, made to fit narrower bounds as well as some rounds of scaling can."""
        assert self.system.truth is not None
        point = np.clip(np.maximum(self.system.truth, LIGHT), within.lower, within.upper)
        matrix = within.matrix
        fit_inplace(
            matrix.indptr,
            matrix.indices,
            matrix.data,
            within.row_lower,
            within.row_upper,
            within.lower,
            within.upper,
            point,
            n_rounds,
            self.run.flag,
        )
        fitted: IntArray = np.rint(point).astype(np.int64)
        return fitted

    def _attempt(self, start: IntArray, within: System, steps: int) -> bool:
        """Look for a table within narrower bounds, from a point near them."""
        assert self.coordinates is not None
        self.repairs += 1
        point = self.coordinates.repaired(start, within, steps, self.repairs, self.run)
        return point is not None and self.known.record(point)

    # Proofs -----------------------------------------------------------------------------------------------------

    def _prove(self, quantity: int, is_upper: bool) -> Relaxation | None:
        """Tighten a proved bound by a linear program; None where there is none."""
        if is_upper and self.known.upper[quantity] >= UNBOUNDED:
            return None
        cost = self._each[[quantity]].toarray()[0]
        if is_upper:
            cost = -cost
        answer = self._relaxed.minimise(cost.astype(np.float64))
        if answer is not None:
            least = self._relaxed.safe_bound(cost, answer.duals)
            self.known.prove(quantity, is_upper, -least if is_upper else least)
        return answer

    def _enumerate(self, quantity: int, is_upper: bool) -> None:
        """What is left, by a constraint solver: exact in integers, for as long as one side may take."""
        if is_upper and self.known.upper[quantity] >= UNBOUNDED:
            return
        form = self._each[[quantity]]
        columns = form.indices.astype(np.int64)
        found = best_value(
            self.system, columns, form.data, is_upper, self.run, self.patience, self._seconds_left()
        )
        if found.point is not None:
            self.known.record(found.point)
        if found.bound is not None:
            self.known.prove(quantity, is_upper, found.bound)


def _stream(number: int, length: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) without a random generator: the fractional parts of multiples of the golden ratio."""
    fractions: NDArray[np.float64] = np.modf((np.arange(length) + 1) * (GOLDEN + 0.0137 * number))[0]
    return fractions
