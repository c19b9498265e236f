"""From classes to the release: the published table, its mapping, its promises, and the steward's figures about it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from louver._arrays import Floats, Ints
from louver.anonymize.analyses import compare_analyses
from louver.anonymize.classes import ClassesOfPart, bins_of_codebook
from louver.anonymize.coding import shown_codes
from louver.anonymize.columns import Guarantee, Sensitive
from louver.anonymize.comparison import compare
from louver.anonymize.entry import entry_of
from louver.anonymize.generalise import Meaning, PublishedColumn, Sort, mapping_table, released_table
from louver.anonymize.intersection import EarlierRelease, intersect
from louver.anonymize.load import Codebook, HeldFile
from louver.anonymize.lookup import Coding, KnownPeople
from louver.anonymize.methods import method_of
from louver.anonymize.metrics import (
    InferableValues,
    MeasuredLimits,
    PublishedClasses,
    Risk,
    UnitsFound,
    count_alike,
    count_alone,
    count_alone_in_units,
    derivable_values,
    looks_of_units,
    published_classes,
    published_losses,
    risk_of,
    utility_of,
)
from louver.anonymize.options import UNIT_NUMBER, AnonymizeOptions
from louver.anonymize.result import (
    CLASSES_FILE,
    COLUMNS_FILE,
    CSV_FILE,
    DATA_FILE,
    MAPPING_FILE,
    AnonymizedRelease,
    RecordsOnDisk,
    shuffled,
)
from louver.anonymize.roles import dictionary, unchanged
from louver.anonymize.watch import Stopped, Watch
from louver.optim.status import Status
from louver.run import Run

if TYPE_CHECKING:
    from louver.anonymize.alternatives import CurvePoint, LocalRecoding

__all__ = [
    "Arranged",
    "RecordStore",
    "Setting",
    "arrange_in_memory",
    "classes_as_published",
    "lost_shares",
    "parameters_of",
    "promises_of",
    "publish",
    "published_texts",
    "risk_as_published",
]

Texts = Mapping[int, list[str | None]]
"""For each code of a sensitive column, the values of the file that represent it, as text; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arranged:
    """The published records, and counts of them.

    Attributes
    ----------
    texts : mapping of str to Texts
        For each sensitive column with requirements.
    worked_out : tuple of InferableValues
        Empty if this was not counted.
    n_alone : int
        Number of records that no other record equals in every column.
    alike : tuple of (sensitive column, records)
        Records in classes whose members all have one value of the column.
    """

    table: pa.Table | RecordsOnDisk
    texts: Mapping[str, Texts]
    worked_out: tuple[InferableValues, ...]
    n_alone: int
    alike: tuple[tuple[str, int], ...]


