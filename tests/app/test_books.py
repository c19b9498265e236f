"""The pages Ledger and Releases, without a browser: what they are told."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import louver as lv
from louver.app.jobs.ledgers import given_up, granted, ledger_left, ledger_read
from louver.app.jobs.releases import checked, listed, report_of
from louver.app.words import amount_text, date_text, share_text
from louver.errors import InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.report.anonymize import anonymize_report
from louver.run import Run
from releases import made


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    path = tmp_path / "people.ledger"
    Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    return str(path)


def test_a_ledger_is_told_with_its_history_and_whether_it_is_sound(ledger: str) -> None:
    told = ledger_read(ledger, None, Run())
    assert (told["remaining"], told["held"], told["check"]["sound"]) == ("2", "0", True)
    assert [event["kind"] for event in told["history"]] == ["init", "grant"]


def test_more_is_granted_in_the_measure_of_the_ledger(ledger: str) -> None:
    assert granted(ledger, None, "0.5", Run())["granted"] == "5/2"
    assert ledger_left(ledger, Run()) == {
        "measure": "epsilon",
        "neighbours": "add-remove-record",
        "granted": "5/2",
        "left": "5/2",
        "held": "0",
    }


@pytest.mark.parametrize("amount", ["", "-1", "0", "many", "1e99999999"])
def test_an_amount_that_is_none_grants_nothing(ledger: str, amount: str) -> None:
    with pytest.raises(InputError, match="amount"):
        granted(ledger, None, amount, Run())
    assert ledger_left(ledger, Run())["granted"] == "2"


def test_giving_up_keeps_the_amount_spent(tmp_path: Path) -> None:
    path = tmp_path / "used.ledger"
    used = Ledger.create(path, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(1))
    half = Loss(Fraction(1, 2), Measure.EPSILON, Relation.CHANGE_RECORD)
    used.reserve(half, request="asked", purpose="a table", dataset=lambda secret: bytes(32))
    before = ledger_read(str(path), None, Run())
    (entry,) = (one["entry"] for one in before["pending"])
    after = given_up(str(path), None, entry, Run())
    assert after["pending"] == [] and after["remaining"] == before["remaining"]


def test_releases_are_listed_checked_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "releases"
    folder.mkdir()
    people = pa.table({"age": [30, 31, 32, 60, 61, 62], "ill": ["no", "yes"] * 3})
    lv.anonymize(
        people, quasi=["age"], sensitive=["ill"], k=3, out=folder / "persons", report=anonymize_report
    )
    (folder / "not one").mkdir()
    made(folder / "spoilt")
    (folder / "spoilt" / "manifest.json").write_text("{")
    found = {one["folder"]: one for one in listed(str(folder), Run())}
    assert set(found) == {"persons", "spoilt"}
    assert found["spoilt"]["problem"] and found["persons"]["problem"] is None
    assert checked(str(folder), "persons", False, 0, Run())["passed"]
    assert report_of(str(folder), "persons", Run())


@pytest.mark.parametrize("name", ["..", "../elsewhere", "/etc", "unknown"])
def test_only_what_lies_in_the_folder_is_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="no longer in the folder"):
        checked(str(tmp_path), name, False, 0, Run())


def test_words() -> None:
    assert amount_text("21/40") == "0.525"
    assert amount_text("1/3") == "about 0.3333"
    assert date_text("2026-11-14T16:02:11+00:00") == "14 Nov 2026"
    assert share_text(0.00216) == "0.216 %"
