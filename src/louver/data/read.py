"""Opening records: one reader on DuckDB for files, databases and dataframes.

Nothing else in louver opens confidential data. DuckDB's and the drivers' own messages may quote values, so
none of them leaves this module; what does says file, column and row.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from louver.data.scratch import Scratch
from louver.data.separated import Header, check_names, find_fault, read_header
from louver.errors import InputError

__all__ = ["Source", "name_of", "open_source", "quoted"]

MEMORY_LIMIT = "1GB"
BATCH_ROWS = 2**17
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
UNDEFINED_TABLE = "42P01"  # SQLSTATE


class ArrowStream(Protocol):
    """A dataframe with the Arrow interface: pandas, polars, pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(slots=True, kw_only=True)
class Source:
    """An open table of records; use it in a `with` block.

    Parameters
    ----------
    name : str
        What messages call it: the file name without its folder.
    connection : DuckDBPyConnection
        Private in-memory database with the view `records` on the data.
    """

    name: str
    connection: duckdb.DuckDBPyConnection
    types: dict[str, str] = field(default_factory=dict)
    _scratch: Scratch
    _path: Path | None = None
    _header: Header | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self.types)

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The records; every column of a CSV file is text."""
        return self.connection.view("records")

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and remove what it spilled to disk."""
        self.connection.close()
        self._scratch.close()

    def check_column(self, column: str) -> None:
        """Refuse a column that the data do not have."""
        if column not in self.types:
            message = f'{self.name} has no column "{column}"; check the spelling.'
            raise InputError(message, file=self.name, column=column)

    def read_all(self) -> pa.Table:
        """All columns of all records, which stay in memory; a CSV file is not parsed again for later queries."""
        table = pa.Table.from_batches(list(self.batches("SELECT * FROM records")))
        if self._header is not None:
            self.connection.register("held", table)
            self.connection.execute("CREATE OR REPLACE TEMP VIEW records AS SELECT * FROM held")
        return table

    def batches(self, sql: str, **parameters: object) -> Iterator[pa.RecordBatch]:
        """Rows of a query on `records`, a batch at a time."""
        try:
            relation = self.connection.sql(sql, params=parameters or None)
            yield from relation.to_arrow_reader(BATCH_ROWS)
            return
        except duckdb.OutOfMemoryException:
            problem = InputError(
                f"{self.name} has too many distinct rows for memory and disk; tabulate fewer columns.",
                file=self.name,
            )
        except (duckdb.Error, pa.ArrowException, OSError):
            problem = self._fault()
        raise problem

    def first_row(self, sql: str, **parameters: object) -> dict[str, Any] | None:
        """First row of a query on `records`, or None."""
        for batch in self.batches(sql, **parameters):
            if batch.num_rows:
                row: dict[str, Any] = batch.slice(0, 1).to_pylist()[0]
                return row
        return None

    def _fault(self) -> InputError:
        """What to say when the data could not be read."""
        if self._path is not None and self._header is not None:
            found = find_fault(self._path, self._header)
            if found is not None:
                return found
            reason = "mixes line endings or has a line that is too long; save it again as plain CSV"
        else:
            reason = "cannot be read to its end; check that it is whole"
        return InputError(f"{self.name} {reason}.", file=self.name)


def open_source(
    data: str | os.PathLike[str] | ArrowStream, *, table: str | None = None, query: str | None = None
) -> Source:
    """Open a table of records.

    Parameters
    ----------
    data : path, uri or dataframe
        A `.csv`, `.csv.gz`, `.tsv`, `.tsv.gz` or `.parquet` file; a `.duckdb` or `.db` file, with `table`; a
        `postgresql://` uri, with `table` or `query`; or a dataframe with the Arrow interface.
    table : str, optional
        Table or view, with its schema in front where needed ("census.persons").
    query : str, optional
        SQL run by the PostgreSQL server in a read-only transaction.

    Returns
    -------
    Source
        To be used in a `with` block.

    Raises
    ------
    InputError
        If there is nothing to read, with one sentence that quotes nothing.

    Notes
    -----
    **Cost**: files are read where they are, batch by batch; DuckDB keeps to 1 GB and spills to a private
    folder that goes with the source. Nothing is downloaded.
    """
    source = _start(name_of(data, table))
    try:
        _attach(source, data, table, query)
        _describe(source)
    except BaseException:
        source.close()
        raise
    return source


