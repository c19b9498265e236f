"""How columns are coded: how each one is treated, which codes its values have, and which labels are public."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver.anonymize.columns import (
    Distance,
    LKind,
    NumericColumn,
    QuasiColumn,
    Sensitive,
    SetColumn,
    TreeColumn,
)
from louver.anonymize.generalise import SEPARATOR
from louver.anonymize.options import AnonymizeOptions
from louver.data.coding import calendar_days, date_form, find_row, in_order, is_numbers, iso_day, text_sql
from louver.data.read import Source
from louver.data.tabulate import Records
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode, bin_labels
from louver.schema.spec import Schema

__all__ = [
    "MISSING",
    "attribute_of",
    "codes_of",
    "declared_missing",
    "public_labels",
    "quasi_identifier",
    "sensitive_of",
    "shown_codes",
    "up_to_root",
]

MISSING = "(missing)"
"""Label of missing values of a nominal or ordered column."""


def attribute_of(
    source: Source, column: pa.ChunkedArray, name: str, options: AnonymizeOptions, schema: Schema | None
) -> Attribute:
    """The attribute of a column, from its distinct values; missing values that form a category are given a label.

    `--hierarchy`, `--categorical` and `--ordered` with a list of values take precedence, then the schema. Otherwise a plain `--ordered`
    makes a column ordered, a column of numbers is numeric, and text is nominal.
    """
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
    if name in options.sensitive and not attribute.labels:  # every number is a value of its own
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
    """A quasi-identifier of dates: all days of its years, in a hierarchy of months, quarters, years and decades; None for any other column.

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
    """An attribute of dates over all days of a calendar, with its label for missing values if it has one."""
    hierarchy, labels = Hierarchy.from_dates(days), days
    if attribute.missing is not None:
        hierarchy, labels = hierarchy.with_leaf(attribute.missing), (*days, attribute.missing)
    return replace(attribute, labels=labels, hierarchy=hierarchy)


MAYBE_DATES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal, pa.types.is_integer)


def _missing(column: pa.ChunkedArray, codes: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which values are missing: null, empty, or declared to stand for missing."""
    nulls = pc.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        nulls = pc.or_(nulls, pc.fill_null(pc.equal(column, ""), False))
    if codes:
        is_code = pc.is_in(pc.cast(column, pa.string()), value_set=pa.array(codes, pa.string()))
        nulls = pc.or_(nulls, pc.fill_null(is_code, False))
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = nulls.to_numpy(zero_copy_only=False)
    return flags


def _is_numeric(column: pa.ChunkedArray, codes: Sequence[str]) -> bool:
    """Whether every value that is not missing is a number."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return bool(
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_decimal(column.type)
        )
    values = [value.strip() for value in pc.unique(column).to_pylist() if value and value not in codes]
    return bool(values) and is_numbers(values)


def declared_missing(source: Source, options: AnonymizeOptions) -> dict[str, list[str]]:
    """The values declared to stand for missing, for each quasi-identifier and sensitive column that has any."""
    codes = {name: list(source.missing_codes_of(name)) for name in (*options.quasi, *options.sensitive)}
    return {name: values for name, values in codes.items() if values}


def public_labels(
    attribute: Attribute,
    schema: Schema | None,
    options: AnonymizeOptions,
    known: frozenset[str] = frozenset(),
) -> frozenset[str]:
    """The labels, as published, that are publicly known to exist: those listed by the user and those in `known`."""
    recode = next((recode for recode in options.recodes() if recode.attribute == attribute.name), None)
    return _recoded_labels(
        (frozenset(attribute.labels) - _own_label(attribute, schema)) | known, attribute, recode
    )


def _own_label(attribute: Attribute, schema: Schema | None) -> frozenset[str]:
    """The label for missing values, unless the schema lists it: otherwise it is not public that some values are missing."""
    is_listed = schema is not None and attribute.name in schema.names
    is_given = is_listed and schema is not None and schema.attribute(attribute.name).missing is not None
    return frozenset() if is_given or attribute.missing is None else frozenset({attribute.missing})


def quasi_identifier(
    name: str,
    attributes: Sequence[Attribute],
    sample: Records,
    people: tuple[Records, Ints] | None,
    options: AnonymizeOptions,
    recode: Recode | None,
) -> tuple[Attribute, QuasiColumn]:
    """One column of the problem, the rows of the population below those of the sample, and the attribute whose codes it holds."""
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
        attribute, codes = _binned(attribute, values, recode)
        return attribute, _labelled(attribute, codes, weight, n, options)
    attribute, codes = _united(
        [(_coded_attribute(records, name), codes_of(records, name)) for records in (sample, *others)]
    )
    if recode is not None:
        is_ordered = attribute.is_ordered or name in options.ordered
        kind = Kind.ORDERED if is_ordered and attribute.kind is Kind.CATEGORY else attribute.kind
        attribute, new = replace(attribute, kind=kind).recoded(recode)
        codes = new[codes]
    return attribute, _labelled(attribute, codes, weight, n, options)


