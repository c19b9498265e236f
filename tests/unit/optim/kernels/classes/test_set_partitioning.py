"""Listing, pricing and covering of classes against enumeration and linear programs."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy.optimize import linprog

from louver.optim.kernels.classes.set_partitioning import (
    NO_COST,
    STOPPED,
    cover,
    fit_prices_inplace,
    list_classes,
)
from mixed_records import GOING, mixed_problem

POINTS, LEAST, MOST = 6, 2, 3


@pytest.fixture(params=range(3))
def table(request):
    """Points with multiplicities, their problem, and all classes with their losses."""
    random = np.random.default_rng(request.param)
    problem = mixed_problem(POINTS, 10 + request.param)
    multiplicity = random.integers(1, 3, POINTS)
    classes = [
        points
        for size in range(LEAST, MOST + 1)
        for points in combinations_with_replacement(range(POINTS), size)
        if all(points.count(p) <= multiplicity[p] for p in points)
    ]
    losses = [problem.class_loss(sorted(set(p))) // len(set(p)) * len(p) for p in classes]
    return problem, multiplicity, classes, np.array(losses)


def listed(problem, multiplicity, prices, limits, *, is_minimising=False, room=500, max_nodes=10**6):
    out, cost = np.zeros((room, MOST + 1), np.int32), np.zeros(room, np.int64)
    n_found, _ = list_classes(
        problem.geometry, problem.requirements, problem.codes, multiplicity, prices, limits, is_minimising,
        LEAST, MOST, max_nodes, out, cost, GOING,
    )  # fmt: skip
    if n_found == STOPPED:
        return None
    return {
        tuple(sorted(line[1 : line[0] + 1].tolist())): int(c)
        for line, c in zip(out[:n_found], cost[:n_found], strict=True)
    }


def table_of(classes, losses, prices):
    """Classes as the kernel takes them: by head, then by reduced cost."""
    reduced = np.array([loss - prices[list(c)].sum() for c, loss in zip(classes, losses, strict=True)])
    order = np.lexsort([reduced, [c[0] for c in classes]])
    lines = np.zeros((len(classes), MOST + 1), np.int32)
    for line, i in zip(lines, order, strict=True):
        line[0] = len(classes[i])
        line[1 : 1 + len(classes[i])] = classes[i]
    return lines, reduced[order]


@pytest.mark.parametrize("share", [0.0, 0.6, 1.2])
def test_all_classes_within_their_limits_are_listed(table, share):
    problem, multiplicity, classes, losses = table
    prices = np.full(POINTS, int(share * losses.mean() / MOST))
    reduced = {c: int(loss - prices[list(c)].sum()) for c, loss in zip(classes, losses, strict=True)}
    limit = int(np.median(list(reduced.values())))
    found = listed(problem, multiplicity, prices, np.full(POINTS, limit))
    assert set(found) == {c for c in classes if reduced[c] <= limit}
    assert all(found[c] == losses[classes.index(c)] for c in found)
    limits = np.full(POINTS, limit)
    better = listed(problem, multiplicity, prices, limits, is_minimising=True)
    for head in range(POINTS):
        own = [reduced[c] for c in classes if c[0] == head and reduced[c] <= limit]
        assert limits[head] == (min(own) - 1 if own else limit)
    assert set(better) <= set(found)


def test_too_little_room_or_work_is_said(table):
    problem, multiplicity, _, losses = table
    limits = np.full(POINTS, losses.max())
    assert listed(problem, multiplicity, np.zeros(POINTS, np.int64), limits, room=3) is None
    assert listed(problem, multiplicity, np.zeros(POINTS, np.int64), limits, max_nodes=3) is None


def best_cover(classes, costs, multiplicity, leave_out, most_out):
    """Least cost of taking every record once, by trying every choice."""
    best = {tuple(multiplicity): {0: 0}}  # records left -> records left out -> least cost
    answer = None
    options = [(c, cost) for c, cost in zip(classes, costs, strict=True)]
    for _ in range(int(multiplicity.sum())):
        following: dict = {}
        for left, costs_by_out in best.items():
            if not any(left):
                continue
            head = next(p for p in range(POINTS) if left[p])
            ways = [(c, cost, 0) for c, cost in options if head in c] + [((head,), int(leave_out[head]), 1)]
            for (points, cost, is_out), (n_out, so_far) in product(ways, costs_by_out.items()):
                rest = list(left)
                for p in points:
                    rest[p] -= 1
                if min(rest) < 0 or n_out + is_out > most_out:
                    continue
                slot = following.setdefault(tuple(rest), {})
                slot[n_out + is_out] = min(slot.get(n_out + is_out, NO_COST), so_far + cost)
        for found in [following.get((0,) * POINTS, {})]:
            answer = min([*found.values(), *([answer] if answer is not None else [])], default=None)
        best = following
    return answer


@pytest.mark.parametrize("most_out", [0, 2])
def test_the_cover_is_the_best_of_all(table, most_out):
    problem, multiplicity, classes, losses = table
    prices = np.zeros(POINTS, np.int64)
    lines, reduced = table_of(classes, losses, prices)
    start = np.searchsorted(lines[:, 1], np.arange(POINTS + 1)).astype(np.int64)
    leave_out = np.full(POINTS, problem.full_loss)
    chosen = np.empty(int(multiplicity.sum()), np.int64)
    budget = 10**15
    cost, n_nodes = cover(
        lines, reduced, start, multiplicity, leave_out, 0, most_out, budget, 10**7, 2**12, chosen, GOING
    )
    expected = best_cover(classes, losses.tolist(), multiplicity, leave_out, most_out)
    assert n_nodes <= 10**7 and cost == (NO_COST if expected is None else expected)
    if expected is None:
        return
    taken = chosen[chosen >= 0]
    covered = np.bincount(np.concatenate([lines[c, 1 : lines[c, 0] + 1] for c in taken]), minlength=POINTS)
    n_out = multiplicity - covered
    assert n_out.min() >= 0 and n_out.sum() <= most_out
    assert cost == reduced[taken].sum() + n_out @ leave_out
    if cost > 0:
        again = cover(
            lines, reduced, start, multiplicity, leave_out, 0, most_out, cost - 1, 10**7, 2**12, chosen, GOING
        )
        assert again[0] == NO_COST


def test_fitted_prices_prove_no_more_than_the_relaxation_and_nearly_as_much(table):
    problem, multiplicity, classes, losses = table
    lines, costs = table_of(classes, losses, np.zeros(POINTS, np.int64))
    holds = np.array([[c.count(p) for c in classes] for p in range(POINTS)])
    program = linprog(losses, A_eq=holds, b_eq=multiplicity)
    if program.status != 0:
        pytest.skip("no fractional cover")
    prices, fee = np.full(POINTS, losses.mean() / MOST), np.zeros(1)
    bound = fit_prices_inplace(
        lines, costs, multiplicity, prices, fee, float(problem.full_loss), 0, float(program.fun), 3000, GOING
    )
    reduced = losses - prices @ holds
    cheapest = [min([0.0, *reduced[[c[0] == p for c in classes]]]) for p in range(POINTS)]
    assert bound == pytest.approx(multiplicity @ (prices + cheapest), rel=1e-9)
    assert 0.9 * program.fun <= bound <= program.fun + 1e-6
