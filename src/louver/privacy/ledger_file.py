"""The file under a ledger: appended entries, each chained by hash to the one before it, in SQLite.

Entries are read and appended in whole transactions; if that is impossible, the error gives the reason in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from louver.errors import BudgetError, InputError
from louver.privacy.noise import KEY_BYTES

__all__ = [
    "SUFFIX",
    "Entry",
    "Head",
    "LedgerFile",
    "canonical",
    "chained",
    "commitment",
    "ledger_paths",
    "stamped",
]

SUFFIX = ".ledger"

BUSY_SECONDS = 60.0
"""Seconds to wait for another process that is writing."""

_SCHEMA = """
CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE keys (entry INTEGER PRIMARY KEY, key BLOB NOT NULL, answers TEXT);
CREATE TABLE secret (value BLOB NOT NULL);
"""
_MAGIC = b"SQLite format 3\0"

_BUSY = "is busy; check the file, or wait for the process that holds it"
_FULL = "cannot grow: the disk is full; make room"
_READ_ONLY = "cannot be written to; check its permissions and those of its folder"
_FAILING = "cannot be read or written just now; check that the disk has room and works, and try again"
_DAMAGED = "is damaged or not a ledger; check the file, or restore it from a copy that verifies"
_BY_CODE = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: _FAILING,
    sqlite3.SQLITE_IOERR: _FAILING,
    sqlite3.SQLITE_INTERRUPT: _FAILING,
}


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry: its number and hash. A manifest records it as text, which determines the whole past.

    Examples
    --------
    >>> Head.parse(str(Head(3, "ab12")))
    Head(entry=3, hash='ab12')
    """

    entry: int
    hash: str

    def __str__(self) -> str:
        return f"{self.entry}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read what `str` wrote; ValueError for anything else."""
        entry, _, digest = text.partition(":")
        return cls(int(entry), digest)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as stored in the file, with its position in the chain checked."""

    head: Head
    body: Mapping[str, Any]


class LedgerFile:
    """A chain of entries in one SQLite file, with the keys of pending debits and a secret.

    Parameters
    ----------
    path : Path
        Must be a plain file that nobody else can read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        if not path.is_file():
            raise InputError(
                f"there is no ledger {path.name}; create one with "
                f"`louver ledger init {path.name} --epsilon E --neighbours RELATION` (or --rho R).",
                file=path.name,
                option="ledger",
            )
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InputError(
                f"the ledger {path.name} can be read by others; set its mode to 0600.", file=path.name
            )

    @classmethod
    def _write_new(cls, path: Path, secret: bytes, texts: Sequence[str]) -> None:
        """Make a file with these entries at `path`, whole or not at all, never over another file.

        Raises
        ------
        FileExistsError
        InputError
            If it cannot be made there.
        """
        with cls._unfinished(path, secret, texts) as unfinished:
            os.link(unfinished, path)  # never replaces a file, and the new one appears complete

    @classmethod
    @contextmanager
    def _unfinished(cls, path: Path, secret: bytes, texts: Sequence[str]) -> Iterator[Path]:
        """A finished file under another name in the folder of `path`, which is removed in the end."""
        unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
        try:
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            made = cls(unfinished)
            made.name = path.name
            with made._writing(is_new=True) as db:
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO secret VALUES (?)", (secret,))
                for text in texts:
                    made._append_text(db, text)
            made._empty_log(is_new=True)  # closing would try too, and hide that the disk is full
            yield unfinished
        except FileExistsError:
            raise
        except OSError:
            raise InputError(
                f"the ledger {path.name} cannot be created; check that its directory exists, is writable and has "
                "room.",
                file=path.name,
            ) from None
        finally:
            for left in (unfinished, Path(f"{unfinished}-wal"), Path(f"{unfinished}-shm")):
                left.unlink(missing_ok=True)

    @contextmanager
    def _reading(self, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
        if not is_new:
            self._check_magic()
        try:
            db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                mode = db.execute("PRAGMA journal_mode = WAL").fetchone()
                if mode != ("wal",):
                    raise InputError(
                        f"{self.name} is on a file system where SQLite cannot keep a write-ahead log; move it to a local disk.",
                        file=self.name,
                    )
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")
                yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise self._problem(_reason(error)) from None
        except UnicodeDecodeError:  # a message of SQLite that quotes damaged bytes
            raise self._problem(_DAMAGED) from None

    def _check_magic(self) -> None:
        """Check the file type, because SQLite would treat an empty file as a new database and write into it."""
        try:
            with self.path.open("rb") as file:
                start = file.read(len(_MAGIC))
        except OSError:
            raise self._problem(_FAILING) from None
        if start != _MAGIC:
            raise self._problem(_DAMAGED)

    def _problem(self, what: str) -> InputError:
        return InputError(f"{self.name} {what}.", file=self.name)

    @contextmanager
    def _writing(self, *, is_new: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: it happens completely or not at all, and no other process writes in the meantime."""
        with self._reading(is_new=is_new) as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # on a full disk SQLite has ended the transaction itself
                    db.execute("ROLLBACK")
                raise

    def _append(self, db: sqlite3.Connection, body: Mapping[str, Any]) -> Head:
        return self._append_text(db, stamped(body))

    def _append_text(self, db: sqlite3.Connection, text: str) -> Head:
        row = db.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        number, previous = (row[0] + 1, row[1]) if row else (0, "")
        head = Head(number, chained(previous, text))
        db.execute("INSERT INTO entries VALUES (?, ?, ?)", (head.entry, text, head.hash))
        return head

    def _entries(self, db: sqlite3.Connection) -> list[Entry]:
        """All entries, the chain recomputed from the first."""
        previous, entries = "", []
        rows = db.execute("SELECT number, body, hash FROM entries ORDER BY number").fetchall()
        for number, (numbered, text, row_hash) in enumerate(rows):
            if numbered != number or not isinstance(text, str) or row_hash != chained(previous, text):
                raise BudgetError(
                    f"entry {number} of the ledger {self.name} was edited or removed; "
                    "restore the file from a copy that verifies."
                )
            previous = row_hash
            entries.append(Entry(Head(number, row_hash), self._parsed(number, text)))
        if not entries:
            raise BudgetError(f"the ledger {self.name} has no entries; restore it from a copy.")
        return entries

    def _parsed(self, number: int, text: str) -> Mapping[str, Any]:
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise BudgetError(
                f"entry {number} of the ledger {self.name} was not written by any version of louver; restore a copy."
            )
        return body

    def _secret(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> bytes:
        """The secret with which data are hashed; refused if it is not the one that the first entry names."""
        row = db.execute("SELECT value FROM secret").fetchone()
        secret = None if row is None else row[0]
        if not isinstance(secret, bytes) or len(secret) != KEY_BYTES:
            raise self._problem(_DAMAGED)
        if entries[0].body.get("secret", commitment(secret)) != commitment(secret):
            raise self._problem(_DAMAGED)
        return secret

    def _empty_log(self, *, is_new: bool = False) -> bool:
        """Empty the write-ahead log, which still holds erased keys; waits for readers, and returns False if one stays."""
        with self._reading(is_new=is_new) as db:
            is_busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy


def _reason(error: sqlite3.Error) -> str:
    """The meaning of an SQLite error for the keeper of the ledger."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _BY_CODE.get(code & 0xFF, _DAMAGED)
    by_words = (("locked", _BUSY), ("full", _FULL), ("readonly", _READ_ONLY))
    return next((what for word, what in by_words if word in str(error)), _DAMAGED)


def stamped(body: Mapping[str, Any]) -> str:
    """The text of a new entry, with the time it was made."""
    return canonical({**body, "at": datetime.now(UTC).isoformat(timespec="seconds")})


def canonical(body: Mapping[str, Any]) -> str:
    """The canonical text of a body."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def chained(previous: str, text: str) -> str:
    """Hash of an entry, including the hash of the previous entry."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def commitment(key: bytes) -> str:
    """Hash of a key, which shows at a restart whether the key was replaced, and reveals nothing about it."""
    return hashlib.sha256(b"louver key" + key).hexdigest()


def ledger_paths(folder: Path) -> Iterator[Path]:
    """The ledgers of a folder in order of their names, those reached through links last; each file once, whatever its names."""
    seen: set[Path] = set()
    for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: (path.is_symlink(), path)):
        with suppress(OSError, RuntimeError):  # a link that leads nowhere, or to itself
            target = path.resolve(strict=True)
            if target not in seen:
                seen.add(target)
                yield path
