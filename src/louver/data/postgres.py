"""PostgreSQL: the result of a table or query, copied batch by batch into the private database; needs the extra `postgres`."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from louver.data.separated import check_names
from louver.data.sql import quoted, split_table
from louver.errors import InputError
from louver.run import Run

__all__ = ["POSTGRES_SCHEMES", "copy_postgres"]

POSTGRES_SCHEMES = ("postgresql://", "postgres://")
UNDEFINED_TABLE = "42P01"  # SQLSTATE


def copy_postgres(
    connection: duckdb.DuckDBPyConnection,
    target: str,
    name: str,
    uri: str,
    table: str | None,
    query: str | None,
    run: Run,
) -> None:
    """Make the temporary table `target` from a table or query; messages call it `name`.

    Cancelling the run leaves a connection that is not made yet to itself, and cancels the query on the server.
    """
    if (table is None) == (query is None):
        raise InputError(
            "a PostgreSQL address needs either a table or a query (--table or --query).", option="table"
        )
    try:
        from adbc_driver_manager import Error as DriverError
        from adbc_driver_postgresql import dbapi
    except ImportError:
        message = "reading PostgreSQL needs the extra; install louver[postgres]."
        raise InputError(message) from None
    if query is None:
        assert table is not None
        schema, relation = split_table(table, "")
        query = "SELECT * FROM " + (f"{quoted(schema)}." if schema else "") + quoted(relation)
    problem = None
    try:
        with (
            run.attend(dbapi.connect, uri) as server,
            server.cursor() as cursor,
            run.interrupting(cursor.adbc_cancel),
            run.interrupting(connection.interrupt),
        ):
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
            check_names(reader.schema.names, name)
            connection.register("stream", reader)
            connection.execute(f"CREATE TEMP TABLE {target} AS SELECT * FROM stream")
            connection.unregister("stream")
    except DriverError as error:
        problem = _problem(name, error.sqlstate)
    except (duckdb.Error, pa.ArrowException, OSError):
        problem = f"{name} broke off while it was read; run it on the server to see why."
    if problem is not None:
        raise InputError(problem)


def _problem(name: str, sqlstate: str | None) -> str:
    """Our sentence for a PostgreSQL error, of which only the code is safe to repeat."""
    if not sqlstate or sqlstate.startswith(("08", "28", "3D")):
        return "the PostgreSQL server cannot be reached with this address, user and password."
    if sqlstate == UNDEFINED_TABLE:
        return f"{name} does not exist; check the name and its schema."
    return f"{name} failed on the server (SQLSTATE {sqlstate}); run it there to see why."
