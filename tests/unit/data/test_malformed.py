"""Malformed input: one sentence, the place, and not a trace of what stood in the file."""

from __future__ import annotations

import gzip
import sqlite3
import traceback

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.data.read import open_source
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import read_recodes
from louver.schema.spec import read_spec

SECRET = "Zw\u00fcrgl-4711"  # stands for a confidential value
BYTES = SECRET.encode()
LATIN = SECRET.encode("latin-1")


def read_data(name, content, names=("a", "b"), **options):
    """A case that writes a file and tabulates it."""

    def run(folder):
        path = folder / name
        path.write_bytes(content)
        with open_source(path) as source:
            tabulate(source, list(names), **options)

    return run


def read_frame(make, names=("a",)):
    def run(folder):
        with open_source(make()) as source:
            tabulate(source, list(names))

    return run


def read_file(reader, name, content):
    """A case that writes a small file of the schema and reads it."""

    def run(folder):
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        reader(path)

    return run


def spec(content):
    return read_file(read_spec, "s.toml", content)


def recodes(content):
    return read_file(read_recodes, "r.toml", content)


def hierarchy(content, name="h.csv"):
    return read_file(Hierarchy.from_csv, name, content)


def under_spec(text, data):
    """A case whose data do not fit the spec beside it."""

    def run(folder):
        (folder / "d.csv").write_bytes(data)
        (folder / "s.toml").write_text(text)
        read = read_spec(folder / "s.toml")
        with open_source(read.data) as source:
            tabulate(source, ["a"], weight=read.source.weight, wide=read.source.wide, schema=read.schema)

    return run


def missing_file(folder):
    open_source(folder / "none.csv")


def directory(folder):
    (folder / "d.csv").mkdir()
    open_source(folder / "d.csv")


def unreadable_hierarchy(folder):
    Hierarchy.from_csv(folder)


def unknown_table(folder):
    with duckdb.connect(str(folder / "d.duckdb")) as connection:
        connection.execute(f"CREATE TABLE \"{SECRET}\" AS SELECT '{SECRET}' AS a")
    open_source(folder / "d.duckdb", table="people")


def no_table(folder):
    (folder / "d.db").write_bytes(BYTES)
    open_source(folder / "d.db")


def sqlite_file(folder):
    with sqlite3.connect(folder / "d.db") as connection:
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.execute("INSERT INTO t VALUES (?)", [SECRET])
    connection.close()
    open_source(folder / "d.db", table="t")


