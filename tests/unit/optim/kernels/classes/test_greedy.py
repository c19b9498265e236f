"""The tree search against plain scans: the same classes, record by record."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn, SetColumn, TreeColumn
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.greedy import assign_leftovers_inplace, greedy_labels
from louver.optim.kernels.classes.record_tree import ARITY, LEAF
from mixed_records import GOING
from oracles.plain_greedy import interval_spreads, plain_labels

LARGE = LEAF * ARITY * 2 + 37
"""Enough records for a tree of three levels, whose last leaf is not full."""


def numbers(n, seed, n_values):
    """Clustered columns with many ties."""
    random = np.random.default_rng(seed)
    return np.column_stack(
        [random.integers(0, n_values, n), random.integers(0, 7, n), random.geometric(0.3, n)]
    )


@pytest.mark.parametrize("farthest_first", [False, True])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (31, 3), (32, 3), (33, 5), (600, 4), (LARGE, 3), (LARGE, 50)])
def test_tree_search_equals_plain_scan(n, k, farthest_first):
    values = numbers(n, n + k, 40).astype(float)
    problem = AnonymizeProblem.build([NumericColumn(name=str(j), values=values[:, j]) for j in range(3)], k=k)
    expected = plain_labels(n, k, interval_spreads(problem.codes), farthest_first=farthest_first)
    assert (
        greedy_labels(problem.geometry, problem.codes, k, farthest_first, GOING).tolist() == expected.tolist()
    )


@pytest.mark.parametrize("farthest_first", [False, True])
@pytest.mark.parametrize("has_missing", [False, True])
def test_tree_search_equals_plain_scan_for_all_kinds_of_columns(farthest_first, has_missing):
    n, k = 700, 4
    codes = numbers(n, 5, 70)
    number = codes[:, 2].astype(float)
    sets, leaves = codes[:, 0].copy(), codes[:, 1].copy()
    if has_missing:
        number[::11], sets[::13], leaves[::7] = np.nan, -1, -1
    ancestors = [np.arange(7), np.array([0, 0, 1, 1, 1, 2, 2]), np.zeros(7, int)]
    columns = [
        NumericColumn(name="gapped", values=number),
        NumericColumn(name="open", values=number, missing_matches=True),
        SetColumn(name="set", codes=sets, n_labels=70),
        TreeColumn(name="tree", codes=leaves, ancestors=ancestors),
    ]
    problem = AnonymizeProblem.build(columns, k=k)

    def spreads(candidates, members):
        return np.array([problem.class_loss([*members, int(c)]) // (len(members) + 1) for c in candidates])

    # Every ninth record, so that the plain scan does not take long.
    part = problem.part(np.arange(0, n, 9))
    expected = plain_labels(
        part.n_records, k, lambda c, m: spreads(c * 9, [9 * i for i in m]), farthest_first=farthest_first
    )
    assert greedy_labels(part.geometry, part.codes, k, farthest_first, GOING).tolist() == expected.tolist()


def test_leftovers_go_where_the_loss_rises_least_or_the_enlarged_class_is_cheapest():
    problem = AnonymizeProblem.build([NumericColumn(name="x", values=np.array([0.0, 0, 10, 12, 21]))], k=2)
    by_increment, by_total = np.array([0, 0, -1, 1, 1]), np.array([0, 0, -1, 1, 1])
    assign_leftovers_inplace(problem.geometry, problem.codes, by_increment, 2, True)
    assign_leftovers_inplace(problem.geometry, problem.codes, by_total, 2, False)
    assert by_increment[2] == 1  # 3 x 11 - 2 x 9 against 3 x 10
    assert by_total[2] == 0  # 3 x 11 against 3 x 10
