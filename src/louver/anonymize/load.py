"""From records to the coded problem: which column is of which sort, and what its codes mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.columns import Column, NumericColumn, SetColumn, TreeColumn, given_values
from louver.anonymize.generalise import SEPARATOR
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Problem, Units
from louver.anonymize.recodes import binned, coded_numbers, recoded_labels
from louver.anonymize.requirements import Distance, LKind, Sensitive
from louver.anonymize.roles import check_roles
from louver.data.coded import CodedColumn, read_coded
from louver.data.coding import calendar_days, date_form, find_row, in_order, is_numbers, iso_day, text_sql
from louver.data.read import Source, open_source
from louver.data.tabulate import Records, read_codes
from louver.data.units import find_unit_column
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode
from louver.schema.spec import Schema

__all__ = [
    "Loaded",
    "attribute_of",
    "declared_missing",
    "load",
    "public_labels",
    "quasi_identifier",
    "sensitive_of",
    "shown_codes",
    "up_to_root",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loaded:
    """The records and the problem made of them.

    Attributes
    ----------
    records : pyarrow.Table
        Every column as read.
    attributes : tuple of Attribute
        One for each quasi-identifier; numbers have no labels.
    sensitive : tuple of Attribute
        One for each sensitive column that l-diversity or t-closeness speaks of.
    problem : Problem
    represents : float64 (n,) or None
        How many people of the population each row of the source stands for, where sampling weights are given.
    public : mapping of str to frozenset of str
        Labels of a column that are known to exist, from the schema, a hierarchy or the population.
    is_text : bool
        Whether the source knows no types, so that numbers among `records` are text.
    likely_unit : Column of codes or None
        A column that looks like the number of a household, though it is not named as the unit.
    missing_code : mapping of str to sequence of str
        Values of a quasi-identifier or sensitive column that stand for missing.
    """

    records: pa.Table
    attributes: tuple[Attribute, ...]
    sensitive: tuple[Attribute, ...]
    problem: Problem
    represents: Floats | None = None
    public: Mapping[str, frozenset[str]] = field(default_factory=dict)
    is_text: bool = False
    likely_unit: CodedColumn | None = None
    missing_code: Mapping[str, Sequence[str]] = field(default_factory=dict)


def load(source: Source, options: AnonymizeOptions, schema: Schema | None, run: Run) -> Loaded:
    """Read all columns, code the quasi-identifiers and the sensitive columns.

    A column is what `--hierarchy`, `--categorical` and `--ordered` with its values say, then what the schema says; without these
    `--ordered` decides, a column of numbers is numeric, and text is nominal.
    """
    weighted = (options.sampling_weight,) if options.sampling_weight is not None else ()
    unit = (options.unit,) if options.unit is not None else ()
    for name in (*options.quasi, *options.identifying, *options.sensitive, *options.keep, *unit, *weighted):
        source.check_column(name)
    records = source.read_all()
    if not records.num_rows:
        raise InputError(f"{source.name} has no records.", file=source.name)
    records = coded_numbers(records, source, options)
    check_roles(source, records, options, run)
    attributes = [
        attribute_of(source, records.column(name), name, options, schema)
        for name in (*options.quasi, *options.sensitive)
    ]
    sample = read_codes(source, [a.name for a in attributes], Schema(attributes=tuple(attributes)))
    people = _population(attributes[: len(options.quasi)], options, source.run)
    quasi, columns = [], []
    recodes = {recode.attribute: recode for recode in options.recodes()}
    for name in options.quasi:
        attribute, column = quasi_identifier(name, attributes, sample, people, options, recodes.get(name))
        quasi.append(attribute)
        columns.append(column)
    limited = options.sensitive if options.l is not None or options.t is not None else ()
    found = [sensitive_of(_of(sample, name), _codes(sample, name), options) for name in limited]
    sensitive = tuple(attribute for attribute, _ in found)
    problem = Problem.build(
        columns,
        k=options.k,
        sensitive=[limits for _, limits in found],
        max_suppressed=math.floor(options.suppress * records.num_rows),
        population=None if people is None else people[1],
        is_k_map=options.k_map,
    )
    if options.unit is not None:
        problem = replace(problem, units=_units(source, options.unit, problem, run))
    return Loaded(
        records=records,
        attributes=tuple(quasi),
        sensitive=sensitive,
        problem=problem,
        represents=_represents(source, options),
        public={a.name: public_labels(a, schema, options, _labels(people, a.name)) for a in attributes},
        is_text=source.is_text,
        likely_unit=None if options.unit is not None else find_unit_column(source, options.quasi, run),
        missing_code=declared_missing(source, options),
    )


def declared_missing(source: Source, options: AnonymizeOptions) -> dict[str, list[str]]:
    """Values that stand for missing, for each quasi-identifier and sensitive column that has such."""
    codes = {name: list(source.missing_codes_of(name)) for name in (*options.quasi, *options.sensitive)}
    return {name: values for name, values in codes.items() if values}


def shown_codes(published: Ints) -> list[int]:
    """Codes of the values that published records have, in order; a missing one has none."""
    codes: list[int] = np.unique(published[published >= 0]).tolist()
    return codes


def public_labels(
    attribute: Attribute,
    schema: Schema | None,
    options: AnonymizeOptions,
    known: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """Labels that are known to exist, as published: those that were listed, and others that are `known`."""
    recode = next((recode for recode in options.recodes() if recode.attribute == attribute.name), None)
    return recoded_labels(
        (frozenset(attribute.labels) - _own_label(attribute, schema)) | known, attribute, recode
    )


def _own_label(attribute: Attribute, schema: Schema | None) -> frozenset[str]:
    """The label for missing values where it is ours and not the schema's: that a value is missing is not public."""
    is_listed = schema is not None and attribute.name in schema.names
    is_given = is_listed and schema is not None and schema.attribute(attribute.name).missing is not None
    return frozenset() if is_given or attribute.missing is None else frozenset({attribute.missing})


