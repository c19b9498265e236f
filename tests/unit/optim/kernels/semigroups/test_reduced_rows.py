"""Rows as knapsack items."""

from __future__ import annotations

from collections import Counter
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver.optim.kernels.semigroups.reduced_rows import distinct_items, reduced_rows

NO_LIMIT = 2**62
bounds = st.tuples(st.integers(0, 4), st.one_of(st.just(NO_LIMIT), st.integers(0, 9)))


@given(
    st.integers(1, 4).flatmap(
        lambda j: st.lists(st.lists(st.integers(0, 60), min_size=j, max_size=j).filter(any), max_size=6).map(
            lambda rows: np.array(rows, dtype=np.int64).reshape(len(rows), j)
        )
    )
)
def test_reduced_rows_are_rows_over_their_divisor(counts):
    reduced, row_sums = reduced_rows(counts)
    assert reduced.tolist() == [[x // gcd(*row) for x in row] for row in counts.tolist()]
    assert row_sums.tolist() == [sum(row) for row in reduced.tolist()]


def test_reducing_leaves_the_counts_alone():
    counts = np.array([[2, 4]])
    reduced_rows(counts)
    assert counts.tolist() == [[2, 4]]


@given(rows=st.lists(st.tuples(st.integers(1, 9), bounds), max_size=12), gap=st.integers(0, 60))
def test_rows_that_behave_alike_are_one_item(rows, gap):
    row_sums = np.array([r for r, _ in rows], dtype=np.int64)
    lower = np.array([low for _, (low, _) in rows], dtype=np.int64)
    upper = np.array([up for _, (_, up) in rows], dtype=np.int64)
    target, values, limits, copies, item_of = distinct_items(row_sums, lower, upper, gap)
    paid = int((row_sums * lower).sum())
    if (lower > upper).any() or paid > gap:
        assert target < 0
        assert len(values) == 0
        return
    assert target == gap - paid
    room = [
        u - low if u - low < target // r else -1 for r, low, u in zip(row_sums, lower, upper, strict=True)
    ]
    expected = Counter(zip(row_sums.tolist(), map(int, room), strict=True))
    assert dict(zip(zip(values, limits, strict=True), copies, strict=True)) == expected
    assert [(values[i], limits[i]) for i in item_of] == list(zip(row_sums, room, strict=True))
    unbounded = values[limits < 0]
    assert (limits[: len(unbounded)] < 0).all()
    assert (np.diff(unbounded) > 0).all()


def test_many_rows_with_few_sums_are_few_items():
    row_sums = np.arange(5000) % 7 + 1
    nothing, no_limit = np.zeros(5000, dtype=np.int64), np.full(5000, NO_LIMIT)
    _, values, _, copies, item_of = distinct_items(row_sums, nothing, no_limit, 10**6)
    assert values.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert copies.sum() == 5000
    assert np.array_equal(values[item_of], row_sums)


@pytest.mark.parametrize("lower", [NO_LIMIT, 2**40])
def test_lower_bounds_too_large_to_multiply_are_refused(lower):
    target, *_ = distinct_items(np.array([2**40, 1]), np.array([lower, 0]), np.full(2, NO_LIMIT), 2**50)
    assert target < 0
