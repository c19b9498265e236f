"""One recoding for the whole file: no value of a quasi-identifier fits two published values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.mapping import Line, attributes_of, lines_of, read_mapping

__all__ = ["OneRecoding", "check_one_recoding"]


class OneRecoding(Promise):
    """Every value of these columns is published in the same way in all records."""

    promise: Literal["one-recoding"]
    mapping: Literal["data/mapping.parquet"]
    columns: tuple[str, ...]


def check_one_recoding(context: Context, promise: OneRecoding) -> Outcome:
    """Intervals of numbers must not touch, and no label may appear in two lines; a value that stands for anything must be the only one."""
    mapping = read_mapping(context.folder)
    if attributes_of(mapping) != list(promise.columns):
        return Outcome(False, "the columns are not those that the mapping lists")
    for name in promise.columns:
        if not _is_partition(lines_of(mapping, name)):
            return Outcome(False, f'"{name}" has published values that stand for the same value')
    return Outcome(True, f"{mapping.num_rows} published values of {len(promise.columns)} quasi-identifiers")


def _is_partition(lines: Sequence[Line]) -> bool:
    if any(line["sort"] == "anything" for line in lines):
        return len(lines) == 1
    labels = [label for line in lines for label in line["members"] or ()]
    ends = sorted((line["lower"], line["upper"]) for line in lines if line["lower"] is not None)
    is_apart = all(a <= b for a, b in ends) and all(one[1] < other[0] for one, other in pairwise(ends))
    n_missing = sum(line["sort"] == "missing" for line in lines)
    return is_apart and len(set(labels)) == len(labels) and n_missing <= 1
