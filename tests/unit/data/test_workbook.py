"""Published tables as a workbook: what other programs read in it is what was published."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest

from louver.data import workbook
from louver.data.workbook import write_workbook
from louver.errors import InputError


def test_another_program_reads_what_was_written(tmp_path: Path) -> None:
    table = pa.table(
        {
            "label": ["=1+1", "<b>&", "a\nb", " x ", "bad\x01", None],
            "count": [1, None, -3, 2**60, 0, 5],
            "share": [0.5, float("nan"), 1e-300, 2.0, None, 1.0],
        }
    )
    write_workbook({"a/b": table, "A-B": table.slice(0, 0), "x" * 40: table}, tmp_path / "made.xlsx")
    book = openpyxl.load_workbook(tmp_path / "made.xlsx")
    assert book.sheetnames == ["a-b", "A-B 2", "x" * 31]
    rows = [[cell.value for cell in row] for row in book["a-b"].iter_rows()]
    assert rows[0] == ["label", "count", "share"]
    assert [row[0] for row in rows[1:]] == ["=1+1", "<b>&", "a\nb", " x ", "bad\ufffd", None]
    assert all(cell.data_type != "f" for row in book["a-b"].iter_rows() for cell in row)
    assert [row[1] for row in rows[1:]] == [1, None, -3, str(2**60), 0, 5]
    assert [row[2] for row in rows[1:]] == [0.5, "nan", 1e-300, 2, None, 1]
    assert [[cell.value for cell in row] for row in book["A-B 2"].iter_rows()] == [
        ["label", "count", "share"]
    ]


def test_what_a_sheet_cannot_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="longer than an Excel cell"):
        write_workbook({"a": pa.table({"x": ["y" * 40_000]})}, tmp_path / "made.xlsx")
    monkeypatch.setattr(workbook, "MOST_ROWS", 2)
    with pytest.raises(InputError, match='"a" is larger than an Excel sheet'):
        write_workbook({"a": pa.table({"x": [1, 2]})}, tmp_path / "made.xlsx")
