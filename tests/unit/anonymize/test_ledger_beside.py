"""lv.anonymize finds the ledger of its data as the command does."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import louver as lv
from louver.data import parsing_once
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation


def test_logged_beside_the_data(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("age,ill\n31,flu\n33,flu\n34,cold\n52,cold\n")
    asked = {"quasi": ["age"], "k": 2, "method": "sorted"}
    assert lv.anonymize(people, **asked, out=tmp_path / "unlogged").ledger is None
    ledger = tmp_path / "people.csv.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1))
    release = lv.anonymize(people, **asked, out=tmp_path / "release")
    assert release.ledger == ledger
    assert "k-anonymity with k = 2" in str(Ledger(ledger).state().disclosures)
    assert lv.verify(tmp_path / "release").passed


def test_records_are_parsed_once_for_the_file_its_register_and_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, places = tmp_path / "people.csv", []
    people.write_text("age,ill\n31,flu\n33,flu\n34,cold\n52,cold\n")
    Ledger.create(tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(1))
    parse = parsing_once._parse
    monkeypatch.setattr(
        parsing_once, "_parse", lambda place, *more: places.append(place) or parse(place, *more)
    )
    asked = {"quasi": ["age"], "k": 2, "method": "sorted", "registry": str(tmp_path / "register")}
    lv.anonymize(people, **asked, out=tmp_path / "release")
    assert len(places) == 1
    assert len(Ledger(tmp_path / "people.csv.ledger").state().people) == 1
    lv.bounds.publish(
        people, rows=["age"], cols=["ill"], registry=asked["registry"], recode={"age": {"bins": [40]}}
    )
    assert len(places) == 2
