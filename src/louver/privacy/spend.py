"""Spending: how a verb pays for its noise, from finding the ledger to sealing the debit.

Determines which ledger pays, whether it can, and what a stopped run left behind. The order never changes: a request that the budget cannot
pay for is refused before the data are opened; the data are hashed, read, and hashed again while the debit is reserved; what is published
exactly is logged; noise is drawn and written; the debit is sealed. Nothing else in louver reserves or seals. A verb provides its own part,
such as reading its data and writing its release, as a `Measurable` or a `Releasable`.

Notes
-----
**Privacy**: a debit is resumed only for the same request, which contains every option that determines the true answers or their noise
(`request_of`), and on the data that it was reserved for. `docs/proofs/groups.md` and `docs/proofs/topdown.md` rely on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from louver.data.parsing_once import parsing_once
from louver.data.write import replacing
from louver.errors import BudgetError, InputError
from louver.privacy.budget import Loss
from louver.privacy.distributions import Distribution
from louver.privacy.ledger import (
    Composed,
    Debit,
    Head,
    KeyedHash,
    Ledger,
    People,
    Publication,
    ledger_next_to,
    request_digest,
)
from louver.privacy.ledger_finding import check_known_elsewhere, check_not_elsewhere, ledger_of
from louver.privacy.measurements import Measurements, TrueBatch, sha256_of, write_measurements
from louver.privacy.noise import KeyedNoise, Noise
from louver.run import Run
from louver.schema.validate import Options

__all__ = [
    "Account",
    "Measurable",
    "Payment",
    "Releasable",
    "measure",
    "measure_into",
    "open_ledger",
    "release_into",
    "request_of",
]

Release = TypeVar("Release", covariant=True)

REQUEST_FILE = "request.json"
"""File in a folder of measurements: the request for which they were paid."""


def open_ledger(
    data: object,
    ledger: str | Path | None,
    loss: Loss,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> Ledger:
    """The ledger that pays `loss`; if there is none, the error explains how to make one."""
    path = Path(ledger) if ledger is not None else ledger_of(data, table=table, query=query, run=run)
    if path is None and isinstance(data, str | Path) and Path(data).is_file():
        path = ledger_next_to(Path(data))
    if path is None:
        raise InputError(
            "option --ledger is missing; only a file has a ledger next to it.", option="--ledger"
        )
    if not path.is_file():
        check_known_elsewhere(data, table=table, query=query, run=run)
        message = (
            f"there is no ledger {path.name}; create one with `louver ledger init {path.name} "
            f"--{loss.measure} {loss.amount} --neighbours {loss.neighbours}`, or name the ledger of these people with --ledger."
        )
        raise InputError(message, file=path.name, option="--ledger")
    chosen = Ledger(path)
    check_not_elsewhere(chosen, data, table=table, query=query, run=run)
    return chosen


def request_of(
    verb: str,
    options: Mapping[str, Options],
    left_out: Mapping[str, str],
    noise: Iterable[tuple[str, str, Distribution]],
    **more: Any,
) -> str:
    """The digest of a request: all options of all models, except those left out, and the noise of every query.

    Parameters
    ----------
    verb : str
    options : mapping of str to model
        All options models of the call, including that of the source.
    left_out : mapping of str to str
        Options ("model.option") that can change neither the true answers nor their noise, and why; a new option is in the request
        until it is listed.
    noise : iterable of (level, query, distribution)
        In the order of their nonces.
    **more
        Public content of files that options name: regions, attributes.
    """
    every = {name: model.model_dump(mode="json") for name, model in options.items()}
    kept = {
        name: {key: value for key, value in given.items() if f"{name}.{key}" not in left_out}
        for name, given in every.items()
    }
    drawn = [[level, query, str(distribution)] for level, query, distribution in noise]
    return request_digest({"verb": verb, "options": kept, "noise": drawn, **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A payment to be made.

    Attributes
    ----------
    loss : Loss
    request : str
        Digest from `request_of`; empty while it depends on data that have not been read.
    purpose : str
        Purpose in words, for the ledger.
    largest_unit : int or None
        As for `Ledger.reserve`.
    noise : Noise or None
        A separate source; None draws from the debit's key.
    publishes : tuple of Publication
        What is published exactly with it.
    composed : callable or None
        Refuses a publication that must not be combined with earlier ones; as for `Ledger.reserve`.
    """

    loss: Loss
    purpose: str
    request: str = ""
    largest_unit: int | None = None
    noise: Noise | None = None
    publishes: tuple[Publication, ...] = ()
    composed: Composed | None = None

    @property
    def is_replayable(self) -> bool:
        """Whether the noise can be drawn again from the debit's key."""
        return self.noise is None or self.noise.is_replayable


