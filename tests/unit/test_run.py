"""Cancelling at what a run reports: nothing is left behind, and no debit is without its noise.

Stopping at any moment at all, and how long that takes, is for tests/cancel_anywhere.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

import louver as lv
from louver.errors import Cancelled
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run
from topdown_town import write_town

Call = Callable[[Path, Run], object]


def write_people(folder: Path) -> None:
    rows = [f"{20 + i * 7 % 50},t{i % 3},{'fm'[i % 2]},h{i // 3}" for i in range(60)]
    (folder / "people.csv").write_text("\n".join(["age,town,sex,home", *rows]) + "\n")
    (folder / "towns.csv").write_text("town\nt0\nt1\nt2\n")


def bounds(folder: Path, run: Run) -> object:
    return lv.bounds(folder / "people.csv", rows=["town"], cols=["sex"], run=run)


def audit(folder: Path, run: Run) -> object:
    asked = {"tables": [{"name": "towns", "by": ["town"]}], "publish": folder / "out"}
    return lv.audit(folder / "people.csv", **asked, registry=folder / "register", run=run)


def anonymize(folder: Path, run: Run) -> object:
    asked = {"quasi": ["age", "town"], "k": 3, "steps": 4, "identifying": ["home"]}
    return lv.anonymize(folder / "people.csv", **asked, out=folder / "out", run=run)


def groups(folder: Path, run: Run) -> object:
    asked = {"unit": "home", "regions": ["town"], "max_size": 4, "epsilon": 1, "across": "split"}
    return lv.groups(folder / "people.csv", domain=folder / "towns.csv", **asked, out=folder / "out", run=run)


def topdown(folder: Path, run: Run) -> object:
    return lv.topdown(folder / "town.toml", out=folder / "out", resume=True, run=run)


class Stopping(Run):
    """A run that is cancelled when it reports for the n-th time."""

    def __init__(self, at: int = -1) -> None:
        super().__init__(self.count)
        self.at, self.n_reports = at, 0

    def count(self, stage: str, done: float, total: float) -> None:
        self.n_reports += 1
        if self.n_reports == self.at:
            self.cancel()


def moments(call: Call, folder: Path) -> list[int]:
    """First, middle and last report of a run that nobody stops."""
    run = Stopping()
    call(folder, run)
    return sorted({1, (run.n_reports + 1) // 2, run.n_reports} - {0})


@pytest.mark.parametrize("call", [bounds, audit, anonymize])
def test_a_cancelled_run_leaves_nothing(call: Call, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    write_people(whole)
    for at in moments(call, whole):
        folder = tmp_path / str(at)
        folder.mkdir()
        write_people(folder)
        run = Stopping(at)
        try:
            call(folder, run)
        except Cancelled:
            left = {path.name for path in folder.iterdir()} - {"people.csv", "towns.csv"}
            assert left <= {"register"} and not list(folder.glob("register/*.json"))


PAID = {
    groups: (write_people, Relation.ADD_REMOVE_RECORD, Fraction(1)),
    topdown: (write_town, Relation.CHANGE_RECORD, Fraction(2)),
}


@pytest.mark.parametrize("call", PAID)
def test_a_cancelled_run_that_pays_is_carried_on(call: Call, tmp_path: Path) -> None:
    prepare, relation, cost = PAID[call]

    def fresh(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        prepare(folder)
        Ledger.create(folder / "people.csv.ledger", Measure.EPSILON, relation, Fraction(3))
        return folder

    for at in moments(call, fresh("whole")):
        folder = fresh(str(at))
        before = {path.name for path in folder.iterdir()}
        ledger = Ledger(folder / "people.csv.ledger")
        try:
            call(folder, Stopping(at))
        except Cancelled:
            left = {path.name for path in folder.iterdir()} - before
            assert left <= {".out.topdown", "ledger-people"} and ledger.state().spent <= cost
            call(folder, Run())
        assert ledger.state().spent == cost and not ledger.state().pending
        assert verify(folder / "out").passed and not list(folder.glob(".out*"))


def test_a_child_is_handed_more_than_a_pipe_holds() -> None:
    """A child that starts slower than we look after it got only the first 64 KiB, and both waited for ever."""
    assert Run().call(len, bytes(1_000_000)) == 1_000_000
