"""The best cut of the sorted order."""

from __future__ import annotations

from louver.anonymize.methods import sorted_cut as sorted_method
from small_people import problem_of, random_columns


def test_the_best_cut_beats_every_k_records():
    problem = problem_of(*random_columns(100, 2), k=4)
    assert sorted_method.solve(problem).loss <= sorted_method.initial(problem).loss
