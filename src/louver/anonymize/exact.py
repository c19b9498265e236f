"""The optimum, or the best found with a proof of how far from it at most.

Classes are priced against a value per record (column generation), which proves a lower bound; then an exact cover of
the records is searched for among the classes whose reduced costs fit a budget, which grows until there is one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from louver.anonymize import greedy
from louver.anonymize import sorted as sorted_method
from louver.anonymize.columns import Floats, Ints
from louver.anonymize.problem import SUPPRESSED, Partition, Problem
from louver.optim.kernels.clusters import NO_COST, STOPPED, cover, fit_prices_inplace, list_classes
from louver.optim.status import Status

__all__ = ["solve"]

NODES_PER_SECOND = 700_000
"""Search nodes per second, on the safe side: limits in time become limits in work."""

UNLIMITED_NODES = 2**62
CAPACITY = 1 << 14
MAX_CAPACITY = 1 << 23
"""Classes listed at a time; beyond the latter they would not fit in memory."""

PRICING_ROUNDS = 40
FIT_ROUNDS = 200
FIRST_BUDGET = 0.04
"""First budget as a share of the lower bound; it grows by BUDGET_GROWTH until a cover is found."""

BUDGET_GROWTH = 1.6
ENOUGH = 0.002
"""Pricing ends once a round raises the bound by less than this share of the gap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prices:
    """Prices under which no class has a negative reduced cost, and the bound they prove."""

    values: Ints
    fee: int
    bound: int


class _SpentError(Exception):
    """The limit on work was reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What may still be spent."""

    deadline: float | None

    @property
    def nodes(self) -> int:
        if self.deadline is None:
            return UNLIMITED_NODES
        return max(0, int((self.deadline - time.perf_counter()) * NODES_PER_SECOND))


def solve(problem: Problem, *, seconds: float | None = None, start: Partition | None = None) -> Partition:
    """Optimal classes.

    Parameters
    ----------
    problem : Problem
    seconds : float, optional
        Limit; when it is reached the best partition found is returned with the lower bound proved so far.
    start : Partition, optional
        A known partition; by default the better of Greedy Search and the best cut of the sorted order.

    Notes
    -----
    Implements: Liang & Samavi (2020), the model (21)-(28) of section 2.2 with the weights of 2.4.
    Departs: not by the big-M model. A class of 2k records or more can be cut in two without loss, so k to 2k - 1
    records suffice (with requirements beside k: any number). Prices come from subgradient steps and exact pricing by
    depth-first search, with the first record of a class as its head; they are rounded to whole units and made
    feasible, so the bound is exact. A partition that loses at most b above the bound consists of classes whose
    reduced costs add up to at most b: these are listed, and covered exactly by depth-first search with memory.

    **Cost**: exponential in the worst case; tens of milliseconds up to n = 30 and k = 5.
    """
    work = _Work(deadline=None if seconds is None else time.perf_counter() + seconds)
    best = start if start is not None else _first_partition(problem)
    prices = _fit(problem, best, work)
    if prices is None:
        return replace(best, method="exact", lower_bound=None, status=Status.FEASIBLE)
    best, bound = _search(problem, best, prices, work)
    status = Status.OPTIMAL if bound == best.loss else Status.FEASIBLE
    return replace(best, method="exact", lower_bound=bound, status=status)


def _search(problem: Problem, best: Partition, prices: _Prices, work: _Work) -> tuple[Partition, int]:
    """Cover within growing budgets; the best partition and the bound proved when it is found or work is spent."""
    bound = min(best.loss, prices.bound)
    budget = max(1, int(FIRST_BUDGET * bound))
    while bound < best.loss:
        budget = min(budget, best.loss - prices.bound - 1)
        try:
            labels = _cover_within(problem, prices, budget, work)
        except _SpentError:
            break
        if labels is not None:
            best = problem.partition(labels, method="exact")
            bound = best.loss
        else:
            bound = prices.bound + budget + 1
            budget = int(budget * BUDGET_GROWTH) + 1
    return best, bound


def _first_partition(problem: Problem) -> Partition:
    return min(greedy.solve(problem), sorted_method.solve(problem), key=lambda partition: partition.loss)


def _most_size(problem: Problem) -> int:
    """Most records that a class of an optimal partition needs."""
    if problem.sensitive or problem.requirements.matches:
        return problem.n_records
    return min(problem.n_records, 2 * problem.least_size - 1)


