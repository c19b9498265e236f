"""The ledger commands."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from fractions import Fraction
from pathlib import Path

import pytest

from cli.command import Runner
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation


def test_a_ledger_from_init_to_verify(call_louver: Runner, tmp_path: Path) -> None:
    file = tmp_path / "people.ledger"
    made = call_louver("ledger", "init", file, "--epsilon", "0.5", "--neighbours", "change-record", "--json")
    assert made.code == 0
    assert json.loads(made.out)["granted"] == "1/2"
    assert file.stat().st_mode & 0o777 == 0o600
    loss = Loss(Fraction(1, 8), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    debit = Ledger(file).reserve(
        loss, request="r", purpose="a table", dataset=lambda secret: hashlib.sha256(secret).digest()
    )
    shown = call_louver("ledger", "show", file)
    assert "epsilon 1/4 left of 1/2 granted (change-record)" in shown.out
    assert f"entry {debit.entry} is pending: 1/4 for a table" in shown.out
    assert call_louver("ledger", "abandon", file, "--entry", str(debit.entry)).code == 0
    granted = call_louver("ledger", "grant", file, "--epsilon", "1/4", "--json")
    assert json.loads(granted.out)["remaining"] == "1/2"
    assert json.loads(granted.out)["pending"] == []
    assert call_louver("ledger", "verify", file).code == 0
    with sqlite3.connect(file) as db:
        db.execute("UPDATE entries SET body = replace(body, '1/4', '1/9')")
    verified = call_louver("ledger", "verify", file, "--json")
    assert verified.code == 1
    assert json.loads(verified.out)["sound"] is False


def test_bare_ledger_is_a_question(call_louver: Runner) -> None:
    bare, asked = call_louver("ledger"), call_louver("ledger", "--help")
    assert bare == asked
    assert (bare.code, bare.err) == (0, "")
    assert "abandon" in bare.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["spend"], "choose init, admit, succeed, grant, show, abandon or verify"),
        (["show"], "argument FILE is missing"),
        (["abandon", "x.ledger"], "--entry is missing"),
        (["abandon", "missing.ledger", "--entry", "1"], "there is no ledger"),
        (["abandon", "x.ledger", "--entry", "one"], "--entry must be"),
        (["init", "x.ledger"], "--epsilon or as --rho"),
        (["init", "x.ledger", "--epsilon", "1", "--rho", "1"], "--epsilon or as --rho"),
        (["init", "x.ledger", "--epsilon", "much"], "--epsilon is not a number"),
        (["init", "x.ledger", "--rho", "-1"], "--rho is not a number"),
        (["init", "x.ledger", "--epsilon", "1", "--neighbours", "friends"], "--neighbours must be one of"),
        (["init", "nowhere/x.ledger", "--epsilon", "1"], "cannot be created"),
        (["init", "ledger.file", "--epsilon", "1"], "call it ledger.file.ledger"),
        (["succeed", "missing.ledger", "new"], "call it new.ledger"),
        (["show", "missing.ledger"], "louver ledger init missing.ledger"),
        (["grant", "missing.ledger", "--epsilon", "1"], "there is no ledger"),
        (["verify", "missing.ledger"], "there is no ledger"),
        (["admit", "x.ledger"], "argument DATA is missing"),
        (["admit", "missing.ledger", "x.csv"], "there is no ledger"),
        (["succeed", "x.ledger"], "argument NEW is missing"),
        (["succeed", "missing.ledger", "new.ledger"], "there is no ledger"),
        (["init", "x.ledger", "--epsilon", "1e99999999"], "--epsilon is not a number"),
    ],
)
def test_bad_input_is_one_sentence(
    call_louver: Runner, arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call_louver("ledger", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert told in result.err
    assert result.err.startswith("louver ledger: ") and result.err.count("\n") == 1
    assert "friends" not in result.err and "much" not in result.err


def test_a_population_from_its_first_source_to_its_successor(call_louver: Runner, tmp_path: Path) -> None:
    file, people = tmp_path / "town.ledger", tmp_path / "people.csv"
    people.write_text("name,ward\nAnn,1\n")
    made = call_louver("ledger", "init", file, "--epsilon", "1", "--population", "the town")
    assert made.code == 0 and "population: the town" in made.out
    admitted = call_louver("ledger", "admit", file, people)
    assert "pays for: people.csv" in admitted.out
    Ledger(file).disclose("ward totals")
    Ledger(file).disclose("a file of 3 records, k-anonymous with k = 3")
    Ledger(file).log_refusal("topdown: reading")
    shown = call_louver("ledger", "show", file)
    lines = [line.split("  ", 2)[-1] for line in shown.out.split("\n")]
    for ending in ("granted", "admitted: people.csv", "disclosed exactly: ward totals", "topdown: reading"):
        assert any(line.endswith(ending) for line in lines), shown.out
    assert re.search(r"anonymize +disclosed exactly: a file of 3", shown.out)
    assert re.search(r"topdown +refused because of", shown.out) and re.search(
        r"ledger +1  granted", shown.out
    )
    succeeded = call_louver("ledger", "succeed", file, tmp_path / "next.ledger", "--json")
    told = json.loads(succeeded.out)
    assert (told["predecessor"], told["population"], told["disclosures"]) == (
        "town.ledger",
        "the town",
        ["ward totals", "a file of 3 records, k-anonymous with k = 3"],
    )
    assert "disclosed exactly: ward totals" in call_louver("ledger", "show", tmp_path / "next.ledger").out
    assert "succeeded by next.ledger" in call_louver("ledger", "show", file).out
    refused = call_louver("ledger", "grant", file, "--epsilon", "1")
    assert refused.code == 2 and "was succeeded by next.ledger" in refused.err


def test_a_second_ledger_for_a_copy_is_refused(call_louver: Runner, tmp_path: Path) -> None:
    for name, end in (("people.csv", "\n"), ("copy.csv", "\r\n")):
        (tmp_path / name).write_bytes(f"name,ward{end}Ann,1{end}".encode())
    assert call_louver("ledger", "init", tmp_path / "people.csv.ledger", "--epsilon", "1").code == 0
    second = call_louver("ledger", "init", tmp_path / "copy.csv.ledger", "--epsilon", "1")
    assert second.code == 2 and "louver ledger admit people.csv.ledger copy.csv" in second.err
    assert not (tmp_path / "copy.csv.ledger").exists()


def test_a_reshaped_copy_is_admitted_and_other_people_take_a_word(
    call_louver: Runner, tmp_path: Path
) -> None:
    rows = [f"{i * 7919 % 10007},w{i % 7}" for i in range(200)]
    people, copy = tmp_path / "people.csv", tmp_path / "copy.csv"
    people.write_text("\n".join(["id,ward", *rows]) + "\n")
    copy.write_text(
        "\n".join(["id,ward,more", *(f"{row},{i % 3}" for i, row in enumerate(sorted(rows)))]) + "\n"
    )
    first = tmp_path / "people.csv.ledger"
    assert call_louver("ledger", "init", first, "--epsilon", "1").code == 0
    again = call_louver("ledger", "init", tmp_path / "copy.csv.ledger", "--epsilon", "1")
    assert again.code == 2 and "`louver ledger admit people.csv.ledger copy.csv`" in again.err
    assert not (tmp_path / "copy.csv.ledger").exists()
    assert call_louver("ledger", "admit", first, people).code == 0
    told = call_louver("ledger", "admit", first, copy).out
    assert "known by the people in it: the people of copy.csv are those of earlier sources" in told
    others = tmp_path / "others.csv"
    others.write_text("id,ward\n" + "".join(f"{20000 + i},w{i % 7}\n" for i in range(200)))
    second = tmp_path / "others.csv.ledger"
    refused = call_louver("ledger", "init", second, "--epsilon", "1")
    assert refused.code == 2 and "--new-population" in refused.err
    made = call_louver("ledger", "init", second, "--epsilon", "1", "--new-population")
    assert made.code == 0 and "pays for: others.csv" in made.out
    nowhere = call_louver("ledger", "init", tmp_path / "x.ledger", "--epsilon", "1", "--new-population")
    assert nowhere.code == 2 and "needs a data file next to x.ledger" in nowhere.err
