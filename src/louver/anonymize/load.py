"""From records to the coded problem: which column is of which sort, and what its codes mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver.anonymize.columns import Column, Floats, Ints, NumericColumn, SetColumn, TreeColumn
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.problem import Problem
from louver.anonymize.requirements import Distance, LKind, Sensitive
from louver.data.coding import NUMBER
from louver.data.read import Source
from louver.data.tabulate import read_codes
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.spec import Schema

__all__ = ["Loaded", "load"]


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
    """

    records: pa.Table
    attributes: tuple[Attribute, ...]
    sensitive: tuple[Attribute, ...]
    problem: Problem


def load(source: Source, options: AnonymizeOptions, schema: Schema | None) -> Loaded:
    """Read all columns, code the quasi-identifiers and the sensitive columns.

    A column is what the schema says; without a schema `--ordered` and `--hierarchy` decide, a column of numbers is
    numeric, and text is nominal.
    """
    for name in (*options.quasi, *options.identifying, *options.sensitive):
        source.check_column(name)
    records = pa.Table.from_batches(list(source.batches("SELECT * FROM records")))
    if not records.num_rows:
        raise InputError(f"{source.name} has no records.", file=source.name)
    attributes = [
        _attribute(source, records, name, options, schema) for name in (*options.quasi, *options.sensitive)
    ]
    coded = read_codes(source, [a.name for a in attributes], Schema(attributes=tuple(attributes)))
    code_of = {a.name: (a, coded.codes[:, i].astype(np.int64)) for i, a in enumerate(coded.attributes)}
    quasi = tuple(
        code_of[name][0] if name in code_of else a for name, a in zip(options.quasi, attributes, strict=False)
    )
    columns = [_column(a, code_of.get(a.name), coded.numbers.get(a.name), options) for a in quasi]
    limited = options.sensitive if options.l is not None or options.t is not None else ()
    problem = Problem.build(
        columns,
        k=options.k,
        sensitive=[_sensitive(*code_of[name], options) for name in limited],
        max_suppressed=math.floor(options.suppress * records.num_rows),
    )
    sensitive = tuple(code_of[name][0] for name in limited)
    return Loaded(records=records, attributes=quasi, sensitive=sensitive, problem=problem)


def _attribute(
    source: Source, records: pa.Table, name: str, options: AnonymizeOptions, schema: Schema | None
) -> Attribute:
    """How a column is to be coded; a label for missing values where they are a category of their own."""
    listed = {a.name: a for a in schema.attributes} if schema is not None else {}
    if name in listed:
        attribute = listed[name]
    elif name in options.hierarchy:
        hierarchy = Hierarchy.from_csv(options.hierarchy[name])
        attribute = Attribute(name=name, labels=hierarchy.leaves, hierarchy=hierarchy)
    elif name not in options.ordered and name not in options.sensitive and _is_numeric(records.column(name)):
        attribute = Attribute(name=name, kind=Kind.NUMBER)
    else:
        attribute = Attribute(name=name)
    has_missing = _n_missing(records.column(name)) > 0
    if not has_missing or attribute.missing is not None:
        return attribute
    if options.missing == "error":
        row = int(np.argmax(_missing(records.column(name)))) + 1
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


MISSING = "(missing)"
"""Label of missing values of a nominal or ordered column."""


def _column(
    attribute: Attribute,
    coded: tuple[Attribute, Ints] | None,
    numbers: Floats | None,
    options: AnonymizeOptions,
) -> Column:
    weight = options.weights.get(attribute.name, 1.0)
    matches = options.missing == "match"
    if coded is None:
        assert numbers is not None
        return NumericColumn(name=attribute.name, values=numbers, weight=weight, missing_matches=matches)
    full, codes = coded
    if matches and full.missing is not None and full.has_label(full.missing):
        codes = np.where(codes == full.code_of(full.missing), -1, codes)
    if full.hierarchy is not None:
        leaf = np.array([full.hierarchy.leaves.index(label) for label in full.labels])
        ancestors = [full.hierarchy.ancestors(level)[leaf] for level in range(full.hierarchy.n_levels)]
        return TreeColumn(name=full.name, codes=codes, ancestors=ancestors, weight=weight)
    if full.is_ordered or full.name in options.ordered:
        values = np.where(codes < 0, np.nan, codes).astype(np.float64)
        return NumericColumn(name=full.name, values=values, weight=weight, missing_matches=matches)
    return SetColumn(name=full.name, codes=codes, n_labels=full.size, weight=weight)


def _sensitive(attribute: Attribute, codes: Ints, options: AnonymizeOptions) -> Sensitive:
    name = attribute.name
    ancestors: Sequence[Ints] = ()
    if options.distance == "hierarchical" and options.t is not None:
        if attribute.hierarchy is None:
            raise InputError(
                f'option --distance hierarchical needs --hierarchy for the sensitive column "{name}".',
                option="--distance",
                column=name,
            )
        leaf = np.array([attribute.hierarchy.leaves.index(label) for label in attribute.labels])
        ancestors = [
            attribute.hierarchy.ancestors(level)[leaf] for level in range(1, attribute.hierarchy.n_levels)
        ]
    return Sensitive(
        name=name,
        codes=codes,
        n_values=attribute.size,
        l=options.l,
        l_kind=LKind(options.l_kind),
        t=options.t,
        distance=Distance(options.distance),
        ancestors=ancestors,
    )


def _missing(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    nulls = pc.is_null(column, nan_is_null=True)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        nulls = pc.or_(nulls, pc.fill_null(pc.equal(column, ""), False))
    flags: np.ndarray[tuple[int], np.dtype[np.bool_]] = nulls.to_numpy(zero_copy_only=False)
    return flags


def _n_missing(column: pa.ChunkedArray) -> int:
    return int(_missing(column).sum())


def _is_numeric(column: pa.ChunkedArray) -> bool:
    """Whether every value that is not missing is a number."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return bool(
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_decimal(column.type)
        )
    values = [value for value in pc.unique(column).to_pylist() if value]
    return bool(values) and all(NUMBER.fullmatch(value.strip()) for value in values)