class Measurable(Protocol):
    """The measurements of a verb: their cost, and how the confidential data are read and measured."""

    @property
    def payment(self) -> Payment:
        """The payment; before `read` its request may be empty."""
        ...

    @property
    def subject(self) -> str:
        """The text for the ledger if `read` refuses the data."""
        ...

    @property
    def design(self) -> str | None:
        """As for `write_measurements`."""
        ...

    @property
    def files(self) -> Sequence[str]:
        """Files in the folder: the measurements, then those of exact values, which are sealed with them."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Files that `read` may leave in the folder before anything is reserved."""
        ...

    def check_out(self, out: Path) -> None:
        """Refuse a location where no folder can be made."""
        ...

    def read(self) -> None:
        """Read the confidential data; refusals are logged in the ledger."""
        ...

    def batches(self) -> Iterable[TrueBatch]:
        """The true answers, as for `write_measurements`."""
        ...

    def write_exact(self, folder: Path) -> None:
        """Write what is published exactly into a folder."""
        ...


class Releasable(Measurable, Protocol[Release]):
    """Measurements that a verb publishes at once: the whole release is sealed, not its measurements alone."""

    def publish(self, out: Path, noise: Noise, debit: Debit) -> Release:
        """Measure, estimate, and move the complete release to `out`."""
        ...

    def is_published(self, out: Path, debit: Debit) -> bool:
        """Whether `out` is the release of this debit, from a run that was stopped before sealing."""
        ...

    def reopen(self, out: Path) -> Release:
        """The release at `out`; refused if its files were changed."""
        ...

    def published_files(self, out: Path) -> Mapping[str, str]:
        """The files of the release by name, and their hashes."""
        ...


class Account:
    """A ledger and the confidential data for which it pays, during one call.

    Parameters
    ----------
    ledger : Ledger
    dataset : KeyedHash
        Keyed hash of the data, computed once before they are read and once after.
    people : People, optional
        The people in the data.
    """

    def __init__(self, ledger: Ledger, dataset: KeyedHash, people: People | None = None) -> None:
        self.ledger = ledger
        self._people = people
        self._dataset = dataset
        self._before: dict[bytes, bytes] = {}

    def _unchanged(self, secret: bytes) -> bytes:
        """The keyed hash of the unchanged data; refuses data that changed since the first call.

        The first secret is that of the ledger that pays, which is computed before all others: as long as its hash is unchanged, so are
        theirs.
        """
        if secret in self._before and secret != next(iter(self._before)):
            return self._before[secret]
        digest = self._dataset(secret)
        if self._before.setdefault(secret, digest) != digest:
            raise InputError(
                "the data changed while being read; try again when nothing is writing to them.", option="FILE"
            )
        return digest

    def is_pending(self, payment: Payment) -> bool:
        """Whether a stopped run reserved a debit for the same request."""
        return bool(payment.request) and self.ledger.is_pending(payment.request)

    def begin(self, payment: Payment) -> None:
        """Refuse what cannot be paid for or published, and data of another ledger. The data are hashed but not read."""
        if payment.composed is not None:
            payment.composed(self.ledger.published_invariants())
        name = payment.request or None
        self.ledger.check_affordable(payment.loss, request=name, largest_unit=payment.largest_unit)
        self.ledger.expect_others(self._dataset)
        self.ledger.check_data(self._unchanged, self._people)

    @contextmanager
    def touching(self, verb: str) -> Iterator[None]:
        """Log every refusal raised in a block that reads the data: the refusal itself reveals something about them."""
        with self.ledger.logging_refusals(f"{verb}: refused because of the data"):
            yield

    def has_sealed(self, paths: Sequence[Path]) -> bool:
        """Whether the ledger has sealed exactly these files, the measurements first, for these data."""
        return _is_sealed(paths, self.ledger) and self._is_of_these_data(paths[0])

    def _is_of_these_data(self, measurements: Path) -> bool:
        entry = Measurements(measurements).description()["entry"]
        return self.ledger.is_reserved_for(entry, self._unchanged)

    def check_sealed(self, measurements: Path) -> None:
        """Refuse finished measurements of other data, which may have been admitted to the ledger and measured with the same request."""
        if not self._is_of_these_data(measurements):
            raise InputError(
                f"{measurements.parent.name} holds the measurements of other data, or these data changed since; choose another place.",
                option="--out",
            )

    def reserve(self, payment: Payment) -> Debit:
        """Debit the ledger, or resume the debit of a stopped run, and log what is published exactly."""
        return self.ledger.reserve(
            payment.loss,
            request=payment.request,
            purpose=payment.purpose,
            dataset=self._unchanged,
            people=self._people,
            largest_unit=payment.largest_unit,
            is_replayable=payment.is_replayable,
            publishes=payment.publishes,
            composed=payment.composed,
        )

    def seal(self, debit: Debit, files: Mapping[str, str], place: str) -> Head:
        """Record the finished files and the name of their folder, and erase the key."""
        return self.ledger.seal(debit, files, place=place)


def noise_of(payment: Payment, debit: Debit) -> Noise:
    """The source of noise of a debit; refused if the noise was drawn before and cannot be drawn again."""
    debit.check_drawable()
    return payment.noise if payment.noise is not None else KeyedNoise(debit.key)


