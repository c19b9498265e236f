"""Apéry sets against sets of sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from louver.optim.kernels.semigroups.apery import (
    UNREACHABLE,
    add_bounded_inplace,
    add_unbounded_inplace,
    append_apery_runs,
    leave_one_out_apery,
)
from oracles.knapsack import expanded, feasible_multiples, fewest_runs, sums

TOP = 70
values = st.integers(1, 12)
limits = st.one_of(st.none(), st.integers(0, 5))


def apery_of(modulus, items):
    """The Apéry set of `modulus` (unbounded) and the items, added in turn."""
    apery = np.full(modulus, UNREACHABLE, dtype=np.int64)
    apery[0] = 0
    work, queue = np.empty(2 * modulus, dtype=np.int64), np.empty(2 * modulus, dtype=np.int64)
    for value, limit in items:
        if limit is None:
            add_unbounded_inplace(apery, value)
        else:
            add_bounded_inplace(apery, value, limit, work, queue)
    return apery


def members(apery, top):
    return {x for x in range(top + 1) if x >= apery[x % len(apery)]}


def grouped(items):
    """Distinct items as the kernel wants them: unbounded first and ascending."""
    distinct = sorted(set(items), key=lambda item: (item[1] is not None, item[0], item[1] or 0))
    return (
        distinct,
        np.array([value for value, _ in distinct]),
        np.array([-1 if limit is None else limit for _, limit in distinct]),
        np.array([items.count(item) for item in distinct]),
    )


@given(modulus=values, items=st.lists(st.tuples(values, limits), max_size=5))
def test_added_items_reach_exactly_their_sums(modulus, items):
    assert members(apery_of(modulus, items), TOP) == sums([(modulus, None), *items], TOP)


@given(modulus=values, items=st.lists(st.tuples(values, limits), max_size=4), order=st.randoms())
def test_the_order_of_adding_does_not_matter(modulus, items, order):
    shuffled = list(items)
    order.shuffle(shuffled)
    assert apery_of(modulus, items).tolist() == apery_of(modulus, shuffled).tolist()


def test_entries_are_least_members_of_their_residues():
    assert apery_of(5, [(7, None), (9, None)]).tolist() == [0, 16, 7, 18, 9]


def test_residues_that_nothing_reaches_stay_unreachable():
    assert apery_of(6, [(4, None)]).tolist() == [0, UNREACHABLE, 8, UNREACHABLE, 4, UNREACHABLE]


@pytest.mark.parametrize(("value", "limit"), [(12, 3), (7, 0)])
def test_multiples_of_the_modulus_and_no_copies_add_nothing(value, limit):
    assert apery_of(6, [(value, limit)]).tolist() == apery_of(6, []).tolist()


@pytest.mark.parametrize(("limit", "is_cut"), [(1, True), (4, True), (5, False), (6, False)])
def test_a_limit_as_long_as_the_cycle_is_none(limit, is_cut):
    assert (apery_of(6, [(7, limit)]).tolist() != apery_of(6, [(7, None)]).tolist()) is is_cut


@given(
    modulus=values,
    items=st.lists(st.tuples(values, limits), max_size=4),
    value=values,
    limit=limits,
    target=st.integers(0, TOP),
)
def test_runs_hold_every_feasible_multiple(modulus, items, value, limit, target):
    apery = apery_of(modulus, items)
    runs, span = np.empty((1, 3), dtype=np.int64), np.zeros((2, 2), dtype=np.int64)
    runs = append_apery_runs(runs, span, 0, apery, target, value, -1 if limit is None else limit)
    runs = runs[: span[0, 1]].tolist()
    reached = sums([(modulus, None), *items], TOP)
    most = target // value if limit is None else min(limit, target // value)
    expected = [nu for nu in range(most + 1) if target - nu * value in reached]
    assert expanded(runs) == expected
    assert len(runs) == fewest_runs(expected)


@settings(max_examples=200)
@given(
    groups=st.lists(st.tuples(values, limits, st.integers(1, 3)), max_size=4),
    modulus=values,
    target=st.integers(0, 45),
    mask=st.integers(0, 31),
)
@example(groups=[(5, 1, 2)], modulus=7, target=15, mask=31)
def test_each_item_left_out_in_turn(groups, modulus, target, mask):
    items = [(modulus, None), *((value, limit) for value, limit, n in groups for _ in range(n))]
    distinct, item_values, item_limits, copies = grouped(items)
    wanted = np.array([bool(mask >> i & 1) for i in range(len(distinct))])
    runs, span, is_alone = leave_one_out_apery(item_values, item_limits, copies, wanted, target)
    expected = feasible_multiples(items, target)
    is_only_unbounded = copies[0] == 1 and (len(distinct) == 1 or item_limits[1] >= 0)
    assert is_alone == (wanted[0] and is_only_unbounded)
    for i, item in enumerate(distinct):
        found = expanded(runs[span[i, 0] : span[i, 1]].tolist())
        if not wanted[i] or (i == 0 and is_alone):
            assert found == []
        else:
            assert found == expected[items.index(item)]


def test_millions_of_values_are_a_few_runs():
    target = 3 * 10**15 + 1
    both = np.ones(2, dtype=bool)
    runs, span, _ = leave_one_out_apery(np.array([3, 5]), np.array([-1, -1]), np.array([2, 1]), both, target)
    # 5 nu = target mod 3 needs nu = 2 mod 3; three equal rows leave every nu but those whose rest is 1, 2, 4 or 7.
    assert runs[span[1, 0] : span[1, 1]].tolist() == [[2, target // 5 - (target // 5 - 2) % 3, 3]]
    others = sums([(3, None), (5, None)], 60)
    start, stop = span[0]
    top = target // 3
    assert [top - nu for nu in expanded(runs[start + 1 : stop].tolist())][::-1] == [
        k for k in range(len(runs)) if target - 3 * (top - k) in others and k < top - runs[start, 1]
    ]
    assert runs[start, 0] == 0
