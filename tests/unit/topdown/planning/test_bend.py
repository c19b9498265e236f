"""Stand-ins bent to a composition: sizes and counts are reached, and groups live as far apart as before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from louver.topdown.planning.bend import bent, by_popularity, gathered, leaf_of, rounded
from louver.topdown.problem import SparseLevel

RNG = np.random.default_rng(5)


def level(dense: np.ndarray) -> SparseLevel:
    leaf, cell = np.nonzero(dense)
    return gathered(leaf, cell, dense[leaf, cell], len(dense))


def dense(leaves: SparseLevel, counts: np.ndarray, n_cells: int) -> np.ndarray:
    table = np.zeros((leaves.n_regions, n_cells))
    table[leaf_of(leaves), leaves.cell] = counts
    return table


def test_sizes_and_counts_are_reached_and_odds_ratios_kept():
    before = RNG.integers(1, 30, (12, 3))
    wanted = np.array([[500, 40, 5], [10, 200, 90]])
    sizes, region = before.sum(axis=1) * 2.0, np.repeat([0, 1], 6)
    after = dense(level(before), bent(level(before), sizes, region, wanted), 3)
    assert after.sum(axis=1) == pytest.approx(sizes)
    for own in (0, 1):
        counts = after[region == own].sum(axis=0)
        assert counts / counts.sum() == pytest.approx(wanted[own] / wanted[own].sum(), rel=1e-3)
        odds = [x[region == own] for x in (before, after)]
        first, last = (x[:, 1:] * x[:1, :1] / (x[:, :1] * x[:1, 1:]) for x in odds)
        assert last == pytest.approx(first)


def test_a_region_without_counts_takes_the_mix_of_the_whole():
    before = RNG.integers(1, 30, (8, 2))
    wanted = np.array([[30, 10], [0, 0]])
    sizes, region = before.sum(axis=1) * 1.0, np.repeat([0, 1], 4)
    after = dense(level(before), bent(level(before), sizes, region, wanted), 2)
    assert after[4:, 0].sum() == pytest.approx(0.75 * sizes[4:].sum(), rel=1e-3)


def test_cells_that_nobody_wants_keep_the_sizes_of_leaves():
    before = np.array([[4, 0], [3, 5]])
    after = dense(
        level(before), bent(level(before), np.array([4.0, 8.0]), np.zeros(2, np.int64), np.array([[0, 9]])), 2
    )
    assert after.sum(axis=1) == pytest.approx([4.0, 8.0])
    assert after[1, 0] < 1e-6


def test_labels_stand_for_those_as_frequent():
    table = level(np.array([[9, 0, 0, 1], [0, 2, 5, 0]]))  # shape (2, 2): labels 0 and 1 of each attribute
    weight = table.count.astype(np.float64)
    turned = by_popularity(table, weight, (2, 2), np.array([1, 1, 2, 9]))
    assert turned.to_dense(4).tolist() == [[1, 0, 0, 9], [0, 5, 2, 0]]


def test_rounding_keeps_whole_sizes():
    table = level(RNG.integers(0, 9, (50, 5)))
    wanted = bent(table, table.people * 1.0, np.zeros(50, np.int64), np.array([[9, 5, 3, 1, 1]]))
    found = rounded(table, wanted, random.Random(0))
    assert (np.abs(found.people - table.people) <= 1).all()
    assert (found.count > 0).all()
