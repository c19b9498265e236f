"""Opening records: one reader on DuckDB for files, databases and dataframes.

Nothing else in louver opens confidential data. Messages of DuckDB and the drivers may quote values, so none of them leaves this module; its
own messages name file, column and row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from louver._words import listed
from louver.data.formats import (
    POSTGRES_SCHEMES,
    Format,
    copy_postgres,
    endings_of,
    format_of,
    names_of,
    read_excel,
    read_or_refuse,
    read_statistical,
)
from louver.data.mistakes import check_commas, no_such_column, with_points
from louver.data.parsing_once import GZIP_RATIO, ROWS, connect, is_parsing_once, parse_and_hash, parsed
from louver.data.scratch import Scratch
from louver.data.separated import Header, TextFile, check_names, find_fault, read_header, text_file
from louver.data.sql import file_literal, filter_sql, literal, quoted, split_table
from louver.errors import InputError
from louver.run import Run
from louver.schema.source import ALL_COLUMNS
from louver.schema.where import parse_where

__all__ = ["POSTGRES_SCHEMES", "Source", "name_of", "open_source", "parse_while_hashing", "quoted"]

BATCH_ROWS = 2**17
LARGE = 16 << 20
"""Size in bytes up to which a file of another program is read in about half a second."""
RAW, WHOLE, RECORDS = "raw", "whole", "records"
"""Views, each built on the previous one: the data as stored; as read, with every row; the rows that `--where` selects."""

SAMPLE = "sample"
SAMPLE_ROWS = 100_000
"""The first rows as stored, used for every inspection of the data before the actual reading."""
SAMPLE_BUFFER = 1 << 20
"""Bytes read ahead for the sample of a text file; DuckDB's default of 32 MB would cover most files."""


