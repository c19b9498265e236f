"""PostgreSQL through ADBC, against a real server."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from louver.data.read import open_source
from louver.data.tabulate import read_codes, tabulate
from louver.errors import Cancelled, InputError
from louver.run import Run
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode
from louver.schema.spec import Schema
from oracles import tables

pytestmark = pytest.mark.postgres
SECRET = "Zw\u00fcrgl-4711"


@pytest.fixture(scope="module")
def uri(postgres_uri):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgres_uri) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA census")
        cursor.execute("CREATE TYPE sex AS ENUM ('f', 'm')")
        cursor.execute(
            'CREATE TABLE census.people (id bigint, sex sex, "Home Town" text, age integer, n numeric,'
            " w real, born date, ok boolean, code char(3))"
        )
        cursor.execute(
            f"""INSERT INTO census.people VALUES
            (1, 'f', 'Zürich', 24, 1, 1, '2000-01-01', true, '001'),
            (2, 'm', 'Bern', 30, 2, 2, '2000-01-02', true, '002'),
            (3, 'f', 'Bern', NULL, 3, 3, '2000-01-02', false, '002'),
            (4, 'm', '{SECRET}', 55, 4.5, 4, NULL, NULL, NULL)"""
        )
        cursor.execute("CREATE TABLE public.empty (a text)")
        cursor.execute(
            "CREATE TABLE many AS SELECT (i % 7)::text AS a, i FROM generate_series(0, 299999) AS i"
        )
        connection.commit()
    return postgres_uri


def test_a_table(uri):
    with open_source(uri, table="census.people") as source:
        assert source.columns == ("id", "sex", "Home Town", "age", "n", "w", "born", "ok", "code")
        assert tables.table_of(tabulate(source, ["sex"])) == {("f",): 2, ("m",): 2}
        assert tables.table_of(tabulate(source, ["sex"], weight="w")) == {("f",): 4, ("m",): 6}


def test_a_query_and_its_types(uri):
    query = "SELECT * FROM census.people WHERE id < 4 ORDER BY id"
    schema = Schema(
        attributes=(Attribute(name="age", kind=Kind.INTEGER, missing="?"),),
        recodes=(Recode("age", bins=(25,)),),
    )
    with open_source(uri, query=query) as source:
        histogram = tabulate(source, ["age", "Home Town", "born", "ok", "code"], weight="n", schema=schema)
        records = read_codes(source, ["sex"])
    assert tables.table_of(histogram) == {
        ("<25", "Zürich", "2000-01-01", "true", "001"): 1,
        ("25+", "Bern", "2000-01-02", "true", "002"): 2,
        ("?", "Bern", "2000-01-02", "false", "002"): 3,
    }
    assert records.codes[:, 0].tolist() == [0, 1, 0]


def test_many_rows(uri):
    with open_source(uri, table="many") as source:
        histogram = tabulate(source, ["a"])
    assert histogram.counts.tolist() == [42858] * 1 + [42857] * 6


def test_queries_cannot_write(uri):
    with pytest.raises(InputError, match="SQLSTATE 25006"):
        open_source(uri, query="DELETE FROM census.people RETURNING id")
    with open_source(uri, table="census.people") as source:
        assert tabulate(source, ["sex"]).total == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "census.persons"}, 'the database table "census.persons" does not exist'),
        ({"table": "people"}, 'the database table "people" does not exist'),
        ({"table": "empty"}, 'the database table "empty" has no rows'),
        ({"query": "SELECT"}, "the database query has no columns"),
        ({"query": "SELEC id"}, r"the database query failed on the server \(SQLSTATE 42601\)"),
        (
            {"query": 'SELECT "Home Town"::integer FROM census.people WHERE id = 4'},
            "the database query failed while it was being read",
        ),
        ({"query": "SELECT id, id FROM census.people"}, "the same name .* in columns 1 and 2"),
        ({"table": "t", "query": "q"}, "either a table or a query"),
        ({}, "either a table or a query"),
    ],
)
def test_messages_hold_neither_values_nor_the_address(uri, options, message):
    with pytest.raises(InputError, match=message) as caught:
        open_source(uri, **options)
    said = str(caught.value)
    assert "\n" not in said and SECRET not in said and "louver-pg" not in said
    assert caught.value.__context__ is None


def test_an_error_in_the_middle_of_the_rows(uri):
    """The server sends many good rows before it meets the bad one."""
    query = "SELECT CASE WHEN i = 299999 THEN 1 / (i - 299999) ELSE i END AS a FROM many ORDER BY i"
    with pytest.raises(InputError, match="failed while it was being read") as caught:
        open_source(uri, query=query)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://nobody:4711@127.0.0.1:1/none",
        "postgres:///none?host=/nowhere/4711",
        "postgresql://[4711",
    ],
)
def test_a_server_that_cannot_be_reached(address):
    with pytest.raises(InputError, match="cannot be reached with this address, user and password") as caught:
        open_source(address, table="t")
    assert "4711" not in str(caught.value)


def test_a_database_that_does_not_exist(uri):
    with pytest.raises(InputError, match="cannot be reached"):
        open_source(uri.replace("/postgres?", "/none?"), table="t")


def test_a_column_that_is_nested(uri):
    with (
        open_source(uri, query="SELECT ARRAY[1, 2] AS a") as source,
        pytest.raises(InputError, match='column "a" in the database query has a nested or binary type'),
    ):
        tabulate(source, ["a"])


def test_the_result_agrees_with_the_same_rows_in_memory(uri):
    with open_source(uri, table="many", weight_is_count=True) as source:
        from_server = tabulate(source, ["a"], weight="i")
    numbers = list(range(300_000))
    frame = pa.table({"a": [str(i % 7) for i in numbers], "i": numbers})
    with open_source(frame, weight_is_count=True) as source:
        assert tabulate(source, ["a"], weight="i") == from_server


def test_a_query_on_the_server_is_cancelled(uri: str) -> None:
    run = Run()
    threading.Timer(0.2, run.cancel).start()
    with pytest.raises(Cancelled):
        open_source(uri, query="SELECT pg_sleep(600)", run=run)


def test_a_download_is_cancelled(uri: str) -> None:
    run = Run()
    threading.Timer(0.2, run.cancel).start()
    with pytest.raises(Cancelled):
        open_source(uri, query="SELECT generate_series(1, 100000000000) AS a", run=run)
