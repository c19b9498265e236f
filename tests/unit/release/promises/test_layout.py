"""Bytes that no row shows: a text column whose dictionary the writer gave up, honest and padded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.release.promises.layout import _are_as_written

N = 120_000


@pytest.fixture(scope="module")
def labels() -> pa.Array:
    """More different text than a dictionary page holds (1 MiB), each value three times."""
    random = np.random.default_rng(1)
    values = [f"{i:06d} {random.integers(2**60):020d} {random.integers(2**60):020d}" for i in range(N // 3)]
    return pa.array(values * 2 + values)


def is_as_written(path, table) -> bool:
    """Whether what was written of a table follows from its rows, as the check reads them."""
    metadata = pq.read_metadata(path)
    rows = pq.ParquetFile(path, read_dictionary=["label"]).read_row_group(0, ["label"])
    assert rows["label"].to_pylist() == table["label"].to_pylist()
    return _are_as_written([metadata.row_group(0).column(0)], rows)


def test_a_dictionary_that_the_writer_gave_up_is_no_hidden_room(labels, tmp_path):
    table = pa.table({"label": labels})
    pq.write_table(table, tmp_path / "plain.parquet", compression="zstd", row_group_size=N)
    column = pq.read_metadata(tmp_path / "plain.parquet").row_group(0).column(0)
    again = table.set_column(0, "label", labels.dictionary_encode())
    pq.write_table(again, tmp_path / "again.parquet", compression="zstd", row_group_size=N)
    shorter = pq.read_metadata(tmp_path / "again.parquet").row_group(0).column(0)
    assert column.total_compressed_size > 1.05 * shorter.total_compressed_size + 128
    assert is_as_written(tmp_path / "plain.parquet", table)
    assert is_as_written(tmp_path / "again.parquet", table)


def test_a_part_longer_than_both_ways_of_writing_it_is_refused(labels, tmp_path):
    table = pa.table({"label": labels})
    pq.write_table(table, tmp_path / "padded.parquet", compression="none", row_group_size=N)
    rows = pq.ParquetFile(tmp_path / "padded.parquet", read_dictionary=["label"]).read_row_group(0)
    part = pq.read_metadata(tmp_path / "padded.parquet").row_group(0).column(0)
    few = rows.slice(0, N // 2)
    assert not _are_as_written([part], few)
