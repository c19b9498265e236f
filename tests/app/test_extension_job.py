"""Extending a release on the page TopDown, without a browser: which releases and schemas fit, what is added, one debit."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from louver.app.jobs.topdown import (
    extendable,
    extended,
    extension_described,
    extension_loss,
    fitting_schemas,
    is_extension_paid,
    ready_spec,
)
from louver.app.pages.topdown_form import TopDownChoices, extends_of, repeated
from louver.errors import Cancelled
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run
from louver.topdown import topdown
from topdown_larger import write_larger

PL94 = """
schema = "pl94"
[source]
file = "people.csv"
[topdown]
epsilon = 1
neighbours = "change-record"
intervals = 0
[topdown.geography]
column = "block"
prefixes = [0, 1]
levels = ["town", "block"]
leaves = "leaves.csv"
[topdown.shares]
levels = { town = "1/2", block = "1/2" }
queries = { detailed = 1 }
"""


def ledger_at(path: Path) -> Path:
    Ledger.create(path, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(9))
    return path


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town whose first release is paid for, and two releases that cannot be extended."""
    folder = tmp_path_factory.mktemp("extension")
    first, _ = write_larger(folder)
    (folder / "releases").mkdir()
    topdown(first, ledger=ledger_at(folder / "town.ledger"), out=folder / "releases" / "first")
    topdown(first, seed=1, out=folder / "releases" / "seeded")
    return folder


@pytest.fixture
def town(paid: Path, tmp_path: Path) -> Path:
    return shutil.copytree(paid, tmp_path / "town")


@pytest.fixture
def asked(town: Path) -> TopDownChoices:
    """As the page has it once the release is chosen."""
    chosen = TopDownChoices()
    chosen.open(town / "larger.toml")
    chosen.change_first(town / "releases" / "first")
    about = extension_described(
        str(chosen.spec), {"extends": str(chosen.first)}, str(town / "town.ledger"), Run()
    )
    chosen.reset(about)
    return chosen


def test_only_private_first_releases_are_offered(town: Path) -> None:
    assert extendable(str(town / "releases"), Run()) == ["first"]
    assert extends_of(town / "larger.toml") == "first" and extends_of(town / "town.toml") is None
    assert extends_of(town / "gone.toml") is None


def test_what_is_added_is_told_before_anything_is_spent(town: Path, asked: TopDownChoices) -> None:
    about = asked.about
    assert about is not None and about["refused"] is None
    assert about["first"] == "first" and about["first_loss"]["amount"] == "2"
    assert {one["name"]: (one["before"], one["labels_before"], one["labels"]) for one in about["attributes"]} == {
        "race": ("race", 3, 3), "years": ("age", 2, 4), "sex": (None, 0, 2), "place": ("quarters", 3, 7)
    }  # fmt: skip
    assert about["rules"] == ["spouses", "parents"] and about["bounds"] == ["convents"]
    assert extension_loss(str(asked.spec), asked.section(), Run())["amount"] == "1"
    asked.amount = Fraction(1, 2)
    assert extension_loss(str(asked.spec), asked.section(), Run())["amount"] == "1/2"
    other = ledger_at(town / "other.ledger")
    about = extension_described(str(asked.spec), asked.section(), str(other), Run())
    assert "did not pay for first" in about["refused"]
    assert Ledger(town / "town.ledger").state().spent == 2


def test_an_extension_is_paid_for_once(town: Path, asked: TopDownChoices) -> None:
    """Cancelled after paying, it goes on with the same noise; the copied command asks for the same."""
    ledger, out = town / "town.ledger", str(town / "releases" / "larger")

    class Stopping(Run):
        def report(self, stage: str, done: float = 0, total: float = 0) -> None:
            if len(Ledger(ledger).state().sealed) == 2:
                self.cancel()
            super().report(stage, done, total)

    call = str(asked.spec), asked.section(), str(ledger), out
    assert not is_extension_paid(*call, Run())
    with pytest.raises(Cancelled):
        extended(*call, Stopping())
    assert is_extension_paid(*call, Run()) and Ledger(ledger).state().spent == 3
    assert extended(*call, Run())["people"] > 0
    assert verify(out).passed and Ledger(ledger).state().spent == 3
    assert extendable(str(town / "releases"), Run()) == ["first"], "an extension is not extended"
    asked.name = "again"
    copied = repeated(asked, ledger)
    assert copied is not None
    command = copied.texts()["Command"].splitlines()[-1]
    assert command.startswith("louver topdown extend ") and "--out=again" in command
    assert "lv.topdown.extend(" in copied.texts()["Python"]


@pytest.mark.long
def test_a_ready_schema_extends_the_release_that_it_refines(tmp_path: Path) -> None:
    (tmp_path / "leaves.csv").write_text("block\n1\n2\n")
    (tmp_path / "people.csv").write_text(
        "block,race,hispanic,voting_age,housing,age,relationship,sex\n"
        "1,white,no,over,household,40,householder,female\n2,black,yes,under,household,7,biological-child,male\n"
    )
    spec, releases = tmp_path / "pl94.toml", tmp_path / "releases"
    spec.write_text(PL94)
    releases.mkdir()
    ledger = ledger_at(tmp_path / "town.ledger")
    topdown(spec, ledger=ledger, out=releases / "first")
    assert fitting_schemas(str(spec), str(releases), "first", Run()) == ["dhc-persons"]
    made = ready_spec(str(spec), str(releases), "first", "dhc-persons", str(tmp_path / "releases"), Run())
    about = extension_described(made, {}, str(ledger), Run())
    assert about["cells"] == [2016, 1_256_976] and about["refused"] is None
    beside = ready_spec(str(spec), str(releases), "first", "dhc-persons", str(tmp_path), Run())
    assert 'file" = "people.csv"' in Path(beside).read_text(), "an upload keeps its name"
