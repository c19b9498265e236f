"""Small parts of a pattern, each rebuilt optimally while the rest is fixed.

The integer program over all cells hardly improves a good pattern, but over a few hundred cells around one of them it ends in moments. The
cells of the part must satisfy all known inequalities and cost less than before. If the result does not meet a demand, the demand's
inequality is added, for all later programs and bounds too, and the part is tried again.

Notes
-----
**Implements**: local branching in the sense of Shaw (1998), "Using constraint programming and local search methods to solve vehicle routing
problems" (large neighbourhoods), over the capacity constraints of Fischetti & Salazar-González (2000).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array, vstack

from louver._arrays import Bools, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.problem import PatternProblem

__all__ = ["PatternPart"]

NODES = 50
CHEAPER = 1e-6


class PatternPart:
    """The best pattern of some cells, with all others fixed, under inequalities `rows @ y >= 1`."""

    def __init__(self, problem: PatternProblem, cells: Ints, hidden: Bools, run: Run) -> None:
        self._problem, self._cells, self._run = problem, cells, run
        self._rest = hidden.astype(np.float64)
        self._rest[cells] = 0.0
        self._most = float(problem.cost[cells][hidden[cells]].sum())
        self._rows = csr_array((0, len(cells)))
        self._lower = np.zeros(0)

    def require(self, rows: csr_array) -> None:
        """Add inequalities that the other cells do not satisfy by themselves."""
        lower = 1 - rows @ self._rest
        is_open = lower > CHEAPER
        own = csr_array(rows[is_open][:, self._cells])
        self._rows = csr_array(vstack([self._rows, own]))
        self._lower = np.concatenate([self._lower, lower[is_open]])

    def solve(self, step: float, seconds: float = math.inf) -> Bools | None:
        """A pattern that costs less than the present one by `step`; None if there is none, or none is found."""
        n = len(self._cells)
        cost = self._problem.cost[self._cells]
        rows = csr_array(vstack([self._rows, csr_array(-cost[None, :])]))
        lower = np.concatenate([self._lower, [step - self._most]])
        program = Program(
            rows,
            lower,
            np.full(len(lower), np.inf),
            np.zeros(n),
            np.ones(n),
            is_integer=np.ones(n, dtype=bool),
            run=self._run,
        )
        program.set_cost(cost)
        found = program.solve(nodes=NODES, seconds=seconds)
        if found.status not in (Status.OPTIMAL, Status.FEASIBLE):
            return None
        hidden = self._rest > 0.5
        hidden[self._cells] = found.point > 0.5
        return hidden
