"""From classes to what is published: the table, its mapping, its promises, and what the steward is told of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import given_values
from louver.anonymize.comparison import Bins, Comparison, compare, tally
from louver.anonymize.generalise import Published, generalise, mapping_table, released_table
from louver.anonymize.inference import count_alike, count_alone, worked_out
from louver.anonymize.load import Loaded, shown_codes
from louver.anonymize.methods import METHODS
from louver.anonymize.methods.freeform import Freeform
from louver.anonymize.metrics import (
    PublishedClasses,
    Risk,
    UnitsFound,
    published_classes,
    published_losses,
    reached_by,
    risk_of,
    utility_of,
)
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Answer, Partition, column_as_published
from louver.anonymize.requirements import Guarantee, Sensitive
from louver.anonymize.result import (
    CLASSES_FILE,
    COLUMNS_FILE,
    CSV_FILE,
    DATA_FILE,
    MAPPING_FILE,
    AnonymizedRelease,
)
from louver.anonymize.roles import dictionary, unchanged
from louver.run import Run

__all__ = [
    "Shown",
    "classes_as_published",
    "parameters_of",
    "promises_of",
    "publish",
    "published_texts",
    "risk_as_published",
    "shuffled",
]


def publish(loaded: Loaded, answer: Answer, options: AnonymizeOptions, run: Run) -> AnonymizedRelease:
    """The release that these classes make."""
    problem = loaded.problem
    published = generalised(loaded, answer)
    seen = published_classes(published, answer.sizes, as_bounds=options.format == "bounds")
    group_of = np.full(loaded.records.num_rows, -1, np.int64)
    group_of[problem.rows] = answer.labels
    mapping = mapping_table(published, answer.sizes)
    losses = published_losses(mapping)
    carried = unchanged(loaded.records.column_names, options)
    table = in_order = released_table(
        loaded.records,
        published,
        group_of,
        unchanged=carried,
        is_text=loaded.is_text,
        as_bounds=options.format == "bounds",
        class_ids=shuffled(seen.n)[seen.of_group] if options.class_id else None,
    )
    if not options.keep_order:
        table = table.take(pa.array(shuffled(table.num_rows)))
    quasi = tuple(name for p in published for name in p.column_names(options.format == "bounds"))
    guarantee = _guarantee(options)
    classes = None
    if guarantee in (Guarantee.K_MAP, Guarantee.K_UNITS):
        values = dict(column for p in published for column in p.columns(options.format == "bounds"))
        classes = _listed(pa.table(values), seen, loaded, answer)
    lost = problem.lost_shares(answer)
    of_record = seen.of_records(group_of)[group_of >= 0]
    return AnonymizedRelease(
        table=table,
        mapping=mapping,
        published_losses=losses,
        dictionary=dictionary(
            loaded.records.column_names, loaded.attributes, problem.columns, in_order.schema, options
        ),
        worked_out=worked_out(loaded.records, carried, problem.columns, published, group_of, run),
        classes=classes,
        guarantee=guarantee,
        method=answer.method,
        k=options.k,
        quasi=quasi,
        status=answer.status,
        n_classes=seen.n,
        n_suppressed=answer.n_suppressed,
        lower_bound=None if answer.lower_bound is None else answer.lower_bound * problem.unit,
        risk=risk_as_published(loaded, answer, seen),
        utility=utility_of(
            list(options.quasi),
            np.array([column.weight for column in problem.columns]),
            lost,
            seen.sizes,
            answer.n_suppressed,
            options.k,
        ),
        comparison=_compared(loaded, published, answer),
        promises=promises_of(
            in_order.num_rows,
            quasi,
            losses,
            _shown(group_of >= 0, in_order, loaded),
            options,
            _matching_anything(loaded, options),
        ),
        parameters=parameters_of(options, loaded.missing_code),
        is_order_kept=options.keep_order,
        reached=reached_by(problem, answer),
        n_alone=count_alone(in_order),
        units_found=_units_found(loaded, answer, seen),
        alike=tuple(
            (name, count_alike(in_order[name], of_record))
            for name in (options.sensitive if guarantee is not Guarantee.FREEFORM else ())
        ),
        subproblem_sizes=answer.subproblem_sizes if isinstance(answer, Partition) else (),
    )


def _compared(loaded: Loaded, published: Sequence[Published], answer: Answer) -> Comparison:
    problem = loaded.problem
    bins = [Bins(a, c, problem.rows) for a, c in zip(loaded.attributes, problem.columns, strict=True)]
    return compare(bins, tally(bins, [b.of_records for b in bins], published, answer.sizes))


def generalised(loaded: Loaded, answer: Answer) -> list[Published]:
    """What the groups of an answer publish of every quasi-identifier."""
    problem = loaded.problem
    published = []
    for place, (attribute, column) in enumerate(zip(loaded.attributes, problem.columns, strict=True)):
        covered, first, of_group = answer.covered(place)
        column = column_as_published(column, answer.levels[place] if answer.levels else None)
        found = generalise(attribute, column, problem.rows[covered], first, loaded.public[attribute.name])
        published.append(replace(found, of_group=found.of_group[of_group]))
    return published


def classes_as_published(loaded: Loaded, answer: Answer, options: AnonymizeOptions) -> PublishedClasses:
    """The classes that a reader would see."""
    is_bounds = options.format == "bounds"
    return published_classes(generalised(loaded, answer), answer.sizes, as_bounds=is_bounds)


def risk_as_published(loaded: Loaded, answer: Answer, seen: PublishedClasses) -> Risk:
    """The risk of the published classes: of units, where they are known."""
    problem = loaded.problem
    return risk_of(
        seen.sizes,
        problem.points().multiplicity,
        _people(loaded, answer, seen),
        problem.record_matches(answer) if isinstance(answer, Freeform) else None,
        _units(loaded, answer, seen),
    )


def _units(loaded: Loaded, answer: Answer, seen: PublishedClasses) -> Ints | None:
    """Different units in each class, where units are known."""
    problem = loaded.problem
    if problem.units is None:
        return None
    return seen.count_units(answer.labels, problem.units.codes[problem.rows])


def _units_found(loaded: Loaded, answer: Answer, seen: PublishedClasses) -> UnitsFound | None:
    """Units in each class by a column that looks like their number, though nobody named it."""
    problem, column = loaded.problem, loaded.likely_unit
    if column is None or isinstance(answer, Freeform):
        return None
    codes = column.codes[problem.rows].astype(np.int64)
    codes = np.where(codes == column.n_values, column.n_values + np.arange(len(codes)), codes)
    units = seen.count_units(answer.labels, codes)
    return UnitsFound(
        column=column.name,
        k=problem.k,
        classes=seen.n,
        below_k=int((units < problem.k).sum()),
        single=int((units == 1).sum()),
    )


def _listed(groups: pa.Table, seen: PublishedClasses, loaded: Loaded, answer: Answer) -> pa.Table:
    """What each class publishes, with the people that it matches or with its different units."""
    listed = groups.take(pa.array(seen.first))
    units = _units(loaded, answer, seen)
    if units is not None:
        return listed.append_column("units", pa.array(units))
    people = loaded.problem.population_matches(answer)[seen.first]
    return listed.append_column("people", pa.array(people))


def _guarantee(options: AnonymizeOptions) -> Guarantee:
    guarantee = METHODS[options.method].guarantee
    if options.unit is not None:
        return Guarantee.K_UNITS
    return Guarantee.K_MAP if options.k_map and guarantee is Guarantee.K_ANONYMITY else guarantee


def parameters_of(options: AnonymizeOptions, missing_code: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What was asked for, without the names of files and folders."""
    kept = options.model_dump(
        exclude={
            *("hierarchy", "population", "against", "earlier", "link", "accept", "curve", "recode", "engine"),
            *("registry", "person", "new_population"),
        }
    )
    return kept | {
        "missing_code": {name: list(codes) for name, codes in missing_code.items()},
        "hierarchy": list(options.hierarchy),
        "population": options.population is not None,
        "recode": {recode.attribute: recode.to_table() for recode in options.recodes()},
    }


