"""All steps after loading: primary cells, a pattern, and its proof."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, hstack, vstack

from louver._arrays import Bools, Floats
from louver.errors import InputError
from louver.optim.program import Program
from louver.optim.status import Status
from louver.protect.attack import find_witnesses
from louver.protect.build import build_problem
from louver.protect.load import Loaded
from louver.protect.options import ProtectOptions
from louver.protect.round import Rounding, round_cells
from louver.protect.rules import Judged, judge_cells
from louver.run import Run
from louver.tables.hiding.certify import Certificate, certify
from louver.tables.hiding.hide import Hiding, hide
from louver.tables.hiding.outsider import Outsider, Witness
from louver.tables.hiding.problem import LARGEST, Demand, PatternProblem
from louver.tables.hiding.state import SearchState

__all__ = ["Solved", "bases_of", "solve"]

MOST_MOVED = 64
"""Limit, in units and as a multiple of the demand, on how far a cell may move in the search for a whole-number witness."""

NODES = 2_000

MOST_SEARCHES = 10
"""Maximum number of searches for a pattern in which no cell that is hidden with others can be derived."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solved:
    """A pattern with its proof; `certificate` shows which demands it meets."""

    judged: Judged
    problem: PatternProblem
    hiding: Hiding
    certificate: Certificate
    rounding: Rounding | None = None

    @property
    def open_cells(self) -> dict[int, list[str]]:
        """Primary cells that are not proved to be protected, with the attackers."""
        found: dict[int, list[str]] = {}
        for number in self.certificate.missing:
            demand = self.problem.demands[number]
            names = found.setdefault(demand.cell, [])
            name = self.problem.attackers[demand.attacker].name
            if name not in names:
                names.append(name)
        return found


def solve(options: ProtectOptions, loaded: Loaded, run: Run) -> Solved:
    """Find primary cells, hide further cells or round all numbers, and prove that this protects the primary cells."""
    judged = judge_cells(options, loaded)
    if options.method == "round":
        return _rounded(options, loaded, judged, run)
    problem = build_problem(options, loaded, judged)
    is_given = judged.given is not None
    state = None if options.state is None else SearchState(Path(options.state))
    hiding = hide(problem, run, steps=0 if is_given else options.steps, seconds=options.seconds, state=state)
    if problem.twins is not None:
        problem, hiding = _none_derivable(options, problem, hiding, run)
    if is_given:  # no better pattern was sought
        hiding = replace(hiding, cost=problem.spent(hiding.hidden), bound=0.0, is_optimal=False)
    problem = replace(problem, demands=hiding.demands)
    certificate = certify(problem, hiding.hidden, hiding.witnesses, run)
    repaired = _repaired(problem, hiding, certificate, run)
    if repaired is not hiding:
        certificate = certify(problem, repaired.hidden, repaired.witnesses, run)
    hiding = _trimmed(problem, repaired, certificate)
    return Solved(judged=judged, problem=problem, hiding=hiding, certificate=certificate)


def _none_derivable(
    options: ProtectOptions, problem: PatternProblem, hiding: Hiding, run: Run
) -> tuple[PatternProblem, Hiding]:
    """Add demands for cells that are hidden only because others are and that follow from what is shown, and search again.

    The first bound remains valid: it holds for every pattern that hides tied cells together.
    """
    bound, twins = hiding.bound, problem.twins_of()
    usable = (problem.must_hide | problem.may_hide).astype(np.float64)
    outsider = Outsider(problem, run)

    def is_open(cell: int, sign: int, hidden: Floats) -> bool:
        return outsider.reach(Demand(cell, sign, 1, 0), hidden).witness is not None

    for _ in range(MOST_SEARCHES):
        hidden = hiding.hidden.astype(np.float64)
        demanded = {demand.cell for demand in problem.demands}
        derivable = [
            cell
            for cell in np.flatnonzero(hiding.hidden).tolist()
            if cell in twins and cell not in demanded and not any(is_open(cell, s, hidden) for s in (1, -1))
        ]
        if not derivable:
            break
        more = [Demand(cell, 1 if is_open(cell, 1, usable) else -1, 1, 0) for cell in derivable]
        problem = replace(problem, demands=(*problem.demands, *more))
        hiding = hide(problem, run, steps=options.steps, seconds=options.seconds)
        bound = min(bound, hiding.cost)
        hiding = replace(hiding, bound=bound, is_optimal=bound >= hiding.cost)
    return problem, hiding


