"""anonymize: k-anonymous microdata with the least information loss.

Liang & Samavi (2020): exact, Split & Carry and Greedy Search, and the methods they are compared with. They generalise
classes one by one; one recoding for the whole file (`recoding="global"`) loses more, and its files can be compared with one another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from louver._callable import make_callable
from louver._words import counted
from louver.anonymize.alternatives import CURVE_METHODS, Tried, trace, try_each_k, try_local
from louver.anonymize.classes import ClassesOfPart, form_in_memory
from louver.anonymize.generalise import PublishedColumn
from louver.anonymize.intersection import EarlierRelease, check_source, read_earlier
from louver.anonymize.load import Codebook, HeldFile, load
from louver.anonymize.lookup import KnownPeople, known_now, known_then, person_keys
from louver.anonymize.metrics import PublishedClasses
from louver.anonymize.options import AnonymizeKeywords, AnonymizeOptions
from louver.anonymize.parts import cut_into_parts
from louver.anonymize.problem import AnonymizeProblem, Partition
from louver.anonymize.publish import Arranged, RecordStore, Setting, arrange_in_memory, publish
from louver.anonymize.result import DATA_FILE, AnonymizedRelease, RecordsOnDisk
from louver.anonymize.watch import Watch
from louver.data.parsing_once import forget_parsed, is_parsing_once, parsing_once
from louver.data.people import fingerprint
from louver.data.read import Source, open_source
from louver.data.restriction import restriction
from louver.errors import InputError
from louver.privacy.ledger import KeyedHash, Ledger, People, ledgers_in
from louver.privacy.ledger_finding import find_ledger
from louver.release.matched_register import MatchedRegister
from louver.release.write import check_out
from louver.run import Run
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream
    Report = Callable[[AnonymizedRelease], str]

__all__ = [
    "AnonymizeOptions",
    "AnonymizeProblem",
    "AnonymizedRelease",
    "Partition",
    "anonymize",
    "compare_each_k",
    "write_release",
]


NOT_EARLIER = ("table", "query", "where", "missing_code")
"""Options for reading that apply to the data but not to the records of an earlier release."""


@door(AnonymizeOptions, keywords=AnonymizeKeywords)
def anonymize(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
    **options: Unpack[AnonymizeKeywords],
) -> AnonymizedRelease:
    """Make microdata k-anonymous.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records.
    out : path, optional
        Release directory to make.
    ledger : path, optional
        With `out`: the ledger in which the file is logged as an exact disclosure; by default the ledger next to the data, if there is one.

    Returns
    -------
    AnonymizedRelease

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 33, 34, 52, 55, 58], "ill": ["flu", "flu", "cold", "cold", "flu", "ulcer"]})
    >>> release = anonymize(people, quasi=["age"], k=3, method="exact", keep_order=True)
    >>> release.table["age"].to_pylist()
    ['[31, 34]', '[31, 34]', '[31, 34]', '[52, 58]', '[52, 58]', '[52, 58]']
    """
    request = requested(spec, AnonymizeOptions)
    with parsing_once(out is not None and _is_read_again(request, ledger)):
        place = None if out is None else _place(request, out, ledger, request.run)
        if request.options.parts is not None and out is None:
            raise InputError(
                "option --parts keeps no records in memory; give a folder for the release (out).",
                option="out",
            )
        with _made(request, place, request.run) as release:
            if place is None or release.is_withheld:
                return release
            _write(release, place, report, request.run)
    if isinstance(release.table, RecordsOnDisk):
        return replace(release, table=RecordsOnDisk(place.out / DATA_FILE))
    return release


def write_release(
    release: AnonymizedRelease,
    request: Request[AnonymizeOptions],
    out: str | Path,
    *,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
) -> AnonymizedRelease:
    """Publish a result that `anonymize` returned for this request, as `anonymize` itself does when `out` is given.

    A result that must not be written (`is_withheld`) is returned as it is.
    """
    if release.is_withheld:
        return release
    run = run or request.run
    place = _place(request, out, ledger, run)
    release = replace(release, ledger=place.payer, remark=place.remark, unasked=place.unasked)
    _write(release, place, report, run)
    return release


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a release is written, and which ledger and register record it."""

    out: Path
    payer: Path | None
    dataset: KeyedHash
    people: People
    register: MatchedRegister | None

    is_compared: bool

    @property
    def unasked(self) -> str | None:
        """Earlier publications about these people with which this file was not compared."""
        return None if self.register is None else _not_compared(self.register, is_compared=self.is_compared)

    @property
    def is_open(self) -> bool:
        """Whether it is not known what this file discloses together with earlier publications, rather than who is in them."""
        return self.unasked is not None and self.register is not None and not self.register.is_apart_by_word

    @property
    def remark(self) -> str | None:
        """A remark on how these people relate to those in the register."""
        return None if self.register is None else self.unasked or self.register.remark


