"""Least squares over the tree: the upward pass, and the variances in the end, against one dense system."""

from __future__ import annotations

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.topdown.estimation.evidence import gather_evidence
from louver.topdown.estimation.levels import estimate
from louver.topdown.estimation.subspaces import Subspaces, least_squares_variances
from louver.topdown.knowledge.implied import LevelStatements, derive
from louver.topdown.problem import Problem, Query, Workload
from oracles.least_squares import tree_least_squares

SHAPE = (2, 3)
LEAVES = ["aa1", "aa2", "aa3", "ab1", "ba1", "ba2", "bb1", "bb2", "bb3", "bb4", "bc1"]
SPINE = RegionTree.from_prefixes(LEAVES, ("all", "part", "area", "leaf"), (0, 1, 2, 3))
ALL = range(len(LEAVES))
SPACES = Subspaces(SHAPE)
TOTAL, FIRST, SECOND, DETAILED = (SPACES.marginal(mask) for mask in range(4))
MERGED = Query(name="merged", row_of=np.array([0, 0, 1, 0, 0, 1]), n_rows=2)
MIXED = ((DETAILED, TOTAL), (DETAILED, FIRST, SECOND), (TOTAL, DETAILED), (DETAILED, SECOND))


class Answers:
    def __init__(self, workloads, seed):
        random = np.random.default_rng(seed)
        self.values = [
            [random.integers(-9, 30, (n, query.n_rows)) for query in load.queries]
            for n, load in zip(SPINE.sizes, workloads, strict=True)
        ]

    def read(self, level, start, stop):
        return tuple(values[start:stop] for values in self.values[level])


def posed(queries, seed, *, equal=False):
    random = np.random.default_rng(seed)
    variances = [
        [1.0 + i for i in range(len(own))] if equal else random.uniform(0.5, 9, len(own)) for own in queries
    ]
    loads = tuple(
        Workload(queries=own, variances=tuple(v)) for own, v in zip(queries, variances, strict=True)
    )
    implied = derive(SPINE, 1, [LevelStatements.nothing(n) for n in SPINE.sizes])
    problem = Problem(
        spine=SPINE, n_cells=6, is_possible=np.ones(6, bool), type_of=np.zeros(6, np.int64), implied=implied,
        workloads=loads, shape=SHAPE,
    )  # fmt: skip
    return problem, Answers(loads, seed)


def members(first=0, leaves=ALL):
    """For every level from `first` on, which of some leaves lie in which region."""
    found = []
    for level in range(first, SPINE.n_levels):
        n = SPINE.names.index(SPINE.names[level])
        codes = SPINE.codes[level]
        found.append(np.array([[LEAVES[leaf][:n] == code for leaf in leaves] for code in codes], float))
    return found


def dense(problem, answers, level, region):
    """Least squares from the measurements within one region: its cells, and their covariance."""
    leaves = range(*SPINE.leaf_range(level, region, region + 1))
    inside = [part[part.any(axis=1)] for part in members(level, leaves)]
    kept = [part.any(axis=1) for part in members(level, leaves)]
    values = [[a[keep] for a in answers.values[level + i]] for i, keep in enumerate(kept)]
    loads = problem.workloads[level:]
    found, covariance = tree_least_squares(
        inside, [[q.row_of for q in load.queries] for load in loads], [load.variances for load in loads], values
    )  # fmt: skip
    add = np.kron(np.ones(len(leaves)), np.eye(6))
    return add @ found, add @ covariance @ add.T