class RecordStore(Protocol):
    """The storage of the records while classes are formed: in memory, or in parts on disk."""

    @property
    def codebook(self) -> Codebook: ...
    @property
    def column_names(self) -> Sequence[str]: ...
    @property
    def part_sizes(self) -> tuple[int, ...]:
        """Number of records in each part processed separately; empty if all are processed together."""
        ...

    def form(self, options: AnonymizeOptions, watch: Watch) -> list[ClassesOfPart]:
        """The classes of every part."""
        ...

    def arrange(
        self,
        parts: Sequence[ClassesOfPart],
        published: Sequence[PublishedColumn],
        seen: PublishedClasses,
        options: AnonymizeOptions,
        run: Run,
    ) -> Arranged:
        """The records as they are published."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """The context of a release: comparisons, and the location to which it is written.

    Attributes
    ----------
    started : float
        When the work began, by `time.perf_counter`.
    curve, local : tuple of CurvePoint, LocalRecoding or None
        Loss under other choices.
    earlier, known : list of EarlierRelease, list of KnownPeople
        Earlier releases, and the values known about each person when this release and each of those was made.
    where : mapping of str to sequence of str
        Labels that the filter of the source keeps, for the register.
    ledger : Path or None
    remark, unasked : str or None
        A note on the people in the register; earlier publications that were not audited together with this one.
    records : Table or None
        The records of the source, if analyses are compared.
    """

    started: float
    curve: tuple[CurvePoint, ...] = ()
    local: LocalRecoding | None = None
    earlier: list[EarlierRelease] = field(default_factory=list)
    known: list[KnownPeople] = field(default_factory=list)
    where: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ledger: Path | None = None
    remark: str | None = None
    unasked: str | None = None
    records: pa.Table | None = None


def publish(
    store: RecordStore,
    parts: Sequence[ClassesOfPart],
    options: AnonymizeOptions,
    watch: Watch,
    setting: Setting,
) -> AnonymizedRelease:
    """The release made of the classes of all parts."""
    began, run, codebook = time.perf_counter(), watch.run, store.codebook
    published = published_together(codebook, parts)
    sizes = np.concatenate([part.sizes for part in parts])
    as_bounds = options.format == "bounds"
    seen = published_classes(published, sizes, as_bounds=as_bounds)
    is_exception = parts[0].is_exception if options.exceptions > 0 else None
    mapping = mapping_table(published, sizes, is_exception)
    n_exceptions = 0 if is_exception is None else int(sizes[is_exception].sum())
    losses = published_losses(mapping)
    arranged = store.arrange(parts, published, seen, options, run)
    table = arranged.table
    quasi = tuple(name for p in published for name in p.column_names(as_bounds))
    guarantee = _guarantee(options)
    columns = dictionary(store.column_names, codebook.attributes, codebook.columns, table.schema, options)
    parameters = parameters_of(options, codebook.missing_code)
    n_suppressed = sum(part.n_suppressed for part in parts)
    entry = None
    if options.registry is not None:
        entry = entry_of(
            table,
            mapping,
            columns,
            f"{guarantee} with k = {options.k}",
            n_suppressed,
            codebook.given,
            options,
            setting.where,
        )
    stages = watch.stages | {"publishing": time.perf_counter() - began}
    together = None
    if setting.earlier:
        now = EarlierRelease(
            name="this release",
            table=table,
            mapping=mapping,
            missing_matches=options.missing == "match",
            is_order_kept=options.keep_order,
            n_suppressed=n_suppressed,
            coding=Coding.of(parameters),
        )
        together = intersect(
            setting.known, [now, *setting.earlier], options.sensitive, options.k, link=options.link
        )
    is_one = len(parts) == 1
    return AnonymizedRelease(
        table=table,
        mapping=mapping,
        published_losses=losses,
        dictionary=columns,
        worked_out=arranged.worked_out,
        classes=_listed(published, seen, parts, options),
        guarantee=guarantee,
        method=parts[0].method,
        k=options.k,
        quasi=quasi,
        status=parts[0].status if is_one else Status.FEASIBLE,
        n_classes=seen.n,
        n_suppressed=n_suppressed,
        n_exceptions=n_exceptions,
        lower_bound=None if not is_one or parts[0].bound is None else parts[0].bound * parts[0].unit_of_loss,
        risk=risk_as_published(parts, seen, options),
        utility=utility_of(
            list(options.quasi),
            np.array([column.weight for column in codebook.columns]),
            lost_shares(parts),
            seen.sizes,
            n_suppressed,
            options.k,
        ),
        comparison=compare(bins_of_codebook(codebook), reduce(add, [part.tally for part in parts])),
        promises=promises_of(
            table.num_rows,
            quasi,
            losses,
            _sensitive_as_published(parts, codebook, arranged.texts),
            options,
            _matching_anything(codebook, options),
            n_exceptions,
        ),
        parameters=parameters,
        is_order_kept=options.keep_order,
        reached=_reached_limits(parts),
        n_alone=arranged.n_alone,
        units_found=_units_found(parts, seen, options),
        alike=arranged.alike if guarantee is not Guarantee.FREEFORM else (),
        subproblem_sizes=tuple(size for part in parts for size in part.subproblem_sizes),
        part_sizes=store.part_sizes,
        stopped=_stopped(parts),
        curve=setting.curve,
        local=setting.local,
        intersection=together,
        analyses=None
        if setting.records is None
        else compare_analyses(
            setting.records,
            table,
            mapping,
            options.analyses(),
            weight=options.sampling_weight,
            is_local=options.recoding == "local",
            run=run,
        ),
        is_accepted=options.accept and together is not None,
        entry=entry,
        ledger=setting.ledger,
        remark=setting.remark,
        unasked=setting.unasked,
        stages=stages,
        seconds=time.perf_counter() - setting.started,
    )


def arrange_in_memory(
    file: HeldFile,
    parts: Sequence[ClassesOfPart],
    published: Sequence[PublishedColumn],
    seen: PublishedClasses,
    options: AnonymizeOptions,
    run: Run,
) -> Arranged:
    """The records of a file in memory as they are published."""
    (part,) = parts
    group_of = part.class_of_records()
    is_kept = group_of >= 0
    carried = unchanged(file.column_names, options)
    table = in_order = released_table(
        file.records,
        published,
        group_of,
        unchanged=carried,
        is_text=file.is_text,
        as_bounds=options.format == "bounds",
        class_ids=shuffled(seen.n)[seen.of_group] if options.class_id else None,
    )
    n_alone = count_alone(table)
    found_in = seen.of_records(group_of)[is_kept]
    if options.whole_units:
        assert file.problem.units is not None
        units = np.unique(file.problem.units.codes[is_kept], return_inverse=True)[1]
        n_alone = count_alone_in_units(table, units)
        # A reader can narrow a member down to those whose whole units are alike, where values are equal more
        # often than in a class of records.
        looks = looks_of_units(found_in, units)
        found_in = np.unique(np.stack([looks, found_in]), axis=1, return_inverse=True)[1].reshape(-1)
        fresh = shuffled(int(units.max(initial=-1)) + 1)
        table = table.append_column(UNIT_NUMBER, pa.array(fresh[units]))
    if not options.keep_order:
        table = table.take(pa.array(shuffled(table.num_rows)))
    return Arranged(
        table=table,
        texts={
            limits.name: published_texts(in_order[limits.name], limits.codes[is_kept])
            for limits in file.problem.sensitive
        },
        worked_out=derivable_values(file.records, carried, file.problem.columns, published, group_of, run),
        n_alone=n_alone,
        alike=tuple((name, count_alike(in_order[name], found_in)) for name in options.sensitive),
    )


def published_together(codebook: Codebook, parts: Sequence[ClassesOfPart]) -> list[PublishedColumn]:
    """The published values of the classes for every quasi-identifier, part by part."""
    return [_published_column(codebook, parts, place) for place in range(len(codebook.attributes))]


def _published_column(codebook: Codebook, parts: Sequence[ClassesOfPart], place: int) -> PublishedColumn:
    attribute = codebook.attributes[place]
    codes = _all_codes(attribute.name, parts).tolist()
    known = codebook.public[attribute.name] | {attribute.labels[code] for code in codes}
    number: dict[Meaning, int] = {}
    of_group = []
    for part in parts:
        found = part.published[place]
        own = [number.setdefault(_as_known(m, known), len(number)) for m in found.meanings]
        of_group.append(np.array(own, np.int64)[found.of_group])
    first = parts[0].published[place]
    return replace(first, meanings=tuple(number), of_group=np.concatenate(of_group))


def _as_known(meaning: Meaning, known: frozenset[str]) -> Meaning:
    """An interval of labels, without the labels that occur only in suppressed records."""
    if meaning.sort is not Sort.INTERVAL or meaning.members is None:
        return meaning
    return replace(meaning, members=tuple(label for label in meaning.members if label in known))


def _all_codes(name: str, parts: Sequence[ClassesOfPart]) -> Ints:
    """Codes of a column that occur in published records."""
    nothing = np.zeros(0, np.int64)
    return np.unique(np.concatenate([part.codes.get(name, nothing) for part in parts]))


def classes_as_published(
    codebook: Codebook, parts: Sequence[ClassesOfPart], options: AnonymizeOptions
) -> PublishedClasses:
    """The classes that a reader would see."""
    sizes = np.concatenate([part.sizes for part in parts])
    return published_classes(published_together(codebook, parts), sizes, as_bounds=options.format == "bounds")


def lost_shares(parts: Sequence[ClassesOfPart]) -> Floats:
    """Sum over records of the lost share of each column."""
    lost: Floats = np.sum([part.lost for part in parts], axis=0)
    return lost


def risk_as_published(
    parts: Sequence[ClassesOfPart], seen: PublishedClasses, options: AnonymizeOptions
) -> Risk:
    """The risk of the published classes; measured on units where these are known."""
    matches = [part.matches for part in parts if part.matches is not None]
    return risk_of(
        seen.sizes,
        np.ones(sum(part.n_unique for part in parts), np.int64),
        _people(parts, seen, options),
        np.concatenate(matches) if matches else None,
        _units_of_classes(parts, seen, options),
    )


def _people(
    parts: Sequence[ClassesOfPart], seen: PublishedClasses, options: AnonymizeOptions
) -> Floats | None:
    """People that each class stands for: by weights, the sum over its groups; with a population, the people who match it."""
    found = [part.people for part in parts if part.people is not None]
    if not found:
        return None
    people = np.concatenate(found)
    if options.sampling_weight is None:
        return people[seen.first]
    total: Floats = np.bincount(seen.of_group, people, minlength=seen.n)  # type: ignore[assignment]
    return total


def _count_units(
    units: Sequence[Ints | None], parts: Sequence[ClassesOfPart], seen: PublishedClasses
) -> Ints | None:
    """Different units in each class, where units are known."""
    found, offset = [], 0
    for pairs, part in zip(units, parts, strict=True):
        if pairs is None:
            return None
        found.append(np.stack([seen.of_group[offset + pairs[:, 0]], pairs[:, 1]], axis=1))
        offset += len(part.sizes)
    pairs = np.unique(np.concatenate(found), axis=0)
    return np.bincount(pairs[:, 0], minlength=seen.n)


def _units_of_classes(
    parts: Sequence[ClassesOfPart], seen: PublishedClasses, options: AnonymizeOptions
) -> Ints | None:
    """Distinct units in each published class; for whole units the smallest number that are alike, because finding one member means
    finding all."""
    if not options.whole_units:
        return _count_units([part.units for part in parts], parts, seen)
    fewest = np.full(seen.n, np.iinfo(np.int64).max)
    np.minimum.at(fewest, seen.of_group, np.concatenate([part.sizes for part in parts]))
    return fewest


def _units_found(
    parts: Sequence[ClassesOfPart], seen: PublishedClasses, options: AnonymizeOptions
) -> UnitsFound | None:
    """Units in each class by a column that looks like their number, where none is named as the unit."""
    units = _count_units([part.likely_units for part in parts], parts, seen)
    if units is None or parts[0].likely_column is None:
        return None
    return UnitsFound(
        column=parts[0].likely_column,
        k=options.k,
        classes=seen.n,
        below_k=int((units < options.k).sum()),
        single=int((units == 1).sum()),
    )


def _listed(
    published: Sequence[PublishedColumn],
    seen: PublishedClasses,
    parts: Sequence[ClassesOfPart],
    options: AnonymizeOptions,
) -> pa.Table | None:
    """For k-map and k-units, the published values of each class, with the number of people that it matches or of its distinct units."""
    guarantee = _guarantee(options)
    if guarantee not in (Guarantee.K_MAP, Guarantee.K_UNITS):
        return None
    values = dict(column for p in published for column in p.columns(options.format == "bounds"))
    listed = pa.table(values).take(pa.array(seen.first))
    units = _units_of_classes(parts, seen, options)
    if units is not None:
        return listed.append_column("units", pa.array(units))
    people = _people(parts, seen, options)
    assert people is not None
    return listed.append_column("people", pa.array(people.astype(np.int64)))


def _guarantee(options: AnonymizeOptions) -> Guarantee:
    guarantee = method_of(options).guarantee
    return Guarantee.K_MAP if options.k_map and guarantee is Guarantee.K_ANONYMITY else guarantee


def _reached_limits(parts: Sequence[ClassesOfPart]) -> tuple[MeasuredLimits, ...]:
    """The weakest values over all parts."""
    return tuple(
        min(lines, key=lambda line: line.l or 0.0)
        for lines in zip(*(part.reached for part in parts if part.reached), strict=True)
    )


def _stopped(parts: Sequence[ClassesOfPart]) -> Stopped | None:
    """The stage at which a limit ended the search; the worst case over all parts."""
    found = {part.stopped for part in parts}
    return next((one for one in (Stopped.UNFINISHED, Stopped.IMPROVING) if one in found), None)


def parameters_of(options: AnonymizeOptions, missing_code: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The options, without the names of files and folders."""
    kept = options.model_dump(
        exclude={
            *(
                "hierarchy",
                "population",
                "against",
                "earlier",
                "link",
                "accept",
                "curve",
                "recode",
                "engine",
                "analysis",
                "bound_seconds",
            ),
            *("registry", "person", "new_population", "accept_unchecked"),
        }
    )
    return kept | {
        "missing_code": {name: list(codes) for name, codes in missing_code.items()},
        "hierarchy": list(options.hierarchy),
        "population": options.population is not None,
        "recode": {recode.attribute: recode.to_table() for recode in options.recodes()},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveAsPublished:
    """A sensitive column as described in promises.

    Attributes
    ----------
    codes : list of int
        Values that are published.
    texts : mapping of int to list
        For every code, the values in the file that it represents, as text.
    """

    limits: Sensitive
    codes: list[int]
    texts: Mapping[int, list[str | None]]


def _sensitive_as_published(
    parts: Sequence[ClassesOfPart], codebook: Codebook, texts: Mapping[str, Texts]
) -> list[SensitiveAsPublished]:
    return [
        SensitiveAsPublished(
            limits=limits, codes=shown_codes(_all_codes(limits.name, parts)), texts=texts[limits.name]
        )
        for limits in codebook.sensitive
    ]


def promises_of(
    n_records: int,
    quasi: tuple[str, ...],
    losses: list[tuple[str, float]],
    shown: Sequence[SensitiveAsPublished],
    options: AnonymizeOptions,
    matching_anything: Sequence[str] = (),
    n_exceptions: int = 0,
) -> tuple[Mapping[str, Any], ...]:
    """The promises that `verify` recomputes."""
    about: dict[str, Any] = {"file": DATA_FILE, "quasi": list(quasi), "k": options.k}
    guarantee = _guarantee(options)
    if guarantee in (Guarantee.K_MAP, Guarantee.K_UNITS):
        about["classes"] = CLASSES_FILE
    elif guarantee is Guarantee.FREEFORM:
        about["mapping"] = MAPPING_FILE
        about["open"] = list(matching_anything)
    promises: list[Mapping[str, Any]] = [
        {"promise": "records", "file": DATA_FILE, "records": n_records},
        {"promise": "mapping", "file": DATA_FILE, "mapping": MAPPING_FILE},
        {"promise": "losses", "mapping": MAPPING_FILE, "by_column": losses},
        {"promise": "columns", "file": DATA_FILE, "dictionary": COLUMNS_FILE},
        {"promise": guarantee.value, **about},
    ]
    if options.csv:
        promises.append({"promise": "csv", "file": DATA_FILE, "csv": CSV_FILE})
    if options.recoding == "global":
        columns = list(options.quasi)
        recoded = {"promise": "one-recoding", "mapping": MAPPING_FILE, "columns": columns}
        promises.append(recoded | ({"exceptions": n_exceptions} if options.exceptions > 0 else {}))
    if options.whole_units:
        about = {"file": DATA_FILE, "quasi": list(quasi), "unit": UNIT_NUMBER, "k": options.k}
        promises.append({"promise": "whole-units", **about})
    for line in shown:
        common: dict[str, Any] = {
            "file": DATA_FILE,
            "quasi": list(quasi),
            "sensitive": line.limits.name,
            "values": [line.texts.get(code, []) for code in line.codes],
        }
        if not options.count_missing:
            common["unknown"] = line.texts.get(-1, [])
        if options.l is not None:
            about_l = {"kind": options.l_kind, "l": options.l}
            about_l |= {} if options.c is None else {"c": options.c}
            promises.append({"promise": "l-diversity", **common, **about_l})
        if options.t is not None:
            levels = [level[line.codes].tolist() for level in line.limits.ancestors]
            closeness = {"distance": line.limits.distance.value, "hierarchy": levels, "t": options.t}
            promises.append({"promise": "t-closeness", **common, **closeness})
    return tuple(promises)


def published_texts(column: pa.ChunkedArray, codes: Ints) -> dict[int, list[str | None]]:
    """For every code of a sensitive column, the values of the file that represent it, as text; None if there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.combine_chunks().dictionary_encode(null_encoding="encode")
    places = values.indices.to_numpy(zero_copy_only=False)
    texts: dict[int, list[str | None]] = {}
    for code, place in np.unique(np.stack([codes, places], axis=1), axis=0).tolist():
        value = values.dictionary[place].as_py()
        texts.setdefault(code, []).append(None if value is None else str(value))
    return texts


def _matching_anything(codebook: Codebook, options: AnonymizeOptions) -> list[str]:
    """Quasi-identifiers with missing values that match anything."""
    if options.missing != "match":
        return []
    return [column.name for column in codebook.value_columns if np.isnan(column.ranks).any()]