class ArrowStream(Protocol):
    """A dataframe with the Arrow interface: pandas, polars, pyarrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@dataclass(slots=True, kw_only=True)
class Source:
    """An open table of records; use it in a `with` block.

    Parameters
    ----------
    name : str
        Name in messages: the file name without its folder.
    connection : DuckDBPyConnection
        Private in-memory database with the view `records` on the data, and the view `whole`, which also has the rows that `--where` leaves
        out.
    run : Run
        Checked at every batch; cancelling it interrupts the query.
    types : dict
        Column -> type in DuckDB.
    condition : str
        SQL for the rows of `whole` that are in `records`.
    missing_code : mapping
        Column, or `*` for all, -> values that stand for missing.
    is_weight_count : bool
        Whether a column of weights counts people, even if it looks like money or a weight.
    date_order : str, optional
        Order of day, month and year in dates that can be read in several ways: dmy, mdy or ymd.
    """

    name: str
    connection: duckdb.DuckDBPyConnection
    run: Run
    types: dict[str, str] = field(default_factory=dict)
    condition: str = "true"
    missing_code: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_weight_count: bool = False
    date_order: str | None = None
    _scratch: Scratch
    _held: ExitStack = field(default_factory=ExitStack)
    _text: TextFile | None = None
    _header: Header | None = None
    _has_points: bool = False
    """Whether decimal commas were replaced by points."""
    _is_file: bool = False
    """Whether each query rereads a file."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names."""
        return tuple(self.types)

    @property
    def is_text(self) -> bool:
        """Whether the source has no types, as in CSV and TSV."""
        return self._header is not None

    @property
    def is_as_stored(self) -> bool:
        """Whether all rows are records and no decimal comma is replaced, so that a sample of the file is a sample of the records."""
        return self.condition == "true" and not self._has_points

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
        self._held.close()
        self._scratch.close()

    def check_column(self, column: str) -> None:
        """Refuse a column that the data do not have."""
        if column not in self.types:
            raise no_such_column(self, column, has_header=self._header is not None)

    def missing_codes_of(self, column: str) -> tuple[str, ...]:
        """Values of a column that stand for missing."""
        return (*self.missing_code.get(column, ()), *self.missing_code.get(ALL_COLUMNS, ()))

    def read_all(self) -> pa.Table:
        """Load all columns of all records into memory; a file is not read again for later queries."""
        table = pa.Table.from_batches(list(self.batches("SELECT * FROM records")))
        if self._is_file:
            self.connection.register("held", table)
            self._read_held()
        return table

    def hold(self, columns: Sequence[str] = ()) -> None:
        """Keep the records, or some of their columns, in the database, which spills to disk: a text file is parsed only once."""
        if self._header is not None and self._is_file:
            fields = ", ".join(map(quoted, dict.fromkeys(columns))) or "*"
            for _ in self.batches(f"CREATE TEMP TABLE IF NOT EXISTS held AS SELECT {fields} FROM records"):
                pass
            self._read_held()

    def _read_held(self) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {RECORDS} AS SELECT * FROM held")
        self._is_file = False

    @contextmanager
    def narrowed(self, condition: str) -> Iterator[bool]:
        """Temporarily restrict `records` to those that meet a condition (SQL); yields whether there are any."""
        before = self.condition
        try:
            self._restrict(f"({before}) AND ({condition})")
            yield self.first_row(f"SELECT 1 FROM {RECORDS} LIMIT 1") is not None
        finally:
            self._restrict(before)

    def _restrict(self, condition: str) -> None:
        self.condition = condition
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {RECORDS} AS SELECT * FROM {WHOLE} WHERE {condition}"
        )

    def batches(self, sql: str, **parameters: object) -> Iterator[pa.RecordBatch]:
        """Rows of a query on `records`, a batch at a time."""
        try:
            with self.run.interrupting(self.connection.interrupt):
                relation = self.connection.sql(sql, params=parameters or None)
                for batch in relation.to_arrow_reader(BATCH_ROWS):
                    self.run.check()
                    yield batch
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

    def estimate_rows(self) -> int:
        """Number of records, for progress: counted or, for a text file, estimated from the length of its first rows."""
        if self._text is None or not self._is_file:
            found = self.first_row(f"SELECT count(*) AS n FROM {RECORDS}")
            return 0 if found is None else int(found["n"])
        length = " + ".join(f"1 + coalesce(strlen({quoted(name)}), 0)" for name in self.types)
        found = self.first_row(f"SELECT count(*) AS n, CAST(sum({length}) AS BIGINT) AS bytes FROM {SAMPLE}")
        assert found is not None
        if found["n"] < SAMPLE_ROWS:
            return int(found["n"])
        size = self._text.path.stat().st_size * (GZIP_RATIO if self._text.is_compressed else 1)
        return max(SAMPLE_ROWS, int(found["n"] * size / found["bytes"]))

    def row_of(self, position: int) -> int:
        """Number of a row of `records`, counted from 1, among all rows of the source."""
        if self.condition == "true":
            return position
        numbered = f"SELECT row_number() OVER () AS row, {self.condition} AS is_hit FROM {WHOLE}"
        found = self.first_row(
            f"SELECT row FROM ({numbered}) WHERE is_hit ORDER BY row LIMIT 1 OFFSET {position - 1}"
        )
        assert found is not None
        return int(found["row"])

    def _fault(self) -> InputError:
        """The error message for data that could not be read."""
        if self._text is not None and self._header is not None:
            found = find_fault(self._text, self._header)
            if found is not None:
                return found
            reason = "mixes line endings or has an overlong line; save it again as plain CSV"
        else:
            reason = "cannot be read to its end; check that it is complete"
        return InputError(f"{self.name} {reason}.", file=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadingOptions:
    """How a source is read; see `open_source`."""

    table: str | None
    query: str | None
    decimal_mark: str | None
    encoding: str
    delimiter: str | None
    keep_codes: bool
    where: str | None
    header_row: int | None


def open_source(
    data: str | os.PathLike[str] | ArrowStream,
    *,
    table: str | None = None,
    query: str | None = None,
    decimal_mark: str | None = None,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    keep_codes: bool = False,
    where: str | None = None,
    header_row: int | None = None,
    missing_code: Mapping[str, tuple[str, ...]] | None = None,
    date_order: str | None = None,
    weight_is_count: bool = False,
    run: Run | None = None,
) -> Source:
    """Open a table of records.

    Parameters
    ----------
    data : path, uri or dataframe
        A `.csv`, `.csv.gz`, `.tsv`, `.tsv.gz` or `.parquet` file; a `.duckdb` or `.db` file, with `table`; a file of Excel,
        Stata, SPSS or SAS; a `postgresql://` uri, with `table` or `query`; or a dataframe with the Arrow interface.
    table : str, optional
        Table or view, preceded by its schema if needed ("census.persons"); the sheet of an Excel file.
    query : str, optional
        SQL run by the PostgreSQL server in a read-only transaction.
    decimal_mark : {".", ","}, optional
        The decimal mark of numbers that are text. Without it, a column that seems to use a comma is refused.
    encoding, delimiter : str, optional
        Encoding and delimiter of separated text; the encoding also of a file of Stata, SPSS or SAS that does not state its own.
    keep_codes : bool
        Ignore the value labels of Stata, SPSS and SAS files.
    where : str, optional
        Condition on the rows, see `louver.schema.where`.
    header_row : int, optional
        Row of separated text or of a sheet that names the columns, counted from 1. Without it, the first row is used, and refused if it
        looks like a title.
    missing_code : mapping, optional
        Column, or `*` for all, -> values that stand for missing; `read_all` keeps them.
    date_order : {"dmy", "mdy", "ymd"}, optional
        Order of day, month and year in dates that can be read in several ways.
    weight_is_count : bool
        Whether a column of weights counts people, even if it looks like money or a sampling weight.
    run : Run, optional
        Checked for cancellation while reading.

    Returns
    -------
    Source
        To be used in a `with` block.

    Raises
    ------
    InputError
        If the data cannot be read, with one sentence that quotes nothing.

    Notes
    -----
    **Cost**: files are read in place, batch by batch; DuckDB uses at most 1 GB and spills to a private folder, which is removed with
    the source. Files of Excel, Stata, SPSS and SAS, and text that is not UTF-8, are held in memory.
    Nothing is downloaded.
    """
    reading = _ReadingOptions(
        table=table,
        query=query,
        decimal_mark=decimal_mark,
        encoding=encoding,
        delimiter=delimiter,
        keep_codes=keep_codes,
        where=where,
        header_row=header_row,
    )
    source = _start(name_of(data, table), run or Run())
    source.missing_code, source.is_weight_count = missing_code or {}, weight_is_count
    source.date_order = date_order
    try:
        _attach(source, data, reading)
        _describe(source)
        for column in source.missing_code:
            if column != ALL_COLUMNS:
                source.check_column(column)
        _read_decimals(source, decimal_mark)
        _select_rows(source, where)
    except BaseException:
        source.close()
        raise
    return source


def name_of(data: object, table: str | None) -> str:
    """File name, table or kind of object; never a uri, which may contain a password."""
    if isinstance(data, str) and data.startswith(POSTGRES_SCHEMES):
        return f'the database table "{table}"' if table else "the database query"
    if isinstance(data, str | os.PathLike):
        return Path(data).name or str(Path(data))
    return "the dataframe"


def _start(name: str, run: Run) -> Source:
    """A source without data."""
    scratch = Scratch()
    return Source(name=name, connection=connect(scratch), run=run, _scratch=scratch)


def _attach(source: Source, data: object, reading: _ReadingOptions) -> None:
    """Make the view `raw`, by the kind of `data`."""
    is_file = isinstance(data, str | os.PathLike) and not str(data).startswith(POSTGRES_SCHEMES)
    kind = format_of(data) if is_file else None  # type: ignore[arg-type]
    _check_reading(kind, reading)
    if isinstance(data, str) and data.startswith(POSTGRES_SCHEMES):
        copy_postgres(source.connection, RAW, source.name, data, reading.table, reading.query, source.run)
    elif reading.query is not None:
        raise InputError("a query needs a PostgreSQL address; leave out --query.", option="query")
    elif isinstance(data, str | os.PathLike):
        _attach_file(source, Path(data), kind, reading)
    elif reading.table is not None:
        raise InputError("a dataframe has no tables; leave out --table.", option="table")
    else:
        _attach_dataframe(source, data)


def _check_reading(kind: Format | None, reading: _ReadingOptions) -> None:
    """Refuse options that do not apply to this kind of data."""
    for name, is_given in (
        ("delimiter", reading.delimiter is not None),
        ("encoding", reading.encoding != "utf-8"),
        ("header_row", reading.header_row is not None),
        ("keep_codes", reading.keep_codes),
    ):
        if is_given and (kind is None or name not in kind.options):
            what = listed(names_of(lambda one, name=name: name in one.options))  # type: ignore[misc]
            raise InputError(
                f"option --{name.replace('_', '-')} applies only to {what} files; leave it out.", option=name
            )


def _attach_file(source: Source, path: Path, kind: Format | None, reading: _ReadingOptions) -> None:
    if not os.path.exists(path):  # not Path.exists, which raises on a name that is too long
        raise InputError(f"{source.name} does not exist; check the path.", file=source.name)
    if path.is_dir():
        raise InputError(f"{source.name} is a directory; give a file.", file=source.name)
    if reading.table is not None and (kind is None or "table" not in kind.options):
        message = f"{source.name} is a single table; leave out --table."
        raise InputError(message, file=source.name, option="table")
    if kind is None:
        *others, last = endings_of()
        expected = f"{', '.join(others)} or {last}"
        raise InputError(f"{source.name} has no known file extension; give {expected}.", file=source.name)
    READERS[kind.reader](source, path, reading)


def _attach_excel(source: Source, path: Path, reading: _ReadingOptions) -> None:
    _attach_table(source, _read_foreign(source.run, read_excel, path, reading.table, reading.header_row))


def _attach_statistical(source: Source, path: Path, reading: _ReadingOptions) -> None:
    encoding = None if reading.encoding == "utf-8" else reading.encoding
    _attach_table(source, _read_foreign(source.run, read_statistical, path, encoding, reading.keep_codes))


def _read_foreign(run: Run, read: Callable[..., pa.Table], path: Path, *how: Any) -> pa.Table:
    """A file of another program; a large one is read in a child process, because the library blocks the interpreter."""
    if path.stat().st_size <= LARGE:
        return run.attend(read, path, *how)
    found = run.call(read_or_refuse, read, path, *how)
    if isinstance(found, InputError):
        raise found
    return found


def _attach_separated(source: Source, path: Path, reading: _ReadingOptions) -> None:
    """Attach every column as text, so that labels such as "01" keep their zeros."""
    text = text_file(path, reading.encoding, source._scratch.path, source._held)
    header = read_header(text, reading.delimiter, reading.header_row)
    source._text, source._header = text, header
    options = _parsing_options(text, header)
    # A file in another encoding is parsed from a copy, whose name does not show its content.
    own = text.path == path and parsed(path, options, is_compressed=text.is_compressed, run=source.run)
    if own:
        source.connection.close()
        source.connection = own
        _create_view(source, ROWS)
        _create_view(source, f"{ROWS} LIMIT {SAMPLE_ROWS}", SAMPLE)
        return
    source._is_file = True
    place = file_literal(text.path)
    _create_view(source, f"read_csv({', '.join([place, *options])})")
    sampled = [place, *options, f"buffer_size = {SAMPLE_BUFFER}", "parallel = false"]
    _create_view(source, f"read_csv({', '.join(sampled)}) LIMIT {SAMPLE_ROWS}", SAMPLE)


def _parsing_options(text: TextFile, header: Header) -> list[str]:
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header.names)
    return [
        "auto_detect = false",
        "header = true",
        f"skip = {header.row - 1}",
        f"columns = {{{columns}}}",
        f"delim = {literal(header.separator)}",
        "quote = '\"'",
        "escape = '\"'",
        "nullstr = ''",
        "strict_mode = true",
        "hive_partitioning = false",
        f"compression = '{'gzip' if text.is_compressed else 'none'}'",
    ]


