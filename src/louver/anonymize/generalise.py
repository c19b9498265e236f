"""The published form of each quasi-identifier: an interval, a set or a node of a hierarchy for every group."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np
import pyarrow as pa

from louver._arrays import Bools, Ints
from louver.anonymize.columns import NumericColumn, QuasiColumn, SetColumn, TreeColumn
from louver.data.coded import typed
from louver.schema.attribute import Attribute

__all__ = [
    "ANYTHING",
    "SEPARATOR",
    "Meaning",
    "PublishedColumn",
    "Sort",
    "generalise",
    "mapping_table",
    "number_label",
    "released_table",
]

SEPARATOR = " | "
"""Separator between the labels of a set."""

ANYTHING = "*"
"""Text for a group that covers every value, including missing ones."""


class Sort(StrEnum):
    """The meaning of a published value."""

    INTERVAL = "interval"
    SET = "set"
    NODE = "node"
    MISSING = "missing"
    ANYTHING = "anything"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One published value and the original values it stands for.

    Attributes
    ----------
    label : str or None
        The printed text; None if nothing is known.
    lower, upper : float or None
        Ends of an interval of numbers.
    members : tuple of str or None
        Labels it stands for; for an interval of labels in their order.
    """

    sort: Sort
    label: str | None
    lower: float | None = None
    upper: float | None = None
    members: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedColumn:
    """The published values of one quasi-identifier, by group.

    Attributes
    ----------
    meanings : tuple of Meaning
        The distinct published values.
    of_group : int64 (groups,)
        Which of them each group publishes.
    is_interval : bool
        Whether groups are generalised to intervals.
    """

    attribute: Attribute
    meanings: tuple[Meaning, ...]
    of_group: Ints
    is_interval: bool = False

    def column_names(self, as_bounds: bool) -> tuple[str, ...]:
        """One column of printable labels, or two columns with the interval endpoints."""
        name = self.attribute.name
        return (f"{name}_lower", f"{name}_upper") if as_bounds and self.is_interval else (name,)

    def columns(self, as_bounds: bool) -> Iterator[tuple[str, pa.Array]]:
        """(column name, value per group)."""
        names, groups = self.column_names(as_bounds), pa.array(self.of_group)
        if len(names) == 1:
            yield names[0], pa.array([meaning.label for meaning in self.meanings], pa.string()).take(groups)
            return
        for name, place in zip(names, (0, -1), strict=True):
            if self.attribute.labels:
                labels = [m.members[place] if m.members else None for m in self.meanings]
                yield name, pa.array(labels, pa.string()).take(groups)
                continue
            ends = [m.lower if place == 0 else m.upper for m in self.meanings]
            is_whole = all(end is None or end.is_integer() for end in ends)
            kind = pa.int64() if is_whole else pa.float64()
            values = [None if end is None else int(end) if is_whole else end for end in ends]
            yield name, pa.array(values, kind).take(groups)


def generalise(
    attribute: Attribute,
    column: QuasiColumn,
    members: Ints,
    starts: Ints,
    public: frozenset[str] = frozenset(),
) -> PublishedColumn:
    """The published values of a column, by group.

    Parameters
    ----------
    members : int64
        Source rows of the records that each group covers, group after group.
    starts : int64 (groups,)
        Where each group starts.
    public : frozenset of str
        Labels that are known to exist; among all others, only labels of published records are named.
    """
    if isinstance(column, NumericColumn):
        return _intervals(attribute, column, members, starts, public)
    if isinstance(column, SetColumn):
        return _sets(attribute, column, members, starts)
    assert isinstance(column, TreeColumn)
    return _nodes(attribute, column, members, starts)


def released_table(
    records: pa.Table,
    published: Sequence[PublishedColumn],
    group_of: Ints,
    *,
    unchanged: Sequence[str],
    is_text: bool,
    as_bounds: bool,
    class_ids: Ints | None,
) -> pa.Table:
    """The records with their quasi-identifiers generalised, suppressed ones left out, in the order of the source.

    Parameters
    ----------
    group_of : int64 (rows,)
        The group as which each row of the source is published; -1 is suppressed.
    unchanged : sequence of str
        Columns that are published unchanged.
    is_text : bool
        Whether numbers among them are stored as text and are converted; decided by the published records alone.
    class_ids : int64 (groups,), optional
        Numbers of the groups, if they are published.
    """
    kept = np.flatnonzero(group_of >= 0)
    place = group_of[kept]
    of_name = {p.attribute.name: p for p in published}
    names: list[str] = []
    arrays: list[pa.ChunkedArray | pa.Array] = []
    for name in records.column_names:
        if name in of_name:
            for new_name, values in of_name[name].columns(as_bounds):
                names.append(new_name)
                arrays.append(values.take(pa.array(place)))
        elif name in unchanged:
            column = records.column(name)
            if pa.types.is_dictionary(
                column.type
            ):  # the dictionary may hold values of records that are left out
                column = column.cast(column.type.value_type)
            column = column.take(pa.array(kept))
            names.append(name)
            arrays.append(typed(column) if is_text else column)
    if class_ids is not None:
        names.append("class_id")
        arrays.append(pa.array(class_ids[place]))
    return pa.table(arrays, names=names)


