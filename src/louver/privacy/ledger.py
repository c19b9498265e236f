"""The ledger: how much may be spent on one population's data, and how much has been spent.

It records what has been granted and spent, what was published exactly, and the key from which the noise of a debit is drawn. A ledger is
one SQLite file. Every event is one appended entry, chained by hash to the one before it, so the state is always the replay of the entries.
A debit is *reserved* with a fresh key before anything is drawn, and *sealed* once its files are in place, which erases the key.

Notes
-----
An object holds a path and nothing else; each operation opens the file again. It can be shared by threads
and carried over a fork.
"""

from __future__ import annotations

import hashlib
import hmac
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
from louver.data.parsing_once import is_parsing_once
from louver.data.people import Common, Fingerprint
from louver.errors import BudgetError, Cancelled, InputError, LouverError
from louver.privacy.budget import Loss, Measure, convert, fraction_of
from louver.privacy.ledger_check import LedgerCheck, check_ledger
from louver.privacy.ledger_file import (
    SUFFIX,
    Entry,
    Head,
    LedgerFile,
    canonical,
    commitment,
    ledger_paths,
    stamped,
)
from louver.privacy.ledger_people import (
    UNKNOWN,
    Met,
    People,
    copy_sketches,
    in_words,
    keep_sketch,
    nearest,
    read_sketch,
)
from louver.privacy.ledger_state import FORMAT, AdmittedSource, Event, LedgerState, Publication, replay
from louver.privacy.ledger_succession import hand_over
from louver.privacy.neighbours import Relation
from louver.privacy.noise import KEY_BYTES

__all__ = [
    "SUFFIX",
    "AdmittedSource",
    "Debit",
    "Event",
    "Head",
    "KeyedHash",
    "Ledger",
    "LedgerCheck",
    "LedgerState",
    "People",
    "Publication",
    "check_second",
    "ledger_next_to",
    "ledgers_admitting",
    "ledgers_in",
    "request_digest",
    "source_next_to",
]

KeyedHash = Callable[[bytes], bytes]
"""Receives the ledger's secret, and returns a keyed hash of the confidential data set."""

Composed = Callable[[Sequence[Mapping[str, Any]]], None]
"""Receives the invariants published earlier, and refuses new ones that must not be published with them."""

PEOPLE_FORMAT = 1
"""Kind of an entry that records the people in a source."""

LARGEST_DENOMINATOR = 10**3000
"""Limit on amounts, so that their sum is a fraction that can still be written as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debit:
    """A reserved part of the budget, and the key from which its noise is drawn.

    Attributes
    ----------
    entry : int
        Number of the entry that reserved it.
    hash : str
        Hash of that entry.
    loss : Loss
        The amount debited, in the ledger's measure and relation.
    is_resumed : bool
        Whether an earlier run reserved it and stopped before sealing.
    is_replayable : bool
        Whether the noise is a function of the key. If not, a resumed debit can only be sealed: its noise is never drawn again.
    pin : callable
        Receives the keyed hash of the true answers before noise leaves the process; refuses answers that differ from those of an earlier
        run with the same noise.
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
        """The entry of the debit, as recorded in manifests."""
        return Head(self.entry, self.hash)

    def check_drawable(self) -> None:
        """Refuse to draw the noise of an interrupted debit again if it would differ."""
        if self.is_resumed and not self.is_replayable:
            raise BudgetError(
                f"entry {self.entry} was interrupted and its noise cannot be drawn again; abandon it with "
                f"`louver ledger abandon --entry {self.entry}` and pay again."
            )


def ledger_next_to(source: Path) -> Path:
    """Return the default path of the ledger of a source file."""
    return source.with_name(source.name + SUFFIX)


def source_next_to(ledger: Path) -> Path | None:
    """Return the source file next to a ledger, as its name suggests; None if there is none."""
    source = ledger.with_name(ledger.name.removesuffix(SUFFIX))
    return source if source != ledger and source.is_file() else None