def quoted(identifier: str) -> str:
    """An identifier in SQL."""
    return '"' + identifier.replace('"', '""') + '"'


def name_of(data: object, table: str | None) -> str:
    """File name, table or kind of object; never a uri, which may hold a password."""
    if isinstance(data, str) and data.startswith(POSTGRES_SCHEMES):
        return f'the database table "{table}"' if table else "the database query"
    if isinstance(data, str | os.PathLike):
        return Path(data).name or str(Path(data))
    return "the dataframe"


def _start(name: str) -> Source:
    """A private database in memory that downloads nothing and spills only into its own folder."""
    scratch = Scratch()
    connection = duckdb.connect(
        ":memory:",
        config={
            "allow_community_extensions": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": MEMORY_LIMIT,
            "python_enable_replacements": "false",
            "temp_directory": str(scratch.path),
            "threads": str(
                len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
            ),
        },
    )
    connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
    _encrypt_spill(connection)
    return Source(name=name, connection=connection, _scratch=scratch)


def _encrypt_spill(connection: duckdb.DuckDBPyConnection) -> None:
    """Let no record reach the disk in clear where this DuckDB can do it without an extension.

    Its own cipher is called unsafe because its random numbers are ordinary ones: enough against whoever finds the file of
    a killed process, while the folder's mode keeps everybody else out as long as it lives.
    """
    with suppress(duckdb.Error):
        connection.execute("SET force_mbedtls_unsafe = true; SET temp_file_encryption = true")


def _attach(source: Source, data: object, table: str | None, query: str | None) -> None:
    """Make the view `records`, by the kind of `data`."""
    if isinstance(data, str) and data.startswith(POSTGRES_SCHEMES):
        _attach_postgres(source, data, table, query)
    elif query is not None:
        raise InputError("a query needs a PostgreSQL address; leave it out (--query).", option="query")
    elif isinstance(data, str | os.PathLike):
        _attach_file(source, Path(data), table)
    elif table is not None:
        raise InputError("a dataframe has no tables; leave the table out.", option="table")
    else:
        _attach_dataframe(source, data)


def _attach_file(source: Source, path: Path, table: str | None) -> None:
    kind = path.with_suffix("").suffix + path.suffix if path.suffix.lower() == ".gz" else path.suffix
    kind = kind.lower()
    if not os.path.exists(path):  # not Path.exists, which raises on a name that is too long
        raise InputError(f"{source.name} does not exist; check the path.", file=source.name)
    if path.is_dir():
        raise InputError(f"{source.name} is a directory; give a file.", file=source.name)
    if kind in (".duckdb", ".db"):
        _attach_database(source, path, table)
        return
    if table is not None:
        message = f"{source.name} is a single table; leave the table out (--table)."
        raise InputError(message, file=source.name, option="table")
    if kind in (".csv", ".csv.gz", ".tsv", ".tsv.gz"):
        _attach_separated(source, path)
    elif kind == ".parquet":
        _attach_parquet(source, path)
    else:
        expected = ".csv, .csv.gz, .tsv, .parquet, .duckdb or .db"
        raise InputError(f"{source.name} has no known ending; give {expected}.", file=source.name)


def _attach_separated(source: Source, path: Path) -> None:
    """Every column as text: labels such as "01" keep their zeros."""
    header = read_header(path)
    source._path, source._header = path, header
    columns = ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in header.names)
    options = [
        _file_literal(path),
        "auto_detect = false",
        "header = true",
        f"columns = {{{columns}}}",
        f"delim = {_literal(header.separator)}",
        "quote = '\"'",
        "escape = '\"'",
        "nullstr = ''",
        "strict_mode = true",
        "hive_partitioning = false",
        f"compression = '{'gzip' if header.is_compressed else 'none'}'",
    ]
    _create_view(source, f"read_csv({', '.join(options)})")


