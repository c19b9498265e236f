"""Files of Excel, Stata, SPSS and SAS: types, labels, missing values, and what is refused."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyreadstat
import pytest

from louver.data import read
from louver.data.formats import column_of, labelled
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.errors import InputError

DAY = datetime.date(2020, 2, 29)


def texts(path: Path, **reading: Any) -> list[tuple[str | None, ...]]:
    with open_source(path, **reading) as source:
        return read_text(source, source.columns)


def workbook(path: Path, **sheets: list[list[Any]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_excel_keeps_numbers_texts_dates_and_gaps(tmp_path: Path) -> None:
    rows = [
        ["age", "income", "code", "born", "seen", "is_ill", None],
        [31, 1.5, "007", DAY, datetime.datetime(2020, 2, 29, 8, 30), True, 1],
        [None, None, None, None, None, None, None],
        [32, None, "8", None, None, False, "x"],
    ]
    path = workbook(tmp_path / "p.xlsx", people=rows)
    with open_source(path) as source:
        assert source.types["age"] == "BIGINT" and source.types["income"] == "DOUBLE"
        assert source.types["code"] == "VARCHAR" and source.types["is_ill"] == "BOOLEAN"
        assert source.columns[-1] == "column 7"
    assert texts(path) == [
        ("31", "1.5", "007", "2020-02-29", "2020-02-29 08:30:00", "true", "1"),
        ("32", None, "8", None, None, "false", "x"),
    ]


def test_a_sheet_is_named_where_there_are_several(tmp_path: Path) -> None:
    path = workbook(tmp_path / "p.xlsx", first=[["a"], [1]], second=[["a"], [2]])
    assert texts(path, table="second") == [("2",)]
    for table, says in ((None, "has 2 sheets; name the one"), ("third", 'has no sheet "third"')):
        with pytest.raises(InputError, match=says):
            texts(path, table=table)


def test_labels_stand_for_codes_where_every_value_has_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ill": [1.0, 2.0, 9.0], "age": [30.0, 50.0, 99.0], "same": [1.0, 2.0, 3.0]})
    labels = {
        "ill": {1: "yes", 2: "no", 9: "refused"},
        "age": {99: "99 or older"},
        "same": {1: "other", 2: "other", 3: "none"},
    }
    pyreadstat.write_sav(frame, tmp_path / "p.sav", variable_value_labels=labels, missing_ranges={"ill": [9]})
    assert texts(tmp_path / "p.sav") == [
        ("yes", "30", "other (1)"),
        ("no", "50", "other (2)"),
        (None, "99", "none"),
    ]
    assert texts(tmp_path / "p.sav", keep_codes=True)[0] == ("1", "30", "1")


def test_missing_values_of_stata_are_missing(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ill": [1, 2, "a"], "born": [DAY, None, DAY]})
    path = tmp_path / "p.dta"
    pyreadstat.write_dta(
        frame, path, missing_user_values={"ill": ["a"]}, variable_value_labels={"ill": {1: "yes", 2: "no"}}
    )
    assert texts(path) == [("yes", "2020-02-29"), ("no", None), (None, "2020-02-29")]


def test_a_transport_file_of_sas(tmp_path: Path) -> None:
    pyreadstat.write_xport(pd.DataFrame({"a": [1.0, math.nan], "b": ["x", "ü"]}), tmp_path / "p.xpt")
    assert texts(tmp_path / "p.xpt") == [("1", "x"), (None, "ü")]


def test_a_column_is_what_all_its_values_are() -> None:
    assert column_of([1, 2.0, None]).to_pylist() == [1, 2, None]
    assert column_of([2.0**60, 1.0]).to_pylist() == [2.0**60, 1.0]
    assert column_of([None, math.nan]).to_pylist() == [None, None]
    assert column_of([True, 1]).to_pylist() == ["true", "1"]
    assert column_of([DAY, 1.0]).to_pylist() == ["2020-02-29", "1"]
    assert column_of([datetime.datetime(2020, 2, 29), None]).to_pylist() == ["2020-02-29", None]
    assert column_of([datetime.time(1, 2)]).to_pylist() == ["01:02:00"]
    assert labelled([1, None], {}) == [1, None]


@pytest.mark.parametrize("name", ["p.xlsx", "p.dta", "p.sav", "p.por", "p.sas7bdat", "p.xpt"])
def test_a_file_that_is_no_such_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Zw\xfcrgl-4711" * 100)
    with pytest.raises(InputError, match=f"{name} is no") as caught:
        texts(tmp_path / name)
    assert "4711" not in str(caught.value)


def test_a_large_file_is_read_in_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that cancelling does not wait for its library; what is refused there is refused here."""
    good, bad = workbook(tmp_path / "p.xlsx", only=[["a"], [1]]), tmp_path / "p.sav"
    bad.write_bytes(b"no file of SPSS")
    monkeypatch.setattr(read, "LARGE", 0)
    assert texts(good) == [("1",)]
    with pytest.raises(InputError, match="p.sav is not a complete file") as caught:
        texts(bad)
    assert caught.value.file == "p.sav"


@pytest.mark.parametrize(
    ("name", "module"), [("p.xlsx", "python_calamine"), ("p.sav", "pyreadstat")], ids=["Excel", "SPSS"]
)
def test_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(InputError, match=r"reading p\.\w+ needs the extra; install louver\[formats\]\."):
        texts(tmp_path / name)


def test_empty_sheets_and_repeated_names(tmp_path: Path) -> None:
    cases = {
        "has an empty sheet": [],
        "has no rows": [["a", "b"]],
        "the same name .* columns 1 and 2": [["a", "A"], [1, 2]],
    }
    for says, rows in cases.items():
        path = workbook(tmp_path / "p.xlsx", only=rows)
        with pytest.raises(InputError, match=says):
            texts(path)
