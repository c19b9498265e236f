"""Formats that louver reads, and readers for those that DuckDB does not support.

`FORMATS` is the one list of file formats: `read` dispatches on it, the explorer accepts uploads by it, and messages are written from it. A
new format is a line there and a reader in `read.READERS`.

Files of Excel, Stata, SPSS and SAS become Arrow tables in memory (extra `formats`): numbers remain numbers, codes become their value
labels, dates become text in ISO form, and values that the program calls missing are missing. PostgreSQL results are copied batch by batch
into the private database (extra `postgres`).
"""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from louver.data.separated import HEADER_SAMPLE_ROWS, SheetRow, check_headings, check_names
from louver.data.sql import quoted, split_table
from louver.errors import InputError
from louver.run import Run

__all__ = [
    "FORMATS",
    "POSTGRES_SCHEMES",
    "UPLOADS",
    "Format",
    "copy_postgres",
    "endings_of",
    "format_of",
    "names_of",
    "read_excel",
    "read_or_refuse",
    "read_statistical",
]

MAX_WHOLE = 2**53  # largest range in which every whole number is a double


def read_excel(path: Path, sheet: str | None, header_row: int | None = None) -> pa.Table:
    """A sheet of a workbook: names in its first row that is not empty, one record a row.

    Parameters
    ----------
    sheet : str, optional
        Required if there are several.
    header_row : int, optional
        The row that names the columns, numbered as in the program; rows above it are skipped.
    """
    calamine = _extra("python_calamine", path)
    try:
        workbook = calamine.load_workbook(path)
        name = _sheet(workbook.sheet_names, sheet, path.name)
        rows = workbook.get_sheet_by_name(name).to_python(skip_empty_area=False)
    except calamine.PasswordError:
        problem = "is locked with a password; save it without"
    except (calamine.CalamineError, calamine.XmlError, calamine.ZipError, ValueError):
        problem = "is not a workbook, or a damaged one; check how it was made"
    else:
        return _table_of(rows, path.name, header_row)
    raise InputError(f"{path.name} {problem}.", file=path.name)


def read_statistical(path: Path, encoding: str | None, keep_codes: bool = False) -> pa.Table:
    """A file of Stata, SPSS or SAS.

    Parameters
    ----------
    encoding : str, optional
        Overrides the encoding that the file declares.
    keep_codes : bool
        Keep the codes and ignore value labels.

    Notes
    -----
    A column becomes its labels if every value that occurs has one; if some have none (a top code among ages), the values are left
    unchanged. If two codes have the same label, the code is added to it. A SAS catalog (.sas7bcat) of the same name next to the file is
    read for its labels.
    """
    pyreadstat, kind = _extra("pyreadstat", path), format_of(path)
    assert kind is not None
    more: dict[str, Any] = {} if encoding is None else {"encoding": encoding}
    catalog = path.with_suffix(".sas7bcat")
    if path.suffix.lower() == ".sas7bdat" and catalog.exists():
        more["catalog_file"] = str(catalog)
    try:
        columns, about = getattr(pyreadstat, kind.function)(str(path), output_format="dict", **more)
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, OSError):
        columns = None
    if columns is None:
        program = "the program that its file extension suggests, or has text in another --encoding"
        raise InputError(f"{path.name} is not a complete file of {program}.", file=path.name)
    labels = {} if keep_codes else about.variable_value_labels
    return pa.table(
        [column_of(labelled(values, labels.get(name, {}))) for name, values in columns.items()],
        names=list(columns),
    )


def read_or_refuse(read: Callable[..., pa.Table], *given: Any) -> pa.Table | InputError:
    """The result or the error of a reader, in a form that can be sent from one process to another."""
    try:
        return read(*given)
    except InputError as error:
        return error


def column_of(values: Sequence[Any]) -> pa.Array:
    """A column of Python values: numbers if all are numbers, integers if all are whole, text otherwise.

    Examples
    --------
    >>> column_of([1.0, None, 3.0]).to_pylist(), column_of([1.5, "x"]).to_pylist()
    ([1, None, 3], ['1.5', 'x'])
    """
    known = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in known if value is not None}
    if kinds == {bool}:
        return pa.array(known, pa.bool_())
    if kinds and kinds <= {int, float}:
        is_whole = all(value is None or _is_whole(value) for value in known)
        return pa.array(
            [value if value is None or not is_whole else int(value) for value in known],
            pa.int64() if is_whole else pa.float64(),
        )
    is_dated = kinds == {datetime.datetime} and not any(
        value and value.time() != datetime.time() for value in known
    )
    write = _date_text if is_dated else _text
    return pa.array([None if value is None else write(value) for value in known], pa.string())


def labelled(values: Sequence[Any], labels: Mapping[Any, str]) -> Sequence[Any]:
    """The values with their labels in place of codes, or unchanged if a value has none.

    Examples
    --------
    >>> labelled([1, 2, None], {1: "yes", 2: "no", 9: "refused"})
    ['yes', 'no', None]
    >>> labelled([1, 50, 99], {99: "unknown"})
    [1, 50, 99]
    """
    found = {value for value in values if not _is_missing(value)}
    if not found or not all(labels.get(value) for value in found):
        return values
    label_of = _distinct_labels({value: labels[value] for value in found})
    return [None if _is_missing(value) else label_of[value] for value in values]


def _distinct_labels(labels: Mapping[Any, str]) -> dict[Any, str]:
    """Distinct labels: with the code added where several codes share a label."""
    names = list(labels.values())
    return {
        code: label if names.count(label) == 1 else f"{label} ({_text(code)})"
        for code, label in labels.items()
    }


