"""Measurements: what a file holds, and that a crash never gives two draws for one debit."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from louver.errors import BudgetError, InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.distributions import DiscreteGaussian, DiscreteLaplace
from louver.privacy.ledger import Debit, Ledger
from louver.privacy.measurements import Measurements, TrueBatch, write_measurements
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KeyedNoise, Nonce, OpenDPNoise
from louver.privacy.spend import Account, Payment, measure
from privacy.workers import N_KILLS, NAMED

WORKERS = Path(__file__).parents[2] / "privacy" / "workers.py"
LOSS = Loss(Fraction(1, 10), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
COUNTS = np.array([[5, 0, 7], [1, 2, 3]])


def _dataset(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def _batches() -> list[TrueBatch]:
    first = TrueBatch(
        level="state",
        query="sex",
        nonce=Nonce(0, 0, 0),
        nodes=("RI", "CT"),
        true_counts=COUNTS,
        distribution=DiscreteLaplace(Fraction(10)),
    )
    second = TrueBatch(
        level="county",
        query="total",
        nonce=Nonce(1, 1, 0),
        nodes=("Kent",),
        true_counts=np.array([[12]]),
        distribution=DiscreteGaussian(Fraction(100)),
    )
    return [first, second]


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "data.ledger", LOSS.measure, LOSS.neighbours, Fraction(1))


def _asked(ledger: Ledger, **more: Any) -> dict[str, Any]:
    payment = Payment(loss=LOSS, request="r", purpose="p", **more)
    return {"account": Account(ledger, _dataset), "payment": payment}


def _measure(ledger: Ledger, path: Path, **more: Any) -> Measurements:
    return measure(path, _batches, **_asked(ledger, **more))


def test_a_file_holds_one_row_per_node_and_query(ledger: Ledger, tmp_path: Path) -> None:
    measurements = _measure(ledger, tmp_path / "m.parquet")
    table = pq.read_table(measurements.path)
    assert table.column_names == ["level", "node", "query", "values", "variance", "entry"]
    assert table["node"].to_pylist() == ["RI", "CT", "Kent"]
    assert table["query"].to_pylist() == ["sex", "sex", "total"]
    assert table["entry"].to_pylist() == [2, 2, 2]
    assert table["variance"].to_pylist() == pytest.approx([199.83337, 199.83337, 100.0])
    assert pq.ParquetFile(measurements.path).num_row_groups == 2
    first, second = measurements.batches()
    assert (first.level, first.query, first.nodes) == ("state", "sex", ("RI", "CT"))
    assert first.noisy_counts.shape == (2, 3) and second.noisy_counts.shape == (1, 1)
    assert not np.array_equal(first.noisy_counts, COUNTS)
    description = measurements.description()
    assert description["not_private"] is False
    assert description["loss"] == "epsilon = 1/10 (add-remove-record)"
    sealed = ledger.state().sealed[2]
    assert sealed == {"m.parquet": hashlib.sha256(measurements.path.read_bytes()).hexdigest()}


def test_seeded_measurements_are_marked_and_touch_no_ledger(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_measurements(tmp_path / name, _batches, KeyedNoise.from_seed(4))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Measurements(tmp_path / "a").description()["not_private"] is True


def test_private_noise_needs_a_debit(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="need a debit"):
        write_measurements(tmp_path / "a", _batches, KeyedNoise(bytes(32)))


def test_an_existing_place_is_refused_before_any_debit(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "m.parquet").write_text("something else")
    with pytest.raises(InputError, match="already exists") as caught:
        _measure(ledger, tmp_path / "m.parquet")
    assert caught.value.option == "out"
    assert ledger.state().spent == 0


def test_an_error_while_measuring_keeps_the_debit_for_the_next_run(ledger: Ledger, tmp_path: Path) -> None:
    class _Broken(KeyedNoise):
        def draw(self, *arguments: object) -> np.ndarray:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        _measure(ledger, tmp_path / "m.parquet", noise=_Broken(bytes(32)))
    assert not (tmp_path / "m.parquet").exists()
    (entry,) = ledger.state().pending
    _measure(ledger, tmp_path / "m.parquet")
    assert list(ledger.state().sealed) == [entry]
    assert ledger.state().spent == Fraction(1, 10)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.ledger", "m.parquet"]


def test_opendp_pays_and_cannot_resume(ledger: Ledger, tmp_path: Path) -> None:
    pytest.importorskip("opendp", reason="needs the extra opendp")
    measurements = _measure(ledger, tmp_path / "m.parquet", noise=OpenDPNoise())
    assert sum(len(b.nodes) for b in measurements.batches()) == 3
    held = ledger.reserve(LOSS, request="r", purpose="p", dataset=_dataset, is_replayable=False)
    (tmp_path / "m.parquet").unlink()
    with pytest.raises(BudgetError, match=f"entry {held.entry} was interrupted"):
        _measure(ledger, tmp_path / "m.parquet", noise=OpenDPNoise())


def _changed() -> list[TrueBatch]:
    first, second = _batches()
    return [replace(first, true_counts=COUNTS + np.eye(2, 3, dtype=int)), second]


def test_the_same_noise_never_meets_other_answers(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped before the seal, then asked again under the same name with one count changed: nothing may appear."""
    asked = _asked(ledger)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Ledger, "seal", stop)
        measure(tmp_path / "m.parquet", _batches, **asked)
    first = (tmp_path / "m.parquet").read_bytes()
    with pytest.raises(BudgetError, match="other answers"):
        measure(tmp_path / "other.parquet", _changed, **asked)
    assert not (tmp_path / "other.parquet").exists() and not list(tmp_path.glob(".*.tmp"))
    measure(tmp_path / "m.parquet", _batches, **asked)
    assert (tmp_path / "m.parquet").read_bytes() == first
    assert ledger.state().spent == LOSS.amount


