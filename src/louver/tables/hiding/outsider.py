"""The attacker's problem: how far a hidden cell can be from its value in a table that agrees with all that the attacker knows.

Maximise the change of the cell subject to `sums @ change = 0` and to the attacker's knowledge about each cell, where a cell that is hidden
to the share y can change by y times its distances. If the result is less than a demand needs, the duals give an inequality that every
pattern meeting the demand must satisfy.

Notes
-----
**Implements**: Fischetti & Salazar-González (2000), "Models and algorithms for optimizing cell suppression in tabular data with linear
constraints", the attacker's subproblems and capacity constraints (section 3).
**Departs**: duals are rounded to fractions with a small denominator before they become an inequality. Any duals give a valid one, and
rounded ones allow exact computation, so that a bound never depends on rounding errors of the solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from louver._arrays import Bools, Floats, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.problem import UNBOUNDED, Demand, PatternProblem

__all__ = ["ENOUGH", "Cut", "Outsider", "Reach", "Witness", "cheapest_joint"]

CLIP = 1024.0
"""Limit on how far a witness may move another cell, as a multiple of the demand."""

ENOUGH = 1 - 1e-9
"""Share of a need that counts as met in floating point; the certificate requires all of it."""
DENOMINATORS = (1, 2, 12, 1 << 20)
NEAR = 1e-6


@dataclass(frozen=True, slots=True)
class Witness:
    """Cells that change, and by how many units."""

    cells: Ints
    change: Floats

    @classmethod
    def of(cls, change: Floats) -> Witness:
        cells = np.flatnonzero(np.abs(change) > 0)
        return cls(cells, change[cells])


@dataclass(frozen=True, slots=True)
class Cut:
    """`share @ y[cells] >= 1` for every pattern y that meets a demand."""

    cells: Ints
    share: Floats


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a cell can move, as a share of the need; with a witness if that is enough, otherwise with duals of the sums."""

    share: float
    witness: Witness | None
    duals: Floats | None


class Outsider:
    """The attacker's problems of one set of tables, each solved from the basis of the previous one."""

    def __init__(self, problem: PatternProblem, run: Run) -> None:
        self.problem = problem
        n, m = problem.n_cells, problem.sums.shape[0]
        self._sums = problem.sums.astype(np.float64)
        nothing = np.zeros(m)
        self._program = Program(self._sums, nothing, nothing, np.zeros(n), np.zeros(n), run=run)
        many = [attacker for attacker in problem.attackers if len(attacker.cells)]
        self._places = [n for n, attacker in enumerate(problem.attackers) if len(attacker.cells)]
        self._starts = np.cumsum([0, *(len(attacker.cells) for attacker in many[:-1])])
        self._known = [
            np.concatenate([getattr(attacker, name) for attacker in many] or [np.zeros(0, dtype=np.int64)])
            for name in ("cells", "down", "up")
        ]
        both = csr_array(hstack([self._sums, -self._sums]))
        self._paths = Program(both, nothing, nothing, np.zeros(2 * n), np.zeros(2 * n), run=run)

    def capacities(self, demand: Demand) -> tuple[Floats, Floats]:
        """How far each cell may move down and up, as multiples of the need."""
        return _multiples(self.problem.room(demand.attacker), demand.need)

    def reach(self, demand: Demand, openness: Floats) -> Reach:
        """How far a demand is met if cells are hidden to the given shares (0 or 1 in a pattern)."""
        return self._reach(demand, openness, self.capacities(demand))

    def reach_for_all(self, demands: Sequence[Demand], openness: Floats) -> Witness | None:
        """One witness for several attackers of a cell, as if they shared all their knowledge; None if there is none."""
        hardest = max(demands, key=lambda one: one.need)
        down, up = self.problem.room(0)
        for demand in demands:
            attacker = self.problem.attackers[demand.attacker]
            down[attacker.cells] = np.minimum(down[attacker.cells], attacker.down)
            up[attacker.cells] = np.minimum(up[attacker.cells], attacker.up)
        return self._reach(hardest, openness, _multiples((down, up), hardest.need)).witness

    def _reach(self, demand: Demand, openness: Floats, capacities: tuple[Floats, Floats]) -> Reach:
        down, up = capacities
        lower, upper = -np.minimum(down, CLIP) * openness, np.minimum(up, CLIP) * openness
        cell, sign = demand.cell, demand.sign
        if sign > 0:
            upper[cell] = min(upper[cell], 1.0)
        else:
            lower[cell] = max(lower[cell], -1.0)
        cost = np.zeros(self.problem.n_cells)
        cost[cell] = -sign
        self._program.set_bounds(lower, upper)
        self._program.set_cost(cost)
        found = self._program.solve()
        if found.status is not Status.OPTIMAL:
            return Reach(0.0, None, None)
        share = -found.objective
        if share >= ENOUGH:
            return Reach(share, Witness.of(_cleaned(found.point) * demand.need), None)
        return Reach(share, None, found.row_duals)

    def cut(self, demand: Demand, duals: Floats) -> Cut:
        """The inequality that follows from duals of a demand that is not met."""
        down, up = self.capacities(demand)
        cost = np.zeros(self.problem.n_cells)
        cost[demand.cell] = -demand.sign
        for denominator in DENOMINATORS:
            whole = np.rint(duals * denominator)
            if np.abs(whole - duals * denominator).max(initial=0.0) <= NEAR * denominator:
                break
        slope = cost * denominator - self._sums.T @ whole  # whole numbers: exact
        with np.errstate(invalid="ignore"):
            step = np.where(slope < 0, -slope * up, slope * down) / denominator
        share = np.where(slope == 0, 0.0, np.minimum(step, 1.0))
        cells = np.flatnonzero(share > 0)
        return Cut(cells, share[cells])

    def cheapest(self, demand: Demand, hidden: Bools, price: Floats, may_hide: Bools) -> Witness | None:
        """A change that meets a demand through cells that are cheap to hide; None if there is none."""
        n = self.problem.n_cells
        down, up = self.capacities(demand)
        usable = hidden | may_hide
        most_up, most_down = np.minimum(up, CLIP) * usable, np.minimum(down, CLIP) * usable
        own_up, own_down = most_up[demand.cell], most_down[demand.cell]
        most_up[demand.cell] = most_down[demand.cell] = 0.0
        lower = np.zeros(2 * n)
        upper = np.concatenate([most_up, most_down])
        if (own_up if demand.sign > 0 else own_down) < ENOUGH:
            return None
        place = demand.cell + (0 if demand.sign > 0 else n)
        lower[place] = upper[place] = 1.0
        self._paths.set_bounds(lower, upper)
        weights = np.where(hidden, 0.0, price)
        narrow = np.concatenate([np.minimum(up, 1.0), np.minimum(down, 1.0)])
        base = np.concatenate([weights, weights]) / np.maximum(narrow, 1e-6)
        best: Floats | None = None
        cost = base + 1e-7
        for _ in range(REWEIGHTED):
            self._paths.set_cost(cost)
            found = self._paths.solve()
            if found.status is not Status.OPTIMAL:
                break
            flow = _cleaned(found.point)
            change = flow[:n] - flow[n:]
            if best is None or _price(change, weights) < _price(best, weights):
                best = change
            size = flow[:n] + flow[n:]
            cost = np.concatenate([weights, weights]) / (np.concatenate([size, size]) + 0.1) + 1e-7
        return None if best is None else Witness.of(best * demand.need)

    def accepted(self, demand: Demand, witness: Witness) -> Bools:
        """Which attackers consider a witness (accepted by the outsider) possible, within floating-point accuracy."""
        found = np.ones(len(self.problem.attackers), dtype=bool)
        if self._places:
            change = np.zeros(self.problem.n_cells)
            change[witness.cells] = witness.change
            cells, down, up = self._known
            slack = 1e-9 * demand.need
            is_against = (change[cells] > up + slack) | (-change[cells] > down + slack)
            found[self._places] = ~np.logical_or.reduceat(is_against, self._starts)
        return found


