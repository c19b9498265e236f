"""Numbers of groups by region and size: whole, not negative and, if promised, adding up over the regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from louver.release.folder import Malformed, without_dictionary
from louver.release.promises.base import Context, Outcome, Promise

__all__ = ["GroupCounts", "PublishedGroups", "check_group_counts", "check_group_table"]

Levels = Annotated[tuple[str, ...], Field(min_length=1)]

MOST_GROUPS = 2**62
"""Sums beyond this may leave 64 bits."""


ERROR_COLUMNS = {"standard_error", "lower_90", "upper_90"}
PERSONS = "data/persons.parquet"
OTHER_PERSONS = "the numbers of persons do not follow from the groups"
OUTSIDE = "an interval does not contain its number, or a standard error is negative or missing"


class GroupCounts(Promise):
    """Every region of every level has one non-negative whole number for each size; regions need not add up to those above."""

    promise: Literal["group-counts"]
    file: Literal["data/groups.parquet"]
    levels: Levels


class PublishedGroups(Promise):
    """As `GroupCounts`; in addition, regions add up to those above, and every level to the total, which is stated if it is public."""

    promise: Literal["group-table"]
    file: Literal["data/groups.parquet"]
    levels: Levels
    total: Annotated[int, Field(ge=0)] | None


def check_group_counts(context: Context, promise: GroupCounts) -> Outcome:
    """Check every number, and that none is missing."""
    levels, problem = _levels(context, promise)
    if problem is not None:
        return Outcome(False, problem)
    if not all(map(_holds_numbers, levels)):
        return Outcome(False, OUTSIDE)
    if not _implies_persons(context, promise.levels, levels):
        return Outcome(False, OTHER_PERSONS)
    n_rows = sum(level.num_rows for level in levels)
    detail = f"{n_rows} whole numbers, none negative; regions are not promised to add up to those above"
    return Outcome(True, detail)


def check_group_table(context: Context, promise: PublishedGroups) -> Outcome:
    """Add up every level."""
    levels, problem = _levels(context, promise)
    if problem is not None:
        return Outcome(False, problem)
    names = promise.levels
    for depth in range(1, len(names)):
        keys = [*_keys(depth - 1), "size"]
        summed = levels[depth].group_by(keys).aggregate([("groups", "sum")])
        above = levels[depth - 1].select([*keys, "groups"])
        order = [(key, "ascending") for key in keys]
        left, right = summed.sort_by(order), above.sort_by(order)
        if not all(
            left[a].equals(right[b].cast(left[a].type))
            for a, b in [*((key, key) for key in keys), ("groups_sum", "groups")]
        ):
            return Outcome(False, f'regions of level "{names[depth]}" do not add up to those above')
    totals = {int(pc.sum(level["groups"]).as_py() or 0) for level in levels}
    if len(totals) != 1 or (promise.total is not None and totals != {promise.total}):
        return Outcome(False, "a level does not add up to the total")
    if not all(map(_holds_numbers, levels)):
        return Outcome(False, OUTSIDE)
    if not _implies_persons(context, names, levels):
        return Outcome(False, OTHER_PERSONS)
    return Outcome(True, f"{len(names)} levels add up to {totals.pop()} groups")


def _levels(context: Context, promise: GroupCounts | PublishedGroups) -> tuple[list[pa.Table], str | None]:
    """The rows of each level, with regions named by position, and the problems of each level by itself."""
    names = list(promise.levels)
    table = context.folder.table(promise.file)
    if table.column_names[: len(names) + 2] != [*names[1:], "level", "size", "groups"]:
        raise Malformed("the columns of the file are not the promised ones")
    groups = table["groups"]
    if not pa.types.is_integer(groups.type) or groups.null_count or (pc.min(groups).as_py() or 0) < 0:
        return [], "a number of groups is negative, missing or not whole"
    if (pc.max(groups).as_py() or 0) * table.num_rows > MOST_GROUPS:
        return [], "the numbers of groups are too large to be added up"
    if set(pc.unique(table["level"]).to_pylist()) != set(names):
        return [], "the levels of the file are not the promised ones"
    plain = _by_position(table, len(names) - 1)
    levels = [plain.filter(pc.equal(plain["level"], name)) for name in names]
    n_sizes = pc.count_distinct(plain["size"], mode="all").as_py()
    for depth, level in enumerate(levels):
        regions = _keys(depth)
        is_complete = level.num_rows == len(_distinct(level, regions)) * n_sizes
        is_single = len(_distinct(level, [*regions, "size"])) == level.num_rows
        if not (is_complete and is_single):
            return [], f'a region of level "{names[depth]}" does not list every size once'
    return levels, None


def _implies_persons(context: Context, names: Sequence[str], levels: Sequence[pa.Table]) -> bool:
    """Whether every region has as many persons as its groups, times their sizes, and no region is missing."""
    if PERSONS not in context.folder.files:
        return True
    table = context.folder.table(PERSONS, most_rows=sum(t.num_rows for t in levels))
    if table.column_names[: len(names)] != [*names[1:], "level"]:
        raise Malformed("the columns of the file are not the promised ones")
    table = _by_position(table, len(names) - 1)
    n_rows = 0
    for depth, level in enumerate(levels):
        keys = _keys(depth)
        own = table.filter(pc.equal(table["level"], names[depth]))
        product = pc.multiply_checked(level["size"].cast(pa.int64()), level["groups"])
        summed = level.append_column("persons", product).group_by(keys).aggregate([("persons", "sum")])
        order = [(key, "ascending") for key in keys]
        left, right = (summed.sort_by(order), own.sort_by(order)) if keys else (summed, own)
        pairs = [*((key, key) for key in keys), ("persons_sum", "persons")]
        if not all(left[a].equals(right[b].cast(left[a].type)) for a, b in pairs):
            return False
        if not _holds_numbers(own, "persons"):
            return False
        n_rows += own.num_rows
    return bool(n_rows == table.num_rows)


def _keys(n_regions: int) -> list[str]:
    """Names of the columns of the regions, by position."""
    return [str(place) for place in range(n_regions)]


def _by_position(table: pa.Table, n_regions: int) -> pa.Table:
    """The table without dictionaries and with the leading region columns named by position, because Arrow reads a name that begins with
    a dot as a path."""
    return without_dictionary(table.rename_columns([*_keys(n_regions), *table.column_names[n_regions:]]))


def _holds_numbers(table: pa.Table, number: str = "groups") -> bool:
    """Whether every number lies in its interval; older releases have no intervals."""
    detail = ERROR_COLUMNS.intersection(table.column_names)
    if not detail:
        return True
    if detail != ERROR_COLUMNS:
        raise Malformed("the columns of the file are not the promised ones")
    groups, error = table[number], table["standard_error"]
    sound = [
        pc.greater_equal(error, 0),
        pc.less_equal(0, table["lower_90"]),
        pc.less_equal(table["lower_90"], groups),
        pc.less_equal(groups, table["upper_90"]),
    ]
    return all(pc.all(one, skip_nulls=False, min_count=0).as_py() is True for one in sound)


def _distinct(table: pa.Table, names: list[str]) -> pa.Table:
    """Distinct combinations of columns; for no columns there is one."""
    return table.group_by(names).aggregate([]) if names else table.slice(0, 1)
