"""What outside things bring about is one sentence, and foreign text can neither command a terminal nor forge a line."""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import louver as lv
from cli.command import Runner
from louver.cli import VERBS
from louver.cli.console import say_json
from louver.errors import InputError, LouverError, one_sentence, printable

WEIGHTED = ("--rows", "site", "--cols", "ill", "--weight", "count")
LONG = "x" * 300


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            OSError(errno.ENOSPC, "secret", "/a/data.parquet"),
            "data.parquet could not be written: the disk is full",
        ),
        (OSError(errno.ENOSPC, "secret"), "a file could not be written: the disk is full"),
        (OSError(errno.ENAMETOOLONG, "secret", "name"), "name has too long a name"),
        (IsADirectoryError(errno.EISDIR, "secret", "folder"), "folder is a directory"),
        (PermissionError(errno.EACCES, "secret", b"bytes"), "bytes cannot be opened; check its permissions"),
        (OSError(errno.EIO, "secret", 7), "a file could not be read or written"),
        (UnicodeEncodeError("utf-8", "secret", 0, 1, "secret"), "invalid Unicode"),
        (RecursionError("secret"), "nested too deeply"),
        (pa.ArrowInvalid("secret"), "check that every file is complete"),
        (duckdb.IOException("secret"), "check that every file is complete"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_expected_failures(error: Exception, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught, one_sentence():
        raise error
    assert "secret" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(
    "error", [ValueError("ours"), BrokenPipeError(), KeyboardInterrupt(), LouverError("ours")]
)
def test_what_is_not_expected_stays(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, one_sentence():
        raise error
    assert caught.value is error


def test_from_python(tmp_path: Path) -> None:
    """The doors of the verbs are such a boundary too."""
    for verb in (lv.bounds, lv.anonymize, lv.groups):
        with pytest.raises(InputError):
            verb(tmp_path / f"{LONG}.csv")
    with pytest.raises(InputError):
        lv.topdown(tmp_path / f"{LONG}.toml")
    with pytest.raises(InputError, match="must be a file, a mapping or a Spec"):
        lv.bounds(spec=7)
    with pytest.raises(InputError, match="option --colour is not a known key"):
        lv.bounds(tmp_path, colour="red")


@pytest.mark.parametrize(
    "arguments",
    [
        ("bounds", "data.csv", *WEIGHTED, "--html", f"{LONG}.html"),
        ("bounds", f"{LONG}.csv", *WEIGHTED),
        ("bounds", "data.csv", *WEIGHTED, "--spec", f"{LONG}.toml"),
        ("anonymize", "data.csv", "--quasi", "site", "-k", "2", "--out", LONG),
        ("anonymize", "data.csv", "--quasi", "site", "-k", "2", "--out", "."),
        ("topdown", "check", f"{LONG}.toml"),
        ("topdown", "check", "a.toml", "--spec", "b.toml"),
        ("verify", LONG),
        ("verify", "."),
        ("ledger", "init", LONG, "--epsilon", "1"),
        ("demo", "--out", LONG),
    ],
    ids=lambda value: " ".join(value)[:40],
)
def test_one_sentence(
    arguments: tuple[str, ...], call_louver: Runner, counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(counted.parent)
    (counted.parent / "data.csv").write_text(counted.read_text())
    before = set(counted.parent.iterdir())
    done = call_louver(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert ":  " not in done.err, "a name is missing"
    assert set(counted.parent.iterdir()) == before


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_terminals_without_arrows(
    monkeypatch: pytest.MonkeyPatch, call_louver: Runner, counted: Path, encoding: str
) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", terminal)
    done = call_louver("bounds", counted, *WEIGHTED)
    assert (done.code, done.err) == (0, "")
    told = terminal.buffer.getvalue().decode(encoding)
    assert f"disclosed: site=A {'→' if encoding == 'utf-8' else '->'} ill=no: 4" in told


def test_json_keeps_labels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w", encoding="ascii") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        say_json('{"label": "Zürich → \U0001f600"}')
    assert (tmp_path / "out").read_text() == '{"label": "Z\\u00fcrich \\u2192 \\ud83d\\ude00"}\n'


ESCAPE = "a\x1b[2K\nFORGED every promise holds\u202e"


def test_foreign_text(call_louver: Runner, tmp_path: Path) -> None:
    """Names of columns, arrangements and files come from outside."""
    path = tmp_path / "data.csv"
    path.write_text(f'"{ESCAPE}",ill,count\nA,no,4\nA,yes,3\n', encoding="utf-8")
    arranged = ("--rows", ESCAPE, "--cols", "ill", "--weight", "count")
    listed = tmp_path / "arrangements.toml"
    listed.write_text(
        f'[[arrangement]]\nname = "{printable("x")}\\u001b[2K\\nFORGED"\nrows = ["ill"]\ncols = ["ill2"]\n'
    )
    report = tmp_path / "a\x1b[1m\nFORGED.html"
    runs = [
        call_louver("bounds", path, *arranged, "--html", report),
        call_louver("bounds", path, *arranged[:-2], "--weight", ESCAPE + "!"),
        call_louver("bounds", tmp_path / ESCAPE, *arranged),
        call_louver("verify", tmp_path / ESCAPE),
        call_louver("topdown", "check", tmp_path / ESCAPE),
    ]
    for done in runs:
        text = done.out + done.err
        assert "\x1b" not in text and "\u202e" not in text
        assert not any(line.startswith("FORGED") for line in text.splitlines())
        assert "FORGED" in text


def test_summaries_of_the_verbs_are_those_of_their_commands(call_louver: Runner) -> None:
    for verb, summary in VERBS.items():
        told = " ".join(call_louver(verb, "--help").out.split())
        assert summary in told, verb
