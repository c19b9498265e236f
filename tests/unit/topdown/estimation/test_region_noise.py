"""Trees whose regions differ in noise, in what they measured and in what they can hold, against dense least squares in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.topdown.estimation.evidence import gather_evidence
from louver.topdown.estimation.levels import estimate
from louver.topdown.estimation.region_noise import LabelTree
from louver.topdown.estimation.subspaces import Subspaces
from louver.topdown.knowledge.implied import UNBOUNDED, LevelStatements, derive
from louver.topdown.problem import Problem, Query, RegionNoise, Workload
from oracles.least_squares import exact_least_squares

LEAVES = ["0aa1", "0aa2", "0ab1", "0ba1", "0ba2", "0bb1", "1aa1", "1aa2", "1ba1"]
"""Branches 0 and 1 meet only at the top; 0ab, 0bb and 1ba have one child."""
SPINE = RegionTree.from_prefixes(LEAVES, ("state", "branch", "county", "group", "block"), (0, 1, 2, 3, 4))
SHAPE = (4, 2)  # kinds of quarters x voting age
SPACES = Subspaces(SHAPE)
TOTAL, KIND, AGE, DETAILED = (SPACES.marginal(mask) for mask in range(4))
BINNED = Query(name="binned", row_of=np.array([0, 0, 1, 1, 1, 1, 1, 1]), n_rows=2)  # kinds 1 and 3
THREE = Query(name="three", row_of=np.array([0, 0, 1, 1, 1, 1, 2, 2]), n_rows=3)  # kinds 1, 2 and 1
QUERIES = (DETAILED, TOTAL, BINNED, AGE)


class Answers:
    def __init__(self, values):
        self.values = values

    def read(self, level, start, stop):
        return tuple(own[start:stop] for own in self.values[level])


def posed(seed, *, queries=QUERIES, is_bounded=True):
    """A tree with five kinds of noise; only children and one whole level have no answers, others lack a query."""
    random = np.random.default_rng(seed)
    loads, values = [], []
    for level, n in enumerate(SPINE.sizes):
        kinds = random.integers(1, 5, (5, len(queries))) / 2
        kinds[0] = 0.0
        kinds[1, 1:] = 0.0
        kinds[2, 1] = 0.0
        kind_of = random.integers(1, 5, n)
        if level == 1:
            kind_of[:] = 0
        elif level > 1:
            number = np.diff(SPINE.starts[level - 1])
            kind_of[np.repeat(number == 1, number)] = 0
        variances = tuple(float(x) for x in random.integers(1, 9, len(queries)))
        loads.append(
            Workload(
                queries=queries, variances=variances, by_region=RegionNoise(kinds=kinds, kind_of=kind_of)
            )
        )
        values.append([
            np.where(kinds[kind_of, place] > 0, random.integers(-9, 40, (q.n_rows, n)), 0).T
            for place, q in enumerate(queries)
        ])  # fmt: skip
    statements = [LevelStatements.nothing(n) for n in SPINE.sizes]
    closed = np.zeros((len(LEAVES), 4), bool)
    if is_bounded:
        closed[:, 1:] = random.random((len(LEAVES), 3)) < 0.6
        upper = np.where(closed, 0, UNBOUNDED)
        statements[-1] = LevelStatements(masks=(1, 2, 4, 8), lower=np.zeros_like(upper), upper=upper)
    problem = Problem(
        spine=SPINE, n_cells=8, is_possible=np.ones(8, bool), type_of=np.repeat(np.arange(4), 2),
        implied=derive(SPINE, 4, statements), workloads=tuple(loads), shape=SHAPE,
    )  # fmt: skip
    return problem, Answers(values), np.repeat(closed, 2, axis=1)


def measured_rows(problem, answers, level, first, last):
    """Every answer about regions within the leaves first to last: which cells it counts, its weight and its value."""
    for depth in range(level, SPINE.n_levels):
        load = problem.workloads[depth]
        for inside in range(SPINE.sizes[depth]):
            begin, end = SPINE.leaf_range(depth, inside, inside + 1)
            for place, query in enumerate(load.queries):
                factor = load.by_region.kinds[load.by_region.kind_of[inside], place]
                if factor > 0 and begin >= first and end <= last:
                    weight = Fraction(float(factor)) / Fraction(load.variances[place])
                    for row in range(query.n_rows):
                        own = np.zeros((last - first, 8), int)
                        own[begin - first : end - first, query.row_of == row] = 1
                        yield own.ravel(), weight, int(answers.values[depth][place][inside, row])


def dense(problem, answers, closed, level, region):
    """Exact least squares from what was measured within one region: its cells, and their covariance."""
    first, last = SPINE.leaf_range(level, region, region + 1)
    rows = measured_rows(problem, answers, level, first, last)
    add = np.tile(np.eye(8, dtype=int), (last - first, 1))
    return exact_least_squares(rows, ~closed[first:last].ravel(), add)


@pytest.mark.parametrize(("seed", "is_bounded"), [(0, False), (1, True), (2, True)])
def test_every_region_has_the_exact_least_squares_of_its_subtree(seed, is_bounded):
    problem, answers, closed = posed(seed, is_bounded=is_bounded)
    tree, labels = gather_evidence(problem, answers), LabelTree.of(problem)
    up, _ = labels.variances(problem, [DETAILED, TOTAL, THREE], [False] * SPINE.n_levels)
    for level in range(SPINE.n_levels - 1):
        found = tree.read(level, 0, SPINE.sizes[level])
        for region in range(SPINE.sizes[level]):
            if SPINE.codes[level][region] == "1ba":
                continue  # only children without answers: nothing in this subtree was measured
            best, covariance = dense(problem, answers, closed, level, region)
            assert found.values[found.detailed][region] == pytest.approx(best, rel=1e-6, abs=1e-5)
            for place, query in enumerate([DETAILED, TOTAL, THREE]):
                mean = np.mean([
                    covariance[np.ix_(query.row_of == row, query.row_of == row)].sum() for row in range(query.n_rows)
                ])  # fmt: skip
                assert up[level][region, place] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_variances_in_the_end_are_those_of_all_measurements_together(seed):
    problem, answers, closed = posed(seed)
    queries = [DETAILED, TOTAL, AGE, BINNED]
    _, final = LabelTree.of(problem).variances(problem, queries, [False] * SPINE.n_levels)
    rows = measured_rows(problem, answers, 0, 0, len(LEAVES))
    _, whole = exact_least_squares(rows, ~closed.ravel(), np.eye(closed.size, dtype=int))
    for level in range(SPINE.n_levels):
        for region in range(SPINE.sizes[level]):
            begin, end = SPINE.leaf_range(level, region, region + 1)
            for place, query in enumerate(queries):
                wanted = 0.0
                for row in range(query.n_rows):
                    chosen = np.zeros((len(LEAVES), 8))
                    chosen[begin:end, query.row_of == row] = 1
                    wanted += chosen.ravel() @ whole @ chosen.ravel() / query.n_rows
                assert final[level][region, place] == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("estimator", ["bayes", "least-squares", "plain"])
def test_estimates_keep_every_bound_and_only_children_are_their_parents(estimator):
    problem, answers, closed = posed(5)
    found = estimate(problem, answers, estimator=estimator).leaves.to_dense(8)
    assert (found >= 0).all()
    assert not found[closed].any()
