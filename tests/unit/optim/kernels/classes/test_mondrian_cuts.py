"""The nearest allowable cut against trying every cut, for all that may be asked of the parts."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Distance, LKind, NumericColumn, Sensitive
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.mondrian import mondrian_labels, nearest_cut
from mixed_records import GOING, STOPPED

ANCESTORS = (np.array([0, 0, 1, 1, 2]), np.zeros(5, int))
ASKED = [
    {"l": 3},
    {"l": 2.2, "l_kind": LKind.ENTROPY},
    {"t": 0.3},
    {"t": 0.15},
    {"t": 0.12, "distance": Distance.ORDERED},
    {"t": 0.2, "distance": Distance.HIERARCHICAL, "ancestors": ANCESTORS},
]


def problem_of(asked, seed, matches=0, n=40):
    random = np.random.default_rng(seed)
    population = 60 if matches else 0
    values = random.integers(0, 25, n + population).astype(float)
    # Sensitive values hang together with the column that is cut.
    codes = np.minimum(4, (values[:n] / 25 * 5 * random.random(n)).astype(int))
    sensitive = [Sensitive(name="s", codes=codes, n_values=5, **asked)] if asked else []
    return AnonymizeProblem.build(
        [NumericColumn(name="x", values=values, n_sample=n)],
        k=matches or 4,
        sensitive=sensitive,
        population=np.ones(population, np.int64) if matches else None,
    )


def plain_cut(problem, is_strict):
    n, codes = problem.n_records, problem.codes[:, 0]
    for step in range(n):
        for cut in dict.fromkeys((n // 2 - step, n // 2 + step)):
            if not 0 < cut < n or (is_strict and codes[cut - 1] == codes[cut]):
                continue
            if problem.is_allowed(np.arange(cut)) and problem.is_allowed(np.arange(cut, n)):
                return cut
    return 0


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize("n", [40, 41])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("asked", "matches"), [*((asked, 0) for asked in ASKED), ({}, 0), ({}, 9), ({"l": 3}, 25)]
)
def test_the_nearest_cut_equals_that_of_trying_all(asked, matches, seed, n, is_strict):
    problem = problem_of(asked, seed, matches, n)
    found = nearest_cut(
        problem.geometry,
        problem.requirements,
        problem.codes,
        np.arange(problem.n_records),
        0,
        problem.least_size,
        is_strict,
        GOING,
    )
    assert found == plain_cut(problem, is_strict)


def test_without_time_nothing_is_cut():
    problem = problem_of({}, 1)
    labels = mondrian_labels(
        problem.geometry, problem.requirements, problem.codes, problem.least_size, True, STOPPED
    )
    assert not labels.any()
