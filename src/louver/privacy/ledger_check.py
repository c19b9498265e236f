"""Auditing a ledger: whether its past is intact, its keys are those of pending debits, and releases agree with it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver._verdict import Level, Verdict
from louver.errors import BudgetError, InputError, LouverError
from louver.privacy.ledger_file import Entry, Head, LedgerFile, chained, ledger_paths
from louver.privacy.ledger_state import LedgerState, replay

__all__ = ["LedgerCheck", "check_ledger"]

MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1 << 26
"""Maximum number of bytes of a manifest that is read; larger ones record no head."""


REGISTERED = re.compile("[0-9a-f]{64}")
"""Form in which releases record an entry of a register rather than a ledger: its hash, without its number."""


ANOTHER = "it was paid by another ledger, which is not in the same folder"
SAMPLE_LEDGERS = "sample-ledgers"
"""Folder among the releases that has a folder for every ledger of a sample in the explorer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheck:
    """The findings of `verify`; the ledger is sound if there are no problems.

    Attributes
    ----------
    n_entries : int
    n_releases : int
        Manifests that were read.
    n_others : int
        Number of those paid for by another ledger in the same folder.
    problems : tuple of str
    """

    n_entries: int
    n_releases: int
    problems: tuple[str, ...]
    n_others: int = 0

    @property
    def is_sound(self) -> bool:
        return not self.problems

    @property
    def verdict(self) -> Verdict:
        """Whether the ledger can be relied on; its problems are the reasons."""
        if self.is_sound:
            return Verdict(Level.OK, "Nothing in the past was edited or rolled back.")
        reasons = tuple(f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in self.problems)
        return Verdict(Level.STOP, "This ledger does not agree with itself or with the releases.", reasons)

    def to_dict(self) -> dict[str, Any]:
        """The findings for programs."""
        return {
            "sound": self.is_sound,
            "verdict": self.verdict.to_dict(),
            "entries": self.n_entries,
            "releases": self.n_releases,
            "other_releases": self.n_others,
            "problems": list(self.problems),
        }

    def __str__(self) -> str:
        others = f", {self.n_others:,} of them paid by another ledger" if self.n_others else ""
        checked = f"{self.n_entries:,} entries, {self.n_releases:,} releases checked{others}"
        return "\n".join([*(f"  {one}" for one in self.problems), f"{self.verdict.sentence} {checked}."])


def check_ledger(ledger: LedgerFile, releases: Path | None) -> LedgerCheck:
    """Check the chain, the balance, the keys, that erased ones are gone, and the heads that releases recorded."""
    with ledger._reading() as db:
        db.execute("BEGIN")  # a consistent view, even if another process writes in the meantime
        (n_entries,) = db.execute("SELECT count(*) FROM entries").fetchone()
        keyed = [entry for (entry,) in db.execute("SELECT entry FROM keys ORDER BY entry")]
        try:
            entries = ledger._entries(db)
            state = replay(entries)
        except BudgetError as error:
            return LedgerCheck(n_entries=n_entries, n_releases=0, problems=(str(error),))
        ledger._secret(db, entries)
    problems = _own_problems(state, keyed)
    if not ledger._empty_log():
        problems.append(
            "the write-ahead log may still contain erased keys while another program has the ledger open"
        )
    past = _Past.of(entries, state)
    problems += _joined_problems(ledger, entries, past)
    if releases is None:
        return LedgerCheck(n_entries=n_entries, n_releases=0, problems=tuple(problems))
    n_releases, n_others, found = _release_problems(releases, past, list(_others(ledger, releases, past)))
    return LedgerCheck(
        n_entries=n_entries, n_releases=n_releases, n_others=n_others, problems=(*problems, *found)
    )


def _own_problems(state: LedgerState, keyed: list[int]) -> list[str]:
    problems = []
    if state.spent > state.granted:
        problems.append("more was spent than was granted")
    problems += [f"entry {n} has a key but is not pending" for n in keyed if n not in state.pending]
    problems += [f"entry {n} is pending but has no key" for n in state.pending if n not in keyed]
    return problems


@dataclass(slots=True)
class _Past:
    """The entries of a ledger and its predecessors, for comparison with the records in releases."""

    hashes: dict[int, set[str]]
    first: set[str]
    files: dict[str, Mapping[str, str]]
    disclosed: set[str]

    @classmethod
    def of(cls, entries: list[Entry], state: LedgerState) -> _Past:
        hash_of = [entry.head.hash for entry in entries]
        return cls(
            hashes={number: {own} for number, own in enumerate(hash_of)},
            first={hash_of[0]},
            files={hash_of[number]: files for number, files in state.sealed.items()},
            disclosed={e.head.hash for e in entries if e.body["kind"] == "disclosure"},
        )

    def add(self, other: _Past) -> None:
        for number, hashes in other.hashes.items():
            self.hashes.setdefault(number, set()).update(hashes)
        self.first |= other.first
        self.files.update(other.files)
        self.disclosed |= other.disclosed


