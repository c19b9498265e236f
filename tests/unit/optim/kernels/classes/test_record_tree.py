"""The search for near records: complete where it can be, honest about its reach where it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from louver.anonymize.columns import NumericColumn
from louver.anonymize.problem import AnonymizeProblem
from louver.optim.kernels.classes.record_tree import (
    LEAF,
    MAX_LEAVES,
    NUMBER_BITS,
    NUMBER_MASK,
    build_tree,
    nearest,
)


@pytest.mark.parametrize(("n_columns", "is_cut_short"), [(2, False), (16, True)])
def test_nothing_within_reach_is_missed(n_columns, is_cut_short):
    n, n_wanted = 2 * LEAF * MAX_LEAVES, 8
    values = np.random.default_rng(n_columns).random((n, n_columns))
    problem = AnonymizeProblem.build(
        [NumericColumn(name=str(j), values=c) for j, c in enumerate(values.T)], k=2
    )
    tree = build_tree(problem.geometry, problem.codes, np.arange(n))
    keys, reach = nearest(tree, problem.geometry, 0, 100, n_wanted)
    last = keys[:, -1] >> NUMBER_BITS
    assert (reach <= last).all()
    assert (reach < last).any() == is_cut_short
    codes = problem.codes.astype(np.int64)
    for i in range(100):
        distances = np.abs(codes - codes[i]).sum(axis=1)
        listed = keys[i] & NUMBER_MASK
        assert (distances[listed] == keys[i] >> NUMBER_BITS).all()
        assert i not in listed and (np.diff(keys[i]) > 0).all()
        others = np.setdiff1d(np.arange(n), [*listed, i])
        assert distances[others].min() >= reach[i]
