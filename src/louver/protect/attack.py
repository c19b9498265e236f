"""What readers learn from changed numbers: for every demand, a table consistent with all their knowledge, if there is one.

Rounded numbers, and numbers with noise of known size, confine every true number to an interval, and the true numbers add up. A linear
program handles many cells together, and the rest are handled one by one.
"""

from __future__ import annotations

import numpy as np

from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.outsider import ENOUGH, Outsider, Witness
from louver.tables.hiding.problem import UNBOUNDED, PatternProblem

__all__ = ["find_witnesses"]


def find_witnesses(problem: PatternProblem, run: Run) -> tuple[Witness | None, ...]:
    """A witness for every demand that is met if every cell may change."""
    found: list[Witness | None] = [None] * len(problem.demands)
    outsider = Outsider(problem, run)
    _together(problem, outsider, found, run)
    every = np.ones(problem.n_cells)
    waiting = [n for n, witness in enumerate(found) if witness is None]
    for place, n in enumerate(waiting):
        run.check()
        run.report("deriving what readers learn", place, len(waiting))
        found[n] = outsider.reach(problem.demands[n], every).witness
    return tuple(found)


def _together(problem: PatternProblem, outsider: Outsider, found: list[Witness | None], run: Run) -> None:
    """Move many cells at once, as far as each needs; demands that one table meets together need not be checked again."""
    if not problem.demands:
        return
    scale = float(np.median([demand.need for demand in problem.demands]))
    nothing = np.zeros(problem.sums.shape[0])
    sums = problem.sums.astype(np.float64)
    down, up = (np.where(room >= UNBOUNDED, np.inf, room / scale) for room in (problem.down, problem.up))
    program = Program(sums, nothing, nothing, -down, up, run=run)
    for sign in (1, -1):
        pending = [n for n, demand in enumerate(problem.demands) if demand.sign == sign]
        while pending:
            run.check()
            lower, upper, cost = -down, up.copy(), np.zeros(problem.n_cells)
            for n in pending:
                demand = problem.demands[n]
                cell, need = demand.cell, demand.need / scale
                cost[cell] = -sign / need
                if sign > 0:
                    upper[cell] = min(upper[cell], need)
                else:
                    lower[cell] = max(lower[cell], -need)
            program.set_bounds(lower, upper)
            program.set_cost(cost)
            solved = program.solve()
            if solved.status is not Status.OPTIMAL:
                break
            change = np.where(np.abs(solved.point) < 1e-11, 0.0, solved.point) * scale
            witness = Witness.of(change)
            left = []
            is_accepted = outsider.accepted(problem.demands[pending[0]], witness)
            for n in pending:
                demand = problem.demands[n]
                if is_accepted[demand.attacker] and sign * change[demand.cell] >= demand.need * ENOUGH:
                    found[n] = witness
                else:
                    left.append(n)
            if len(left) == len(pending):
                break
            pending = left
