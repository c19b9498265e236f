"""Ledgers that are damaged, on a full disk, or of another format: one sentence, never a surprise."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from cli.command import child_environment
from louver.errors import BudgetError, InputError, LouverError
from louver.privacy.budget import Loss, Measure
from louver.privacy.ledger import Ledger
from louver.privacy.neighbours import Relation

RECORD = Relation.ADD_REMOVE_RECORD
LOSS = Loss(Fraction(1, 10), Measure.EPSILON, RECORD)


def _dataset(secret: bytes) -> bytes:
    return hashlib.sha256(secret + b"rows").digest()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """With a sealed debit, a pending one, a publication and a refusal."""
    made = Ledger.create(tmp_path / "data.ledger", Measure.EPSILON, RECORD, Fraction(1))
    made.seal(made.reserve(LOSS, request="a", purpose="p", dataset=_dataset), {"x": "y"})
    made.disclose("exact", invariants=[{"level": "ward"}])
    made.log_refusal("reading")
    made.reserve(LOSS, request="b", purpose="p", dataset=_dataset)
    return made


def _use(path: Path) -> list[str]:
    """Try everything; return what was refused, and let anything but a sentence through."""
    told = []
    uses: list[Callable[[], object]] = [
        lambda: Ledger(path).state().to_dict(),
        lambda: Ledger(path).verify(),
        lambda: Ledger(path).reserve(LOSS, request="b", purpose="p", dataset=_dataset).pin("aa"),
        lambda: Ledger(path).reserve(LOSS, request="c", purpose="p", dataset=_dataset),
        lambda: Ledger(path).succeed(path.with_name("new.ledger")),
    ]
    for use in uses:
        try:
            use()
        except LouverError as error:
            told.append(str(error))
    return told


def _restore(path: Path, content: bytes) -> None:
    for left in path.parent.iterdir():
        left.unlink()
    path.write_bytes(content)
    path.chmod(0o600)


def test_any_byte_may_be_flipped(ledger: Ledger) -> None:
    content = ledger.path.read_bytes()
    draw = random.Random(8)
    used = [place for place, byte in enumerate(content) if byte]
    for place in (*range(0, 100, 3), *draw.sample(used, 60)):
        damaged = bytearray(content)
        damaged[place] ^= draw.randrange(1, 256)
        _restore(ledger.path, bytes(damaged))
        _use(ledger.path)


@pytest.mark.parametrize("length", [1, 15, 16, 99, 100, 1000, 4096, 5000, 12288])
def test_a_truncated_ledger_is_one_sentence(ledger: Ledger, length: int) -> None:
    _restore(ledger.path, ledger.path.read_bytes()[:length])
    told = _use(ledger.path)
    assert told and all("data.ledger" in sentence for sentence in told)


def test_an_empty_file_is_not_made_a_database(ledger: Ledger) -> None:
    _restore(ledger.path, b"")
    assert len(_use(ledger.path)) == 5
    assert ledger.path.read_bytes() == b""


@pytest.mark.parametrize(
    "edit",
    [
        "DROP TABLE entries",
        "DROP TABLE keys",
        "DROP TABLE secret",
        "DELETE FROM secret",
        "UPDATE secret SET value = 'text'",
        "UPDATE secret SET value = zeroblob(32)",
        "UPDATE entries SET body = x'ff00'",
        "UPDATE entries SET hash = NULL",
        "UPDATE entries SET number = number + 100",
        "UPDATE keys SET key = 'text'",
        "ALTER TABLE entries RENAME COLUMN body TO other",
    ],
)
def test_another_content_is_one_sentence(ledger: Ledger, edit: str) -> None:
    with sqlite3.connect(ledger.path) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '')")
    with sqlite3.connect(ledger.path) as db:
        db.execute(edit)
    assert _use(ledger.path) or not Ledger(ledger.path).verify().is_sound


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_damaged_side_files_are_survived(ledger: Ledger, suffix: str) -> None:
    """As a killed process leaves them, with some bytes changed."""
    copies = ledger.path.parent / "copies"
    with sqlite3.connect(ledger.path) as reader:
        reader.execute("SELECT * FROM secret").fetchone()
        ledger.grant(Fraction(1), Measure.EPSILON)
        shutil.copytree(ledger.path.parent, copies)
    draw = random.Random(3)
    for _ in range(10):
        here = copies.with_name("here")
        shutil.copytree(copies, here)
        side = here / f"data.ledger{suffix}"
        content = bytearray(side.read_bytes())
        content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
        side.write_bytes(content)
        _use(here / "data.ledger")
        shutil.rmtree(here)


def _append(ledger: Ledger, body: dict[str, object]) -> None:
    with ledger._writing() as db:
        ledger._append(db, body)


def test_entries_of_another_version_are_one_sentence(ledger: Ledger) -> None:
    _append(ledger, {"kind": "auction"})
    assert all("use the version that wrote it" in told for told in _use(ledger.path))
    assert "use the version that wrote it" in ledger.verify().problems[0]


@pytest.mark.parametrize("format", [None, 0, 2, "1"])
def test_a_format_of_another_version_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: object
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("louver.privacy.ledger.FORMAT", format)
        made = Ledger.create(tmp_path / "other.ledger", Measure.EPSILON, Relation.CHANGE_RECORD, Fraction(1))
    with pytest.raises(
        BudgetError, match="a format that this version of louver does not read; use the version"
    ):
        made.state()
    assert not made.verify().is_sound


@pytest.mark.parametrize("text", ["[" * 100_000, "3", "{"])
def test_a_forged_entry_is_one_sentence(ledger: Ledger, text: str) -> None:
    with ledger._writing() as db:
        ledger._append_text(db, text)
    assert all("was not written by any version of louver" in told for told in _use(ledger.path))


def test_a_forged_amount_does_not_fill_the_memory(ledger: Ledger) -> None:
    _append(ledger, {"kind": "grant", "amount": "1e99999999"})
    assert all("was not written by any version of louver" in told for told in _use(ledger.path))


def test_amounts_too_long_to_add_up_are_refused(ledger: Ledger) -> None:
    for power in (500, 900, 1500):
        ledger.grant(Fraction(1, 7**power), Measure.EPSILON)
    with pytest.raises(BudgetError, match="use round amounts"):
        ledger.grant(Fraction(1, 11**3000), Measure.EPSILON)
    json.dumps(ledger.state().to_dict())


@pytest.mark.long
def test_bytes_that_are_no_ledger_end_the_command_with_2(tmp_path: Path) -> None:
    path = tmp_path / "x.ledger"
    path.write_bytes(os.urandom(5000))
    path.chmod(0o600)
    for verb in ("show", "verify"):
        done = subprocess.run(
            [sys.executable, "-m", "louver", "ledger", verb, str(path)],
            env=child_environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "damaged or not a ledger" in done.stderr


FILL = """
import resource, sys
from fractions import Fraction
from pathlib import Path
from louver.errors import InputError
from louver.privacy.budget import Measure
from louver.privacy.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    for _ in range(200):
        ledger.grant(Fraction(1, 3), Measure.EPSILON)
