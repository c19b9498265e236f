"""One verdict of each verb, rendered by everything else."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import louver as lv
from louver._verdict import Level, Verdict
from louver.bounds.answer import BoundsAnswer
from louver.report.bounds import bounds_report

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
    assert audit.verdict.sentence == "Publish it only if that may be known."


def test_a_verdict_reads_from_its_reasons_to_its_conclusion() -> None:
    assert str(Verdict(Level.OK, "So it is.", ("One.", "Two."))) == "One. Two. So it is."
