"""The order in which items are left out, replayed with sets."""

from __future__ import annotations

from math import ceil, log2

import pytest

from louver.optim.kernels.semigroups.leave_one_out import leave_one_out_plan, plan_depth


@pytest.mark.parametrize("n", [*range(18), 64, 100])
def test_plan_leaves_every_item_out_once(n):
    plan = leave_one_out_plan(n).tolist()
    levels: dict[int, set[int]] = {-1: set()}
    left_out, additions = [], 0
    for depth, low, high, leaf in plan:
        levels[depth] = set(levels[depth - 1]) if depth > 0 else set()
        assert levels[depth].isdisjoint(range(low, high))
        levels[depth] |= set(range(low, high))
        additions += high - low
        if leaf >= 0:
            assert levels[depth] == set(range(n)) - {leaf}
            left_out.append(leaf)
    assert sorted(left_out) == list(range(n))
    assert plan_depth(leave_one_out_plan(n)) == max([1, *(step[0] + 1 for step in plan)])
    assert len(plan) == max(2 * n - 1, 0)
    assert additions <= (n * ceil(log2(n)) if n > 1 else 0)
