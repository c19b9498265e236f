"""An audit counts people: where the records number households, it says that it did not count those."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import louver as lv
from louver._verdict import Level

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
