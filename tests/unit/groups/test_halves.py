"""Measuring and estimating apart, and stopping in between: the folder of measurements, and `Run`."""

from __future__ import annotations

import shutil
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import louver as lv
from louver.errors import Cancelled, InputError, SolverError
from louver.groups import estimate, groups, measure
from louver.optim.highs import interruptible_milp
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation
from louver.release.verify import verify
from louver.run import Run


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"h{home},{'GA' if home % 2 else 'NY'}" for home in range(20) for _ in range(1 + home % 3)]
    path.write_text("home,state\n" + "\n".join(rows) + "\n")
    (tmp_path / "regions.csv").write_text("state\nGA\nNY\n")
    return path


@pytest.fixture
def ledger(people: Path) -> Ledger:
    path = people.with_name("people.csv.ledger")
    return Ledger.create(path, Measure.EPSILON, Relation.ADD_REMOVE_RECORD, Fraction(3))


def _options(people: Path, **more: Any) -> dict[str, Any]:
    given = {"unit": "home", "regions": ["state"], "max_size": 4, "epsilon": 1}
    return {**given, "domain": str(people.with_name("regions.csv")), **more}


@pytest.mark.parametrize("total", ["noisy", "public"])
def test_two_halves_make_a_release_without_the_data(
    people: Path, ledger: Ledger, tmp_path: Path, total: str
) -> None:
    given = _options(people, total=total)
    measured = lv.groups.measure(people, **given, out=tmp_path / "measured")
    assert measured.head.entry in ledger.state().sealed and ledger.state().spent == 1
    assert (tmp_path / "measured" / "invariants.parquet").exists() == (total == "public")
    measure(people, **given, out=tmp_path / "measured", resume=True)
    assert ledger.state().spent == 1
    people.unlink()
    released = lv.groups.estimate(measurements=measured.folder, **given, out=tmp_path / "release")
    assert released.head == measured.head and released.is_private
    assert verify(tmp_path / "release").passed and ledger.verify(tmp_path / "release").is_sound
    again = estimate(measurements=measured.folder, **given)
    assert np.array_equal(again.counts, released.counts)


def test_both_ways_give_the_same_table(
    people: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one key, and so the same noise."""
    monkeypatch.setattr("louver.privacy.ledger.secrets.token_bytes", lambda n: bytes(n))
    whole = groups(people, **_options(people), out=tmp_path / "whole")
    folder = measure(people, **_options(people), out=tmp_path / "measured").folder
    estimate(measurements=folder, **_options(people), out=tmp_path / "estimated")
    assert np.array_equal(whole.counts, estimate(measurements=folder, **_options(people)).counts)
    a, b = (pq.read_table(tmp_path / name / "data" / "groups.parquet") for name in ("whole", "estimated"))
    assert a == b


def test_bad_folders_and_options(people: Path, ledger: Ledger, tmp_path: Path) -> None:
    given = _options(people)
    spec = {"groups": {"domain_from_data": True}}
    with pytest.raises(InputError, match="--domain is missing: measuring"):
        measure(people, spec=spec, **{**given, "domain": None}, out=tmp_path / "m")
    with pytest.raises(InputError, match="--seed: measurements must be paid for"):
        measure(people, spec={"groups": {"seed": 1}}, **given, out=tmp_path / "m")
    with pytest.raises(InputError, match="has no measurements"):
        estimate(measurements=tmp_path, **given)
    folder = measure(people, **given, out=tmp_path / "m").folder
    for more in ({"max_size": 5}, {"epsilon": 2}, {"across": "split"}):
        with pytest.raises(InputError, match="not measured by this spec or with these options"):
            estimate(measurements=folder, **_options(people, **more))
    with pytest.raises(InputError, match="already exists"):
        measure(people, **given, out=folder)
    with pytest.raises(InputError, match="another spec or other options"):
        measure(people, **_options(people, max_size=5), out=folder, resume=True)
    shutil.rmtree(folder)
    assert ledger.state().spent == 1


class _At:
    """A run that cancels itself at the n-th question."""

    def __init__(self, n: int) -> None:
        self.run, self.left = Run(), n
        self.run.check = self._check  # type: ignore[method-assign]

    def _check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Cancelled


def test_cancelled_anywhere_nothing_is_left_and_the_next_run_pays_nothing_more(
    people: Path, ledger: Ledger, tmp_path: Path
) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    for moment in (0, 1, 2, 5, 12):  # any run asks more often than that, whatever its noise
        with pytest.raises(Cancelled):
            groups(people, **_options(people), out=tmp_path / "release", run=_At(moment).run)
        assert {path.name for path in tmp_path.iterdir()} == before
        assert len(ledger.state().pending) <= 1 and ledger.state().spent <= 1
    groups(people, **_options(people), out=tmp_path / "release")
    assert ledger.state().spent == 1 and not ledger.state().pending and verify(tmp_path / "release").passed


def test_a_solver_without_callback_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child sleeps instead of solving; the call ends all the same, and so does the child."""
    monkeypatch.setattr("louver.run.CHILD", "import time; time.sleep(600)")
    run = Run()
    threading.Timer(0.3, run.cancel).start()
    with pytest.raises(Cancelled):
        interruptible_milp(run, c=[1.0])
    monkeypatch.setattr("louver.run.CHILD", "raise SystemExit(3)")
    with pytest.raises(SolverError, match="ended early"):
        interruptible_milp(Run(), c=[1.0])


@pytest.mark.long
def test_integer_programs_in_a_child_are_the_same(people: Path) -> None:
    given = _options(people, mechanism="M_H", seed=1, max_size=2, total="public")
    assert np.array_equal(groups(people, **given).counts, groups(people, **given, run=Run()).counts)


def test_progress_is_told(people: Path) -> None:
    seen: list[str] = []
    groups(people, **_options(people, seed=1), run=Run(lambda stage, done, total: seen.append(stage)))
    assert "simulating the release" in seen
