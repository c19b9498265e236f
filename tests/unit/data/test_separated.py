"""Titles and second rows of headings are refused with the row that names the columns, and read with --header-row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.errors import InputError

NAMES = ["id", "age", "sex", "town"]
PEOPLE = [[str(i), str(20 + i), "fm"[i % 2], ["Bute", "Mull", "Skye"][i % 3]] for i in range(30)]
ABOVE: dict[str, tuple[list[list[str]], int]] = {
    "a title": ([["Residents of the islands"]], 2),
    "a title and its empty cells": ([["Residents of the islands", "", "", ""]], 2),
    "a title, an empty row and a remark": ([["Residents"], [], ["confidential, do not share"]], 4),
    "groups of columns": ([["person", "", "", "place"], ["", "years", "", ""]], 3),
    "a second row of names": ([["Number", "Years", "Sex of the person", "Place"]], 2),
}
PLAIN: dict[str, list[list[str]]] = {
    "names and records": [NAMES, *PEOPLE],
    "a column without a name": [["id", "age", "sex", ""], *PEOPLE],
    "missing values first": [NAMES, ["0", "N/A", "f", "Bute"], *PEOPLE],
    "few records": [NAMES, ["a", "b", "c", "d"], ["e", "f", "g", "h"]],
    "two columns of words": [["sex", "town"], *([row[2], row[3]] for row in PEOPLE)],
    "years as names": [["town", "2019", "2020"], ["Bute", "1", "2"], ["Mull", "3", "4"], ["Skye", "5", "6"]],
}


def csv_file(folder: Path, rows: list[list[str]], separator: str = ",") -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join(separator.join(row) for row in rows) + "\n")
    return path


def workbook(folder: Path, rows: list[list[str]]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([int(cell) if cell.isdecimal() else cell or None for cell in row])
    book.save(folder / "people.xlsx")
    return folder / "people.xlsx"


def texts(path: Path, **reading: Any) -> tuple[tuple[str, ...], list[tuple[str | None, ...]]]:
    with open_source(path, **reading) as source:
        return source.columns, read_text(source, source.columns)


@pytest.mark.parametrize("kind", ["comma", "semicolon", "excel"])
@pytest.mark.parametrize("case", ABOVE)
def test_headings_are_no_records(tmp_path: Path, case: str, kind: str) -> None:
    above, row = ABOVE[case]
    if kind == "comma":
        above = [[cell.replace(",", " ") for cell in line] for line in above]
    rows = [*above, NAMES, *PEOPLE]
    made = {"comma": csv_file, "excel": workbook}.get(kind, lambda *given: csv_file(*given, ";"))
    path = made(tmp_path, rows)
    with pytest.raises(
        InputError, match=f"{path.name}: row {row} looks like column names.*--header-row {row} "
    ) as caught:
        texts(path)
    assert (
        caught.value.row == row
        and caught.value.option == "header_row"
        and "Residents" not in str(caught.value)
    )
    columns, found = texts(path, header_row=row)
    assert columns == tuple(NAMES) and found == [tuple(person) for person in PEOPLE]


@pytest.mark.parametrize("made", [csv_file, workbook])
@pytest.mark.parametrize("case", PLAIN)
def test_other_first_rows_are_names(tmp_path: Path, case: str, made: Any) -> None:
    rows = PLAIN[case]
    columns, found = texts(made(tmp_path, rows))
    assert len(found) == len(rows) - 1 and columns[0] == rows[0][0]


def test_comments_and_quotes_above_the_names(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = ["# made by a program", '# "of ours", 2020', *(",".join(row) for row in [NAMES, *PEOPLE])]
    path.write_text("\r\n".join(lines))
    with pytest.raises(InputError, match="--header-row 3 "):
        texts(path)
    assert texts(path, header_row=3)[1] == [tuple(person) for person in PEOPLE]


def test_whoever_says_the_row_is_believed(tmp_path: Path) -> None:
    path = csv_file(tmp_path, [["a", "b"], ["x", "y"], ["1", "2"], ["3", "4"], ["5", "6"]])
    with pytest.raises(InputError, match="--header-row 1 to read the file as it is"):
        texts(path)
    assert texts(path, header_row=1)[1][0] == ("x", "y")


def test_a_row_with_nothing_in_it_names_no_columns(tmp_path: Path) -> None:
    for made in (csv_file, workbook):
        path = made(tmp_path, [NAMES, *PEOPLE])
        with pytest.raises(InputError, match=f"{path.name} has an empty row 99"):
            texts(path, header_row=99)


def test_rows_of_a_file_are_counted_below_its_names(tmp_path: Path) -> None:
    path = csv_file(tmp_path, [["Residents"], NAMES, *PEOPLE, ["1", "2"]])
    with pytest.raises(InputError, match="row 31 has fewer"):
        texts(path, header_row=2)
