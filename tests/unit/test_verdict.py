"""One verdict of each verb, rendered by everything else."""

from __future__ import annotations

import re
from fractions import Fraction
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest

import louver as lv
from louver._verdict import Level, Verdict
from louver.bounds.answer import BoundsAnswer
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.report.bounds import bounds_report
from louver.report.groups import groups_report
from louver.report.profile import profile_report

TABLES = {
    Level.OK: [("A", "no", 40), ("A", "yes", 60), ("B", "no", 30), ("B", "yes", 90)],
    Level.CARE: [("A", "no", 41), ("A", "yes", 60), ("B", "no", 29), ("B", "yes", 90)],
    Level.STOP: [("A", "no", 1), ("A", "yes", 60), ("B", "no", 2), ("B", "yes", 90)],
}


@pytest.mark.parametrize("level", list(Level))
def test_one_verdict_of_bounds(level: Level) -> None:
    """The object, JSON, the command line's words and the report all say the same."""
    site, ill, n = zip(*TABLES[level], strict=True)
    audit = lv.bounds(pa.table({"site": site, "ill": ill, "n": n}), rows=["site"], cols=["ill"], weight="n")
    found = audit.verdict
    assert found.level is level and found.is_risky is (level is Level.STOP)
    assert audit.to_dict()["verdict"] == {
        "level": str(level),
        "sentence": found.sentence,
        "reasons": list(found.reasons),
    }
    assert repr(BoundsAnswer(audit=audit)).startswith(f"{found} {audit.advice()}\n")
    kind = {Level.OK: "verdict", Level.CARE: "verdict care", Level.STOP: "verdict risk"}[level]
    [shown] = re.findall(rf'<p class="{kind}">(.*?)</p>', bounds_report(source="t.csv", audit=audit))
    assert found.sentence in shown


def test_a_table_with_every_cell_exact_is_not_simply_safe() -> None:
    site, ill, n = zip(*TABLES[Level.CARE], strict=True)
    audit = lv.bounds(pa.table({"site": site, "ill": ill, "n": n}), rows=["site"], cols=["ill"], weight="n")
    assert audit.summary.disclosed_rows == 2
    assert audit.verdict.sentence == "Publish it only if this may become known."


def test_a_verdict_reads_from_its_reasons_to_its_conclusion() -> None:
    assert str(Verdict(Level.OK, "So it is.", ("One.", "Two."))) == "One. Two. So it is."


def in_report(html: str) -> tuple[Level, str]:
    """Level and words of the verdict that a report shows."""
    [(kind, words)] = re.findall(r'<p class="verdict ?(care|risk|)">(.*?)</p>', html)
    return {"": Level.OK, "care": Level.CARE, "risk": Level.STOP}[kind], unescape(words)


def test_one_verdict_of_profile() -> None:
    people = pa.table({"id": [str(n) for n in range(60)], "town": ["A", "B", "C"] * 20})
    found = lv.profile(people)
    said = found.verdict
    assert said.level is Level.STOP and said.reasons
    assert found.to_dict()["verdict"] == said.to_dict()
    assert repr(found).endswith(str(said))
    assert in_report(profile_report(found)) == (said.level, str(said))


@pytest.mark.parametrize("seed", [None, 1])
def test_one_verdict_of_groups_and_verify(tmp_path: Path, seed: int | None) -> None:
    """Private noise is promised; a seed is said by everything to be not private."""
    homes = pa.table({"town": list("AABB"), "size": [1, 2, 1, 3], "n": [40, 20, 30, 9]})
    how = {"size": "size", "groups": "n", "regions": ["town"], "max_size": 3, "domain_from_data": True}
    ledger = None
    if seed is None:
        ledger = tmp_path / "some.ledger"
        Ledger.create(ledger, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(2))
    made = lv.groups(
        homes, **how, epsilon=1, seed=seed, ledger=ledger, out=tmp_path / "out", report=groups_report
    )
    said = made.verdict
    assert said.level is (Level.OK if seed is None else Level.STOP)
    assert made.to_dict()["verdict"] == said.to_dict() and said.sentence in repr(made)
    assert in_report((tmp_path / "out" / "report.html").read_text()) == (said.level, said.sentence)
    checked = lv.verify(tmp_path / "out")
    assert checked.verdict.level is said.level
    assert checked.to_dict()["verdict"] == checked.verdict.to_dict()
    assert checked.verdict.sentence.rstrip(".").lower() in str(checked).lower()