def _labels(people: tuple[Records, Ints] | None, name: str) -> frozenset[str]:
    """Labels of a column in the population."""
    return frozenset(
        label
        for a in (() if people is None else people[0].attributes)
        if a.name == name
        for label in a.labels
    )


def _population(
    attributes: Sequence[Attribute], options: AnonymizeOptions, run: Run
) -> tuple[Records, Ints] | None:
    """The population table coded like the records, and how many people each row stands for."""
    if options.population is None:
        return None
    count = options.population_count
    # The days of the population may lie in other years; `_united` makes one calendar of both.
    read = [replace(a, labels=(), hierarchy=None) if a.kind is Kind.DATE else a for a in attributes]
    listed = [*read, *([Attribute(name=count, kind=Kind.NUMBER)] if count is not None else [])]
    with open_source(options.population, run=run) as source:
        for attribute in listed:
            source.check_column(attribute.name)
        records = read_codes(source, [a.name for a in listed], Schema(attributes=tuple(listed)))
        if count is None:
            return records, np.ones(records.n_rows, np.int64)
        counts = records.numbers[count]
        bad = ~((counts >= 0) & (counts == np.floor(counts)) & (counts < MAX_PEOPLE))
        _check_rows(source, count, bad, "whole number of people")
    return records, counts.astype(np.int64)


MAX_PEOPLE = 2**40
"""More people than a row of a population can stand for."""


def _represents(source: Source, options: AnonymizeOptions) -> Floats | None:
    """Sampling weights: how many people of the population each record stands for."""
    name = options.sampling_weight
    if name is None:
        return None
    attribute = Attribute(name=name, kind=Kind.NUMBER)
    weights = read_codes(source, [name], Schema(attributes=(attribute,))).numbers[name]
    bad = ~(weights >= 1)
    _check_rows(source, name, bad, "sampling weight of 1 or more")
    return weights


def _units(source: Source, name: str, problem: Problem, run: Run) -> Units:
    """Which unit every record belongs to, and the quasi-identifiers that are constant within each."""
    (column,) = read_coded(source, [name], run)
    codes = column.codes.astype(np.int64)
    _check_rows(source, name, codes == column.n_values, "number of a unit")
    if column.n_values < problem.k:
        raise InputError(
            f'column "{name}" has fewer than k = {problem.k} different units; choose a smaller -k.',
            option="--unit",
            column=name,
        )
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    shared = []
    for place, quasi in enumerate(problem.columns):
        _, values = np.unique(given_values(quasi, order), return_inverse=True)
        is_constant = np.minimum.reduceat(values, starts) == np.maximum.reduceat(values, starts)
        shared += [place] if is_constant.all() else []
    return Units(codes=codes, n=column.n_values, shared=tuple(shared))


