"""The optimum, or the best partition found with a proven bound on its distance from the optimum.

Classes are priced against a value per record (column generation), which proves a lower bound; then an exact cover of
the records is searched for among the classes whose reduced costs fit a budget, which grows until there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Floats, Ints
from louver.anonymize.methods import greedy, sorted_cut
from louver.anonymize.methods.method import Method
from louver.anonymize.problem import SUPPRESSED, AnonymizeProblem, Partition
from louver.anonymize.watch import Stopped, Watch
from louver.errors import InfeasibleError
from louver.optim.kernels.classes.diversity import Requirements
from louver.optim.kernels.classes.set_partitioning import (
    NO_COST,
    STOPPED,
    cover,
    fit_prices_inplace,
    list_classes,
)
from louver.optim.status import Status

if TYPE_CHECKING:
    from louver.anonymize.options import AnonymizeOptions

__all__ = ["METHOD", "solve"]

UNLIMITED_NODES = 2**62
CAPACITY = 1 << 12
"""Initial capacity of the list of classes; quadrupled whenever it is not enough."""

MAX_CAPACITY = 1 << 27
"""Maximum number of records in listed classes; more would not fit in memory."""

MAX_WORKSPACE = 1 << 25
"""Limit on points x records per class; beyond it there is no search, because the workspace would not fit in memory."""

NOTHING_FOUND = "none"
"""Method name of the placeholder partition used when none was found."""

POOL_NODES = 20_000
"""Nodes of the search, among the classes that pricing has listed, for a good partition from which to start."""

MEMORY_SLOTS = 1 << 14
"""Sets of records that the exact cover remembers."""

PRICING_ROUNDS = 40
FIT_ROUNDS = 200
FIRST_BUDGET = 0.04
"""First budget as a share of the lower bound; it grows by BUDGET_GROWTH until a cover is found."""

BUDGET_GROWTH = 1.6
ENOUGH = 0.002
"""Pricing ends once a round raises the bound by less than this share of the gap."""


_Listed = tuple[NDArray[np.int32], Ints]
"""Classes as lists of points, and their losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prices:
    """Prices under which no class has a negative reduced cost, and the bound they prove."""

    values: Ints
    fee: int
    bound: int


class _SpentError(Exception):
    """The limit on work was reached."""


@dataclass(slots=True, kw_only=True)
class _ExactWork:
    """The remaining budget: time, and nodes of the searches."""

    watch: Watch
    max_nodes: int

    @property
    def nodes(self) -> int:
        """Nodes that may still be visited."""
        return 0 if self.watch.is_over else max(0, self.max_nodes)

    def spend(self, nodes: int) -> None:
        self.max_nodes -= nodes


def solve(
    problem: AnonymizeProblem,
    watch: Watch | None = None,
    *,
    max_nodes: int | None = None,
    start: Partition | None = None,
) -> Partition:
    """Optimal classes.

    Parameters
    ----------
    problem : AnonymizeProblem
    watch : Watch, optional
        Once its time is up, the best partition found is returned with the lower bound proved so far.
    max_nodes : int, optional
        A limit in search nodes, which does not depend on the machine.
    start : Partition, optional
        A known partition; by default the better of Greedy Search and the best cut of the sorted order.

    Notes
    -----
    Implements: Liang & Samavi (2020), the model (21)-(28) of section 2.2 with the weights of 2.4.
    Departs: not by the big-M model. A class of 2k records or more can be cut in two without loss, so k to 2k - 1
    records suffice (with requirements in addition to k: any number). Prices come from subgradient steps and exact pricing by
    depth-first search, with the first record of a class as its head; they are rounded to whole units and made
    feasible, so the bound is exact. A partition that loses at most b above the bound consists of classes whose
    reduced costs add up to at most b: these are listed, and covered exactly by depth-first search with memory.
    Equal records are one point with a multiplicity.

    **Cost**: exponential in the worst case; tens of milliseconds up to n = 30 and k = 5.
    """
    watch = watch or Watch()
    work = _ExactWork(watch=watch, max_nodes=UNLIMITED_NODES if max_nodes is None else max_nodes)
    with watch.stage("first answer"):
        best = start if start is not None else _first_partition(problem, watch)
    with watch.stage("search"):
        return _searched(problem, best, work)


def _searched(problem: AnonymizeProblem, best: Partition, work: _ExactWork) -> Partition:
    """Find prices, then covers, until the work limit is reached."""
    compact = _Compact.of(problem)
    prices, pool = None, None
    if compact.most_size * len(compact.codes) <= MAX_WORKSPACE:
        prices, pool = _fit(compact, best, compact.classes_of(best), work)
    if prices is None and best.method != NOTHING_FOUND:
        return replace(best, method="exact", lower_bound=None, status=Status.FEASIBLE)
    bound = 0
    if prices is not None and pool is not None:
        best = _improved(compact, best, prices, pool, work)
        best, bound = _search(compact, best, prices, work)
    if best.method == NOTHING_FOUND:
        raise InfeasibleError(
            "no classes of these records were found that meet the requirements; relax them."
        )
    status = Status.OPTIMAL if bound == best.loss else Status.FEASIBLE
    return replace(best, method="exact", lower_bound=bound, status=status)


