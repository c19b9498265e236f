"""Mondrian, strict and relaxed."""

from __future__ import annotations

from louver.anonymize.methods import mondrian
from small_people import problem_of


def test_mondrian_keeps_equal_values_together_only_when_strict():
    values = [1, 1, 1, 1, 1, 2, 3]
    strict, relaxed = (mondrian.solve(problem_of(values, k=2), is_strict=s) for s in (True, False))
    assert strict.sizes.tolist() == [5, 2]
    assert relaxed.n_classes == 3
