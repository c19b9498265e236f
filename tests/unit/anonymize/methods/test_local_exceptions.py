"""One recoding with exceptions: judged by code of its own, and never below the least that brute force finds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.anonymize.columns import NumericColumn, Sensitive, SetColumn, TreeColumn
from louver.anonymize.methods import global_recoding, local_exceptions
from louver.anonymize.methods.local_exceptions import exceptional
from louver.anonymize.problem import AnonymizeProblem
from louver.anonymize.recoding import RecodingSpace
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError
from mixed_records import TREE
from oracles.partitions import interval_loss, least_loss, set_loss, tree_loss
from oracles.recodings import runs, sets

LEVELS = [np.array(level) for level in TREE]
ATTEMPTS = 12


def problem_of(rows, **more):
    numbers, leaves, labels = (list(column) for column in zip(*rows, strict=True))
    return AnonymizeProblem.build(
        [
            NumericColumn(name="number", values=np.array(numbers, float), weight=2.0),
            TreeColumn(name="tree", codes=np.array(leaves), ancestors=LEVELS),
            SetColumn(name="set", codes=np.array(labels), n_labels=3),
        ],
        **{"k": 2, **more},
    )


def least_with_exceptions(rows, k, most):
    """Every recoding, with every choice of whole classes as exceptions, in the best classes of their own; from the definitions."""
    numbers, leaves, labels = (list(column) for column in zip(*rows, strict=True))
    own = [
        (2.0, interval_loss(numbers)),
        (1.0, tree_loss(leaves, TREE)),
        (1.0, set_loss(labels, 3)),
    ]
    codings = (
        list(runs(numbers)),
        [[(level, TREE[level][leaf]) for leaf in leaves] for level in range(len(TREE))],
        list(sets(labels)),
    )
    best = None
    for chosen in product(*codings):
        classes = defaultdict(list)
        for row, key in enumerate(zip(*chosen, strict=True)):
            classes[key].append(row)
        choices = [(True,) if len(members) < k else (True, False) for members in classes.values()]
        for choice in product(*choices):
            out = [
                row
                for members, is_out in zip(classes.values(), choice, strict=True)
                if is_out
                for row in members
            ]
            if len(out) > most or 0 < len(out) < k:
                continue
            kept = [row for row in range(len(rows)) if row not in out]
            loss = 0.0
            for (weight, width), coding in zip(own, chosen, strict=True):
                blocks = defaultdict(list)
                for row in kept:
                    blocks[coding[row]].append(row)
                for block, members in blocks.items():
                    share = (
                        (TREE[block[0]].count(block[1]) - 1) / len(TREE[0])
                        if isinstance(block, tuple)
                        else width(members)
                    )
                    loss += weight * len(members) * share
            if out:
                inside = [(w, lambda r, width=width, out=out: width([out[i] for i in r])) for w, width in own]
                loss += least_loss(len(out), k, inside)
            best = loss if best is None else min(best, loss)
    return best


def check(problem, answer, most):
    """k, one recoding for all that are no exceptions, and the loss as it is published."""
    assert (answer.sizes >= problem.k).all()
    is_out = answer.is_exception[answer.labels]
    assert is_out.sum() <= most
    for place, column in enumerate(problem.columns):
        values, blocks = column.ranks[problem.rows][~is_out], answer.blocks[place][~is_out]
        assert len({(v, b) for v, b in zip(values.tolist(), blocks.tolist(), strict=True)}) == len(
            np.unique(values)
        )
    assert problem.information_loss(answer) == pytest.approx(answer.loss * problem.unit, abs=1e-6)


records = st.lists(
    st.tuples(st.sampled_from([0, 1, 3, 7]), st.integers(0, 4), st.integers(0, 2)), min_size=4, max_size=6
)


@settings(max_examples=20, deadline=None)
@given(records, st.integers(2, 3), st.integers(0, 6))
def test_nothing_is_below_brute_force_and_nothing_above_one_recoding_for_all(rows, k, most):
    problem = problem_of(rows, k=k)
    answer = local_exceptions.solve(problem, most=most, steps=ATTEMPTS)
    check(problem, answer, most)
    plain = global_recoding.solve(problem)
    found, least = answer.loss * problem.unit, least_with_exceptions(rows, k, most)
    assert least - 1e-6 <= found <= plain.loss * problem.unit + 1e-6


def test_small_files_are_near_the_optimum():
    """One recoding for all loses half as much again as the optimum."""
    random = np.random.default_rng(4)
    above, n_best = [], 0
    for _ in range(20):
        rows = [
            (float(random.choice([0, 1, 3, 7])), int(random.integers(5)), int(random.integers(3)))
            for _ in range(6)
        ]
        problem = problem_of(rows, k=2)
        answer = local_exceptions.solve(problem, most=3, steps=ATTEMPTS)
        above.append(answer.loss * problem.unit / least_with_exceptions(rows, 2, 3) - 1)
        n_best += above[-1] < 1e-6
    assert n_best >= 8 and np.mean(above) < 0.2


def many(n=500, **more):
    random = np.random.default_rng(3)
    return AnonymizeProblem.build(
        [
            NumericColumn(name="age", values=np.floor(random.gamma(4.0, 9.0, n))),
            SetColumn(name="job", codes=np.minimum(random.geometric(0.3, n) - 1, 9), n_labels=10),
            TreeColumn(name="tree", codes=random.integers(0, 5, n), ancestors=LEVELS),
        ],
        **{"k": 5, **more},
    )


def test_more_exceptions_lose_less_and_the_same_steps_give_the_same_answer():
    problem, losses = many(), []
    for most in (0, 10, 50, 150):
        answer = local_exceptions.solve(problem, most=most, steps=3)
        check(problem, answer, most)
        losses.append(answer.loss)
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.7 * losses[0]
    again = local_exceptions.solve(problem, most=150, steps=3)
    assert (again.labels == answer.labels).all()


def test_classes_of_exceptions_meet_l_too_and_may_leave_records_out():
    ill = np.random.default_rng(8).integers(0, 3, 500)
    problem = many(sensitive=[Sensitive(name="ill", codes=ill, n_values=3, l=3)], max_suppressed=5)
    answer = local_exceptions.solve(problem, most=100, steps=2)
    assert 0 < answer.is_exception.sum() < len(answer.sizes) and answer.n_suppressed <= 5
    for c in range(len(answer.sizes)):
        members = problem.rows[answer.labels == c]
        assert len(members) >= 5 and len(np.unique(ill[members])) == 3


def test_exceptions_too_few_for_a_class_take_others_with_them():
    ages = np.array([1.0] * 4 + [2.0] * 6 + [50.0])
    problem = AnonymizeProblem.build([NumericColumn(name="age", values=ages)], k=4)
    space = replace(RecodingSpace.of(problem), max_out=7)
    finest = (np.arange(3),)
    assert sorted(ages[problem.rows[exceptional(space, finest)]].tolist()) == [1.0] * 4 + [50.0]
    assert exceptional(replace(space, max_out=4), finest) is None
    answer = local_exceptions.solve(problem, most=7, steps=4)
    check(problem, answer, 7)
    assert sorted(answer.sizes[answer.is_exception].tolist()) in ([5], [7])


def test_what_cannot_be_met_is_refused_and_a_clock_that_has_run_out_leaves_an_answer():
    ill = np.zeros(500, np.int64)
    with pytest.raises(InfeasibleError, match="no recoding of these records"):
        local_exceptions.solve(
            many(sensitive=[Sensitive(name="ill", codes=ill, n_values=2, l=2)]), most=20, steps=1
        )
    watch = Watch(seconds=1e-6)
    problem = many()
    check(problem, local_exceptions.solve(problem, watch, most=50), 50)
