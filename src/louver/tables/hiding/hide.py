"""Which further cells to hide: a greedy start, then an exact search with a bound on how far the pattern is from the best.

1. **Greedy.** Demands in order of size. Where one is not met, the cheapest change through shown cells is sought and its cells are
   hidden; then every further cell that no demand needs is shown again, the most expensive first.
2. **Root.** A linear program over the shares y of hidden cells with the inequalities of all demands that are not met (`Outsider.cut`),
   repeated until none is violated by much. Its value is a bound; the greedy start is repeated with lower prices for the cells that it
   hides.
3. **Local changes.** Further cells are exchanged for others that cost no more (`louver.tables.hiding.local`).
4. **Whole patterns.** An integer program over the same inequalities. Its pattern either meets all demands and is optimal, or yields further
   inequalities.

Every limit counts rounds and nodes, so that the same input gives the same pattern; only `seconds` uses the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, vstack

from louver._arrays import Bools, Floats, Ints
from louver.optim.program import Program
from louver.optim.status import Status
from louver.run import Run
from louver.tables.hiding.certify import ChangeCheck
from louver.tables.hiding.local import LocalSearch, Sums, balancing_rows, lone_cells, relaxed_bound
from louver.tables.hiding.merge import merge_cells
from louver.tables.hiding.outsider import ENOUGH, Cut, Outsider, Witness
from louver.tables.hiding.problem import Demand, PatternProblem
from louver.tables.hiding.rebuild import PatternPart
from louver.tables.hiding.state import SavedPattern, SearchState

__all__ = ["Hiding", "hide", "is_large"]

VIOLATED = 1e-3
"""Minimum violation of an inequality that is added."""

STALLED_ROUNDS, STALLED = 6, 1e-3
"""The root ends once the bound has grown by less than this share in this many rounds."""

FIRST_NODES = 200
"""Nodes of the first integer program; each later one may have twice as many until it finishes by itself."""

WHOLE = 1e-6

LARGE = 3_000
"""Number of cells beyond which patterns are made by local changes."""

PASSES, POLISHED = 3, 3
"""Maximum number of rounds of local changes in large tables, and in others after the root."""

REBUILT, PART, TRIALS, MOST_CUTS = 3, 150, 8, 20
"""Number of passes in which parts of a pattern are rebuilt, cells of a part, patterns tried for each part, and inequalities added after
one."""

MOST_PARTS = 500
"""Maximum number of integer programs over parts in one search."""

CHEAPER = 1e-3
"""Share of the cost that a rebuilt part must save if costs are not whole numbers."""

WIDE = 0.04
"""Gap after the root above which local changes are tried."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hiding:
    """What the search found.

    Attributes
    ----------
    hidden : bool array
        The pattern.
    witnesses : tuple of Witness or None
        A change for every demand; None if the pattern does not meet it.
    cost, bound : float
        Cost of the pattern, and a lower bound on the cost of any pattern that meets all demands that can be met.
    is_optimal : bool
        Whether no pattern is cheaper.
    rounds : int
        Rounds of the search.
    demands : tuple of Demand
        The demands of `witnesses`: those of the problem, and for large tables others that had to be added.
    """

    hidden: Bools
    witnesses: tuple[Witness | None, ...]
    cost: float
    bound: float
    is_optimal: bool
    rounds: int
    demands: tuple[Demand, ...] = ()

    @property
    def gap(self) -> float:
        """Largest share of the cost that a better pattern could save."""
        return 0.0 if self.is_optimal or not self.cost else max(0.0, 1 - self.bound / self.cost)


