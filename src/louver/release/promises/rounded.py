"""Rounded tables: every number is a multiple of its base, they add up, and they agree with one another.

How far a number is from its true value is not public, so that it is not checked; `beyond` states it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.csv_copy import csv_of, csv_problem
from louver.release.promises.protected import Knowledge, ProtectedTable, PublishedCodes, learn

__all__ = ["RoundedTablesPromise", "check_rounded"]

MOST_LINES = 2_000_000


class RoundedTable(ProtectedTable):
    """A table by some attributes: their codes and the number, a multiple of the base."""

    base: Annotated[int, Field(ge=2)]


class RoundedTablesPromise(Promise):
    """Every table of the release; numbers go at most `beyond` multiples further than the two next to their values."""

    promise: Literal["rounded-tables"]
    tables: Annotated[tuple[RoundedTable, ...], Field(min_length=1)]
    codes: dict[str, PublishedCodes]
    beyond: Annotated[int, Field(ge=0)]


def check_rounded(context: Context, promise: RoundedTablesPromise) -> Outcome:
    """Read every table, then everything together."""
    knowledge = Knowledge()
    n_lines = 0
    for table in promise.tables:
        cells = _cells(context, table)
        n_lines += len(cells)
        csv = csv_of(table.file)
        if csv in context.folder.files and (problem := csv_problem(context.folder, csv, table.file)):
            return Outcome(False, problem)
        problem = learn(knowledge, table, promise.codes, cells)
        if problem is not None:
            return Outcome(False, problem)
    known = dict(knowledge.shown)
    # Deepest sums come first, so that the parts of a total that nobody lists are known before the total.
    for (total, parts), file in knowledge.sums.items():
        if any(part not in known for part in parts):
            raise Malformed(f"a total of {file} has parts that are nowhere listed")
        if known.setdefault(total, sum(known[part] for part in parts)) != sum(known[part] for part in parts):
            return Outcome(False, f"a total of {file} is not the sum of its parts")
    return Outcome(True, f"{n_lines} multiples of their base, which add up")


def _cells(context: Context, table: RoundedTable) -> dict[tuple[str, ...], int | None]:
    """Numbers by their codes."""
    read = context.folder.table(table.file, most_rows=MOST_LINES)
    if read.column_names != [*table.by, table.value]:
        raise Malformed("the columns of the file are not the promised ones")
    if not pa.types.is_integer(read[table.value].type) or table.decimals:
        raise Malformed(f"the numbers of {table.file} are not whole")
    found: dict[tuple[str, ...], int | None] = {}
    for *codes, number in zip(*(column.to_pylist() for column in read.columns), strict=True):
        key = tuple(codes)
        if None in key or key in found:
            raise Malformed(f"a cell of {table.file} has no code or stands twice")
        if number is None or number % table.base:
            raise Malformed(f"a number of {table.file} is missing or is no multiple of the base")
        if number < 0 and not table.negative:
            raise Malformed(f"a number of {table.file} is negative")
        found[key] = number
    return found