def request_digest(request: Mapping[str, Any]) -> str:
    """A digest of exactly what is to be measured, and by which version; the same digest resumes the same debit."""
    return hashlib.sha256(canonical({"request": request, "version": __version__}).encode()).hexdigest()


def ledgers_in(folder: Path) -> Iterator[Ledger]:
    """The ledgers of a folder that can be opened, also through links, in order of their names."""
    for path in ledger_paths(folder):
        with suppress(LouverError, OSError):
            yield Ledger(path)


def _secrets_of(ledgers: Iterable[Ledger]) -> Iterator[bytes]:
    """The keys under which those ledgers that have recorded data know them."""
    for ledger in ledgers:
        with suppress(LouverError):
            if ledger.state().sources:
                yield ledger._read_secret()


def ledgers_admitting(dataset: KeyedHash, ledgers: Iterable[Ledger]) -> Iterator[Ledger]:
    """The ledgers that have recorded data with this content; a damaged ledger counts as having recorded none."""
    ledgers = [*ledgers]
    if isinstance(dataset, Fingerprint):
        dataset.expect(_secrets_of(ledgers))
    for ledger in ledgers:
        with suppress(LouverError):
            if ledger.has_admitted(dataset):
                yield ledger


def check_second(
    people: People,
    folders: Iterable[Path],
    *,
    payer: Ledger | None = None,
    is_new_population: bool = False,
) -> tuple[str, ...]:
    """Refuse a second budget for people for whom another ledger in these folders pays, or may pay.

    Parameters
    ----------
    people : People
        The people of data that `payer` has not recorded.
    folders : iterable of Path
    payer : Ledger, optional
        The ledger that will pay; None if it does not exist yet.
    is_new_population : bool
        Whether the steward states that they are other people.

    Returns
    -------
    tuple of str
        The ledgers whose people are different only according to the steward.

    Raises
    ------
    BudgetError
        If these people are in another ledger, or may be. Finding nobody is no proof, since values change: the steward must confirm that
        they are other people.
    """
    apart: dict[str, None] = {}
    for other in _others(folders, payer):
        common = other.common(people)
        if common is None or (
            payer is not None
            and not _is_found(common)
            and (_is_apart(payer, other) or payer.has_people(people))
        ):
            continue
        if not is_new_population:
            raise BudgetError(
                f"{in_words(common, people.name, f'those that {other.name} pays for')}; let that ledger pay (`louver ledger "
                f"admit {other.name} {people.name}`), or say with --new-population that they are other people (`louver ledger "
                "init`, or `admit` for a ledger that exists)."
            )
        apart[other.identity] = None
    return tuple(apart)


def _others(folders: Iterable[Path], payer: Ledger | None) -> Iterator[Ledger]:
    """Ledgers of some folders, except the payer and its predecessors.

    Of a ledger and its successors, the one that still pays is listed; if it is in none of the folders, its predecessor is listed, because
    its people still have a budget.
    """
    found: dict[str, Ledger] = {}
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        for other in ledgers_in(folder):
            with suppress(LouverError):
                if other.state().successor is None or other.identity not in found:
                    found[other.identity] = other
    own = None if payer is None else payer.identity
    return (other for identity, other in found.items() if identity != own)


def _is_found(common: Common) -> bool:
    return common.is_same or bool(common.share)


