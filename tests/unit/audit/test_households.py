"""An audit counts units where their column is named; where records only look as if they numbered households, it says so."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pytest

import louver as lv
from louver._verdict import Level
from louver.errors import InputError

TABLES = [{"name": "one", "by": ["sex"]}]


def people(name: str) -> pa.Table:
    n = 120
    return pa.table({name: [i // 3 for i in range(n)], "sex": ["f", "m"] * (n // 2)})


def test_households_that_were_not_counted_are_named() -> None:
    found = lv.audit(people("hhid"), tables=TABLES)
    assert found.verdict.level is Level.CARE and "households" in found.verdict.sentence
    told = [sentence for sentence in found.verdict.reasons if '"hhid"' in sentence]
    assert len(told) == 1 and told[0] in repr(found)
    question = json.loads(found.to_json())["question"]
    assert question["household"] == "hhid" and told[0] in question["not_asked"]


def test_other_columns_are_no_households() -> None:
    found = lv.audit(people("score"), tables=TABLES)
    assert found.verdict.level is Level.OK and found.question.household is None
    counted = people("hhid").append_column("n", pa.array([1] * 120))
    assert lv.audit(counted, weight="n", tables=TABLES).question.household is None


def test_a_steward_who_counts_people_can_publish(tmp_path: Path) -> None:
    asked = {"tables": TABLES, "registry": tmp_path / "register", "publish": tmp_path / "out"}
    assert lv.audit(people("hhid"), **asked).published is None
    found = lv.audit(people("hhid"), **asked, count_people=True)
    assert found.published and found.verdict.level is Level.OK
    assert any('"hhid"' in reason for reason in found.verdict.reasons)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["parameters"]["counted"] == "people, not households"


TOWNS = [{"name": "towns", "by": ["town"]}]


def relatives(n_homes: int = 8) -> pa.Table:
    """Nine people of one household are all of town Z; towns X and Y have single people."""
    rows = [("Z", "nine", "f")] * 9
    rows += [("XY"[i % 2], f"h{i}", "fm"[i // 2 % 2]) for i in range(2 * n_homes)]
    town, home, sex = zip(*rows, strict=True)
    return pa.table({"town": town, "hhid": home, "sex": sex})


def test_nine_people_of_one_household_are_a_small_group() -> None:
    by_people = lv.audit(relatives(), tables=TOWNS, count_people=True)
    assert by_people.verdict.level is Level.OK
    found = lv.audit(relatives(), tables=TOWNS, unit="hhid")
    assert found.verdict.level is Level.STOP and found.summary.small_exact == 1
    (cell,) = {cell.description: cell for cell in found.disclosed()}.values()
    assert (cell.description, cell.lower, cell.units) == ("town=Z", 9, 1)
    assert "town=Z: 9 of 1 unit" in repr(found) and "0 < units < 5" in repr(found)
    told = json.loads(found.to_json())
    assert told["question"]["unit"] == "hhid" and told["question"]["household"] is None
    assert next(one["units"] for one in told["cells"] if one["cell"] == {"town": "Z"}) == 1


def test_units_that_are_many_are_no_small_group() -> None:
    found = lv.audit(
        relatives(), tables=[{"name": "x", "by": ["sex"], "where": {"town": ["X", "Y"]}}], unit="hhid"
    )
    assert found.verdict.level is Level.OK
    assert 'people of fewer than 5 units (column "hhid")' in found.verdict.reasons[0]


def test_a_difference_of_one_household_is_found() -> None:
    """No cell shows the nine, and 24 - 15 does."""
    tables = [
        {"name": "all", "by": ["sex"]},
        {"name": "some", "by": ["sex"], "where": {"town": ["X", "Y"]}},
    ]
    assert lv.audit(relatives(), tables=tables, count_people=True).verdict.level is Level.OK
    found = lv.audit(relatives(), tables=tables, unit="hhid")
    assert any(cell.cell.get("town") == "Z" and cell.lower == 9 for cell in found.disclosed())


def test_hiding_protects_a_household_whose_count_is_large() -> None:
    rows = [("X", f"a{i}", "f") for i in range(7)] + [("Y", f"b{i}", "f") for i in range(7)]
    rows += [("X", f"c{i}", "m") for i in range(8)] + [("Y", "one", "m")] * 8 + [("Y", "two", "m")]
    rows += [("X", "q", "o"), *(("Y", f"d{i}", "o") for i in range(6))]
    town, home, sex = zip(*rows, strict=True)
    table = {"name": "t", "by": ["town", "sex"], "totals": True, "below": 3}
    found = lv.audit(
        pa.table({"town": town, "home": home, "sex": sex}), tables=[table], unit="home", hide=True, small=3
    )
    (plan,) = found.hide
    assert plan.is_safe and {"town": "Y", "sex": "m"} in plan.cells


def test_publishing_heeds_units_and_says_so(tmp_path: Path) -> None:
    asked = {"registry": tmp_path / "register", "unit": "hhid"}
    refused = lv.audit(relatives(), tables=TOWNS, publish=tmp_path / "no", **asked)
    assert refused.published is None and "town=Z" in str(refused.refusal)
    fine = [{"name": "x", "by": ["sex"], "where": {"town": ["X", "Y"]}}]
    assert lv.audit(relatives(), tables=fine, publish=tmp_path / "out", **asked).published
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["parameters"]["counted"] == "units, not people" and lv.verify(tmp_path / "out").passed
    # Beside what is published already, a table of everybody leaves the nine.
    later = lv.audit(relatives(), tables=[{"name": "all", "by": ["sex"]}], publish=tmp_path / "no", **asked)
    assert later.published is None and any(cell.units == 1 for cell in later.disclosed())


def test_an_earlier_file_of_records_is_judged_by_its_units(tmp_path: Path) -> None:
    """What a file shows by itself is no news, of few units either."""
    pc.write_csv(relatives(), tmp_path / "people.csv")
    register = tmp_path / "register"
    lv.anonymize(
        tmp_path / "people.csv",
        quasi=["town"],
        keep=["sex"],
        identifying=["hhid"],
        k=5,
        registry=register,
        out=tmp_path / "file",
    )
    found = lv.audit(
        tmp_path / "people.csv", tables=[{"name": "s", "by": ["sex"]}], registry=register, unit="hhid"
    )
    assert found.earlier == 1 and not any(cell.cell.get("town") == "Z" for cell in found.disclosed())


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"unit": "none"}, 'no column "none"'),
        ({"unit": "town"}, 'column "town" is in --unit and in a table'),
        ({"unit": "hhid", "count_people": True}, "--unit and --count-people contradict"),
    ],
)
def test_units_that_cannot_be_counted_are_refused(more: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        lv.audit(relatives(), tables=TOWNS, **more)


def test_units_need_records() -> None:
    wide = {"f": {"sex": "f"}, "m": {"sex": "m"}}
    counted = pa.table({"hhid": ["a", "b"], "town": ["X", "Y"], "f": [3, 4], "m": [5, 6]})
    with pytest.raises(InputError, match="columns of counts have no units"):
        lv.audit(counted, wide=wide, tables=[{"name": "t", "by": ["town", "sex"]}], unit="hhid")
    listed = {"attributes": {"sex": {"labels": ["f", "m"]}}, "audit": {"tables": TABLES}}
    with pytest.raises(InputError, match="--unit needs the records"):
        lv.audit(spec=listed, unit="hhid")


def test_counts_of_members_are_records_of_one_unit() -> None:
    members = pa.table({"town": ["Z", "X", "Y"] * 3, "hhid": ["a", "b", "c"] * 3, "n": [9, 9, 9] * 3})
    found = lv.audit(members, weight="n", tables=TOWNS, unit="hhid")
    assert found.summary.small_exact == 3 and {cell.units for cell in found.disclosed()} == {1}


def test_bounds_publishes_by_units_or_by_people_on_purpose(tmp_path: Path) -> None:
    from louver.bounds import BoundsOptions, answer
    from louver.schema.request import ask

    counts = {"Z": (29, 31), "X": (41, 49), "Y": (43, 47)}
    rows = [
        (town, ill, "big" if town == "Z" else f"{town}{ill}{i // 3}")
        for town, both in counts.items()
        for ill, n in zip("yn", both, strict=True)
        for i in range(n)
    ]
    town, ill, home = zip(*rows, strict=True)
    mixed = pa.table({"town": town, "ill": ill, "hhid": home})
    pc.write_csv(mixed, tmp_path / "people.csv")

    def publish(out: str, **more: object):
        given = {"rows": ["town"], "cols": ["ill"], "accept": True, "registry": str(tmp_path / "register")}
        request = ask(
            BoundsOptions, tmp_path / "people.csv", None, given | {"publish": str(tmp_path / out), **more}
        )
        return answer(request).publication

    guessed = publish("a")
    assert guessed.published is None and "--unit" in guessed.refused and "--count-people" in guessed.refused
    refused = publish("b", unit="hhid")
    assert refused.published is None and refused.verdict.level is not Level.OK
    assert publish("c", count_people=True).published
    known = {"anonymize": {"unit": "hhid"}}
    table = {"rows": ["town"], "cols": ["ill"]}
    assert ask(BoundsOptions, tmp_path / "people.csv", known, table).options.unit is None
    registered = table | {"registry": str(tmp_path / "register")}
    assert ask(BoundsOptions, tmp_path / "people.csv", known, registered).options.unit == "hhid"
    for more in ({"unit": "hhid"}, {"count_people": True}):
        with pytest.raises(InputError, match="needs --register"):
            ask(BoundsOptions, tmp_path / "people.csv", None, {"rows": ["town"], "cols": ["ill"], **more})


def test_the_unit_of_a_spec_is_known_to_audits(tmp_path: Path) -> None:
    pc.write_csv(relatives(), tmp_path / "people.csv")
    known = {"anonymize": {"unit": "hhid"}, "source": {"file": str(tmp_path / "people.csv")}}
    spec = known | {"audit": {"tables": TOWNS}}
    assert lv.audit(spec=spec).question.unit == "hhid"
    assert lv.audit(spec=spec, count_people=True).question.unit is None
    outsider = {
        "anonymize": {"unit": "hhid"},
        "attributes": {"town": {"labels": ["X"]}},
        "audit": {"tables": [{"name": "t", "by": ["town"], "file": str(tmp_path / "t.csv")}]},
    }
    (tmp_path / "t.csv").write_text("town,count\nX,7\n")
    assert lv.audit(spec=outsider).question.unit is None
