"""Uniting classes against a plain search that counts everything anew; what happens once the time is up."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.publishable import WINDOW, unite_inplace
from mixed_records import GOING, STOPPED

ANCESTORS = (np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 0, 1, 1, 1, 1, 0, 1]), np.zeros(8, int))
ASKED = {
    "distinct": {"l": 3},
    "entropy": {"l": 2.5, "l_kind": LKind.ENTROPY},
    "recursive": {"l": 2, "l_kind": LKind.RECURSIVE, "c": 1.6},
    "equal": {"t": 0.4},
    "ordered": {"t": 0.2, "distance": Distance.ORDERED},
    "hierarchical": {"t": 0.3, "distance": Distance.HIERARCHICAL, "ancestors": ANCESTORS},
}


def problem_of(names, seed, n=48, max_suppressed=0, n_values=8, is_known=1.0):
    random = np.random.default_rng(seed)
    sensitive = [
        Sensitive(
            name=name,
            codes=np.where(
                random.random(n) < is_known,
                random.choice(n_values, n, p=random.dirichlet(np.ones(n_values))),
                -1,
            ),
            n_values=n_values,
            **ASKED[name],
        )
        for name in names
    ]
    columns = [NumericColumn(name=str(j), values=random.integers(0, 50, n).astype(float)) for j in range(2)]
    return AnonymizeProblem.build(columns, k=3, sensitive=sensitive, max_suppressed=max_suppressed)


def plainly_united(problem, labels, n_classes):
    classes = {c: np.flatnonzero(labels == c) for c in range(n_classes)}
    spare = problem.max_suppressed
    for c in range(n_classes):
        while c in classes and not problem.is_allowed(classes[c]):
            unions = {d: np.append(classes[c], classes[d]) for d in classes if d != c}
            loss = {d: problem.class_loss(members) for d, members in classes.items()}
            cost = {d: problem.class_loss(union) - loss[c] - loss[d] for d, union in unions.items()}
            allowed = [d for d in unions if problem.is_allowed(unions[d])]
            partner = min(allowed or unions, key=lambda d: cost[d], default=None)
            out = len(classes[c]) * problem.full_loss - loss[c]
            if len(classes[c]) <= spare and (partner is None or out < cost[partner]):
                spare -= len(classes.pop(c))
            elif partner is None:
                return None
            else:
                classes[c] = unions[partner]
                del classes[partner]
    united = np.full(problem.n_records, -1)
    for c, members in classes.items():
        united[members] = c
    return united


def unite(problem, labels, stop):
    labels = labels.copy()
    n_failing = unite_inplace(
        problem.geometry,
        problem.requirements,
        problem.codes,
        labels,
        int(labels.max()) + 1,
        problem.least_size,
        problem.max_suppressed,
        stop,
    )
    return n_failing, labels


@pytest.mark.parametrize("max_suppressed", [0, 4])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("names", [[name] for name in ASKED] + [list(ASKED)])
def test_uniting_equals_a_plain_search(names, seed, max_suppressed):
    problem = problem_of(names, seed, max_suppressed=max_suppressed)
    labels = np.random.default_rng(seed).permutation(np.arange(48) // 3)
    n_failing, found = unite(problem, labels, GOING)
    expected = plainly_united(problem, labels, 16)
    assert n_failing == (expected is None)
    if expected is not None:
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("names", [[name] for name in ASKED] + [list(ASKED)])
def test_records_without_a_value_are_in_no_run(names):
    problem = problem_of(names, 2, is_known=0.7)
    labels = np.random.default_rng(2).permutation(np.arange(48) // 3)
    n_failing, found = unite(problem, labels, GOING)
    expected = plainly_united(problem, labels, 16)
    assert n_failing == (expected is None)
    if expected is not None:
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["equal", "ordered"])
def test_many_values_are_united_as_plainly(name):
    problem = problem_of([name], 3, n_values=90)
    labels = np.arange(48) // 3
    assert unite(problem, labels, GOING)[1].tolist() == plainly_united(problem, labels, 16).tolist()


@pytest.mark.parametrize("names", [[name] for name in ASKED])
def test_without_time_the_next_class_is_the_partner(names):
    problem = problem_of(names, 1)
    n_failing, found = unite(problem, np.arange(48) // 3, STOPPED)
    assert n_failing == 0
    for c in np.unique(found):
        assert problem.is_allowed(np.flatnonzero(found == c))


@pytest.mark.long
@pytest.mark.parametrize("stop", [GOING, STOPPED])
def test_a_partner_is_found_beyond_the_window(stop):
    """All but the last two records are alike, so that everything must become one class."""
    n = 2 * (WINDOW + 200)
    codes = np.append(np.zeros(n - 2, int), [1, 2])
    columns = [NumericColumn(name="x", values=np.arange(n, dtype=float))]
    problem = AnonymizeProblem.build(
        columns, k=2, sensitive=[Sensitive(name="s", codes=codes, n_values=3, l=3)]
    )
    n_failing, found = unite(problem, np.arange(n) // 2, stop)
    assert n_failing == 0 and (found == found[0]).all()
