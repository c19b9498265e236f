"""Controlled rounding: every number becomes a multiple of its base, all sums are exact, and numbers are as close to the true ones as
possible.

A number is rounded to one of the two adjacent multiples, or kept if it is a multiple; among the tables that add up, one with the least
total distance is sought. If no such table adds up, numbers may move one multiple further, then more.

1. **Linear program.** In tables of two attributes its solution is integral, and therefore optimal.
2. **Annealing** over the finest cells, if every number is a sum of these: always additive, and fast.
3. **Integer program**, for tables of up to `SMALL` cells, or where 2 does not apply.

Notes
-----
**Implements**: Cox & Ernst (1982), "Controlled rounding", for two-way tables; Salazar-González et al. (2004), "Controlled rounding and cell
perturbation: statistical disclosure limitation methods for tabular data", for linked ones.
**Cost**: a linear program with a variable per cell; the annealing makes about 10^4 moves for each finest cell.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, hstack

from louver._arrays import Bools, Floats, Ints
from louver.errors import InfeasibleError, SolverError
from louver.optim.kernels.rounding.descent import SCALE, anneal_inplace
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run

__all__ = ["Rounding", "round_cells"]

SMALL = 2_000
"""Number of cells up to which an integer program is solved after annealing."""

NODES = 500
WIDER = (0, 1, 3, 7)
"""Numbers of multiples beyond the two adjacent ones by which a number may move, tried in this order."""

UNIT = 4096
"""Size of a base in the annealing, independent of the table."""

PASSES, TRIES, HOT, COLD, PENALTY, PARTS = 1_000, 10, 1.0, 0.1, 1, 20
"""Annealing parameters: passes, moves of each finest cell in a pass, first and last temperature and penalty (in bases), and parts of the
work."""

SEED = 88172645463325252
WHOLE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rounding:
    """Rounded numbers.

    Attributes
    ----------
    numbers : int array
        Rounded numbers in units, multiples of the base of each cell.
    distance, bound : int
        Sum of all distances, and a lower bound on it for any table that adds up and whose numbers are at most as far from the true ones.
        Both are in parts of a base, `scale` parts to each base: in tables with one base these are units, and different variables have equal
        weight.
    scale : int
    is_optimal : bool
        Whether no such table has a smaller sum, and no table that adds up uses nearer multiples only.
    beyond : int
        Multiples beyond the two next ones that the furthest number went; 0 where all are next multiples.
    """

    numbers: Ints
    distance: int
    bound: int
    scale: int
    is_optimal: bool
    beyond: int

    @property
    def gap(self) -> float:
        """Largest share of the distance that a better table could save."""
        return 0.0 if self.is_optimal or not self.distance else max(0.0, 1 - self.bound / self.distance)


def round_cells(
    values: Ints,
    sums: csr_array,
    base: Ints,
    is_negative: Bools,
    run: Run,
    *,
    nodes: int = NODES,
    seconds: float | None = None,
) -> Rounding:
    """Round numbers so that all sums hold.

    Parameters
    ----------
    values, base : int arrays
        Value and base of each cell, in units.
    sums : csr_array
        One row per sum: 1 for the total, -1 for each part.
    is_negative : bool array
        Cells that may become negative.
    nodes : int
        Limit of an integer program.
    seconds : float, optional
        After about this time, the best table so far is returned; the answer then depends on the machine.

    Raises
    ------
    InfeasibleError
        If no table adds up.
    SolverError
        If none was found in time.
    """
    ends = math.inf if seconds is None else time.monotonic() + seconds
    model = _Model(values, sums, base, is_negative, run, ends)
    found = model.linear(0)
    if found is not None and found.is_optimal:
        return found
    annealed = model.annealed()
    if annealed is not None and len(values) > SMALL:
        return model.with_bound(annealed)
    for beyond in WIDER:
        if time.monotonic() >= ends:
            break
        whole, is_impossible = model.whole(beyond, nodes, model.left)
        if whole is not None:
            return model.nearer(whole, annealed)
        if not is_impossible and annealed is not None:
            break
    else:
        raise InfeasibleError(
            f"no consistent table was found with every number at most {WIDER[-1] + 1} multiples from its value; choose another base."
        )
    if annealed is None:
        raise SolverError("no consistent table was found within --seconds; allow more time.")
    return model.with_bound(annealed)


class _Model:
    """Integer program in the steps of each cell from the multiple at or below its value."""

    def __init__(
        self, values: Ints, sums: csr_array, base: Ints, is_negative: Bools, run: Run, ends: float
    ) -> None:
        self.values, self.base, self.run, self.ends = values, base, run, ends
        self.sums = sums.astype(np.int64)
        self.lowest = np.floor_divide(values, base)
        self.rest = (values - self.lowest * base).astype(np.int64)
        self.next = (self.rest > 0).astype(np.int64)
        self.least = np.where(is_negative, -(1 << 40), -self.lowest)
        self.right = -(self.sums @ self.lowest)
        self.scale = math.lcm(1, *np.unique(base).tolist())

    @property
    def left(self) -> float:
        """Remaining seconds, always more than zero, so that every solver starts."""
        return max(self.ends - time.monotonic(), 1e-3)

    def _program(self, beyond: int, is_whole: bool) -> Program:
        """Steps to the next multiple, and steps further up and down, each with its share of the distance."""
        n = len(self.values)
        rows = self.sums.astype(np.float64)
        up = np.full(n, float(beyond))
        down = np.minimum(float(beyond), -self.least.astype(np.float64))
        if beyond:
            rows = csr_array(hstack([rows, rows, -rows]))
            upper = np.concatenate([self.next.astype(np.float64), up, down])
        else:
            upper = self.next.astype(np.float64)
        program = Program(
            rows,
            self.right,
            self.right,
            np.zeros(len(upper)),
            upper,
            is_integer=np.ones(len(upper), dtype=bool) if is_whole else None,
            run=self.run,
        )
        slope = (self.base - 2 * self.rest) / self.base
        further = np.ones(n)
        program.set_cost(np.concatenate([slope, further, further]) if beyond else slope)
        return program

    def _steps(self, point: Floats, beyond: int) -> Ints:
        n = len(self.values)
        found = np.rint(point[:n] + point[n : 2 * n] - point[2 * n :] if beyond else point)
        return found.astype(np.int64)

    def _weighed(self, distances: Ints) -> int:
        """Sum of distances in parts of a base; exact."""
        return sum(
            int(distances[self.base == base].sum()) * (self.scale // base)
            for base in np.unique(self.base).tolist()
        )

    @property
    def _least(self) -> int:
        """Lower bound on the distance, additive or not: every number goes to its nearest multiple."""
        return self._weighed(np.minimum(self.rest, self.base - self.rest))

    def _bound(self, value: float) -> int:
        bound = value * self.scale + float(self._weighed(self.rest))
        return max(self._least, math.ceil(bound - WHOLE * max(1.0, abs(bound))))

    def _rounding(self, steps: Ints, bound: int, *, is_proved: bool) -> Rounding | None:
        """Steps as numbers, if all sums hold; checked in integers."""
        numbers = (self.lowest + steps) * self.base
        if (self.sums @ numbers).any() or (steps < self.least).any():
            return None
        distance = self._weighed(np.abs(numbers - self.values))
        beyond = int(np.maximum(-steps, steps - self.next).max(initial=0))
        bound = min(bound, distance)
        return Rounding(
            numbers=numbers,
            distance=distance,
            bound=bound,
            scale=self.scale,
            is_optimal=is_proved and bound >= distance,
            beyond=beyond,
        )

    def linear(self, beyond: int) -> Rounding | None:
        """The answer of the linear program, if it is integral."""
        found = self._program(beyond, False).solve(seconds=self.left)
        if (
            found.status is not Status.OPTIMAL
            or np.abs(found.point - np.rint(found.point)).max(initial=0) > WHOLE
        ):
            return None
        return self._rounding(self._steps(found.point, beyond), self._bound(found.objective), is_proved=True)

    def whole(self, beyond: int, nodes: int, seconds: float) -> tuple[Rounding | None, bool]:
        """The answer of the integer program, and whether it is proved that there is none."""
        found = self._program(beyond, True).solve(nodes=nodes, seconds=seconds)
        if found.status not in (Status.OPTIMAL, Status.FEASIBLE):
            return None, found.status is Status.INFEASIBLE
        rounding = self._rounding(
            self._steps(found.point, beyond),
            self._bound(found.bound),
            is_proved=found.status is Status.OPTIMAL,
        )
        return rounding, False

    def with_bound(self, steps: Ints) -> Rounding:
        """Steps found by annealing, with the bound of the linear program that allows steps of the same size."""
        first = self._rounding(steps, self._least, is_proved=False)
        assert first is not None  # every step of the annealing is additive
        found = self._program(first.beyond, False).solve(seconds=self.left)
        bound = self._bound(found.bound) if found.status is Status.OPTIMAL else self._least
        second = self._rounding(steps, bound, is_proved=first.beyond == 0)
        assert second is not None
        return second

    def nearer(self, whole: Rounding, annealed: Ints | None) -> Rounding:
        """The better of two tables; an integer program that hit its limit can be worse than annealing."""
        other = None if annealed is None else self._rounding(annealed, whole.bound, is_proved=False)
        if other is None or (other.beyond, other.distance) >= (whole.beyond, whole.distance):
            return whole
        return other if other.beyond == whole.beyond else replace(other, bound=self._least)

    def annealed(self) -> Ints | None:
        """Steps by annealing; None if the numbers are not all sums of the finest ones.

        When time is up, the last part, which only improves, still runs.
        """
        moved = _moved(self.sums, len(self.values))
        if moved is None:
            return None
        finest, matrix = moved
        start = self.lowest[finest] + (2 * self.rest[finest] > self.base[finest])
        steps = matrix.T @ start - self.lowest
        steps = np.ascontiguousarray(steps, dtype=np.int64)
        scaled = np.where(self.rest > 0, np.maximum(1, self.rest * UNIT // self.base), 0)
        temperatures = (np.geomspace(UNIT * HOT, UNIT * COLD, PASSES) * SCALE).astype(np.int64)
        n = len(self.values)
        best, lowest = steps.copy(), math.inf
        for number, part in enumerate(np.array_split(temperatures, PARTS)):
            self.run.check()
            self.run.report("rounding", number, PARTS)
            if number < PARTS - 1 and time.monotonic() >= self.ends:
                continue
            found = steps.copy()
            anneal_inplace(
                matrix.indptr.astype(np.int64),
                matrix.indices.astype(np.int64),
                steps,
                self.least,
                scaled,
                np.full(n, UNIT),
                np.full(n, UNIT * PENALTY),
                part,
                TRIES * len(finest),
                SEED + number,
                found,
            )
            distance = self._penalised(found)
            if distance < lowest:
                best, lowest = found, distance
        return best

    def _penalised(self, steps: Ints) -> float:
        """Total distance with the penalty of the annealing, in bases."""
        beyond = np.maximum(0, np.maximum(-steps, steps - self.next))
        return float((np.abs(steps - self.rest / self.base) + PENALTY * beyond).sum())


def _moved(sums: csr_array, n_cells: int) -> tuple[Ints, csr_array] | None:
    """Finest cells and, one row per cell, the cells of whose sums they are part; None if sums of different tables cross.

    Cells move along the first sum of which each is the total; whether all other sums then hold is checked.
    """
    totals = sums.indices[sums.data > 0]  # one per row
    _, first = np.unique(totals, return_index=True)
    above: list[list[int]] = [[] for _ in range(n_cells)]
    for row in np.sort(first):
        own = slice(sums.indptr[row], sums.indptr[row + 1])
        for part, sign in zip(sums.indices[own].tolist(), sums.data[own].tolist(), strict=True):
            if sign < 0:
                above[part].append(int(totals[row]))
    finest = np.setdiff1d(np.arange(n_cells), totals)
    listed = []
    for cell in finest.tolist():
        seen, waiting = {cell}, [cell]
        while waiting:
            for total in above[waiting.pop()]:
                if total in seen:
                    continue
                seen.add(total)
                waiting.append(total)
        listed.append(sorted(seen))
    ends = np.cumsum([0, *map(len, listed)])
    cells = np.array([cell for own in listed for cell in own], dtype=np.int64)
    matrix = csr_array((np.ones(len(cells), dtype=np.int64), cells, ends), shape=(len(finest), n_cells))
    return None if (sums @ matrix.T).count_nonzero() else (finest, matrix)
