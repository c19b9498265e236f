"""The fingerprint covers the data that are read: names, records, the table asked for."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from louver.data.people import fingerprint, has_same_records
from louver.errors import Cancelled
from louver.run import Run

SECRET = b"s" * 32


def test_names_count_and_order_does_not() -> None:
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    same = fingerprint(table)(SECRET)
    assert fingerprint(table.take([1, 0]))(SECRET) == same
    assert fingerprint(table.rename_columns(["b", "a"]))(SECRET) != same
    assert fingerprint(pa.table({"a": [1, 2], "b": [3, 5]}))(SECRET) != same
    assert fingerprint(table)(b"t" * 32) != same


def test_tables_of_one_database_differ(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as db:
        db.execute("CREATE TABLE one AS SELECT 1 AS x; CREATE TABLE two AS SELECT 2 AS x")
    one, two = (fingerprint(path, table=name)(SECRET) for name in ("one", "two"))
    assert one != two
    assert fingerprint(path, table="one")(SECRET) == one


def test_files_are_hashed_by_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("x\n1\n")
    before = fingerprint(path)(SECRET)
    path.write_text("x\n2\n")
    assert fingerprint(path)(SECRET) != before


def test_hashing_can_be_stopped(tmp_path: Path) -> None:
    path, run = tmp_path / "people.csv", Run()
    path.write_text("x\n1\n")
    run.cancel()
    for data in (path, pa.table({"x": [1]})):
        with pytest.raises(Cancelled):
            fingerprint(data, run=run)(SECRET)
    with pytest.raises(Cancelled):
        has_same_records(path, path, run=run)
