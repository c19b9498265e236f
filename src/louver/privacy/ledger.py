"""The ledger: what may be spent on one population's data, and what has been.

Answers: how much is granted, spent and left; what was published exactly; and, for a debit, the key from which its noise is
drawn. One SQLite file. Every event is one appended entry, chained by hash to the one before it, so the state is always the
replay of the entries. A debit is *reserved* with a fresh key before anything is drawn, and *sealed* once its files are in
place, which erases the key.

Notes
-----
An object holds a path and nothing else; each operation opens the file anew. It can be shared by threads
and carried over a fork.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from louver._version import __version__
from louver.errors import BudgetError, Cancelled, InputError, LouverError
from louver.privacy.budget import Loss, Measure, convert, fraction_of
from louver.privacy.ledger_check import SUFFIX, LedgerCheck, check_ledger
from louver.privacy.ledger_file import Entry, Head, LedgerFile, canonical, commitment, stamped
from louver.privacy.ledger_state import Event, LedgerState, Publication, Source, replay
from louver.privacy.ledger_succession import hand_over
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KEY_BYTES

__all__ = [
    "SUFFIX",
    "Debit",
    "Event",
    "Head",
    "KeyedHash",
    "Ledger",
    "LedgerCheck",
    "LedgerState",
    "Publication",
    "Source",
    "ledger_beside",
    "ledgers_admitting",
    "ledgers_in",
    "request_digest",
    "source_beside",
]

KeyedHash = Callable[[bytes], bytes]
"""Given the ledger's secret, a keyed hash of the confidential data set."""

Composed = Callable[[Sequence[Mapping[str, Any]]], None]
"""Given the invariants published before, refuses new ones that must not be published beside them."""

FORMAT = 2
"""Of a reserved debit. Version 0.1 wrote none, and named requests otherwise."""

LARGEST_DENOMINATOR = 10**3000
"""Amounts add up to a fraction that can still be written as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debit:
    """A reserved part of the budget and the key its noise is drawn from.

    Attributes
    ----------
    entry : int
        Number of the entry that reserved it.
    hash : str
        Hash of that entry.
    loss : Loss
        What was debited, in the ledger's measure and relation.
    is_resumed : bool
        Whether an earlier run reserved it and stopped before sealing.
    is_replayable : bool
        Whether the noise is a function of the key. If not, a resumed debit can only be sealed: its noise is never drawn again.
    pin : callable
        Told the keyed hash of the true answers before noise leaves the process; refuses other answers than those of an
        earlier run, whose noise was the same.
    """

    entry: int
    hash: str
    loss: Loss
    is_resumed: bool
    is_replayable: bool = True
    key: bytes = field(repr=False)
    pin: Callable[[str], None] = field(repr=False, compare=False)

    @property
    def head(self) -> Head:
        """Its entry, as manifests record it."""
        return Head(self.entry, self.hash)

    def check_drawable(self) -> None:
        """Refuse to draw the noise of an interrupted debit again where it would be other noise."""
        if self.is_resumed and not self.is_replayable:
            raise BudgetError(
                f"entry {self.entry} was interrupted and its noise cannot be drawn again; give it up with "
                f"`louver ledger abandon --entry {self.entry}` and pay anew."
            )


def ledger_beside(source: Path) -> Path:
    """Return where the ledger of a source file is kept by default."""
    return source.with_name(source.name + SUFFIX)


def source_beside(ledger: Path) -> Path | None:
    """Return the source file that a ledger lies beside by its name; None where there is none."""
    source = ledger.with_name(ledger.name.removesuffix(SUFFIX))
    return source if source != ledger and source.is_file() else None


def request_digest(request: Mapping[str, Any]) -> str:
    """Name exactly what is to be measured, by which version; the same name resumes the same debit."""
    return hashlib.sha256(canonical({"request": request, "version": __version__}).encode()).hexdigest()


def ledgers_in(folder: Path) -> Iterator[Ledger]:
    """The ledgers of a folder that can be opened, in order of their names."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with suppress(LouverError, OSError):
            if not path.is_symlink():
                yield Ledger(path)


def ledgers_admitting(dataset: KeyedHash, ledgers: Iterable[Ledger]) -> Iterator[Ledger]:
    """Those of some ledgers that know data of this content; one that is damaged knows nothing."""
    for ledger in ledgers:
        with suppress(LouverError):
            if ledger.has_admitted(dataset):
                yield ledger