def _check_rows(source: Source, column: str, bad: Bools, wanted: str) -> None:
    """Refuse a column with bad rows, naming the first."""
    if bad.any():
        row = source.row_of(int(np.argmax(bad)) + 1)
        raise InputError(
            f'column "{column}" in {source.name} is no {wanted} on row {row}; correct it.',
            file=source.name,
            column=column,
            row=row,
        )


def quasi_identifier(
    name: str,
    attributes: Sequence[Attribute],
    sample: Records,
    people: tuple[Records, Ints] | None,
    options: AnonymizeOptions,
    recode: Recode | None,
) -> tuple[Attribute, Column]:
    """One column of the problem, the population below the sample, and the attribute whose labels its codes are."""
    n = sample.n_rows
    weight = options.weights.get(name, 1.0)
    if options.normalise:
        weight /= sum(options.weights.get(other, 1.0) for other in options.quasi) or 1.0
    others = [] if people is None else [people[0]]
    if name in sample.numbers:
        if name in options.one_hot:
            raise InputError(
                f'option --one-hot names column "{name}", which holds numbers; name a column of categories.',
                option="--one-hot",
                column=name,
            )
        values = np.concatenate([records.numbers[name] for records in (sample, *others)])
        attribute = next(a for a in attributes if a.name == name)
        if recode is None:
            return attribute, NumericColumn(
                name=name,
                values=values,
                weight=weight,
                missing_matches=options.missing == "match",
                n_sample=n,
            )
        attribute, codes = binned(attribute, values, recode)
        return attribute, _labelled(attribute, codes, weight, n, options)
    attribute, codes = _united([(_of(records, name), _codes(records, name)) for records in (sample, *others)])
    if recode is not None:
        is_ordered = attribute.is_ordered or name in options.ordered
        kind = Kind.ORDERED if is_ordered and attribute.kind is Kind.CATEGORY else attribute.kind
        attribute, new = replace(attribute, kind=kind).recoded(recode)
        codes = new[codes]
    return attribute, _labelled(attribute, codes, weight, n, options)


def _of(records: Records, name: str) -> Attribute:
    return next(a for a in records.attributes if a.name == name)


def _codes(records: Records, name: str) -> Ints:
    place = [a.name for a in records.attributes].index(name)
    return records.codes[:, place].astype(np.int64)


def _united(parts: Sequence[tuple[Attribute, Ints]]) -> tuple[Attribute, Ints]:
    """One attribute with the labels of all parts, and the codes of all parts in it, one below the other."""
    first = parts[0][0]
    if any(attribute.labels != first.labels for attribute, _ in parts):
        missing = next((attribute.missing for attribute, _ in parts if attribute.missing is not None), None)
        labels = {label: None for attribute, _ in parts for label in attribute.labels}
        if first.kind is Kind.DATE and first.hierarchy is not None:
            days = [label for label in labels if label != missing]
            bare = replace(first, labels=(), hierarchy=None, missing=missing)
            first = _calendar(bare, calendar_days(days, "the population", first.name))
        else:
            first = replace(first, labels=tuple(in_order(labels, missing)), missing=missing)
    codes = [np.array([first.code_of(label) for label in a.labels], np.int64)[c] for a, c in parts]
    return first, np.concatenate(codes)


def attribute_of(
    source: Source, column: pa.ChunkedArray, name: str, options: AnonymizeOptions, schema: Schema | None
) -> Attribute:
    """How a column, of which every value is among those given, is to be coded; a label for missing values that are a category."""
    listed = {a.name: a for a in schema.attributes} if schema is not None else {}
    codes = source.missing_codes_of(name)
    if name in options.hierarchy:
        hierarchy = Hierarchy.from_csv(options.hierarchy[name])
        attribute = Attribute(name=name, labels=hierarchy.leaves, hierarchy=hierarchy)
    elif name in options.categorical:
        attribute = Attribute(name=name)
    elif options.ordered.get(name):
        attribute = Attribute(name=name, kind=Kind.ORDERED, labels=options.ordered[name])
    elif name in listed and (listed[name].kind is not Kind.DATE or listed[name].labels):
        attribute = listed[name]
    elif (dated := _dated(source, column, name, options, codes)) is not None:
        attribute = dated
    elif name in listed:
        attribute = listed[name]
    elif name not in options.ordered and _is_numeric(column, codes):
        attribute = Attribute(name=name, kind=Kind.NUMBER)
    else:
        attribute = Attribute(name=name)
    if name in options.sensitive and not attribute.labels:  # every number is a value
        attribute = replace(attribute, kind=Kind.CATEGORY)
    if not _missing(column, codes).any() or attribute.missing is not None:
        return attribute
    if options.missing == "error":
        row = find_row(source, f"({text_sql(source, name)}) IS NULL")
        raise InputError(
            f'column "{name}" in {source.name} has no value on row {row}; fill it or choose --missing category or match.',
            file=source.name,
            column=name,
            row=row,
        )
    if attribute.hierarchy is not None:
        hierarchy = attribute.hierarchy.with_leaf(MISSING)
        return replace(attribute, missing=MISSING, labels=(*attribute.labels, MISSING), hierarchy=hierarchy)
    labels = (*attribute.labels, MISSING) if attribute.labels else ()
    return replace(attribute, missing=MISSING, labels=labels)


