"""Tables whose numbers were changed: rounded ones add up and are multiples of their base; those with cell keys agree with each other.

The distance of a number from its true value is not public and therefore not checked: it is stated by `beyond` for rounded numbers, and by
`variance` and `maximum` for numbers with noise.
"""

from __future__ import annotations

from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.copies import copy_problem
from louver.release.promises.protected import Knowledge, PublishedCodes, PublishedProtectedTable, learn

__all__ = ["CellKeyTablesPromise", "RoundedTablesPromise", "check_cell_keys", "check_rounded"]

MOST_LINES = 2_000_000


class RoundedTable(PublishedProtectedTable):
    """A table by some attributes: their codes and the number, a multiple of the base."""

    base: Annotated[int, Field(ge=2)]


class RoundedTablesPromise(Promise):
    """Every table of the release; numbers are at most `beyond` multiples farther away than the two multiples nearest to their values."""

    promise: Literal["rounded-tables"]
    tables: Annotated[tuple[RoundedTable, ...], Field(min_length=1)]
    codes: dict[str, PublishedCodes]
    beyond: Annotated[int, Field(ge=0)]


class CellKeyTablesPromise(Promise):
    """Every table of the release: counts with noise that depends on the set of counted records; a cell that is not listed is 0 or was
    changed to 0.
    """

    promise: Literal["cell-key-tables"]
    tables: Annotated[tuple[PublishedProtectedTable, ...], Field(min_length=1)]
    codes: dict[str, PublishedCodes]
    variance: Annotated[float, Field(gt=0)]
    maximum: Annotated[int, Field(ge=1)]


def check_cell_keys(context: Context, promise: CellKeyTablesPromise) -> Outcome:
    """Check every table; the same cell must have the same number wherever it is shown."""
    knowledge = Knowledge()
    n_lines = 0
    for table in promise.tables:
        cells = _cells(context, table, 1)
        n_lines += len(cells)
        problem = copy_problem(context.folder, table.file)
        problem = problem or learn(knowledge, table, promise.codes, cells)
        if problem is not None:
            return Outcome(False, problem)
        if not table.counts or 0 in cells.values():
            return Outcome(False, f"{table.file} has a number that is not a count of 1 or more")
    return Outcome(True, f"{n_lines} counts, the same wherever a cell is shown; they need not add up")


def check_rounded(context: Context, promise: RoundedTablesPromise) -> Outcome:
    """Check every table, then all tables together."""
    knowledge = Knowledge()
    n_lines = 0
    for table in promise.tables:
        cells = _cells(context, table, table.base)
        n_lines += len(cells)
        problem = copy_problem(context.folder, table.file)
        problem = problem or learn(knowledge, table, promise.codes, cells)
        if problem is not None:
            return Outcome(False, problem)
    known = dict(knowledge.shown)
    # Deepest sums come first, so that the parts of an unlisted total are known before the total.
    for (total, parts), file in knowledge.sums.items():
        if any(part not in known for part in parts):
            raise Malformed(f"a total of {file} has parts that are not listed")
        if known.setdefault(total, sum(known[part] for part in parts)) != sum(known[part] for part in parts):
            return Outcome(False, f"a total of {file} is not the sum of its parts")
    return Outcome(True, f"{n_lines} multiples of their base, which add up")


def _cells(context: Context, table: PublishedProtectedTable, base: int) -> dict[tuple[str, ...], int | None]:
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
            raise Malformed(f"a cell of {table.file} has no code or is repeated")
        if number is None or number % base:
            raise Malformed(f"a number of {table.file} is missing or not a multiple of the base")
        if number < 0 and not table.negative:
            raise Malformed(f"a number of {table.file} is negative")
        found[key] = number
    return found
