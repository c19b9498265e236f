"""Values that stand for missing are missing for every verb: in one column, or in all."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import louver as lv
from louver.data.read import open_source
from louver.data.tabulate import read_codes, read_text
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.spec import Schema

ROWS = [("30", "N"), ("99", "f"), ("31", "m"), ("N", "f")]


def people(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("age,sex\n" + "\n".join(map(",".join, ROWS)) + "\n")
    return path


def test_codes_of_one_column_and_of_all(tmp_path: Path) -> None:
    codes = {"age": ("99",), "*": ("N",)}
    with open_source(people(tmp_path), missing_code=codes) as source:
        assert read_text(source, ["age", "sex"]) == [("30", None), (None, "f"), ("31", "m"), (None, "f")]
        age = Attribute(name="age", kind=Kind.INTEGER, missing="?")
        assert read_codes(source, ["age"], Schema(attributes=(age,))).numbers["age"].tolist()[::2] == [30, 31]
        assert source.read_all()["age"].to_pylist() == [
            "30",
            "99",
            "31",
            "N",
        ]  # what is carried along keeps its codes


def test_codes_hold_for_numbers_of_typed_files() -> None:
    with open_source(
        pa.table({"age": [30, 99], "pay": [1.5, -9.0]}), missing_code={"*": ("99", "-9")}
    ) as source:
        assert read_text(source, ["age", "pay"]) == [("30", "1.5"), (None, None)]


def test_conditions_see_them_as_missing(tmp_path: Path) -> None:
    codes = {"*": ("N", "99")}
    with open_source(
        people(tmp_path), missing_code=codes, where="age is missing or sex is missing"
    ) as source:
        assert read_text(source, ["age"]) == [("30",), (None,), (None,)]
    with open_source(people(tmp_path), missing_code=codes, where="age >= 31") as source:
        assert read_text(source, ["age"]) == [("31",)]


def test_profile_and_bounds_take_them(tmp_path: Path) -> None:
    codes = {"age": ["99", "N"], "sex": ["N"]}
    found = lv.profile(people(tmp_path), missing_code=codes)
    assert [(c.name, c.distinct, c.missing) for c in found.columns] == [("age", 2, 2), ("sex", 2, 1)]
    with pytest.raises(InputError, match='column "sex" in people.csv has no value on row 1'):
        lv.bounds(people(tmp_path), rows=["sex"], cols=["age"], missing_code=codes)


def test_a_spec_names_them_and_a_profile_writes_them(tmp_path: Path) -> None:
    spec = {"source": {"file": str(people(tmp_path)), "missing_code": {"*": ["N"], "age": [99]}}}
    assert [c.missing for c in lv.profile(spec=spec).columns] == [2, 1]


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        ({"agee": ["9"]}, 'people.csv has no column "agee"; perhaps "age"'),
        ({"age": []}, "--missing-code needs the values that stand for missing"),
        ({"age": [""]}, "--missing-code needs the values that stand for missing"),
    ],
)
def test_bad_codes_are_refused(tmp_path: Path, codes: dict[str, list[str]], says: str) -> None:
    with pytest.raises(InputError, match=says):
        lv.profile(people(tmp_path), missing_code=codes)
