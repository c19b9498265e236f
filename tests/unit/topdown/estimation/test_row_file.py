"""Rows in a scratch file: read back by anyone who has a copy, and gone with whoever made them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from louver.topdown.estimation.evidence import RowFile


@pytest.mark.parametrize("shared", [False, True])
def test_a_copy_reads_what_was_written_and_leaves_the_file_to_its_maker(tmp_path, shared):
    rows = RowFile(3, tmp_path if shared else None)
    values = np.arange(12.0).reshape(4, 3)
    rows.write(2, values[2:])
    rows.write(0, values[:2])
    copy, path = pickle.loads(pickle.dumps(rows)), rows.path
    assert (path.parent == tmp_path) is shared
    assert np.array_equal(copy.read(1, 4), values[1:])
    del copy
    assert path.exists()
    del rows
    assert not path.exists()


def test_a_file_that_was_cut_short_is_noticed(tmp_path):
    rows = RowFile(3, tmp_path)
    rows.write(0, np.ones((2, 3)))
    with pytest.raises(OSError, match="ends before its rows do"):
        rows.read(1, 3)