def measure(
    path: Path,
    batches: Callable[[], Iterable[TrueBatch]],
    *,
    account: Account,
    payment: Payment,
    design: str | None = None,
    write_exact: Callable[[], Sequence[Path]] = tuple,
    place: str | None = None,
    run: Run | None = None,
) -> Measurements:
    """Debit the ledger, draw noise once, and seal the measurements at `path`.

    Parameters
    ----------
    path : Path
        Must not exist, unless an interrupted run of the same request left it.
    batches : callable
        As for `write_measurements`.
    account : Account
    payment : Payment
        `loss` is the composition over all batches.
    design : str, optional
        As for `write_measurements`.
    write_exact : callable
        Called once the debit is reserved: writes the files that are sealed with the measurements, and returns their paths.
    place : str, optional
        Name of the folder for the ledger; by default the one of `path`.
    run : Run, optional

    Notes
    -----
    **Privacy**: `loss`, once, however often the run is interrupted and repeated: noise is a function of key, nonce and data, and the ledger
    returns the same key only for the same request on the same data.
    """
    if path.exists() and not account.is_pending(payment):
        raise InputError(f"{path.name} already exists; choose another place.", file=path.name, option="out")
    debit = account.reserve(payment)
    if path.exists() and not (debit.is_resumed and _entry_of(path) == debit.entry):
        raise BudgetError(
            f"{path.name} was finished by another run meanwhile; entry {debit.entry} is left pending."
        )
    files = {other.name: sha256_of(other) for other in write_exact()}
    path.parent.mkdir(parents=True, exist_ok=True)
    files[path.name] = write_measurements(
        path, batches, noise_of(payment, debit), debit, design=design, run=run
    )
    account.seal(debit, files, place or path.parent.name)
    return Measurements(path)


def _entry_of(path: Path) -> object:
    """The ledger entry that a measurements file names."""
    try:
        return Measurements(path).description()["entry"]
    except InputError:
        return None


def measure_into(
    folder: Path, measurable: Measurable, *, account: Account, run: Run | None = None
) -> Measurements:
    """Measurements and exact values in a folder, paid for once; nothing is done if they already exist.

    Parameters
    ----------
    folder : Path
        Contains the request (`request.json`) and the files of `measurable`.
    """
    payment = measurable.payment
    _check_folder(folder, measurable)
    paths = [folder / name for name in measurable.files]
    if _is_sealed(paths, account.ledger):
        account.check_sealed(paths[0])
    else:
        with parsing_once():
            account.begin(payment)
            with account.touching(measurable.subject):
                measurable.read()

        def write_exact() -> Sequence[Path]:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / REQUEST_FILE) as sink:
                sink.write(json.dumps(payment.request).encode())
            measurable.write_exact(folder)
            return paths[1:]

        measure(
            paths[0],
            measurable.batches,
            account=account,
            payment=payment,
            design=measurable.design,
            write_exact=write_exact,
            place=folder.name,
            run=run,
        )
    return Measurements(paths[0])


def release_into(
    out: Path, releasable: Releasable[Release], *, account: Account, run: Run | None = None
) -> Release:
    """Read, reserve, measure, publish and seal a whole release; one that was interrupted is resumed."""
    payment = releasable.payment
    if payment.request and not account.is_pending(payment):
        releasable.check_out(out)  # before anything is read
    with parsing_once():
        account.begin(payment)
        with account.touching(releasable.subject):
            releasable.read()
    payment = releasable.payment
    if not account.is_pending(payment):
        releasable.check_out(out)  # before anything is spent
    if run is not None:
        run.check()
    debit = account.reserve(payment)
    if out.exists() and releasable.is_published(out, debit):
        release = releasable.reopen(out)
    else:
        release = releasable.publish(out, noise_of(payment, debit), debit)
    account.seal(debit, releasable.published_files(out), out.name)
    return release


def _is_sealed(paths: Sequence[Path], ledger: Ledger) -> bool:
    """Whether the ledger has sealed exactly these files, the measurements first, for any data."""
    if not all(path.is_file() for path in paths):
        return False
    sealed = ledger.state().sealed.get(Measurements(paths[0]).description()["entry"], {})
    return all(sealed.get(path.name) == sha256_of(path) for path in paths)


def _check_folder(folder: Path, measurable: Measurable) -> None:
    """Refuse a folder that holds something other than this request."""
    if not folder.exists():
        measurable.check_out(folder)
        return
    found = _noted_request(folder / REQUEST_FILE)
    if found is not None and found != measurable.payment.request:
        message = (
            f"{folder.name} holds the measurements of another spec or other options; choose another place."
        )
        raise InputError(message, option="--out")
    # A run that was killed while it wrote this file may have left a hidden file.
    if found is None and (
        not folder.is_dir()
        or any(p.name[0] != "." and p.name not in measurable.notes for p in folder.iterdir())
    ):
        raise InputError(f"{folder.name} already exists; name a new folder.", option="--out")


def _noted_request(path: Path) -> str | None:
    """The request for which a folder was made; None if it has no such file."""
    if not path.is_file():
        return None
    try:
        request = json.loads(path.read_text())
    except ValueError:
        request = None
    if not isinstance(request, str):
        message = (
            f"{path.name} in {path.parent.name} cannot be read; move the folder elsewhere to measure again."
        )
        raise InputError(message, file=path.name, option="--out")
    return request
