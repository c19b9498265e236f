"""Tight integer bounds of many quantities of one system, each proved and attained.

A bound is *proved* by intervals, by the equalities alone, or by a linear program whose duals are rounded and then counted
in integers; it is *attained* by an integer table that was checked in integers. Where both meet, it is certified.
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
from louver.optim.program import SolvedProgram
from louver.run import Run
from louver.tables.coordinates import Coordinates
from louver.tables.evidence import BoundEvidence, Probe, Sides
from louver.tables.solvers import Relaxed, best_value, feasible_point
from louver.tables.system import IntArray, Intervals, System

__all__ = ["PATIENCE", "Component"]

SHORT, LONG = 1000, 6000
"""Number of steps of the first repair per hundred equalities, and of the repair of a side that is still open."""

FIRST_BATCH, BATCH_STEPS = 16, 400
"""Initial number of sides that one table is expected to settle, and number of steps of a repair for several sides."""

FEW_ROUNDS, MANY_ROUNDS, LIGHT = 8, 40, 1e-3
"""Rounds of proportional fitting (few, many), and the weight of an empty cell in it."""

MIN_GAIN, MAX_MISSES = 4, 3
"""Sides that a program for many targets must settle to justify the next one, and failures allowed in a row."""

SMALL_REST = 200
"""Largest number of unknowns for which open sides are handed to a constraint solver."""

BLENDS = (1.0, 0.8)
"""Weights of the starting points of a repair, mixtures of the truth and a vertex."""

HEAVIEST, NARROW_EFFORT, TINY = 300, 0.5, 1e-7
"""Number of unknowns added to those of a vertex in a narrow search, the solver's deterministic seconds for it, and a tolerance."""

WALK = 60
"""Number of rounds of steps that show which unknowns can change."""

PATIENCE = (1, 4, 16, 64, 256)
"""Multiples of the usual effort spent on a question that remains open, while there is time."""

GOLDEN = 0.6180339887498949