def mapping_table(
    published: Sequence[PublishedColumn], sizes: Ints, is_exception: Bools | None = None
) -> pa.Table:
    """The applied mapping: every published value, what it stands for, and how many records have it.

    If there are exceptions to one recoding, also whether the value belongs to the recoding (`common`).
    """
    lines = []
    for p in published:
        is_common = np.zeros(len(p.meanings), np.bool_)
        is_common[p.of_group if is_exception is None else p.of_group[~is_exception]] = True
        records = np.bincount(p.of_group, weights=sizes, minlength=len(p.meanings)).astype(np.int64)
        lines += [
            {
                "attribute": p.attribute.name,
                "published": m.label,
                "sort": m.sort.value,
                "lower": m.lower,
                "upper": m.upper,
                "members": None if m.members is None else list(m.members),
                "records": count,
                "common": common,
            }
            for m, count, common in zip(p.meanings, records.tolist(), is_common.tolist(), strict=True)
        ]
    return pa.Table.from_pylist(lines, MAPPING if is_exception is None else MAPPING.append(COMMON))


MAPPING = pa.schema(
    [
        ("attribute", pa.string()),
        ("published", pa.string()),
        ("sort", pa.string()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("members", pa.list_(pa.string())),
        ("records", pa.int64()),
    ]
)

COMMON = pa.field("common", pa.bool_())


def _intervals(
    attribute: Attribute, column: NumericColumn, members: Ints, starts: Ints, public: frozenset[str]
) -> PublishedColumn:
    values = column.values[members]
    missing = np.isnan(values)
    known = public
    if attribute.labels:
        known = public | {attribute.labels[int(code)] for code in np.unique(values[~missing])}
    low = np.minimum.reduceat(np.where(missing, np.inf, values), starts)
    high = np.maximum.reduceat(np.where(missing, -np.inf, values), starts)
    is_mixed = np.logical_or.reduceat(missing, starts) & (high >= low) & (not column.missing_matches)
    low, high = np.where(is_mixed, -np.inf, low), np.where(is_mixed, np.inf, high)
    ends, of_group = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    meanings = tuple(_interval(attribute, float(a), float(b), known) for a, b in ends)
    return PublishedColumn(
        attribute=attribute, meanings=meanings, of_group=of_group.reshape(-1), is_interval=True
    )


def _interval(attribute: Attribute, low: float, high: float, known: frozenset[str]) -> Meaning:
    """An interval; if there are no numbers, low is +infinity; an interval that covers everything is infinite at both ends."""
    if low > high:
        return Meaning(Sort.MISSING, None)
    if low == -np.inf:
        return Meaning(Sort.ANYTHING, ANYTHING)
    if attribute.labels:
        covered = tuple(label for label in attribute.labels[int(low) : int(high) + 1] if label in known)
        return Meaning(Sort.INTERVAL, interval_label(covered[0], covered[-1]), members=covered)
    return Meaning(Sort.INTERVAL, interval_label(number_label(low), number_label(high)), low, high)


def interval_label(low: str, high: str) -> str:
    """The label of a single value or of an interval, such as "[35, 37]", with both endpoints included.

    A minus sign cannot be mistaken for a dash, spreadsheets recognise neither a date nor a formula, and numbers can be read as JSON. An
    endpoint that would make the label ambiguous is written as a JSON string.

    Examples
    --------
    >>> interval_label("-1", "0"), interval_label("low", "low"), interval_label("a", "b, c")
    ('[-1, 0]', 'low', '[a, "b, c"]')
    """
    if low == high:
        return json.dumps(low, ensure_ascii=False) if low.startswith(("[", '"')) else low
    ends = [json.dumps(end, ensure_ascii=False) if AMBIGUOUS & set(end) else end for end in (low, high)]
    return f"[{', '.join(ends)}]"


AMBIGUOUS = frozenset('[],"')


def number_label(value: float) -> str:
    """A number as printed: whole numbers have no decimal point."""
    return str(int(value)) if value.is_integer() else repr(value)


def _sets(attribute: Attribute, column: SetColumn, members: Ints, starts: Ints) -> PublishedColumn:
    groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(members))))
    codes = column.codes[members]
    pairs = np.unique(groups[codes >= 0] * column.n_labels + codes[codes >= 0])
    ends = np.searchsorted(pairs, np.arange(len(starts) + 1) * column.n_labels)
    in_group = pairs % max(1, column.n_labels)
    number: dict[bytes, int] = {}
    of_group = np.array([number.setdefault(in_group[a:b].tobytes(), len(number)) for a, b in pairwise(ends)])
    meanings = []
    for key in number:
        labels = tuple(attribute.labels[code] for code in np.frombuffer(key, in_group.dtype))
        found = Meaning(Sort.SET, SEPARATOR.join(labels), members=labels)
        meanings.append(found if labels else Meaning(Sort.MISSING, None))
    return PublishedColumn(attribute=attribute, meanings=tuple(meanings), of_group=of_group)


def _nodes(attribute: Attribute, column: TreeColumn, members: Ints, starts: Ints) -> PublishedColumn:
    assert attribute.hierarchy is not None
    places, levels = column.class_levels(members, starts)
    leaf_of_place = np.argsort(column._place)
    nodes, _ = column.tree
    node = np.where(places < 0, -1, nodes[levels, np.maximum(places, 0)])
    _, first, of_group = np.unique(
        np.stack([np.where(places < 0, -1, levels), node], axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    meanings = []
    for place, level in zip(places[first].tolist(), levels[first].tolist(), strict=True):
        if place < 0:
            meanings.append(Meaning(Sort.MISSING, None))
            continue
        below = leaf_of_place[nodes[level] == nodes[level, place]]
        labels = tuple(attribute.labels[leaf] for leaf in np.sort(below))
        label = attribute.hierarchy.ancestor_of(attribute.labels[int(leaf_of_place[place])], level)
        meanings.append(Meaning(Sort.NODE, label, members=labels))
    return PublishedColumn(attribute=attribute, meanings=tuple(meanings), of_group=of_group.reshape(-1))