def hessian(evidence, region):
    """The quadratic form of the evidence about one region, and where it is least."""
    matrix, linear = np.zeros((6, 6)), np.zeros(6)
    for query, values, weights in zip(evidence.queries, evidence.values, evidence.weights, strict=True):
        rows = (query.row_of == np.arange(query.n_rows)[:, None]).astype(float)
        matrix += weights[region, 0] * rows.T @ rows
        linear += weights[region, 0] * rows.T @ values[region]
    return matrix, np.linalg.solve(matrix, linear)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_about_a_region_is_the_dense_least_squares_below_it(seed):
    problem, answers = posed(MIXED, seed)
    tree = gather_evidence(problem, answers)
    for level in range(3):
        for region in range(SPINE.sizes[level]):
            best, covariance = dense(problem, answers, level, region)
            found = tree.read(level, 0, SPINE.sizes[level])
            matrix, least = hessian(found, region)
            assert found.values[found.detailed][region] == pytest.approx(best, abs=1e-9)
            assert least == pytest.approx(best, abs=1e-9)
            assert tree.cell_variance[level][region] == pytest.approx(np.diag(covariance))
            if level == 2:  # siblings of one shape: no weight is cut
                assert matrix == pytest.approx(np.linalg.inv(covariance))


@pytest.mark.parametrize("merged", [False, True])
def test_queries_added_up_one_by_one_are_the_same_where_siblings_are_alike(merged):
    queries = ((DETAILED, MERGED if merged else TOTAL),) * 4
    problem, answers = posed(queries, 7, equal=True)
    tree = gather_evidence(problem, answers)
    for region in range(SPINE.sizes[2]):
        best, covariance = dense(problem, answers, 2, region)
        matrix, least = hessian(tree.read(2, 0, SPINE.sizes[2]), region)
        assert least == pytest.approx(best, abs=1e-9)
        assert matrix == pytest.approx(np.linalg.inv(covariance))
    best, _ = dense(problem, answers, 0, 0)
    assert hessian(tree.read(0, 0, 1), 0)[1] == pytest.approx(best, abs=0.5)


def test_leaves_have_their_own_answers():
    problem, answers = posed(MIXED, 1)
    found = gather_evidence(problem, answers).read(3, 2, 5)
    assert found.queries == problem.workloads[3].queries
    assert np.array_equal(found.values[0], answers.values[3][0][2:5])


def test_a_query_of_higher_levels_alone_is_used_there():
    problem, answers = posed(((DETAILED, MERGED), (DETAILED,), (DETAILED, MERGED), (DETAILED,)), 3)
    tree = gather_evidence(problem, answers)
    assert [q.name for q in tree.read(1, 0, 2).queries] == [DETAILED.name, "merged"]


@pytest.mark.parametrize("is_known", [False, True])
def test_variances_in_the_end_are_those_of_the_dense_system(is_known):
    problem, answers = posed(MIXED, 4)
    queries = [TOTAL, FIRST, SECOND, DETAILED]
    inside, values = members(), answers.values
    rows = [[q.row_of for q in load.queries] for load in problem.workloads]
    variances = [list(load.variances) for load in problem.workloads]
    if is_known:
        rows[0].append(TOTAL.row_of)
        variances[0].append(1e-9)
        values[0].append(np.zeros((1, 1)))
    _, covariance = tree_least_squares(inside, rows, variances, values)
    found = least_squares_variances(
        SPINE, SHAPE, problem.workloads, queries, exact=[[TOTAL]] if is_known else ()
    )
    for level, part in enumerate(inside):
        for i, query in enumerate(queries):
            marginal = (query.row_of == np.arange(query.n_rows)[:, None]).astype(float)
            wanted = np.diag(np.kron(part, marginal) @ covariance @ np.kron(part, marginal).T)
            assert np.repeat(found[level][:, i], query.n_rows) == pytest.approx(wanted, rel=1e-6, abs=1e-7)


def test_counts_of_a_nation_are_solved_as_exactly_as_numbers_allow(monkeypatch):
    monkeypatch.setattr("louver.topdown.estimation.least_squares._solve_generally", pytest.fail)
    problem, answers = posed(((DETAILED, FIRST, SECOND),) * 4, 0)
    random = np.random.default_rng(0)
    answers.values = [
        [random.integers(-9, 10**9 // 4**level, (n, query.n_rows)) for query in load.queries]
        for level, (n, load) in enumerate(zip(SPINE.sizes, problem.workloads, strict=True))
    ]
    found = estimate(problem, answers)
    assert not found.rescued and not found.suboptimal
    assert found.levels[-1].largest_residual < 1e-5
