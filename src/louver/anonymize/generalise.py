"""What is published in place of each quasi-identifier: an interval, a set or a node of a hierarchy for every class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from louver.anonymize.columns import Column, Ints, NumericColumn, SetColumn, TreeColumn
from louver.schema.attribute import Attribute

__all__ = ["ANYTHING", "published_columns", "released_table"]

ANYTHING = "*"
"""Printed where a class spans everything, missing values included."""


def released_table(
    records: pa.Table,
    attributes: Sequence[Attribute],
    columns: Sequence[Column],
    rows: Ints,
    labels: Ints,
    *,
    drop: Sequence[str],
    as_bounds: bool,
    with_class: bool,
) -> pa.Table:
    """The records with their quasi-identifiers generalised, suppressed ones left out, in the order of the source.

    Parameters
    ----------
    rows, labels : int64 (n,)
        Source row and class of each record of the problem; -1 is suppressed.
    drop : sequence of str
        Identifying columns.
    """
    class_of = np.full(records.num_rows, -1, dtype=np.int64)
    class_of[rows] = labels
    kept = np.flatnonzero(class_of >= 0)
    place = class_of[kept]
    published = {
        attribute.name: list(published_columns(attribute, column, rows, labels, as_bounds))
        for attribute, column in zip(attributes, columns, strict=True)
    }
    names: list[str] = []
    arrays: list[pa.ChunkedArray | pa.Array] = []
    for name in records.column_names:
        if name in published:
            for new_name, values in published[name]:
                names.append(new_name)
                arrays.append(values.take(pa.array(place)))
        elif name not in drop:
            names.append(name)
            arrays.append(records.column(name).take(pa.array(kept)))
    if with_class:
        names.append("class_id")
        arrays.append(pa.array(place))
    return pa.table(arrays, names=names)


def published_columns(
    attribute: Attribute, column: Column, rows: Ints, labels: Ints, as_bounds: bool
) -> Iterator[tuple[str, pa.Array]]:
    """(column name, value per class): one printable label, or the pair of bounds of an interval."""
    by_class = np.argsort(labels, kind="stable")
    by_class = by_class[np.searchsorted(labels[by_class], 0) :]
    starts = np.flatnonzero(np.diff(labels[by_class], prepend=-1))
    members = rows[by_class]
    if isinstance(column, NumericColumn):
        yield from _intervals(attribute, column, members, starts, as_bounds)
    elif isinstance(column, SetColumn):
        yield attribute.name, pa.array(_sets(attribute, column, members, starts), pa.string())
    elif isinstance(column, TreeColumn):
        yield attribute.name, pa.array(_nodes(attribute, column, members, starts), pa.string())


def _intervals(
    attribute: Attribute, column: NumericColumn, members: Ints, starts: Ints, as_bounds: bool
) -> Iterator[tuple[str, pa.Array]]:
    values = column.values[members]
    missing = np.isnan(values)
    low = np.minimum.reduceat(np.where(missing, np.inf, values), starts)
    high = np.maximum.reduceat(np.where(missing, -np.inf, values), starts)
    is_empty = high < low
    is_mixed = np.logical_or.reduceat(missing, starts) & ~is_empty & (not column.missing_matches)
    ends = [_end_labels(attribute, end, is_empty | is_mixed) for end in (low, high)]
    if as_bounds:
        for suffix, end in zip(("lower", "upper"), ends, strict=True):
            yield f"{attribute.name}_{suffix}", _bounds_array(attribute, end)
        return
    labels = [
        ANYTHING if mixed else None if empty else _interval_label(a, b, bool(attribute.labels))
        for a, b, mixed, empty in zip(*ends, is_mixed, is_empty, strict=True)
    ]
    yield attribute.name, pa.array(labels, pa.string())


def _end_labels(attribute: Attribute, ends: np.ndarray, is_open: np.ndarray) -> list[str | None]:
    """Ends of intervals as text, in the words of the attribute where it has labels."""
    return [
        None if skip else attribute.labels[int(end)] if attribute.labels else _number(float(end))
        for end, skip in zip(ends, is_open, strict=True)
    ]


def _bounds_array(attribute: Attribute, ends: list[str | None]) -> pa.Array:
    if attribute.labels:
        return pa.array(ends, pa.string())
    numbers = [None if end is None else float(end) for end in ends]
    if all(number is None or number.is_integer() for number in numbers):
        return pa.array([None if number is None else int(number) for number in numbers], pa.int64())
    return pa.array(numbers, pa.float64())


def _interval_label(low: str | None, high: str | None, is_text: bool) -> str | None:
    if low is None or high is None or low == high:
        return low
    return f"{low} - {high}" if is_text or low.startswith("-") else f"{low}-{high}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _sets(attribute: Attribute, column: SetColumn, members: Ints, starts: Ints) -> list[str | None]:
    stops = np.append(starts[1:], len(members))
    codes = column.codes[members]
    sets = (np.unique(codes[a:b]) for a, b in zip(starts, stops, strict=True))
    return [" | ".join(attribute.labels[code] for code in some[some >= 0].tolist()) or None for some in sets]


def _nodes(attribute: Attribute, column: TreeColumn, members: Ints, starts: Ints) -> list[str | None]:
    assert attribute.hierarchy is not None
    leaf_of_place = np.argsort(column._place)
    places, levels = column.class_levels(members, starts)
    return [
        None
        if place < 0
        else attribute.hierarchy.ancestor_of(attribute.labels[int(leaf_of_place[place])], int(level))
        for place, level in zip(places.tolist(), levels.tolist(), strict=True)
    ]
