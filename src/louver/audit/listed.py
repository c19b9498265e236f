"""Tables as they were published: one line per cell, labels in the attributes' columns, a number or a mark beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from louver.audit.options import MAX_COUNT, TableOptions
from louver.data.read import open_source
from louver.data.tabulate import read_text
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.tables.pieces import Cross, Domain, cross_attributes
from louver.tables.system import IntArray

__all__ = ["Listed", "ListedShares", "read_counts", "read_shares"]

COUNT = re.compile(r"[0-9]{1,13}(\.0*)?")
FRACTION = re.compile(r"[0-9]{1,18}/0*[1-9][0-9]{0,17}|[0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18}")
MAX_DENOMINATOR = 2**40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Listed:
    """Numbers of one margin as a file lists them; `row` is 0 for cells that it does not list."""

    file: str
    table: str
    values: IntArray
    is_hidden: NDArray[np.bool_]
    row: IntArray

    def error(self, is_wrong: NDArray[np.bool_], told: str) -> InputError:
        """About the first cell of a mask, by its row in the file."""
        row = int(self.row[np.flatnonzero(is_wrong)[0]])
        place = f"row {row} of {self.file}" if row else f"a cell that {self.file} does not list"
        return InputError(
            f'table "{self.table}": {place} {told}; check the file and how it was made.',
            file=self.file,
            row=row or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ListedShares:
    """Conditionals by row of the table; `line` is the first row of the file that each begins on, 0 for none."""

    file: str
    table: str
    values: list[list[Fraction]]
    line: list[int]


def read_counts(
    table: TableOptions, cross: Cross, margins: Sequence[Cross], domain: Domain, folder: str
) -> list[Listed]:
    """Read the cells of a table, and of its totals where it has them, in the order of `margins`."""
    where, rows = _rows(table, cross, folder)
    attributes = cross_attributes(cross, domain.attributes)
    shape = {margin.by: prod(a.size for a in attributes if a.name in margin.by) for margin in margins}
    values = {by: np.zeros(size, dtype=np.int64) for by, size in shape.items()}
    hidden = {by: np.zeros(size, dtype=bool) for by, size in shape.items()}
    line = {by: np.zeros(size, dtype=np.int64) for by, size in shape.items()}
    for number, (*labels, text) in enumerate(rows, start=1):
        by, cell = _cell_of(table, attributes, labels, where, number)
        if by not in shape:
            raise _fault(table, where, number, "is a total, and totals is not set; set it or remove the row")
        if line[by][cell]:
            raise _fault(
                table, where, number, f"gives a cell that row {line[by][cell]} gave already; remove one"
            )
        line[by][cell] = number
        if text in table.mark or (text is None and "" in table.mark):
            hidden[by][cell] = True
        else:
            values[by][cell] = _count(table, text, where, number)
    for by in shape:
        _check_unlisted(table, by, line[by], hidden[by], where)
    return [
        Listed(file=where, table=table.name, values=values[m.by], is_hidden=hidden[m.by], row=line[m.by])
        for m in margins
    ]


def read_shares(table: TableOptions, cross: Cross, n_cols: int, domain: Domain, folder: str) -> ListedShares:
    """Read row conditionals; a row of the table that is not listed holds nobody."""
    where, rows = _rows(table, cross, folder)
    attributes = cross_attributes(cross, domain.attributes)
    n_rows = prod(a.size for a in attributes) // n_cols
    values = [[Fraction(0)] * n_cols for _ in range(n_rows)]
    first = [0] * n_rows
    seen: dict[int, int] = {}
    for number, (*labels, text) in enumerate(rows, start=1):
        _, cell = _cell_of(table, attributes, labels, where, number)
        if cell in seen:
            raise _fault(table, where, number, f"gives a cell that row {seen[cell]} gave already; remove one")
        seen[cell] = number
        row, col = divmod(cell, n_cols)
        values[row][col] = _share(table, text, where, number)
        first[row] = first[row] or number
    for row in range(n_rows):
        _check_share_row(table, values[row], where, first[row])
    return ListedShares(file=where, table=table.name, values=values, line=first)


def _rows(table: TableOptions, cross: Cross, folder: str) -> tuple[str, list[tuple[str | None, ...]]]:
    assert table.file is not None
    path = Path(folder) / table.file
    with open_source(path) as source:
        for name in (*cross.by, table.value):
            source.check_column(name)
        return source.name, read_text(source, [*cross.by, table.value])


def _cell_of(
    table: TableOptions,
    attributes: Sequence[Attribute],
    labels: Sequence[str | None],
    where: str,
    number: int,
) -> tuple[tuple[str, ...], int]:
    """The margin that a line belongs to, by its total labels, and the cell there."""
    by, cell = [], 0
    for attribute, label in zip(attributes, labels, strict=True):
        if label is not None and attribute.has_label(label):
            by.append(attribute.name)
            cell = cell * attribute.size + attribute.code_of(label)
        elif label != table.total or table.is_shares:
            raise _fault(
                table,
                where,
                number,
                f'has no label that "{attribute.name}" has; check its spelling',
                attribute.name,
            )
    return tuple(by), cell


def _count(table: TableOptions, text: str | None, where: str, number: int) -> int:
    if text is None or not COUNT.fullmatch(text) or int(text.split(".")[0]) > MAX_COUNT:
        told = "is neither a count nor a mark; list the marks in mark"
        raise _fault(table, where, number, f'has a number in "{table.value}" that {told}', table.value)
    return int(text.split(".")[0])


def _share(table: TableOptions, text: str | None, where: str, number: int) -> Fraction:
    if text is None or not FRACTION.fullmatch(text):
        raise _fault(
            table,
            where,
            number,
            f'has no share in "{table.value}"; give a fraction such as 3/7 or a decimal',
            table.value,
        )
    value = Fraction(text)
    if value > 1:
        raise _fault(
            table, where, number, "has a share above 1; give proportions, not percentages", table.value
        )
    return value


def _check_unlisted(
    table: TableOptions, by: tuple[str, ...], line: IntArray, is_hidden: NDArray[np.bool_], where: str
) -> None:
    """Cells that a file leaves out are zero, hidden, or an error, as the table says."""
    if (line > 0).all():
        return
    if table.unlisted is None:
        told = "some totals" if len(by) < len(table.by) else "some cells"
        raise InputError(
            f'table "{table.name}": {where} does not list {told}; set unlisted to "zero" or "hidden".',
            file=where,
        )
    if table.unlisted == "hidden":
        is_hidden[line == 0] = True


def _check_share_row(table: TableOptions, values: list[Fraction], where: str, line: int) -> None:
    if not any(values):
        return
    if table.decimals is not None:
        if any((value * 10**table.decimals).denominator > 1 for value in values):
            raise _fault(
                table, where, line, "begins a row with more decimals than decimals says; set what is printed"
            )
        return
    if sum(values) != 1:
        raise _fault(
            table,
            where,
            line,
            "begins a row whose shares do not add up to 1; give exact fractions or decimals",
        )
    if max(value.denominator for value in values) > MAX_DENOMINATOR:
        raise _fault(table, where, line, "begins a row with too large a denominator; check it")


def _fault(table: TableOptions, where: str, number: int, told: str, column: str | None = None) -> InputError:
    return InputError(
        f'table "{table.name}": row {number} of {where} {told}.', file=where, row=number, column=column
    )