def _is_read_again(request: Request[AnonymizeOptions], ledger: str | Path | None) -> bool:
    """Whether a register or a ledger may also read the records."""
    if ledger is not None or request.options.registry is not None:
        return True
    return isinstance(request.data, str | Path) and any(ledgers_in(Path(request.data).parent))


def _place(
    request: Request[AnonymizeOptions], out: str | Path, ledger: str | Path | None, run: Run
) -> _Place:
    check_out(Path(out))
    source, options = request.source, request.options
    payer = find_ledger(request.data, ledger, table=source.table, query=source.query, run=run)
    dataset = fingerprint(request.data, run=run, **source.opening())
    people = People(request.data, weight=source.weight, run=run, **source.opening())
    if payer is not None and is_parsing_once():
        Ledger(payer).meet(dataset, people)
    register = None
    if options.registry is not None:
        register = MatchedRegister.of(
            options.registry,
            request.data,
            source,
            person=options.person,
            is_new_population=options.new_population,
            is_publishing=True,
            run=run,
        )
    place = _Place(
        out=Path(out),
        payer=payer,
        dataset=dataset,
        people=people,
        register=register,
        is_compared=bool(options.against),
    )
    if place.unasked is not None and place.is_open and not options.accept_unchecked:
        raise InputError(
            f"nothing was published: {place.unasked[0].lower()}{place.unasked[1:]} --accept-unchecked publishes it anyway.",
            option="--register",
        )
    return place


def _write(release: AnonymizedRelease, place: _Place, report: Report | None, run: Run) -> None:
    page = None if report is None else run.attend(report, release)
    release.write(
        place.out,
        page,
        place.payer,
        dataset=place.dataset,
        people=place.people,
        register=place.register,
        run=run,
    )


def _not_compared(register: MatchedRegister, *, is_compared: bool) -> str | None:
    if register.is_apart_by_word:
        return register.remark
    if register.only_in_ledger is not None:
        return register.only_in_ledger
    contents = [entry.content for entry in register.entries]
    n_tables = sum(len(content["tables"]) for content in contents)
    n_tables += sum(
        table["value"] is not None for content in contents for table in content.get("protected", ())
    )
    n_files = 0 if is_compared else sum(len(content.get("files", ())) for content in contents)
    if n_tables:
        return (
            f"the register holds {counted(n_tables, 'table')} of the same records: audit them again with --register, "
            "because this file may reveal what they hide."
        )
    if n_files:
        return f"the register holds {counted(n_files, 'file')} of the same records, with which this one was not compared (--against)."
    return None


def _filter(request: Request[AnonymizeOptions], run: Run) -> Mapping[str, Sequence[str]]:
    """The labels that satisfy the source's `where`, for the register."""
    source = request.source
    if source.where is None or request.options.registry is None:
        return {}
    with open_source(request.data, **{**source.opening(), "where": None}, run=run) as opened:
        return restriction(opened, source.where, request.schema)


def compare_each_k(request: Request[AnonymizeOptions], run: Run) -> AnonymizedRelease:
    """Return a release whose curve has only the points of its own method; nothing is written."""
    with _made(request, None, run, others=()) as release:
        return release


