"""Counts that are sorted in stretches are those that are sorted at once, and leave nothing in the folder."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.data import scratch as spilling
from louver.data.scratch import SortedCounts, added_up
from louver.errors import Cancelled
from louver.run import Run

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=12)


@settings(max_examples=30, deadline=None)
@given(parts=st.lists(PAIRS, max_size=8), at_once=st.sampled_from([1, 2, 5, 1 << 20]))
def test_stretches_add_up_to_the_whole(parts, at_once, tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    whole: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilling, "AT_ONCE", at_once)
        counts = SortedCounts(folder, Run())
        for part in parts:
            array = np.array(part, dtype=np.int64).reshape(-1, 2)
            counts.add(array[:, 0], array[:, 1])
            for key, count in part:
                whole[key] = whole.get(key, 0) + count
        found = [
            pair for key, count in counts.merged() for pair in zip(key.tolist(), count.tolist(), strict=True)
        ]
    assert found == sorted(whole.items())
    assert not list(folder.iterdir())


def test_a_cancelled_sort_ends(tmp_path):
    run = Run()
    counts = SortedCounts(tmp_path, run)
    counts.add(*added_up(np.array([3, 1]), np.array([1, 1])))
    run.cancel()
    with pytest.raises(Cancelled):
        list(counts.merged())
