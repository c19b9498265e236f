"""Leaving records out, and leaving well alone."""

from __future__ import annotations

import numpy as np

from louver.anonymize.methods import method as repair
from louver.anonymize.watch import Watch
from small_people import problem_of


def test_an_outlier_is_left_out_where_that_saves_more_than_it_costs():
    problem = problem_of([0, 0, 0, 0, 100], k=2, max_suppressed=1)
    labels = repair.repaired(problem, np.zeros(5, int), Watch())
    assert problem.rows[labels < 0].tolist() == [4]


def test_a_plain_problem_needs_no_repair():
    labels = np.array([0, 0, 1, 1])
    assert repair.repaired(problem_of([1, 2, 3, 4], k=2), labels, Watch()) is labels
