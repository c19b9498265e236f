"""Running one case in this process, and what must hold whatever it was."""

from __future__ import annotations

import io
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from typer.main import get_command

from fuzz.hostile import MARKER
from one_database import one_database

__all__ = ["Case", "Hanging", "Outcome", "judge", "run", "run_command"]

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
RESUMABLE = re.compile(r"(.*/)?\.[^/]*\.topdown(/.*)?|(.*/)?checkpoints(/.*)?|register(/key)?")
"""What an interrupted or refused run of TopDown keeps, to be carried on; a register that was opened."""


class Hanging(BaseException):
    """Raised by anyone who waits no longer."""


@dataclass(frozen=True)
class Case:
    """A folder with files, and what is called in it."""

    folder: Path
    arguments: tuple[str, ...] = ()
    call: Callable[[], object] | None = None  # in place of the command line
    may_create: tuple[str, ...] = ()
    told: tuple[str, ...] = ()  # what was done to it, for anyone who repeats it


@dataclass(frozen=True)
class Outcome:
    """How it ended, and what is wrong with that."""

    code: int
    out: str
    err: str
    faults: list[str] = field(default_factory=list)


def run(case: Case, *, pages: bool = True) -> Outcome:
    """Run a case and judge it; without `pages`, reports are empty, and sources share a database unless one is a file of such."""
    if not pages:
        has_database = any(path.suffix in (".duckdb", ".db") for path in case.folder.rglob("*"))
        with without_pages(), nullcontext() if has_database else one_database():
            return run(case)
    before = contents(case.folder)
    if case.call is None:
        outcome = Outcome(*run_command(case.arguments))
    else:
        with captured() as (out, err):
            code = _call(case.call)
        outcome = Outcome(code, out(), err())
    outcome.faults.extend(judge(case, outcome, before))
    return outcome


def judge(case: Case, outcome: Outcome, before: dict[str, object]) -> Iterator[str]:
    """Everything that must not be."""
    if outcome.code not in (0, 1, 2):
        yield f"exit {outcome.code}"
    if "Traceback" in outcome.err or "internal error" in outcome.err:
        yield "an internal error"
    failed = outcome.code not in (0, 1)
    if failed and (outcome.err.count("\n") != 1 or not outcome.err.endswith((".\n", "?\n"))):
        yield "not one sentence on stderr"
    if failed and outcome.out:
        yield "a failure prints to stdout"
    if failed and MARKER in outcome.out + outcome.err:
        yield "a confidential value is told"
    if UNPRINTABLE.search(outcome.err) or UNPRINTABLE.search(outcome.out):
        yield "a control character reaches the terminal"
    after = contents(case.folder)
    new = {name for name in after.keys() - before.keys() if not RESUMABLE.fullmatch(name)}
    if failed and new:
        yield f"left behind: {sorted(new)[:3]}"
    hidden = {name for name in new if name.startswith(".")}
    if hidden and not failed:
        yield f"left behind: {sorted(hidden)[:3]}"
    changed = [name for name in before.keys() & after.keys() if before[name] != after[name]]
    if any(not name.endswith(".ledger") for name in changed):
        yield f"changed: {changed[:3]}"


def contents(folder: Path) -> dict[str, object]:
    """Every path below a folder, and the bytes of plain files; SQLite's own companions do not count."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        if path.is_file() and not path.is_symlink()
        else None
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(("-wal", "-shm", "-journal"))
    }


def run_command(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Exit code and both streams of the command line."""
    with captured() as (out, err):
        code = _command(arguments)
    return code, out(), err()


def _command(arguments: Sequence[str]) -> int:
    from louver.cli import main

    argv, sys.argv = sys.argv, ["louver", *arguments]
    try:
        with patch("louver.cli.app.app", _parser()):
            main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 70
    except Hanging:
        raise
    except BaseException:  # noqa: BLE001 - this is what is looked for
        sys.stderr.write(traceback.format_exc())
        return 70
    finally:
        sys.argv = argv
    return 0


@cache
def _parser() -> Any:
    """The parser of the command line, which every call of Typer's object would make anew."""
    from louver.cli.app import app

    return get_command(app)


def _call(call: Callable[[], object]) -> int:
    """A library call, judged as if it were a command."""
    from louver.errors import LouverError

    try:
        call()
    except LouverError as error:
        sys.stderr.write(f"louver: {error}\n")
        return 2
    except Exception:  # noqa: BLE001
        sys.stderr.write(traceback.format_exc())
        return 70
    return 0


@contextmanager
def captured() -> Iterator[tuple[Callable[[], str], Callable[[], str]]]:
    """Both streams, as a terminal that is none would get them."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = streams

    def text(stream: io.TextIOWrapper) -> Callable[[], str]:
        def read() -> str:
            stream.flush()
            return stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]

        return read

    try:
        yield text(streams[0]), text(streams[1])
    finally:
        sys.stdout, sys.stderr = kept


@contextmanager
def without_pages() -> Iterator[None]:
    """Matplotlib draws nothing: that takes nine tenths of the time of a good run."""
    with patch("louver.report.page.svg", lambda *_, **__: "<html></html>"):
        yield


def clear(folder: Path) -> None:
    """Remove what a case left, whatever its permissions."""
    shutil.rmtree(folder, ignore_errors=True)
