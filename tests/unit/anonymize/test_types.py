"""Types survive: what travels unchanged comes out as it went in, whatever the source; as CSV, too."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import louver as lv
from louver.anonymize.generalise import interval_label
from louver.data.coded import typed
from releases import doubt
from small_people import written

VALUES = {
    "age": [31, 33, 34, 52, 55, 58],
    "whole": [1, 1, -20, -20, 3, 3],
    "real": [0.5, 0.5, 1e-7, 1e-7, -2.25, -2.25],
    "word": ["a", "a", "b", "b", "=c", "=c"],
    "code": ["007", "007", "01", "01", "2", "2"],
    "hole": [1, 1, None, None, 5, 5],
}


def source(kind: str, folder: Path) -> Path | pa.Table:
    table = pa.table(VALUES)
    path = folder / f"people.{kind}"
    if kind == "csv":
        pa.csv.write_csv(table, path)
    elif kind == "parquet":
        pq.write_table(table, path)
    elif kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        pytest.importorskip("python_calamine")
        book = openpyxl.Workbook()
        for row in ([*VALUES], *zip(*VALUES.values(), strict=True)):
            book.active.append(list(row))
        for cell in book.active["D"]:
            cell.data_type = "s"
        book.save(path)
    else:
        pyreadstat = pytest.importorskip("pyreadstat")
        frame = table.to_pandas()
        (pyreadstat.write_dta if kind == "dta" else pyreadstat.write_sav)(frame, str(path))
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx", "dta", "sav"])
def test_released_columns_keep_their_types(kind: str, tmp_path: Path) -> None:
    release = lv.anonymize(
        source(kind, tmp_path), quasi=["age"], k=3, method="exact", keep_order=True, csv=True
    )
    out = written(release, tmp_path / "release")
    table = pq.read_table(out / "data/anonymized.parquet")
    assert {name: table[name].to_pylist() for name in VALUES if name != "age"} == {
        name: values for name, values in VALUES.items() if name != "age"
    }
    kinds = {line["name"]: line["kind"] for line in release.dictionary.to_pylist()}
    assert kinds == {
        "age": "number", "whole": "whole number", "real": "number", "word": "text", "code": "text",
        "hole": "whole number",
    }  # fmt: skip
    assert lv.verify(out).passed
    with (out / "data/anonymized.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["word"] for row in rows] == ["a", "a", "b", "b", "'=c", "'=c"]
    assert [float(row["real"]) for row in rows] == VALUES["real"] and rows[0]["age"] == "[31, 34]"


def test_a_column_of_text_in_a_typed_source_stays_text() -> None:
    table = pa.table({"age": [1, 1, 2, 2], "code": ["1", "1", "2", "2"]})
    assert lv.anonymize(table, quasi=["age"], k=2, method="sorted").table["code"].type == pa.string()


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", None, "-3"], pa.int64()),
        (["1.50", "2"], pa.float64()),
        (["1e5", "-0.25"], pa.float64()),
        (["007"], pa.string()),
        (["+49", "1"], pa.string()),
        (["1e999"], pa.string()),
        (["1,5"], pa.string()),
        ([None, None], pa.string()),
        (["99999999999999999999"], pa.float64()),
    ],
)
def test_text_becomes_a_number_only_where_a_program_would_write_it_so(
    texts: list[str | None], kind: pa.DataType
) -> None:
    assert typed(pa.chunked_array([pa.array(texts, pa.string())])).type == kind


@settings(max_examples=20)
@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), min_size=1, max_size=8)
)
def test_numbers_that_python_writes_come_back(numbers: list[float | None]) -> None:
    texts = pa.array([None if n is None else repr(n) for n in numbers], pa.string())
    back = typed(pa.chunked_array([texts])).to_pylist()
    assert back == numbers or all(n is None for n in numbers)


def test_the_type_is_that_of_published_records(tmp_path: Path) -> None:
    """A word that only the suppressed record has does not show in the type of the column."""
    rows = [*((20 + i % 2, 5) for i in range(6)), (99, "secret")]
    (tmp_path / "people.csv").write_text("age,x\n" + "".join(f"{age},{x}\n" for age, x in rows))
    release = lv.anonymize(tmp_path / "people.csv", quasi=["age"], k=3, suppress=0.2, method="exact")
    assert release.n_suppressed == 1 and release.table["x"].type == pa.int64()


@given(st.lists(st.text('ab[],"- |', min_size=1, max_size=4), min_size=4, max_size=4, unique=True))
@settings(max_examples=60)
def test_labels_of_intervals_are_told_apart(labels: list[str]) -> None:
    pairs = [(low, high) for i, low in enumerate(labels) for high in labels[i:]]
    assert len({interval_label(*pair) for pair in pairs}) == len(pairs)


def test_labels_of_numbers_read_as_json() -> None:
    table = pa.table({"x": [-2, -1, 0, 3, 3, 3.5]})
    release = lv.anonymize(table, quasi=["x"], k=3, method="exact", keep_order=True)
    assert [json.loads(label) for label in release.table["x"].to_pylist()] == [[-2, 0]] * 3 + [[3, 3.5]] * 3


@pytest.mark.parametrize("spoil", ["value", "row", "name", "number"])
def test_verify_doubts_the_csv(spoil: str, tmp_path: Path) -> None:
    release = lv.anonymize(pa.table(VALUES), quasi=["age"], k=3, method="exact", csv=True)
    out = written(release, tmp_path / "release")
    assert doubt(out, "csv").passed
    file = out / "data/anonymized.csv"
    text = file.read_text()
    spoilt = {
        "value": text.replace("007", "070", 1),
        "row": text + text.splitlines()[-1] + "\n",
        "name": text.replace("whole", "hole", 1),
        "number": text.replace("-2.25", "-2.26", 1),
    }
    file.write_text(spoilt[spoil])
    assert not doubt(out, "csv").passed
