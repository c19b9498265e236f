"""The files of a release, made and written some hundred thousand rows at a time: none is ever in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from louver._arrays import Ints
from louver.schema.attribute import Attribute
from louver.topdown.design import Design
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import Query, SparseLevel

__all__ = ["ROWS", "answers_of", "labelled", "microdata", "row_labels", "statements", "write_row_groups"]

ROWS = 1 << 20
"""Of a row group."""

MOST_ANSWERS = 1 << 22
"""Answers, zeros included, that are worked out together."""

Part = tuple[int, pa.Table]
"""Some rows of a file, and which of its chapters they belong to."""


def write_row_groups(
    path: Path, parts: Iterable[Part], check: Callable[[], object] = tuple, rows: int = ROWS
) -> None:
    """Write parts one after another, in row groups of so many rows; a chapter is one chunk, however it was divided.

    `check` is called before each part, and may raise.
    """
    writer: pq.ParquetWriter | None = None
    held: list[Part] = []
    for part in parts:
        check()
        held.append(part)
        writer = writer or pq.ParquetWriter(path, part[1].schema, compression="zstd")
        while sum(table.num_rows for _, table in held) > rows:
            first, rest = _cut(held, rows)
            writer.write_table(_joined(first), row_group_size=rows)
            held = rest
    assert writer is not None, "a file has at least one part"
    with writer:
        writer.write_table(_joined(held), row_group_size=rows)


def _cut(parts: list[Part], rows: int) -> tuple[list[Part], list[Part]]:
    """The first rows of some parts, and the others."""
    before, after = [], []
    for chapter, table in parts:
        before.append((chapter, table.slice(0, rows)))
        after.append((chapter, table.slice(rows)))
        rows = max(0, rows - table.num_rows)
    return [part for part in before if len(part[1])], [part for part in after if len(part[1])]


def _joined(parts: list[Part]) -> pa.Table:
    chapters = groupby(parts, key=itemgetter(0))
    return pa.concat_tables(pa.concat_tables(t for _, t in own).combine_chunks() for _, own in chapters)


def microdata(design: Design, leaves: SparseLevel, rows: int = ROWS) -> Iterator[pa.Table]:
    """One row per person with regions and attributes, in tables of so many rows; each lists its own leaves only."""
    until = np.cumsum(leaves.count)
    n_people = int(until[-1]) if len(until) else 0
    begun = 0
    for start in range(0, max(1, n_people), rows):
        stop = min(start + rows, n_people)
        first, last = np.searchsorted(until, [start, stop - 1], side="right")
        entry = np.arange(first, min(last + 1, len(until)))
        number = np.minimum(until[entry], stop) - np.maximum(until[entry] - leaves.count[entry], start)
        person = np.repeat(entry, number)
        leaf = np.searchsorted(leaves.start, person, side="right") - 1
        ended = leaves.n_regions if stop == n_people else int(leaf[-1]) + 1
        columns = _regions(design, leaf, begun, ended)
        codes = np.unravel_index(leaves.cell[person], design.shape)
        for attribute, code in zip(design.attributes, codes, strict=True):
            columns[attribute.name] = labelled(code, attribute.labels)
        begun = ended - 1
        yield pa.table(columns)


def _regions(design: Design, leaf: Ints, first: int, last: int) -> dict[str, pa.Array]:
    """The geography columns of the source for people in the leaves first to last."""
    names = design.geography_columns
    if len(names) == 1:
        return {names[0]: labelled(leaf - first, design.spine.leaves[first:last])}
    paths = design.spine.leaf_labels[first:last]
    columns = {}
    for axis, name in enumerate(names):
        labels = {label: i for i, label in enumerate(dict.fromkeys(path[axis] for path in paths))}
        code = np.array([labels[path[axis]] for path in paths])
        columns[name] = labelled(code[leaf - first], tuple(labels))
    return columns


def answers_of(query: Query, level: SparseLevel) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Region, row and count of a query's answers that are not zero, some regions at a time."""
    step = max(1, MOST_ANSWERS // query.n_rows)
    for first in range(0, level.n_regions, step):
        answers = query.answer(level.part(first, min(first + step, level.n_regions)))
        region, row = np.nonzero(answers)
        yield region + first, row, answers[region, row]


def statements(design: Design) -> Iterator[pa.Table]:
    """Bounds from public tables: one row for each that binds."""
    spine = design.spine
    codes = pa.array(spine.leaves, pa.string())
    yield _bounds("", codes, np.zeros(0, np.int64), np.zeros((2, 0), np.int64))
    for statement in design.statements:
        if not statement.is_invariant:
            binding = np.flatnonzero((statement.lower > 0) | (statement.upper < UNBOUNDED))
            for first in range(0, len(binding), ROWS):
                own = binding[first : first + ROWS]
                yield _bounds(
                    statement.name, codes, own, np.stack([statement.lower[own], statement.upper[own]])
                )


def _bounds(name: str, codes: pa.Array, leaf: Ints, bounds: Ints) -> pa.Table:
    return pa.table(
        {
            "statement": pa.repeat(pa.scalar(name, pa.string()), len(leaf)),
            "region": codes.take(pa.array(leaf)),
            "lower": pa.array(bounds[0]),
            "upper": pa.array(bounds[1], mask=bounds[1] >= UNBOUNDED),
        }
    )


def labelled(codes: NDArray[Any], labels: tuple[str, ...]) -> pa.Array:
    """A dictionary column."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(labels, pa.string()))


def row_labels(row: Ints, meaning: tuple[Attribute, ...]) -> dict[str, pa.Array]:
    """Columns that say what rows of a query stand for."""
    if not meaning:
        return {}
    codes = np.unravel_index(row, [attribute.size for attribute in meaning])
    found = zip(meaning, codes, strict=True)
    return {a.name: pa.array(a.labels, pa.string()).take(pa.array(code)) for a, code in found}
