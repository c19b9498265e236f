"""The recoding that a mapping describes: how much detail it loses, and whether it is one recoding for the whole file.

Both are measured from published values alone. An interval of numbers loses its width divided by the width of all intervals together. A
value that stands for labels loses their number minus one, divided by the number of all labels that occur in the mapping (minus one if they
are ordered). A value that may be anything loses everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver._arrays import Floats
from louver.release.folder import Malformed
from louver.release.promises.base import TOLERANCE, Context, Outcome, Promise, count_distinct
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

__all__ = ["Losses", "OneRecoding", "check_losses", "check_one_recoding", "mean_loss"]

Share = Annotated[float, Field(ge=0, le=1)]


class Losses(Promise):
    """The losses that the manifest states follow from the mapping."""

    promise: Literal["losses"]
    mapping: Literal["data/mapping.parquet"]
    by_column: tuple[tuple[str, Share], ...]


def check_losses(context: Context, promise: Losses) -> Outcome:
    """Measure every column again."""
    mapping = read_mapping(context.folder)
    names = attributes_of(mapping)
    if names != [name for name, _ in promise.by_column]:
        return Outcome(False, "the losses are not for the columns that the mapping lists")
    for name, stated in promise.by_column:
        found = mean_loss(mapping.filter(pc.equal(mapping["attribute"], name)))
        if abs(found - stated) > TOLERANCE:
            return Outcome(False, f'the loss of "{name}" does not follow from the mapping')
    return Outcome(True, f"{len(names)} quasi-identifiers")


def mean_loss(lines: pa.Table) -> float:
    """Mean over records of the share of information lost in one attribute."""
    records = lines["records"].to_numpy().astype(np.float64)
    shares = _label_shares(lines) if lines["members"].null_count < lines.num_rows else _width_shares(lines)
    shares[np.asarray(lines["sort"]) == "anything"] = 1.0
    return float(records @ shares / max(1.0, records.sum()))


def _label_shares(lines: pa.Table) -> Floats:
    """Number of labels for which each value stands, minus one, divided by the largest possible loss; 0 for a missing value."""
    n_labels = pc.count_distinct(pc.list_flatten(lines["members"])).as_py()
    sizes = pc.fill_null(pc.list_value_length(lines["members"]), 1).to_numpy().astype(np.float64)
    most = n_labels - (np.asarray(lines["sort"]) == "interval")
    shares: Floats = (sizes - 1) / np.maximum(1, most)
    return shares


def _width_shares(lines: pa.Table) -> Floats:
    """Width of each interval divided by the width of all of them together; 0 for a missing value."""
    if lines["lower"].null_count == lines.num_rows:
        return np.zeros(lines.num_rows)
    width = pc.fill_null(pc.subtract(lines["upper"], lines["lower"]), 0.0).to_numpy().astype(np.float64)
    span = pc.max(lines["upper"]).as_py() - pc.min(lines["lower"]).as_py()
    return width / span if span else np.zeros(lines.num_rows)


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
