"""The ledger commands, run as a program."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation


def _louver(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if "LOUVER_SITE" in environment:
        environment["PYTHONPATH"] = environment["LOUVER_SITE"]
    return subprocess.run(
        [sys.executable, "-m", "louver", "ledger", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )


def test_a_ledger_from_init_to_verify(tmp_path: Path) -> None:
    file = tmp_path / "people.ledger"
    made = _louver("init", file, "--epsilon", "0.5", "--neighbours", "change-record", "--json")
    assert made.returncode == 0
    assert json.loads(made.stdout)["granted"] == "1/2"
    assert file.stat().st_mode & 0o777 == 0o600
    loss = Loss(Fraction(1, 8), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    debit = Ledger(file).reserve(
        loss, request="r", purpose="a table", dataset=lambda secret: hashlib.sha256(secret).digest()
    )
    shown = _louver("show", file)
    assert "epsilon 1/4 left of 1/2 granted (change-record)" in shown.stdout
    assert f"entry {debit.entry} is pending: 1/4 for a table" in shown.stdout
    assert _louver("abandon", file, "--entry", debit.entry).returncode == 0
    granted = _louver("grant", file, "--epsilon", "1/4", "--json")
    assert json.loads(granted.stdout)["remaining"] == "1/2"
    assert json.loads(granted.stdout)["pending"] == []
    assert _louver("verify", file).returncode == 0
    with sqlite3.connect(file) as db:
        db.execute("UPDATE entries SET body = replace(body, '1/4', '1/9')")
    verified = _louver("verify", file, "--json")
    assert verified.returncode == 1
    assert json.loads(verified.stdout)["sound"] is False


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["init", "x.ledger"], "--epsilon or as --rho"),
        (["init", "x.ledger", "--epsilon", "1", "--rho", "1"], "--epsilon or as --rho"),
        (["init", "x.ledger", "--epsilon", "much"], "--epsilon is not a number"),
        (["init", "x.ledger", "--rho", "-1"], "--rho is not a number"),
        (["init", "x.ledger", "--epsilon", "1", "--neighbours", "friends"], "--neighbours must be one of"),
        (["init", "nowhere/x.ledger", "--epsilon", "1"], "cannot be created"),
        (["show", "missing.ledger"], "louver ledger init missing.ledger"),
        (["grant", "missing.ledger", "--epsilon", "1"], "there is no ledger"),
        (["verify", "missing.ledger"], "there is no ledger"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, map(os.path.abspath, _paths()))))
    monkeypatch.chdir(tmp_path)
    result = _louver(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert told in result.stderr
    assert result.stderr.startswith("louver ledger: ") and result.stderr.count("\n") == 1
    assert "friends" not in result.stderr and "much" not in result.stderr


def _paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
