"""The dictionary of columns: name, role, kind and what was done, for every column of the source."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.anonymize.columns import Column, NumericColumn, TreeColumn
from louver.anonymize.number_codes import done_to
from louver.anonymize.options import AnonymizeOptions
from louver.anonymize.roles import dropped
from louver.schema.attribute import Attribute, Kind

__all__ = ["dictionary"]

SCHEMA = pa.schema([(name, pa.string()) for name in ("name", "role", "kind", "done")])


def dictionary(
    names: Sequence[str],
    attributes: Sequence[Attribute],
    columns: Sequence[Column],
    published: pa.Schema,
    options: AnonymizeOptions,
) -> pa.Table:
    """One line for each of the source's columns, by its name; quasi-identifiers are given as attributes and columns."""
    quasi = {
        attribute.name: _quasi(attribute, column)
        for attribute, column in zip(attributes, columns, strict=True)
    }
    lines = []
    for name in names:
        if name in quasi:
            role, (kind, done) = "quasi", quasi[name]
        elif name in dropped(options):
            role, kind, done = _role_of_dropped(name, options), "", "dropped"
        else:
            role = "sensitive" if name in options.sensitive else "keep"
            kind, done = kind_of(published.field(name).type), done_to(name, options)
        lines.append({"name": name, "role": role, "kind": kind, "done": done})
    return pa.Table.from_pylist(lines, SCHEMA)


def kind_of(kind: pa.DataType) -> str:
    """The kind of a column in words, by its type.

    Examples
    --------
    >>> kind_of(pa.int8()), kind_of(pa.date32()), kind_of(pa.string())
    ('whole number', 'date', 'text')
    """
    for is_kind, name in (
        (pa.types.is_integer, "whole number"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
        (pa.types.is_boolean, "truth value"),
        (pa.types.is_temporal, "date"),
    ):
        if is_kind(kind):
            return name
    return "text"


def _quasi(attribute: Attribute, column: Column) -> tuple[str, str]:
    """What a quasi-identifier was taken for, and what it became."""
    if isinstance(column, NumericColumn):
        return ("ordered" if attribute.labels else "number"), "generalised to intervals"
    if attribute.kind is Kind.DATE and isinstance(column, TreeColumn):
        return "date", "generalised to months, quarters, years or decades"
    if isinstance(column, TreeColumn):
        return "hierarchy", "generalised along the hierarchy"
    return "category", "generalised to sets"


def _role_of_dropped(name: str, options: AnonymizeOptions) -> str:
    if name in options.identifying:
        return "identifying"
    return "unit" if name == options.unit else "weight"
