"""The coded problem: what it refuses, how it codes and sorts, and what its answers say."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import TOTAL_UNITS, NumericColumn, SetColumn, TreeColumn
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.errors import InputError
from louver.optim.status import Status


def number(values, **more):
    return NumericColumn(name="x", values=np.array(values, float), **more)


@pytest.mark.parametrize(
    ("columns", "k", "option"),
    [
        ([], 2, "--quasi"),
        ([number([1, 2], weight=-1.0)], 2, "--weights"),
        ([number([1, 2], weight=0.0)], 2, "--weights"),
        ([number([1, 2], weight=float("nan"))], 2, "--weights"),
        ([number([1, 2])], 0, "-k"),
        ([number([1, 2])], 3, "-k"),
    ],
)
def test_what_is_refused(columns, k, option):
    with pytest.raises(InputError) as caught:
        AnonymizeProblem.build(columns, k=k)
    assert caught.value.option == option


def test_values_outside_a_given_range_are_refused_without_being_quoted():
    with pytest.raises(InputError) as caught:
        AnonymizeProblem.build([number([1, 4242], lower=0, upper=10)], k=1)
    assert caught.value.column == "x"
    assert "4242" not in str(caught.value)


def test_given_range_takes_the_place_of_the_tables_own():
    problem = AnonymizeProblem.build([number([2, 4], lower=0, upper=10)], k=2)
    assert problem.information_loss(problem.partition(np.zeros(2, int), method="all")) == pytest.approx(0.4)


def test_a_full_record_loses_all_units():
    columns = [number([1, 2, 5]), number([3, 3, 4], weight=3.0)]
    problem = AnonymizeProblem.build(columns, k=1)
    assert abs(problem.full_loss - TOTAL_UNITS) <= 2
    assert problem.full_loss * problem.unit == pytest.approx(4.0)


def test_zero_weight_sorts_last_and_costs_nothing():
    first = number([1, 0, 1, 0])
    free = NumericColumn(name="free", values=np.array([9.0, 8, 7, 6]), weight=0.0)
    problem = AnonymizeProblem.build([free, first], k=2)
    assert problem.rows.tolist() == [3, 1, 2, 0]
    assert problem.class_loss([0, 1]) == 0
    assert problem.class_loss([0, 3]) == 2 * TOTAL_UNITS


def test_equal_records_are_one_point():
    problem = AnonymizeProblem.build([number([5, 1, 5, 1, 1])], k=1)
    points = problem.points()
    assert points.multiplicity.tolist() == [3, 2]
    assert points.of_record.tolist() == [0, 0, 0, 1, 1]
    assert (points.codes[points.of_record] == problem.codes).all()


def test_missing_numbers_are_a_category_of_their_own_or_match_anything():
    values = [1, 3, float("nan"), float("nan")]
    own, open_ = (AnonymizeProblem.build([number(values, missing_matches=m)], k=1) for m in (False, True))
    assert own.class_loss([0, 2]) == 2 * TOTAL_UNITS
    assert own.class_loss([2, 3]) == open_.class_loss([2, 3]) == 0
    assert open_.class_loss([0, 1, 2]) == 3 * TOTAL_UNITS
    assert open_.class_loss([0, 2]) == 0


def test_a_column_of_missing_numbers_alone_loses_nothing():
    problem = AnonymizeProblem.build(
        [number([float("nan")] * 3), SetColumn(name="s", codes=np.array([0, 1, 1]), n_labels=2)], k=3
    )
    partition = problem.partition(np.zeros(3, int), method="all")
    assert problem.column_losses(partition).tolist() == pytest.approx([0.0, 1.5])


def test_more_categories_than_bits_in_a_word():
    codes = np.arange(200)
    problem = AnonymizeProblem.build([SetColumn(name="s", codes=codes, n_labels=200)], k=200)
    partition = problem.partition(np.zeros(200, int), method="all")
    assert problem.information_loss(partition) == pytest.approx(199.0)
    assert partition.loss * problem.unit == pytest.approx(199.0, abs=1e-5)


def test_one_hot_counts_every_category_of_a_mixed_class():
    codes = np.array([0, 1, 2])
    for one_hot, expected in ((False, 3 * 2 / 3), (True, 3 * 3 / 3)):
        problem = AnonymizeProblem.build([SetColumn(name="s", codes=codes, n_labels=3, one_hot=one_hot)], k=3)
        assert problem.information_loss(problem.partition(np.zeros(3, int), method="all")) == pytest.approx(
            expected
        )


def test_tree_leaves_need_not_stand_in_depth_first_order():
    ancestors = [np.arange(4), np.array([0, 1, 0, 1]), np.zeros(4, int)]
    column = TreeColumn(name="t", codes=np.array([0, 2, 1, 3]), ancestors=ancestors)
    problem = AnonymizeProblem.build([column], k=2)
    partition = problem.partition(np.array([0, 0, 1, 1]), method="halves")
    assert problem.rows.tolist() == [0, 1, 2, 3]
    assert problem.information_loss(partition) == pytest.approx(4 * 1 / 4)


def test_classes_are_numbered_by_their_first_record():
    problem = AnonymizeProblem.build([number([1, 2, 3, 4, 5])], k=1, max_suppressed=1)
    partition = problem.partition(np.array([7, -1, 3, 7, 3]), method="given")
    assert partition.labels.tolist() == [0, -1, 1, 0, 1]
    assert [members.tolist() for members in partition.classes()] == [[0, 3], [2, 4]]
    assert partition.sizes.tolist() == [2, 2]
    assert partition.n_suppressed == 1
    with pytest.raises(ValueError, match="read-only"):
        partition.labels[0] = 5


def test_gap_is_known_only_with_a_bound():
    def gap(loss, bound):
        return Partition(labels=np.zeros(1, int), loss=loss, lower_bound=bound, method="m").gap

    assert gap(110, 100) == pytest.approx(0.1)
    assert gap(0, 0) == 0.0
    assert gap(5, 0) is None
    assert gap(5, None) is None
    assert Partition(labels=np.full(2, -1), loss=1, method="m").classes() == []
    assert Partition(labels=np.zeros(1, int), loss=1, method="m").status is Status.FEASIBLE