@dataclass(slots=True, eq=False)
class Component:
    """Working state of one connected system; `known` holds what has been proved and attained so far."""

    system: System
    run: Run
    deadline: float = np.inf
    known: BoundEvidence = field(init=False)
    coordinates: Coordinates | None = field(init=False, default=None)
    repairs: int = field(init=False, default=0)
    patience: int = field(init=False, default=1)
    _intervals: Intervals = field(init=False)
    _relaxed: Relaxed = field(init=False)
    _each: csr_array = field(init=False)

    def __post_init__(self) -> None:
        system = self.system
        self._intervals = Intervals.of(system.matrix)
        self.known = BoundEvidence(system, self._intervals.least_reach)
        self._relaxed = Relaxed(system, self.run)
        each = vstack([eye_array(system.n_columns, dtype=np.int64), system.matrix], format="csr")
        self._each = csr_array(each)
        if system.truth is not None:
            self.coordinates = Coordinates.of(system, self.run)
        if self.coordinates is not None:
            # Unknowns that no step can change are determined by the equalities.
            self.known.settle(self.coordinates.position == -1)

    @property
    def programs(self) -> int:
        return self._relaxed.programs

    def is_late(self) -> bool:
        self.run.check()
        return time.monotonic() > self.deadline

    def _seconds_left(self) -> float:
        """The time limit of a solver; the usual effort has none, so that answers do not depend on speed."""
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
        """Find out which single steps are possible from some table."""
        if self.coordinates is not None:
            self.known.add_moves(self.coordinates.steps(WALK, self.run))

    def decide(
        self, wanted: IntArray, floor: IntArray, ceiling: IntArray, patience: Sequence[int] = PATIENCE[:1]
    ) -> NDArray[np.int8]:
        """Whether each quantity is confined to [floor, ceiling]: 1 proved, 0 refuted by a table, -1 not known.

        `patience` lists multiples of the usual effort, used in turn for quantities that remain open.
        """
        if self.system.truth is not None:
            self.known.record(
                2 * self.system.truth
            )  # also consistent with shares whose number of people is not given
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
        """Find vertices that favour all open sides together: near each vertex there is a table that settles many of them."""
        n_misses = number = 0
        while n_misses < MAX_MISSES and not self.is_late():
            sides = self.known.open_sides(below, above)
            if len(sides) < 2 * MIN_GAIN:
                return
            number += 1
            answer = self._relaxed.minimise(self._favouring(sides, number), self.deadline - time.monotonic())
            if answer is None:
                return
            self._attempt(np.rint(answer.point).astype(np.int64), self.system, LONG)
            n_settled = len(sides) - int(self.known.is_unreached(sides).sum())
            n_misses = n_misses + 1 if n_settled < MIN_GAIN else 0

    def _favouring(self, sides: Sides, number: int) -> NDArray[np.float64]:
        """A cost that pulls open sides towards their bounds, with different weights each time."""
        weights = np.zeros(len(self.known.lower))
        pull = 0.5 + _stream(number, len(weights))
        high, low = sides.quantity[sides.is_upper], sides.quantity[~sides.is_upper]
        weights[high] -= (pull / np.maximum(1, self.known.upper))[high]
        if number % 2 == 0 or not len(high):
            weights[low] += (pull / np.maximum(1, self.known.attained_lower))[low]
        cost: NDArray[np.float64] = self._each.T @ weights
        return cost

    def _in_batches(self, sides: Sides, *, is_bound: bool) -> None:
        """Find tables that settle several sides each; `is_bound` says that goals are the proved bounds and follow them.

        Sides that fail one by one are postponed.
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
        """Up to `width` sides, including the first, that intervals allow together, with the bounds after each of them."""
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
        """Record that no table reaches the goal of the first side, as intervals prove; a bound is tightened by growing steps."""
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
        """The number of goals that a single table meets: tries all, then the first half of them, and so on."""
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
        """Steps of a repair before a program is solved: the cost of programs grows faster, so with more rows a repair is tried longer."""
        n_basic = 0 if self.coordinates is None else len(self.coordinates.basic)
        return SHORT * max(1, n_basic // 100)

    # One at a time ----------------------------------------------------------------------------------------------

    def _side(self, quantity: int, is_upper: bool) -> None:
        """Settle one open bound of one quantity: solve a program, then search for a table at the bound."""
        answer = self._prove(quantity, is_upper)
        if answer is not None and not self.known.is_settled(quantity, is_upper):
            self._search(quantity, is_upper, self.known.bound(quantity, is_upper), answer)

    def _search(self, quantity: int, is_upper: bool, goal: int, answer: SolvedProgram) -> bool:
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
        """A table that uses only the vertex's unknowns, the largest ones of the truth, and those that must be used."""
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
        """The truth, fitted to narrower bounds as closely as a few rounds of scaling allow."""
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

    def _prove(self, quantity: int, is_upper: bool) -> SolvedProgram | None:
        """Tighten a proved bound by a linear program; None if there is nothing to tighten or no answer."""
        if is_upper and self.known.upper[quantity] >= UNBOUNDED:
            return None
        cost = self._each[[quantity]].toarray()[0]
        if is_upper:
            cost = -cost
        answer = self._relaxed.minimise(cost.astype(np.float64), self.deadline - time.monotonic())
        if answer is not None:
            least = self._relaxed.safe_bound(cost, answer.row_duals)
            self.known.prove(quantity, is_upper, -least if is_upper else least)
        return answer

    def _enumerate(self, quantity: int, is_upper: bool) -> None:
        """Settle the remaining sides by a constraint solver: exact in integers, within the effort allowed per side."""
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
    """Numbers in [0, 1) without a random number generator: the fractional parts of multiples of the golden ratio."""
    fractions: NDArray[np.float64] = np.modf((np.arange(length) + 1) * (GOLDEN + 0.0137 * number))[0]
    return fractions
