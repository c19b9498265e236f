"""What several releases of one ledger publish exactly, taken together, through the verbs."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.ledger_finding import admit_source
from louver.privacy.neighbours import Relation
from louver.topdown import measure, topdown
from topdown_town import AGES, QUARTERS, RACES, SPEC, write_town

WARD = '[[topdown.invariants]]\nname = "ward total"\nlevel = "ward"\n'


def _exact(*cells: tuple[str, str, str]) -> str:
    """Invariants of some cells of every block."""
    return "".join(
        f'[[topdown.invariants]]\nname = "{q} {a} {r}"\nlevel = "block"\n'
        f'cells = {{ quarters = ["{q}"], age = ["{a}"], race = ["{r}"] }}\n'
        for q, a, r in cells
    )


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = write_town(tmp_path, SPEC)
    Ledger.create(tmp_path / "people.csv.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(20))
    return path


def _spec(town: Path, invariants: str, *, acknowledge: bool = False, labels: str | None = None) -> Path:
    text = SPEC.replace(WARD, invariants)
    if acknowledge:
        text = text.replace("epsilon = 2", "epsilon = 2\nacknowledge_invariants = true")
    if labels is not None:
        text = text.replace('["adult", "child"]', labels)
    town.write_text(text)
    return town


def test_two_specs_never_publish_a_whole_table(town: Path, tmp_path: Path) -> None:
    cells = [(q, a, r) for q in QUARTERS for a in AGES for r in RACES if (q, a) != ("jail", "child")]
    measure(_spec(town, _exact(*cells[:8])), out=tmp_path / "first")
    ledger = Ledger(tmp_path / "people.csv.ledger")
    before = ledger.state()
    assert before.invariants[0]["cells"] == {
        "quarters": ["home"],
        "age": ["adult"],
        "race": ["a"],
    }
    (tmp_path / "people.csv").rename(tmp_path / "away.csv")  # the refusal comes before the records are opened
    (tmp_path / "people.csv").write_text("no records here")
    for acknowledge in (False, True):
        with pytest.raises(InputError, match="fix a whole table exactly"):
            measure(_spec(town, _exact(*cells[8:]), acknowledge=acknowledge), out=tmp_path / "second")
    assert ledger.state() == before


def test_what_cannot_be_decided_is_acknowledged_in_ledger_and_manifest(town: Path, tmp_path: Path) -> None:
    measure(town, out=tmp_path / "first")
    other = '["child", "adult"]'
    with pytest.raises(InputError, match="acknowledge_invariants = true"):
        topdown(_spec(town, WARD, labels=other), out=tmp_path / "second")
    topdown(_spec(town, WARD, labels=other, acknowledge=True), out=tmp_path / "second")
    ledger = Ledger(tmp_path / "people.csv.ledger")
    assert [one["acknowledged"] for one in ledger.published_invariants()] == [False, True]
    manifest = json.loads((tmp_path / "second" / "manifest.json").read_text())
    assert manifest["parameters"]["acknowledge_invariants"] is True


def test_an_admitted_copy_is_paid_from_the_same_budget(town: Path, tmp_path: Path) -> None:
    measure(town, out=tmp_path / "first")
    people = tmp_path / "people.csv"
    copy = tmp_path / "copy.csv"
    copy.write_bytes(people.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") + b"\r\n")
    town.write_text(SPEC.replace("people.csv", "copy.csv"))
    with pytest.raises(InputError, match=r"`louver ledger admit people\.csv\.ledger copy\.csv`"):
        measure(town, out=tmp_path / "second")
    ledger = Ledger(tmp_path / "people.csv.ledger")
    admit_source(ledger, str(copy))
    measure(town, out=tmp_path / "second")
    assert ledger.state().spent == 4