def _dated(
    source: Source, column: pa.ChunkedArray, name: str, options: AnonymizeOptions, codes: Sequence[str]
) -> Attribute | None:
    """A quasi-identifier of dates: all days of its years, under months, quarters, years and decades; None for other columns.

    With `--ordered` the days that occur are generalised to intervals instead.
    """
    if name not in options.quasi:
        return None
    if not any(is_kind(column.type) for is_kind in MAYBE_DATES):
        return None
    texts = [text for text in pc.unique(column.cast(pa.string())).to_pylist() if text and text not in codes]
    form = date_form(texts, source, name)
    if form is None:
        return None
    days = [day for text in texts if (day := iso_day(text, form)) is not None]
    if name in options.ordered or not days:
        return Attribute(name=name, kind=Kind.DATE)
    return _calendar(Attribute(name=name, kind=Kind.DATE), calendar_days(days, source.name, name))


def _calendar(attribute: Attribute, days: tuple[str, ...]) -> Attribute:
    """An attribute of dates over all days of a calendar, and its label for missing values where it has one."""
    hierarchy, labels = Hierarchy.from_dates(days), days
    if attribute.missing is not None:
        hierarchy, labels = hierarchy.with_leaf(attribute.missing), (*days, attribute.missing)
    return replace(attribute, labels=labels, hierarchy=hierarchy)


MAYBE_DATES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal, pa.types.is_integer)

MISSING = "(missing)"
"""Label of missing values of a nominal or ordered column."""


def _labelled(attribute: Attribute, codes: Ints, weight: float, n: int, options: AnonymizeOptions) -> Column:
    """A column of categories: under a hierarchy, ordered, or generalised to sets."""
    name = attribute.name
    matches = options.missing == "match"
    if matches and attribute.missing is not None and attribute.has_label(attribute.missing):
        codes = np.where(codes == attribute.code_of(attribute.missing), -1, codes)
    is_ordered = attribute.is_ordered or name in options.ordered
    if name in options.one_hot and (is_ordered or attribute.hierarchy is not None):
        raise InputError(
            f'option --one-hot names column "{name}", which has an order or a hierarchy; name another.',
            option="--one-hot",
            column=name,
        )
    if attribute.hierarchy is not None:
        _check_levels(name, attribute.hierarchy)
        leaf = attribute.hierarchy.leaf_codes(attribute.labels)
        ancestors = [
            attribute.hierarchy.ancestors(level)[leaf] for level in range(attribute.hierarchy.n_levels)
        ]
        return TreeColumn(name=name, codes=codes, ancestors=ancestors, weight=weight)
    if is_ordered:
        values = np.where(codes < 0, np.nan, codes).astype(np.float64)
        return NumericColumn(name=name, values=values, weight=weight, missing_matches=matches, n_sample=n)
    if any(SEPARATOR in label for label in attribute.labels):
        raise InputError(
            f'column "{name}" has a label with "{SEPARATOR.strip()}" between spaces, which separates the labels of a set; '
            "give it a hierarchy or rename the label.",
            column=name,
        )
    return SetColumn(
        name=name,
        codes=codes,
        n_labels=attribute.size,
        weight=weight,
        one_hot=name in options.one_hot,
    )


