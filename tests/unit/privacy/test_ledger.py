"""The ledger: balance, binding, chain, erased keys, many processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from louver.errors import BudgetError, Cancelled, InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Head, Ledger, Publication, ledger_next_to, request_digest
from louver.privacy.neighbours import Relation

WORKERS = Path(__file__).parents[2] / "privacy" / "workers.py"
RECORD, CHANGE, UNIT = Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD, Relation.ADD_REMOVE_UNIT


def _loss(
    amount: str | int = "1/10", measure: Measure = Measure.EPSILON, neighbours: Relation = RECORD
) -> Loss:
    return Loss(Fraction(amount), measure, neighbours)


def _dataset(secret: bytes) -> bytes:
    return hashlib.sha256(secret + b"rows").digest()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD, Fraction(1))


def test_a_debit_is_reserved_sealed_and_paid_once(ledger: Ledger) -> None:
    debit = ledger.reserve(_loss(), request="r", purpose="a table", dataset=_dataset)
    assert debit.loss == _loss() and not debit.is_resumed and len(debit.key) == 32
    assert ledger.state().remaining == Fraction(9, 10)
    assert list(ledger.state().pending) == [debit.entry]
    head = ledger.seal(debit, {"measurements.parquet": "ab"})
    assert ledger.seal(debit, {"measurements.parquet": "ab"}) == head
    state = ledger.state()
    assert state.head == head
    assert state.spent == Fraction(1, 10) and not state.pending
    assert state.sealed == {debit.entry: {"measurements.parquet": "ab"}}
    assert ledger.verify().is_sound


def test_the_same_request_resumes_with_the_same_key(ledger: Ledger) -> None:
    first = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    again = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    other = ledger.reserve(_loss(), request="s", purpose="p", dataset=_dataset)
    assert again.is_resumed and (again.key, again.entry, again.hash) == (first.key, first.entry, first.hash)
    assert other.key != first.key
    ledger.seal(first, {})
    fresh = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    assert not fresh.is_resumed and fresh.key != first.key
    assert ledger.state().spent == Fraction(3, 10)


def test_a_debit_beyond_the_grant_is_refused_with_both_amounts(ledger: Ledger) -> None:
    ledger.reserve(_loss("3/4"), request="r", purpose="p", dataset=_dataset)
    with pytest.raises(BudgetError) as caught:
        ledger.reserve(_loss("1/3"), request="s", purpose="p", dataset=_dataset)
    assert (caught.value.requested, caught.value.remaining) == (Fraction(1, 3), Fraction(1, 4))
    assert ledger.state().spent == Fraction(3, 4)
    ledger.grant(Fraction(1, 2), Measure.EPSILON)
    ledger.reserve(_loss("3/4"), request="s", purpose="p", dataset=_dataset)
    assert ledger.state().remaining == 0


def test_losses_are_converted_where_sound(tmp_path: Path) -> None:
    def paid(measure: Measure, neighbours: Relation, amount: str, largest_unit: int | None = None) -> Loss:
        folder = tmp_path / f"{measure} {neighbours}"
        folder.mkdir()
        ledger = Ledger.create(folder / "data.ledger", measure, neighbours, Fraction(1))
        asked = {"request": "r", "purpose": "p", "dataset": _dataset, "largest_unit": largest_unit}
        return ledger.reserve(_loss(amount), **asked).loss

    assert paid(Measure.EPSILON, CHANGE, "1/4").amount == Fraction(1, 2)
    assert paid(Measure.RHO, RECORD, "1/4").amount == Fraction(1, 32)
    assert paid(Measure.EPSILON, UNIT, "1/20", 5) == _loss("1/4", neighbours=UNIT)


def test_losses_are_refused_where_not_sound(ledger: Ledger) -> None:
    for loss in (_loss(1, Measure.RHO), _loss(1, neighbours=CHANGE)):
        with pytest.raises(BudgetError):
            ledger.reserve(loss, request="r", purpose="p", dataset=_dataset)
    assert ledger.state().spent == 0


def test_a_ledger_belongs_to_one_data_set(ledger: Ledger) -> None:
    ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    with pytest.raises(BudgetError, match="other data"):
        ledger.reserve(
            _loss(), request="r", purpose="p", dataset=lambda secret: hashlib.sha256(secret).digest()
        )
    assert ledger.state().spent == Fraction(1, 10)


def test_an_abandoned_debit_stays_spent(ledger: Ledger) -> None:
    debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    ledger.abandon(debit.entry)
    assert ledger.state().spent == Fraction(1, 10) and not ledger.state().pending
    assert not ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset).is_resumed
    with pytest.raises(BudgetError, match="not a reserved debit"):
        ledger.abandon(debit.entry)
    with pytest.raises(BudgetError, match="not a reserved debit"):
        ledger.seal(debit, {})


def test_exact_disclosures_are_logged(ledger: Ledger) -> None:
    ledger.disclose("state totals, exact")
    assert ledger.state().disclosures == ("state totals, exact",)


def test_the_file_is_private_and_durable(ledger: Ledger) -> None:
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    with ledger._reading() as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA secure_delete").fetchone() == (1,)


def test_a_sealed_key_is_nowhere_on_disk(ledger: Ledger) -> None:
    def on_disk(key: bytes) -> bool:
        return any(key in path.read_bytes() for path in ledger.path.parent.iterdir())

    with sqlite3.connect(ledger.path):  # a reader that keeps the write-ahead log alive
        debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
        assert on_disk(debit.key)
        ledger.seal(debit, {})
        assert not on_disk(debit.key)
    assert repr(debit.key) not in repr(debit)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE entries SET body = replace(body, '1/10', '1/99') WHERE number = 2",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 0",
        "UPDATE entries SET hash = 'x' WHERE number = 1",
        "DELETE FROM entries",
    ],
)
def test_an_edited_ledger_is_detected_and_spends_nothing(ledger: Ledger, edit: str) -> None:
    debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    ledger.seal(debit, {})
    with sqlite3.connect(ledger.path) as db:
        db.execute(edit)
    check = ledger.verify()
    assert not check.is_sound and len(check.problems) == 1
    with pytest.raises(BudgetError):
        ledger.reserve(_loss(), request="s", purpose="p", dataset=_dataset)
    with pytest.raises(BudgetError):
        ledger.grant(Fraction(1), Measure.EPSILON)


def _release(directory: Path, head: Head) -> None:
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_text(json.dumps({"ledger_head": str(head)}))


def test_a_rolled_back_ledger_is_detected_by_its_releases(ledger: Ledger, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy2(ledger.path, copy)
    debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    ledger.seal(debit, {})
    _release(tmp_path / "releases" / "one", Head(debit.entry, debit.hash))
    check = ledger.verify(tmp_path / "releases")
    assert check.is_sound and check.n_releases == 1
    shutil.copy2(copy, ledger.path)
    assert ledger.verify().is_sound
    check = ledger.verify(tmp_path / "releases")
    assert check.problems == (
        "release one records entry 2, which is missing from the ledger: it was rolled back, or it was paid by another ledger, which is not in the same folder",
    )


def test_a_rewritten_chain_is_detected_by_its_releases(tmp_path: Path) -> None:
    """An editor who recomputes every hash still contradicts what was published."""
    releases = tmp_path / "releases"
    for name, amount in (("true", "1/10"), ("forged", "1/99")):
        (tmp_path / name).mkdir()
        ledger = Ledger.create(tmp_path / name / "data.ledger", Measure.EPSILON, RECORD, Fraction(1))
        debit = ledger.reserve(_loss(amount), request="r", purpose="p", dataset=_dataset)
        ledger.seal(debit, {})
        if name == "true":
            _release(releases / "one", Head(debit.entry, debit.hash))
    assert ledger.verify(releases).problems == (
        "release one records another entry 2: this ledger's past was edited, or it was paid by another ledger, which is not in the same folder",
    )


def test_releases_of_another_ledger_are_no_problem(tmp_path: Path) -> None:
    """Before, a folder with releases of two ledgers was unsound for both of them."""
    ledgers, releases = [], tmp_path / "releases"
    for name in ("a", "b"):
        ledger = Ledger.create(tmp_path / f"{name}.ledger", Measure.EPSILON, RECORD, Fraction(1))
        data = name.encode()
        debit = ledger.reserve(
            _loss(),
            request="r",
            purpose="p",
            dataset=lambda key, data=data: hashlib.sha256(key + data).digest(),
        )
        ledger.seal(debit, {})
        _release(releases / name, Head(debit.entry, debit.hash))
        ledgers.append(ledger)
    for ledger in ledgers:
        check = ledger.verify(releases)
        assert check.is_sound and (check.n_releases, check.n_others) == (2, 1)
        assert check.to_dict()["other_releases"] == 1
    (tmp_path / "damaged.ledger").write_bytes(b"x")
    assert ledgers[0].verify(releases).is_sound
    (tmp_path / "elsewhere").mkdir()
    behind = ledgers[1].path.rename(tmp_path / "elsewhere" / "b.ledger")
    assert not ledgers[0].verify(releases).is_sound
    (tmp_path / "b.ledger").symlink_to(behind)
    (tmp_path / "loop.ledger").symlink_to(tmp_path / "loop.ledger")
    assert ledgers[0].verify(releases).n_others == 1
    _release(releases / "c", Head(9, "0" * 64))
    assert [problem[:9] for problem in ledgers[0].verify(releases).problems] == ["release c"]
    # A newer copy of the same ledger is no other ledger: this one was rolled back.
    shutil.copy2(ledgers[0].path, tmp_path / "old.ledger")
    more = ledgers[0].reserve(
        _loss(), request="s", purpose="p", dataset=lambda key: hashlib.sha256(key + b"a").digest()
    )
    ledgers[0].seal(more, {})
    _release(releases / "d", Head(more.entry, more.hash))
    rolled_back = Ledger(tmp_path / "old.ledger").verify(releases).problems
    assert any(problem.startswith("release d records entry") for problem in rolled_back)


def test_a_release_without_a_head_is_named(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    for text in ("{}", '{"ledger_head": "none"}', '{"ledger_head": 3}', "no json"):
        (tmp_path / "one" / "manifest.json").write_text(text)
        assert ledger.verify(tmp_path).problems == ("release one does not record a ledger head",)
    for text in ('{"ledger_head": null}', json.dumps({"ledger_head": "ab" * 32})):
        (tmp_path / "one" / "manifest.json").write_text(text)
        assert ledger.verify(tmp_path).is_sound


def test_keys_out_of_place_are_named(ledger: Ledger) -> None:
    debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE keys SET entry = 1")
    assert ledger.verify().problems == (
        "entry 1 has a key but is not pending",
        f"entry {debit.entry} is pending but has no key",
    )
    with pytest.raises(BudgetError, match="no valid key"):
        ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    with sqlite3.connect(ledger.path) as db:
        db.execute("UPDATE keys SET entry = ?, key = ?", (debit.entry, bytes(32)))
    with pytest.raises(BudgetError, match="no valid key"):
        ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)


def test_an_overspent_chain_is_named(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD)
    with ledger._writing() as db:
        body = {"kind": "reserve", "amount": "2", "request": "r", "dataset": "00", "key": "00"}
        ledger._append(db, body)
    assert "more was spent than was granted" in ledger.verify().problems


def test_what_is_no_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="louver ledger init none.ledger") as caught:
        Ledger(tmp_path / "none.ledger")
    assert caught.value.option == "ledger"
    text = tmp_path / "text.ledger"
    text.write_text("a" * 5000)
    text.chmod(0o600)
    with pytest.raises(InputError, match="not a ledger"):
        Ledger(text).state()
    made = Ledger.create(tmp_path / "made.ledger", Measure.RHO, UNIT)
    with pytest.raises(InputError, match="already exists"):
        Ledger.create(made.path, Measure.RHO, UNIT)
    with pytest.raises(InputError, match="cannot be created"):
        Ledger.create(tmp_path / "nowhere" / "x.ledger", Measure.RHO, UNIT)
    made.path.chmod(0o644)
    with pytest.raises(InputError, match="0600"):
        Ledger(made.path)


def test_a_busy_ledger_is_said_to_be(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("louver.privacy.ledger_file.BUSY_SECONDS", 0.01)
    with ledger._writing(), pytest.raises(InputError, match="is busy"):
        ledger.grant(Fraction(1), Measure.EPSILON)


def test_grants_must_be_positive(ledger: Ledger) -> None:
    with pytest.raises(InputError) as caught:
        ledger.grant(Fraction(-1), Measure.EPSILON)
    assert caught.value.option == "grant"
    with pytest.raises(BudgetError, match="counts in epsilon"):
        ledger.grant(Fraction(1), Measure.RHO)
    assert ledger.state().granted == 1


def test_losses_that_are_not_positive_cannot_be_spent(ledger: Ledger, tmp_path: Path) -> None:
    for amount in (0, -5):
        with pytest.raises(BudgetError, match="positive"):
            _loss(amount)
    with pytest.raises(BudgetError, match="at least one record"):
        ledger.reserve(_loss(neighbours=UNIT), request="r", purpose="p", dataset=_dataset, largest_unit=-1)
    with pytest.raises(InputError):
        Ledger.create(tmp_path / "other.ledger", Measure.EPSILON, RECORD, Fraction(-3))
    assert not (tmp_path / "other.ledger").exists()
    assert ledger.state().spent == 0


def test_a_chain_with_an_entry_nobody_writes_is_refused(ledger: Ledger) -> None:
    with ledger._writing() as db:
        ledger._append(db, {"kind": "reserve", "amount": "-5", "dataset": "x"})
    assert "was not written by any version of louver" in ledger.verify().problems[0]


@pytest.mark.parametrize("change", [{"loss": _loss("9/10")}, {"largest_unit": 3}, {"is_replayable": False}])
def test_another_loss_or_other_noise_does_not_resume(ledger: Ledger, change: dict[str, object]) -> None:
    asked = {"loss": _loss(), "request": "r", "purpose": "p", "dataset": _dataset}
    ledger.reserve(**asked)
    with pytest.raises(BudgetError, match="reserved for another loss or other noise"):
        ledger.reserve(**asked | change)
    assert ledger.state().spent == Fraction(1, 10)


def test_noise_that_cannot_be_replayed_is_sealed_but_never_drawn_again(ledger: Ledger) -> None:
    asked = {"loss": _loss(), "request": "r", "purpose": "p", "dataset": _dataset}
    first = ledger.reserve(**asked, is_replayable=False)
    first.check_drawable()
    with pytest.raises(BudgetError, match="cannot be drawn again"):
        ledger.reserve(**asked)
    again = ledger.reserve(**asked, is_replayable=False)
    assert again.is_resumed and not again.is_replayable
    with pytest.raises(BudgetError, match=f"abandon --entry {first.entry}"):
        again.check_drawable()
    ledger.seal(again, {})
    assert ledger.state().spent == Fraction(1, 10)


def test_what_cannot_be_afforded_is_refused_without_data(ledger: Ledger) -> None:
    ledger.check_affordable(_loss("1"))
    with pytest.raises(BudgetError) as caught:
        ledger.check_affordable(_loss("11/10"))
    assert (caught.value.requested, caught.value.remaining) == (Fraction(11, 10), Fraction(1))
    with pytest.raises(BudgetError, match="implies none"):
        ledger.check_affordable(_loss(neighbours=CHANGE))
    ledger.reserve(_loss("1"), request="r", purpose="p", dataset=_dataset)
    ledger.check_affordable(_loss("1"), request="r")
    ledger.check_affordable(_loss("1"))  # may be the pending one
    for asked in ({"loss": _loss("1"), "request": "s"}, {"loss": _loss()}):
        with pytest.raises(BudgetError):
            ledger.check_affordable(**asked)


def test_a_refusal_that_depends_on_the_data_is_logged_before_it_is_told(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="row 7"), ledger.logging_refusals("groups: reading"):
        raise InputError("column x has no value on row 7.")
    with pytest.raises(Cancelled), ledger.logging_refusals("groups: reading"):
        raise Cancelled
    assert ledger.state().refusals == ("groups: reading",)
    assert "row 7" not in json.dumps(ledger.state().to_dict())
    with sqlite3.connect(ledger.path) as db:
        db.execute("DELETE FROM entries")
    with pytest.raises(BudgetError, match="no entries"), ledger.logging_refusals("groups: reading"):
        raise InputError("column x has no value on row 7.")


def test_what_is_published_exactly_is_logged_with_its_debit_once(ledger: Ledger) -> None:
    exact = Publication(what="ward totals", invariants=({"level": "ward"},))
    asked = {"loss": _loss(), "request": "r", "purpose": "p", "dataset": _dataset, "publishes": [exact]}
    ledger.reserve(**asked)
    ledger.reserve(**asked)
    assert ledger.state().disclosures == ("ward totals",)
    assert ledger.published_invariants() == ({"level": "ward"},)

    def refuse(published: object) -> None:
        assert published == ({"level": "ward"},)
        raise InputError("not beside these.")

    with pytest.raises(InputError, match="not beside these"):
        ledger.reserve(**asked | {"request": "s", "composed": refuse})
    assert ledger.state().spent == Fraction(1, 10) and len(ledger.state().disclosures) == 1


def test_a_disclosure_of_other_data_is_refused(ledger: Ledger) -> None:
    ledger.disclose("a k-anonymous file", dataset=_dataset, invariants=[{"a": 1}])
    with pytest.raises(BudgetError, match="other data"):
        ledger.disclose("another", dataset=lambda secret: bytes(32))
    with pytest.raises(BudgetError, match="other data"):
        ledger.reserve(_loss(), request="r", purpose="p", dataset=lambda secret: bytes(32))
    assert ledger.state().invariants == ({"a": 1},)


def test_releases_of_debits_that_were_not_sealed_are_named(ledger: Ledger, tmp_path: Path) -> None:
    for name in ("pending", "abandoned"):
        debit = ledger.reserve(_loss(), request=name, purpose="p", dataset=_dataset)
        _release(tmp_path / "releases" / name, Head(debit.entry, debit.hash))
    ledger.abandon(debit.entry)
    problems = ledger.verify(tmp_path / "releases").problems
    assert len(problems) == 2 and all("not sealed" in problem for problem in problems)


def test_a_ledger_is_made_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_append_text", stop)
        with pytest.raises(KeyboardInterrupt):
            Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD)
    assert not list(tmp_path.iterdir())
    assert Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD).verify().is_sound


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("database or disk is full", "the disk is full"),
        ("attempt to write a readonly database", "permissions"),
    ],
)
def test_a_full_or_read_only_disk_is_not_called_damage(ledger: Ledger, told: str, says: str) -> None:
    with pytest.raises(InputError, match=says), ledger._reading():
        raise sqlite3.OperationalError(told)


def test_a_disk_that_fills_up_while_writing_is_told(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="the disk is full"), ledger._writing() as db:
        db.execute("ROLLBACK")  # as SQLite does by itself
        raise sqlite3.OperationalError("database or disk is full")


def test_a_file_system_without_a_write_ahead_log_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(sqlite3.Connection):
        def execute(self, sql: str, *more: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("= WAL", "= DELETE"), *more)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Stubborn))
    with pytest.raises(InputError, match="move it to a local disk"):
        ledger.state()


def test_names() -> None:
    assert ledger_next_to(Path("a/people.csv.gz")) == Path("a/people.csv.gz.ledger")
    assert request_digest({"a": 1, "b": 2}) == request_digest({"b": 2, "a": 1}) != request_digest({"a": 1})


def _run(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKERS), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )


@pytest.mark.long
def test_debits_from_four_processes_never_overspend(tmp_path: Path) -> None:
    """200 debits of 1/2000 are asked for, 2/25 is granted: exactly 160 succeed."""
    ledger = Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD, Fraction(2, 25))
    processes = [_run("debit", ledger.path, 50) for _ in range(4)]
    granted = [int(process.communicate()[0]) for process in processes]
    assert sum(granted) == 160
    state = ledger.state()
    assert state.spent == state.granted == Fraction(2, 25)
    assert ledger.verify().is_sound


@pytest.mark.long
def test_no_key_and_nonce_twice_after_a_fork(ledger: Ledger) -> None:
    output, _ = _run("forked", ledger.path, 4).communicate()
    pairs = output.split("\n")[:-1]
    assert len(pairs) == 12
    assert len(set(pairs)) == 12
    assert len({pair.split()[0] for pair in pairs}) == 4


def test_an_erased_key_that_another_reader_keeps_in_the_log_is_told(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader with a snapshot from before the seal holds the write-ahead log, and the key in it."""
    monkeypatch.setattr("louver.privacy.ledger_file.BUSY_SECONDS", 0.05)
    debit = ledger.reserve(_loss(), request="r", purpose="p", dataset=_dataset)
    log = ledger.path.with_name(ledger.path.name + "-wal")
    reader = sqlite3.connect(ledger.path, isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        ledger.seal(debit, {})
        assert log.stat().st_size > 0
        check = ledger.verify()
        assert check.problems == (
            "the write-ahead log may still contain erased keys while another program has the ledger open",
        )
        reader.execute("COMMIT")
        assert ledger.verify().is_sound and log.stat().st_size == 0
    finally:
        reader.close()
    assert not any(debit.key in path.read_bytes() for path in ledger.path.parent.iterdir())
