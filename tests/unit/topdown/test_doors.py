"""Other ways in: records from Python, specs as mappings; and a way out: `Run`."""

from __future__ import annotations

import tomllib
from fractions import Fraction

import pyarrow.csv
import pytest

import louver as lv
from louver.errors import Cancelled, InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run
from louver.schema.spec import read_spec
from louver.topdown import estimate, measure, topdown
from topdown_town import SPEC, write_town


@pytest.fixture
def town(tmp_path):
    return write_town(tmp_path / "town")


def test_dataframes_mappings_and_specs_give_the_same_release(town, tmp_path, monkeypatch):
    whole = topdown(town, seed=1).to_frame()
    frame = pyarrow.csv.read_csv(town.with_name("people.csv"))
    assert topdown(town, data=frame, seed=1).to_frame() == whole
    assert topdown(read_spec(town), data=str(town.with_name("people.csv")), seed=1).to_frame() == whole
    monkeypatch.chdir(town.parent)
    mapping = tomllib.loads(SPEC)
    assert lv.topdown(mapping, seed=1).to_frame() == whole
    del mapping["source"]
    assert topdown(mapping, data=frame, seed=1).to_frame() == whole
    with pytest.raises(InputError, match="has no source"):
        topdown(mapping, seed=1)


def test_a_dataframe_is_paid_for_by_a_ledger_that_is_named(town, tmp_path):
    frame = pyarrow.csv.read_csv(town.with_name("people.csv"))
    with pytest.raises(InputError, match="--ledger is missing"):
        topdown(town, data=frame, out=tmp_path / "out")
    path = tmp_path / "frame.ledger"
    ledger = Ledger.create(path, Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    topdown(town, data=frame, out=tmp_path / "out", ledger=path)
    assert verify(tmp_path / "out").passed and ledger.state().spent == 2


def test_the_records_are_no_public_file_wherever_they_come_from(town, tmp_path):
    with pytest.raises(InputError, match="names the confidential source"):
        topdown(town, data=town.with_name("leaves.csv"), seed=1)


class _At(Run):
    """Cancels itself at the n-th question."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Cancelled


def test_a_budget_of_epsilon_and_delta_is_carried_on(tmp_path, monkeypatch):
    """The rho that was composed for it is found again, and paid once."""
    town = write_town(tmp_path / "town", SPEC.replace("epsilon = 2", "epsilon = 2\ndelta = 1e-6"))
    ledger = Ledger.create(
        town.with_name("people.csv.ledger"), Measure.RHO, Relation.CHANGE_RECORD, Fraction(1)
    )

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    for place in ("louver.privacy.spend.write_measurements", "louver.privacy.ledger.Ledger.seal"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, stopped)
            topdown(town, out=tmp_path / "out", resume=place.endswith("seal"))
        assert len(ledger.state().pending) == 1
    release = topdown(town, out=tmp_path / "out", resume=True)
    assert ledger.state().spent == release.plan.loss.amount < 1 and not ledger.state().pending
    assert release.plan.promise == (2, Fraction(1, 10**6)) and verify(tmp_path / "out").passed


@pytest.mark.parametrize("moment", [0, 3, 13, 16])
def test_cancelled_and_carried_on(town, tmp_path, moment):
    ledger = Ledger.create(
        town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2)
    )
    with pytest.raises(Cancelled):
        topdown(town, out=tmp_path / "out", run=_At(moment))
    assert not (tmp_path / "out").exists()
    topdown(town, out=tmp_path / "out", resume=True)
    assert ledger.state().spent == 2 and not ledger.state().pending and verify(tmp_path / "out").passed
    assert {path.name for path in tmp_path.iterdir()} == {"town", "out"}


def test_halves_are_cancelled_too(town, tmp_path):
    Ledger.create(town.with_name("people.csv.ledger"), Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(2))
    with pytest.raises(Cancelled):
        measure(town, out=tmp_path / "measured", run=_At(1))
    folder = measure(town, out=tmp_path / "measured", resume=True).folder
    with pytest.raises(Cancelled):
        estimate(town, measurements=folder, run=_At(2))
    seen = []
    estimate(town, measurements=folder, run=Run(lambda *told: seen.append(told)))
    assert seen[-1][0] == "estimating block"