def _improved(
    compact: _Compact, best: Partition, prices: _Prices, pool: _Listed, work: _ExactWork
) -> Partition:
    """The best partition into classes that pricing has listed, if it beats the one known."""
    budget = best.loss - prices.bound - 1
    if budget < 0:
        return best
    nodes = min(work.nodes, POOL_NODES)
    labels, _ = _covered(compact, prices, pool, budget, nodes, work)
    return best if labels is None else compact.problem.partition(labels, method="exact")


def _search(compact: _Compact, best: Partition, prices: _Prices, work: _ExactWork) -> tuple[Partition, int]:
    """Cover within growing budgets; the best partition and the bound proved by the time it is found or the work limit is reached."""
    bound = min(best.loss, prices.bound)
    budget = max(1, int(FIRST_BUDGET * bound))
    while bound < best.loss:
        if best.method != NOTHING_FOUND:
            work.watch.found(compact.problem, best.loss, bound)
        budget = min(budget, best.loss - prices.bound - 1)
        limits = np.full(len(compact.codes), budget, np.int64)
        try:
            listed = _listed(compact, prices.values, limits, work, is_minimising=False)
        except _SpentError:
            break
        labels, is_complete = _covered(compact, prices, listed, budget, work.nodes, work)
        if labels is not None:
            best = compact.problem.partition(labels, method="exact")
        if not is_complete:
            break
        bound = best.loss if labels is not None else prices.bound + budget + 1
        budget = int(budget * BUDGET_GROWTH) + 1
    return best, bound


