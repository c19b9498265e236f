"""The ledger: what may be spent on one confidential data set, and what has been.

Answers: how much is granted, spent and left; and, for a debit, the key from which its noise is drawn. One
SQLite file per data set. Every event is one appended entry, chained by hash to the one before it, so the
state is always the replay of the entries. A debit is *reserved* with a fresh key before anything is drawn,
and *sealed* once its files are in place, which erases the key.

Notes
-----
An object holds a path and nothing else; each operation opens the file anew. It can be shared by threads
and carried over a fork.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver._version import __version__
from louver.errors import BudgetError, InputError
from louver.privacy.budget import Loss, Measure, convert, fraction_of
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KEY_BYTES

__all__ = [
    "Debit",
    "Head",
    "KeyedHash",
    "Ledger",
    "LedgerCheck",
    "LedgerState",
    "ledger_beside",
    "request_digest",
]

KeyedHash = Callable[[bytes], bytes]
"""Given the ledger's secret, a keyed hash of the confidential data set."""

BUSY_SECONDS = 60.0
"""How long to wait for another process that is writing."""

_SCHEMA = """
CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE keys (entry INTEGER PRIMARY KEY, key BLOB NOT NULL, answers TEXT);
CREATE TABLE secret (value BLOB NOT NULL);
"""


