"""Published tables as an Excel workbook, one sheet each.

Text is written as text and never as a formula. A value that a sheet cannot hold is refused rather than cut off.
"""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from louver.errors import InputError

__all__ = ["write_workbook"]

MOST_ROWS, MOST_COLUMNS, MOST_LETTERS = 1_048_576, 16_384, 32_767
LONGEST_NAME = 31
EXACT = 2**53
"""Whole numbers above this are not stored exactly by a spreadsheet."""
DIGITS = 15
"""Number of digits of a decimal number that a spreadsheet keeps."""
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
RELATIONS = "application/vnd.openxmlformats-package.relationships+xml"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(tables: Mapping[str, pa.Table], path: Path) -> None:
    """Write tables as one workbook; the name of a table is that of its sheet, as far as Excel allows.

    Raises
    ------
    InputError
        If a table has more rows, columns or letters in a cell than a sheet can hold.
    """
    for name, table in tables.items():
        if table.num_rows + 1 > MOST_ROWS or table.num_columns > MOST_COLUMNS:
            raise InputError(f'table "{name}" is larger than an Excel sheet; use the CSV or Parquet file.')
    sheets = _sheet_names(list(tables))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        listed = {f"rId{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)}
        parts = {
            "[Content_Types].xml": _types(len(sheets)),
            "_rels/.rels": _relations({"rId1": ("officeDocument", "xl/workbook.xml")}),
            "xl/workbook.xml": _book(sheets),
            "xl/_rels/workbook.xml.rels": _relations(listed),
        }
        for name, text in parts.items():
            with made.open(name, "w") as stream:  # not `writestr`: it would write the time of day
                stream.write(text.encode())
        for number, table in enumerate(tables.values(), start=1):
            with made.open(f"xl/worksheets/sheet{number}.xml", "w") as stream:
                for part in _sheet(table):
                    stream.write(part.encode())


def _sheet_names(names: list[str]) -> list[str]:
    """Names that Excel accepts: short, without its special characters, unique regardless of case."""
    found: list[str] = []
    for name in names:
        plain = ILLEGAL.sub("", re.sub(r"[\[\]:*?/\\]", "-", name)).strip("'")[:LONGEST_NAME] or "table"
        made, number = plain, 1
        while made.lower() in {other.lower() for other in found}:
            number += 1
            made = f"{plain[: LONGEST_NAME - len(str(number)) - 1]} {number}"
        found.append(made)
    return found


def _types(n_sheets: int) -> str:
    sheets = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{KIND}.worksheet+xml"/>'
        for n in range(1, n_sheets + 1)
    )
    rels = f'<Default Extension="rels" ContentType="{RELATIONS}"/>'
    book = f'<Override PartName="/xl/workbook.xml" ContentType="{KIND}.sheet.main+xml"/>'
    return f'{HEAD}<Types xmlns="{PACKAGE}/content-types">{rels}{book}{sheets}</Types>'


def _relations(listed: Mapping[str, tuple[str, str]]) -> str:
    inside = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in listed.items()
    )
    return f'{HEAD}<Relationships xmlns="{PACKAGE}/relationships">{inside}</Relationships>'


def _book(sheets: list[str]) -> str:
    inside = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>'
        for n, name in enumerate(sheets, start=1)
    )
    return f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{inside}</sheets></workbook>'


def _sheet(table: pa.Table) -> Iterator[str]:
    yield f'{HEAD}<worksheet xmlns="{MAIN}"><sheetData>'
    yield _row(table.column_names)
    for batch in table.to_batches(max_chunksize=10_000):
        columns = [column.to_pylist() for column in batch.columns]
        yield "".join(_row(values) for values in zip(*columns, strict=True))
    yield "</sheetData></worksheet>"


def _row(values: Any) -> str:
    return f"<row>{''.join(map(_cell, values))}</row>"


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, Decimal) and value.is_finite() and len(value.as_tuple().digits) <= DIGITS:
        return f"<c><v>{value:f}</v></c>"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and math.isfinite(value) and abs(value) <= EXACT:
        return f"<c><v>{value!r}</v></c>"
    text = ILLEGAL.sub("\ufffd", str(value))
    if len(text) > MOST_LETTERS:
        raise InputError("a text is longer than an Excel cell can hold; use the CSV or Parquet file.")
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'