def _coded_attribute(records: Records, name: str) -> Attribute:
    return next(a for a in records.attributes if a.name == name)


def codes_of(records: Records, name: str) -> Ints:
    """Codes of one of the records' columns."""
    place = [a.name for a in records.attributes].index(name)
    return records.codes[:, place].astype(np.int64)


def _united(parts: Sequence[tuple[Attribute, Ints]]) -> tuple[Attribute, Ints]:
    """One attribute with the labels of all parts, and the codes of the parts in it, concatenated."""
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


def _labelled(
    attribute: Attribute, codes: Ints, weight: float, n: int, options: AnonymizeOptions
) -> QuasiColumn:
    """A column of categories: with a hierarchy, ordered, or generalised to sets."""
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
    """Refuse a label that stands for different leaves at different levels: readers could not know which leaves it means."""
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
                    f'the hierarchy of column "{name}" ({hierarchy.source}) has a label that stands for different leaves at '
                    f"levels {other} and {level}; rename one of them.",
                    option="--hierarchy",
                    column=name,
                )


def sensitive_of(attribute: Attribute, codes: Ints, options: AnonymizeOptions) -> tuple[Attribute, Sensitive]:
    """A sensitive column: its attribute with the values that occur, and the requirements on it.

    Values that do not occur are left out: an ordered distance is measured in steps between values, and additional values would make every
    class look closer. The label of missing values is left out too, unless they count as a value.
    """
    name = attribute.name
    is_left_out = attribute.missing is not None and not options.count_missing
    occurring = np.unique(codes[codes >= 0])
    kept = [c for c in occurring.tolist() if not (is_left_out and attribute.labels[c] == attribute.missing)]
    number = np.full(attribute.size + 1, -1, np.int64)  # the last position is for values without a code
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
        c=options.c,
        t=options.t,
        distance=distance,
        ancestors=ancestors,
    )


def up_to_root(levels: Sequence[Ints]) -> list[Ints]:
    """The levels above some values, up to the first with a single node, without levels that merge nothing.

    Every level makes all distances smaller, so a level that merges nothing would make every class look closer.

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
    """The chosen distance, or by default the ordered one where values have an order: numbers, and columns in `--ordered`."""
    if options.distance is not None:
        return Distance(options.distance)
    known = [label for label in attribute.labels if label != attribute.missing]
    is_number = attribute.name not in options.categorical and is_numbers(known)
    is_ordered = is_number or attribute.is_ordered or attribute.name in options.ordered
    return Distance.ORDERED if is_ordered and attribute.hierarchy is None else Distance.EQUAL


def shown_codes(published: Ints) -> list[int]:
    """The codes that occur among published records, ascending; missing values have none."""
    codes: list[int] = np.unique(published[published >= 0]).tolist()
    return codes


def _binned(attribute: Attribute, values: Floats, recode: Recode) -> tuple[Attribute, Ints]:
    """Numbers as ordered bins, and the bin of each; missing ones have a label of their own."""
    if recode.bins is None:
        raise InputError(
            f'option --recode merges labels of column "{attribute.name}", which holds numbers; give bins.',
            option="--recode",
            column=attribute.name,
        )
    missing = np.isnan(values)
    is_whole = bool((values[~missing] == np.floor(values[~missing])).all()) and all(
        edge.is_integer() for edge in recode.bins
    )
    labels = bin_labels(recode.bins, whole=is_whole)
    codes = np.searchsorted(recode.bins, values, side="right").astype(np.int64)
    label = None
    if missing.any():
        label, labels = MISSING, (*labels, MISSING)
        codes[missing] = len(labels) - 1
    return Attribute(name=attribute.name, kind=Kind.ORDERED, labels=labels, missing=label), codes


def _recoded_labels(public: frozenset[str], attribute: Attribute, recode: Recode | None) -> frozenset[str]:
    """The public labels after the recode: all bins of the recode are public, whether or not they occur."""
    if recode is None:
        return public
    if recode.bins is not None and not attribute.labels:
        whole = frozenset(bin_labels(recode.bins, whole=True))
        return whole | frozenset(bin_labels(recode.bins, whole=False))
    if not attribute.labels:
        return public
    coarse, new = attribute.recoded(recode)
    return frozenset(
        coarse.labels[new[attribute.code_of(label)]] for label in public if attribute.has_label(label)
    )