def hide(
    problem: PatternProblem,
    run: Run,
    *,
    steps: int,
    seconds: float | None = None,
    state: SearchState | None = None,
) -> Hiding:
    """Search for a cheap pattern that meets every demand that any pattern meets.

    Parameters
    ----------
    steps : int
        Rounds of the search; with 0 it ends with the greedy pattern.
    seconds : float, optional
        End after about this long.
    state : SearchState, optional
        File of the best pattern; the search starts from its content.

    Notes
    -----
    Beyond `LARGE` cells the pattern is made by local changes (`louver.tables.hiding.local`), and its bound is that of single sums.
    """
    merged = merge_cells(problem)
    own = problem if merged is None else merged.problem
    search = _hide_large if is_large(problem.n_cells) else _hide_small
    found = search(own, run, steps, seconds, state)
    if merged is None:
        return found
    demands, witnesses = merged.answers(found.demands, found.witnesses)
    return replace(
        found,
        hidden=found.hidden[merged.group_of],
        demands=demands,
        witnesses=witnesses,
        cost=found.cost + merged.spent,
        bound=found.bound + merged.spent,
    )


def _hide_small(
    problem: PatternProblem, run: Run, steps: int, seconds: float | None, state: SearchState | None
) -> Hiding:
    search = _Search(problem, run, steps, seconds, state)
    saved = None if state is None else state.read(problem)
    search.start(None if saved is None else saved.hidden)
    if search.is_open():
        search.root()
    if search.is_open() and search.bound < (1 - WIDE) * search.best_cost:
        search.polish()
        search.rebuild()
    while search.is_open():
        search.improve()
    return search.found()


def is_large(n_cells: int) -> bool:
    """Whether patterns for this many cells are made by local changes."""
    return n_cells > LARGE


def _hide_large(
    problem: PatternProblem,
    run: Run,
    steps: int,
    seconds: float | None,
    state: SearchState | None,
) -> Hiding:
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    saved = None if state is None else state.read(problem)
    search = LocalSearch(problem, run, deadline, state=state)
    if saved is not None:
        _restore(search, saved)
    search.grow()
    rounds = 0
    while rounds < min(steps, PASSES) and not search.is_late():
        search.keep()
        rounds += 1
        n_shown = search.show_again()
        if not n_shown and (rounds == steps or not search.exchange()):
            break
    search.keep()
    met = [search.demands[n] for n in sorted(search.chosen)]
    bound = relaxed_bound(problem, met, run, deadline) if rounds else 0.0
    if (problem.cost == np.rint(problem.cost)).all():
        bound = math.ceil(bound - WHOLE * max(1.0, bound))
    cost = problem.spent(search.hidden)
    demands, witnesses = search.answers()
    return Hiding(
        hidden=search.hidden,
        witnesses=witnesses,
        cost=cost,
        bound=min(bound, cost),
        is_optimal=bound >= cost,
        rounds=rounds,
        demands=demands,
    )


def _restore(search: LocalSearch, saved: SavedPattern) -> None:
    """Start with the changes of an earlier search, as far as they are valid."""
    may_change = search.problem.must_hide | search.problem.may_hide
    check = ChangeCheck(search.problem, may_change & saved.hidden)
    for n, (cells, change) in saved.changes.items():
        if check.holds(cells, change) and check.meets(search.demands[n], cells, change):
            search.restore(n, cells, change)


