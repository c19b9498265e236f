"""Uniting classes and leaving records out, against plain scans."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Sensitive
from louver.optim.kernels.classes.publishable import suppress_inplace, unite_inplace
from mixed_records import GOING, mixed_problem

N = 16


def problem_of(seed, *, n_values=4, least_distinct=2, **more):
    values = np.random.default_rng(seed).integers(0, n_values, N)
    sensitive = Sensitive(name="s", codes=values, n_values=n_values, l=least_distinct)
    problem = mixed_problem(N, seed, sensitive=(sensitive,), **more)
    return problem, values[problem.rows]


def united(problem, of_record, labels, k, least_distinct):
    """Class after class: while it may not be published, unite it with the cheapest, those that make it diverse first."""
    classes = [np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1)]

    def is_diverse(members):
        return len({of_record[i] for i in members}) >= least_distinct

    for c in range(len(classes)):
        while classes[c] and not (len(classes[c]) >= k and is_diverse(classes[c])):
            costs = {
                d: problem.class_loss(sorted(classes[c] + classes[d]))
                - problem.class_loss(sorted(classes[c]))
                - problem.class_loss(sorted(classes[d]))
                for d in range(len(classes))
                if d != c and classes[d]
            }
            good = {
                d for d in costs if len(together := classes[c] + classes[d]) >= k and is_diverse(together)
            }
            if not costs:
                return classes, 1
            partner = min(good or costs, key=lambda d: (costs[d], d))
            classes[c], classes[partner] = classes[c] + classes[partner], []
    return classes, 0


@pytest.mark.parametrize("seed", range(6))
def test_uniting_equals_a_plain_scan(seed):
    problem, of_record = problem_of(seed)
    labels = np.random.default_rng(seed + 9).integers(0, 6, N)
    labels[:6] = np.arange(6)
    expected, n_failing = united(problem, of_record, labels, 3, 2)
    assert (
        unite_inplace(problem.geometry, problem.requirements, problem.codes, labels, 6, 3, 0, GOING)
        == n_failing
    )
    found = {frozenset(np.flatnonzero(labels == c).tolist()) for c in np.unique(labels)}
    assert found == {frozenset(members) for members in expected if members}


def test_what_cannot_be_met_is_said_and_a_class_may_be_left_out_instead():
    problem, _ = problem_of(1, n_values=4, least_distinct=5)
    labels = np.arange(N) // 4
    assert unite_inplace(problem.geometry, problem.requirements, problem.codes, labels, 4, 3, 0, GOING) == 1
    assert len(set(labels.tolist())) == 1
    labels = np.arange(N) // 4
    assert unite_inplace(problem.geometry, problem.requirements, problem.codes, labels, 4, 3, N, GOING) == 0
    assert (labels == -1).all()


def left_out(problem, labels, k, most):
    """The record whose absence saves most beyond its own loss, again and again."""
    labels = labels.copy()
    for _ in range(most):
        gains = {}
        for i in np.flatnonzero(labels >= 0):
            members = np.flatnonzero(labels == labels[i]).tolist()
            rest = [j for j in members if j != i]
            if len(rest) >= k:
                gains[i] = problem.class_loss(members) - problem.class_loss(rest) - problem.full_loss
        best = max(gains, key=lambda i: (gains[i], -i), default=None)
        if best is None or gains[best] <= 0:
            break
        labels[best] = -1
    return labels


@pytest.mark.parametrize("most", [0, 1, 3, N])
@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_equals_a_plain_scan(seed, most):
    problem = mixed_problem(N, seed)
    labels = np.random.default_rng(seed).integers(0, 3, N)
    labels[:3] = np.arange(3)
    expected = left_out(problem, labels, 3, most)
    n_done = suppress_inplace(
        problem.geometry, problem.requirements, problem.codes, labels, 3, 3, most, GOING
    )
    assert labels.tolist() == expected.tolist()
    assert n_done == (expected < 0).sum()
