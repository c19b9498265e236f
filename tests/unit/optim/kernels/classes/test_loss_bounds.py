"""The least loss around a point: never above that of any class that holds it, and exact where it should be."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive, build_requirements
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.diversity import is_diverse
from louver.optim.kernels.classes.loss_bounds import (
    FAR,
    diverse_reach,
    insert_inplace,
    least_losses,
    may_hold_class,
    reached_at,
)
from louver.optim.kernels.classes.record_tree import build_tree, nearest
from mixed_records import mixed_problem


@pytest.mark.parametrize("with_triples", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_no_class_around_a_point_loses_less(seed, k, with_triples):
    problem = mixed_problem(9, seed, kinds=("number", "gapped", "set"))
    multiplicity = np.random.default_rng(seed).integers(1, 3, 9)
    tree = build_tree(problem.geometry, problem.codes, np.arange(9))
    for n_near in (3, 8):
        keys, reach = nearest(tree, problem.geometry, 0, 9, n_near)
        bounds = least_losses(problem.geometry, problem.codes, multiplicity, keys, reach, 0, k, with_triples)
        for i in range(9):
            spreads = [
                problem.class_loss(sorted((i, *others))) // (1 + len(others))
                for size in range(k)
                for others in combinations([j for j in range(9) if j != i], size)
                if multiplicity[[i, *others]].sum() >= k
            ]
            assert bounds[i] <= min(spreads)
            if k == 2 and n_near == 8:
                assert bounds[i] == min(spreads)


def test_the_shortest_list_of_values():
    random = np.random.default_rng(0)
    for _ in range(50):
        given, weights = random.integers(0, 9, 7), random.integers(1, 4, 7)
        values, kept = np.empty(4, np.int64), np.empty(4, np.int64)
        n = 0
        for value, weight in zip(given, weights, strict=True):
            n = insert_inplace(values, kept, n, value, weight)
        order = np.argsort(given, kind="stable")[:4]
        assert n == 4 and values.tolist() == given[order].tolist()
        for needed in range(1, 14):
            reached = np.flatnonzero(np.cumsum(kept) >= needed)
            assert reached_at(values, kept, n, needed) == (values[reached[0]] if len(reached) else FAR)


VALUES = 4
NODES = [np.array([0, 0, 1, 1]), np.zeros(VALUES, np.int64)]
DEMANDS = {
    "distinct": {"l": 3},
    "entropy": {"l": 2.6, "l_kind": LKind.ENTROPY},
    "recursive": {"l": 2, "l_kind": LKind.RECURSIVE, "c": 0.9},
    "equal": {"t": 0.2},
    "ordered": {"t": 0.1, "distance": Distance.ORDERED},
    "hierarchical": {"t": 0.15, "distance": Distance.HIERARCHICAL, "ancestors": NODES},
}


@pytest.mark.parametrize("demand", DEMANDS)
def test_records_are_refused_only_if_none_of_their_classes_is_diverse(demand):
    """All classes of a few records, by counting; and some sets of records are refused."""
    column = Sensitive(
        name="ill", codes=np.repeat(np.arange(VALUES), [6, 4, 3, 2]), n_values=VALUES, **DEMANDS[demand]
    )
    nobody = np.zeros(0, np.int64)
    limits = build_requirements([column], np.arange(15), np.zeros((0, 1), np.int32), nobody, 0).limits
    refused = 0
    for most in product(range(4), repeat=VALUES):
        counts = np.array(most)
        for least in (2, 4):
            classes = [np.array(c) for c in product(*(range(n + 1) for n in most)) if sum(c) >= least]
            is_possible = any(is_diverse(limits, c) for c in classes)
            may = may_hold_class(limits, counts, np.array([(counts > 0).sum()]), least, True)
            assert may or not is_possible
            refused += not may
    assert refused > 20


def test_a_class_reaches_as_far_as_the_values_it_needs():
    """Two illnesses, one of them far away; the nearest record that has it decides, and the limit of what is listed."""
    values = np.array([0.0, 1.0, 2.0, 3.0, 10.0])
    ill = np.array([0, 0, 0, 0, 1])
    column = NumericColumn(name="x", values=values)
    problem = AnonymizeProblem.build(
        [column], k=2, sensitive=[Sensitive(name="s", codes=ill, n_values=2, l=2)]
    )
    points, needs = problem.points(), problem.requirements
    tree = build_tree(problem.geometry, points.codes, np.arange(5))
    for n_listed in (2, 4):
        keys, reach = nearest(tree, problem.geometry, 0, 5, n_listed)
        found = diverse_reach(needs.limits, needs.sensitive, points.start, keys, reach, 0, 2, True)
        exact = np.array([10.0, 9.0, 8.0, 7.0, 7.0]) / 10
        shares = found * problem.unit
        assert (shares <= exact + 1e-9).all()
        if n_listed == 4:
            assert shares == pytest.approx(exact)
        else:
            assert (shares[:4] > 0).all()
