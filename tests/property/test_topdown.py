"""Implied constraints, least squares and rounding against enumeration and general solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data.regions import RegionTree
from louver.errors import InfeasibleError
from louver.optim.kernels.families.rounding import rank_of, split_count
from louver.optim.status import Status
from louver.topdown.estimation import least_squares
from louver.topdown.estimation.least_squares import encode, solve
from louver.topdown.estimation.levels import estimate
from louver.topdown.estimation.rounding import distance_to_feasibility, round_counts
from louver.topdown.knowledge.implied import DerivedKind, LevelStatements, derive, leaf_bounds, set_sums
from louver.topdown.problem import Families, Problem, Query, SparseLevel, Workload
from oracles import topdown as oracle
from strategies import bounds_around, laminar_masks, stated_trees

PLENTY = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
FEWER = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


class Given:
    """Noisy answers held in memory: one array (regions, rows) per level and query."""

    def __init__(self, answers):
        self.answers = answers

    def read(self, level, start, stop):
        return tuple(answer[start:stop] for answer in self.answers[level])


def answered(query, counts):
    return query.answer(SparseLevel.from_dense(counts))


def plain(statements):
    return [(s.masks, s.lower.tolist(), s.upper.tolist()) for s in statements]


# --- Implied constraints -----------------------------------------------------------------------------


@few_or_many(12, 80, given(stated_trees()))
def test_bounds_on_sets_are_exactly_what_leaf_tables_allow(tree):
    spine, n_types, truth, statements = tree
    most = int(truth[0].sum()) + 2 * len(spine.leaves)
    assume((most + 1) ** n_types <= 3000)
    implied = derive(spine, n_types, statements)
    assert implied.kind is DerivedKind.NESTED
    allowed = oracle.region_vectors([s.tolist() for s in spine.starts], n_types, plain(statements), most)
    for level in range(spine.n_levels):
        lower, upper = implied.bounds(level, 0, spine.sizes[level])
        for region in range(spine.sizes[level]):
            found = oracle.within(lower[region], upper[region], n_types, most)
            # Sums of leaves that stop at `most` stop there too: compare where the cap cannot matter.
            inside = {x for x in found if sum(x) <= most}
            expected = {x for x in allowed[level][region] if sum(x) <= most}
            assert inside == expected


@PLENTY
@given(st.data())
def test_contradictions_are_found_and_nothing_else_is_called_one(data):
    spine = RegionTree.from_columns([("r", "a"), ("r", "b")], ("root", "leaf"))
    n_types = data.draw(st.integers(1, 3))
    masks = data.draw(laminar_masks(n_types))
    numbers = st.integers(0, 3)
    lower = np.array([[data.draw(numbers) for _ in masks] for _ in range(2)])
    upper = np.array([[data.draw(numbers) for _ in masks] for _ in range(2)])
    total = data.draw(st.integers(0, 6))
    root = LevelStatements(masks=((1 << n_types) - 1,), lower=np.array([[total]]), upper=np.array([[total]]))
    statements = [root, LevelStatements(masks=masks, lower=lower, upper=upper)]
    allowed = oracle.region_vectors([[0, 2]], n_types, plain(statements), 6)
    if allowed[0][0]:
        derive(spine, n_types, statements)
    else:
        with pytest.raises(InfeasibleError):
            derive(spine, n_types, statements)


@few_or_many(12, 80, given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=3)))
def test_two_by_two_margins_are_complete(tables):
    """Lemma 1: rows {1, 3} and {0, 2}, columns {2, 3} and {0, 1} of cells numbered 2 column + row."""
    spine = RegionTree.from_columns([("r", str(i)) for i in range(len(tables))], ("root", "leaf"))
    leaves = np.array(tables)
    masks = (0b1010, 0b1100, 0b1111)
    held = set_sums(leaves)[:, list(masks)]
    statements = [LevelStatements.nothing(1), LevelStatements(masks=masks, lower=held, upper=held)]
    implied = derive(spine, 4, statements)
    assert implied.kind is DerivedKind.TWO_BY_TWO and not implied.is_integral
    most = int(leaves.sum())
    assume(most <= 10)
    allowed = oracle.region_vectors([[0, len(tables)]], 4, plain(statements), most)[0][0]
    lower, upper = implied.bounds(0, 0, 1)
    assert oracle.within(lower[0], upper[0], 4, most) == allowed


# --- Families ----------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """One parent, its children, noisy answers, bounds that the truth respects; the types may be measured."""
    n_types = draw(st.integers(1, 3))
    n_cells = draw(st.integers(n_types, 7))
    m = draw(st.integers(1, 5))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    type_of = np.concatenate([np.arange(n_types), rng.integers(0, n_types, n_cells - n_types)])
    scale = draw(st.sampled_from([1, 4, 40]))
    truth = rng.poisson(rng.gamma(0.5, scale, (m, n_cells))).astype(np.int64)
    by_type = np.zeros((m, n_types), dtype=np.int64)
    np.add.at(by_type.T, type_of, truth.T)
    masks = draw(laminar_masks(n_types))
    stated = draw(bounds_around(masks, by_type))
    queries = [Query(name="detailed", row_of=np.arange(n_cells), n_rows=n_cells)]
    if draw(st.booleans()):
        queries.append(Query(name="types", row_of=type_of, n_rows=n_types))
    for name in ("one", "two")[: draw(st.integers(0, 2))]:
        n_rows = int(rng.integers(1, 4))
        queries.append(Query(name=name, row_of=rng.integers(0, n_rows, n_cells), n_rows=n_rows))
    variances = tuple(float(rng.choice([0.5, 3.0, 20.0])) for _ in queries)
    noise = draw(st.sampled_from([1.0, 6.0]))
    workload = Workload(queries=tuple(queries), variances=variances)
    answers = [
        [
            answered(query, counts) + np.rint(rng.laplace(0, noise, (len(counts), query.n_rows))).astype(int)
            for query in queries
        ]
        for counts in (truth.sum(axis=0, keepdims=True), truth)
    ]
    spine = RegionTree.from_columns([("r", f"{i}") for i in range(m)], ("root", "leaf"))
    implied = derive(spine, n_types, [LevelStatements.nothing(1), stated])
    problem = Problem(
        spine=spine, n_cells=n_cells, is_possible=np.ones(n_cells, bool), type_of=type_of, implied=implied,
        workloads=(workload, workload),
    )  # fmt: skip
    return problem, truth, Given(answers)


def family_of(problem, truth, noisy):
    parents = SparseLevel.from_dense(truth.sum(axis=0, keepdims=True))
    return Families.gather(problem, 1, parents, (0, 1), noisy)


def oracle_view(problem, families):
    """The same family as plain arrays."""
    workload = problem.workloads[families.level]
    cells, parent = families.cells_of(0, problem.is_possible)
    queries = [query.row_of for query in workload.queries]
    return queries, workload.variances, families.evidence.values, cells, parent


@pytest.mark.parametrize("structured", [True, False])
@few_or_many(15, 80, given(given_problem=problems()))
def test_least_squares_equals_a_general_solver(structured, given_problem):
    problem, truth, noisy = given_problem
    families = family_of(problem, truth, noisy)
    queries, variances, answers, cells, parent = oracle_view(problem, families)
    assume(len(cells) > 0)
    with pytest.MonkeyPatch.context() as patch:
        if not structured:
            patch.setattr(least_squares, "MAX_LINK_ROWS", -1)
        real = least_squares.solve(problem, families)
    counts = real.block(0, len(truth))
    expected = oracle.least_squares(
        queries, variances, answers, cells, parent, problem.type_of[cells], families.lower, families.upper
    )
    assert real.status == [Status.OPTIMAL] or not structured
    assume(expected is not None)
    found = oracle.objective(queries, variances, answers, cells, counts)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert counts.min() >= 0 and np.abs(counts.sum(axis=1) - parent).max() <= 1e-6


@pytest.mark.parametrize("structured", [True, False])
@few_or_many(15, 80, given(given_problem=problems()))
def test_the_root_equals_a_general_solver(structured, given_problem):
    problem, _, noisy = given_problem
    families = Families.gather(problem, 0, None, (0, 1), noisy)
    queries, variances, answers, cells, _ = oracle_view(problem, families)
    with pytest.MonkeyPatch.context() as patch:
        if not structured:
            patch.setattr(least_squares, "MAX_LINK_ROWS", -1)
        real = least_squares.solve(problem, families)
    expected = oracle.least_squares(
        queries, variances, answers, cells, None, problem.type_of[cells], families.lower, families.upper
    )
    assume(expected is not None)
    found = oracle.objective(queries, variances, answers, cells, real.block(0, 1))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)


@few_or_many(12, 80, given(problems()))
def test_rounding_equals_an_integer_program(given_problem):
    problem, truth, noisy = given_problem
    families = family_of(problem, truth, noisy)
    cells, parent = families.cells_of(0, problem.is_possible)
    assume(len(cells) > 0)
    real = solve(problem, families)
    counts, status = round_counts(problem, families, encode(problem, families), real)
    assert status == [Status.OPTIMAL]
    rounded = counts.reshape(len(cells), len(truth))
    floor = np.empty_like(rounded)
    rank = np.empty_like(rounded)
    for i, row in enumerate(real.block(0, len(truth))):
        for c, x in enumerate(row):
            floor[i, c], fraction = split_count(x)
            rank[i, c] = rank_of(fraction, c, cells[i])
    assert ((rounded == floor) | (rounded == floor + 1)).all()
    assert (rounded.sum(axis=1) == parent).all()
    best = oracle.best_rounding(floor, rank, parent, problem.type_of[cells], families.lower, families.upper)
    assert int(((rounded - floor) * rank).sum()) == best


@FEWER
@given(stated_trees(max_count=9), st.integers(0, 2**32 - 1), st.booleans())
def test_no_region_is_ever_without_solution(tree, seed, measures_types):
    """Whatever the noise, every level can be filled, everything stated holds, and children add up."""
    spine, n_types, truth, statements = tree
    rng = np.random.default_rng(seed)
    n_cells = 2 * n_types
    type_of = np.tile(np.arange(n_types), 2)
    queries = [Query(name="detailed", row_of=np.arange(n_cells), n_rows=n_cells)]
    if measures_types:
        queries.append(Query(name="types", row_of=type_of, n_rows=n_types))
    workload = Workload(queries=tuple(queries), variances=(8.0,) * len(queries))
    cells = np.hstack([truth[-1] // 2, truth[-1] - truth[-1] // 2])
    dense = [cells]
    for level in range(spine.n_levels - 2, -1, -1):
        dense.insert(0, spine.add_up(level, dense[0]))
    noisy = Given(
        [
            [answered(query, counts) + rng.integers(-9, 10, (len(counts), query.n_rows)) for query in queries]
            for counts in dense
        ]
    )
    problem = Problem(
        spine=spine, n_cells=n_cells, is_possible=np.ones(n_cells, bool), type_of=type_of,
        implied=derive(spine, n_types, statements), workloads=(workload,) * spine.n_levels,
    )  # fmt: skip
    result = estimate(problem, noisy)
    assert not result.rescued and not result.suboptimal
    counts = result.leaves.to_dense(n_cells)
    assert counts.min(initial=0) >= 0
    for level in range(spine.n_levels - 1, -1, -1):
        by_type = counts[:, :n_types] + counts[:, n_types:]
        held = set_sums(by_type)[:, list(statements[level].masks)]
        assert (statements[level].lower <= held).all() and (held <= statements[level].upper).all()
        if level:
            counts = spine.add_up(level - 1, counts)


@FEWER
@given(problems(), st.integers(0, 2**32 - 1))
def test_distance_to_feasibility_equals_a_linear_program(given_problem, seed):
    problem, truth, noisy = given_problem
    rng = np.random.default_rng(seed)
    parent = truth.sum(axis=0, keepdims=True) + rng.integers(0, 5, truth.shape[1])
    families = Families.gather(problem, 1, SparseLevel.from_dense(parent), (0, 1), noisy)
    assume(families.is_bounded)
    margin = rng.integers(0, 3, problem.n_cells)
    expected = oracle.distance(parent[0], problem.type_of, families.lower, families.upper, margin)
    found = distance_to_feasibility(problem, families, 0, margin)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


@FEWER
@given(st.data())
def test_crossing_statements_give_necessary_conditions(data):
    """No table is ever excluded that the leaves allow."""
    masks = (0b011, 0b110, 0b111)
    leaves = np.array([[data.draw(st.integers(0, 2)) for _ in range(3)] for _ in range(2)])
    stated = data.draw(bounds_around(masks, leaves))
    lower, upper = leaf_bounds(3, masks, stated.lower, stated.upper)
    for leaf in range(2):
        allowed = oracle.leaf_vectors(3, masks, stated.lower[leaf], stated.upper[leaf], 6)
        assert allowed <= oracle.within(lower[leaf], upper[leaf], 3, 6)