def _people(loaded: Loaded, answer: Answer, seen: PublishedClasses) -> Floats | None:
    """People of the population that each class matches, by count or by sampling weights."""
    if loaded.represents is not None:
        weights = loaded.represents[loaded.problem.rows]
        is_kept = answer.labels >= 0
        of_record = seen.of_records(answer.labels)[is_kept]
        people: Floats = np.bincount(of_record, weights[is_kept], minlength=seen.n)  # type: ignore[assignment]
        return people
    if len(loaded.problem.requirements.population):
        return loaded.problem.population_matches(answer)[seen.first].astype(np.float64)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A sensitive column as promises speak of it.

    Attributes
    ----------
    codes : list of int
        Values that are published.
    texts : mapping of int to list
        For every code the values of the file that stand for it, as text.
    """

    limits: Sensitive
    codes: list[int]
    texts: Mapping[int, list[str | None]]


def _shown(is_kept: Bools, table: pa.Table, loaded: Loaded) -> list[Shown]:
    return [
        Shown(
            limits=limits,
            codes=shown_codes(limits.codes[is_kept]),
            texts=published_texts(table[attribute.name], limits.codes[is_kept]),
        )
        for attribute, limits in zip(loaded.sensitive, loaded.problem.sensitive, strict=True)
    ]


def promises_of(
    n_records: int,
    quasi: tuple[str, ...],
    losses: list[tuple[str, float]],
    shown: Sequence[Shown],
    options: AnonymizeOptions,
    matching_anything: Sequence[str] = (),
) -> tuple[Mapping[str, Any], ...]:
    """What `verify` shall recompute."""
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
        promises.append({"promise": "one-recoding", "mapping": MAPPING_FILE, "columns": columns})
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
            promises.append({"promise": "l-diversity", **common, "kind": options.l_kind, "l": options.l})
        if options.t is not None:
            levels = [level[line.codes].tolist() for level in line.limits.ancestors]
            closeness = {"distance": line.limits.distance.value, "hierarchy": levels, "t": options.t}
            promises.append({"promise": "t-closeness", **common, **closeness})
    return tuple(promises)


def published_texts(column: pa.ChunkedArray, codes: Ints) -> dict[int, list[str | None]]:
    """For every code of a sensitive column the values of the file that stand for it, as text; None where there is none."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.combine_chunks().dictionary_encode(null_encoding="encode")
    places = values.indices.to_numpy(zero_copy_only=False)
    texts: dict[int, list[str | None]] = {}
    for code, place in np.unique(np.stack([codes, places], axis=1), axis=0).tolist():
        value = values.dictionary[place].as_py()
        texts.setdefault(code, []).append(None if value is None else str(value))
    return texts


def _matching_anything(loaded: Loaded, options: AnonymizeOptions) -> list[str]:
    """Quasi-identifiers with missing values that match anything."""
    if options.missing != "match":
        return []
    rows = loaded.problem.rows
    return [c.name for c in loaded.problem.columns if np.isnan(given_values(c, rows)).any()]


def shuffled(n: int) -> Ints:
    """A random order from the operating system's randomness."""
    return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")