def broken_view(folder):
    with duckdb.connect(str(folder / "d.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a")
        connection.execute("CREATE VIEW v AS SELECT CAST(a AS INTEGER) AS a FROM t")
    with open_source(folder / "d.duckdb", table="v") as source:
        tabulate(source, ["a"])


def dropped_table_behind_a_view(folder):
    with duckdb.connect(str(folder / "d.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS a")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
        connection.execute("DROP TABLE t")
    open_source(folder / "d.duckdb", table="v")


def damaged_parquet(folder):
    pq.write_table(pa.table({"a": [SECRET] * 1000}), folder / "d.parquet", compression="none")
    data = bytearray((folder / "d.parquet").read_bytes())
    data[4:40] = b"\xff" * 36
    (folder / "d.parquet").write_bytes(data)
    with open_source(folder / "d.parquet") as source:
        tabulate(source, ["a"])


def table_of_a_single_table(folder):
    (folder / "d.csv").write_bytes(b"a\n" + BYTES)
    open_source(folder / "d.csv", table="t")


def query_on_a_file(folder):
    (folder / "d.csv").write_bytes(b"a\n" + BYTES)
    open_source(folder / "d.csv", query="SELECT 1")


def duplicate_parquet_columns(folder):
    pq.write_table(pa.table([[SECRET], ["x"]], names=["a", "A"]), folder / "d.parquet")
    open_source(folder / "d.parquet")


def large_gzip_cut_short(folder):
    lines = b"".join(b"%d,%s\n" % (number * 7919 % 100_003, BYTES) for number in range(400_000))
    data = gzip.compress(b"a,b\n" + lines, 1)
    (folder / "d.csv.gz").write_bytes(data[: len(data) * 3 // 4])
    with open_source(folder / "d.csv.gz") as source:
        tabulate(source, ["b"])


ROW = BYTES + b",x\n"
FILES = {
    "missing file": (missing_file, "none.csv does not exist"),
    "directory": (directory, "d.csv is a directory"),
    "unknown ending": (read_data("d.txt", BYTES), "d.txt has no known file extension"),
    "no ending": (read_data("data", BYTES), "data has no known file extension"),
    "empty file": (read_data("d.csv", b""), "d.csv is empty"),
    "empty gzip": (read_data("d.csv.gz", gzip.compress(b"")), "d.csv.gz is empty"),
    "blank first line": (read_data("d.csv", b"\n" + ROW), "no column names in its first line"),
    "header only": (read_data("d.csv", b"a,b\n"), "d.csv has no rows"),
    "duplicate columns": (read_data("d.csv", BYTES + b",x," + ROW), "in columns 1 and 3"),
    "columns that differ in case": (read_data("d.csv", b"a,A\n" + ROW), "in columns 1 and 2"),
    "short row": (read_data("d.csv", b"a,b\n" + ROW + BYTES + b"\n"), "row 2 has fewer than the 2 fields"),
    "long row": (read_data("d.csv", b"a,b\n" + ROW + b"y," + ROW), "row 2 has more than the 2 fields"),
    "open quote": (read_data("d.csv", b'a,b\n"' + ROW + ROW), "row 1 has a misplaced quote"),
    "text after a quote": (read_data("d.csv", b'a,b\n"' + BYTES + b'"z,x\n'), "row 1 has a misplaced quote"),
    "latin-1": (read_data("d.csv", b"a,b\nx,y\n" + LATIN + b",z\n"), "row 2 is not UTF-8 text in column 1"),
    "latin-1 header": (read_data("d.csv", b"a," + LATIN + b"\nx,y\n"), "not UTF-8 text in its first line"),
    "utf-16": (read_data("d.csv", f"a,b\n{SECRET},x\n".encode("utf-16")), "not UTF-8 text but UTF-16"),
    "mixed line ends": (read_data("d.csv", b"a,b\r\n" + ROW + b"x,y\r\n"), "mixes line endings"),
    "a csv named gz": (read_data("d.csv.gz", b"a,b\n" + ROW), "not a gzip file or ends early"),
    "a gz named csv": (read_data("d.csv", gzip.compress(b"a,b\n" + ROW)), "d.csv is gzip-compressed"),
    "gzip cut short": (
        read_data("d.csv.gz", gzip.compress(b"a,b\n" + ROW)[:-12]),
        "not a gzip file or ends early",
    ),
    "large gzip cut short": (large_gzip_cut_short, "d.csv.gz is damaged or ends early"),
    "overlong value": (
        read_data("d.csv", b"a,b\n" + BYTES * 300_000 + b",x\n"),
        "row 1 has a misplaced quote",
    ),
    "header too long": (read_data("d.csv", b'"' + BYTES * 300_000), "no column names in its first line"),
    "long row after trailing separators": (
        read_data("d.csv", b"a,b\n" + BYTES + b",x,\n" + b"y," + ROW),
        "row 2 has more than",
    ),
    "not parquet": (read_data("d.parquet", BYTES), "d.parquet is not a Parquet file"),
    "damaged parquet": (damaged_parquet, "d.parquet cannot be read to its end"),
    "duplicate parquet columns": (duplicate_parquet_columns, "in columns 1 and 2"),
    "parquet without rows": (
        lambda folder: (
            pq.write_table(pa.table({"a": pa.array([], pa.string())}), folder / "d.parquet")
            or open_source(folder / "d.parquet")
        ),
        "d.parquet has no rows",
    ),
    "database without a table": (no_table, "d.db is a database; name the table"),
    "not a database": (
        lambda folder: (folder / "d.db").write_bytes(BYTES) and open_source(folder / "d.db", table="t"),
        "d.db cannot be opened as a DuckDB database",
    ),
    "another database": (sqlite_file, "d.db cannot be opened as a DuckDB database"),
    "unknown table": (unknown_table, 'd.duckdb has no table "people"'),
    "a view that fails": (broken_view, "d.duckdb cannot be read to its end"),
    "a view on nothing": (dropped_table_behind_a_view, "d.duckdb cannot be read to its end"),
    "a table of a csv file": (table_of_a_single_table, "d.csv is a single table"),
    "a query on a file": (query_on_a_file, "a query needs a PostgreSQL address"),
    "postgres without table": (lambda folder: open_source(f"postgresql://{SECRET}@x/y"), "either a table or"),
    "neither path nor dataframe": (read_frame(lambda: {"a": [SECRET]}), "neither a path nor a dataframe"),
    "a table of a dataframe": (
        lambda folder: open_source(pa.table({"a": [SECRET]}), table="t"),
        "a dataframe has no tables",
    ),
    "no columns": (read_frame(lambda: pa.table({})), "the dataframe has no columns"),
    "mixed types in pandas": (
        read_frame(lambda: pd.DataFrame({"a": [SECRET, 1, b"x"]})),
        "column of mixed or unknown type",
    ),
    "duplicate columns in pandas": (
        read_frame(lambda: pd.DataFrame([[SECRET, 1]], columns=["a", "a"])),
        "or a repeated name",
    ),
    "objects in polars": (
        read_frame(lambda: pl.DataFrame({"a": pl.Series([{SECRET}], dtype=pl.Object)})),
        "has a nested or binary type",
    ),
}

VALUES = {
    "missing value": (
        read_data("d.csv", b"a,b\n" + ROW + b",y\n"),
        'column "a" in d.csv has no value on row 2',
    ),
    "unknown column": (read_data("d.csv", b"a,b\n" + ROW, names=["c"]), 'd.csv has no column "c"'),
    "missing weight": (read_data("d.csv", b"a,b\n" + ROW, weight="n"), 'd.csv has no column "n"'),
    "weight is text": (
        read_data("d.csv", b"a,b\nx," + BYTES, names="a", weight="b"),
        "not a number on row 1",
    ),
    "negative weight": (
        read_data("d.csv", b"a,b\n" + BYTES + b",-4711\n", names="a", weight="b"),
        '"b" in d.csv is negative on row 1',
    ),
    "fractional weight": (
        read_data("d.csv", b"a,b\n" + BYTES + b",1\ny,4711.5\n", names="a", weight="b"),
        '"b" in d.csv has a fraction on row 2',
    ),
    "unknown label": (
        under_spec('[source]\nfile = "d.csv"\n[attributes.a]\nlabels = ["x"]\n', b"a\nx\n" + BYTES + b"\n"),
        'column "a" in d.csv has a value on row 2 that is not among',
    ),
    "text in bins": (
        under_spec(
            '[source]\nfile = "d.csv"\n[attributes.a]\nkind = "integer"\nbins = [5]\n',
            b"a\n7\n" + BYTES + b"\n",
        ),
        "row 2 that is not a number of the kind",
    ),
    "label outside the hierarchy from prefixes": (
        under_spec(
            '[source]\nfile = "d.csv"\n[attributes.a]\nhierarchy = { prefixes = [2, 99] }\n', b"a\n" + BYTES
        ),
        "code 1 is shorter than the longest prefix",
    ),
    "records in a structural zero": (
        under_spec(
            '[source]\nfile = "d.csv"\n[attributes.a]\nlabels = ["x"]\n[[structural_zeros]]\na = ["x"]\n',
            b"a\nx\n",
        ),
        "d.csv has records in a structural zero",
    ),
    "merge of labels that do not occur": (
        under_spec(
            f'[source]\nfile = "d.csv"\n[attributes.a]\nmerge = {{ g = ["x", "{SECRET}"] }}\n', b"a\nx\n"
        ),
        'attribute "a" does not have label 2 of the group "g"',
    ),
}

S = f'"{SECRET}"'
SCHEMAS = {
    "spec is missing": (lambda folder: read_spec(folder / "s.toml"), "s.toml does not exist"),
    "spec is a directory": (lambda folder: read_spec(folder), "is a directory; give a file"),
    "spec is not TOML": (spec(f"[source]\nfile = {SECRET}\n"), "s.toml is not valid TOML at line 2"),
    "spec ends early": (spec(f"[source]\nfile = {S[:-1]}"), "s.toml is not valid TOML"),
    "spec in latin-1": (spec(b"[source]\nfile = '" + LATIN + b"'"), "s.toml is not UTF-8 text on line 2"),
    "spec with a key twice": (
        spec(f"[source]\nfile = {S}\nfile = {S}\n"),
        "s.toml is not valid TOML at line 3",
    ),
    "unknown section": (spec(f"[sources]\nfile = {S}\n"), 'key "sources" is not a known key'),
    "unknown key": (spec(f"[source]\npath = {S}\n"), 'key "source.path" is not a known key'),
    "text for a number": (
        spec(f"[attributes.a]\nlevel = {S}\n"),
        '"attributes.a.level" must be a whole number',
    ),
    "number for text": (
        spec("[attributes.a]\nlabels = [4711]\n"),
        '"attributes.a.labels", item 1 must be text',
    ),
    "unknown kind": (spec(f"[attributes.a]\nkind = {S}\n"), '"attributes.a.kind" must be'),
    "label twice": (spec(f"[attributes.a]\nlabels = [{S}, {S}]\n"), "lists a label twice"),
    "ordered without labels": (spec('[attributes.a]\nkind = "ordered"\n'), "needs its labels in order"),
    "integer labels that are text": (
        spec(f'[attributes.a]\nkind = "integer"\nlabels = ["1", {S}]\n'),
        "label 2 is not",
    ),
    "merge of an unknown label": (
        spec(f'[attributes.a]\nlabels = ["x"]\nmerge = {{ g = [{S}] }}\n'),
        'does not have label 1 of the group "g"',
    ),
    "unknown label in a structural zero": (
        spec(f'[attributes.a]\nlabels = ["x"]\n[[structural_zeros]]\na = [{S}]\n'),
        'lists label 1 for "a", which does not have it',
    ),
    "table where text belongs": (
        spec(f"[source.file]\nx = {S}\n"),
        'key "source.file" must be text in quotes',
    ),
    "recodes: value is text": (recodes(f"[a]\ng = {S}\n"), 'r.toml: key "a.g" must be a list of labels'),
    "recodes: not a table": (recodes(f"a = {S}\n"), 'r.toml: key "a" must be a table'),
    "recodes: bins of text": (recodes(f"[a]\nbins = [1, {S}]\n"), 'key "a.bins" must be a list'),
    "recodes: a label in two groups": (
        recodes(f"[a]\ng = [{S}]\nh = [{S}]\n"),
        'label 1 of the group "h" twice',
    ),
    "hierarchy: empty": (hierarchy(b""), "h.csv has no rows"),
    "hierarchy: header only": (hierarchy(b"level0;level1\n"), "h.csv has no rows"),
    "hierarchy: ragged": (hierarchy(f"a;x\n{SECRET}\n"), "row 2 does not have as many levels"),
    "hierarchy: leaf twice": (hierarchy(f"{SECRET};x\nb;x\n{SECRET};x\n"), "row 3 repeats the leaf"),
    "hierarchy: two parents": (hierarchy(f"a;{SECRET};x\nb;{SECRET};y\n"), "row 2 puts its label of level 1"),
    "hierarchy: no label": (hierarchy(f"a;{SECRET}\n;x\n"), "row 2 has no label at level 0"),
    "hierarchy: latin-1": (hierarchy(b"a;x\n" + LATIN + b";x\n"), "h.csv is not UTF-8 text on line 2"),
    "hierarchy: not gzip": (hierarchy(BYTES, "h.csv.gz"), "not a gzip file or ends early"),
    "hierarchy: field too long": (hierarchy(b'"' + BYTES * 20_000), "cannot be read as separated text"),
    "hierarchy: directory": (unreadable_hierarchy, "is a directory; give a file"),
}


@pytest.mark.parametrize(
    ("run", "message"),
    [*FILES.values(), *VALUES.values(), *SCHEMAS.values()],
    ids=[*FILES, *VALUES, *SCHEMAS],
)
def test_one_sentence_that_locates_and_never_quotes(tmp_path, run, message):
    with pytest.raises(InputError) as caught:
        run(tmp_path)
    said = str(caught.value)
    assert message in said
    assert said.endswith((".", "?"))
    assert "\n" not in said
    shown = said + "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert SECRET not in shown
    assert "4711" not in shown
    assert str(tmp_path) not in said
    assert quotes_nothing(caught.value)


def quotes_nothing(error):
    """Whether no exception behind this one, which a debugger would show, holds the secret."""
    while error is not None:
        if SECRET in str(error) or "4711" in str(error):
            return False
        error = error.__cause__ or error.__context__
    return True


def test_there_are_at_least_thirty():
    assert len({*FILES, *VALUES, *SCHEMAS}) == len(FILES) + len(VALUES) + len(SCHEMAS) >= 30
