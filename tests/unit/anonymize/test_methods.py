"""Methods on awkward shapes, their limits, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn
from louver.anonymize.methods import exact, freeform, greedy, k_member, mondrian, repair, split_carry
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.methods.split_carry import Carry
from louver.anonymize.problem import Problem
from louver.anonymize.requirements import Sensitive
from louver.anonymize.watch import Watch
from louver.errors import InfeasibleError, InputError
from louver.optim.status import Status

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


def problem_of(*columns, k, **more):
    named = [NumericColumn(name=str(j), values=np.array(c, float)) for j, c in enumerate(columns)]
    return Problem.build(named, k=k, **more)


def random_columns(n, m, seed=1):
    random = np.random.default_rng(seed)
    return [random.integers(0, 30, n) for _ in range(m)]


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


def test_a_limit_gives_a_bound_and_is_never_called_optimal():
    problem = problem_of(*random_columns(80, 4), k=5)
    cut_short = exact.solve(problem, max_nodes=60_000)
    assert cut_short.status is Status.FEASIBLE
    assert cut_short.lower_bound is not None
    assert 0 < cut_short.lower_bound < cut_short.loss
    assert cut_short.gap == pytest.approx(cut_short.loss / cut_short.lower_bound - 1)
    at_once = exact.solve(problem, max_nodes=0)
    assert at_once.status is Status.FEASIBLE
    assert at_once.lower_bound is None
    assert cut_short.loss <= at_once.loss


def test_bounds_under_a_limit_lie_below_the_optimum():
    problem = problem_of(*random_columns(24, 3), k=4)
    optimum = exact.solve(problem).loss
    for max_nodes in (300, 1000, 3000, 10_000):
        partition = exact.solve(problem, max_nodes=max_nodes)
        assert partition.loss >= optimum
        assert partition.lower_bound is None or partition.lower_bound <= optimum


def test_no_time_gives_the_first_partition():
    problem = problem_of(*random_columns(60, 3), k=3)
    partition = exact.solve(problem, Watch(seconds=0.0))
    assert partition.status is Status.FEASIBLE
    assert partition.sizes.min() >= 3


def test_split_and_carry_reports_sizes_within_lemma_2():
    k, n_sets = 3, 3
    problem = problem_of(*random_columns(200, 3), k=k)
    watch = Watch()
    partition = split_carry.solve(problem, watch, n_sets=n_sets)
    # The last sub-problem also takes the records beyond a multiple of k.
    assert max(partition.subproblem_sizes) <= k * (2 * k - 1 + n_sets) + k - 1
    assert len(partition.subproblem_sizes) == -(-(200 // k) // n_sets)
    assert watch.share == 1.0


def test_split_and_carry_without_time_still_covers_every_record():
    problem = problem_of(*random_columns(100, 3), k=4)
    partition = split_carry.solve(problem, Watch(seconds=0.0), subproblem_seconds=1.0)
    assert partition.sizes.min() >= 4
    assert partition.sizes.sum() == 100


def test_bubble_carry_keeps_its_size():
    problem = problem_of(*random_columns(100, 3), k=3)
    partition = split_carry.solve(problem, carry=Carry.BUBBLE, size=12, accepted=2)
    assert set(partition.subproblem_sizes[:-1]) == {12}


def test_the_best_cut_beats_every_k_records():
    problem = problem_of(*random_columns(100, 2), k=4)
    assert sorted_method.solve(problem).loss <= sorted_method.initial(problem).loss


def test_mondrian_keeps_equal_values_together_only_when_strict():
    values = [1, 1, 1, 1, 1, 2, 3]
    strict, relaxed = (mondrian.solve(problem_of(values, k=2), is_strict=s) for s in (True, False))
    assert strict.sizes.tolist() == [5, 2]
    assert relaxed.n_classes == 3


@pytest.mark.parametrize("solve", METHODS)
def test_more_distinct_values_than_there_are_cannot_be_had(solve):
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=3, l=3)
    with pytest.raises(InfeasibleError):
        solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive]))


def test_infeasible_even_with_records_left_out():
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=3, l=3)
    with pytest.raises(InfeasibleError):
        exact.solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive], max_suppressed=1))


def test_an_outlier_is_left_out_where_that_saves_more_than_it_costs():
    problem = problem_of([0, 0, 0, 0, 100], k=2, max_suppressed=1)
    labels = repair.repaired(problem, np.zeros(5, int), Watch())
    assert problem.rows[labels < 0].tolist() == [4]


def test_a_plain_problem_needs_no_repair():
    labels = np.array([0, 0, 1, 1])
    assert repair.repaired(problem_of([1, 2, 3, 4], k=2), labels, Watch()) is labels


def test_freeform_refuses_requirements_and_too_many_records(monkeypatch):
    sensitive = Sensitive(name="s", codes=np.array([0, 1, 0, 1]), n_values=2, l=2)
    with pytest.raises(InputError) as caught:
        freeform.solve(problem_of([1, 2, 3, 4], k=2, sensitive=[sensitive]))
    assert caught.value.option == "--method"
    monkeypatch.setattr(freeform, "MAX_RECORDS", 3)
    with pytest.raises(InputError, match="at most 3 records"):
        freeform.solve(problem_of([1, 2, 3, 4], k=2))


def test_freeform_where_every_record_must_match_every_other():
    problem = problem_of([1, 2, 4, 8], k=4)
    for matching in freeform.Matching:
        found = freeform.solve(problem, matching=matching)
        assert sorted(found.matches[2].tolist()) == [0, 1, 2, 3]
        assert problem.information_loss(found) == pytest.approx(4.0)