@contextmanager
def _made(
    request: Request[AnonymizeOptions],
    place: _Place | None,
    run: Run,
    others: Sequence[str] = CURVE_METHODS,
) -> Iterator[AnonymizedRelease]:
    """Read, form classes, compare with other choices and with earlier releases, and publish.

    Yields the release while its input still exists.
    """
    started = time.perf_counter()
    options = request.options
    watch = Watch(run, options.seconds if options.steps is None else None)
    with ExitStack() as held:
        earlier: list[EarlierRelease] = []
        known: list[KnownPeople] = []
        store: RecordStore
        if place is not None and options.parts is not None:
            store = held.enter_context(cut_into_parts(request, place.out, watch))
        else:
            store, earlier, known = _load(request, watch)
        where = _filter(request, watch.run)
        forget_parsed()
        began = time.perf_counter()
        made = Tried(parts=store.form(options, watch), seconds=time.perf_counter() - began)
        by_k = try_each_k(store, options, made, watch.run)
        setting = Setting(
            started=started,
            curve=trace(store, options, by_k, watch.run, others),
            local=try_local(store, options, watch.run),
            earlier=earlier,
            known=known,
            where=where,
            records=None
            if options.analysis is None or not isinstance(store, _InMemoryStore)
            else store.file.records,
            ledger=None if place is None else place.payer,
            remark=None if place is None else place.remark,
            unasked=None if place is None else place.unasked,
        )
        parts = by_k[options.k].parts
        if options.parts is None:
            yield watch.run.attend(publish, store, parts, options, watch, setting)
        else:
            yield publish(store, parts, options, watch, setting)


@dataclass(frozen=True, slots=True)
class _InMemoryStore:
    """A file in memory, which is a single part."""

    file: HeldFile
    part_sizes: tuple[int, ...] = ()

    @property
    def codebook(self) -> Codebook:
        return self.file.codebook

    @property
    def column_names(self) -> Sequence[str]:
        return self.file.column_names

    def form(self, options: AnonymizeOptions, watch: Watch) -> list[ClassesOfPart]:
        return form_in_memory(self.file, options, watch)

    def arrange(
        self,
        parts: Sequence[ClassesOfPart],
        published: Sequence[PublishedColumn],
        seen: PublishedClasses,
        options: AnonymizeOptions,
        run: Run,
    ) -> Arranged:
        return arrange_in_memory(self.file, parts, published, seen, options, run)


def _load(
    request: Request[AnonymizeOptions], watch: Watch
) -> tuple[_InMemoryStore, list[EarlierRelease], list[KnownPeople]]:
    """All records, and the earlier releases with the values known about each person."""
    options, run = request.options, watch.run
    with watch.stage("reading"), open_source(request.data, **request.source.opening(), run=run) as source:
        file = load(source, options, request.schema, run)
        return _InMemoryStore(file), *_earlier(source, file, request, run)


def _earlier(
    source: Source, file: HeldFile, request: Request[AnonymizeOptions], run: Run
) -> tuple[list[EarlierRelease], list[KnownPeople]]:
    """Earlier releases, and the values known about each person when this release and each of those was made."""
    options = request.options
    releases = [read_earlier(folder) for folder in options.against]
    if not releases:
        return [], []
    names = [*options.quasi, *(name for release in releases for name in release.quasi)]
    if options.link is None:
        for release in releases:
            release.check_columns(source.columns)
        now = known_now(source, file, names)
        return releases, [now] * (1 + len(releases))
    keys = person_keys(source, options.link, run)
    opening = {name: value for name, value in request.source.opening().items() if name not in NOT_EARLIER}
    known = [known_now(source, file, [name for name in names if name in source.columns])]
    for release, path in zip(releases, options.earlier, strict=True):
        then = known_then(path, opening, options.link, keys, names, release.coding, run)
        release.check_columns(then.records.column_names, Path(path).name)
        check_source(release, then, Path(path).name)
        known.append(then)
    return releases, known


make_callable(__name__, anonymize)
