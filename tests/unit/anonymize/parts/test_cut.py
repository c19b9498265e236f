"""Cutting by counts: parts are boxes that do not overlap, hold every record once and are as large as they must be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.anonymize.columns import NumericColumn, SetColumn, TreeColumn
from louver.anonymize.parts.cut import GridCells, bins_of, cut


def counted(columns: list[NumericColumn], values: list[np.ndarray], most: int = 2**20) -> GridCells:
    """Cells of some records, counted in two batches."""
    counts = [np.bincount(v, minlength=len(c.ranks)) for c, v in zip(columns, values, strict=True)]
    cells = GridCells(bins=bins_of(columns, counts), most=most)
    half = len(values[0]) // 2
    cells.add([v[:half] for v in values])
    cells.add([v[half:] for v in values])
    return cells


def numbers(n_values: int) -> NumericColumn:
    return NumericColumn(name="x", values=np.arange(n_values, dtype=float))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 120), st.integers(1, 4), st.integers(1, 9), st.integers(1, 12))
def test_parts_are_boxes_of_enough_records(seed: int, n: int, m: int, n_parts: int, least: int) -> None:
    random = np.random.default_rng(seed)
    columns = [numbers(int(random.integers(1, 20))) for _ in range(m)]
    values = [random.integers(0, len(c.ranks), n) for c in columns]
    cells = counted(columns, values)
    part = cut(cells, columns, n_parts, least)[np.searchsorted(cells.keys, cells.keys_of(values))]
    sizes = np.bincount(part)
    assert sizes.sum() == n and len(sizes) <= n_parts
    assert len(sizes) == 1 or sizes.min() >= least
    bins = np.stack([b[v] for b, v in zip(cells.bins, values, strict=True)], axis=1)
    for a, b in combinations([bins[part == p] for p in range(len(sizes))], 2):
        is_apart = (a.max(axis=0) < b.min(axis=0)) | (b.max(axis=0) < a.min(axis=0))
        assert is_apart.any(), "two parts overlap"


def test_cells_are_counts_by_bin_however_coarse() -> None:
    random = np.random.default_rng(4)
    columns = [numbers(16), numbers(16), numbers(3)]
    values = [random.integers(0, len(c.ranks), 500) for c in columns]
    for most, coarser in ((2**20, 1), (200, 2), (40, 4)):
        cells = counted(columns, values, most)
        bins = np.stack([b[v] for b, v in zip(cells.bins, values, strict=True)], axis=1)
        wanted, counts = np.unique(bins, axis=0, return_counts=True)
        assert len(cells.keys) <= most
        assert cells.unpacked().tolist() == wanted.tolist() and cells.counts.tolist() == counts.tolist()
        assert max(cells.shape) == 16 // coarser


def test_parts_of_an_even_file_are_even() -> None:
    columns = [numbers(64), numbers(64)]
    values = [np.repeat(np.arange(64), 64), np.tile(np.arange(64), 64)]
    cells = counted(columns, values)
    for n_parts in (2, 3, 5, 8):
        sizes = np.bincount(cut(cells, columns, n_parts, 5), cells.counts)
        assert len(sizes) == n_parts and sizes.max() <= 1.6 * sizes.min()


def test_bins_follow_order_hierarchy_and_frequency() -> None:
    ancestors = [np.arange(40), np.arange(40) // 10, np.zeros(40, np.int64)]
    tree = TreeColumn(name="t", codes=np.arange(40), ancestors=ancestors)
    gapped = NumericColumn(name="g", values=np.array([1.0, 2.0, np.nan]))
    labels = SetColumn(name="s", codes=np.arange(-1, 3), n_labels=3)
    counts = [np.full(40, 7), np.array([5, 5, 1]), np.array([1, 2, 90, 30])]
    by_node, in_order, by_count = bins_of([tree, gapped, labels], counts)
    assert by_node.tolist() == (np.arange(40) // 10).tolist()
    assert in_order.tolist() == [0, 1, 2]
    assert np.argsort(by_count).tolist() == [2, 3, 1, 0]


def test_a_flat_hierarchy_of_many_labels_is_binned_by_neighbours() -> None:
    tree = TreeColumn(name="t", codes=np.arange(100), ancestors=[np.arange(100), np.zeros(100, np.int64)])
    (bins,) = bins_of([tree], [np.ones(100, np.int64)])
    assert bins.max() == 15 and (np.diff(bins) >= 0).all()


@pytest.mark.parametrize("m", [20, 31, 80])
def test_many_columns_fit_into_a_key(m: int) -> None:
    columns = [numbers(50) for _ in range(m)]
    values = [np.arange(50)] * m
    cells = counted(columns, values)
    assert len(cells.keys) > 1 and (cells.keys >= 0).all()
    assert int(cut(cells, columns, 2, 1).max()) == 1


def test_what_cannot_be_cut_stays_together() -> None:
    cells = counted([numbers(1)], [np.zeros(30, np.int64)])
    assert cut(cells, [numbers(1)], 4, 5).tolist() == [0]
    cells = counted([numbers(2)], [np.repeat([0, 1], [3, 27])])
    assert cut(cells, [numbers(2)], 2, 5).tolist() == [0, 0]
