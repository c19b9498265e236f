"""Opening the same records from every kind of source."""

from __future__ import annotations

import gzip
import os

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError
from oracles import tables

ROWS = [("01", "a,b", 3), ("1", 'say "x"', 1), ("01", "é", 2), ("02", "line\nbreak", 5)]
EXPECTED = {(code, text): count for code, text, count in ROWS}
CSV = 'code,text,n\n01,"a,b",3\n1,"say ""x""",1\n01,é,2\n02,"line\nbreak",5\n'
FRAME = pa.table({"code": [r[0] for r in ROWS], "text": [r[1] for r in ROWS], "n": [r[2] for r in ROWS]})


class OnlyInterchange:
    """A dataframe with the older protocol alone."""

    def __init__(self, frame):
        self.frame = frame

    def __dataframe__(self, *args, **kwargs):
        return self.frame.__dataframe__(*args, **kwargs)


def in_database(folder, name):
    path = folder / name
    with duckdb.connect(str(path)) as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE SCHEMA census; CREATE TABLE census.people AS SELECT * FROM frame")
        connection.execute("CREATE VIEW people AS SELECT * FROM census.people")
    return path


def written(folder, name, text):
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


SOURCES = {
    "csv": lambda folder: written(folder, "r.csv", CSV),
    "csv as text path": lambda folder: str(written(folder, "r.csv", CSV)),
    "csv.gz": lambda folder: written(folder, "r.csv.gz", CSV),
    "upper case": lambda folder: written(folder, "R.CSV", CSV),
    "byte order mark": lambda folder: written(folder, "r.csv", "\ufeff" + CSV),
    "crlf": lambda folder: written(
        folder, "r.csv", CSV.replace("\n", "\r\n").replace("line\r\nbreak", "line\nbreak")
    ),
    "trailing separators": lambda folder: written(
        folder, "r.csv", CSV.replace(",3\n", ",3,\n").replace(",2\n", ",2,\n")
    ),
    "semicolons": lambda folder: written(
        folder, "r.csv", 'code;text;n\n01;a,b;3\n1;"say ""x""";1\n01;é;2\n02;"line\nbreak";5'
    ),
    "tsv": lambda folder: written(
        folder, "r.tsv", 'code\ttext\tn\n01\ta,b\t3\n1\t"say ""x"""\t1\n01\té\t2\n02\t"line\nbreak"\t5\n'
    ),
    "name with a pattern": lambda folder: written(folder, "r[1]*.csv", CSV),
    "name with a quote": lambda folder: written(folder, "r'1.csv", CSV),
    "parquet": lambda folder: pq.write_table(FRAME, folder / "r.parquet") or folder / "r.parquet",
    "duckdb": lambda folder: in_database(folder, "r.duckdb"),
    "db": lambda folder: in_database(folder, "r.db"),
    "pyarrow": lambda folder: FRAME,
    "pyarrow reader": lambda folder: FRAME.to_reader(),
    "pandas": lambda folder: FRAME.to_pandas(),
    "pandas categories": lambda folder: FRAME.to_pandas().astype({"text": "category"}),
    "polars": lambda folder: pl.from_arrow(FRAME),
    "polars categories": lambda folder: pl.from_arrow(FRAME).with_columns(
        pl.col("text").cast(pl.Categorical)
    ),
    "interchange": lambda folder: OnlyInterchange(FRAME),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_kind_of_source_gives_the_same_table(tmp_path, kind):
    data = SOURCES[kind](tmp_path)
    table = "census.people" if kind in ("duckdb", "db") else None
    with open_source(data, table=table) as source:
        assert source.columns == ("code", "text", "n")
        histogram = tabulate(source, ["code", "text"], weight="n")
    assert tables.table_of(histogram) == EXPECTED


def test_a_view_of_a_database_can_be_read(tmp_path):
    with open_source(in_database(tmp_path, "r.duckdb"), table="people") as source:
        assert tabulate(source, ["code"]).total == 4


def test_columns_of_separated_text_are_never_guessed(tmp_path):
    path = written(tmp_path, "r.csv", "date,flag,n\n2020-01-01,true,1\n")
    with open_source(path) as source:
        assert set(source.types.values()) == {"VARCHAR"}
        assert source.relation.fetchall() == [("2020-01-01", "true", "1")]


def test_folders_named_like_partitions_add_no_column(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pq.write_table(FRAME, folder / "r.parquet")
    for path in (folder / "r.parquet", written(folder, "r.csv", CSV)):
        with open_source(path) as source:
            assert source.columns == ("code", "text", "n")


def test_a_name_is_not_a_pattern(tmp_path):
    written(tmp_path, "r1.csv", "code,text,n\nwrong,wrong,1\n")
    with open_source(written(tmp_path, "r[1].csv", CSV)) as source:
        assert tables.table_of(tabulate(source, ["code", "text"], weight="n")) == EXPECTED


def test_columns_without_a_name_can_be_left_alone(tmp_path):
    path = written(tmp_path, "r.csv", '"","sex"\n"1","f"\n"2","m"\n')
    with open_source(path) as source:
        assert source.columns == ("column 1", "sex")
        assert tabulate(source, ["sex"]).total == 2


def test_the_database_is_private_and_offline(tmp_path):
    with open_source(FRAME) as source:
        settings = dict(source.connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        folder = settings["temp_directory"]
        assert settings["autoinstall_known_extensions"] == "false"
        assert settings["autoload_known_extensions"] == "false"
        assert settings["enable_progress_bar"] == "false"
        assert settings["memory_limit"] == "953.6 MiB"
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert not os.path.exists(folder)


def test_a_failed_opening_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InputError, match="no rows"):
        open_source(FRAME.slice(0, 0))
    assert list(tmp_path.iterdir()) == []


def test_a_later_row_is_named_in_the_file_not_in_the_batch(tmp_path):
    """The fault stands far behind the first block that DuckDB reads, after a value of several lines."""
    good = "x,y\n" * 400_000
    path = written(tmp_path, "r.csv", 'a,b\n"1\n2",y\n\n' + good + "only one field\n" + good)
    with open_source(path) as source, pytest.raises(InputError, match="row 400002 has fewer") as caught:
        tabulate(source, ["a"])
    assert caught.value.row == 400_002


def test_a_file_without_permission(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError

    monkeypatch.setattr("louver.data.separated.TextFile.open", refuse)
    with pytest.raises(InputError, match="r.csv cannot be opened; check its permissions"):
        open_source(written(tmp_path, "r.csv", CSV))


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(InputError, match=r"louver\[postgres\]"):
        open_source("postgresql://localhost/x", table="t")


def test_too_little_memory_and_disk_is_said(tmp_path):
    path = written(tmp_path, "r.csv", "a\n" + "\n".join(f"{n:040d}" for n in range(200_000)))
    with open_source(path) as source:
        source.connection.execute("SET memory_limit = '5MB'; SET max_temp_directory_size = '1MB'")
        with pytest.raises(InputError, match="too many distinct rows"):
            tabulate(source, ["a"])


def test_missing_numbers_in_pandas_do_not_turn_labels_into_decimals():
    frame = pd.DataFrame({"a": [1, 2, None], "b": [0.5, 1.0, 1.5]})
    with open_source(frame.dropna()) as source:
        assert tabulate(source, ["a"]).attributes[0].labels == ("1", "2")
        assert tabulate(source, ["b"]).attributes[0].labels == ("0.5", "1")


@pytest.mark.parametrize("name", ["x" * 5000 + ".csv", "a\0b.csv", "x" * 300 + ".parquet"])
def test_names_that_no_file_can_have(name):
    with pytest.raises(InputError, match="does not exist; check the path"):
        open_source(name)


def test_column_names_that_are_not_text(tmp_path):
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"a column name": [1]}), path)
    path.write_bytes(path.read_bytes().replace(b"a column name", b"a column\xffname"))
    with pytest.raises(InputError, match="odd.parquet is not a Parquet file"):
        open_source(path)


def test_a_file_that_is_held_is_not_parsed_again(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,town\n31,Ayr\n,Bute\n")
    with open_source(path) as source:
        assert source.read_all()["town"].to_pylist() == ["Ayr", "Bute"]
        path.unlink()
        assert source.first_row("SELECT age, town FROM records LIMIT 1 OFFSET 1") == {
            "age": None,
            "town": "Bute",
        }