WIDEST = 64
"""How far a cell may move in a change for several demands, as a multiple of the largest one."""


def cheapest_joint(
    problem: PatternProblem, cells: Ints, need: Ints, hidden: Bools, price: Floats, run: Run
) -> Floats | None:
    """A change that moves some cells, in turn up and down, as far as needed through cells that are cheap to hide.

    No cell moves further than it can move either way, so that the mirror image is a change, too. None where there is none.
    """
    n = problem.n_cells
    usable = hidden | problem.may_hide
    room = np.minimum(np.minimum(problem.down, problem.up), WIDEST * int(need.max())) * usable
    lower, upper = np.zeros(2 * n), np.concatenate([room, room]).astype(np.float64)
    is_up = np.arange(len(cells)) % 2 == 0
    lower[np.where(is_up, cells, n + cells)] = need
    upper[np.where(is_up, n + cells, cells)] = 0
    if (lower > upper).any():
        return None
    sums = problem.sums.astype(np.float64)
    nothing = np.zeros(sums.shape[0])
    program = Program(csr_array(hstack([sums, -sums])), nothing, nothing, lower, upper, run=run)
    narrow = np.maximum(np.minimum(room, float(np.median(need))), 1e-6)
    weights = np.where(hidden, 0.0, price) / narrow + 1e-5
    program.set_cost(np.concatenate([weights, weights]))
    found = program.solve()
    if found.status is not Status.OPTIMAL:
        return None
    return found.point[:n] - found.point[n:]


REWEIGHTED = 3
"""Number of rounds in which cells that moved little are made more expensive, so that fewer move."""


def _multiples(room: tuple[Ints, Ints], need: int) -> tuple[Floats, Floats]:
    """Distances as multiples of a need."""
    down, up = (np.where(one >= UNBOUNDED, np.inf, one / need) for one in room)
    return down, up


def _cleaned(point: Floats) -> Floats:
    """Remove floating-point error."""
    return np.where(np.abs(point) < 1e-11, 0.0, point)


def _price(change: Floats, weights: Floats) -> float:
    return float(weights[np.abs(change) > 0].sum())
