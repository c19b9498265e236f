"""One recoding for the whole file: no value of a quasi-identifier matches two published values, except in a stated number of records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise, count_distinct
from louver.release.promises.mapping import (
    COMMON,
    DATA,
    Line,
    attributes_of,
    lines_of,
    published_columns,
    read_mapping,
    value_of,
)

__all__ = ["OneRecoding", "check_one_recoding"]


class OneRecoding(Promise):
    """Every value of these columns is published in the same way in all records.

    Attributes
    ----------
    exceptions : int, optional
        Number of records that may differ: the mapping shows which values belong to the recoding, and these records have other values.
    """

    promise: Literal["one-recoding"]
    mapping: Literal["data/mapping.parquet"]
    columns: tuple[str, ...]
    exceptions: Annotated[int, Field(ge=0)] | None = None


def check_one_recoding(context: Context, promise: OneRecoding) -> Outcome:
    """Intervals of numbers must not touch, no label may appear in two lines, and a value that stands for anything must be the only
    value."""
    mapping = read_mapping(context.folder)
    if attributes_of(mapping) != list(promise.columns):
        return Outcome(False, "the columns are not those that the mapping lists")
    if (promise.exceptions is None) == (COMMON in mapping.column_names):
        raise Malformed("the mapping and the promise do not agree on whether there may be exceptions")
    lines = {name: lines_of(mapping, name) for name in promise.columns}
    for name in promise.columns:
        if not _is_partition([line for line in lines[name] if line.get(COMMON, True)]):
            return Outcome(False, f'"{name}" has published values that stand for the same value')
    detail = f"{mapping.num_rows} published values of {len(promise.columns)} quasi-identifiers"
    if promise.exceptions is None:
        return Outcome(True, detail)
    n = _count_exceptions(context, lines)
    return Outcome(n <= promise.exceptions, f"{detail}, {n:,} records with others than those of the recoding")


def _count_exceptions(context: Context, lines: dict[str, list[Line]]) -> int:
    """Records with a value that does not belong to the recoding."""
    columns = {name: published_columns(context.folder, name) for name in lines}
    common = {name: {value_of(line, columns[name]) for line in lines[name] if line[COMMON]} for name in lines}
    every = [column for name in lines for column in columns[name]]
    *values, counts = count_distinct(context.folder, DATA, every).to_pydict().values()
    rows = zip(*values, strict=True)
    n = 0
    for row, count in zip(rows, counts, strict=True):
        found = iter(row)
        # A list and not a generator, because every column must take its values from the row, whatever the others are.
        is_common = [tuple(next(found) for _ in columns[name]) in common[name] for name in lines]
        n += 0 if all(is_common) else count
    return int(n)


def _is_partition(lines: Sequence[Line]) -> bool:
    if any(line["sort"] == "anything" for line in lines):
        return len(lines) == 1
    labels = [label for line in lines for label in line["members"] or ()]
    ends = sorted((line["lower"], line["upper"]) for line in lines if line["lower"] is not None)
    is_apart = all(a <= b for a, b in ends) and all(one[1] < other[0] for one, other in pairwise(ends))
    n_missing = sum(line["sort"] == "missing" for line in lines)
    return is_apart and len(set(labels)) == len(labels) and n_missing <= 1
