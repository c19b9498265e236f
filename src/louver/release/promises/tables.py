"""Tables of counts or shares: every cell once, whole numbers, multiples of the base, totals that add up."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.copies import csv_of, csv_problem
from louver.release.promises.outsider import ShownCells, small_count_disclosed

__all__ = ["PublishedTables", "check_tables"]


MOST_DECIMALS, MOST_BASE = 30, 2**62
SHARE = re.compile(rf"[0-9]{{1,20}}(/[0-9]{{1,20}}|\.[0-9]{{1,{MOST_DECIMALS}}})?", re.ASCII)
"""A share as it is printed; exponents, which could stand for numbers of any length, are not allowed."""


class PublishedTable(BaseModel):
    """A table by some attributes.

    Numbers are whole and not negative, multiples of `base` where that is given; with `total` (the label of totals) and no base, every total
    without hidden cells below it is the sum of its cells. Shares (whose rows are defined by the `n_rows_by` leading attributes) add up to 1
    in each row, exactly or as far as `decimals` allow.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    file: Annotated[str, Field(pattern=r"^data/[a-z0-9-]+\.parquet$")]
    by: tuple[str, ...]
    base: Annotated[int, Field(ge=2, le=MOST_BASE)] | None
    total: str | None
    n_rows_by: Annotated[int, Field(ge=1)] | None
    decimals: Annotated[int, Field(ge=0, le=MOST_DECIMALS)] | None


class PublishedTables(Promise):
    """Every table of the release."""

    promise: Literal["tables"]
    tables: Annotated[tuple[PublishedTable, ...], Field(min_length=1)]


def check_tables(context: Context, promise: PublishedTables) -> Outcome:
    """Check every table, then what all of them together disclose."""
    found, shown = [], []
    listed = context.manifest.parameters["tables"]
    for table in promise.tables:
        outcome = _check_table(context, table)
        if not outcome.passed:
            return outcome
        csv = csv_of(table.file)
        if csv in context.folder.files and (problem := csv_problem(context.folder, csv, table.file)):
            return Outcome(False, problem)
        found.append(f"{table.file}: {outcome.found}")
        if table.n_rows_by is None:
            cells = _cells(context, table)[1]
            shown.append(ShownCells(table.by, cells, table.base, table.total, _about(listed[len(found) - 1])))
    disclosed = small_count_disclosed(shown, _small(context))
    return Outcome(disclosed is None, disclosed or "; ".join(found))


def _small(context: Context) -> int:
    """The limit below which counts were not to be disclosed."""
    small = context.manifest.parameters.get("small")
    if type(small) is not int or small < 1:
        raise Malformed("the manifest does not say which counts are small")
    return small


def _about(listed: Mapping[str, Any]) -> object:
    """The records that a table counts, and its labels; a table that does not state them matches no other."""
    if "where" not in listed or "recode" not in listed:
        return object()
    return json.dumps([listed["where"], listed["recode"]], sort_keys=True)


def _cells(context: Context, promise: PublishedTable) -> tuple[pa.Table, dict[tuple[str, ...], Any]]:
    """The numbers of a table by their labels."""
    table = context.folder.table(promise.file)
    names = list(promise.by)
    value = "share" if promise.n_rows_by is not None else "count"
    if table.column_names != [*names, value]:
        raise Malformed("the columns of the file are not the promised ones")
    cells: dict[tuple[str, ...], Any] = {}
    for row in table.to_pylist():
        key = tuple(row[name] for name in names)
        if None in key or key in cells:
            raise Malformed(f"a cell of {promise.file} has no label or is repeated")
        cells[key] = row[value]
    return table, cells


def _check_table(context: Context, promise: PublishedTable) -> Outcome:
    """Read every number."""
    table, cells = _cells(context, promise)
    if promise.n_rows_by is not None:
        return _check_shares(cells, promise, promise.n_rows_by)
    return _check_counts(table, cells, promise)


def _check_counts(table: pa.Table, cells: dict[tuple[str, ...], Any], promise: PublishedTable) -> Outcome:
    if not pa.types.is_integer(table["count"].type):
        raise Malformed("counts are not whole numbers")
    shown = [number for number in cells.values() if number is not None]
    if any(number < 0 for number in shown):
        return Outcome(False, f"a count of {promise.file} is negative")
    if promise.base is not None and any(number % promise.base for number in shown):
        return Outcome(False, f"a count of {promise.file} is not a multiple of {promise.base}")
    if promise.total is not None and promise.base is None:
        wrong = _wrong_totals(cells, promise.by, promise.total)
        if wrong:
            return Outcome(False, f"{wrong} totals of {promise.file} are not the sums of their cells")
    return Outcome(True, f"{len(cells)} cells, {len(cells) - len(shown)} hidden")


def _wrong_totals(cells: dict[tuple[str, ...], Any], by: tuple[str, ...], total: str) -> int:
    """Number of totals that differ from the sum of the finest cells below them, if none of these is hidden."""
    inner = {key: number for key, number in cells.items() if total not in key}
    n_wrong = 0
    for size in range(len(by)):
        for kept in combinations(range(len(by)), size):
            sums: dict[tuple[str, ...], int | None] = {}
            for key, number in inner.items():
                above = tuple(label if place in kept else total for place, label in enumerate(key))
                before = sums.get(above, 0)
                sums[above] = None if number is None or before is None else before + number
            n_wrong += sum(
                found is not None and cells.get(key) is not None and cells[key] != found
                for key, found in sums.items()
            )
    return n_wrong


def _check_shares(cells: dict[tuple[str, ...], Any], promise: PublishedTable, n_rows_by: int) -> Outcome:
    rows: dict[tuple[str, ...], list[Fraction]] = {}
    for key, text in cells.items():
        if not isinstance(text, str) or SHARE.fullmatch(text) is None or text.rstrip("0").endswith("/"):
            raise Malformed("a share is not a number")
        rows.setdefault(key[:n_rows_by], []).append(Fraction(text))
    for shares in rows.values():
        slack = Fraction(0) if promise.decimals is None else Fraction(len(shares), 2 * 10**promise.decimals)
        if any(not 0 <= share <= 1 for share in shares) or abs(sum(shares, Fraction(-1))) > slack:
            return Outcome(False, f"a row of {promise.file} does not add up to 1")
        if promise.decimals is not None and any(
            (share * 10**promise.decimals).denominator > 1 for share in shares
        ):
            return Outcome(False, f"a share of {promise.file} has more than {promise.decimals} decimals")
    return Outcome(True, f"{len(rows)} rows add up to 1")