def _extra(module: str, path: Path) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        message = f"reading {path.name} needs the extra; install louver[formats]."
        raise InputError(message, file=path.name) from None


def _sheet(sheets: Sequence[str], wanted: str | None, file: str) -> str:
    if wanted is None and len(sheets) == 1:
        return sheets[0]
    if wanted is None:
        message = f"{file} has {len(sheets)} sheets; name the one to read (--table)."
        raise InputError(message, file=file, option="table")
    if wanted not in sheets:
        raise InputError(f'{file} has no sheet "{wanted}"; check the name.', file=file, option="table")
    return wanted


def _table_of(rows: Sequence[Sequence[Any]], file: str, header_row: int | None) -> pa.Table:
    numbered = [(n, row) for n, row in enumerate(rows, start=1) if not all(map(_is_missing, row))]
    if not numbered:
        raise InputError(f"{file} has an empty sheet; it needs column names and rows.", file=file)
    if header_row is None:
        check_headings([_shown(n, row) for n, row in numbered[:HEADER_SAMPLE_ROWS]], file)
    else:
        numbered = [(n, row) for n, row in numbered if n >= header_row]
        if not numbered or numbered[0][0] != header_row:
            message = f"{file} has an empty row {header_row}; say which row names the columns (--header-row)."
            raise InputError(message, file=file, row=header_row, option="header_row")
    first = min(place for _, row in numbered for place, cell in enumerate(row) if not _is_missing(cell))
    header, *filled = [row[first:] for _, row in numbered]
    names = ["" if _is_missing(name) else _text(name) for name in header]
    names = [name or f"column {number}" for number, name in enumerate(names, start=1)]
    columns: Iterable[Sequence[Any]] = zip(*filled, strict=True) if filled else [()] * len(names)
    return pa.table([column_of(values) for values in columns], names=names)


def _shown(number: int, row: Sequence[Any]) -> SheetRow:
    return SheetRow(number, tuple("" if _is_missing(value) else _text(value).strip() for value in row))


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and float(value).is_integer() and abs(value) <= MAX_WHOLE


def _date_text(value: datetime.datetime) -> str:
    return value.date().isoformat()


TEXTS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: str(value).lower(),
    float: lambda value: str(int(value)) if _is_whole(value) else repr(value),
    datetime.datetime: lambda value: value.isoformat(sep=" "),
    datetime.date: lambda value: value.isoformat(),
    datetime.time: lambda value: value.isoformat(),
}


def _text(value: Any) -> str:
    return TEXTS.get(type(value), str)(value)


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

    Cancelling the run cancels the query on the server; a connection still being opened is simply abandoned.
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
        problem = f"{name} failed while it was being read; run it on the server to see why."
    if problem is not None:
        raise InputError(problem)


def _problem(name: str, sqlstate: str | None) -> str:
    """Our message for a PostgreSQL error; only the error code is safe to repeat."""
    if not sqlstate or sqlstate.startswith(("08", "28", "3D")):
        return "the PostgreSQL server cannot be reached with this address, user and password."
    if sqlstate == UNDEFINED_TABLE:
        return f"{name} does not exist; check the name and its schema."
    return f"{name} failed on the server (SQLSTATE {sqlstate}); run it there to see why."


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name : str
        Its common name.
    endings : tuple of str
        File name extensions, in lower case.
    reader : str
        Its reader in `read.READERS`.
    options : frozenset of str
        Options of reading that apply to it, in addition to those that apply to all.
    function : str
        For files of statistics programs, the pyreadstat function.
    is_uploaded : bool
        Whether the explorer accepts it; not a database, which contains several tables and views on other files.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    options: frozenset[str] = frozenset()
    function: str = ""
    is_uploaded: bool = True


TEXT = frozenset({"delimiter", "encoding", "header_row"})
CODED = frozenset({"encoding", "keep_codes"})
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

FORMATS = (
    Format("CSV", (".csv", ".csv.gz"), "separated", TEXT),
    Format("TSV", (".tsv", ".tsv.gz"), "separated", TEXT),
    Format("Parquet", (".parquet",), "parquet"),
    Format("DuckDB", (".duckdb", ".db"), "database", frozenset({"table"}), is_uploaded=False),
    Format("Excel", SHEETS, "excel", frozenset({"table", "header_row"})),
    Format("Stata", (".dta",), "statistical", CODED, "read_dta"),
    Format("SPSS", (".sav", ".zsav"), "statistical", CODED, "read_sav"),
    Format("SPSS", (".por",), "statistical", CODED, "read_por"),
    Format("SAS", (".sas7bdat",), "statistical", CODED, "read_sas7bdat"),
    Format("SAS", (".xpt",), "statistical", CODED, "read_xport"),
)


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """The format of a file, from its extension; None if no format has it.

    Examples
    --------
    >>> format_of("People.CSV.gz").name, format_of("people.txt")
    ('CSV', None)
    """
    last = Path(path)
    ending = last.suffix.lower()
    if ending == ".gz":
        ending = last.with_suffix("").suffix.lower() + ending
    return next((one for one in FORMATS if ending in one.endings), None)


def endings_of(applies: Callable[[Format], bool] = lambda one: True) -> tuple[str, ...]:
    """File extensions of the formats for which a condition holds."""
    return tuple(ending for one in FORMATS if applies(one) for ending in one.endings)


def names_of(applies: Callable[[Format], bool] = lambda one: True) -> list[str]:
    """Names of these formats, each listed once."""
    return list(dict.fromkeys(one.name for one in FORMATS if applies(one)))


UPLOADS = endings_of(lambda one: one.is_uploaded)
"""File extensions that the explorer accepts as data."""
