"""Completed copies of a k-anonymous release: every generalised value replaced by a value that it may stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats, Ints
from louver.errors import InputError
from louver.optim.imputation import Category, Number, draw_copies

__all__ = ["draw_tables"]

MOST_LABELS = 60
"""Maximum number of labels of a column that the model draws; columns with more are drawn uniformly and predict nothing."""
NUMBERED = ("class_id", "unit_id")
"""Names of columns of arbitrary numbers, which predict nothing."""
MOST_PREDICTING = 20
"""Maximum number of labels of an unchanged column that serve as predictors; the rest count as one."""


def draw_tables(
    records: pa.Table, mapping: pa.Table, n_copies: int, seed: int, *, is_local: bool
) -> list[pa.Table]:
    """Copies of the records, each complete.

    Parameters
    ----------
    records, mapping : pyarrow.Table
        The published records and mapping.
    is_local : bool
        Whether intervals and sets were derived from the values of a class, so that each end is the value of some record.
    """
    if n_copies < 1:
        raise InputError("draws needs at least one copy.", option="n")
    if not records.num_rows:
        return [records] * n_copies
    columns = [_generalised(records, lines, is_local) for lines in _lines_by_attribute(mapping)]
    of_name = {column.name: column for column in columns}
    ends = {name: column.name for column in columns for name in column.published}
    unchanged = [name for name in records.column_names if name not in ends]
    modelled = [column for column in columns if column.model is not None]
    telling = [records[name] for name in unchanged if name not in NUMBERED]
    predictors = [one for one in map(_predictor, telling) if one is not None]
    copies = draw_copies(
        [column.model for column in modelled if column.model is not None] + predictors,
        _classes(records, ends),
        n_copies,
        seed,
    )
    tables = []
    for number, copy in enumerate(copies):
        drawn = {column.name: values for column, values in zip(modelled, copy, strict=False)}
        arrays: dict[str, Any] = {}
        for name in records.column_names:
            if name not in ends:
                arrays[name] = records[name]
            elif ends[name] not in arrays:
                column = of_name[ends[name]]
                values = drawn[column.name] if column.name in drawn else column.draw_evenly(seed, number)
                arrays[column.name] = column.to_arrow(values)
        tables.append(pa.table(arrays))
    return tables


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Generalised:
    """A generalised column.

    Attributes
    ----------
    published : tuple of str
        Its columns in the file: itself, or the two ends of its intervals.
    labels : tuple of str
        Labels for which positions stand; empty for numbers.
    members : tuple of Ints
        Positions for which each line of the mapping stands; empty for numbers.
    line : ndarray of int64, shape (n,)
        Line of the mapping of each record.
    model : Number, Category or None
        None if there are too many labels for a model.
    """

    name: str
    published: tuple[str, ...]
    labels: tuple[str, ...]
    members: tuple[Ints, ...]
    line: Ints
    model: Number | Category | None

    def draw_evenly(self, seed: int, number: int) -> Ints:
        """A label from each record's set, drawn with equal probability."""
        sizes = np.array([len(one) for one in self.members])
        span = Number(
            lower=np.zeros(len(self.line)), upper=(sizes[self.line] - 1).astype(np.float64), is_whole=True
        )
        classes = np.zeros(len(self.line), dtype=np.int64)
        [places] = next(iter(draw_copies([span], classes, 1, seed * 1_000_003 + number)))
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        found: Ints = np.concatenate(self.members)[starts[self.line] + places.astype(np.int64)]
        return found

    def to_arrow(self, values: Floats | Ints) -> pa.Array:
        """Drawn numbers, or labels of drawn positions."""
        if self.labels:
            return pa.array(self.labels).take(pa.array(values.astype(np.int64)))
        is_whole = isinstance(self.model, Number) and self.model.is_whole
        return pa.array(values.astype(np.int64) if is_whole else values)


