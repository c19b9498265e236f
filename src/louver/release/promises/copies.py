"""Copies of a Parquet file in other formats, compared with it value by value: CSV, and Excel.

A workbook is a zip archive that can hold anything, so it may contain only the parts of one plain sheet, byte for byte.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from louver.release.folder import MOST_BYTES, Folder, Malformed

__all__ = ["copy_problem", "csv_of", "csv_problem", "excel_of"]

SHEET = "xl/worksheets/sheet1.xml"
PARTS: Mapping[str, str] = {
    "[Content_Types].xml": "eeab2296079675cc1cc9bf85c113e7763118cc2e0eefa9d385f72d0c06af2feb",
    "_rels/.rels": "9f96bb683e71c45171c7ae310bf6c37fb5a834bb9738497ac7084c42ac9c2d9a",
    "xl/workbook.xml": "6672f2b57cb752aad1ebdd31586df81b854d9e7816a7ed802aa56c372131d6f4",
    "xl/_rels/workbook.xml.rels": "1383f7ed84526efdb36373e9ee3ea5d69e68664c893d998812243af05dff88f5",
}
"""Parts of a workbook with one sheet called `table`, and the SHA-256 of their contents."""
MOST_SHEET = 1 << 28
"""Maximum size of a sheet in bytes, before compression."""
MOST_TIMES = 1_000
"""Maximum factor by which compression may have shrunk a sheet."""
LOCAL, CENTRAL, END = 30, 46, 22
"""Size in bytes of the headers of a zipped part, not counting its name, and of the end record of the file."""
CELL = r'<c/>|<c><v>([^<]*)</v></c>|<c t="inlineStr"><is><t xml:space="preserve">([^<]*)</t></is></c>'
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def csv_of(file: str) -> str:
    """The CSV file next to a Parquet file."""
    return f"{file.removesuffix('.parquet')}.csv"


def excel_of(file: str) -> str:
    """The Excel file next to a Parquet file."""
    return f"{file.removesuffix('.parquet')}.xlsx"


def copy_problem(folder: Folder, file: str) -> str | None:
    """How the CSV or Excel file next to a Parquet file differs from it; None without such a file or without a difference."""
    problem = csv_problem(folder, csv_of(file), file) if csv_of(file) in folder.files else None
    if problem is None and excel_of(file) in folder.files:
        problem = _excel_problem(folder, excel_of(file), file)
    return problem


def csv_problem(folder: Folder, csv: str, file: str) -> str | None:
    """How a CSV file differs from the Parquet file of which it is a copy; None if it does not."""
    path = folder.file(csv)
    if path.stat().st_size > MOST_BYTES:
        raise Malformed(f"{csv} is too large to be read")
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
        return f"{csv} has different columns or a different number of rows from {file}"
    for name, written in zip(names, text.columns, strict=True):
        if not _is_same(table[name], _plain(written.slice(1))):
            return f'{csv} has different values of "{name}" from {file}'
    return None


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text without the apostrophe that prevents a spreadsheet from computing it; a missing value is empty."""
    return pc.replace_substring_regex(pc.fill_null(column, ""), "^'", "")


def _is_same(column: pa.ChunkedArray, written: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(
        column.type
    ):  # exact, because a cast to floats may differ in the last bit from reading the text
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


def _excel_problem(folder: Folder, excel: str, file: str) -> str | None:
    """How a workbook differs from the Parquet file of which it is a copy."""
    table = folder.table(file)
    rows = _sheet_rows(folder.file(excel), excel)
    if [*next(rows, ())] != [_text(name) for name in table.column_names]:
        return f"{excel} has different columns from {file}"
    columns = [column.to_pylist() for column in table.columns]
    for values in zip(*columns, strict=True):
        read = next(rows, None)
        if read is None or len(read) != len(values):
            return f"{excel} has a different number of rows from {file}"
        if not all(_is_shown(value, shown) for value, shown in zip(values, read, strict=True)):
            return f"{excel} has different values from {file}"
    return None if next(rows, None) is None else f"{excel} has a different number of rows from {file}"


def _sheet_rows(path: Path, excel: str) -> Iterator[list[Any]]:
    """The cells of a sheet row by row: None, a text, or a number as Decimal."""
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as opened:
            parts = opened.infolist()
            used = sum(LOCAL + CENTRAL + 2 * len(one.filename.encode()) + one.compress_size for one in parts)
            is_plain = used + END == size and not opened.comment
            if sorted(one.filename for one in parts) != sorted([*PARTS, SHEET]) or not is_plain:
                raise Malformed(f"{excel} does not have the parts of a workbook with one table")
            if any(one.extra or one.comment or one.date_time != (1980, 1, 1, 0, 0, 0) for one in parts):
                raise Malformed(f"{excel} has notes that louver does not write")
            if any(one.file_size > min(MOST_SHEET, MOST_TIMES * size) for one in parts):
                raise Malformed(f"{excel} is too large to be read")
            for name, digest in PARTS.items():
                if hashlib.sha256(opened.read(name)).hexdigest() != digest:
                    raise Malformed(f"{excel} does not have the parts of a workbook with one table")
            text = opened.read(SHEET).decode("utf-8")
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError):
        raise Malformed(f"{excel} is not a workbook") from None
    begins, _, rest = text.partition("<sheetData>")
    body, _, ends = rest.rpartition("</sheetData>")
    if (
        not re.fullmatch(r'<\?xml [^<>]{1,60}\?>\n<worksheet xmlns="[a-z0-9:/.]{1,80}">', begins)
        or ends != "</worksheet>"
    ):
        raise Malformed(f"{excel} is not a plain sheet")
    for row in re.split(r"(?<=</row>)", body)[:-1]:
        if not re.fullmatch(f"<row>({CELL})*</row>", row):
            raise Malformed(f"{excel} is not a plain sheet")
        yield [_cell(found) for found in re.finditer(CELL, row)]
    if body and not body.endswith("</row>"):
        raise Malformed(f"{excel} is not a plain sheet")


def _cell(found: re.Match[str]) -> str | Decimal | None:
    number, text = found.group(1), found.group(2)
    if number is not None:
        return Decimal(number)
    return None if text is None else unescape(text)


def _is_shown(value: Any, shown: str | Decimal | None) -> bool:
    """Whether a cell shows a value: as a number, or as its text."""
    if value is None or shown is None:
        return value is None and shown is None
    if isinstance(shown, Decimal):
        return isinstance(value, int | float | Decimal) and Decimal(str(value)) == shown
    return shown == _text(str(value))


def _text(text: str) -> str:
    """A text in the form in which a sheet can hold it."""
    return UNREADABLE.sub("\ufffd", text)