def _joined_problems(ledger: LedgerFile, entries: list[Entry], past: _Past) -> list[str]:
    """Follow the chain into the predecessors of this ledger, as far as they are in the same folder."""
    problems: list[str] = []
    seen = {ledger.path.name}
    current, first = ledger, entries[0]
    while (left := first.body.get("predecessor")) is not None and left["name"] not in seen:
        seen.add(left["name"])
        path = current.path.with_name(left["name"])
        if not path.is_file():
            break
        try:
            current = LedgerFile(path)
            with current._reading() as db:
                before = current._entries(db)
            past.add(_Past.of(before, replay(before)))
        except LouverError as error:
            return [*problems, str(error)]
        if not _joins(before, left, first):
            return [*problems, f"{path.name} was not closed for its successor"]
        first = before[0]
    return problems


def _others(ledger: LedgerFile, releases: Path, past: _Past) -> Iterator[_Past]:
    """Ledgers next to this one or to the releases, and those of samples, links included; copies of this one, which begin with the same
    entry, are left out.
    """
    near = (ledger.path.parent, releases, releases.parent, *sorted((releases / SAMPLE_LEDGERS).glob("*")))
    folders = dict.fromkeys(folder.resolve() for folder in near)
    for path in (path for folder in folders for path in ledger_paths(folder)):
        if path.resolve() == ledger.path.resolve():
            continue
        with suppress(LouverError, OSError):
            other = LedgerFile(path)
            with other._reading() as db:
                entries = other._entries(db)
            found = _Past.of(entries, replay(entries))
            if not found.first & past.first:
                yield found


def _joins(before: list[Entry], left: Mapping[str, Any], first: Entry) -> bool:
    """Whether an old ledger's closing entry names the new one's first, which names the entry before the closing one."""
    for entry in before:
        if entry.body["kind"] == "succeeded":
            last = before[entry.head.entry - 1].head
            return str(last) == left["head"] and chained("", entry.body["first"]) == first.head.hash
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The record in a published file of the ledger entry that paid for it."""

    name: str
    head: Head | None
    sha256: str | None = None


def _release_problems(releases: Path, past: _Past, others: list[_Past]) -> tuple[int, int, list[str]]:
    """Number of manifests, number of those paid from other ledgers, and problems with the records in them and in the measurements."""
    if not releases.is_dir():
        raise InputError(
            f"{releases.name} is not a folder; name the folder of releases.", option="--releases"
        )
    n_releases, n_others, problems = 0, 0, []
    for path in _plain_files(releases):
        n_releases += path.name == MANIFEST
        record = _record_of(path)
        problem = None if record is None else _record_problem(record, past)
        if record is not None and problem:
            if any(_record_problem(record, other) is None for other in others):
                n_others += path.name == MANIFEST
            else:
                problems.append(f"{record.name} {problem}")
    return n_releases, n_others, problems


def _plain_files(folder: Path) -> Iterator[Path]:
    """Manifests and Parquet files under a folder, in order; links are not followed, and nothing else is opened."""
    for where, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            is_wanted = name == MANIFEST or path.suffix == ".parquet"
            if is_wanted and stat.S_ISREG(path.lstat().st_mode):
                yield path


def _open_plain(path: Path) -> BufferedReader:
    """Open a plain file; OSError for one that has since become a link or a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return os.fdopen(os.open(path, flags), "rb")


def _record_of(path: Path) -> _Record | None:
    """Read a manifest or a measurements file; None for other files, and for those that no ledger paid for."""
    return _manifest_record(path) if path.name == MANIFEST else _measured_record(path)


def _manifest_record(path: Path) -> _Record | None:
    name = f"release {path.parent.name}"
    try:
        with _open_plain(path) as file:
            content = json.loads(file.read(LARGEST_MANIFEST))
        if content["ledger_head"] is None or REGISTERED.fullmatch(content["ledger_head"]):
            return None
        return _Record(name=name, head=Head.parse(content["ledger_head"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return _Record(name=name, head=None)


def _measured_record(path: Path) -> _Record | None:
    try:
        with _open_plain(path) as file:
            content = json.loads((pq.read_schema(file).metadata or {}).get(b"louver", b"{}"))
            if content.get("entry") is None:
                return None
            head = Head(int(content["entry"]), str(content["entry_hash"]))
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException):
        return None
    return _Record(name=f"file {path.parent.name}/{path.name}", head=head, sha256=digest)


def _record_problem(record: _Record, past: _Past) -> str | None:
    """How a recorded head disagrees with the ledger, in words; an entry for a disclosure needs no seal."""
    head = record.head
    if head is None:
        return "does not record a ledger head"
    if head.entry not in past.hashes:
        return (
            f"records entry {head.entry}, which is missing from the ledger: it was rolled back, or {ANOTHER}"
        )
    if head.hash not in past.hashes[head.entry]:
        return f"records another entry {head.entry}: this ledger's past was edited, or {ANOTHER}"
    if head.hash in past.disclosed:
        return None
    if head.hash not in past.files:
        return f"records entry {head.entry}, which is not sealed: its run was abandoned or never finished"
    if record.sha256 is not None and record.sha256 not in past.files[head.hash].values():
        return f"is not the file that entry {head.entry} sealed"
    return None
