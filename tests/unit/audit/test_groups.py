"""Every group that labels describe: attributes with many labels, too many descriptions, an outsider, and time."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import louver as lv
from louver._verdict import Level
from louver.schema.attribute import Attribute
from louver.tables import component as solving
from louver.tables.descriptions import descriptions
from louver.tables.pieces import Cross, Margin, Piece, refined

FEW = [9, 1, 1, 2, 30, 40, 50]


@pytest.fixture
def few_sets(monkeypatch):
    """No attribute is small enough for every set of its labels."""
    monkeypatch.setattr(sys.modules["louver.tables.descriptions"], "EVERY_SET", ())


def people(counts=FEW, sexes="fm"):
    """Parts a, b, ..., as many people of each sex."""
    rows = [(part, sex, n) for part, n in zip("abcdefghij", counts, strict=False) for sex in sexes]
    part, sex, n = zip(*rows, strict=True)
    return pa.table({"part": part, "sex": sex, "n": n})


def groups_of(found):
    return [cell.cell for cell in found.disclosed() if cell.table == "groups"]


@pytest.mark.usefixtures("few_sets")
def test_what_is_left_of_a_total_is_asked_for_however_many_labels_there_are():
    """Three hidden parts of 1, 1 and 2 are 4 together; none of them is known."""
    hidden = {"name": "parts", "by": ["part"], "below": 3, "totals": True}
    found = lv.audit(people(sexes="f"), weight="n", tables=[hidden], no_advice=True)
    assert groups_of(found) == [{"part": "b or c or d"}]
    assert found.verdict.level is Level.STOP and found.question.some_sets == ("part",)
    both = [hidden, {"name": "sex", "by": ["sex"]}]
    assert {"part": "b or c or d"} in groups_of(
        lv.audit(people(sexes="f"), weight="n", tables=both, no_advice=True)
    )


@pytest.mark.usefixtures("few_sets")
def test_sets_that_pieces_form_are_asked_for():
    """Of 7 labels: each, each pair, each category and filter, what one has beyond another, and what is outside."""
    attribute = Attribute(name="part", labels=tuple("abcdefg"))
    first = Cross(by=(), where={"part": ("a", "b", "c", "d")})
    second = Cross(by=(), where={"part": ("d", "e", "f", "g")})
    every = Cross(by=("part",))
    domain = refined([attribute], [first, second, every])
    zero = np.zeros(1, dtype=np.int64)
    pieces = [
        Piece(name="t", margins=tuple(Margin(cross=c, lower=zero, upper=zero) for c in (first, second)))
    ]
    (family,) = next(descriptions(domain, pieces)).families
    asked = {family.members(n) for n in np.flatnonzero(family.is_asked)}
    for size in (1, 2):
        assert set(itertools.combinations(range(7), size)) <= asked
    assert {(0, 1, 2, 3), (3, 4, 5, 6), (0, 1, 2), (4, 5, 6), tuple(range(7))} <= asked
    assert (0, 2, 4) not in asked


def test_too_many_descriptions_are_not_safe(monkeypatch):
    module = sys.modules["louver.tables.descriptions"]
    monkeypatch.setattr(module, "MAX_WORK", 10)
    table = {"name": "t", "by": ["part", "sex"], "base": 5}
    found = lv.audit(people(), weight="n", tables=[table], fail_on="small", no_advice=True)
    assert found.question.most == 1 and not found.question.is_complete
    assert found.verdict.level is Level.CARE and not found.passed
    assert "more than 1 attribute to describe" in str(found.verdict)
    assert "fewer attributes" in found.verdict.sentence


def test_targets_limit_the_question_and_the_verdict_says_so():
    table = {"name": "t", "by": ["part", "sex"]}
    found = lv.audit(
        people(), weight="n", tables=[table], targets=[{"by": ["sex"]}], fail_on="small", no_advice=True
    )
    assert found.passed and found.verdict.level is Level.CARE and found.summary.groups is None
    assert "only the given targets were examined" in str(found.verdict)
    assert not lv.audit(people(), weight="n", tables=[table], fail_on="small", no_advice=True).passed


def test_an_outsider_asks_about_groups_as_well(tmp_path):
    """Everybody less the employed leaves two people who are not; a table of regions brings a further attribute."""
    (tmp_path / "all.csv").write_text("age,count\nold,32\nyoung,40\n")
    (tmp_path / "employed.csv").write_text("age,count\nold,30\nyoung,20\n")
    (tmp_path / "regions.csv").write_text("region,count\nn,30\ns,42\n")
    spec = tmp_path / "audit.toml"
    labels = {"age": ["old", "young"], "work": ["yes", "no", "retired"], "region": ["n", "s"]}
    lines = [f"[attributes.{name}]\nlabels = {list(own)}\n" for name, own in labels.items()]
    lines += ['[[audit.tables]]\nname = "all"\nby = ["age"]\nfile = "all.csv"\n']
    lines += [
        '[[audit.tables]]\nname = "employed"\nby = ["age"]\nfile = "employed.csv"\nwhere = { work = "yes" }\n'
    ]
    lines += ['[[audit.tables]]\nname = "regions"\nby = ["region"]\nfile = "regions.csv"\n']
    spec.write_text("".join(lines).replace("'", '"'))
    found = lv.audit(spec=spec)
    assert groups_of(found) == [{"age": "old", "work": "no or retired"}]
    assert [cell.lower for cell in found.disclosed()] == [2]


def test_shares_that_determine_a_sum_of_rows_are_found():
    """Rows of 3 and of 40 people with known row totals: the share gives the count of one, and a total that of a group."""
    records = pa.table(
        {"town": ["A", "A", "B", "B"], "ill": ["y", "n", "y", "n"], "n": [2, 40, 9, 31]},
    )
    shares = {"name": "s", "rows": ["town"], "cols": ["ill"], "counts": "rows"}
    found = lv.audit(records, weight="n", tables=[shares, {"name": "t", "by": ["town"]}], no_advice=True)
    assert found.verdict.level is Level.STOP and found.summary.small_exact == 1


def test_what_resists_is_tried_with_growing_effort(monkeypatch):
    """A search that gives up at the usual effort goes on while there is time; the verdict does not ask for more of it."""
    tried = []
    escape = solving.Component._escape

    def only_when_patient(self, *where):
        tried.append(self.patience)
        if self.patience >= 16:
            escape(self, *where)

    monkeypatch.setattr(solving.Component, "_escape", only_when_patient)
    monkeypatch.setattr(solving.Component, "_in_batches", lambda *_, **__: None)
    monkeypatch.setattr(solving.Component, "walk", lambda *_: None)
    table = {"name": "t", "by": ["part", "sex"], "base": 5, "totals": True}
    found = lv.audit(people([1, 9]), weight="n", tables=[table], decide=True, no_advice=True, seconds=600)
    assert found.verdict.level is Level.OK and {1, 4, 16} <= set(tried) and 64 not in tried
    monkeypatch.setattr(solving.Component, "_escape", lambda *_: None)
    found = lv.audit(people([1, 9]), weight="n", tables=[table], decide=True, no_advice=True, seconds=600)
    assert found.verdict.level is Level.CARE and found.summary.undecided > 0
    assert "more time will not help" in found.verdict.sentence
