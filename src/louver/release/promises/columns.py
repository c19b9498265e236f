"""The dictionary of columns beside generalised records, and the same records as CSV."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from louver.release.folder import MOST_BYTES, Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.mapping import DATA, published_columns

__all__ = ["Columns", "CsvCopy", "check_columns", "check_csv"]

SCHEMA = dict.fromkeys(("name", "role", "kind", "done"), pa.string())
NOT_PUBLISHED = ("identifying", "weight", "unit")
CLASS_NUMBER = "class_id"


class Columns(Promise):
    """Every column of the file is in the dictionary with its role, and what the dictionary calls dropped is not in the file."""

    promise: Literal["columns"]
    file: Literal["data/anonymized.parquet"]
    dictionary: Literal["data/columns.parquet"]


class CsvCopy(Promise):
    """The CSV file holds the same records."""

    promise: Literal["csv"]
    file: Literal["data/anonymized.parquet"]
    csv: Literal["data/anonymized.csv"]


def check_columns(context: Context, promise: Columns) -> Outcome:
    """Compare the names of both."""
    folder = context.folder
    dictionary = folder.table(promise.dictionary)
    if {field.name: field.type for field in dictionary.schema} != SCHEMA:
        raise Malformed("the dictionary has other columns")
    lines = dictionary.to_pylist()
    kept = [line for line in lines if line["role"] not in NOT_PUBLISHED]
    listed = [
        name
        for line in kept
        for name in (published_columns(folder, line["name"]) if line["role"] == "quasi" else [line["name"]])
    ]
    published = [name for name in folder.schema(DATA).names if name != CLASS_NUMBER or name in listed]
    if listed != published:
        return Outcome(False, "the dictionary does not list the columns of the file")
    n_unchanged = sum(line["role"] != "quasi" for line in kept)
    return Outcome(True, f"{len(lines)} columns, {n_unchanged} published unchanged")


def check_csv(context: Context, promise: CsvCopy) -> Outcome:
    """Read the text and compare value by value."""
    path = context.folder.file(promise.csv)
    if path.stat().st_size > MOST_BYTES:
        raise Malformed("the CSV file is larger than any that is read")
    table = context.folder.table(promise.file)
    names = table.column_names
    convert = pa.csv.ConvertOptions(
        column_types={str(place): pa.string() for place in range(len(names))}, strings_can_be_null=True
    )
    reading = pa.csv.ReadOptions(column_names=list(map(str, range(len(names)))))
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    text = pa.csv.read_csv(path, read_options=reading, parse_options=parsing, convert_options=convert)
    header = [_plain(column.slice(0, 1))[0].as_py() for column in text.columns]
    if header != names or text.num_rows - 1 != table.num_rows:
        return Outcome(False, "the CSV file has other columns or another number of records")
    for name, written in zip(names, text.columns, strict=True):
        if not _is_same(table[name], _plain(written.slice(1))):
            return Outcome(False, f'the CSV file has other values of "{name}"')
    return Outcome(True, f"{table.num_rows} records as in the Parquet file")


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the apostrophe that keeps a spreadsheet from computing it; a missing value is empty."""
    return pc.replace_substring_regex(pc.fill_null(column, ""), "^'", "")


def _is_same(column: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = pc.if_else(pc.equal(written, ""), pa.scalar(None, pa.string()), written).cast(pa.float64())
        column = pc.if_else(pc.is_nan(column.cast(pa.float64())), None, column.cast(pa.float64()))
        numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
        return bool(
            pc.fill_null(column, 0.5).equals(pc.fill_null(numbers, 0.5))
            and column.null_count == numbers.null_count
        )
    texts = pc.fill_null(column.cast(pa.string()), "")
    return bool(pc.all(pc.equal(texts, written)).as_py() in (True, None))