class _Search:
    def __init__(
        self,
        problem: PatternProblem,
        run: Run,
        steps: int,
        seconds: float | None,
        state: SearchState | None = None,
    ) -> None:
        self.problem, self.run, self.steps, self.state = problem, run, steps, state
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds
        self.outsider = Outsider(problem, run)
        self.rounds = self.parts = 0
        order = sorted(range(len(problem.demands)), key=lambda n: _first(problem.demands[n]))
        self.demands: list[Demand] = [problem.demands[n] for n in order]
        self.order = order
        self.is_free = problem.may_hide & ~problem.must_hide
        self.is_counted = bool((problem.cost[self.is_free] == np.rint(problem.cost[self.is_free])).all())
        self.best: tuple[float, Bools, dict[int, Witness]] | None = None
        self.bound = 0.0
        self.is_proved = False
        self.cuts: list[Cut] = []
        self.stacked = csr_array((0, problem.n_cells))
        self.sums = Sums(problem)
        self.lone = csr_array((0, problem.n_cells))
        self.lone_seen: set[tuple[int, int]] = set()
        self.seen: set[tuple[bytes, bytes]] = set()
        self.twins_of, self.price = problem.twins_of(), problem.price
        self.nodes = FIRST_NODES
        self.active: list[int] = []
        self._regroup([(demand.cell, demand.sign) for demand in self.demands])
        self.lower = problem.must_hide.astype(np.float64)
        self.upper = (problem.must_hide | problem.may_hide).astype(np.float64)
        self.ties = problem.ties()
        none = np.zeros(self.ties.shape[0])
        self.master = Program(self.ties, none, none, self.lower, self.upper, run=run)
        self.master.set_cost(problem.cost)

    @property
    def best_cost(self) -> float:
        return math.inf if self.best is None else self.best[0]

    # Patterns ---------------------------------------------------------------------------------------------------

    def start(self, known: Bools | None = None) -> None:
        """Drop demands that no pattern can meet, and find a first pattern or complete a known one."""
        every = self.problem.must_hide | self.problem.may_hide
        witnesses = self.met(range(len(self.demands)), every)
        kept = [n for n in range(len(self.demands)) if n in witnesses]
        self.demands = [self.demands[n] for n in kept]
        self.order = [self.order[n] for n in kept]
        # Most contributors consider the outsider's witness possible; those who do not are handled when they are found.
        self.active = [n for n, demand in enumerate(self.demands) if demand.attacker == 0]
        # From here on, attackers who considered the same witness possible with everything hidden share one problem.
        self._regroup([(d.cell, d.sign, id(witnesses[n])) for n, d in zip(kept, self.demands, strict=True)])
        rows, lower = balancing_rows(self.problem, self.sums, self.demands)
        self.cuts = _cuts_of(rows)
        self.seen |= {(cut.cells.tobytes(), cut.share.tobytes()) for cut in self.cuts}
        self.master.add_rows(rows, lower)
        hidden = self.problem.must_hide if known is None else (self.problem.must_hide | known) & every
        self.take(*self.grown(self.problem.closed(hidden), self.price))

    def met(self, some: Iterable[int], hidden: Bools, *, stop: bool = False) -> dict[int, Witness]:
        """Witnesses of the demands that a pattern meets; with `stop`, up to the first demand that it does not meet."""
        found: dict[int, Witness] = {}
        pool = _Pool(self.outsider)
        openness = hidden.astype(np.float64)
        for n in some:
            self.run.check()
            demand = self.demands[n]
            witness = self._for_all(n, pool, openness) or pool.serving(demand)
            if witness is None:
                reach = self.outsider.reach(demand, openness)
                witness = reach.witness
                if witness is None and stop:
                    self._add([(n, reach.duals)], openness)
                    break
            if witness is not None:
                pool.keep(demand, witness)
                found[n] = witness
        return found

    def _for_all(self, n: int, pool: _Pool, openness: Floats) -> Witness | None:
        """One witness for all demands of a group, sought once."""
        group = self.group_of[n]
        if len(self.groups[group]) == 1:
            return None
        if group not in pool.for_all:
            pool.for_all[group] = self.outsider.reach_for_all(self.groups[group], openness)
        return pool.for_all[group]

    def _regroup(self, key: Sequence[object]) -> None:
        """Group the demands of one key into one problem."""
        number = {one: group for group, one in enumerate(dict.fromkeys(key))}
        self.group_of = [number[one] for one in key]
        self.groups: list[list[Demand]] = [[] for _ in number]
        for group, demand in zip(self.group_of, self.demands, strict=True):
            self.groups[group].append(demand)

    def grown(self, hidden: Bools, price: Floats) -> tuple[Bools, dict[int, Witness]]:
        """Hide more cells until every demand is met, then show the cells that are not needed."""
        hidden = hidden.copy()
        witnesses: dict[int, Witness] = {}
        openness = hidden.astype(np.float64)
        pool = _Pool(self.outsider)
        for n, demand in enumerate(self.demands):
            self.run.check()
            witness = self._for_all(n, pool, openness) or pool.serving(demand)
            if witness is None:
                reach = self.outsider.reach(demand, openness)
                witness = reach.witness
            if witness is None:
                self._activate([n])
                self._add([(n, reach.duals)], openness)
                witness = self.outsider.cheapest(demand, hidden, price, self.problem.may_hide)
                witness = witness or self._any_way(demand)
                hidden[witness.cells] = True
                hidden = self.problem.closed(hidden)
                openness = hidden.astype(np.float64)
            pool.keep(demand, witness)
            witnesses[n] = witness
        return self.pruned(hidden, witnesses)

    def _activate(self, some: Iterable[int]) -> None:
        self.active = sorted({*self.active, *some})

    def _any_way(self, demand: Demand) -> Witness:
        """A witness with everything hidden, which `start` has found to exist."""
        every = (self.problem.must_hide | self.problem.may_hide).astype(np.float64)
        witness = self.outsider.reach(demand, every).witness
        assert witness is not None
        return witness

    def pruned(self, hidden: Bools, witnesses: dict[int, Witness]) -> tuple[Bools, dict[int, Witness]]:
        """Show again the cells that no demand needs, the most expensive first."""
        hidden, witnesses = hidden.copy(), dict(witnesses)
        used = np.zeros(self.problem.n_cells, dtype=np.int64)
        for witness in witnesses.values():
            used[witness.cells] += 1
        further = np.flatnonzero(hidden & self.is_free)
        for cell in further[np.lexsort((further, used[further], -self.price[further]))]:
            if self.is_late():
                break
            if not hidden[cell]:
                continue
            cells = self.twins_of.get(int(cell), np.array([cell]))
            hidden[cells] = False
            if self._is_cut_off(hidden):
                hidden[cells] = True
                continue
            different = {id(witness): witness for witness in witnesses.values()}
            users = {
                key
                for key, witness in different.items()
                if any(_uses(witness, one) for one in cells.tolist())
            }
            affected = [n for n, witness in witnesses.items() if id(witness) in users]
            affected.sort(key=lambda n: (self.demands[n].attacker > 0, n))
            renewed = self.met(affected, hidden, stop=True)
            if len(renewed) < len(affected):
                hidden[cells] = True
            else:
                witnesses |= renewed
        return hidden, witnesses

    def _is_cut_off(self, hidden: Bools) -> bool:
        """Whether a pattern is known not to meet some demand."""
        if self.stacked.shape[0] < len(self.cuts):
            self.stacked = _rows(self.cuts, self.problem.n_cells)
        return bool((self.stacked @ hidden.astype(np.float64) < 1 - VIOLATED).any())

    def take(self, hidden: Bools, witnesses: dict[int, Witness]) -> None:
        """Keep a pattern if it is the best so far."""
        cost = self.problem.spent(hidden)
        if self.best is None or cost < self.best[0] - WHOLE:
            self.best = cost, hidden, witnesses
            if self.state is not None:
                self.state.write(self.problem, hidden, {})
            self._tell()

    # Bounds -----------------------------------------------------------------------------------------------------

    def root(self) -> None:
        """Solve the relaxation by rounds of inequalities, and try a pattern near it from time to time."""
        history: list[float] = []
        waiting = list(self.active)
        while self.is_open():
            self.rounds += 1
            found = self.master.solve()
            if found.status is not Status.OPTIMAL:
                return
            self._raise_bound(found.bound)
            shares = np.clip(found.point, 0.0, 1.0)
            if self._part_lone(shares):
                continue
            hits = self._separate(waiting, shares)
            if not hits and len(waiting) < len(self.active):
                waiting = list(self.active)
                hits = self._separate(waiting, shares)
            if not hits:
                break
            waiting = hits if len(hits) > len(self.active) // 10 else list(self.active)
            history.append(found.bound)
            if len(history) > STALLED_ROUNDS:
                before = history[-STALLED_ROUNDS - 1]
                if found.bound - before <= STALLED * max(1.0, found.bound):
                    break
            if self.rounds % TRIED == 0:
                self._near(shares)
        found = self.master.solve()
        if found.status is Status.OPTIMAL and self.is_open():
            self._near(np.clip(found.point, 0.0, 1.0))

    def _part_lone(self, shares: Floats) -> bool:
        """Add the inequalities of cells that are hidden to a larger share than all other cells of a sum together; return whether there
        were any."""
        rows, lower = lone_cells(self.problem, self.sums, shares, self.lone_seen)
        self.lone = csr_array(vstack([self.lone, rows]))
        self.master.add_rows(rows, lower)
        return rows.shape[0] > 0

    def _near(self, shares: Floats) -> None:
        """Patterns that follow the relaxation: hide the cells that it hides fully, and prefer those that it hides partly."""
        price = self.price * (1.02 - shares)
        self.take(*self.grown(self.problem.must_hide, price))

    def polish(self) -> None:
        """Improve the best pattern by local changes."""
        assert self.best is not None
        problem = replace(self.problem, demands=tuple(self.demands))
        local = LocalSearch(problem, self.run, self.deadline, self.best[1])
        local.grow()
        for _ in range(POLISHED):
            local.show_again()
            if local.is_late() or not local.exchange():
                break
        _, witnesses = local.answers()
        met = {n: witness for n, witness in enumerate(witnesses) if witness is not None}
        if len(met) == len(self.demands):
            self.take(local.hidden.copy(), met)

    def rebuild(self) -> None:
        """Rebuild parts of the best pattern around every further cell, until a pass finds nothing cheaper."""
        if self.twins_of:  # parts cannot represent cells that must be hidden together
            return
        for _ in range(REBUILT):
            assert self.best is not None
            cost = self.best[0]
            further = np.flatnonzero(self.best[1] & self.is_free)
            for place, cell in enumerate(further.tolist()):
                if self.is_late() or self.parts >= MOST_PARTS:
                    return
                if self.best[1][cell]:
                    self._rebuilt(self._near_cells(cell))
                self.run.report("building parts anew", place, len(further))
            if self.best[0] >= cost:
                return

    def _near_cells(self, cell: int) -> Ints:
        """Cells that may be hidden, nearest by the sums that they share."""
        found, waiting, seen = [cell], [cell], {cell}
        rows: set[int] = set()
        for here in waiting:
            for row in self.sums.of_cell(here).tolist():
                if row in rows:
                    continue
                rows.add(row)
                for other in self.sums.cells_of(row).tolist():
                    if other not in seen:
                        seen.add(other)
                        waiting.append(other)
                        if self.is_free[other]:
                            found.append(other)
            if len(found) >= PART:
                break
        return np.array(sorted(found[:PART]), dtype=np.int64)

    def _rebuilt(self, cells: Ints) -> None:
        """The best pattern of some cells with all others fixed; kept if it is cheaper and meets every demand."""
        assert self.best is not None
        cost, hidden, witnesses = self.best
        part = PatternPart(self.problem, cells, hidden, self.run)
        step = 1.0 if self.is_counted else CHEAPER * cost
        known = 0
        for _ in range(min(TRIALS, MOST_PARTS - self.parts)):
            self.parts += 1
            part.require(_rows(self.cuts[known:], self.problem.n_cells))
            known = len(self.cuts)
            trial = part.solve(step, max(0.1, self.deadline - time.monotonic()))
            if trial is None:
                return
            met = self._still_met(hidden & ~trial, trial, witnesses)
            if met is not None:
                self.take(trial, met)
                return
            if len(self.cuts) == known:
                return

    def _still_met(
        self, shown: Bools, hidden: Bools, witnesses: dict[int, Witness]
    ) -> dict[int, Witness] | None:
        """Witnesses after some cells are shown; None if a demand has none, in which case its inequality is added."""
        uses = {id(one): bool(shown[one.cells].any()) for one in witnesses.values()}
        affected = [n for n, one in witnesses.items() if uses[id(one)]]
        affected.sort(key=lambda n: (self.demands[n].attacker > 0, n))
        pool = _Pool(self.outsider)
        openness = hidden.astype(np.float64)
        found, now_met = dict(witnesses), []
        for n in affected:
            self.run.check()
            witness = self._for_all(n, pool, openness) or pool.serving(self.demands[n])
            if witness is None:
                reach = self.outsider.reach(self.demands[n], openness)
                witness = reach.witness
            if witness is None:
                now_met.append((n, reach.duals))
                if len(now_met) >= MOST_CUTS:
                    break
                continue
            pool.keep(self.demands[n], witness)
            found[n] = witness
        self._add(now_met, openness)
        return None if now_met else found

    def improve(self) -> None:
        """Solve one integer program: a better bound, and a pattern or the missing inequalities."""
        assert self.best is not None
        self.rounds += 1
        problem = self.problem
        rows = csr_array(vstack([_rows(self.cuts, problem.n_cells), self.lone, self.ties]))
        no_lone, no_ties = np.zeros(self.lone.shape[0]), np.zeros(self.ties.shape[0])
        no_limit = np.full(len(self.cuts) + len(no_lone), np.inf)
        whole = Program(
            rows,
            np.concatenate([np.ones(len(self.cuts)), no_lone, no_ties]),
            np.concatenate([no_limit, no_ties]),
            self.lower,
            self.upper,
            is_integer=np.ones(problem.n_cells, dtype=bool),
            run=self.run,
        )
        whole.set_cost(problem.cost)
        left = max(0.1, self.deadline - time.monotonic())
        answer = whole.solve(nodes=self.nodes, start=self.best[1].astype(np.float64), seconds=left)
        self._raise_bound(answer.bound)
        if answer.status not in (Status.OPTIMAL, Status.FEASIBLE):
            self.is_proved = answer.status is Status.INFEASIBLE
            self.steps = self.rounds
            return
        hidden = answer.point > 0.5
        if self._separate(self.active, hidden.astype(np.float64)):
            self.take(*self.grown(hidden, self.price))
            return
        witnesses = self.met(range(len(self.demands)), hidden)
        missing = [n for n in range(len(self.demands)) if n not in witnesses]
        if missing:
            self._activate(missing)
            if not self._separate(missing, hidden.astype(np.float64)):
                self.steps = self.rounds  # the solver cannot distinguish them, so nothing more can be learnt
            self.take(*self.grown(hidden, self.price))
            return
        self.take(hidden, witnesses)
        if answer.status is not Status.OPTIMAL:
            self.nodes *= 2

    def _separate(self, some: Iterable[int], shares: Floats) -> list[int]:
        """Add an inequality for every demand that the shares do not meet, if it has one; return those demands."""
        duals_of = []
        for n in some:
            self.run.check()
            duals_of.append((n, self.outsider.reach(self.demands[n], shares).duals))
        return self._add(duals_of, shares)

    def _add(self, duals_of: Iterable[tuple[int, Floats | None]], shares: Floats) -> list[int]:
        """Add the inequalities of demands that shares violate; return those demands."""
        added, hits = [], []
        for n, duals in duals_of:
            if duals is None:
                continue
            cut = self.outsider.cut(self.demands[n], duals)
            key = cut.cells.tobytes(), cut.share.tobytes()
            if float(cut.share @ shares[cut.cells]) < 1 - VIOLATED and key not in self.seen:
                self.seen.add(key)
                added.append(cut)
                hits.append(n)
        self.cuts += added
        self.master.add_rows(_rows(added, self.problem.n_cells), np.ones(len(added)))
        return hits

    def _raise_bound(self, bound: float) -> None:
        if not math.isfinite(bound):
            return
        if self.is_counted:
            bound = math.ceil(bound - WHOLE * max(1.0, abs(bound)))
        self.bound = max(self.bound, bound)
        self._tell()

    # Ends -------------------------------------------------------------------------------------------------------

    def is_late(self) -> bool:
        return self.run.is_hurried or time.monotonic() > self.deadline

    def is_open(self) -> bool:
        """Whether a better pattern may be found within the limits."""
        self.run.check()
        if self.best is not None and self.bound >= self.best[0] - WHOLE * max(1.0, self.best[0]):
            self.is_proved = True
        return not self.is_proved and self.rounds < self.steps and not self.is_late()

    def _tell(self) -> None:
        if self.best is not None:
            cost = self.best[0] or 1.0
            least = min(self.bound, cost)
            whole = float(self.problem.cost[self.is_free].sum()) or 1.0
            self.run.report(
                "hiding cells", least, cost, self.best[0] / whole, min(self.bound, self.best[0]) / whole
            )

    def found(self) -> Hiding:
        assert self.best is not None
        cost, hidden, witnesses = self.best
        every: list[Witness | None] = [None] * len(self.problem.demands)
        for n, witness in witnesses.items():
            every[self.order[n]] = witness
        return Hiding(
            hidden=hidden,
            witnesses=tuple(every),
            cost=cost,
            bound=min(self.bound, cost),
            is_optimal=self.is_proved,
            rounds=self.rounds,
            demands=self.problem.demands,
        )