def parse_while_hashing(
    path: Path,
    update: Callable[[bytes], object],
    run: Run,
    *,
    delimiter: str | None = None,
    header_row: int | None = None,
    encoding: str = "utf-8",
) -> bool:
    """Pass all bytes of a text file to `update` while it is parsed for later readers; False if nothing was done.

    Works only inside `parsing_once`. A file that cannot be read is left to the reader, which reports why.
    """
    kind = format_of(path)
    if not is_parsing_once() or kind is None or kind.reader != "separated" or encoding != "utf-8":
        return False
    try:
        with ExitStack() as held:
            text = text_file(path, encoding, path.parent, held)
            header = read_header(text, delimiter, header_row)
    except InputError:
        return False
    options = _parsing_options(text, header)
    return parse_and_hash(path, options, is_compressed=text.is_compressed, update=update, run=run)


def _attach_parquet(source: Source, path: Path, reading: _ReadingOptions) -> None:
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (pa.ArrowException, OSError, ValueError):  # names that are not UTF-8 raise ValueError
        names = None
    if names is None:
        raise InputError(f"{source.name} is not a Parquet file; check how it was made.", file=source.name)
    check_names(names, source.name)
    source._is_file = True
    _create_view(source, f"read_parquet({file_literal(path)}, hive_partitioning = false)")