def _attach_parquet(source: Source, path: Path) -> None:
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError, ValueError):  # names that are not UTF-8 are a ValueError
        names = None
    if names is None:
        raise InputError(f"{source.name} is not a Parquet file; check how it was made.", file=source.name)
    check_names(names, source.name)
    _create_view(source, f"read_parquet({_file_literal(path)}, hive_partitioning = false)")


def _attach_database(source: Source, path: Path, table: str | None) -> None:
    if table is None:
        message = f"{source.name} is a database; name the table to read (--table)."
        raise InputError(message, file=source.name, option="table")
    try:
        source.connection.execute(f"ATTACH {_literal(str(path.absolute()))} AS origin (READ_ONLY)")
        is_open = True
    except duckdb.Error:
        is_open = False
    if not is_open:
        message = f"{source.name} cannot be opened as a DuckDB database; check that it is one and that no other program has it open."
        raise InputError(message, file=source.name)
    schema, name = _split_table(table, "main")
    found = source.first_row(
        "SELECT 1 FROM information_schema.tables"
        " WHERE table_catalog = 'origin' AND table_schema = $schema AND table_name = $name",
        schema=schema,
        name=name,
    )
    if found is None:
        message = f'{source.name} has no table "{table}"; check the name.'
        raise InputError(message, file=source.name, option="table")
    _create_view(source, f"origin.{quoted(schema)}.{quoted(name)}")


def _attach_dataframe(source: Source, data: object) -> None:
    if hasattr(data, "__arrow_c_stream__"):
        convert = pa.table
    elif hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        convert = from_dataframe
    else:
        raise InputError("the data are neither a path nor a dataframe with the Arrow interface.")
    try:
        frame = convert(data)
    except (pa.ArrowException, ValueError, TypeError, NotImplementedError):
        frame = None
    if frame is None:
        message = "the dataframe has a column of mixed or unknown type, or a name twice; convert it first."
        raise InputError(message)
    check_names(frame.schema.names, source.name)
    source.connection.register("frame", frame)
    _create_view(source, "frame")


def _attach_postgres(source: Source, uri: str, table: str | None, query: str | None) -> None:
    """Copy the result of a table or query into the private database, a batch at a time."""
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
        schema, name = _split_table(table, "")
        query = "SELECT * FROM " + (f"{quoted(schema)}." if schema else "") + quoted(name)
    problem = None
    try:
        with dbapi.connect(uri) as server, server.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(query)
            reader = cursor.fetch_record_batch()
            check_names(reader.schema.names, source.name)
            source.connection.register("stream", reader)
            source.connection.execute("CREATE TEMP TABLE records AS SELECT * FROM stream")
            source.connection.unregister("stream")
    except DriverError as error:
        problem = _postgres_problem(source.name, error.sqlstate)
    except (duckdb.Error, pa.ArrowException, OSError):
        problem = f"{source.name} broke off while it was read; run it on the server to see why."
    if problem is not None:
        raise InputError(problem)


def _postgres_problem(name: str, sqlstate: str | None) -> str:
    """Our sentence for a PostgreSQL error, of which only the code is safe to repeat."""
    if not sqlstate or sqlstate.startswith(("08", "28", "3D")):
        return "the PostgreSQL server cannot be reached with this address, user and password."
    if sqlstate == UNDEFINED_TABLE:
        return f"{name} does not exist; check the name and its schema."
    return f"{name} failed on the server (SQLSTATE {sqlstate}); run it there to see why."


def _create_view(source: Source, relation: str) -> None:
    try:
        source.connection.execute(f"CREATE TEMP VIEW records AS SELECT * FROM {relation}")
        return
    except duckdb.Error:
        pass
    raise source._fault()


def _describe(source: Source) -> None:
    """Names and types of the columns, and whether there is any row."""
    for batch in source.batches("SELECT column_name, column_type FROM (DESCRIBE records)"):
        source.types.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    if source.first_row("SELECT 1 FROM records LIMIT 1") is None:
        raise InputError(f"{source.name} has no rows; give data with at least one.", file=source.name)


def _split_table(table: str, default_schema: str) -> tuple[str, str]:
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else (default_schema, table)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _file_literal(path: Path) -> str:
    """The path of one file, with nothing that DuckDB would take for a pattern or a protocol."""
    return _literal(glob.escape(str(path.absolute())))