def _fit(problem: Problem, best: Partition, work: _Work) -> _Prices | None:
    """Column generation: prices fitted to the classes listed so far, then the classes that they make cheap."""
    n = problem.n_records
    fitted = _spread_prices(problem, best)
    fee = np.zeros(1)
    pool, costs = _as_classes(problem, best)
    answer: _Prices | None = None
    for _ in range(PRICING_ROUNDS):
        fit_prices_inplace(
            pool,
            costs,
            fitted,
            fee,
            float(problem.full_loss),
            problem.max_suppressed,
            float(best.loss),
            FIT_ROUNDS,
        )
        values = np.floor(fitted).astype(np.int64)
        whole_fee = int(np.ceil(fee[0]))
        limits = np.full(n, -1, np.int64)
        try:
            listed = _listed(problem, values, limits, work, is_minimising=True)
        except _SpentError:
            break
        # A head whose best class costs less than nothing pays for it: then no class does.
        found = limits < -1
        values[found] += limits[found] + 1
        if problem.max_suppressed:
            values = np.minimum(values, problem.full_loss + whole_fee)
        bound = int(values.sum()) - whole_fee * problem.max_suppressed
        previous = answer.bound if answer is not None else None
        if previous is None or bound > previous:
            answer = _Prices(values=values, fee=whole_fee, bound=bound)
        if not len(listed[1]) or bound >= best.loss:
            break
        if previous is not None and bound - previous < ENOUGH * (best.loss - previous) and bound > previous:
            break
        pool, costs = np.concatenate([pool, listed[0]]), np.concatenate([costs, listed[1]])
    if answer is not None and answer.bound < 0:
        return _Prices(values=np.zeros(n, np.int64), fee=0, bound=0)
    return answer


def _spread_prices(problem: Problem, partition: Partition) -> Floats:
    """Each record priced at its loss in a known partition."""
    prices = np.full(problem.n_records, float(problem.full_loss))
    for members in partition.classes():
        prices[members] = problem.class_loss(members) / len(members)
    return prices


def _as_classes(problem: Problem, partition: Partition) -> tuple[NDArray[np.int32], Ints]:
    """The classes of a partition in the form that the kernels list them."""
    most = _most_size(problem)
    members = [m for m in partition.classes() if len(m) <= most]
    pool = np.zeros((len(members), most + 1), np.int32)
    for line, m in zip(pool, members, strict=True):
        line[0] = len(m)
        line[1 : len(m) + 1] = m
    return pool, np.array([problem.class_loss(m) for m in members], np.int64)


def _listed(
    problem: Problem, prices: Ints, limits: Ints, work: _Work, *, is_minimising: bool
) -> tuple[NDArray[np.int32], Ints]:
    """Classes within the limits of their heads, and their losses."""
    capacity = CAPACITY
    most = _most_size(problem)
    while capacity <= MAX_CAPACITY and work.nodes > 0:
        trial = limits.copy()
        out, out_cost = np.empty((capacity, most + 1), np.int32), np.empty(capacity, np.int64)
        nodes = work.nodes
        n_found, n_nodes = list_classes(
            problem.geometry,
            problem.requirements,
            problem.codes,
            prices,
            trial,
            is_minimising,
            problem.least_size,
            most,
            nodes,
            out,
            out_cost,
        )
        if n_found != STOPPED:
            limits[:] = trial
            return out[:n_found], out_cost[:n_found]
        if n_nodes > nodes:
            break
        capacity *= 4
    raise _SpentError


def _cover_within(problem: Problem, prices: _Prices, budget: int, work: _Work) -> Ints | None:
    """Labels of the best partition that loses at most `budget` above the bound; None if there is none."""
    n = problem.n_records
    limits = np.full(n, budget, np.int64)
    classes, costs = _listed(problem, prices.values, limits, work, is_minimising=False)
    reduced = costs - _values_of(classes, prices.values)
    order = np.lexsort([reduced, classes[:, 1]])
    classes, reduced = classes[order], reduced[order]
    leave_out = problem.full_loss + prices.fee - prices.values
    chosen = np.empty(n, np.int64)
    cost, _ = cover(
        _masks(classes, n),
        reduced,
        np.searchsorted(classes[:, 1], np.arange(n + 1)).astype(np.int64),
        leave_out,
        prices.fee,
        problem.max_suppressed,
        budget,
        work.nodes,
        1 << 16,
        chosen,
    )
    if cost == STOPPED:
        raise _SpentError
    if cost == NO_COST:
        return None
    labels = np.full(n, SUPPRESSED, np.int64)
    for label, c in enumerate(chosen[chosen >= 0]):
        labels[classes[c, 1 : classes[c, 0] + 1]] = label
    return labels


def _values_of(classes: NDArray[np.int32], values: Ints) -> Ints:
    """Sum of the prices of each class."""
    is_member = np.arange(classes.shape[1] - 1) < classes[:, :1]
    summed: Ints = np.where(is_member, values[np.where(is_member, classes[:, 1:], 0)], 0).sum(axis=1)
    return summed


def _masks(classes: NDArray[np.int32], n: int) -> NDArray[np.uint64]:
    """Records of each class as bits."""
    masks = np.zeros((len(classes), -(-n // 64)), np.uint64)
    for t in range(1, classes.shape[1]):
        lines = np.flatnonzero(classes[:, 0] >= t)
        members = classes[lines, t]
        masks[lines, members // 64] |= np.uint64(1) << (members % 64).astype(np.uint64)
    return masks
