"""Every column has a role: the check of columns without one, and the dictionary that lists the role and treatment of each column."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from louver.anonymize.columns import Column, NumericColumn, TreeColumn
from louver.anonymize.options import NUMBER_CODES, AnonymizeOptions
from louver.anonymize.recodes import done_to
from louver.data.coded import coded_column, read_coded
from louver.data.dependencies import find_dependencies
from louver.data.kinds import LIKE_A_UNIT, ColumnKind, guess_kind, may_be_unit, why_telling
from louver.data.read import Source
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute, Kind

__all__ = ["check_roles", "dictionary", "dropped", "unchanged"]

EXACT_DATES = "exact dates, which others may know"


def dropped(options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are not published: identifying ones, that of units, a person key, and a sampling weight that is not kept."""
    published = {*options.keep, *options.sensitive, None}
    others = [name for name in (options.unit, options.link, options.sampling_weight) if name not in published]
    return tuple(dict.fromkeys([*options.identifying, *(name for name in others if name is not None)]))


def unchanged(columns: Sequence[str], options: AnonymizeOptions) -> tuple[str, ...]:
    """Columns that are published as they are, in the order of the source."""
    changed = {*options.quasi, *dropped(options)}
    return tuple(name for name in columns if name not in changed)


def check_roles(source: Source, records: pa.Table, options: AnonymizeOptions, run: Run) -> None:
    """Refuse to publish columns that nobody gave a role and that single people out or tell a quasi-identifier.

    Parameters
    ----------
    source : Source
    records : Table
        All columns, numbers that travel along already coded as they are published.
    options : AnonymizeOptions
    run : Run

    Notes
    -----
    The thresholds are those of `louver.data.kinds` and `louver.data.dependencies`, which `louver profile` uses too. A column that
    is rounded or cut off is judged by what is published of it: nobody sees more, and what still is nearly unique is refused.
    """
    listed = {*options.sensitive, *options.keep}
    names = [name for name in unchanged(source.columns, options) if name not in listed]
    if not names:
        return
    as_published = {name for codes in NUMBER_CODES.values() for name in codes(options)}
    coded = [
        coded_column(column.name, records[column.name]) if column.name in as_published else column
        for column in read_coded(source, [*names, *options.quasi], run)
    ]
    others, quasi = coded[: len(names)], coded[len(names) :]
    found: dict[str, list[str]] = {}
    telling, kinds = {}, {column.name: guess_kind(column)[0] for column in others}
    for column in others:
        reason = why_telling(column, kinds[column.name])
        if reason is None and kinds[column.name] is ColumnKind.DATE and column.n_values > 1:
            reason = EXACT_DATES
        if reason is not None:
            telling[column.name] = reason
    numbers = [c for c in others if c.name not in telling and may_be_unit(c, kinds[c.name])]
    if numbers:
        rest = [name for name in source.columns if name not in {*names, *options.quasi}]
        every = [*coded, *(read_coded(source, rest, run) if rest else ())]
        for column in numbers:
            of = [other for other in every if other.name != column.name]
            if find_dependencies([column], run, of=of):
                telling[column.name] = LIKE_A_UNIT
    for dependency in find_dependencies([c for c in others if c.name not in telling], run, of=quasi):
        telling.setdefault(dependency.determinant, f'tells "{dependency.dependent}"')
    for name in names:
        if name in telling:
            found.setdefault(telling[name], []).append(f'"{name}"')
    if found:
        told = "; ".join(f"{', '.join(columns)} ({reason})" for reason, columns in found.items())
        households = "in --unit if it numbers households, " if LIKE_A_UNIT in found else ""
        raise InputError(
            f"{source.name} has columns without a role that may give people away: {told}; name each {households}in --identifying to "
            "drop it, in --quasi to generalise it, or in --sensitive or --keep to publish it unchanged.",
            file=source.name,
            column=next(iter(telling)),
            option="--keep",
        )


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
