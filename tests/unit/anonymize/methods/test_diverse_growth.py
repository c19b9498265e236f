"""Classes grown towards l and t: judged by code of their own, and the bound that l and t prove."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from math import exp, log

import numpy as np
import pytest

from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive
from louver.anonymize.methods import auto, diverse_growth, greedy
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.watch import Watch
from oracles.partitions import has_recursive, interval_loss, is_close, least_loss

N_VALUES = 6
ANCESTORS = (np.array([0, 0, 1, 1, 2, 2]), np.zeros(6, int))
HEIGHTS = [[0 if a == b else 1 if a // 2 == b // 2 else 2 for b in range(N_VALUES)] for a in range(N_VALUES)]
GROUND = {
    Distance.EQUAL: lambda a, b: float(a != b),
    Distance.ORDERED: lambda a, b: abs(a - b) / (N_VALUES - 1),
    Distance.HIERARCHICAL: lambda a, b: HEIGHTS[a][b] / 2,
}


def asked(codes, **more):
    return Sensitive(name="ill", codes=codes, n_values=N_VALUES, **more)


def people(n, seed=1, **more):
    """Numbers, and an illness that goes with the first of them: the hard case."""
    random = np.random.default_rng(seed)
    age, other = random.integers(0, 60, n).astype(float), random.geometric(0.2, n).astype(float)
    ill = np.minimum((age / 60 * N_VALUES + random.normal(0, 1.5, n)).clip(0).astype(int), N_VALUES - 1)
    columns = [NumericColumn(name="age", values=age), NumericColumn(name="other", values=other)]
    return AnonymizeProblem.build(columns, k=4, sensitive=[asked(ill, **more)]), ill


def entropy_of(values):
    shares = np.bincount(values)[np.unique(values)] / len(values)
    return exp(-sum(s * log(s) for s in shares))


CASES = {
    "distinct": {"l": 5},
    "entropy": {"l": 4.0, "l_kind": LKind.ENTROPY},
    "recursive": {"l": 3, "l_kind": LKind.RECURSIVE, "c": 0.9},
    "equal": {"t": 0.3},
    "ordered": {"t": 0.15, "distance": Distance.ORDERED},
    "hierarchical": {"t": 0.25, "distance": Distance.HIERARCHICAL, "ancestors": ANCESTORS},
    "both": {"t": 0.35, "l": 3},
}


def is_publishable(case, ill, rows):
    """Whether a class of source rows meets k and what the case asks, from the definitions."""
    of = CASES[case]
    values = ill[rows]
    if of.get("l_kind") is LKind.RECURSIVE and not has_recursive(values.tolist(), 3, "0.9")(range(len(rows))):
        return False
    if len(rows) < 4 or (of.get("l_kind") is None and len(set(values.tolist())) < of.get("l", 0)):
        return False
    if of.get("l_kind") is LKind.ENTROPY and entropy_of(values) < of["l"] - 1e-9:
        return False
    if "t" not in of:
        return True
    ground = GROUND[of.get("distance", Distance.EQUAL)]
    return is_close(ill.tolist(), N_VALUES, of["t"], ground)(rows.tolist())


@pytest.mark.parametrize("case", CASES)
def test_grown_and_annealed_classes_meet_the_definitions_and_lose_less_than_united_ones(case):
    problem, ill = people(260, **CASES[case])
    grown = diverse_growth.solve(problem, Watch())
    annealed = auto.solve(problem, steps=4)
    for partition in (grown, annealed):
        assert (np.sort(np.concatenate(partition.classes())) == np.arange(260)).all()
        assert partition.loss == problem.total_loss(partition.labels)
        assert all(is_publishable(case, ill, problem.rows[rows]) for rows in partition.classes())
    assert annealed.loss < grown.loss
    assert annealed.loss < 0.8 * greedy.solve(problem).loss
    assert annealed.lower_bound <= annealed.loss


def test_once_the_time_is_up_the_classes_may_still_be_published():
    problem, ill = people(120, t=0.3)
    watch = Watch()
    watch.stop[0] = 1
    found = diverse_growth.solve(problem, watch)
    assert all(is_publishable("equal", ill, problem.rows[rows]) for rows in found.classes())


def test_what_needs_no_growth_is_not_grown():
    assert not diverse_growth.is_useful(people(50)[0].part(np.arange(20)))
    many = Sensitive(name="income", codes=np.arange(2000), n_values=2000, l=2)
    column = NumericColumn(name="x", values=np.arange(2000.0))
    assert not diverse_growth.is_useful(AnonymizeProblem.build([column], k=2, sensitive=[many]))
    assert diverse_growth.is_useful(people(50, l=2)[0])


@pytest.mark.parametrize("t", [0.15, 0.3, 0.45, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_no_class_smaller_than_the_least_is_close_enough(t, seed):
    ill = np.random.default_rng(seed).geometric(0.35, 90).clip(1, N_VALUES) - 1
    whole = np.bincount(ill, minlength=N_VALUES) / 90
    problem = AnonymizeProblem.build(
        [NumericColumn(name="x", values=np.arange(90.0))], k=1, sensitive=[asked(ill, t=t)]
    )
    size = 1
    while all(
        np.abs(np.bincount(c, minlength=N_VALUES) / size - whole).sum() / 2 > t + 1e-9
        for c in combinations_with_replacement(range(N_VALUES), size)
    ):
        size += 1
    assert problem.least_publishable == size


@pytest.mark.parametrize("distance", [Distance.ORDERED, Distance.HIERARCHICAL])
@pytest.mark.parametrize("t", [0.05, 0.12, 0.25])
@pytest.mark.parametrize("seed", range(2))
def test_no_class_smaller_than_the_least_is_close_enough_by_order_or_tree(distance, t, seed):
    """Every class, by the transport problem; by order the least size is also enough."""
    ill = np.random.default_rng(seed).geometric(0.35, 90).clip(1, N_VALUES) - 1
    ancestors = ANCESTORS if distance is Distance.HIERARCHICAL else ()
    sensitive = [asked(ill, t=t, distance=distance, ancestors=ancestors)]
    column = NumericColumn(name="x", values=np.arange(90.0))
    least = AnonymizeProblem.build([column], k=1, sensitive=sensitive).least_publishable
    is_near = is_close(ill.tolist(), N_VALUES, t, GROUND[distance])
    of_value = [int(np.flatnonzero(ill == v)[0]) if (ill == v).any() else None for v in range(N_VALUES)]
    known = [v for v in range(N_VALUES) if of_value[v] is not None]

    def is_some_near(size):
        classes = combinations_with_replacement(known, size)
        return any(is_near([of_value[v] for v in values]) for values in classes)

    assert not any(is_some_near(size) for size in range(1, min(least, 5)))
    if distance is Distance.ORDERED and least <= 5:
        assert is_some_near(least)


def test_the_least_size_counts_only_what_always_holds():
    """Records left out change the whole table, and a class without known values is close to every table."""
    ill = np.arange(60) % N_VALUES
    column = NumericColumn(name="x", values=np.arange(60.0))

    def least(codes, **more):
        sensitive = [asked(codes, t=0.1)]
        return AnonymizeProblem.build([column], k=2, sensitive=sensitive, **more).least_publishable

    assert least(ill) == 6
    assert least(ill, max_suppressed=1) == 2
    assert least(np.where(np.arange(60) == 7, -1, ill)) == 2
    entropy = [asked(ill, l=3.2, l_kind=LKind.ENTROPY)]
    assert AnonymizeProblem.build([column], k=2, sensitive=entropy).least_publishable == 4


@pytest.mark.parametrize(("rank", "c"), [(2, "0.4"), (3, "1"), (3, "0.5"), (2, "1.5"), (4, "0.7")])
def test_no_smaller_class_is_recursively_diverse(rank, c):
    ill = np.arange(60) % N_VALUES
    sensitive = [asked(ill, l=rank, c=float(c), l_kind=LKind.RECURSIVE)]
    column = NumericColumn(name="x", values=np.arange(60.0))
    least = AnonymizeProblem.build([column], k=1, sensitive=sensitive).least_publishable
    assert least >= rank
    for size in range(1, min(least, 7)):
        for rows in combinations_with_replacement(range(N_VALUES), size):
            assert not has_recursive(rows, rank, c)(range(size))


def test_the_least_size_is_that_of_the_table_by_which_classes_are_judged():
    """A cell of households is judged by the whole file, whatever its own records are."""
    ill = np.repeat(np.arange(N_VALUES), 10)
    column = NumericColumn(name="x", values=np.arange(60.0))
    problem = AnonymizeProblem.build([column], k=2, sensitive=[asked(ill, t=0.1)])
    some = np.flatnonzero(problem.requirements.sensitive[:, 0] < 2)
    requirements = problem.requirements._replace(sensitive=problem.requirements.sensitive[some])
    cell = replace(problem, rows=problem.rows[some], codes=problem.codes[some], requirements=requirements)
    assert problem.least_publishable == 6
    assert cell.least_publishable == 6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_the_bound_holds_and_knows_of_l_and_t(case, seed):
    """Nine records: every partition is tried."""
    random = np.random.default_rng(5 + seed)
    ill = random.permutation([0, 1, 2, 3, 4, 5, 0, 1, 2])
    values = random.integers(0, 40, 9).astype(float)
    problem = AnonymizeProblem.build(
        [NumericColumn(name="x", values=values)], k=2, sensitive=[asked(ill, **CASES[case])]
    )
    points = problem.points()
    bound = auto.find_neighbours(problem, points, Watch(), n_wanted=8).lower_bound
    plain = problem.part(np.arange(9))
    assert bound >= auto.find_neighbours(plain, points, Watch(), n_wanted=8).lower_bound

    def is_allowed(members):
        rows = np.array(members)
        return problem.is_allowed(np.flatnonzero(np.isin(problem.rows, rows)))

    optimum = least_loss(9, 2, [(1.0, interval_loss(values.tolist()))], is_allowed=is_allowed)
    assert bound * problem.unit <= optimum + 1e-6
