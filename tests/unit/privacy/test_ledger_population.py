"""A budget follows the people: several sources of one ledger, and ledgers that carry on others."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from louver.data.people import fingerprint
from louver.errors import BudgetError, InputError
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import KeyedHash, Ledger, ledgers_in
from louver.privacy.ledger_finding import admit_source, check_no_second, ledger_of
from louver.privacy.neighbours import Relation

WORKERS = Path(__file__).parents[2] / "privacy" / "workers.py"
RECORD = Relation.ADD_REMOVE_RECORD
LOSS = Loss(Fraction(1, 10), Measure.EPSILON, RECORD)
PEOPLE = "name,ward\nAnn,1\nBob,2\n"


def _data(content: bytes) -> KeyedHash:
    return lambda secret: hashlib.sha256(secret + content).digest()


def _pay(ledger: Ledger, dataset: KeyedHash, request: str = "r") -> None:
    ledger.seal(ledger.reserve(LOSS, request=request, purpose="a table", dataset=dataset), {})


@pytest.fixture
def shares_database() -> None:
    """Every source has a database of its own here."""


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.csv.ledger", Measure.EPSILON, RECORD, Fraction(1))


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def test_a_population_pays_for_what_was_admitted(tmp_path: Path) -> None:
    town = Ledger.create(
        tmp_path / "town.ledger", Measure.EPSILON, RECORD, Fraction(1), population="the town"
    )
    with pytest.raises(BudgetError, match="ledger admit town.ledger DATA"):
        _pay(town, _data(b"a"))
    town.admit(_data(b"a"), name="a.csv")
    town.admit(_data(b"b"), name="town.duckdb", table="persons")
    before = town.state().head
    assert town.admit(_data(b"b"), name="town.duckdb", table="persons").head == before
    _pay(town, _data(b"a"), "a")
    _pay(town, _data(b"b"), "b")
    state = town.state()
    assert (state.population, state.spent) == ("the town", Fraction(1, 5))
    assert [source.words for source in state.sources.values()] == ["a.csv", "town.duckdb, table persons"]
    assert not any(len(text) == 64 for text in state.to_dict()["sources"])


def test_a_copy_is_admitted_to_a_ledger_that_was_bound_by_a_debit(ledger: Ledger) -> None:
    _pay(ledger, _data(b"a"))
    with pytest.raises(BudgetError, match="has not admitted these data"):
        _pay(ledger, _data(b"a\r"), "s")
    ledger.admit(_data(b"a\r"), name="copy.csv")
    _pay(ledger, _data(b"a\r"), "s")
    assert ledger.state().spent == Fraction(1, 5)


def test_a_second_ledger_beside_the_first_gets_no_fresh_budget(ledger: Ledger, tmp_path: Path) -> None:
    _pay(ledger, _data(b"a"))
    second = Ledger.create(tmp_path / "b.ledger", Measure.EPSILON, RECORD, Fraction(1))
    for spend in (
        lambda: _pay(second, _data(b"a")),
        lambda: second.admit(_data(b"a"), name="a.csv"),
        lambda: second.disclose("exact", dataset=_data(b"a")),
    ):
        with pytest.raises(BudgetError, match=r"people.csv.ledger in the same folder pays"):
            spend()
    _pay(second, _data(b"other people"))
    assert [one.name for one in ledgers_in(tmp_path)] == ["b.ledger", "people.csv.ledger"]


def test_init_beside_a_copy_is_refused(ledger: Ledger, people: Path) -> None:
    copy = people.with_name("copy.csv")
    copy.write_bytes(PEOPLE.replace("\n", "\r\n").encode())
    with pytest.raises(BudgetError, match="ledger admit people.csv.ledger copy.csv"):
        check_no_second(people.with_name("copy.csv.ledger"))
    other = people.with_name("other.csv")
    other.write_text("name,ward\nEve,1\n")
    check_no_second(people.with_name("nothing.ledger"))
    admit_source(ledger, str(other))
    with pytest.raises(InputError, match="people.csv.ledger pays for other.csv already"):
        check_no_second(people.with_name("other.csv.ledger"))
    (people.with_name("odd.duckdb")).write_bytes(b"no database")
    with pytest.raises(BudgetError, match="it is not known whether people of odd.duckdb are among those"):
        check_no_second(people.with_name("odd.duckdb.ledger"))


def test_the_ledger_that_admitted_a_file_is_found(ledger: Ledger, people: Path) -> None:
    assert ledger_of(people) == ledger.path
    copy = people.with_name("copy.csv")
    copy.write_bytes(PEOPLE.replace("\n", "\r\n").encode())
    assert ledger_of(copy) is None
    admit_source(ledger, str(copy))
    assert ledger_of(str(copy)) == ledger.path
    assert ledger_of("postgresql://host/town") is None and ledger_of(people.with_name("none.csv")) is None
    (copy.parent / "damaged.ledger").write_bytes(b"x")
    assert ledger_of(copy) == ledger.path
    second = Ledger.create(people.with_name("b.ledger"), Measure.EPSILON, RECORD)
    _admit_anyway(second, copy)
    with pytest.raises(InputError, match=r"admitted to b.ledger and to people.csv.ledger") as caught:
        ledger_of(copy)
    assert caught.value.option == "--ledger"


def _admit_anyway(ledger: Ledger, data: Path) -> None:
    digest = ledger._hashed(fingerprint(data))
    with ledger._writing() as db:
        ledger._append(db, {"kind": "admit", "dataset": digest, "name": "x", "table": None, "query": None})


def test_tables_of_a_database_are_admitted_one_by_one(ledger: Ledger, tmp_path: Path) -> None:
    path = str(tmp_path / "town.duckdb")
    with duckdb.connect(path) as db:
        db.execute("CREATE TABLE persons AS SELECT 1 AS a; CREATE TABLE homes AS SELECT 2 AS b")
    admit_source(ledger, path, table="persons")
    assert ledger.has_admitted(fingerprint(path, table="persons"))
    assert not ledger.has_admitted(fingerprint(path, table="homes"))
    assert ledger_of(path, table="persons") == ledger.path and ledger_of(path, table="homes") is None
    with pytest.raises(InputError, match="does not exist"):
        admit_source(ledger, str(tmp_path / "none.csv"))


def test_the_address_of_a_database_is_kept_without_its_password(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("louver.privacy.ledger_finding.fingerprint", lambda *_, **__: _data(b"a"))
    state = admit_source(ledger, "postgresql://me:secret@host/town", query="SELECT 1")
    assert [one.words for one in state.sources.values()] == ["database town, query SELECT 1"]


def test_a_successor_starts_with_what_was_spent(ledger: Ledger, tmp_path: Path) -> None:
    ledger.reserve(
        LOSS,
        request="r",
        purpose="a table",
        dataset=_data(b"2025"),
    )
    with pytest.raises(BudgetError, match="entry 2 of the ledger people.csv.ledger is pending"):
        ledger.succeed(tmp_path / "new.ledger")
    ledger.abandon(2)
    ledger.disclose("ward totals", invariants=[{"level": "ward"}])
    ledger.log_refusal("topdown: reading")
    new = ledger.succeed(tmp_path / "new.ledger")
    state, old = new.state(), ledger.state()
    assert (state.granted, state.spent, state.measure, state.neighbours) == (
        1,
        LOSS.amount,
        LOSS.measure,
        RECORD,
    )
    assert (state.disclosures, state.invariants) == (("ward totals",), ({"level": "ward"},))
    assert [one.what for one in state.carried] == ["ward totals"] and state.refusals == ("topdown: reading",)
    assert (state.predecessor, old.successor) == ("people.csv.ledger", "new.ledger")
    for spend in (
        lambda: _pay(ledger, _data(b"2025")),
        lambda: ledger.grant(Fraction(1), Measure.EPSILON),
        lambda: ledger.admit(_data(b"x"), name="x"),
        lambda: ledger.disclose("x"),
        lambda: ledger.check_affordable(LOSS),
    ):
        with pytest.raises(BudgetError, match=r"was succeeded by new\.ledger"):
            spend()
    _pay(new, _data(b"2026"))
    _pay(new, _data(b"2025"), "the old data are the same people's")
    with pytest.raises(BudgetError, match="has not admitted"):
        _pay(new, _data(b"others"))
    assert new.state().spent == 3 * LOSS.amount
    third = new.succeed(tmp_path / "third.ledger")
    assert (third.state().spent, third.state().disclosures) == (3 * LOSS.amount, ("ward totals",))
    assert all(one.verify().is_sound for one in (ledger, new, third))


def test_succeeding_again_changes_nothing_and_another_name_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    new = ledger.succeed(tmp_path / "new.ledger")
    head = ledger.state().head
    assert ledger.succeed(new.path).state().head == new.state().head and ledger.state().head == head
    with pytest.raises(BudgetError, match=r"was already succeeded by new\.ledger"):
        ledger.succeed(tmp_path / "newer.ledger")
    new.path.rename(tmp_path / "moved")
    with pytest.raises(BudgetError, match="restore that file"):
        ledger.succeed(new.path)
    Ledger.create(new.path, Measure.EPSILON, RECORD)
    with pytest.raises(BudgetError, match="is not the successor of"):
        ledger.succeed(new.path)


def test_a_place_that_cannot_be_used_closes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be created"):
        ledger.succeed(tmp_path / "nowhere" / "new.ledger")
    (tmp_path / "new.ledger").write_text("something else")
    with pytest.raises(InputError, match="already exists"):
        ledger.succeed(tmp_path / "new.ledger")
    assert ledger.state().successor is None


def test_the_chain_covers_both_ledgers(ledger: Ledger, tmp_path: Path) -> None:
    _pay(ledger, _data(b"a"))
    forged = Ledger.create(tmp_path / "forged", Measure.EPSILON, RECORD, Fraction(1))
    new = ledger.succeed(tmp_path / "new.ledger")
    assert new.verify().is_sound
    ledger.path.rename(tmp_path / "kept")
    assert new.verify().is_sound  # what is not there cannot be doubted
    forged.path.rename(ledger.path)
    assert new.verify().problems == ("people.csv.ledger was not closed for its successor",)
    ledger.path.write_bytes(b"x")
    assert "damaged" in new.verify().problems[0]


def _run(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WORKERS), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)


@pytest.mark.long
def test_debits_and_successors_race_and_one_successor_carries_all(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD, Fraction(1))
    debits = [_run("debit", ledger.path, 20) for _ in range(2)]
    while ledger.state().spent == 0:
        time.sleep(0.01)
    successors = [_run("succeed", ledger.path, number) for number in (1, 1, 2)]
    told = [process.communicate(timeout=3600)[0].strip() for process in successors]
    paid = sum(int(process.communicate(timeout=3600)[0]) for process in debits)
    while "done" not in told:  # refused while a debit was pending
        told = [_run("succeed", ledger.path, 1).communicate(timeout=3600)[0].strip()]
    (new,) = [one for one in ledgers_in(tmp_path) if one.name.startswith("NEW")]
    assert new.name == ledger.state().successor
    assert new.state().spent == ledger.state().spent >= Fraction(paid, 2000)
    assert new.verify().is_sound and ledger.verify().is_sound


def test_a_handover_killed_at_any_event_is_finished_by_the_next_call(tmp_path: Path) -> None:
    output, _ = _run("handover", tmp_path, 97).communicate(timeout=3600)
    assert output.split("\n")[-2].endswith(" kills") and output.count("\n") == 1, output
