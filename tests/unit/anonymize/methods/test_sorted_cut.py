"""The best cut of the sorted order."""

from __future__ import annotations

import numpy as np

from louver.anonymize.columns import NumericColumn
from louver.anonymize.methods import sorted_cut as sorted_method
from louver.anonymize.problem import AnonymizeProblem
from small_people import problem_of, random_columns


def test_the_best_cut_beats_every_k_records():
    problem = problem_of(*random_columns(100, 2), k=4)
    assert sorted_method.solve(problem).loss <= sorted_method.initial(problem).loss


def test_columns_with_the_same_values_are_a_tie_in_any_order_of_the_rows():
    """Their variances are sums of floating-point numbers, which depend on the order in which they are added up."""
    random = np.random.default_rng(5)
    first = random.random(40) * 10.0 ** random.integers(-3, 4, 40)
    second = random.permutation(first)
    variances, losses = set(), set()
    for _ in range(40):
        order = random.permutation(40)
        columns = [
            NumericColumn(name=name, values=values[order]) for name, values in (("a", first), ("b", second))
        ]
        variances.add(float(first[order].var()))
        problem = AnonymizeProblem.build(columns, k=3)
        labels = np.empty(40, np.int64)
        labels[order[problem.rows]] = sorted_method.solve(problem).labels
        losses.add(labels.tobytes())
    assert len(variances) > 1 and len(losses) == 1