_SQLITE_PROBLEMS = (
    ("locked", "is busy; check the file, or wait for the process that holds it"),
    ("full", "cannot grow: the disk is full; make room"),
    ("readonly", "cannot be written to; check its permissions and those of its folder"),
)
_DAMAGED = "is damaged or not a ledger; check the file"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry: its number and hash. A manifest records it as text, and so pins the whole past.

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
        """Read what `str` wrote; ValueError where it is something else."""
        entry, _, digest = text.partition(":")
        return cls(int(entry), digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debit:
    """A reserved part of the budget and the key its noise is drawn from.

    Attributes
    ----------
    entry : int
        Number of the entry that reserved it.
    hash : str
        Hash of that entry.
    request : str
        The name it was reserved under.
    loss : Loss
        What was debited, in the ledger's measure and relation.
    is_resumed : bool
        Whether an earlier run reserved it and stopped before sealing.
    pin : callable
        Told the keyed hash of the true answers before noise leaves the process; refuses other answers than those of an
        earlier run, whose noise was the same.
    """

    entry: int
    hash: str
    loss: Loss
    is_resumed: bool
    key: bytes = field(repr=False)
    pin: Callable[[str], None] = field(repr=False, compare=False)
    request: str = ""

    @property
    def head(self) -> Head:
        """The entry, as manifests record it."""
        return Head(self.entry, self.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The replay of all entries."""

    measure: Measure
    neighbours: Relation
    granted: Fraction
    spent: Fraction
    pending: Mapping[int, Mapping[str, Any]]
    sealed: Mapping[int, Mapping[str, str]]
    disclosures: tuple[str, ...]
    dataset: str | None
    head: Head

    @property
    def remaining(self) -> Fraction:
        return self.granted - self.spent

    def to_dict(self) -> dict[str, Any]:
        """The state for programs; amounts are exact fractions as text, no hash of the data is shown."""
        return {
            "measure": str(self.measure),
            "neighbours": str(self.neighbours),
            "granted": str(self.granted),
            "spent": str(self.spent),
            "remaining": str(self.remaining),
            "pending": [
                {"entry": entry, "amount": body["amount"], "purpose": body["purpose"]}
                for entry, body in self.pending.items()
            ],
            "sealed": sorted(self.sealed),
            "disclosures": list(self.disclosures),
            "head": str(self.head),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCheck:
    """What `verify` found; sound when there are no problems."""

    n_entries: int
    n_releases: int
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """The findings for programs."""
        return {
            "sound": self.is_sound,
            "entries": self.n_entries,
            "releases": self.n_releases,
            "problems": list(self.problems),
        }


def ledger_beside(source: Path) -> Path:
    """Return where the ledger of a source file is kept by default."""
    return source.with_name(source.name + ".ledger")


def request_digest(request: Mapping[str, Any]) -> str:
    """Name exactly what is to be measured, by which version; the same name resumes the same debit."""
    return hashlib.sha256(_canonical({"request": request, "version": __version__}).encode()).hexdigest()


class Ledger:
    """One confidential data set's account.

    Parameters
    ----------
    path : Path
        The SQLite file; use `Ledger.create` to make one.

    Notes
    -----
    **Privacy**: debits compose sequentially, so all releases paid from a ledger together lose at most what
    was granted, for its neighbour relation. Concurrent debits are serialised by SQLite's write lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise InputError(
                f"there is no ledger {path.name}; make one with "
                f"`louver ledger init {path.name} --epsilon E --neighbours RELATION` (or --rho R).",
                file=path.name,
                option="ledger",
            )
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InputError(
                f"the ledger {path.name} can be read by others; set its mode to 0600.", file=path.name
            )

    def __repr__(self) -> str:
        return f"Ledger({self.path.name!r})"

    @classmethod
    def create(
        cls, path: Path, measure: Measure, neighbours: Relation, grant: Fraction | None = None
    ) -> Ledger:
        """Make a new ledger; its measure and neighbour relation stay as they are for good."""
        first = None if grant is None else fraction_of(grant, "grant")
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        try:
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            ledger = cls(unfinished)
            with ledger._writing() as db:
                for statement in _SCHEMA.split(";"):
                    db.execute(statement)
                db.execute("INSERT INTO secret VALUES (?)", (secrets.token_bytes(KEY_BYTES),))
                ledger._append(db, {"kind": "init", "measure": measure, "neighbours": neighbours})
                if first is not None:
                    ledger._append(db, {"kind": "grant", "amount": str(first)})
            os.link(unfinished, path)  # never replaces a file, and what appears is whole
        except FileExistsError:
            raise InputError(
                f"{path.name} exists already; a ledger is never overwritten.", file=path.name
            ) from None
        except OSError:
            raise InputError(
                f"the ledger {path.name} cannot be created; check that its directory exists and is writable.",
                file=path.name,
            ) from None
        finally:
            for left in (unfinished, Path(f"{unfinished}-wal"), Path(f"{unfinished}-shm")):
                left.unlink(missing_ok=True)
        return cls(path)

    def grant(self, amount: Fraction, measure: Measure) -> LedgerState:
        """Allow more to be spent; the measure must be the ledger's own."""
        with self._writing() as db:
            state = self._replay(db)
            if measure is not state.measure:
                raise BudgetError(
                    f"the ledger {self.path.name} counts in {state.measure}; grant it in {state.measure}."
                )
            self._append(db, {"kind": "grant", "amount": str(fraction_of(amount, "grant"))})
            return self._replay(db)

    def state(self) -> LedgerState:
        """Replay the entries; refuses a ledger whose past was edited."""
        with self._reading() as db:
            return self._replay(db)

    def reserve(
        self,
        loss: Loss,
        *,
        request: str,
        purpose: str,
        dataset: KeyedHash,
        largest_unit: int | None = None,
        is_replayable: bool = True,
    ) -> Debit:
        """Debit the ledger and return the key for the noise, before any noise is drawn.

        Parameters
        ----------
        loss : Loss
            What the measurements cost, in any measure and relation that can be converted to the ledger's.
        request : str
            `request_digest` of what is to be measured. A debit reserved under the same name and not yet
            sealed is returned again, with the same key.
        purpose : str
            What the debit is for, in words.
        dataset : KeyedHash
            Binds the ledger to its data at the first debit; later debits must come from the same data.
        largest_unit : int, optional
            Most records in a unit, where losses are converted between records and units.
        is_replayable : bool
            Whether the noise is a function of the key; a debit of other noise cannot be taken up again.
        """
        data_hash = self.hash_of(dataset).hex()
        with self._writing() as db:
            state = self._replay(db)
            self._check_dataset(state, data_hash)
            for entry, body in state.pending.items():
                if body["request"] == request:
                    self._check_resumable(entry, body, (str(loss), largest_unit, is_replayable))
                    return self._resume(db, entry, body, state)
            debited = convert(loss, state.measure, state.neighbours, largest_unit=largest_unit)
            self._check_balance(state, debited)
            key = secrets.token_bytes(KEY_BYTES)
            head = self._append(
                db,
                {
                    "kind": "reserve",
                    "amount": str(debited.amount),
                    "asked": str(loss),
                    "largest_unit": largest_unit,
                    "replayable": is_replayable,
                    "request": request,
                    "purpose": purpose,
                    "dataset": data_hash,
                    "key": _commitment(key),
                },
            )
            db.execute("INSERT INTO keys VALUES (?, ?, NULL)", (head.entry, key))
            return Debit(
                entry=head.entry,
                hash=head.hash,
                loss=debited,
                is_resumed=False,
                key=key,
                pin=partial(self._pin, head.entry),
                request=request,
            )

    def check_affordable(self, loss: Loss, *, largest_unit: int | None = None) -> None:
        """Refuse what `reserve` would refuse for want of budget; nothing is debited."""
        state = self.state()
        self._check_balance(state, convert(loss, state.measure, state.neighbours, largest_unit=largest_unit))

    def hash_of(self, dataset: KeyedHash) -> bytes:
        """The keyed hash of data under the ledger's own secret."""
        with self._reading() as db:
            (secret,) = db.execute("SELECT value FROM secret").fetchone()
        return dataset(secret)

    def find_pending(self, request: str) -> Debit | None:
        """The debit that an earlier run reserved under this name and did not seal; None where there is none."""
        with self._reading() as db:
            state = self._replay(db)
            for entry, body in state.pending.items():
                if body["request"] == request:
                    return self._resume(db, entry, body, state)
        return None

    def _pin(self, entry: int, answers: str) -> None:
        """Remember the keyed hash of a debit's true answers, or refuse another one than was remembered.

        The same noise on other answers would give away their difference.
        """
        with self._writing() as db:
            row = db.execute("SELECT answers FROM keys WHERE entry = ?", (entry,)).fetchone()
            if row is None or row[0] not in (None, answers):
                raise BudgetError(
                    f"entry {entry} of the ledger {self.path.name} was reserved for other answers, or is closed; "
                    "nothing was written."
                )
            db.execute("UPDATE keys SET answers = ? WHERE entry = ?", (answers, entry))

    def _check_resumable(
        self, entry: int, body: Mapping[str, Any], asked: tuple[str, int | None, bool]
    ) -> None:
        if not body["replayable"]:
            raise BudgetError(
                f"entry {entry} was interrupted and its noise cannot be drawn again; abandon it, pay anew."
            )
        if (body["asked"], body["largest_unit"], body["replayable"]) != asked:
            raise BudgetError(
                f"entry {entry} of the ledger {self.path.name} was reserved for another loss or other noise; "
                "finish or abandon it first."
            )

    def _check_dataset(self, state: LedgerState, data_hash: str) -> None:
        if state.dataset not in (None, data_hash):
            raise BudgetError(
                f"the ledger {self.path.name} belongs to other data, or the data changed since its first "
                "debit; give every data set its own ledger."
            )

    def _check_balance(self, state: LedgerState, debited: Loss) -> None:
        if debited.amount > state.remaining:
            raise BudgetError(
                f"the ledger {self.path.name} has {state.measure} {state.remaining} left and "
                f"{debited.amount} is asked for; grant more or ask for less.",
                requested=debited.amount,
                remaining=state.remaining,
            )

    def _resume(
        self, db: sqlite3.Connection, entry: int, body: Mapping[str, Any], state: LedgerState
    ) -> Debit:
        """Return a debit that an earlier run reserved and did not seal."""
        (row_hash,) = db.execute("SELECT hash FROM entries WHERE number = ?", (entry,)).fetchone()
        row = db.execute("SELECT key FROM keys WHERE entry = ?", (entry,)).fetchone()
        if row is None or _commitment(row[0]) != body["key"]:
            raise BudgetError(
                f"the ledger {self.path.name} holds no valid key for entry {entry}; abandon the entry."
            )
        loss = Loss(Fraction(body["amount"]), state.measure, state.neighbours)
        return Debit(
            entry=entry,
            hash=row_hash,
            loss=loss,
            is_resumed=True,
            key=row[0],
            pin=partial(self._pin, entry),
            request=body["request"],
        )

    def seal(self, debit: Debit, files: Mapping[str, str]) -> Head:
        """Record the finished files of a debit (name to sha256) and erase its key.

        Sealing twice with the same files changes nothing. Where another program keeps the ledger open meanwhile, the key stays in
        the write-ahead log until a later operation empties it; `verify` tries, and says so if it cannot.
        """
        return self._close(debit.entry, {"kind": "seal", "entry": debit.entry, "files": dict(files)})

    def abandon(self, entry: int) -> Head:
        """Give up a reserved debit: its key is erased, its amount stays spent."""
        return self._close(entry, {"kind": "abandon", "entry": entry})

    def _close(self, entry: int, body: dict[str, Any]) -> Head:
        with self._writing() as db:
            state = self._replay(db)
            if entry in state.pending:
                db.execute("DELETE FROM keys WHERE entry = ?", (entry,))
                head = self._append(db, body)
            elif body["kind"] == "seal" and state.sealed.get(entry) == body["files"]:
                head = state.head
            else:
                raise BudgetError(f"entry {entry} of the ledger {self.path.name} is not a reserved debit.")
        self._empty_log()
        return head

    def _empty_log(self) -> bool:
        """Empty the write-ahead log, which still holds erased keys; waits for readers, False where one stays."""
        with self._reading() as db:
            is_busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def disclose(self, what: str) -> Head:
        """Log an exact disclosure (an invariant, a k-anonymous file): no budget covers it."""
        with self._writing() as db:
            self._replay(db)
            return self._append(db, {"kind": "disclosure", "what": what})

    def log_refusal(self, what: str) -> Head:
        """Log that a call was refused for what the data hold: the operator has learnt something that no budget covers."""
        with self._writing() as db:
            self._replay(db)
            return self._append(db, {"kind": "refusal", "what": what})

    def verify(self, releases: Path | None = None) -> LedgerCheck:
        """Check the chain, the balance, the keys, that erased ones are gone, and the heads that releases recorded.

        Parameters
        ----------
        releases : Path, optional
            Directory under which every `manifest.json` and every measurements file is read: the entry that each records
            must be in the ledger and sealed, with the same bytes.
        """
        with self._reading() as db:
            db.execute("BEGIN")  # what is read belongs together, whoever writes meanwhile
            rows = db.execute("SELECT number, body, hash FROM entries ORDER BY number").fetchall()
            keyed = [entry for (entry,) in db.execute("SELECT entry FROM keys ORDER BY entry")]
            try:
                state = self._replay(db)
            except BudgetError as error:
                return LedgerCheck(n_entries=len(rows), n_releases=0, problems=(str(error),))
        problems = []
        if state.spent > state.granted:
            problems.append("more is spent than was granted")
        problems += [f"entry {n} has a key but is not pending" for n in keyed if n not in state.pending]
        problems += [f"entry {n} is pending but has no key" for n in state.pending if n not in keyed]
        if not self._empty_log():
            problems.append(
                "the write-ahead log may still hold erased keys while another program has the ledger open"
            )
        hashes = {number: row_hash for number, _, row_hash in rows}
        disclosed = {number for number, body, _ in rows if json.loads(body)["kind"] == "disclosure"}
        found = sorted(releases.rglob("*")) if releases is not None else []
        recorded = [record for path in found if (record := _record_of(path)) is not None]
        for record in recorded:
            problem = _record_problem(record, hashes, state.sealed, disclosed)
            if problem:
                problems.append(f"{record.name} {problem}")
        n_releases = sum(path.name == "manifest.json" for path in found)
        return LedgerCheck(n_entries=len(rows), n_releases=n_releases, problems=tuple(problems))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
                if mode != "wal":
                    raise InputError(
                        f"{self.path.name} lies where SQLite cannot keep a write-ahead log; move it to a local disk.",
                        file=self.path.name,
                    )
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA secure_delete = ON")
                yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            what = next((told for part, told in _SQLITE_PROBLEMS if part in str(error)), _DAMAGED)
            raise InputError(f"{self.path.name} {what}.", file=self.path.name) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it happens or nothing, and no other process writes meanwhile."""
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                if db.in_transaction:  # a full disk ends it by itself
                    db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _append(self, db: sqlite3.Connection, body: dict[str, Any]) -> Head:
        row = db.execute("SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        number, previous = (row[0] + 1, row[1]) if row else (0, "")
        text = _canonical({**body, "at": datetime.now(UTC).isoformat(timespec="seconds")})
        head = Head(number, _chained(previous, text))
        db.execute("INSERT INTO entries VALUES (?, ?, ?)", (head.entry, text, head.hash))
        return head

    def _replay(self, db: sqlite3.Connection) -> LedgerState:
        """Recompute the chain and the balance from the first entry."""
        previous = ""
        bodies = []
        for number, (stored, text, row_hash) in enumerate(
            db.execute("SELECT number, body, hash FROM entries ORDER BY number")
        ):
            if stored != number or row_hash != _chained(previous, text):
                raise BudgetError(
                    f"entry {number} of the ledger {self.path.name} was edited or removed; "
                    "restore the file from a copy that verifies."
                )
            previous = row_hash
            bodies.append(json.loads(text))
        if not bodies:
            raise BudgetError(f"the ledger {self.path.name} has no entries; restore it from a copy.")
        return _balance(bodies, Head(len(bodies) - 1, previous))


def _balance(bodies: list[dict[str, Any]], head: Head) -> LedgerState:
    """Add up the entries."""
    try:
        return _added_up(bodies, head)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        raise BudgetError(
            f"the ledger has an entry up to number {head.entry} that no version of louver writes; restore a copy."
        ) from None


def _added_up(bodies: list[dict[str, Any]], head: Head) -> LedgerState:
    granted = spent = Fraction(0)
    pending: dict[int, Mapping[str, Any]] = {}
    sealed: dict[int, Mapping[str, str]] = {}
    dataset = None
    for number, body in enumerate(bodies):
        match body["kind"]:
            case "grant":
                granted += _positive(body)
            case "reserve":
                spent += _positive(body)
                dataset = body["dataset"]
                pending[number] = body
            case "seal":
                pending.pop(body["entry"], None)
                sealed[body["entry"]] = body["files"]
            case "abandon":
                pending.pop(body["entry"], None)
    return LedgerState(
        measure=Measure(bodies[0]["measure"]),
        neighbours=Relation(bodies[0]["neighbours"]),
        granted=granted,
        spent=spent,
        pending=pending,
        sealed=sealed,
        disclosures=tuple(body["what"] for body in bodies if body["kind"] == "disclosure"),
        dataset=dataset,
        head=head,
    )


def _positive(body: Mapping[str, Any]) -> Fraction:
    amount = Fraction(body["amount"])
    if amount <= 0:
        raise ValueError
    return amount


def _canonical(body: Mapping[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _chained(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def _commitment(key: bytes) -> str:
    """Hash of a key: lets a restart notice a key that was exchanged, and gives nothing away."""
    return hashlib.sha256(b"louver key" + key).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What a published file says about the ledger entry that paid for it."""

    name: str
    head: Head | None
    sha256: str | None = None


def _record_of(path: Path) -> _Record | None:
    """Read a manifest or a measurements file; None for other files, and for what no ledger paid."""
    if path.name == "manifest.json":
        name = f"release {path.parent.name}"
        try:
            recorded = json.loads(path.read_text())["ledger_head"]
            return None if recorded is None else _Record(name=name, head=Head.parse(recorded))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return _Record(name=name, head=None)
    if path.suffix != ".parquet" or not path.is_file():
        return None
    try:
        told = json.loads((pq.read_schema(path).metadata or {}).get(b"louver", b"{}"))
        if told.get("entry") is None:
            return None
        head = Head(int(told["entry"]), str(told["entry_hash"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return _Record(name=f"file {path.parent.name}/{path.name}", head=head, sha256=digest)


def _record_problem(
    record: _Record, hashes: Mapping[int, str], sealed: Mapping[int, Mapping[str, str]], disclosed: set[int]
) -> str | None:
    """Say how a recorded head disagrees with the ledger; a disclosure is an entry that needs no seal."""
    head = record.head
    if head is None:
        return "records no ledger head"
    if head.entry not in hashes:
        return f"records entry {head.entry}, which the ledger lacks: the ledger was rolled back"
    if hashes[head.entry] != head.hash:
        return f"records another entry {head.entry}: the ledger's past was edited"
    if head.entry in disclosed:
        return None
    if head.entry not in sealed:
        return f"records entry {head.entry}, which is not sealed: its run was not finished, or given up"
    if record.sha256 is not None and record.sha256 not in sealed[head.entry].values():
        return f"is not the file that entry {head.entry} sealed"
    return None
