"""The same rows as text: a CSV file beside a Parquet file, compared value by value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from louver.release.folder import MOST_BYTES, Folder, Malformed

__all__ = ["csv_of", "csv_problem"]


def csv_of(file: str) -> str:
    """The CSV file beside a Parquet file."""
    return f"{file.removesuffix('.parquet')}.csv"


def csv_problem(folder: Folder, csv: str, file: str) -> str | None:
    """How a CSV file differs from the Parquet file that it is a copy of; None where it does not."""
    path = folder.file(csv)
    if path.stat().st_size > MOST_BYTES:
        raise Malformed(f"{csv} is larger than any that is read")
    table = folder.table(file)
    names = table.column_names
    convert = pa.csv.ConvertOptions(
        column_types={str(place): pa.string() for place in range(len(names))},
        strings_can_be_null=True,
        null_values=[""],  # "NA" is a label like any other
    )
    reading = pa.csv.ReadOptions(column_names=list(map(str, range(len(names)))))
    parsing = pa.csv.ParseOptions(newlines_in_values=True)
    text = pa.csv.read_csv(path, read_options=reading, parse_options=parsing, convert_options=convert)
    header = [_plain(column.slice(0, 1))[0].as_py() for column in text.columns]
    if header != names or text.num_rows - 1 != table.num_rows:
        return f"{csv} has other columns or another number of rows than {file}"
    for name, written in zip(names, text.columns, strict=True):
        if not _is_same(table[name], _plain(written.slice(1))):
            return f'{csv} has other values of "{name}" than {file}'
    return None


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the apostrophe that keeps a spreadsheet from computing it; a missing value is empty."""
    return pc.replace_substring_regex(pc.fill_null(column, ""), "^'", "")


def _is_same(column: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(
        column.type
    ):  # exact: a cast to floats may differ from reading the text in the last bit
        texts = pc.if_else(pc.equal(written, ""), pa.scalar(None, pa.string()), written)
        return bool(column.equals(texts.cast(column.type)))
    if pa.types.is_floating(column.type):
        numbers = pc.if_else(pc.equal(written, ""), pa.scalar(None, pa.string()), written).cast(pa.float64())
        column = pc.if_else(pc.is_nan(column.cast(pa.float64())), None, column.cast(pa.float64()))
        numbers = pc.if_else(pc.is_nan(numbers), None, numbers)
        return bool(
            pc.fill_null(column, 0.5).equals(pc.fill_null(numbers, 0.5))
            and column.null_count == numbers.null_count
        )
    texts = pc.fill_null(column.cast(pa.string()), "")
    return bool(pc.all(pc.equal(texts, written)).as_py() in (True, None))
