"""Codes are not numbers: what each quasi-identifier is taken for, orders, and values that stand for missing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import louver as lv
from louver.errors import InfeasibleError, InputError
from small_people import written

RACE = [1, 9, 1, 9, 2, 2]
EDU = [10, 9, 10, 9, 1, 1]


def people(**more: object) -> pa.Table:
    return pa.table({"race": RACE, "edu": EDU, **more})


ASKED = {"k": 2, "method": "exact", "keep_order": True}


def kinds(release: object) -> dict[str, str]:
    return {line["name"]: line["kind"] for line in release.dictionary.to_pylist()}


def test_a_code_is_a_category_where_it_is_said_so() -> None:
    table = pa.table({"race": [1, 2, 9, 9]})
    as_number = lv.anonymize(table, quasi=["race"], **ASKED)
    as_code = lv.anonymize(table, quasi=["race"], categorical=["race"], **ASKED)
    assert as_number.table["race"].to_pylist() == ["[1, 2]", "[1, 2]", "9", "9"]
    assert as_code.table["race"].to_pylist() == ["1 | 2", "1 | 2", "9", "9"]
    assert (kinds(as_number), kinds(as_code)) == ({"race": "number"}, {"race": "category"})
    assert "race (category)" in repr(as_code)


def test_numeric_codes_in_numeric_order_and_in_an_order_of_their_own() -> None:
    table = pa.table({"edu": [2, 10, 9, 9]})
    by_number = lv.anonymize(table, quasi=["edu"], ordered=["edu"], **{**ASKED, "k": 4})
    assert by_number.table["edu"][0].as_py() == "[2, 10]" and kinds(by_number) == {"edu": "ordered"}
    listed = lv.anonymize(table, quasi=["edu"], ordered={"edu": [9, 2, 10]}, **ASKED)
    assert listed.table["edu"].to_pylist() == ["[2, 10]", "[2, 10]", "9", "9"]
    assert listed.parameters["ordered"] == {"edu": ("9", "2", "10")}


def test_a_value_outside_a_listed_order_is_refused() -> None:
    with pytest.raises(InputError, match='column "edu".*row 2'):
        lv.anonymize(people(), quasi=["race", "edu"], ordered={"edu": ["1", "10"]}, **ASKED)


def test_a_schema_gives_way_to_what_is_said_of_codes(tmp_path: Path) -> None:
    from louver.schema.spec import read_spec

    spec = tmp_path / "spec.toml"
    spec.write_text('[attributes.race]\nkind = "integer"\n')
    release = lv.anonymize(
        people(), quasi=["race", "edu"], categorical="race", schema=read_spec(spec).schema, **ASKED
    )
    assert kinds(release) == {"race": "category", "edu": "number"}


@pytest.mark.parametrize("source", ["frame", "csv"])
def test_codes_of_missing_values(source: str, tmp_path: Path) -> None:
    """99 stands for missing: alone it would stretch the interval; a text code leaves the column numeric."""
    table = pa.table({"age": [30, 31, 99, 99], "income": ["5", "6", "N", "N"]})
    data: object = table
    if source == "csv":
        data = tmp_path / "people.csv"
        data.write_text("age,income\n30,5\n31,6\n99,N\n99,N\n")
    release = lv.anonymize(
        data, quasi=["age", "income"], missing_code={"age": [99], "income": ["N"]}, **ASKED
    )
    assert release.table["age"].to_pylist() == ["[30, 31]", "[30, 31]", None, None]
    assert kinds(release) == {"age": "number", "income": "number"}
    assert lv.verify(written(release, tmp_path / "release")).passed


def test_a_missing_code_is_refused_where_missing_values_are() -> None:
    with pytest.raises(InputError, match="no value on row 2"):
        lv.anonymize(people(), quasi=["race", "edu"], missing_code={"race": [9]}, missing="error", **ASKED)


def test_missing_is_no_value_unless_asked(tmp_path: Path) -> None:
    ill = ["flu", None, "cold", "flu", "flu", "cold"]
    table = pa.table({"age": [1, 2, 3, 11, 12, 13], "ill": ill})
    asked = {"quasi": ["age"], "sensitive": ["ill"], "l": 2, "k": 2, "method": "exact"}
    plain = lv.anonymize(table, **asked)
    assert plain.n_classes == 2 and plain.reached[0].l == 2
    counted = lv.anonymize(table, **{**asked, "l": 3}, count_missing=True)
    assert counted.n_classes == 1 and counted.reached[0].l == 3
    for number, release in enumerate((plain, counted)):
        out = written(release, tmp_path / str(number))
        assert lv.verify(out).passed
        promise = next(p for p in release.promises if p["promise"] == "l-diversity")
        assert promise.get("unknown") == ([None] if number == 0 else None)
    with pytest.raises(InfeasibleError, match="requirement"):
        lv.anonymize(table, **{**asked, "l": 3})


def test_codes_of_missing_sensitive_values_are_published_but_no_values(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 2, 11, 12], "ill": [1, 99, 1, 2]})
    release = lv.anonymize(
        table, quasi=["age"], sensitive=["ill"], categorical=["ill"], missing_code={"ill": [99]}, l=2, k=2,
        method="exact", keep_order=True,
    )  # fmt: skip
    assert release.n_classes == 1 and release.table["ill"].to_pylist() == [1, 99, 1, 2]
    out = written(release, tmp_path / "release")
    assert lv.verify(out).passed
    promise = next(p for p in release.promises if p["promise"] == "l-diversity")
    assert promise["unknown"] == ["99"] and promise["values"] == [["1"], ["2"]]


def test_numbers_are_close_by_their_order_unless_they_are_codes(tmp_path: Path) -> None:
    table = pa.table({"age": [i // 3 for i in range(12)], "pay": [1, 2, 3, 2, 3, 4, 3, 4, 5, 1, 3, 5]})
    asked = {"quasi": ["age"], "sensitive": ["pay"], "t": 0.9, "k": 3, "method": "sorted"}
    by_order, by_code = lv.anonymize(table, **asked), lv.anonymize(table, **asked, categorical=["pay"])
    ordered_text = lv.anonymize(table, **asked, ordered={"pay": [5, 4, 3, 2, 1]})
    equal = lv.anonymize(table, **asked, distance="equal")
    assert [r.reached[0].distance for r in (by_order, by_code, ordered_text, equal)] == [
        "ordered", "equal", "ordered", "equal",
    ]  # fmt: skip
    assert by_order.reached[0].t == ordered_text.reached[0].t < by_code.reached[0].t == equal.reached[0].t
    for number, release in enumerate((by_order, by_code, ordered_text, equal)):
        assert f"t = {release.reached[0].t:.4g} reached" in repr(release)
        out = written(release, tmp_path / str(number))
        found = {check.name: check.found for check in lv.verify(out).checks}
        assert lv.verify(out).passed
        assert found["t-closeness"].startswith(f"largest distance is {release.reached[0].t:.4g},")


@pytest.mark.parametrize("kind", ["distinct", "entropy"])
def test_the_l_reached_is_what_verify_finds(kind: str, tmp_path: Path) -> None:
    ill = ["a", "b", "c", None, "a", "a", "b", "c", "c", "b"]
    table = pa.table({"age": list(range(10)), "ill": ill})
    release = lv.anonymize(table, quasi=["age"], sensitive=["ill"], l=1.5, l_kind=kind, k=3, method="greedy")
    out = written(release, tmp_path / "release")
    found = next(check.found for check in lv.verify(out).checks if check.name == "l-diversity")
    assert f"{release.reached[0].l:.4g} values" in found
    manifest = lv.open(out).manifest
    assert manifest.results["reached"][0]["l"] == pytest.approx(release.reached[0].l)
