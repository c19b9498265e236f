"""lv.anonymize finds the ledger of its data as the command does."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import louver as lv
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
