"""Runs of sorted integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver.optim.kernels.semigroups.progressions import append_runs, compressed, gcd, grown, put_run_inplace
from oracles.knapsack import expanded, fewest_runs

ascending = st.sets(st.integers(0, 40), max_size=14).map(sorted)


def empty_runs(n_items):
    return np.empty((1, 3), dtype=np.int64), np.zeros((n_items + 1, 2), dtype=np.int64)


@given(ascending)
def test_compressed_lists_every_value_in_the_fewest_runs(values):
    runs = compressed(np.array(values, dtype=np.int64)).tolist()
    assert expanded(runs) == values
    assert len(runs) == fewest_runs(values)
    assert all(step == 1 for start, stop, step in runs if start == stop)
    assert all(step > 0 and start <= stop for start, stop, step in runs)


@given(
    first=st.integers(0, 9), step=st.integers(1, 5), count=st.integers(0, 6), gaps=st.lists(st.integers(1, 6))
)
def test_a_progression_before_the_values_joins_them(first, step, count, gaps):
    head = [first + k * step for k in range(count)]
    last = head[-1] if head else first
    tail = (last + np.cumsum(gaps, dtype=np.int64)).astype(np.int64)
    runs, span = empty_runs(1)
    runs = append_runs(runs, span, 0, tail, first, step, count)[: span[0, 1]].tolist()
    assert expanded(runs) == [*head, *tail.tolist()]
    assert len(runs) == fewest_runs([*head, *tail.tolist()])


def test_runs_of_items_stand_one_behind_the_other():
    runs, span = empty_runs(3)
    runs = append_runs(runs, span, 1, np.array([1, 2, 3, 7]), 0, 1, 0)
    runs = grown(runs, 2, 3)
    put_run_inplace(runs, span, 0, 5, 5, 4)
    runs = append_runs(runs, span, 2, np.array([], dtype=np.int64), 0, 1, 0)
    assert span[:-1].tolist() == [[2, 3], [0, 2], [3, 3]]
    assert runs[: span[-1, 1]].tolist() == [[1, 3, 1], [7, 7, 1], [5, 5, 1]]


def test_grown_keeps_what_is_used_and_makes_room():
    rows = np.arange(6).reshape(2, 3)
    assert grown(rows, 1, 2) is not None and len(grown(rows, 1, 2)) == 2
    larger = grown(rows, 2, 7)
    assert len(larger) == 7
    assert larger[:2].tolist() == rows.tolist()


@pytest.mark.parametrize(("a", "b", "expected"), [(0, 5, 5), (5, 0, 5), (12, 18, 6), (7, 9, 1), (4, 4, 4)])
def test_gcd(a, b, expected):
    assert gcd(a, b) == expected
