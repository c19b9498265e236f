"""Further cells to hide: every small cell protected, beside brute force over all patterns of tiny tables."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from louver.audit.hide import hide
from louver.audit.load import load
from louver.audit.options import AuditOptions
from louver.data.histogram import Histogram
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.validate import validated
from oracles.audit import tables


def loaded_table(truth, below=3, more=()):
    attributes = tuple(
        Attribute(name="abc"[axis], labels=tuple(f"{'abc'[axis]}{code}" for code in range(size)))
        for axis, size in enumerate(truth.shape)
    )
    table = {"name": "t", "by": [a.name for a in attributes], "totals": True, "below": below}
    options = validated(AuditOptions, {"tables": [table, *more]}, "test")
    return load(options, attributes, Histogram.from_dense(truth, attributes))


def numbers(table):
    """All published numbers of a two-way table, inner cells first, then totals as the table lists them."""
    return np.concatenate([table.ravel(), table.sum(axis=1), table.sum(axis=0), [table.sum()]])


def fewest_by_force(truth, below):
    """Fewest further cells over all patterns: no zero is hidden, every small number differs in some table."""
    true = numbers(truth)
    small = np.flatnonzero((true > 0) & (true < below))
    others = np.flatnonzero((true > 0) & ~((true > 0) & (true < below)))
    candidates = [numbers(t) for total in range(truth.sum() + 3) for t in tables(truth.shape, total, total)]
    matrix = np.array(candidates)
    for size in range(len(others) + 1):
        for extra in itertools.combinations(others, size):
            shown = np.setdiff1d(np.arange(len(true)), [*small, *extra])
            same = matrix[(matrix[:, shown] == true[shown]).all(axis=1)]
            if all((same[:, cell] != true[cell]).any() for cell in small):
                return size
    return None


@pytest.mark.parametrize(
    "truth",
    [
        [[1, 4], [3, 3]],
        [[2, 4], [3, 0]],
        [[1, 3, 0], [2, 3, 0]],
        [[2, 0, 3], [3, 3, 0]],
    ],
    ids=str,
)
def test_as_few_as_brute_force_finds(truth):
    truth = np.array(truth)
    found = hide(loaded_table(truth), 0, 3, 0.0, Run(), time.monotonic() + 60)
    assert found.is_safe and found.is_least
    assert found.n_secondary == fewest_by_force(truth, 3)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", [(4, 5), (3, 3, 3)], ids=str)
def test_every_small_cell_is_protected_as_asked(shape, seed):
    truth = np.random.default_rng(seed).negative_binomial(1, 0.06, size=shape)
    for within in (0.0, 30.0):
        found = hide(loaded_table(truth, 5), 0, 5, within, Run(), time.monotonic() + 3)
        assert found.is_safe
        assert found.fewest is None or found.fewest <= found.n_secondary


def test_a_table_beside_it_can_make_hiding_pointless():
    truth = np.array([[1, 4], [3, 3]])
    beside = {"name": "same", "by": ["a", "b"]}
    found = hide(loaded_table(truth, more=[beside]), 0, 3, 0.0, Run(), time.monotonic() + 10)
    assert not found.is_safe


def test_nothing_small_needs_no_hiding():
    found = hide(loaded_table(np.array([[9, 8], [7, 9]])), 0, 3, 0.0, Run(), time.monotonic() + 10)
    assert found.n_primary == found.n_secondary == 0 and found.is_safe