def _attach_database(source: Source, path: Path, reading: _ReadingOptions) -> None:
    table = reading.table
    if table is None:
        message = f"{source.name} is a database; name the table to read (--table)."
        raise InputError(message, file=source.name, option="table")
    try:
        source.connection.execute(f"ATTACH {literal(str(path.absolute()))} AS origin (READ_ONLY)")
        is_open = True
    except duckdb.Error:
        is_open = False
    if not is_open:
        message = f"{source.name} cannot be opened as a DuckDB database; check that it is one, and that no other program is using it."
        raise InputError(message, file=source.name)
    schema, name = split_table(table, "main")
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
        message = "the dataframe has a column of mixed or unknown type, or a repeated name; convert it first."
        raise InputError(message)
    _attach_table(source, frame)


READERS: dict[str, Callable[[Source, Path, _ReadingOptions], None]] = {
    "separated": _attach_separated,
    "parquet": _attach_parquet,
    "database": _attach_database,
    "excel": _attach_excel,
    "statistical": _attach_statistical,
}
"""How each kind of file (`formats.FORMATS`) becomes the view `raw`."""


def _attach_table(source: Source, table: pa.Table) -> None:
    check_names(table.schema.names, source.name)
    source.connection.register("frame", table)
    _create_view(source, "frame")