def _lines_by_attribute(mapping: pa.Table) -> list[list[Mapping[str, Any]]]:
    names = pc.unique(mapping["attribute"]).to_pylist()
    return [mapping.filter(pc.equal(mapping["attribute"], name)).to_pylist() for name in names]


def _generalised(records: pa.Table, lines: Sequence[Mapping[str, Any]], is_local: bool) -> _Generalised:
    name = str(lines[0]["attribute"])
    published = (name,) if name in records.column_names else (f"{name}_lower", f"{name}_upper")
    line = _line_of(records, published, lines)
    if any(one["members"] for one in lines):
        labels = tuple(dict.fromkeys(label for one in lines for label in one["members"] or ()))
        place = {label: number for number, label in enumerate(labels)}
        every = np.arange(len(labels))
        members = tuple(
            np.array([place[label] for label in one["members"]]) if one["members"] else every for one in lines
        )
        is_attained = is_local and all(one["sort"] == "set" for one in lines if one["members"])
        model = _sets(members, len(labels), line, is_attained) if len(labels) <= MOST_LABELS else None
        return _Generalised(
            name=name, published=published, labels=labels, members=members, line=line, model=model
        )
    lower = np.array([np.nan if one["lower"] is None else one["lower"] for one in lines])
    upper = np.array([np.nan if one["upper"] is None else one["upper"] for one in lines])
    known = np.concatenate([lower, upper])
    is_whole = bool((np.isnan(known) | (known == np.round(known))).all())
    number = Number(lower=lower[line], upper=upper[line], is_whole=is_whole, is_attained=is_local)
    return _Generalised(name=name, published=published, labels=(), members=(), line=line, model=number)


def _sets(members: Sequence[Ints], n_labels: int, line: Ints, is_attained: bool) -> Category:
    sets = np.zeros((len(members), n_labels), dtype=bool)
    for number, one in enumerate(members):
        sets[number, one] = True
    return Category(sets=sets, of=line, is_attained=is_attained)


def _line_of(records: pa.Table, published: tuple[str, ...], lines: Sequence[Mapping[str, Any]]) -> Ints:
    """Line of the mapping for each record, looked up by the published text."""
    printed: list[tuple[Any, ...]]
    if len(published) == 1:
        printed = [(one["published"],) for one in lines]
    else:
        printed = [
            (one["members"][0], one["members"][-1]) if one["members"] else (one["lower"], one["upper"])
            for one in lines
        ]
    place = {value: number for number, value in enumerate(printed)}
    values = zip(*(records[name].to_pylist() for name in published), strict=True)
    return np.array([place[value] for value in values], dtype=np.int64)


def _classes(records: pa.Table, ends: Mapping[str, str]) -> Ints:
    """Records with equal published quasi-identifiers."""
    total = np.zeros(records.num_rows, dtype=np.int64)
    for name in ends:
        codes = records[name].combine_chunks().dictionary_encode(null_encoding="encode").indices
        n_codes = int(np.asarray(codes).max(initial=0)) + 1
        _, total = np.unique(total * n_codes + np.asarray(codes), return_inverse=True)
    return total.astype(np.int64)


def _predictor(column: pa.ChunkedArray) -> Number | Category | None:
    """An unchanged column as a predictor of the model; None if it has no known numbers or is of another type."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = np.array(column.cast(pa.float64()).fill_null(np.nan))
        known = numbers[np.isfinite(numbers)]
        if not len(known):
            return None
        filled = np.where(np.isfinite(numbers), numbers, known.mean())
        return Number(lower=filled, upper=filled, is_whole=False)
    if not (pa.types.is_string(column.type) or pa.types.is_boolean(column.type)):
        return None
    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode(null_encoding="encode")
    codes = np.asarray(encoded.indices).astype(np.int64)
    counts = np.bincount(codes)
    common = np.argsort(-counts, kind="stable")[:MOST_PREDICTING]
    place = np.full(len(counts), len(common))
    place[common] = np.arange(len(common))
    return Category(sets=np.eye(len(common) + 1, dtype=bool), of=place[codes])