TRIED = 10
"""Number of rounds of the root after which a pattern near the relaxation is tried."""


class _Pool:
    """Witnesses of earlier demands under one pattern, which may grow; some of them also meet later demands."""

    def __init__(self, outsider: Outsider) -> None:
        self._outsider = outsider
        self._own: dict[tuple[int, int], list[tuple[Witness, Bools]]] = {}
        self._recent: list[tuple[Witness, Bools]] = []
        self.for_all: dict[int, Witness | None] = {}

    def keep(self, demand: Demand, witness: Witness) -> None:
        own = self._own.setdefault((demand.cell, demand.sign), [])
        if not any(witness is one for one, _ in own):
            entry = witness, self._outsider.accepted(demand, witness)
            own.append(entry)
            self._recent = [*self._recent[1 - RECENT :], entry]

    def serving(self, demand: Demand) -> Witness | None:
        """A witness of the same cell, or a recent one, that also meets a demand."""
        own = self._own.get((demand.cell, demand.sign), ())
        candidates = own if own else self._recent[::-1]
        for witness, is_accepted in candidates:
            if is_accepted[demand.attacker] and _moves(witness, demand):
                return witness
        return None


RECENT = 8
"""Number of witnesses of other cells that are tried before a program is solved."""


def _first(demand: Demand) -> tuple[int, int, int, int]:
    """Sort key: large needs first; attackers of the same cell one after another, the outsider first."""
    return -demand.need, demand.cell, demand.sign, demand.attacker


def _uses(witness: Witness, cell: int) -> bool:
    at = int(witness.cells.searchsorted(cell))
    return at < len(witness.cells) and int(witness.cells[at]) == cell


def _moves(witness: Witness, demand: Demand) -> bool:
    """Whether the cell of a demand moves far enough, within floating-point accuracy."""
    at = int(witness.cells.searchsorted(demand.cell))
    is_there = at < len(witness.cells) and int(witness.cells[at]) == demand.cell
    return is_there and bool(demand.sign * witness.change[at] >= demand.need * ENOUGH)


def _cuts_of(rows: csr_array) -> list[Cut]:
    ends = rows.indptr
    return [
        Cut(rows.indices[a:b].astype(np.int64), rows.data[a:b])
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]


def _rows(cuts: Sequence[Cut], n_cells: int) -> csr_array:
    ends = np.cumsum([0, *(len(cut.cells) for cut in cuts)])
    cells = np.concatenate([cut.cells for cut in cuts]) if cuts else np.zeros(0, dtype=np.int64)
    shares = np.concatenate([cut.share for cut in cuts]) if cuts else np.zeros(0)
    return csr_array((shares, cells, ends), shape=(len(cuts), n_cells))