def _check_levels(name: str, hierarchy: Hierarchy) -> None:
    """Refuse a label that stands for other leaves at another level: published, nobody could tell which."""
    times = Counter(label for labels in hierarchy.levels for label in labels)
    first_at: dict[str, tuple[int, bytes]] = {}
    for level, labels in enumerate(hierarchy.levels):
        nodes = hierarchy.ancestors(level)
        for code, label in enumerate(labels):
            if times[label] == 1:
                continue
            below = np.flatnonzero(nodes == code).tobytes()
            other, leaves = first_at.setdefault(label, (level, below))
            if leaves != below:
                raise InputError(
                    f'the hierarchy of column "{name}" ({hierarchy.source}) has a label that stands for other leaves at '
                    f"level {level} than at level {other}; rename one of them.",
                    option="--hierarchy",
                    column=name,
                )


def sensitive_of(attribute: Attribute, codes: Ints, options: AnonymizeOptions) -> tuple[Attribute, Sensitive]:
    """A sensitive column: its attribute with the values that occur, and what is asked of it.

    Values that nobody has are left out: an ordered distance is measured in steps between values, and listing more would make every
    class look closer. So is the label of missing values, unless these count.
    """
    name = attribute.name
    is_left_out = attribute.missing is not None and not options.count_missing
    occurring = np.unique(codes[codes >= 0])
    kept = [c for c in occurring.tolist() if not (is_left_out and attribute.labels[c] == attribute.missing)]
    number = np.full(attribute.size + 1, -1, np.int64)  # the last is for what has no code
    number[kept] = np.arange(len(kept))
    labels = tuple(attribute.labels[code] for code in kept)
    missing = None if is_left_out or attribute.missing not in labels else attribute.missing
    attribute, codes = replace(attribute, labels=labels, missing=missing), number[codes]
    distance = _distance(attribute, options)
    ancestors: Sequence[Ints] = ()
    if distance is Distance.HIERARCHICAL and options.t is not None:
        if attribute.hierarchy is None:
            raise InputError(
                f'option --distance hierarchical needs --hierarchy for the sensitive column "{name}".',
                option="--distance",
                column=name,
            )
        leaf = attribute.hierarchy.leaf_codes(attribute.labels)
        levels = [
            attribute.hierarchy.ancestors(level)[leaf] for level in range(1, attribute.hierarchy.n_levels)
        ]
        ancestors = up_to_root(levels)
    return attribute, Sensitive(
        name=name,
        codes=codes,
        n_values=attribute.size,
        l=options.l,
        l_kind=LKind(options.l_kind),
        t=options.t,
        distance=distance,
        ancestors=ancestors,
    )


def up_to_root(levels: Sequence[Ints]) -> list[Ints]:
    """The levels above some values up to the first that has them all in one node, without those that repeat the one below.

    A level more divides every distance by more: one that unites nothing would make every class look closer.

    Examples
    --------
    >>> len(up_to_root([np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([0, 0, 0])]))
    2
    >>> len(up_to_root([np.array([0, 0, 1]), np.array([4, 4, 5]), np.array([0, 0, 0])]))
    2
    """
    sizes = [len(np.unique(level)) for level in levels]
    return [level for n, level in enumerate(levels) if not n or sizes[n] < sizes[n - 1]]


def _distance(attribute: Attribute, options: AnonymizeOptions) -> Distance:
    """As asked; otherwise that of the order, where values have one: numbers, and what `--ordered` names."""
    if options.distance is not None:
        return Distance(options.distance)
    known = [label for label in attribute.labels if label != attribute.missing]
    is_number = attribute.name not in options.categorical and is_numbers(known)
    is_ordered = is_number or attribute.is_ordered or attribute.name in options.ordered
    return Distance.ORDERED if is_ordered and attribute.hierarchy is None else Distance.EQUAL


def _missing(column: pa.ChunkedArray, codes: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where a value is missing, empty, or one of those that stand for missing."""
    nulls = pc.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        nulls = pc.or_(nulls, pc.fill_null(pc.equal(column, ""), False))
    if codes:
        is_code = pc.is_in(pc.cast(column, pa.string()), value_set=pa.array(codes, pa.string()))
        nulls = pc.or_(nulls, pc.fill_null(is_code, False))
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = nulls.to_numpy(zero_copy_only=False)
    return flags


def _is_numeric(column: pa.ChunkedArray, codes: Sequence[str]) -> bool:
    """Whether every value is a number that is not missing and stands for no missing one."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return bool(
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_decimal(column.type)
        )
    values = [value.strip() for value in pc.unique(column).to_pylist() if value and value not in codes]
    return bool(values) and is_numbers(values)
