"""Sets of feasible totals against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from louver.tables.closed_forms import _differences, _members, _runs, _spread, _sumset, feasible_totals


def bits(*members):
    return sum(1 << member for member in members)


@pytest.mark.parametrize("seed", range(30))
def test_sums_and_differences_of_sets(seed):
    rng = np.random.default_rng(seed)
    first, second = (np.unique(rng.integers(0, 30, size=rng.integers(1, 12))) for _ in range(2))
    sums = {int(a + b) for a in first for b in second if a + b <= 40}
    assert set(_members(_sumset(bits(*first.tolist()), bits(*second.tolist()), 40)).tolist()) == sums
    rest = {int(a - b) for a in first for b in second if a >= b}
    assert set(_members(_differences(bits(*first.tolist()), bits(*second.tolist()))).tolist()) == rest
    told = [start + step * k for start, step, count in _runs(first) for k in range(count)]
    assert told == first.tolist()


def test_a_spread_is_all_shifts():
    assert _spread(bits(0, 1), 3, 4) == bits(0, 1, 3, 4, 6, 7, 9, 10)


@pytest.mark.parametrize("seed", range(20))
def test_totals_that_some_choice_of_all_rows_has(seed):
    rng = np.random.default_rng(seed)
    sets = [np.unique(rng.integers(0, 9, size=4)).tolist() for _ in range(4)]
    sums = [(frozenset({0, 1}), 3, 9), (frozenset({0, 1, 2, 3}), 8, 20), (frozenset({2}), 0, 6)]
    choices = [
        choice
        for choice in itertools.product(*sets)
        if all(low <= sum(choice[row] for row in rows) <= high for rows, low, high in sums)
    ]
    found = feasible_totals([bits(*members) for members in sets], sums)
    if not choices:
        assert found is None
    else:
        for row in range(4):
            assert set(_members(found[row]).tolist()) == {choice[row] for choice in choices}