def _create_view(source: Source, relation: str, view: str = RAW, fields: str = "*") -> None:
    try:
        source.connection.execute(f"CREATE TEMP VIEW {view} AS SELECT {fields} FROM {relation}")
        return
    except duckdb.Error:
        pass
    raise source._fault()


def _describe(source: Source) -> None:
    """Determine names and types of the columns, and whether there is any row."""
    for batch in source.batches(f"SELECT column_name, column_type FROM (DESCRIBE {RAW})"):
        source.types.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    batches = []
    if source._header is None:
        _create_view(source, f"{RAW} LIMIT {SAMPLE_ROWS}", SAMPLE)
        is_empty = source.first_row(f"SELECT 1 FROM {SAMPLE} LIMIT 1") is None
    else:
        batches = list(source.batches(f"SELECT * FROM {SAMPLE}"))
        is_empty = not any(batch.num_rows for batch in batches)
    if is_empty:
        fault = (
            None
            if source._text is None or source._header is None
            else find_fault(source._text, source._header)
        )
        raise fault or InputError(f"{source.name} has no rows; the data need at least one.", file=source.name)
    if batches:
        source.connection.register("first_rows", pa.Table.from_batches(batches))
        source.connection.execute(f"CREATE OR REPLACE TEMP VIEW {SAMPLE} AS SELECT * FROM first_rows")


def _read_decimals(source: Source, decimal_mark: str | None) -> None:
    """Make the view `whole`: decimal commas become points if they were declared, and are refused otherwise."""
    if decimal_mark is None:
        check_commas(source, SAMPLE)
    source._has_points = decimal_mark == ","
    fields = with_points(source, RAW) if source._has_points else "*"
    _create_view(source, RAW, WHOLE, fields)


def _select_rows(source: Source, where: str | None) -> None:
    """Make the view `records`: the rows that meet a condition."""
    if where is not None:
        source.condition = filter_sql(source, WHOLE, parse_where(where))
    _create_view(source, f"{WHOLE} WHERE {source.condition}" if where else WHOLE, RECORDS)
    if where is not None and source.first_row(f"SELECT 1 FROM {RECORDS} LIMIT 1") is None:
        message = f"no row of {source.name} satisfies --where; check its columns and values."
        raise InputError(message, file=source.name, option="where")
