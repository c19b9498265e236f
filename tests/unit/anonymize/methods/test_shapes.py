"""Every method on awkward shapes, and what none of them can give."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import Sensitive
from louver.anonymize.methods import exact, greedy, k_member, mondrian, split_carry
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.methods.split_carry import Carry
from louver.errors import InfeasibleError
from louver.optim.status import Status
from small_people import problem_of, random_columns

METHODS = [
    exact.solve,
    greedy.solve,
    k_member.solve,
    sorted_method.solve,
    sorted_method.initial,
    mondrian.solve,
    lambda p: mondrian.solve(p, is_strict=False),
    lambda p: split_carry.solve(p, n_sets=2),
    lambda p: split_carry.solve(p, n_sets=3, carry=Carry.SUBSET),
    lambda p: split_carry.solve(p, size=6, accepted=1, carry=Carry.BUBBLE),
    lambda p: split_carry.solve(p, n_sets=2, boundary=1),
]


@pytest.mark.parametrize("solve", METHODS)
@pytest.mark.parametrize(
    ("columns", "k"),
    [
        ([[7]], 1),
        ([[1, 5, 9]], 3),  # n = k
        ([[1, 5, 9, 2, 3]], 3),  # n < 2k
        ([[4] * 9, [1, 2, 3] * 3], 2),  # a constant column
        ([[4] * 8], 3),  # all equal
        ([[0, 0, 0, 100]], 2),
        ([[1, 2, 3, 4, 5, 6, 7]], 1),
    ],
)
def test_awkward_shapes(solve, columns, k):
    problem = problem_of(*columns, k=k)
    partition = solve(problem)
    assert partition.sizes.min() >= k
    assert partition.sizes.sum() == len(columns[0])
    if len({tuple(row) for row in zip(*columns, strict=True)}) == 1 or k == 1:
        assert partition.loss == 0


@pytest.mark.parametrize("solve", METHODS)
def test_no_better_than_the_optimum_on_thirty_records(solve):
    problem = problem_of(*random_columns(30, 3), k=3)
    optimum = exact.solve(problem)
    assert optimum.status is Status.OPTIMAL
    partition = solve(problem)
    assert partition.sizes.min() >= 3
    assert partition.loss >= optimum.loss


@pytest.mark.parametrize("solve", METHODS)
def test_more_distinct_values_than_there_are_cannot_be_had(solve):
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=3, l=3)
    with pytest.raises(InfeasibleError):
        solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive]))
