"""anonymize: k-anonymous microdata with the least information loss.

Liang & Samavi (2020): exact, Split & Carry and Greedy Search, beside the methods they compare with. They generalise
classes one by one; one recoding for the whole file (`recoding="global"`) loses more, and its files compare with one
another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from louver._callable import make_callable
from louver._words import counted
from louver.anonymize.alternatives import CURVE_METHODS, Tried, local_beside, trace, try_each_k
from louver.anonymize.entry import entry_of
from louver.anonymize.intersection import Earlier, as_earlier, check_source, intersect, read_earlier
from louver.anonymize.load import Loaded, load
from louver.anonymize.lookup import Known, known_now, known_then, person_keys
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.parts import in_parts
from louver.anonymize.problem import Partition, Problem
from louver.anonymize.publish import publish
from louver.anonymize.result import DATA_FILE, AnonymizedRelease, StoredRecords
from louver.anonymize.solve import form_classes
from louver.anonymize.watch import Watch
from louver.data.people import fingerprint
from louver.data.read import Source, open_source
from louver.data.restriction import restriction
from louver.errors import InputError
from louver.privacy.ledger import KeyedHash, People
from louver.privacy.ledger_finding import find_ledger
from louver.release.memory import Memory
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
    "AnonymizedRelease",
    "Partition",
    "Problem",
    "anonymize",
    "compare_each_k",
    "write_release",
]


NOT_EARLIER = ("table", "query", "where", "missing_code")
"""How the data are read, but not the records of an earlier release."""


@door(AnonymizeOptions)
def anonymize(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    table: str | None = None,
    query: str | None = None,
    decimal_mark: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    keep_codes: bool | None = None,
    where: str | None = None,
    header_row: int | None = None,
    missing_code: Mapping[str, Sequence[str | int]] | None = None,
    date_order: str | None = None,
    quasi: str | Sequence[str] = (),
    k: int = 5,
    identifying: str | Sequence[str] = (),
    sensitive: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    ordered: str | Sequence[str] | Mapping[str, Sequence[str | int]] | None = None,
    categorical: str | Sequence[str] = (),
    hierarchy: Mapping[str, str | Path] | None = None,
    weights: Mapping[str, float] | None = None,
    method: str = "auto",
    recoding: str = "local",
    seconds: float = 10.0,
    steps: int | None = None,
    normalise: bool = False,
    one_hot: str | Sequence[str] = (),
    sets: int | None = None,
    boundary: int | None = None,
    carry: str | None = None,
    size: int | None = None,
    accepted: int | None = None,
    subproblem_seconds: float | None = None,
    l: float | None = None,  # noqa: E741 - the field's own name
    l_kind: str = "distinct",
    t: float | None = None,
    distance: str | None = None,
    count_missing: bool = False,
    suppress: float = 0.0,
    population: Data | None = None,
    population_count: str | None = None,
    k_map: bool = False,
    unit: str | None = None,
    sampling_weight: str | None = None,
    against: str | Path | Sequence[str | Path] = (),
    earlier: str | Path | Sequence[str | Path] = (),
    link: str | None = None,
    accept: bool = False,
    curve: Sequence[int] = (),
    recode: str | Path | Mapping[str, Any] | None = None,
    top_code: Mapping[str, float] | None = None,
    bottom_code: Mapping[str, float] | None = None,
    round_to: Mapping[str, float] | None = None,
    missing: str = "category",
    parts: int | str | None = None,
    engine: str = "local:1",
    format: str = "labels",
    registry: str | Path | None = None,
    person: str | None = None,
    new_population: bool = False,
    csv: bool = False,
    keep_order: bool = False,
    class_id: bool = False,
    out: str | Path | None = None,
    ledger: str | Path | None = None,
    report: Report | None = None,
    run: Run | None = None,
) -> AnonymizedRelease:
    """Make microdata k-anonymous.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records.
    out : path, optional
        Release directory to make.
    ledger : path, optional
        With `out`: where the file is logged as an exact disclosure; by default the ledger beside the data, where there is one.

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
    place = None if out is None else _place(request, out, ledger, run)
    if request.options.parts is not None and out is None:
        raise InputError(
            "option --parts holds no records in memory; name a folder for the release (out).", option="out"
        )
    with _made(request, out, run) as release:
        if place is not None and not release.is_withheld:
            release = _written(release, place, report, run)
    if out is not None and isinstance(release.table, StoredRecords):
        release = replace(release, table=StoredRecords(Path(out) / DATA_FILE))
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
    """Publish a result that `anonymize` returned for this request, as it does itself where `out` is given.

    A result that must not be written (`is_withheld`) is returned as it is.
    """
    if release.is_withheld:
        return release
    return _written(release, _place(request, out, ledger, run), report, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a release goes, and who keeps account of it."""

    out: Path
    payer: Path | None
    dataset: KeyedHash
    people: People
    memory: Memory | None


def _place(
    request: Request[AnonymizeOptions], out: str | Path, ledger: str | Path | None, run: Run | None
) -> _Place:
    check_out(Path(out))
    source, options = request.source, request.options
    payer = find_ledger(request.data, ledger, table=source.table, query=source.query, run=run)
    dataset = fingerprint(request.data, table=source.table, query=source.query, run=run)
    memory = None
    if options.registry is not None:
        memory = Memory.of(
            options.registry,
            request.data,
            source,
            person=options.person,
            is_new_population=options.new_population,
            is_publishing=True,
            run=run,
        )
    people = People(request.data, weight=source.weight, run=run, **source.opening())
    return _Place(out=Path(out), payer=payer, dataset=dataset, people=people, memory=memory)


def _written(
    release: AnonymizedRelease, place: _Place, report: Report | None, run: Run | None
) -> AnonymizedRelease:
    page = None if report is None else (run or Run()).attend(report, release)
    remark = None if place.memory is None else _remark(place.memory)
    release = replace(release, ledger=place.payer, remark=remark)
    release.write(
        place.out,
        page,
        place.payer,
        dataset=place.dataset,
        people=place.people,
        memory=place.memory,
        run=run,
    )
    return release


def _remark(memory: Memory) -> str | None:
    """What to know about the people that the register tells of."""
    n_tables = sum(len(entry.content["tables"]) for entry in memory.entries)
    if not n_tables:
        return memory.remark
    return (
        f"the register holds {counted(n_tables, 'table')} of the same records: audit them again "
        "with --register, for this file may show what they hide."
    )


def _filter(request: Request[AnonymizeOptions], run: Run) -> Mapping[str, Sequence[str]]:
    """What `where` of the source lets through, as labels."""
    source = request.source
    if source.where is None:
        return {}
    with open_source(request.data, **{**source.opening(), "where": None}, run=run) as opened:
        return restriction(opened, source.where, request.schema)


def _made(
    request: Request[AnonymizeOptions], out: str | Path | None, run: Run | None
) -> AbstractContextManager[AnonymizedRelease]:
    """The release, for as long as what it was made from has to be there."""
    if out is not None and request.options.parts is not None:
        return in_parts(request, Path(out), run or Run())
    return nullcontext(_anonymize(request, run))


def compare_each_k(request: Request[AnonymizeOptions], run: Run | None) -> AnonymizedRelease:
    """A release with the points of its own method on its curve, and no others; nothing is written."""
    return _anonymize(request, run, others=())


def _anonymize(
    request: Request[AnonymizeOptions], run: Run | None, others: Sequence[str] = CURVE_METHODS
) -> AnonymizedRelease:
    """Read, form classes, publish; then compare with other choices and with earlier releases."""
    started = time.perf_counter()
    options = request.options
    watch = Watch(run, options.seconds if options.steps is None else None)
    with (
        watch.stage("reading"),
        open_source(request.data, **request.source.opening(), run=watch.run) as source,
    ):
        loaded = load(source, options, request.schema, watch.run)
        earlier, known = _earlier(source, loaded, request, watch.run)
    began = time.perf_counter()
    answer = form_classes(loaded, options, watch)
    made = Tried(answer=answer, seconds=time.perf_counter() - began)
    by_k = try_each_k(loaded, options, made, watch.run)
    answer = by_k[options.k].answer
    with watch.stage("publishing"):
        release = watch.run.attend(publish, loaded, answer, options, watch.run)
        if options.registry is not None:
            release = replace(release, entry=entry_of(release, loaded.records, _filter(request, watch.run)))
    release = replace(
        release,
        curve=trace(loaded, options, by_k, watch.run, others),
        beside=local_beside(loaded, options, watch.run),
        stopped=watch.stopped,
        stages=watch.told,
    )
    if earlier:
        releases = [as_earlier(release), *earlier]
        together = intersect(known, releases, options.sensitive, options.k, link=options.link)
        release = replace(release, intersection=together, is_accepted=options.accept)
    return replace(release, seconds=time.perf_counter() - started)


def _earlier(
    source: Source, loaded: Loaded, request: Request[AnonymizeOptions], run: Run
) -> tuple[list[Earlier], list[Known]]:
    """Earlier releases, and what is known of everybody when this one and each of them was made."""
    options = request.options
    releases = [read_earlier(folder) for folder in options.against]
    if not releases:
        return [], []
    names = [*options.quasi, *(name for release in releases for name in release.quasi)]
    if options.link is None:
        for release in releases:
            release.check_columns(source.columns)
        now = known_now(source, loaded, names)
        return releases, [now] * (1 + len(releases))
    keys = person_keys(source, options.link, run)
    opening = {name: value for name, value in request.source.opening().items() if name not in NOT_EARLIER}
    known = [known_now(source, loaded, [name for name in names if name in source.columns])]
    for release, file in zip(releases, options.earlier, strict=True):
        then = known_then(file, opening, options.link, keys, names, release.coding, run)
        release.check_columns(then.records.column_names, Path(file).name)
        check_source(release, then, Path(file).name)
        known.append(then)
    return releases, known


make_callable(__name__, anonymize)