except InputError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files")
@pytest.mark.parametrize(
    "limit", [5000, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 20_000, 40_000))]
)
def test_a_disk_without_room_is_not_called_damage(ledger: Ledger, limit: int) -> None:
    """A limit on the size of files fails writes in the middle, as a full disk does."""
    before = ledger.state().granted
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(ledger.path), str(limit)],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "room" in done.stdout or "full" in done.stdout or "written" in done.stdout
    assert "damaged" not in done.stdout
    assert ledger.verify().is_sound and ledger.state().granted >= before


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, "has room and works"),
        (sqlite3.SQLITE_CANTOPEN, "has room and works"),
        (sqlite3.SQLITE_READONLY, "permissions"),
        (sqlite3.SQLITE_BUSY, "is busy"),
        (sqlite3.SQLITE_CORRUPT, "damaged"),
    ],
)
def test_what_sqlite_says_is_told_by_its_code(ledger: Ledger, code: int, says: str) -> None:
    error = sqlite3.OperationalError("in whatever words")
    error.sqlite_errorcode = code
    with pytest.raises(InputError, match=says), ledger._reading():
        raise error


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on files")
@pytest.mark.parametrize(
    "limit", [10_000, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 4096, 20_000))]
)
def test_a_ledger_made_without_room_is_whole_or_not_there(tmp_path: Path, limit: int) -> None:
    """What was committed may still be in the write-ahead log, which is not moved into place."""
    path = tmp_path / "x.ledger"
    make = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "from louver.cli import main\n"
        f"sys.argv = ['louver', 'ledger', 'init', {str(path)!r}, '--epsilon', '1']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", make], env=child_environment(), capture_output=True, text=True
    )
    assert done.returncode == (0 if path.exists() else 2), done.stderr
    assert "damaged" not in done.stderr
    if path.exists():
        assert Ledger(path).verify().is_sound


def test_bytes_that_sqlite_quotes_are_damage(ledger: Ledger) -> None:
    with pytest.raises(InputError, match="damaged"), ledger._reading():
        raise UnicodeDecodeError("utf-8", b"\xe2", 0, 1, "in SQLite's own message")


def test_a_full_disk_while_a_ledger_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("os.link", full)
    with pytest.raises(InputError, match="has room"):
        Ledger.create(tmp_path / "x.ledger", Measure.RHO, RECORD)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_opened_is_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read or written just now"):
        ledger.state()


def _release(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder / "manifest.json"


def test_releases_with_pipes_links_and_loops_are_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    releases = tmp_path / "releases"
    os.mkfifo(_release(releases / "a"))
    os.mkfifo(releases / "a" / "x.parquet")
    outside = _release(tmp_path / "outside")
    outside.write_text("{}")
    (releases / "link").symlink_to(tmp_path / "outside")
    (releases / "loop").symlink_to(releases)
    _release(releases / "b").symlink_to(outside)
    check = ledger.verify(releases)
    assert (check.problems, check.n_releases) == ((), 0)
    _release(releases / "c").write_text("[" * 100_000)
    (releases / "c" / "x.parquet").write_bytes(b"PAR1" * 10)
    assert ledger.verify(releases).problems == ("release c does not record a ledger head",)
    with pytest.raises(InputError, match="is not a folder") as caught:
        ledger.verify(outside)
    assert caught.value.option == "--releases"
