"""Units (households, businesses, trips) and their sizes: from records, or from a table of existing counts.

Counts the units of each size in every leaf region. One query checks the columns and one grouped query counts; only the counted cells leave
DuckDB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from louver.data.coded import CodedColumn, read_coded
from louver.data.coding import find_row, number_sql, text_sql
from louver.data.kinds import guess_kind, is_named_like_unit, is_unit
from louver.data.read import Source, quoted
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Kind

__all__ = ["UnitCells", "count_units", "find_unit_column", "read_unit_counts", "unit_names"]

Cells = dict[tuple[tuple[str, ...], int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCells:
    """Numbers of units by leaf region and size. Confidential.

    Attributes
    ----------
    cells : dict
        (labels of the leaf region, size) -> number of units; larger units are counted with the largest size.
    """

    cells: Cells

    @property
    def leaves(self) -> list[tuple[str, ...]]:
        """The leaf regions that occur in the data."""
        return sorted({leaf for leaf, _ in self.cells})


def count_units(
    source: Source,
    unit: str,
    regions: Sequence[str],
    largest: int,
    *,
    quantity: str | None = None,
    largest_quantity: int = 1,
    is_split: bool = False,
    may_be_alone: bool = False,
) -> UnitCells:
    """Count the units of every size in every leaf region, given one record per member.

    Parameters
    ----------
    source : Source
    unit : str
        Column that identifies the unit of a record.
    regions : sequence of str
        Columns of the region levels, coarsest first.
    largest : int
        Largest size that is counted separately; larger units are counted with it.
    quantity : str, optional
        Column with the whole number that a record adds to its unit's size; 1 by default.
    largest_quantity : int
        Largest value that a record may add.
    is_split : bool
        Whether a unit with records in several leaf regions counts as one unit in each; if not, it is an error.
    may_be_alone : bool
        Whether a record may have no unit; if not, it is an error.

    Raises
    ------
    InputError
        On a missing unit, region or quantity, a quantity out of range, or a unit in several regions; names column and row.
    """
    texts = {name: text_sql(source, name) for name in (unit, *regions)}
    source.hold([unit, *regions, *([] if quantity is None else [quantity])])
    faults = [_missing(name, text) for name, text in texts.items() if not (may_be_alone and name == unit)]
    amount = "1"
    if quantity is not None:
        amount, out_of_range = _amount(source, quantity, largest_quantity)
        faults.append(out_of_range)
    _check(source, faults)
    keys = ", ".join(texts[name] for name in regions)
    if not is_split:
        _check_one_region(source, unit, texts[unit], [texts[name] for name in regions])
    labels = ", ".join(f"{texts[name]} AS r{i}" for i, name in enumerate(regions))
    units = f"SELECT {labels}, sum({amount}) AS size FROM records WHERE ({texts[unit]}) IS NOT NULL "
    units += f"GROUP BY {', '.join([texts[unit], keys])}"
    return _collect(source, units, "count(*)", len(regions), largest)


def read_unit_counts(
    source: Source, regions: Sequence[str], size: str, groups: str, largest: int
) -> UnitCells:
    """Read a table of existing counts: one row for each leaf region and size, with the number of units.

    Parameters
    ----------
    size, groups : str
        Columns of the size and of the number of units of that size.
    """
    texts = {name: text_sql(source, name) for name in (*regions, size, groups)}
    (sizes, bad_size), (counts, bad_count) = _amount(source, size, None), _amount(source, groups, None)
    _check(source, [*(_missing(name, text) for name, text in texts.items()), bad_size, bad_count])
    labels = ", ".join(f"{texts[name]} AS r{i}" for i, name in enumerate(regions))
    rows = f"SELECT {labels}, {sizes} AS size, {counts} AS units FROM records"
    return _collect(source, rows, "sum(units)", len(regions), largest)


def find_unit_column(source: Source, others: Sequence[str], run: Run) -> CodedColumn | None:
    """The first column that is named like a household identifier and looks like one; `others` are known not to be such columns."""
    names = unit_names(source, others)
    found = read_coded(source, names, run) if names else ()
    return next((column for column in found if is_unit(column, guess_kind(column)[0])), None)


def unit_names(source: Source, others: Sequence[str]) -> list[str]:
    """Columns that are named like a household identifier; `others` are known not to be such columns."""
    return [name for name in source.columns if name not in others and is_named_like_unit(name)]


class _Fault(NamedTuple):
    """A condition that no row of a column may meet, in SQL, and the message for a row that meets it."""

    column: str
    condition: str
    problem: str


def _missing(column: str, text: str) -> _Fault:
    return _Fault(column, f"({text}) IS NULL", "has no value on row {row}; every row needs one")


def _amount(source: Source, column: str, largest: int | None) -> tuple[str, _Fault]:
    """SQL for a whole number from 0 to `largest`, and the fault of rows without a valid one."""
    value = number_sql(text_sql(source, column), Kind.INTEGER)
    wrong = f"({value}) IS NULL OR ({value}) < 0"
    allowed = "a whole number of zero or more"
    if largest is not None:
        wrong += f" OR ({value}) > {largest}"
        allowed = f"a whole number from 0 to {largest}"
    return f"CAST({value} AS BIGINT)", _Fault(column, wrong, f"is not {allowed} on row {{row}}; correct it")


def _check(source: Source, faults: Sequence[_Fault]) -> None:
    """Raise an error for the first fault found in any row; all are checked in one scan."""
    found = source.first_row(
        "SELECT "
        + ", ".join(f"bool_or({f.condition}) AS f{i}" for i, f in enumerate(faults))
        + " FROM records"
    )
    assert found is not None
    for fault, is_met in zip(faults, found.values(), strict=True):
        if is_met:
            row = find_row(source, fault.condition)
            message = f'column "{fault.column}" in {source.name} {fault.problem.format(row=row)}.'
            raise InputError(message, file=source.name, column=fault.column, row=row)


def _check_one_region(source: Source, unit: str, text: str, regions: Sequence[str]) -> None:
    """Refuse a unit with records in several leaf regions."""
    labels = ", ".join(regions)
    pairs = f"SELECT DISTINCT {text} AS unit, {labels} FROM records WHERE ({text}) IS NOT NULL"
    several = f"SELECT unit FROM ({pairs}) GROUP BY unit HAVING count(*) > 1 LIMIT 1"
    if source.first_row(several) is not None:
        row = find_row(source, f"({text}) IN ({several})")
        message = (
            f'column "{unit}" in {source.name} has a unit in more than one region, first on row {row}; '
            "correct it, or let it count once in each (--across split)."
        )
        raise InputError(message, file=source.name, column=unit, row=row)


def _collect(source: Source, rows: str, counted: str, n_levels: int, largest: int) -> UnitCells:
    """Count rows of (labels, size) by label and size, with sizes capped at the largest."""
    labels = ", ".join(quoted(f"r{i}") for i in range(n_levels))
    keys = f"{labels}, least(size, {largest}) AS size" if labels else f"least(size, {largest}) AS size"
    grouping = ", ".join(str(i + 1) for i in range(n_levels + 1))
    sql = f"SELECT {keys}, CAST({counted} AS BIGINT) AS units FROM ({rows}) GROUP BY {grouping}"
    cells: Cells = {}
    for batch in source.batches(sql):
        for *leaf, size, units in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if units:
                cells[tuple(leaf), int(size)] = int(units)
    return UnitCells(cells=cells)
