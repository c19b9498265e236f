"""Bit sets against Python integers and sets of sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver.optim.kernels.semigroups.bitset import (
    add_multiples_inplace,
    append_bit_runs,
    is_set,
    leave_one_out_bits,
    shift_or_inplace,
)
from oracles.knapsack import expanded, feasible_multiples, fewest_runs, sums


def words_of(bits, n_words):
    mask = 2**64 - 1
    return np.array([bits >> 64 * w & mask for w in range(n_words)], dtype=np.uint64)


def bits_of(words):
    return sum(int(word) << 64 * w for w, word in enumerate(words))


@given(target=st.integers(0, 2**192 - 1), source=st.integers(0, 2**192 - 1), shift=st.integers(0, 220))
def test_shift_or_equals_that_of_integers(target, source, shift):
    words = words_of(target, 3)
    shift_or_inplace(words, words_of(source, 3), shift)
    assert bits_of(words) == (target | source << shift) & (2**192 - 1)


@given(bits=st.integers(0, 2**192 - 1), shift=st.integers(0, 220))
def test_shift_or_of_a_set_with_itself(bits, shift):
    words = words_of(bits, 3)
    shift_or_inplace(words, words, shift)
    assert bits_of(words) == (bits | bits << shift) & (2**192 - 1)


@given(items=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 30)), max_size=4))
def test_added_multiples_reach_exactly_their_sums(items):
    words = words_of(1, 2)
    for value, limit in items:
        add_multiples_inplace(words, value, limit)
    assert {x for x in range(128) if is_set(words, x)} == sums(items, 127)


@pytest.mark.parametrize(("value", "limit"), [(1, 10**12), (2**40, 2**20), (128, 5), (127, 1)])
def test_multiples_beyond_the_array_fall_off(value, limit):
    words = words_of(1, 2)
    add_multiples_inplace(words, value, limit)
    assert {x for x in range(128) if is_set(words, x)} == sums([(value, limit)], 127)


@given(
    items=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=4),
    value=st.integers(1, 9),
    limit=st.integers(0, 12),
    target=st.integers(0, 100),
)
def test_runs_hold_every_feasible_multiple(items, value, limit, target):
    words = words_of(1, target // 64 + 1)
    for item in items:
        add_multiples_inplace(words, *item)
    runs, span = np.empty((1, 3), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    runs = append_bit_runs(runs, span, 0, words, target, value, limit)[: span[0, 1]].tolist()
    reached = sums(items, target)
    expected = [nu for nu in range(min(limit, target // value) + 1) if target - nu * value in reached]
    assert expanded(runs) == expected
    assert len(runs) == fewest_runs(expected)


@given(
    items=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 6)), min_size=1, max_size=6),
    target=st.integers(0, 80),
    mask=st.integers(0, 63),
)
def test_each_item_left_out_in_turn(items, target, mask):
    distinct = sorted(set(items))
    wanted = np.array([bool(mask >> i & 1) for i in range(len(distinct))])
    runs, span = leave_one_out_bits(
        np.array([value for value, _ in distinct]),
        np.array([limit for _, limit in distinct]),
        np.array([items.count(item) for item in distinct]),
        wanted,
        target,
    )
    expected = feasible_multiples(items, target)
    for i, item in enumerate(distinct):
        found = expanded(runs[span[i, 0] : span[i, 1]].tolist())
        assert found == (expected[items.index(item)] if wanted[i] else [])
