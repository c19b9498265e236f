"""A condition on rows, expressed as labels of columns, so that a table of some records can be described as part of a table of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from louver.data.read import RECORDS, Source
from louver.data.sql import filter_sql
from louver.data.tabulate import tabulate
from louver.errors import InputError
from louver.schema.where import All, Among, Column, Compare, Condition, Missing, Not, Some, parse_where

if TYPE_CHECKING:
    from louver.schema.spec import Schema

__all__ = ["restriction"]


def restriction(source: Source, where: str, schema: Schema | None = None) -> dict[str, tuple[str, ...]]:
    """The labels of each column that satisfy a condition.

    Parameters
    ----------
    source : Source
        All records.
    where : str
        Conditions on one column each, joined by `and`.

    Raises
    ------
    InputError
        If a part of the condition compares several columns, or splits a label of the schema.
    """
    parts: dict[str, list[Condition]] = {}
    for part in _parts(parse_where(where)):
        names = set(_columns(part))
        if len(names) > 1:
            raise InputError(
                "options --register and --where: a part of the condition involves several columns; join conditions on single columns by "
                "`and`, or save the rows as a separate file.",
                option="--where",
            )
        parts.setdefault(names.pop(), []).append(part)
    return {name: _labels(source, name, All(tuple(found)), schema) for name, found in parts.items()}


def _labels(source: Source, name: str, condition: Condition, schema: Schema | None) -> tuple[str, ...]:
    inside = _occurring(source, name, condition, schema)
    outside = _occurring(source, name, Not(condition), schema)
    if set(inside) & set(outside):
        raise InputError(
            f'options --register and --where: the condition cuts through a label of "{name}" as the spec has it; choose bins that '
            "end where the condition does.",
            option="--where",
            column=name,
        )
    return tuple(inside)


def _occurring(source: Source, name: str, condition: Condition, schema: Schema | None) -> Mapping[str, None]:
    """Labels of the rows that meet a condition, in order."""
    with source.narrowed(filter_sql(source, RECORDS, condition)) as is_any:
        if not is_any:
            return {}
        histogram = tabulate(source, [name], schema=schema)
        (attribute,) = histogram.attributes
        return dict.fromkeys(attribute.labels[code] for code in histogram.codes[:, 0][histogram.counts > 0])


def _parts(condition: Condition) -> Iterator[Condition]:
    """The conditions joined by `and`."""
    if isinstance(condition, All):
        for part in condition.parts:
            yield from _parts(part)
    else:
        yield condition


def _columns(condition: Condition) -> Iterator[str]:
    match condition:
        case All(parts) | Some(parts):
            for part in parts:
                yield from _columns(part)
        case Not(inner):
            yield from _columns(inner)
        case Compare(column, _, other):
            yield column.name
            if isinstance(other, Column):
                yield other.name
        case Among(column) | Missing(column):
            yield column.name
