"""Classes by prices: the cheapest class of every head by brute force, and fitted prices beside a linear program."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from louver.anonymize.columns import NumericColumn, SetColumn
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.priced_classes import cheapest_classes, fit_prices_inplace
from louver.optim.kernels.classes.record_tree import build_tree, nearest


def problem_of(seed, n=9):
    random = np.random.default_rng(seed)
    columns = [
        NumericColumn(name="number", values=random.integers(0, 9, n).astype(float)),
        SetColumn(name="set", codes=random.integers(0, 3, n), n_labels=3),
    ]
    return AnonymizeProblem.build(columns, k=3)


def cheapest(problem, prices, *, slack=0, max_nodes=10_000):
    """The kernel on all heads: heads, lower bounds, classes, losses."""
    points = problem.points()
    n = len(points.codes)
    tree = build_tree(problem.geometry, points.codes, np.arange(n))
    keys, reach = nearest(tree, problem.geometry, 0, n, 3)
    ranked = np.lexsort([np.arange(n), -prices])
    out, cost = np.empty((100, 6), np.int32), np.empty(100, np.int64)
    lowest, n_found = cheapest_classes(
        problem.geometry, points.codes, points.multiplicity, prices, ranked, np.arange(n), keys, reach,
        3, 5, np.full(n, slack, np.int64), max_nodes, out, cost, np.zeros(1, np.uint8),
    )  # fmt: skip
    return ranked, lowest, out[:n_found], cost[:n_found]


def by_brute_force(problem, prices):
    """The least reduced cost of each head, at most 0."""
    points = problem.points()
    of_record, rank = points.of_record, np.empty(len(prices), np.int64)
    rank[np.lexsort([np.arange(len(prices)), -prices])] = np.arange(len(prices))
    least = np.zeros(len(prices), np.int64)
    for size in range(3, 6):
        for members in combinations(range(problem.n_records), size):
            inside = of_record[list(members)]
            head = inside[np.argmin(rank[inside])]
            least[head] = min(least[head], problem.class_loss(members) - prices[inside].sum())
    return least


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_the_cheapest_class_of_every_head(seed, share):
    problem = problem_of(seed)
    random = np.random.default_rng(seed)
    prices = (share * problem.full_loss * random.random(len(problem.points().codes))).astype(np.int64)
    least = by_brute_force(problem, prices)
    heads, lowest, classes, costs = cheapest(problem, prices)
    assert (lowest == least[heads]).all()
    found = dict.fromkeys(range(len(prices)), 0)
    for line, cost in zip(classes, costs, strict=True):
        members = line[1 : line[0] + 1]
        records = [problem.points().start[p] + (members[:i] == p).sum() for i, p in enumerate(members)]
        assert problem.class_loss(records) == cost
        found[members[0]] = min(found[members[0]], cost - prices[members].sum())
    assert [found[head] for head in range(len(prices))] == least.tolist()
    for limits in ({"max_nodes": 0}, {"max_nodes": 3}, {"slack": problem.full_loss // 20}):
        heads, lowest, *_ = cheapest(problem, prices, **limits)
        assert (lowest <= least[heads]).all()


def test_fitted_prices_are_worth_what_a_linear_program_says():
    random = np.random.default_rng(5)
    classes = [np.sort(random.choice(8, random.integers(2, 5), replace=False)) for _ in range(20)]
    cost = random.uniform(0.5, 2, len(classes))
    multiplicity, most = random.integers(1, 4, 8).astype(float), np.full(8, 2.0)
    start = np.cumsum([0, *map(len, classes)])
    prices, use = np.zeros(8), np.zeros(len(classes))
    fit_prices_inplace(
        start, np.concatenate(classes), cost, multiplicity, most, prices, use, 20_000, np.zeros(1, np.uint8)
    )
    rows = np.array([[c in members for c in range(8)] for members in classes], float)
    best = linprog(-multiplicity, A_ub=rows, b_ub=cost, bounds=[(0, 2)] * 8)
    assert multiplicity @ prices == pytest.approx(-best.fun, rel=1e-3)
    assert (rows @ prices <= cost + 1e-3).all()