class Ledger(LedgerFile):
    """One population's account.

    Parameters
    ----------
    path : Path
        The SQLite file; use `Ledger.create` to make one.

    Notes
    -----
    **Privacy**: debits compose sequentially, so all releases paid from a ledger together lose at most what
    was granted, for its neighbour relation. Concurrent debits are serialised by SQLite's write lock.
    """

    def __repr__(self) -> str:
        return f"Ledger({self.name!r})"

    @classmethod
    def create(
        cls,
        path: Path,
        measure: Measure,
        neighbours: Relation,
        grant: Fraction | None = None,
        *,
        population: str | None = None,
    ) -> Ledger:
        """Make a new ledger; its measure and neighbour relation stay as they are for good.

        Parameters
        ----------
        path : Path
        measure, neighbours
            What amounts mean.
        grant : Fraction, optional
            First amount.
        population : str, optional
            Whose data it is for; sources must then be admitted before they are used.
        """
        secret = secrets.token_bytes(KEY_BYTES)
        first = {"kind": "init", "measure": measure, "neighbours": neighbours, "secret": commitment(secret)}
        if population is not None:
            first["population"] = population
        texts = [stamped(first)]
        if grant is not None:
            texts.append(stamped({"kind": "grant", "amount": str(fraction_of(grant, "grant"))}))
        try:
            cls._write_new(path, secret, texts)
        except FileExistsError:
            raise InputError(
                f"{path.name} exists already; a ledger is never overwritten.", file=path.name
            ) from None
        return cls(path)

    def grant(self, amount: Fraction, measure: Measure) -> LedgerState:
        """Allow more to be spent; the measure must be the ledger's own."""
        with self._writing() as db:
            state = self._open_state(db)
            if measure is not state.measure:
                raise BudgetError(
                    f"the ledger {self.name} counts in {state.measure}; grant it in {state.measure}."
                )
            checked = fraction_of(amount, "grant")
            self._check_sum(state.granted + checked)
            self._append(db, {"kind": "grant", "amount": str(checked)})
            return replay(self._entries(db))

    def state(self) -> LedgerState:
        """Replay the entries; refuses a ledger whose past was edited."""
        with self._reading() as db:
            return replay(self._entries(db))

    def published_invariants(self) -> tuple[Mapping[str, Any], ...]:
        """What was published exactly so far, for programs; words alone where an older version kept no more."""
        return self.state().invariants

    def admit(
        self, dataset: KeyedHash, *, name: str, table: str | None = None, query: str | None = None
    ) -> LedgerState:
        """Let the ledger pay for another source about the same people; admitting it twice changes nothing.

        Parameters
        ----------
        dataset : KeyedHash
        name : str
            File name of the source, for `show`; no path and no password.
        table, query : str, optional
            Which part of a database.
        """
        self._check_alone(dataset)
        data_hash = self._hashed(dataset)
        with self._writing() as db:
            state = self._open_state(db)
            source = Source(dataset=data_hash, name=name, table=table, query=query)
            if state.sources.get(data_hash) != source:
                self._append(db, {"kind": "admit", **asdict(source)})
            return replay(self._entries(db))

    def has_admitted(self, dataset: KeyedHash) -> bool:
        """Whether this ledger has paid for, or admitted, data of just this content."""
        sources = self.state().sources
        return bool(sources) and self._hashed(dataset) in sources

    def check_affordable(
        self, loss: Loss, *, request: str | None = None, largest_unit: int | None = None
    ) -> None:
        """Refuse what `reserve` would refuse whatever the data are. To be called before the data are opened.

        Otherwise somebody without budget could ask again and again, and learn from the refusals that depend on the data.

        Parameters
        ----------
        loss, largest_unit
            As for `reserve`.
        request : str, optional
            Name of the request where it is known by now: a pending debit of that name costs nothing more. Without it, a pending
            debit of the same loss counts as such.
        """
        with self._reading() as db:
            state = self._open_state(db)
        for body in state.pending.values():
            if (body["asked"] == str(loss)) if request is None else (body["request"] == request):
                return
        self._check_balance(state, self._converted(loss, state, largest_unit))

    def check_data(self, dataset: KeyedHash) -> None:
        """Refuse data that `reserve` would refuse as other data, before they are read."""
        self._check_alone(dataset)
        self._check_dataset(self.state(), self._hashed(dataset))

    def is_pending(self, request: str) -> bool:
        """Whether an earlier run reserved a debit under this name and did not seal it."""
        return any(body["request"] == request for body in self.state().pending.values())

    def log_refusal(self, what: str) -> Head:
        """Log that an operator was refused for a reason that lies in the data: it told something about them.

        Parameters
        ----------
        what : str
            The kind of refusal, such as "topdown: a record outside the domain"; never a value or a message.
        """
        with self._writing() as db:
            self._entries(db)
            return self._append(db, {"kind": "refusal", "what": what})

    @contextmanager
    def logging_refusals(self, what: str) -> Iterator[None]:
        """Log every refusal of data inside, before it is told; where it cannot be logged it is not told."""
        try:
            yield
        except (BudgetError, Cancelled):
            raise
        except LouverError:
            self.log_refusal(what)
            raise

    def reserve(
        self,
        loss: Loss,
        *,
        request: str,
        purpose: str,
        dataset: KeyedHash,
        largest_unit: int | None = None,
        is_replayable: bool = True,
        publishes: Sequence[Publication] = (),
        composed: Composed | None = None,
    ) -> Debit:
        """Debit the ledger and return the key for the noise, before any noise is drawn.

        Parameters
        ----------
        loss : Loss
            What the measurements cost, in any measure and relation that can be converted to the ledger's.
        request : str
            `request_digest` of what is to be measured. A debit reserved under the same name for the same data and not yet
            sealed is returned again, with the same key.
        purpose : str
            What the debit is for, in words.
        dataset : KeyedHash
            Binds the ledger to its data at the first debit; later debits must come from data that it has admitted.
        largest_unit : int, optional
            Most records in a unit, where losses are converted between records and units.
        is_replayable : bool
            Whether the noise is a function of the key; a debit of other noise can be taken up again to be sealed, not to draw.
        publishes : sequence of Publication
            What is published exactly with it: logged with the debit, all or nothing, once.
        composed : callable, optional
            Given all invariants published so far, in the same transaction, raises where these must not join them.
        """
        self._check_alone(dataset)
        data_hash = self._hashed(dataset)
        with self._writing() as db:
            entries = self._entries(db)
            state = self._open_state(db, entries)
            self._check_dataset(state, data_hash)
            if composed is not None:
                composed(state.invariants)
            debit = self._resumed(
                db, entries, state, request, (str(loss), largest_unit, is_replayable), data_hash
            )
            if debit is None:
                debited = self._converted(loss, state, largest_unit)
                self._check_balance(state, debited)
                body = {
                    "kind": "reserve",
                    "format": FORMAT,
                    "amount": str(debited.amount),
                    "asked": str(loss),
                    "largest_unit": largest_unit,
                    "replayable": is_replayable,
                    "request": request,
                    "purpose": purpose,
                    "dataset": data_hash,
                }
                debit = self._reserved(db, body, debited)
            self._publish(db, state, debit.entry, publishes, data_hash)
            return debit

    def _open_state(self, db: sqlite3.Connection, entries: Sequence[Entry] | None = None) -> LedgerState:
        """The state of a ledger that has no successor."""
        state = replay(self._entries(db) if entries is None else entries)
        if state.successor is not None:
            raise BudgetError(
                f"the ledger {self.name} was succeeded by {state.successor} and takes no more entries; use that."
            )
        return state

    def is_reserved_for(self, entry: int, dataset: KeyedHash) -> bool:
        """Whether a debit, sealed or not, was reserved for these data."""
        return self.state().datasets.get(entry) == self._hashed(dataset)

    def _hashed(self, dataset: KeyedHash) -> str:
        with self._reading() as db:
            secret = self._secret(db, self._entries(db))
        return dataset(secret).hex()  # takes long, so the file is not held meanwhile

    def _check_alone(self, dataset: KeyedHash) -> None:
        """Refuse a second budget for data that another ledger of the same folder pays for."""
        if self.state().sources:
            return
        others = (other for other in ledgers_in(self.path.parent) if other.name != self.name)
        for other in ledgers_admitting(dataset, others):
            raise BudgetError(
                f"{other.name} in the same folder pays for these data already; use that one, with --ledger."
            )

    def _check_dataset(self, state: LedgerState, data_hash: str) -> None:
        if data_hash in state.sources:
            return
        if state.is_bound or state.population is not None:
            raise BudgetError(
                f"the ledger {self.name} has not admitted these data: they are other data, or they changed since; where "
                f"they are about the same people, `louver ledger admit {self.name} DATA` adds a copy or another table, "
                f"and `louver ledger succeed {self.name} NEW` carries on for data that changed."
            )

    def _resumed(
        self,
        db: sqlite3.Connection,
        entries: Sequence[Entry],
        state: LedgerState,
        request: str,
        asked: tuple[str, int | None, bool],
        data_hash: str,
    ) -> Debit | None:
        """Return a debit that an earlier run reserved and did not seal; None where there is none."""
        for entry, body in state.pending.items():
            if body["request"] == request:
                break
            if "format" not in body:
                raise BudgetError(
                    f"entry {entry} of the ledger {self.name} was reserved by an earlier version of louver and is pending; "
                    f"finish it with that version, or give it up: `louver ledger abandon {self.name} --entry {entry}`."
                )
        else:
            return None
        is_replayable = self._check_resumable(entry, body, asked)
        if body["dataset"] != data_hash:
            raise BudgetError(
                f"entry {entry} of the ledger {self.name} was reserved for other data that it has admitted, and its noise must not "
                f"meet these; finish it with those data, or give it up: `louver ledger abandon {self.name} --entry {entry}`."
            )
        row = db.execute("SELECT key FROM keys WHERE entry = ?", (entry,)).fetchone()
        if row is None or not isinstance(row[0], bytes) or commitment(row[0]) != body["key"]:
            raise BudgetError(
                f"the ledger {self.name} holds no valid key for entry {entry}; abandon the entry."
            )
        return Debit(
            entry=entry,
            hash=entries[entry].head.hash,
            loss=Loss(Fraction(body["amount"]), state.measure, state.neighbours),
            is_resumed=True,
            is_replayable=is_replayable,
            key=row[0],
            pin=partial(self._pin, entry),
        )

    def _check_resumable(
        self, entry: int, body: Mapping[str, Any], asked: tuple[str, int | None, bool]
    ) -> bool:
        """Refuse to take up a debit for something else; return whether its noise can be drawn again."""
        loss, largest_unit, is_replayable = asked
        if not body["replayable"] and is_replayable:
            raise BudgetError(
                f"entry {entry} was interrupted and its noise cannot be drawn again; abandon it, pay anew."
            )
        # Version 0.1 logged every debit as replayable, whoever drew the noise; what is asked for now is the truth.
        is_same_noise = body["replayable"] == is_replayable or "format" not in body
        if (body["asked"], body["largest_unit"]) != (loss, largest_unit) or not is_same_noise:
            raise BudgetError(
                f"entry {entry} of the ledger {self.name} was reserved for another loss or other noise; "
                "finish or abandon it first."
            )
        return is_replayable

    def _converted(self, loss: Loss, state: LedgerState, largest_unit: int | None) -> Loss:
        return convert(loss, state.measure, state.neighbours, largest_unit=largest_unit)

    def _check_balance(self, state: LedgerState, debited: Loss) -> None:
        if debited.amount > state.remaining:
            raise BudgetError(
                f"the ledger {self.name} has {state.measure} {state.remaining} left and "
                f"{debited.amount} is asked for; grant more or ask for less.",
                requested=debited.amount,
                remaining=state.remaining,
            )
        self._check_sum(state.spent + debited.amount)

    def _check_sum(self, total: Fraction) -> None:
        if total.denominator > LARGEST_DENOMINATOR:
            raise BudgetError(
                f"the amounts of the ledger {self.name} add up to a fraction too long to write; use round amounts."
            )

    def _reserved(self, db: sqlite3.Connection, body: Mapping[str, Any], debited: Loss) -> Debit:
        key = secrets.token_bytes(KEY_BYTES)
        head = self._append(db, {**body, "key": commitment(key)})
        db.execute("INSERT INTO keys VALUES (?, ?, NULL)", (head.entry, key))
        return Debit(
            entry=head.entry,
            hash=head.hash,
            loss=debited,
            is_resumed=False,
            is_replayable=body["replayable"],
            key=key,
            pin=partial(self._pin, head.entry),
        )

    def _publish(
        self,
        db: sqlite3.Connection,
        state: LedgerState,
        entry: int,
        publishes: Sequence[Publication],
        data_hash: str,
    ) -> None:
        """Log what is published exactly with a debit, unless an earlier run did."""
        known = {one.what for one in state.published if one.entry == entry}
        for one in publishes:
            if one.what not in known:
                self._append(
                    db, {"kind": "disclosure", **one.to_dict(), "debit": entry, "dataset": data_hash}
                )

    def _pin(self, entry: int, answers: str) -> None:
        """Remember the keyed hash of a debit's true answers, or refuse another one than was remembered.

        The same noise on other answers would give away their difference.
        """
        with self._writing() as db:
            row = db.execute("SELECT answers FROM keys WHERE entry = ?", (entry,)).fetchone()
            if row is None or row[0] not in (None, answers):
                raise BudgetError(
                    f"entry {entry} of the ledger {self.name} was reserved for other answers, or is closed; "
                    "nothing was written."
                )
            db.execute("UPDATE keys SET answers = ? WHERE entry = ?", (answers, entry))

    def seal(self, debit: Debit, files: Mapping[str, str], *, place: str | None = None) -> Head:
        """Record the finished files of a debit (name to sha256), the name of their folder, and erase its key.

        Sealing twice with the same files changes nothing. Where another program keeps the ledger open meanwhile, the key
        stays in the write-ahead log until a later operation empties it; `verify` tries, and says so if it cannot.
        """
        named = {} if place is None else {"place": place}
        return self._close(debit.entry, {"kind": "seal", "entry": debit.entry, "files": dict(files), **named})

    def abandon(self, entry: int) -> Head:
        """Give up a reserved debit: its key is erased, its amount stays spent."""
        return self._close(entry, {"kind": "abandon", "entry": entry})

    def _close(self, entry: int, body: dict[str, Any]) -> Head:
        with self._writing() as db:
            state = replay(self._entries(db))
            if entry in state.pending:
                db.execute("DELETE FROM keys WHERE entry = ?", (entry,))
                head = self._append(db, body)
            elif body["kind"] == "seal" and state.sealed.get(entry) == body["files"]:
                head = state.head
            else:
                raise BudgetError(f"entry {entry} of the ledger {self.name} is not a reserved debit.")
        self._empty_log()
        return head

    def disclose(
        self,
        what: str,
        *,
        dataset: KeyedHash | None = None,
        invariants: Sequence[Mapping[str, Any]] = (),
    ) -> Head:
        """Log an exact disclosure (an invariant, a k-anonymous file): no budget covers it.

        Parameters
        ----------
        what : str
            In words.
        dataset : KeyedHash, optional
            The data it is about: binds the ledger as a debit does, and other data are refused.
        invariants : sequence of mapping
            The same for programs, as JSON.
        """
        data_hash = None
        if dataset is not None:
            self._check_alone(dataset)
            data_hash = self._hashed(dataset)
        with self._writing() as db:
            state = self._open_state(db)
            if data_hash is not None:
                self._check_dataset(state, data_hash)
            published = Publication(what=what, invariants=tuple(invariants))
            return self._append(db, {"kind": "disclosure", **published.to_dict(), "dataset": data_hash})

    def succeed(self, path: Path) -> Ledger:
        """Carry on in a new ledger, for data that changed, and take no more debits in this one.

        The new ledger starts with what was granted, spent, published, refused and admitted here. The last entry here names the
        first one there, which names the last but one here: one chain covers both. A call that was interrupted is repeated.
        """
        hand_over(self, path)
        return Ledger(path)

    def verify(self, releases: Path | None = None) -> LedgerCheck:
        """Check the chain, the balance, the keys, that erased ones are gone, and the heads that releases recorded.

        Parameters
        ----------
        releases : Path, optional
            Directory under which every `manifest.json` and every measurements file is read: the entry that each records
            must be in the ledger (or one before it, where that lies beside it) and sealed, with the same bytes.
        """
        return check_ledger(self, releases)
