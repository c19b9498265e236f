"""The page TopDown, without a browser: the forecast opens no records and follows the sliders; a release is paid for once."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from louver.app.jobs.topdown import described, is_paid, planned, released
from louver.app.pages.topdown_form import TopDownChoices, spec_text
from louver.errors import Cancelled, InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run
from louver.topdown import topdown
from louver.topdown.load import read_design
from louver.topdown.measuring.true_counts import source_hash
from louver.topdown.result import INVARIANTS_FILE, MEASUREMENTS_FILE
from louver.topdown.solve import work_of
from topdown_town import write_town


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write_town(tmp_path)


@pytest.fixture
def asked(spec: Path) -> TopDownChoices:
    chosen = TopDownChoices()
    chosen.open(spec)
    chosen.reset(described(str(spec), Run()))
    assert chosen.about is not None
    chosen.levels = dict.fromkeys((level["name"] for level in chosen.about["levels"]), 1)
    chosen.queries = dict.fromkeys(chosen.about["query_shares"], 1)
    return chosen


def _errors(spec: Path, asked: TopDownChoices) -> dict[str, float]:
    found = planned(str(spec), asked.section(), 0, Run())
    assert {line["query"] for line in found["lines"]} > {found["total"]}, "every question, not only the total"
    lines = [line for line in found["lines"] if line["query"] == found["total"]]
    return {line["level"]: line["mean_absolute"] for line in lines if line["plan"] == "asked"}


def test_the_forecast_needs_no_records_and_follows_the_sliders(spec: Path, asked: TopDownChoices) -> None:
    assert asked.about is not None and asked.about["is_consistent"]
    for file in spec.parent.glob("people*"):
        file.unlink()
    asked.is_moved = True
    before = _errors(spec, asked)
    lowest = list(before)[-1]
    asked.levels[lowest] = 20
    assert _errors(spec, asked)[lowest] < before[lowest]
    asked.amount *= 4
    assert _errors(spec, asked)[lowest] < before[lowest] / 2


def test_a_release_is_paid_for(spec: Path, asked: TopDownChoices, tmp_path: Path) -> None:
    ledger = tmp_path / "town.ledger"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4))
    found = released(str(spec), asked.section(), str(ledger), str(tmp_path / "town"), Run())
    assert verify(tmp_path / "town").passed and found["people"] > 0
    assert Ledger(ledger).state().remaining == 4 - asked.amount


def test_cancelled_after_paying_it_goes_on_with_the_same_noise(
    spec: Path, asked: TopDownChoices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, out = tmp_path / "town.ledger", str(tmp_path / "town")
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(4))

    class Stopping(Run):
        def report(self, stage: str, done: float = 0, total: float = 0) -> None:
            if Ledger(ledger).state().sealed:
                self.cancel()
            super().report(stage, done, total)

    assert not is_paid(str(spec), asked.section(), str(ledger), out, Run())
    with pytest.raises(Cancelled):
        released(str(spec), asked.section(), str(ledger), out, Stopping())
    assert is_paid(str(spec), asked.section(), str(ledger), out, Run()), (
        "the page does not ask to spend again"
    )
    assert not Path(out).exists() and Ledger(ledger).state().remaining == 4 - asked.amount
    released(str(spec), asked.section(), str(ledger), out, Run())
    assert verify(out).passed and Ledger(ledger).state().remaining == 4 - asked.amount


def test_measurements_of_other_data_are_no_paid_release_of_these(
    spec: Path, asked: TopDownChoices, tmp_path: Path
) -> None:
    """What a run for other records of the same ledger left behind is neither paid for these nor their release."""
    ledger, out = tmp_path / "town.ledger", tmp_path / "town"
    Ledger.create(ledger, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(8))
    released(str(spec), asked.section(), str(ledger), str(out), Run())
    work = work_of(out)
    for name in (MEASUREMENTS_FILE, INVARIANTS_FILE):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(out / name, work / name)
    call = (str(spec), asked.section(), str(ledger), str(out), Run())
    assert is_paid(*call)
    people = spec.parent / "people.csv"
    lines = people.read_text().splitlines()
    people.write_text("\n".join([*lines, lines[-1]]) + "\n")
    Ledger(ledger).admit(source_hash(read_design(spec)), name="people.csv")
    assert not is_paid(*call)
    with pytest.raises(InputError, match="already exists"):
        topdown(spec, ledger=ledger, out=out, resume=True)


def test_the_budget_and_choices_go_into_the_spec(spec: Path, asked: TopDownChoices) -> None:
    assert asked.section() == {}
    asked.budget, asked.choices["estimator"] = "both", "plain"
    assert asked.section() == {
        "estimator": "plain", "epsilon": str(asked.amount), "rho": None, "delta": "1e-10"
    }  # fmt: skip
    found = planned(str(spec), asked.section(), 0, Run())
    assert found["loss"]["measure"] == "rho"
    asked.budget, asked.choices["shrink"] = "rho", "never"
    with pytest.raises(InputError, match="shrink"):
        planned(str(spec), asked.section(), 0, Run())


def test_the_copied_spec_is_what_was_chosen(spec: Path, asked: TopDownChoices) -> None:
    asked.is_moved, asked.amount = True, Fraction(3)
    asked.levels[list(asked.levels)[-1]] = 5
    copied = spec.with_name("copied.toml")
    copied.write_text(spec_text(spec, asked.section()))
    design = read_design(copied)
    assert design.budget.amount == 3
    assert design.level_shares[-1] == Fraction(5, 4 + len(asked.levels))
    assert design.spine.names == read_design(spec).spine.names
