"""l-diversity and t-closeness of classes against their definitions; distances against the transport problem."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from louver.anonymize.columns import Distance, LKind, Sensitive, build_requirements
from louver.optim.kernels.classes.diversity import (
    count_inplace,
    distance,
    has_matches,
    is_diverse,
    lack,
    n_sensitive_values,
)
from louver.optim.kernels.classes.loss import class_regions
from mixed_records import mixed_problem
from oracles.partitions import has_distinct, has_entropy, has_recursive

N_VALUES = 5
CODES = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4, 1])
NODES = [np.array([0, 0, 1, 1, 1]), np.zeros(5, np.int64)]
GROUND = {
    Distance.EQUAL: lambda a, b: float(a != b),
    Distance.ORDERED: lambda a, b: abs(a - b) / (N_VALUES - 1),
    Distance.HIERARCHICAL: lambda a, b: 0.0 if a == b else (0.5 if NODES[0][a] == NODES[0][b] else 1.0),
}


def limits_of(**asked):
    sensitive = Sensitive(name="s", codes=CODES, n_values=N_VALUES, **asked)
    none = np.zeros((0, 1), np.int32)
    return build_requirements((sensitive,), np.arange(len(CODES)), none, np.zeros(0, np.int64), 0).limits


def counted(limits, members):
    counts = np.zeros(n_sensitive_values(limits), np.int64)
    for i in members:
        count_inplace(limits, counts, CODES[[i]], 1)
    return counts


def transport(members, ground):
    """Earth mover's distance between a class and the table: the linear program itself."""
    cost = np.array([[ground(a, b) for b in range(N_VALUES)] for a in range(N_VALUES)])
    share = np.bincount(CODES[list(members)], minlength=N_VALUES) / len(members)
    whole = np.bincount(CODES, minlength=N_VALUES) / len(CODES)
    rows = np.vstack(
        [np.kron(np.eye(N_VALUES), np.ones(N_VALUES)), np.kron(np.ones(N_VALUES), np.eye(N_VALUES))]
    )
    return linprog(cost.ravel(), A_eq=rows, b_eq=np.concatenate([share, whole])).fun


@pytest.mark.parametrize("kind", Distance)
def test_distance_is_the_transport_problem(kind):
    ancestors = NODES if kind is Distance.HIERARCHICAL else ()
    limits = limits_of(t=0.3, distance=kind, ancestors=ancestors)
    for members in [*combinations(range(10), 2), *combinations(range(0, 10, 2), 3)]:
        expected = transport(members, GROUND[kind])
        counts = counted(limits, members)
        assert distance(limits, 0, counts) == pytest.approx(expected, abs=1e-9)
        if abs(expected - 0.3) > 1e-9:
            assert is_diverse(limits, counts) == (expected <= 0.3)


@pytest.mark.parametrize("kind", LKind)
def test_l_diversity(kind):
    least = {LKind.DISTINCT: 3, LKind.ENTROPY: 2.5, LKind.RECURSIVE: 2}[kind]
    limits = limits_of(l=least, l_kind=kind, c=0.5 if kind is LKind.RECURSIVE else None)
    values = CODES.tolist()
    asked = {
        LKind.DISTINCT: has_distinct(values, 3),
        LKind.ENTROPY: has_entropy(values, 2.5),
        LKind.RECURSIVE: has_recursive(values, 2, "0.5"),
    }[kind]
    seen = set()
    for members in combinations(range(10), 4):
        seen.add(asked(members))
        assert is_diverse(limits, counted(limits, members)) == asked(members)
    assert seen == {True, False}


@pytest.mark.parametrize("c", ["0.1", "0.3", "1", "1.7", "3"])
@pytest.mark.parametrize("rank", [1, 2, 3, 5])
def test_recursive_diversity_in_exact_numbers_and_of_every_union(c, rank):
    """Counts times c that are whole numbers only on paper; a union of two diverse classes is diverse."""
    limits, seen = limits_of(l=rank, l_kind=LKind.RECURSIVE, c=float(c)), set()
    every = [np.array(counts) for counts in product((0, 1, 3, 10), repeat=3)]
    diverse = []
    for few in every:
        counts = np.append(few, [30, 1] if few.sum() % 2 else [0, 1])
        rows = np.repeat(np.arange(N_VALUES), counts).tolist()
        expected = has_recursive(rows, rank, c)(range(len(rows)))
        assert is_diverse(limits, counts) == expected
        assert (lack(limits, counts) == 0) == expected
        seen.add(expected)
        diverse += [counts] if expected else []
    assert all(is_diverse(limits, one + other) for one, other in combinations(diverse, 2))
    assert (False in seen) == (rank > 1 or float(c) <= 1)


@pytest.mark.parametrize("kind", Distance)
def test_missing_is_no_value(kind, monkeypatch):
    """With some codes missing, a class is judged by the others, and a class without any is close and not diverse."""
    known, gaps = CODES, CODES.copy()
    gaps[[1, 4, 7]] = -1
    monkeypatch.setitem(globals(), "CODES", gaps)
    limits = limits_of(t=0.3, l=2, distance=kind, ancestors=NODES if kind is Distance.HIERARCHICAL else ())
    monkeypatch.setitem(globals(), "CODES", gaps[gaps >= 0])
    places = np.cumsum(gaps >= 0) - 1
    for members in [*combinations(range(10), 2), *combinations(range(0, 10, 2), 3), (1, 4, 7)]:
        counts = np.zeros(n_sensitive_values(limits), np.int64)
        for i in members:
            count_inplace(limits, counts, gaps[[i]], 1)
        given = [i for i in members if gaps[i] >= 0]
        expected = transport([places[i] for i in given], GROUND[kind]) if given else 0.0
        assert distance(limits, 0, counts) == pytest.approx(expected, abs=1e-9)
        if abs(expected - 0.3) > 1e-9:
            is_diverse_enough = len({int(known[i]) for i in given}) >= 2 and expected <= 0.3
            assert is_diverse(limits, counts) == is_diverse_enough


def test_counts_are_taken_back_and_nothing_asked_is_always_met():
    limits = limits_of()
    counts = counted(limits, [0, 3, 3])
    count_inplace(limits, counts, CODES[[3]], -1)
    assert counts.tolist() == [1, 0, 1, 0, 0]
    assert is_diverse(limits, counts)
    nothing = build_requirements((), np.arange(3), np.zeros((0, 1), np.int32), np.zeros(0, np.int64), 0)
    assert n_sensitive_values(nothing.limits) == 0


def test_matches_in_a_population():
    problem = mixed_problem(8, 1, kinds=("number",))
    lower, upper, words, _ = class_regions(problem.geometry, problem.codes, np.zeros(8, np.int64), 1)
    inside = problem.codes[:3]
    outside = np.full((1, 1), problem.codes.max() + 1, np.int32)
    people = np.array([2, 1, 1, 50])
    for matches in range(1, 7):
        requirements = problem.requirements._replace(
            population=np.concatenate([inside, outside]), multiplicity=people, matches=np.int64(matches)
        )
        assert has_matches(requirements, problem.geometry, lower[0], upper[0], words[0]) == (matches <= 4)
