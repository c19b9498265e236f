"""The state of a ledger: always the replay of its entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from louver.errors import BudgetError
from louver.privacy.budget import Measure, exact_fraction
from louver.privacy.ledger_file import Entry, Head
from louver.privacy.neighbours import Relation

__all__ = ["FORMAT", "AdmittedSource", "Event", "LedgerState", "Publication", "carried", "replay"]

FORMAT = 1
"""Format of a ledger, stated in its first entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """An exact publication, which no budget covers.

    Attributes
    ----------
    what : str
        The publication in words.
    invariants : tuple of mapping
        The same for programs, as plain JSON: later specs are checked against it.
    entry : int or None
        The debit to which it belongs.
    """

    what: str
    invariants: tuple[Mapping[str, Any], ...] = ()
    entry: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The publication in the form kept by a ledger."""
        return {"what": self.what, "invariants": [dict(one) for one in self.invariants]}

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Publication:
        """Read what `to_dict` wrote."""
        return cls(what=body["what"], invariants=tuple(body["invariants"]), entry=body.get("debit"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedSource:
    """Data for which a ledger pays, by the keyed hash of their content and by the name under which they were admitted."""

    dataset: str
    name: str | None = None
    table: str | None = None
    query: str | None = None

    @property
    def words(self) -> str:
        """The source, in words."""
        if self.name is None:
            return "the data of the first debit"
        inside = f"table {self.table}" if self.table else f"query {self.query}" if self.query else ""
        return f"{self.name}, {inside}" if inside else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a ledger's history; a debit's `state` is pending, sealed or abandoned, and its `release` is the folder for which it
    was reserved."""

    entry: int
    at: str
    kind: str
    what: str
    amount: Fraction | None = None
    state: str | None = None
    verb: str | None = None
    release: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The line, as JSON values."""
        amount = None if self.amount is None else str(self.amount)
        fields = {"entry": self.entry, "at": self.at, "kind": self.kind, "what": self.what}
        return {
            **fields,
            "amount": amount,
            "state": self.state,
            "verb": self.verb,
            "release": self.release,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """The replay of all entries.

    Attributes
    ----------
    granted, spent : Fraction
        A successor starts with the amounts of the ledger that it continues.
    pending, sealed : mapping
        Debits by the number of their entry: the request, and the hashes of the files.
    datasets : mapping
        Keyed hash of the data for which each debit was reserved, by the number of its entry.
    published, carried : tuple of Publication
        The exact publications; and those of them that come from predecessors of this ledger.
    refusals : tuple of str
        Refusals that depended on the data and were reported to operators.
    population : str or None
        The population whose data these are. A ledger with a population pays only for sources that were admitted.
    sources : mapping
        Admitted data by keyed hash.
    people : mapping
        Digest of the sketch of the people in each source, by the keyed hash of its content.
    apart : frozenset of str
        Ledgers (`Ledger.identity`) whose people the steward has declared to be different.
    is_bound : bool
        Whether this ledger itself, not a predecessor, has recorded data.
    predecessor, successor : str or None
        File names of the previous and the next ledger.
    is_handed_over : bool
        Whether the successor is known to be in place.
    """

    measure: Measure
    neighbours: Relation
    granted: Fraction
    spent: Fraction
    pending: Mapping[int, Mapping[str, Any]]
    sealed: Mapping[int, Mapping[str, str]]
    datasets: Mapping[int, str]
    published: tuple[Publication, ...]
    carried: tuple[Publication, ...]
    refusals: tuple[str, ...]
    population: str | None
    sources: Mapping[str, AdmittedSource]
    people: Mapping[str, str]
    apart: frozenset[str]
    is_bound: bool
    predecessor: str | None
    successor: str | None
    is_handed_over: bool
    events: tuple[Event, ...]
    head: Head

    @property
    def remaining(self) -> Fraction:
        return self.granted - self.spent

    @property
    def held(self) -> Fraction:
        """The amount of pending debits, a part of what is spent."""
        return sum((Fraction(body["amount"]) for body in self.pending.values()), Fraction(0))

    @property
    def disclosures(self) -> tuple[str, ...]:
        """The exact publications, in words."""
        return tuple(one.what for one in self.published)

    @property
    def invariants(self) -> tuple[Mapping[str, Any], ...]:
        """The same for programs."""
        return tuple(invariant for one in self.published for invariant in one.invariants)

    def to_dict(self) -> dict[str, Any]:
        """The state for programs; amounts are exact fractions as text, no hash of the data is shown."""
        return {
            "measure": str(self.measure),
            "neighbours": str(self.neighbours),
            "granted": str(self.granted),
            "spent": str(self.spent),
            "remaining": str(self.remaining),
            "held": str(self.held),
            "pending": [
                {"entry": entry, "amount": body["amount"], "purpose": body["purpose"]}
                for entry, body in self.pending.items()
            ],
            "sealed": sorted(self.sealed),
            "disclosures": list(self.disclosures),
            "head": str(self.head),
            "population": self.population,
            "sources": [source.words for source in self.sources.values()],
            "invariants": [dict(one) for one in self.invariants],
            "refusals": list(self.refusals),
            "predecessor": self.predecessor,
            "successor": self.successor,
            "history": [event.to_dict() for event in self.events],
        }


def replay(entries: Sequence[Entry]) -> LedgerState:
    """Add up the entries.

    Raises
    ------
    BudgetError
        On an entry that this version does not know or that no version writes.
    """
    try:
        return _Replay(entries[0].body).of(entries)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        last = entries[-1].head.entry
        raise BudgetError(
            f"an entry of the ledger, number {last} or an earlier one, was not written by any version of louver; restore a copy."
        ) from None


@dataclass(slots=True)
class _Replay:
    """The state while entries are added up."""

    first: Mapping[str, Any]
    granted: Fraction = Fraction(0)
    spent: Fraction = Fraction(0)
    pending: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    sealed: dict[int, Mapping[str, str]] = field(default_factory=dict)
    datasets: dict[int, str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    published: list[Publication] = field(default_factory=list)
    n_carried: int = 0
    refusals: list[str] = field(default_factory=list)
    sources: dict[str, AdmittedSource] = field(default_factory=dict)
    people: dict[str, str] = field(default_factory=dict)
    apart: set[str] = field(default_factory=set)
    is_bound: bool = False
    successor: str | None = None
    is_handed_over: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)

    def of(self, entries: Sequence[Entry]) -> LedgerState:
        for entry in entries:
            self.events.append(self._added(entry.head.entry, entry.body))
        for event in self.events:
            event["state"] = self._debit_state(event)
            event["verb"] = _verb(event["what"])
            event["release"] = self.places.get(event["entry"])
        return LedgerState(
            measure=Measure(self.first["measure"]),
            neighbours=Relation(self.first["neighbours"]),
            granted=self.granted,
            spent=self.spent,
            pending=self.pending,
            sealed=self.sealed,
            datasets=self.datasets,
            published=tuple(self.published),
            carried=tuple(self.published[: self.n_carried]),
            refusals=tuple(self.refusals),
            population=self.first.get("population"),
            sources=self.sources,
            people=self.people,
            apart=frozenset(self.apart),
            is_bound=self.is_bound,
            predecessor=self.first.get("predecessor", {}).get("name"),
            successor=self.successor,
            is_handed_over=self.is_handed_over,
            events=tuple(Event(**event) for event in self.events),
            head=entries[-1].head,
        )

    def _added(self, number: int, body: Mapping[str, Any]) -> dict[str, Any]:
        """Add one entry; return its line of the history."""
        what, amount = str(body.get("purpose") or body.get("what") or ""), None
        match body["kind"]:
            case "init":
                what = self._start(body)
            case "grant":
                amount = _positive(body)
                self.granted += amount
            case "reserve":
                amount = _positive(body)
                self.spent += amount
                self._meet(AdmittedSource(dataset=body["dataset"]))
                self.pending[number] = body
                self.datasets[number] = body["dataset"]
            case "seal":
                self.pending.pop(body["entry"], None)
                self.sealed[body["entry"]] = body["files"]
                if "place" in body:
                    self.places[body["entry"]] = str(body["place"])
                what = f"entry {body['entry']}"
            case "abandon":
                self.pending.pop(body["entry"], None)
                what = f"entry {body['entry']}"
            case "disclosure":
                if body.get("dataset") is not None:
                    self._meet(AdmittedSource(dataset=body["dataset"]))
                self.published.append(Publication.from_dict(body))
            case "refusal":
                self.refusals.append(what)
            case "admit":
                source = _source(body)
                self.sources.pop(
                    source.dataset, None
                )  # a source admitted by name replaces a source known only from a debit
                self._meet(source)
                what = source.words
            case "people":
                self.people[body["dataset"]] = str(body["sketch"])
                self.apart.update(body["apart"])
            case "succeeded":
                self.successor = what = body["by"]
            case "handed over":
                self.is_handed_over = True
            case _:
                raise BudgetError(
                    f"entry {number} of the ledger is of a kind that this version of louver does not know; "
                    "use the version that wrote it."
                )
        at = str(body.get("at", ""))
        return {"entry": number, "at": at, "kind": body["kind"], "what": what, "amount": amount}

    def _debit_state(self, event: Mapping[str, Any]) -> str | None:
        if event["kind"] != "reserve":
            return None
        entry = event["entry"]
        return "pending" if entry in self.pending else "sealed" if entry in self.sealed else "abandoned"

    def _meet(self, source: AdmittedSource) -> None:
        self.sources.setdefault(source.dataset, source)
        self.is_bound = True

    def _start(self, body: Mapping[str, Any]) -> str:
        """The first entry, with the state of a predecessor if there is one."""
        if body.get("format") != FORMAT:
            raise BudgetError(
                "the ledger has a format that this version of louver does not read; use the version that made it."
            )
        if "predecessor" not in body:
            return str(body.get("population") or "")
        left = body["predecessor"]
        self.granted, self.spent = exact_fraction(left["granted"]), exact_fraction(left["spent"])
        self.published += map(Publication.from_dict, left["published"])
        self.n_carried = len(self.published)
        self.refusals += left["refusals"]
        self.sources.update((one["dataset"], _source(one)) for one in left["sources"])
        self.people.update(left["people"])
        self.apart.update(left["apart"])
        return f"carries on {left['name']}"


def carried(state: LedgerState, name: str) -> dict[str, Any]:
    """The state with which a successor starts: the first entry's `predecessor`."""
    return {
        "name": name,
        "head": str(state.head),
        "granted": str(state.granted),
        "spent": str(state.spent),
        "published": [one.to_dict() for one in state.published],
        "refusals": list(state.refusals),
        "sources": [asdict(one) for one in state.sources.values()],
        "people": dict(state.people),
        "apart": sorted(state.apart),
    }


VERBS = {
    "group sizes": "groups",
    "the total number of groups by ": "groups",
    "the list of regions that occur by ": "groups",
    "not protected by ": "groups",
    "TopDown": "topdown",
    "topdown": "topdown",
    "a file of ": "anonymize",
}
"""The beginnings of the texts that each verb writes into a ledger."""


def _verb(what: str) -> str | None:
    """The verb that wrote this text; None for actions of people, and for text that people wrote."""
    return next((verb for start, verb in VERBS.items() if what.startswith(start)), None)


def _source(body: Mapping[str, Any]) -> AdmittedSource:
    return AdmittedSource(
        dataset=body["dataset"], name=body["name"], table=body["table"], query=body["query"]
    )


def _positive(body: Mapping[str, Any]) -> Fraction:
    amount = exact_fraction(body["amount"])
    if amount <= 0:
        raise ValueError
    return amount
