"""Feasible multiples of every row, over all the ways the kernel has to find them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver.optim.kernels.semigroups.feasible_multiples import (
    FEASIBLE,
    INFEASIBLE,
    TOO_LARGE,
    feasible_multiples,
)
from oracles import knapsack
from oracles.knapsack import expanded, feasible_values_3_1, fewest_runs

NO_LIMIT = 2**62


def solve(row_sums, gap, lower=None, upper=None, wanted=None):
    n = len(row_sums)
    status, runs, span = feasible_multiples(
        np.array(row_sums, dtype=np.int64),
        np.zeros(n, dtype=np.int64) if lower is None else np.array(lower, dtype=np.int64),
        np.full(n, NO_LIMIT) if upper is None else np.array(upper, dtype=np.int64),
        gap,
        np.ones(n, dtype=bool) if wanted is None else np.array(wanted, dtype=bool),
    )
    return status, [runs[start:stop].tolist() for start, stop in span]


@st.composite
def problems(draw):
    n = draw(st.integers(1, 6))
    row_sums = draw(st.lists(st.integers(1, 10), min_size=n, max_size=n))
    lower = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    room = draw(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=n, max_size=n))
    wanted = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    if draw(st.booleans()):  # rows that are alike in everything
        row_sums, lower, room, wanted = (part + part[:3] for part in (row_sums, lower, room, wanted))
    return row_sums, draw(st.integers(0, 45)), lower, room, wanted


@given(problems())
def test_all_feasible_multiples_and_no_others(problem):
    row_sums, gap, lower, room, wanted = problem
    upper = [NO_LIMIT if more is None else low + more for low, more in zip(lower, room, strict=True)]
    status, runs = solve(row_sums, gap, lower, upper, wanted)
    target = gap - sum(r * low for r, low in zip(row_sums, lower, strict=True))
    above = (
        knapsack.feasible_multiples(list(zip(row_sums, room, strict=True)), target)
        if target >= 0
        else [[]] * len(row_sums)
    )
    expected = [[low + nu for nu in more] for low, more in zip(lower, above, strict=True)]
    assert (status == FEASIBLE) == any(expected)
    for found, values, is_wanted in zip(runs, expected, wanted, strict=True):
        if is_wanted and status == FEASIBLE:
            assert expanded(found) == values
            assert len(found) == fewest_runs(values)
        else:
            assert found == []


@given(
    row_sums=st.lists(st.integers(1, 60), min_size=1, max_size=25),
    extra=st.lists(st.integers(0, 6), min_size=25, max_size=25),
)
def test_equals_algorithm_3_1_on_larger_tables(row_sums, extra):
    gap = sum(r * k for r, k in zip(row_sums, extra, strict=False))
    status, runs = solve(row_sums, gap)
    assert status == FEASIBLE
    assert [expanded(found) for found in runs] == feasible_values_3_1(row_sums, gap)


def test_everything_at_its_limit():
    assert solve([3, 5], 16, upper=[2, 2]) == (FEASIBLE, [[[2, 2, 1]], [[2, 2, 1]]])
    assert solve([3, 5], 17, upper=[2, 2])[0] == INFEASIBLE


def test_no_rows():
    assert solve([], 0) == (FEASIBLE, [])
    assert solve([], 3) == (INFEASIBLE, [])


@pytest.mark.parametrize(
    ("row_sums", "gap", "lower", "upper"),
    [
        ([2, 4], 3, None, None),
        ([2, 4], -1, None, None),
        ([2, 3], 10, [1, 0], [0, NO_LIMIT]),
        ([2, 3], 10, [0, 4], None),
        ([2, 3], 2**40, None, [5, 5]),
    ],
    ids=["divisor", "negative gap", "crossed bounds", "lower too large", "upper too small"],
)
@pytest.mark.parametrize("wanted", [[True, True], [False, True], [False, False]])
def test_infeasible_whatever_is_wanted(row_sums, gap, lower, upper, wanted):
    assert solve(row_sums, gap, lower, upper, wanted)[0] == INFEASIBLE


@pytest.mark.parametrize(
    ("row_sums", "gap", "upper"),
    [
        ([2**25, 2**25 + 1], 2**31 - 1, None),
        ([2**30, 2**32 + 1], 2**36, None),
        ([2**22, 2**40 + 1], 2**45, None),
        ([2, 3], 2**33, [2**31, 2**31]),
        ([2, 3, 5], 2**40, [NO_LIMIT, 2**32, 2**32]),
    ],
    ids=["residues", "residues beyond bits", "sums beyond 64 bits", "bounded rows", "bounded others"],
)
def test_too_large_is_said_not_tried(row_sums, gap, upper):
    status, runs = solve(row_sums, gap, upper=upper)
    assert status == TOO_LARGE
    assert runs == [[]] * len(row_sums)


def test_one_row_takes_everything_however_much():
    assert solve([7], 7 * 10**15) == (FEASIBLE, [[[10**15, 10**15, 1]]])
    assert solve([7], 7 * 10**15 + 1)[0] == INFEASIBLE


def test_the_only_unbounded_row_among_bounded_ones_does_not_depend_on_the_gap():
    status, runs = solve([7, 3, 5], 7 * 10**15, upper=[NO_LIMIT, 4, 2])
    small_status, small_runs = solve([7, 3, 5], 7 * 10, upper=[NO_LIMIT, 4, 2])
    assert status == small_status == FEASIBLE
    assert runs[1:] == small_runs[1:]
    assert expanded(runs[0]) == [nu + 10**15 - 10 for nu in expanded(small_runs[0])]


def test_equal_rows_share_their_runs():
    _, runs, span = feasible_multiples(
        np.array([3, 5, 3, 3]), np.zeros(4, dtype=np.int64), np.full(4, NO_LIMIT), 60, np.ones(4, dtype=bool)
    )
    assert span[0].tolist() == span[2].tolist() == span[3].tolist()
    assert len(runs) == len({tuple(run) for run in span.tolist()})