def _is_apart(one: Ledger, other: Ledger) -> bool:
    """Whether the steward declared, in either ledger, that the two are about different people."""
    return other.identity in one.state().apart or one.identity in other.state().apart


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
        """Make a new ledger; its measure and neighbour relation are fixed permanently.

        Parameters
        ----------
        path : Path
        measure, neighbours
            Meaning of the amounts.
        grant : Fraction, optional
            First amount.
        population : str, optional
            The population whose data it covers; sources must then be admitted before they are used.
        """
        secret = secrets.token_bytes(KEY_BYTES)
        first = {
            "kind": "init",
            "format": FORMAT,
            "measure": measure,
            "neighbours": neighbours,
            "secret": commitment(secret),
        }
        if population is not None:
            first["population"] = population
        texts = [stamped(first)]
        if grant is not None:
            texts.append(stamped({"kind": "grant", "amount": str(fraction_of(grant, "grant"))}))
        try:
            cls._write_new(path, secret, texts)
        except FileExistsError:
            raise InputError(
                f"{path.name} already exists; a ledger is never overwritten.", file=path.name
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
        """What was published exactly so far, for programs."""
        return self.state().invariants

    @property
    def identity(self) -> str:
        """The identity that a ledger shares with its successors."""
        return commitment(self._read_secret())

    @property
    def people_key(self) -> bytes:
        """The key of the hashes by which people are recognised."""
        return hmac.digest(self._read_secret(), b"people of a ledger", "sha256")

    def common(self, people: People) -> Common | None:
        """The largest overlap of some people with those of any source of this ledger; None if it has recorded no source.

        A ledger that has not recorded data yet is assumed to be for the file next to it, as its name suggests.
        """
        state, key = self.state(), self.people_key
        sketches = [read_sketch(self.path.resolve(), digest) for digest in state.people.values()]
        known = [sketch for sketch in sketches if sketch is not None]
        n_unknown = len(sketches) - len(known) + len(set(state.sources) - set(state.people))
        records_file = source_next_to(self.path)
        if records_file is not None and (n_unknown or not state.sources):
            sketch = People(records_file).sketch(key)
            n_unknown = 1 if sketch is None else n_unknown
            known += [] if sketch is None else [sketch]
        return nearest([*people.compare(key, known), *[UNKNOWN] * min(1, n_unknown)])

    def has_people(self, people: People) -> bool:
        """Whether some of them are known to be in a source that this ledger has recorded."""
        common = self.common(people) if self.state().sources else None
        return common is not None and _is_found(common)

    def admit(
        self,
        dataset: KeyedHash,
        *,
        name: str,
        table: str | None = None,
        query: str | None = None,
        people: People | None = None,
        is_new_population: bool = False,
    ) -> LedgerState:
        """Let the ledger pay for another source about the same people; admitting it twice changes nothing.

        Parameters
        ----------
        dataset : KeyedHash
        name : str
            File name of the source, for `show`; no path and no password.
        table, query : str, optional
            Part of a database.
        people : People, optional
            The people in the data. Without them, the data are recognised by their content alone.
        is_new_population : bool
            Whether the steward states that they are different from the people of every other ledger in the folder.
        """
        self.expect_others(dataset)
        data_hash = self._hashed(dataset)
        apart = self._check_source(
            dataset, data_hash, people, is_admitting=True, is_new_population=is_new_population
        )
        met = self._met(data_hash, people, apart)
        with self._writing() as db:
            state = self._open_state(db)
            source = AdmittedSource(dataset=data_hash, name=name, table=table, query=query)
            if state.sources.get(data_hash) != source:
                self._append(db, {"kind": "admit", **asdict(source)})
            self._note(db, state, data_hash, met)
            return replay(self._entries(db))

    def has_admitted(self, dataset: KeyedHash) -> bool:
        """Whether this ledger has paid for, or admitted, data with exactly this content."""
        sources = self.state().sources
        return bool(sources) and self._hashed(dataset) in sources

    def check_affordable(
        self, loss: Loss, *, request: str | None = None, largest_unit: int | None = None
    ) -> None:
        """Refuse what `reserve` would refuse regardless of the data. Call it before the data are opened.

        Otherwise someone without budget could ask repeatedly and learn from the refusals that depend on the data.

        Parameters
        ----------
        loss, largest_unit
            As for `reserve`.
        request : str, optional
            Digest of the request, if known: a pending debit with that digest costs nothing more. Without it, a pending debit of the same
            loss is assumed to be for it.
        """
        with self._reading() as db:
            state = self._open_state(db)
        for body in state.pending.values():
            if (body["asked"] == str(loss)) if request is None else (body["request"] == request):
                return
        self._check_balance(state, self._converted(loss, state, largest_unit))

    def check_data(self, dataset: KeyedHash, people: People | None = None) -> None:
        """Refuse, before they are read, data that `reserve` would refuse as not admitted or as another ledger's."""
        data_hash = self._hashed(dataset)
        self._check_source(dataset, data_hash, people)
        self._meet(data_hash, people)

    def expect_others(self, dataset: KeyedHash) -> None:
        """Let data be hashed once for this ledger and for those in its folder, if it is to pay for its first data.

        Other ledgers are only asked about data that this one has not recorded.
        """
        if isinstance(dataset, Fingerprint) and not self.state().sources:
            dataset.expect(_secrets_of(_others([self.path.parent], self)))

    def meet(self, dataset: KeyedHash, people: People) -> None:
        """Sketch people who will be recorded, while their records are being parsed anyway; nothing is refused or recorded yet."""
        self._meet(self._hashed(dataset), people)

    def _meet(self, data_hash: str, people: People | None) -> None:
        if people is not None and is_parsing_once() and data_hash not in self.state().people:
            people.sketch(self.people_key)

    def is_pending(self, request: str) -> bool:
        """Whether an earlier run reserved a debit for this request and did not seal it."""
        return any(body["request"] == request for body in self.state().pending.values())

    def log_refusal(self, what: str) -> Head:
        """Log a refusal that depends on the data, because it revealed something about them to the operator.

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
        """Log every refusal of data in the block before it is reported; if it cannot be logged, it is not reported."""
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
        people: People | None = None,
        largest_unit: int | None = None,
        is_replayable: bool = True,
        publishes: Sequence[Publication] = (),
        composed: Composed | None = None,
    ) -> Debit:
        """Debit the ledger and return the key for the noise, before any noise is drawn.

        Parameters
        ----------
        loss : Loss
            The cost of the measurements, in any measure and relation that can be converted to the ledger's.
        request : str
            `request_digest` of what is to be measured. A debit reserved for the same request and the same data and not yet sealed is
            returned again, with the same key.
        purpose : str
            Purpose of the debit, in words.
        dataset : KeyedHash
            Binds the ledger to its data at the first debit; later debits must come from data that it has admitted.
        people : People, optional
            The people in the data; recorded if the ledger has not recorded them yet.
        largest_unit : int, optional
            Maximum number of records in a unit, if losses are converted between records and units.
        is_replayable : bool
            Whether the noise is a function of the key; a debit with other noise can be resumed for sealing only, not for drawing.
        publishes : sequence of Publication
            What is published exactly with it: logged once with the debit, all or nothing.
        composed : callable, optional
            Receives all invariants published so far, in the same transaction, and raises if these must not be added.
        """
        data_hash = self._hashed(dataset)
        self._check_source(dataset, data_hash, people)
        met = self._met(data_hash, people)
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
            self._note(db, state, data_hash, met)
            return debit

    def _open_state(self, db: sqlite3.Connection, entries: Sequence[Entry] | None = None) -> LedgerState:
        """The state of a ledger that has no successor."""
        state = replay(self._entries(db) if entries is None else entries)
        if state.successor is not None:
            raise BudgetError(
                f"the ledger {self.name} was succeeded by {state.successor} and is closed; use that one."
            )
        return state

    def is_reserved_for(self, entry: int, dataset: KeyedHash) -> bool:
        """Whether a debit, sealed or not, was reserved for these data."""
        return self.state().datasets.get(entry) == self._hashed(dataset)

    def _hashed(self, dataset: KeyedHash) -> str:
        return dataset(
            self._read_secret()
        ).hex()  # this takes long, so the file is not locked in the meantime

    def _read_secret(self) -> bytes:
        with self._reading() as db:
            return self._secret(db, self._entries(db))

    def _check_source(
        self,
        dataset: KeyedHash,
        data_hash: str,
        people: People | None,
        *,
        is_admitting: bool = False,
        is_new_population: bool = False,
    ) -> tuple[str, ...]:
        """Refuse data of another ledger, and data that are not admitted; return the ledgers whose people the steward declared different."""
        folders = [self.path.parent, *([] if people is None or people.folder is None else [people.folder])]
        self._check_copies(folders)
        state = self.state()
        if data_hash in state.sources:
            return ()
        others = _others([self.path.parent], self)
        for other in ledgers_admitting(dataset, others):
            raise BudgetError(
                f"{other.name} in the same folder pays for these data already; use that one, with --ledger."
            )
        if not is_admitting:
            if people is not None and (state.is_bound or state.population is not None):
                self._check_shape(people)
            self._check_dataset(state, data_hash)
        if people is None:
            return ()
        return check_second(people, folders, payer=self, is_new_population=is_new_population)

    def _check_copies(self, folders: Iterable[Path]) -> None:
        """Refuse to pay if a copy of this ledger has entries that it lacks, because what was spent there is missing here.

        A copy whose entries are all in this ledger, such as a backup, does no harm.
        """
        own = self._all_entries()
        for folder in dict.fromkeys(folder.resolve() for folder in folders):
            for other in ledgers_in(folder):
                if other.path.samefile(self.path):  # another process may have paid from it in the meantime
                    continue
                with suppress(InputError):  # not a ledger; a ledger whose entries were edited is refused
                    entries = other._all_entries()
                    if entries[0].head == own[0].head and entries[-1].head not in [one.head for one in own]:
                        raise BudgetError(
                            f"{other.name} is a copy of the ledger {self.name} with entries that {self.name} lacks; use the one that "
                            "has paid for every release, and move the other out of the folder."
                        )

    def _all_entries(self) -> list[Entry]:
        with self._reading() as db:
            return self._entries(db)

    def _met(self, data_hash: str, people: People | None, apart: tuple[str, ...] = ()) -> Met | None:
        """What to record about the people in the data, without locking the file; None if there is nothing."""
        state = self.state()
        if people is None or data_hash in state.people:
            return None
        sketch = people.sketch(self.people_key)
        if sketch is None:
            return None
        what = ""
        if data_hash not in state.sources and state.sources:
            common = self.common(people)
            what = "" if common is None else in_words(common, people.name, "those of earlier sources")
        return Met(sketch=keep_sketch(self.path.resolve(), sketch), what=what, apart=apart)

    def _note(self, db: sqlite3.Connection, state: LedgerState, data_hash: str, met: Met | None) -> None:
        """Record the people in the data, unless another run has done so in the meantime."""
        if met is not None and data_hash not in state.people:
            body = {"kind": "people", "format": PEOPLE_FORMAT, "dataset": data_hash, **asdict(met)}
            self._append(db, body)

    def _check_shape(self, people: People) -> None:
        """Refuse data that are not admitted; if they are about the same people, the message says how to admit them."""
        common = self.common(people)
        if common is not None and _is_found(common):
            raise BudgetError(
                f"the ledger {self.name} has not admitted these data: {in_words(common, people.name, 'those that it pays for')}; "
                f"`louver ledger admit {self.name} {people.name}` lets it pay for this version of them, and `louver ledger succeed "
                f"{self.name} NEW` continues for data that changed."
            )

    def _check_dataset(self, state: LedgerState, data_hash: str) -> None:
        if data_hash in state.sources:
            return
        if state.is_bound or state.population is not None:
            raise BudgetError(
                f"the ledger {self.name} has not admitted these data: they are other data, or they changed since; if they are about the "
                f"same people, `louver ledger admit {self.name} DATA` adds a copy or another table, "
                f"and `louver ledger succeed {self.name} NEW` continues for data that changed."
            )

    def _resumed(
        self,
        db: sqlite3.Connection,
        entries: Sequence[Entry],
        state: LedgerState,
        request: str,
        request_key: tuple[str, int | None, bool],
        data_hash: str,
    ) -> Debit | None:
        """Return a debit that an earlier run reserved and did not seal; None if there is none."""
        entry = next((n for n, body in state.pending.items() if body["request"] == request), None)
        if entry is None:
            return None
        body = state.pending[entry]
        self._check_resumable(entry, body, request_key)
        if body["dataset"] != data_hash:
            raise BudgetError(
                f"entry {entry} of the ledger {self.name} was reserved for other data that it has admitted, and its noise must not be "
                f"used for these; finish it with those data, or give it up: `louver ledger abandon {self.name} --entry {entry}`."
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
            is_replayable=request_key[2],
            key=row[0],
            pin=partial(self._pin, entry),
        )

    def _check_resumable(
        self, entry: int, body: Mapping[str, Any], request_key: tuple[str, int | None, bool]
    ) -> None:
        """Refuse to resume a debit for something else."""
        _, _, is_replayable = request_key
        if not body["replayable"] and is_replayable:
            raise BudgetError(
                f"entry {entry} was interrupted and its noise cannot be drawn again; abandon it, pay anew."
            )
        if (body["asked"], body["largest_unit"], body["replayable"]) != request_key:
            raise BudgetError(
                f"entry {entry} of the ledger {self.name} was reserved for another loss or other noise; "
                "finish or abandon it first."
            )

    def _converted(self, loss: Loss, state: LedgerState, largest_unit: int | None) -> Loss:
        return convert(loss, state.measure, state.neighbours, largest_unit=largest_unit)

    def _check_balance(self, state: LedgerState, debited: Loss) -> None:
        if debited.amount > state.remaining:
            raise BudgetError(
                f"the ledger {self.name} has {state.measure} {state.remaining} left, and {debited.amount} was requested; grant more or "
                f"request less.",
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
        """Log what is published exactly with a debit, unless an earlier run has done so."""
        known = {one.what for one in state.published if one.entry == entry}
        for one in publishes:
            if one.what not in known:
                self._append(
                    db, {"kind": "disclosure", **one.to_dict(), "debit": entry, "dataset": data_hash}
                )

    def _pin(self, entry: int, answers: str) -> None:
        """Record the keyed hash of a debit's true answers, or refuse one that differs from the recorded hash.

        The same noise on other answers would disclose their difference.
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

        Sealing twice with the same files changes nothing. If another program has the ledger open at the time, the key
        stays in the write-ahead log until a later operation empties it; `verify` tries, and says so if it cannot.
        """
        extra = {} if place is None else {"place": place}
        return self._close(debit.entry, {"kind": "seal", "entry": debit.entry, "files": dict(files), **extra})

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
        people: People | None = None,
        invariants: Sequence[Mapping[str, Any]] = (),
    ) -> Head:
        """Log an exact disclosure (an invariant, a k-anonymous file): no budget covers it.

        Parameters
        ----------
        what : str
            The disclosure in words.
        dataset : KeyedHash, optional
            The data that it describes; these bind the ledger like a debit, and other data are refused.
        people : People, optional
            The people in the data, as for `reserve`.
        invariants : sequence of mapping
            The same for programs, as JSON.
        """
        data_hash = met = None
        if dataset is not None:
            self.expect_others(dataset)
            data_hash = self._hashed(dataset)
            self._check_source(dataset, data_hash, people)
            met = self._met(data_hash, people)
        with self._writing() as db:
            state = self._open_state(db)
            if data_hash is not None:
                self._check_dataset(state, data_hash)
            published = Publication(what=what, invariants=tuple(invariants))
            head = self._append(db, {"kind": "disclosure", **published.to_dict(), "dataset": data_hash})
            if data_hash is not None:
                self._note(db, state, data_hash, met)
            return head

    def succeed(self, path: Path) -> Ledger:
        """Continue in a new ledger, for data that changed, and take no more debits in this one.

        The new ledger starts with everything granted, spent, published, refused and admitted in this one. The last entry of this ledger
        names the first entry of the new one, which names the last but one entry of this ledger, so that one chain covers both. To finish an
        interrupted call, repeat it.
        """
        copy_sketches(self.path, path, self.state().people.values())
        hand_over(self, path)
        return Ledger(path)

    def verify(self, releases: Path | None = None) -> LedgerCheck:
        """Check the chain, the balance, the keys (erased ones must be gone) and the heads that releases recorded.

        Parameters
        ----------
        releases : Path, optional
            Directory under which every `manifest.json` and every measurements file is read: the entry that each records
            must be in the ledger (or in a predecessor next to it) and sealed, with the same bytes.
        """
        return check_ledger(self, releases)