def test_answers_are_pinned_before_the_first_noise(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed on the first draw, nothing is written; the key still meets no other answers."""

    def killed(*_: object) -> np.ndarray:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(KeyedNoise, "draw", killed)
        measure(tmp_path / "m.parquet", _batches, **_asked(ledger))
    with pytest.raises(BudgetError, match="other answers"):
        measure(tmp_path / "m.parquet", _changed, **_asked(ledger))
    assert [path.name for path in tmp_path.iterdir()] == ["data.ledger"]
    measure(tmp_path / "m.parquet", _batches, **_asked(ledger))


def test_one_key_never_meets_two_admitted_sources(ledger: Ledger, tmp_path: Path) -> None:
    """The first source's run was killed before its answers were pinned; the second source must not take up its key."""
    for content in (b"first", b"second"):
        ledger.admit(lambda secret, content=content: secret + content, name="data.csv")
    reserved = ledger.reserve(LOSS, request="r", purpose="p", dataset=lambda secret: secret + b"first")
    second = {"account": Account(ledger, lambda secret: secret + b"second")}
    with pytest.raises(BudgetError, match=f"entry {reserved.entry} .* other data") as caught:
        measure(tmp_path / "m.parquet", _changed, **_asked(ledger) | second)
    assert f"ledger abandon data.ledger --entry {reserved.entry}" in str(caught.value)
    first = {"account": Account(ledger, lambda secret: secret + b"first")}
    measure(tmp_path / "m.parquet", _batches, **_asked(ledger) | first)
    assert list(ledger.state().sealed) == [reserved.entry] and ledger.state().spent == LOSS.amount


def test_a_rolled_back_or_replaced_measurements_file_is_named(ledger: Ledger, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ledger"
    shutil.copy2(ledger.path, copy)
    folder = tmp_path / "measured"
    folder.mkdir()
    measure(folder / "m.parquet", _batches, **_asked(ledger))
    assert ledger.verify(folder).is_sound
    assert "rolled back" in Ledger(copy).verify(folder).problems[0]
    table = pq.read_table(folder / "m.parquet")
    pq.write_table(table.slice(0, 1), folder / "m.parquet")
    assert "is not the file that entry" in ledger.verify(folder).problems[0]


def test_a_file_that_another_run_finished_is_not_replaced(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _asked(ledger)
    path = tmp_path / "m.parquet"
    reserve = Ledger.reserve

    def late(self: Ledger, *args: Any, **kwargs: Any) -> Debit:
        monkeypatch.setattr(Ledger, "reserve", reserve)
        measure(path, _batches, **asked)
        return reserve(self, *args, **kwargs)

    monkeypatch.setattr(Ledger, "reserve", late)
    for _ in range(2):  # the second call takes up the entry that the first one left
        with pytest.raises(BudgetError, match="finished by another run"):
            measure(path, _batches, **asked)
        assert ledger.verify(tmp_path).is_sound


def test_a_resumed_run_does_not_replace_a_file_it_does_not_know(ledger: Ledger, tmp_path: Path) -> None:
    asked = _asked(ledger)
    ledger.reserve(LOSS, request="r", purpose="p", dataset=_dataset)
    (tmp_path / "m.parquet").write_text("a file of somebody else")
    with pytest.raises(BudgetError, match="finished by another run"):
        measure(tmp_path / "m.parquet", _batches, **asked)
    assert (tmp_path / "m.parquet").read_text() == "a file of somebody else"


def test_what_is_no_measurements_file(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    with pytest.raises(InputError, match="not a measurements file"):
        Measurements(tmp_path / "text")
    with pytest.raises(InputError, match="not a measurements file"):
        Measurements(tmp_path / "missing")


def _rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> Measurements:
    """A measurements file, its rows changed and its description kept."""
    write_measurements(path, lambda: _batches()[:1], KeyedNoise.from_seed(4))
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)
    return Measurements(path)


SPOILT: dict[str, Callable[[pa.Table], pa.Table]] = {
    "no values": lambda t: t.drop_columns(["values"]),
    "another type": lambda t: t.set_column(3, "values", pa.array(["a", "b"])),
    "a missing list": lambda t: t.set_column(3, "values", pa.array([[1, 2, 3], None], pa.list_(pa.int64()))),
    "a missing value": lambda t: t.set_column(
        3, "values", pa.array([[1, 2], [3, None]], pa.list_(pa.int64()))
    ),
    "ragged": lambda t: t.set_column(3, "values", pa.array([[1], [2, 3, 4]], pa.list_(pa.int64()))),
    "two queries": lambda t: t.set_column(2, "query", pa.array(["sex", "age"])),
    "no node": lambda t: t.set_column(1, "node", pa.array(["RI", None])),
    "no variance": lambda t: t.set_column(4, "variance", pa.nulls(2, pa.float64())),
}


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_spoilt_rows_are_said_to_be_damaged(tmp_path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    with pytest.raises(InputError, match=r"m\.parquet is damaged"):
        list(_rewritten(tmp_path / "m.parquet", change).batches())


def test_a_cut_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    measurements = _rewritten(tmp_path / "m.parquet", lambda table: table)
    measurements.path.unlink()
    with pytest.raises(InputError, match="is damaged"):
        list(measurements.batches())


@pytest.mark.parametrize("told", ["{", "[]", "[" * 100_000, '"text"', "\\ud800"])
def test_a_spoilt_description_is_none(tmp_path: Path, told: str) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"louver": told})
    pq.write_table(table, tmp_path / "m.parquet")
    with pytest.raises(InputError, match="not a measurements file"):
        Measurements(tmp_path / "m.parquet")


@pytest.mark.long
def test_killed_at_named_and_at_random_moments(tmp_path: Path) -> None:
    """After any kill: the noise of the reserved key, one debit, no partial file."""
    completed = subprocess.run(
        [sys.executable, str(WORKERS), "crash", str(tmp_path), "7"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
        check=True,
    )
    reports = [json.loads(line) for line in completed.stdout.splitlines()]
    assert len(reports) == N_KILLS
    allowed = {"data.ledger", "measurements.parquet", "data.ledger-wal", "data.ledger-shm", "events"}
    for report in reports:
        assert report["same_noise"] and report["same_bytes"], report
        assert (report["spent"], report["pending"], report["sealed"]) == ("1/2000", 0, 1), report
        assert set(report["left"]) <= allowed, report
    assert {r["moment"]: r["stage"] for r in reports if r["moment"] in NAMED} == NAMED