def _first_partition(problem: AnonymizeProblem, watch: Watch) -> Partition:
    """A good partition; if leaving out whole classes yields none, a placeholder that loses more than any other."""
    try:
        starts = (greedy.solve(problem, watch), sorted_cut.solve(problem, watch))
        return min(starts, key=lambda partition: partition.loss)
    except InfeasibleError:
        if not problem.max_suppressed:
            raise
    n = problem.n_records
    return Partition(labels=np.full(n, SUPPRESSED), loss=n * problem.full_loss + 1, method=NOTHING_FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compact:
    """The problem with equal records as one point each.

    Attributes
    ----------
    codes : int32 (p, m)
    requirements : Requirements
        Sensitive codes per point.
    start : int64 (p + 1,)
        Records start[i] to start[i + 1] - 1 are those of point i.
    most_size : int
        Maximum number of records that a class of an optimal partition needs.
    """

    problem: AnonymizeProblem
    codes: NDArray[np.int32]
    requirements: Requirements
    start: Ints
    most_size: int

    @classmethod
    def of(cls, problem: AnonymizeProblem) -> _Compact:
        n, sensitive = problem.n_records, problem.requirements.sensitive
        is_new = np.ones(n, np.bool_)
        is_new[1:] = (problem.codes[1:] != problem.codes[:-1]).any(axis=1)
        is_new[1:] |= (sensitive[1:] != sensitive[:-1]).any(axis=1)
        first = np.flatnonzero(is_new)
        is_cut_free = not problem.sensitive and not problem.requirements.matches
        return cls(
            problem=problem,
            codes=problem.codes[first],
            requirements=problem.requirements._replace(sensitive=sensitive[first]),
            start=np.append(first, n).astype(np.int64),
            most_size=min(n, 2 * problem.least_size - 1) if is_cut_free else n,
        )

    @property
    def multiplicity(self) -> Ints:
        return np.diff(self.start)

    def classes_of(self, partition: Partition) -> _Listed:
        """The classes of a partition, as lists of points, and their losses."""
        point_of = np.repeat(np.arange(len(self.codes)), self.multiplicity)
        members = [m for m in partition.classes() if len(m) <= self.most_size]
        pool = np.zeros((len(members), self.most_size + 1), np.int32)
        for line, m in zip(pool, members, strict=True):
            line[0] = len(m)
            line[1 : len(m) + 1] = point_of[m]
        return pool, np.array([self.problem.class_loss(m) for m in members], np.int64)

    def prices_of(self, partition: Partition) -> Floats:
        """Each point priced at the mean loss of its records in a known partition."""
        losses = np.full(self.problem.n_records, float(self.problem.full_loss))
        for members in partition.classes():
            losses[members] = self.problem.class_loss(members) / len(members)
        return np.asarray(np.add.reduceat(losses, self.start[:-1]) / self.multiplicity)

    def labels_of(self, classes: NDArray[np.int32]) -> Ints:
        """Labels of the records: each class takes the next unused records of its points."""
        labels = np.full(self.problem.n_records, SUPPRESSED, np.int64)
        following = self.start[:-1].copy()
        for label, line in enumerate(classes):
            for point in line[1 : line[0] + 1]:
                labels[following[point]] = label
                following[point] += 1
        return labels


def _fit(
    compact: _Compact, best: Partition, listed: _Listed, work: _ExactWork
) -> tuple[_Prices | None, _Listed]:
    """Column generation: prices fitted to the classes listed so far, then the classes that they make cheap.

    Returns the prices, None if not even one pricing was completed, and all classes listed.
    """
    problem = compact.problem
    n_points, multiplicity, most_out = len(compact.codes), compact.multiplicity, problem.max_suppressed
    fitted, fee = compact.prices_of(best), np.zeros(1)
    pool, costs = listed
    full = problem.full_loss
    answer: _Prices | None = None
    for _ in range(PRICING_ROUNDS):
        fit_prices_inplace(
            pool,
            costs,
            multiplicity,
            fitted,
            fee,
            float(full),
            most_out,
            float(best.loss),
            FIT_ROUNDS,
            work.watch.stop,
        )
        values, whole_fee = np.floor(fitted).astype(np.int64), int(np.ceil(fee[0]))
        limits = np.full(n_points, -1, np.int64)
        try:
            found, found_costs = _listed(compact, values, limits, work, is_minimising=True)
        except _SpentError:
            break
        # A head whose best class has a negative reduced cost absorbs it, so that no class has one.
        values += np.minimum(0, limits + 1)
        if most_out:
            values = np.minimum(values, full + whole_fee)
        bound = int(values @ multiplicity) - whole_fee * most_out
        gain = bound - answer.bound if answer is not None else None
        if gain is None or gain > 0:
            answer = _Prices(values=values, fee=whole_fee, bound=bound)
        if not len(found) or bound >= best.loss or (gain and 0 < gain < ENOUGH * (best.loss - bound)):
            break
        pool, costs = np.concatenate([pool, found]), np.concatenate([costs, found_costs])
    if answer is not None and answer.bound < 0:
        answer = _Prices(values=np.zeros(n_points, np.int64), fee=0, bound=0)
    return answer, (pool, costs)


def _listed(
    compact: _Compact, prices: Ints, limits: Ints, work: _ExactWork, *, is_minimising: bool
) -> _Listed:
    """Classes within the limits of their heads, and their losses."""
    capacity = CAPACITY
    most = compact.most_size
    while capacity * most <= MAX_CAPACITY and work.nodes > 0:
        trial = limits.copy()
        out, out_cost = np.empty((capacity, most + 1), np.int32), np.empty(capacity, np.int64)
        nodes = work.nodes
        n_found, n_nodes = list_classes(
            compact.problem.geometry,
            compact.requirements,
            compact.codes,
            compact.multiplicity,
            prices,
            trial,
            is_minimising,
            compact.problem.least_size,
            most,
            nodes,
            out,
            out_cost,
            work.watch.stop,
        )
        work.watch.run.check()
        work.spend(n_nodes)
        if n_found != STOPPED:
            limits[:] = trial
            return out[:n_found], out_cost[:n_found]
        if n_nodes > nodes:
            break
        capacity *= 4
    raise _SpentError


def _covered(
    compact: _Compact, prices: _Prices, listed: _Listed, budget: int, max_nodes: int, work: _ExactWork
) -> tuple[Ints | None, bool]:
    """Labels of the best partition into listed classes that loses at most `budget` above the bound, or None if none
    was found; and whether the search was completed.
    """
    classes, costs = listed
    n_points = len(compact.codes)
    is_member = np.arange(1, classes.shape[1]) <= classes[:, :1]
    values = np.where(is_member, prices.values[np.where(is_member, classes[:, 1:], 0)], 0)
    reduced = costs - values.sum(axis=1)
    order = np.lexsort([reduced, classes[:, 1]])
    order = order[reduced[order] <= budget]
    classes, reduced = classes[order], reduced[order]
    chosen = np.empty(compact.problem.n_records, np.int64)
    cost, n_nodes = cover(
        classes,
        reduced,
        np.searchsorted(classes[:, 1], np.arange(n_points + 1)).astype(np.int64),
        compact.multiplicity,
        compact.problem.full_loss + prices.fee - prices.values,
        prices.fee,
        compact.problem.max_suppressed,
        budget,
        max_nodes,
        MEMORY_SLOTS,
        chosen,
        work.watch.stop,
    )
    work.watch.run.check()
    work.spend(n_nodes)
    labels = None if cost == NO_COST else compact.labels_of(classes[chosen[chosen >= 0]])
    return labels, n_nodes <= max_nodes


NODES_PER_STEP = 1000


def _requested(problem: AnonymizeProblem, watch: Watch, options: AnonymizeOptions) -> Partition:
    nodes = None if options.steps is None else NODES_PER_STEP * options.steps
    found = solve(problem, watch, max_nodes=nodes)
    watch.note(None if found.status is Status.OPTIMAL else Stopped.IMPROVING)
    return found


METHOD = Method(name="exact", solve=_requested)
