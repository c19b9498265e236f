"""Files written part by part have the bytes of files written at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.topdown.load import read_design
from louver.topdown.problem import SparseLevel
from louver.topdown.result import answers_of, microdata, statements, write_row_groups
from topdown_town import BLOCKS, write_town

TEXT = pa.schema([(name, pa.string()) for name in ("block", "quarters", "age", "race")])


def table(start, stop):
    text = pa.array([f"r{i % 7}" for i in range(start, stop)])
    return pa.table({"region": text, "count": pa.array(np.arange(start, stop))})


@pytest.mark.parametrize("step", [1, 7, 40, 100])
@pytest.mark.parametrize("n", [0, 39, 40, 100])
def test_parts_have_the_bytes_of_one_table(tmp_path, n, step):
    chapters = [(0, 17), (17, n)] if n > 17 else [(0, n)]
    whole = pa.concat_tables([table(*span) for span in chapters])
    pq.write_table(whole, tmp_path / "whole", compression="zstd", row_group_size=40)
    parts = [
        (chapter, table(first, min(first + step, stop)))
        for chapter, (start, stop) in enumerate(chapters)
        for first in range(start, max(stop, start + 1), step)
    ]
    write_row_groups(tmp_path / "parts", parts, rows=40)
    assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()


def test_people_in_tables_of_few_rows_are_the_people_of_one(tmp_path):
    design = read_design(write_town(tmp_path))
    counts = np.random.default_rng(2).integers(0, 3, (len(BLOCKS), design.n_cells))
    counts[[0, 4, 8]] = 0
    leaves = SparseLevel.from_dense(counts)
    (whole,) = microdata(design, leaves)
    parts = list(microdata(design, leaves, 5))
    assert [part.num_rows for part in parts[:-1]] == [5] * (len(parts) - 1)
    assert pa.concat_tables([part.cast(TEXT) for part in parts]).equals(whole.cast(TEXT).combine_chunks())
    assert max(len(part["block"].chunk(0).dictionary) for part in parts) <= 3
    (nobody,) = microdata(design, SparseLevel.from_dense(counts * 0))
    assert nobody.num_rows == 0 and nobody.schema == whole.schema


def test_answers_some_regions_at_a_time_are_all_answers(tmp_path, monkeypatch):
    design = read_design(write_town(tmp_path))
    leaves = SparseLevel.from_dense(np.random.default_rng(3).integers(0, 2, (len(BLOCKS), design.n_cells)))
    query = design.queries[1]
    (whole,) = answers_of(query, leaves)
    monkeypatch.setattr("louver.topdown.result.MOST_ANSWERS", 2 * query.n_rows)
    parts = list(answers_of(query, leaves))
    assert len(parts) == 5
    assert all(
        np.array_equal(a, b)
        for a, b in zip(whole, map(np.concatenate, zip(*parts, strict=True)), strict=True)
    )


def test_sums_of_some_parents_at_a_time_are_all_sums(monkeypatch):
    leaves = SparseLevel.from_dense(np.random.default_rng(4).integers(0, 2, (9, 12)))
    starts = np.array([0, 2, 3, 3 + 4, 9])
    whole = leaves.add_up(starts, 12).to_dense(12)
    monkeypatch.setattr("louver.topdown.problem.ADDED_AT_ONCE", 3)
    assert np.array_equal(leaves.add_up(starts, 12).to_dense(12), whole)
    assert np.array_equal(np.add.reduceat(leaves.to_dense(12), starts[:-1], axis=0), whole)


def test_every_bound_that_binds_is_stated(tmp_path):
    told = pa.concat_tables(statements(read_design(write_town(tmp_path)))).to_pylist()
    assert len(told) == 2 * len(BLOCKS)
    assert {"statement": "prisons", "region": "1B1", "lower": 1, "upper": None} in told
