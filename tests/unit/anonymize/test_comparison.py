"""Distributions before and after."""

from __future__ import annotations

import pyarrow as pa
import pytest

import louver as lv


def test_before_and_after() -> None:
    """Ages 1 and 2 become 1-2: half of each. Town stays, so only the association is blurred."""
    table = pa.table({"age": [1, 1, 2, 2], "town": ["a", "a", "b", "b"]})
    release = lv.anonymize(table, quasi=["age", "town"], k=4, method="sorted")
    age, town = release.comparison.distributions
    assert age.bins == ("1", "2") and age.before == age.after == (0.5, 0.5) and age.distance == 0
    assert town.after == (0.5, 0.5)
    (line,) = release.comparison.associations
    assert (line.before, line.after) == (pytest.approx(1), pytest.approx(0))
    untouched = lv.anonymize(table, quasi=["age", "town"], k=2, method="exact").comparison
    assert untouched.associations[0].after == pytest.approx(1)


def test_distribution_of_missing_and_fractional_values() -> None:
    table = pa.table({"x": pa.array([0.5, 0.5, None, 2.5], pa.float64())})
    release = lv.anonymize(table, quasi=["x"], k=2, method="sorted")
    (line,) = release.comparison.distributions
    assert line.bins[-1] == "(missing)" and line.before[-1] == 0.25
    assert sum(line.after) == pytest.approx(1)
    assert line.after[0] == pytest.approx(0.5 + 0.5 / len(line.bins))


def test_a_distribution_that_moves() -> None:
    table = pa.table({"town": ["a"] * 3 + ["b"]})
    (line,) = lv.anonymize(table, quasi=["town"], k=4, method="sorted").comparison.distributions
    assert line.after == (0.5, 0.5) and line.distance == pytest.approx(0.25)