def _rounded(options: ProtectOptions, loaded: Loaded, judged: Judged, run: Run) -> Solved:
    """Round every number, and determine what readers of the rounded numbers learn about primary cells."""
    cells = loaded.cells
    bases = bases_of(options, loaded)
    base = np.array([bases[cell.measured] * 10**cell.decimals for cell in cells], dtype=np.int64)
    rounding = round_cells(
        np.array([cell.value for cell in cells], dtype=np.int64),
        loaded.sums,
        base,
        np.array([cell.is_negative for cell in cells], dtype=bool),
        run,
        seconds=options.seconds,
    )
    # Within one multiple of its value, plus the number of further multiples by which the farthest number moved.
    reach = base * (1 + rounding.beyond) - 1
    is_shown = np.array([cell.is_shown for cell in cells], dtype=bool)
    least = np.where(is_shown, rounding.numbers - reach, -LARGEST)
    most = np.where(is_shown, rounding.numbers + reach, LARGEST)
    problem = build_problem(options, loaded, judged, (least, most))
    witnesses = find_witnesses(problem, run)
    nothing = np.zeros(len(cells), dtype=bool)
    hiding = Hiding(
        hidden=nothing,
        witnesses=witnesses,
        cost=rounding.distance / rounding.scale,
        bound=rounding.bound / rounding.scale,
        is_optimal=rounding.is_optimal,
        rounds=0,
    )
    certificate = certify(problem, problem.must_hide, witnesses, run)
    return Solved(judged=judged, problem=problem, hiding=hiding, certificate=certificate, rounding=rounding)


DEFAULT_BASE = 5


def bases_of(options: ProtectOptions, loaded: Loaded) -> dict[str, int]:
    """The rounding base for the variable of each table."""
    found: dict[str, int] = {}
    for table in loaded.tables:
        base = table.options.base or options.base or DEFAULT_BASE
        if found.setdefault(table.options.quantity, base) != base:
            raise InputError(
                f'table "{table.options.name}" has a different base from an earlier table of the same variable; use the same.',
                option="tables",
            )
    return found


def _repaired(problem: PatternProblem, hiding: Hiding, certificate: Certificate, run: Run) -> Hiding:
    """Hide more cells if a witness exists in fractions but not in whole units."""
    hidden, witnesses = hiding.hidden.copy(), list(hiding.witnesses)
    is_changed = False
    for number in certificate.missing:
        demand = problem.demands[number]
        if witnesses[number] is None:
            continue
        found = _whole_witness(problem, demand, hidden, run)
        if found is not None:
            witnesses[number] = found
            hidden[found.cells] = True
            hidden = problem.closed(hidden)
            is_changed = True
    if not is_changed:
        return hiding
    cost = problem.spent(hidden)
    is_optimal = hiding.is_optimal and cost <= hiding.bound
    return replace(hiding, hidden=hidden, witnesses=tuple(witnesses), cost=cost, is_optimal=is_optimal)


def _whole_witness(problem: PatternProblem, demand: Demand, hidden: Bools, run: Run) -> Witness | None:
    """The cheapest change in whole units that meets a demand, through shown cells if necessary."""
    room_down, room_up = problem.room(demand.attacker)
    own = np.flatnonzero(hidden | problem.may_hide)
    shown = np.flatnonzero(~hidden[own])
    n, most = len(own), MOST_MOVED * demand.need
    up = np.minimum(room_up[own], most).astype(np.float64)
    down = np.minimum(room_down[own], most).astype(np.float64)
    sums = csr_array(problem.sums[:, own]).astype(np.float64)
    m = sums.shape[0]
    pick = csr_array((np.ones(len(shown)), (np.arange(len(shown)), shown)), shape=(len(shown), n))
    room = csr_array(
        (np.maximum(up, down)[shown], (np.arange(len(shown)), np.arange(len(shown)))),
        shape=(len(shown), len(shown)),
    )
    nothing = csr_array((m, len(shown)))
    rows = csr_array(vstack([hstack([sums, -sums, nothing]), hstack([-pick, -pick, room])]))
    place = int(np.searchsorted(own, demand.cell))
    lower = np.zeros(2 * n + len(shown))
    upper = np.concatenate([up, down, np.ones(len(shown))])
    lower[place if demand.sign > 0 else n + place] = demand.need
    upper[n + place if demand.sign > 0 else place] = 0.0
    if (lower > upper).any():
        return None
    program = Program(
        rows,
        np.zeros(m + len(shown)),
        np.concatenate([np.zeros(m), np.full(len(shown), np.inf)]),
        lower,
        upper,
        is_integer=np.ones(len(lower), dtype=bool),
        run=run,
    )
    program.set_cost(np.concatenate([np.full(2 * n, 1e-6), problem.cost[own][shown]]))
    found = program.solve(nodes=NODES)
    if found.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return None
    change = np.zeros(problem.n_cells)
    change[own] = np.rint(found.point[:n] - found.point[n : 2 * n])
    return Witness.of(change)


def _trimmed(problem: PatternProblem, hiding: Hiding, certificate: Certificate) -> Hiding:
    """Show the cells that no witness changes; every witness remains valid."""
    used = problem.must_hide.copy()
    for change in certificate.changes:
        if change is not None:
            used[change[0]] = True
    hidden = problem.closed(hiding.hidden & used)
    return replace(hiding, hidden=hidden, cost=problem.spent(hidden))
