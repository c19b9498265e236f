"""People are counted by leaf and cell from parts in any order, and tables are added up some regions at a time."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.release.promises import topdown
from louver.release.promises.topdown import PublishedPeople, _Runs, _WantedCounts

PARTS = st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=8)


@settings(max_examples=200, deadline=None)
@given(PARTS, st.booleans(), st.sampled_from([0, 2, 100]))
def test_parts_in_any_order_are_counted(parts, is_sorted, most_shared):
    """Against a plain count; sorted parts overlap at their ends, others anywhere."""
    if is_sorted:
        everything = sorted(key for part in parts for key in part)
        ends = np.cumsum([0, *map(len, parts)])
        parts = [everything[a:b] for a, b in pairwise(ends)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topdown, "MOST_SHARED", most_shared)
        patch.setattr(topdown, "BATCH_ROWS", 2)
        runs = _Runs()
        for part in parts:
            runs.add(*np.unique(np.array(part, np.int64), return_counts=True))
        leaf, cell, count = runs.divided(7)
    keys, counts = np.unique(np.array([key for part in parts for key in part], np.int64), return_counts=True)
    assert (leaf * 7 + cell).tolist() == keys.tolist() and count.tolist() == counts.tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=40),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_level_is_added_up_some_regions_at_a_time(rows, at_once, is_scattered):
    """The same for any stretch, also where the leaves of a region do not stand together."""
    rows = sorted({(leaf, cell): (leaf, cell, n) for leaf, cell, n in rows}.values())
    leaf, cell, count = (np.array([row[i] for row in rows]) for i in range(3))
    region_of = np.array(
        [0, 1, 0, 2, 1, 3, 0, 2, 3, 1] if is_scattered else [0, 0, 1, 1, 1, 1, 2, 3, 3, 3], np.int32
    )
    people = PublishedPeople(leaf=leaf, cell=cell, count=count, attributes={"a": tuple("uvwxyz")},
                             region_of=(region_of,), regions=(pa.array(list("ABCD")),))  # fmt: skip
    row_of = np.array([0, 0, 1, 1, 2, 2])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(topdown, "AT_ONCE", at_once)
        found = _WantedCounts.of(people, 0, row_of, 3)
    held = np.zeros((4, 3), np.int64)
    np.add.at(held, (region_of[leaf], row_of[cell]), count)
    keys = np.flatnonzero(held.ravel())
    assert found.keys.tolist() == keys.tolist() and found.counts.tolist() == held.ravel()[keys].tolist()
