"""Liang & Samavi (2020): Tables 1, 2, 4, 5, 6 and 7, with the corrections of ERRATA K1, K2 and K4."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn
from louver.anonymize.methods import exact, greedy, split_carry
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.problem import AnonymizeProblem

# Table 1(a): age, sex (F 0, M 1), zip code.
HEALTH = [
    (37, 0, 22071),
    (35, 0, 22098),
    (36, 0, 23061),
    (61, 1, 55107),
    (63, 1, 55099),
    (66, 1, 55324),
    (63, 1, 55229),
]

# Table 2(a): AGE, SEX, INJ_SEV, DRINKING of 20 people from FARS.
CRASHES = [
    (64, 2, 4, 0),
    (29, 1, 0, 0),
    (42, 2, 0, 0),
    (41, 2, 4, 1),
    (53, 1, 2, 1),
    (59, 1, 4, 0),
    (49, 1, 4, 0),
    (59, 1, 2, 0),
    (80, 1, 4, 0),
    (50, 1, 4, 0),
    (64, 1, 3, 0),
    (55, 1, 0, 0),
    (25, 1, 0, 0),
    (42, 1, 4, 0),
    (33, 1, 2, 0),
    (31, 2, 2, 0),
    (68, 1, 3, 0),
    (20, 2, 4, 0),
    (40, 1, 4, 1),
    (18, 1, 4, 0),
]

TABLE_2B = [12, 1, 11, 14, 7, 10, 16, 19, 13, 6, 9, 5, 8, 2, 15, 17, 0, 4, 18, 3]


def problem_of(rows, k, weights=None):
    values = np.array(rows, float)
    weights = weights or [1.0] * values.shape[1]
    return AnonymizeProblem.build(
        [NumericColumn(name=str(j), values=values[:, j], weight=w) for j, w in enumerate(weights)], k=k
    )


def classes_of(problem, partition):
    return {frozenset(problem.rows[members].tolist()) for members in partition.classes()}


def regions_of(rows, problem, partition):
    """Published intervals of each source row."""
    values = np.array(rows)
    regions = {}
    for members in partition.classes():
        inside = values[problem.rows[members]]
        for row in problem.rows[members].tolist():
            regions[row] = list(zip(inside.min(axis=0).tolist(), inside.max(axis=0).tolist(), strict=True))
    return regions


@pytest.fixture
def crashes():
    return problem_of(CRASHES, 3)


def test_table_1_optimum():
    problem = problem_of(HEALTH, 3)
    partition = exact.solve(problem)
    assert problem.information_loss(partition) == pytest.approx(0.9551, abs=5e-5)
    women = [(35, 37), (0, 0), (22071, 23061)]
    men = [(61, 66), (1, 1), (55099, 55324)]
    regions = regions_of(HEALTH, problem, partition)
    assert [regions[row] for row in range(7)] == [women] * 3 + [men] * 4


def test_table_2b_order_by_raw_variance(crashes):
    assert crashes.rows.tolist() == TABLE_2B


def test_initial_solution_of_appendix_c(crashes):
    # K2: the last two classes as corrected there.
    partition = sorted_method.initial(crashes)
    expected = [[12, 1, 11], [14, 7, 10], [16, 19, 13], [6, 9, 5], [8, 2, 15], [17, 0, 4, 18, 3]]
    assert [crashes.rows[members].tolist() for members in partition.classes()] == expected


def test_table_4b_equal_weights(crashes):
    partition = exact.solve(crashes)
    assert crashes.information_loss(partition) == pytest.approx(19.2661, abs=5e-5)
    assert classes_of(crashes, partition) == {
        frozenset(c)
        for c in ([0, 2, 15, 17], [1, 11, 12], [3, 4, 18], [5, 6, 8, 9], [7, 10, 16], [13, 14, 19])
    }
    regions = regions_of(CRASHES, crashes, partition)
    assert regions[0] == [(20, 64), (2, 2), (0, 4), (0, 0)]
    assert regions[3] == [(40, 53), (1, 2), (2, 4), (1, 1)]


def test_table_4c_unequal_weights():
    problem = problem_of(CRASHES, 3, [0.8, 0.05, 0.1, 0.05])
    partition = exact.solve(problem)
    assert problem.information_loss(partition) == pytest.approx(4.1145, abs=5e-5)
    regions = regions_of(CRASHES, problem, partition)
    assert regions[0] == [(64, 80), (1, 2), (3, 4), (0, 0)]
    assert regions[19] == [(18, 25), (1, 2), (0, 4), (0, 0)]
    assert classes_of(problem, partition) == {
        frozenset(c)
        for c in ([0, 8, 10, 16], [1, 14, 15], [2, 3, 13, 18], [4, 6, 9], [5, 7, 11], [12, 17, 19])
    }


def test_tables_5_and_6_subproblems_of_split_and_carry(crashes):
    first = crashes.part(np.arange(9))
    solved = exact.solve(first)
    assert first.information_loss(solved) == pytest.approx(5.2984, abs=5e-5)
    assert classes_of(first, solved) == {
        frozenset([12, 1, 11]),
        frozenset([14, 19, 13]),
        frozenset([7, 10, 16]),
    }
    second = crashes.part(np.arange(3, 20))  # [14, 7, 10, 16, 19, 13] are carried
    solved = exact.solve(second)
    assert second.information_loss(solved) == pytest.approx(17.8145, abs=5e-5)


def test_split_and_carry_ends_with_the_optimum(crashes):
    partition = split_carry.solve(crashes, n_sets=3)
    assert partition.subproblem_sizes == (9, 17)
    assert crashes.information_loss(partition) == pytest.approx(19.2661, abs=5e-5)


def test_table_7_steps_of_greedy_search(crashes):
    partition = greedy.solve(crashes, published_leftovers=True)
    assert crashes.information_loss(partition) == pytest.approx(28.508, abs=5e-4)
    assert classes_of(crashes, partition) == {
        frozenset(c)
        for c in ([12, 1, 11], [14, 7, 10, 4], [16, 5, 9], [19, 13, 6, 18], [8, 0, 17], [2, 15, 3])
    }


def test_leftovers_by_increment_lose_less_than_table_7(crashes):
    # K4: record 18 goes to [14, 7, 10, 4].
    assert crashes.information_loss(greedy.solve(crashes)) == pytest.approx(27.008, abs=5e-4)
