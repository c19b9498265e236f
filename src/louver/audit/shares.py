"""Tables of row conditionals: exact fractions or rounded decimals, perhaps with the number of people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np
import pyarrow as pa

from louver.audit.kind import CoarserTable, cell_of_line, fault, read_lines
from louver.audit.options import AuditTableOptions
from louver.errors import InputError
from louver.tables.pieces import Cross, Domain, Margin, Piece, Shares, cross_attributes
from louver.tables.system import IntArray

__all__ = ["Conditionals"]

FRACTION = re.compile(r"[0-9]{1,18}/0*[1-9][0-9]{0,17}|[0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18}")
MAX_DENOMINATOR = 2**40


class Conditionals:
    """The kind of tables of row conditionals."""

    number = "share"
    number_type = pa.string()

    def from_records(self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray) -> Piece:
        """Shares of the true counts."""
        counts = domain.sums(cross, truth).reshape(-1, _n_cols(table, cross, domain))
        shares = _computed(cross, counts, table.decimals, table.rounding == "half-even")
        return Piece(name=table.name, margins=_published_counts(table, cross, counts), shares=(shares,))

    def from_file(
        self, table: AuditTableOptions, cross: Cross, domain: Domain, truth: IntArray | None, folder: str
    ) -> Piece:
        """Shares as they were printed."""
        n_cols, is_half_even = _n_cols(table, cross, domain), table.rounding == "half-even"
        listed = _read(table, cross, n_cols, domain, folder)
        shares = _as_printed(cross, listed, table.decimals, is_half_even)
        counts = None if truth is None else domain.sums(cross, truth).reshape(-1, n_cols)
        if counts is not None:
            _check_shares(listed, shares, _computed(cross, counts, table.decimals, is_half_even))
        return Piece(name=table.name, margins=_published_counts(table, cross, counts), shares=(shares,))

    def lines(self, table: AuditTableOptions, piece: Piece, domain: Domain) -> Iterator[tuple[Any, ...]]:
        """One line per cell of every row with people."""
        (shares,) = piece.shares
        for row in np.flatnonzero(~shares.is_empty):
            printed = shares.printed[row]
            for col, value in enumerate(printed.tolist()):
                labels = domain.labels(shares.cross, int(row) * shares.n_cols + col)
                text = f"{value}/{int(printed.sum())}"
                if shares.decimals is not None:
                    whole, rest = divmod(value, 10**shares.decimals)
                    text = f"{whole}.{rest:0{shares.decimals}d}" if shares.decimals else str(whole)
                yield (*labels.values(), text)

    def parameters(self, table: AuditTableOptions, piece: Piece) -> Mapping[str, int]:
        """The number of people, if it is published with the shares."""
        return {"people": int(piece.margins[0].lower[0])} if table.counts == "total" else {}

    def coarser(self, piece: Piece, domain: Domain, truth: IntArray) -> Iterator[Sequence[CoarserTable]]:
        """No coarser form: shares of merged categories may disclose more than those of the categories."""
        yield from ()


def _n_cols(table: AuditTableOptions, cross: Cross, domain: Domain) -> int:
    """Cells of one row."""
    return prod(attribute.size for attribute in cross_attributes(cross, domain.attributes)[len(table.rows) :])


def _computed(cross: Cross, counts: IntArray, decimals: int | None, is_half_even: bool) -> Shares:
    totals = counts.sum(axis=1)
    if decimals is None:
        divisor = np.maximum(1, np.gcd.reduce(counts, axis=1))
        printed = counts // divisor[:, None]
    else:
        people = np.maximum(1, totals)[:, None]
        doubled = 2 * counts * 10**decimals + people
        printed = doubled // (2 * people)
        if is_half_even:
            printed -= (doubled % (2 * people) == 0) & (printed % 2 == 1)
    return Shares(
        cross=cross,
        n_cols=counts.shape[1],
        printed=printed,
        decimals=decimals,
        is_half_even=is_half_even,
        is_empty=totals == 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ReadShares:
    """Conditionals by row of the table; `line` is the first row of the file that each begins on, 0 for none."""

    file: str
    table: str
    values: list[list[Fraction]]
    line: list[int]


def _read(table: AuditTableOptions, cross: Cross, n_cols: int, domain: Domain, folder: str) -> _ReadShares:
    """Read row conditionals; a row of the table that is not listed holds nobody."""
    where, rows = read_lines(table, cross, folder)
    attributes = cross_attributes(cross, domain.attributes)
    n_rows = prod(a.size for a in attributes) // n_cols
    values = [[Fraction(0)] * n_cols for _ in range(n_rows)]
    first = [0] * n_rows
    seen: dict[int, int] = {}
    for number, (*labels, text) in enumerate(rows, start=1):
        _, cell = cell_of_line(table, attributes, labels, where, number)
        if cell in seen:
            raise fault(table, where, number, f"repeats the cell of row {seen[cell]}; remove one")
        seen[cell] = number
        row, col = divmod(cell, n_cols)
        values[row][col] = _share(table, text, where, number)
        first[row] = first[row] or number
    for row in range(n_rows):
        _check_share_row(table, values[row], where, first[row])
    return _ReadShares(file=where, table=table.name, values=values, line=first)


def _share(table: AuditTableOptions, text: str | None, where: str, number: int) -> Fraction:
    if text is None or not FRACTION.fullmatch(text):
        raise fault(
            table,
            where,
            number,
            f'has no share in "{table.value}"; give a fraction such as 3/7 or a decimal',
            table.value,
        )
    value = Fraction(text)
    if value > 1:
        raise fault(
            table, where, number, "has a share above 1; give proportions, not percentages", table.value
        )
    return value


def _check_share_row(table: AuditTableOptions, values: list[Fraction], where: str, line: int) -> None:
    if not any(values):
        return
    if table.decimals is not None:
        if any((value * 10**table.decimals).denominator > 1 for value in values):
            raise fault(
                table,
                where,
                line,
                "begins a row with more decimals than decimals says; set the printed number of decimals",
            )
        return
    if sum(values) != 1:
        raise fault(
            table,
            where,
            line,
            "begins a row whose shares do not add up to 1; give exact fractions or decimals",
        )
    if max(value.denominator for value in values) > MAX_DENOMINATOR:
        raise fault(table, where, line, "begins a row with too large a denominator; check it")


def _as_printed(cross: Cross, listed: _ReadShares, decimals: int | None, is_half_even: bool) -> Shares:
    rows = []
    for values in listed.values:
        unit = lcm(*(value.denominator for value in values)) if decimals is None else 10**decimals
        rows.append([int(value * unit) for value in values])
    printed = np.array(rows, dtype=np.int64)
    return Shares(
        cross=cross,
        n_cols=printed.shape[1],
        printed=printed,
        decimals=decimals,
        is_half_even=is_half_even,
        is_empty=(printed == 0).all(axis=1),
    )


def _check_shares(listed: _ReadShares, printed: Shares, true: Shares) -> None:
    """Shares as printed must be those of the records."""
    wrong = np.flatnonzero(
        (printed.printed != true.printed).any(axis=1) | (printed.is_empty != true.is_empty)
    )
    if len(wrong):
        line = listed.line[int(wrong[0])]
        place = f"the table row that begins on row {line} of {listed.file}"
        if not line:
            place = f"a table row that {listed.file} does not list"
        raise InputError(
            f'table "{listed.table}": {place} does not agree with the records; check the file and how it was made.',
            file=listed.file,
            row=line or None,
        )


def _published_counts(table: AuditTableOptions, cross: Cross, counts: IntArray | None) -> tuple[Margin, ...]:
    """Counts that are published with conditionals: the number of people, or one of each row."""
    which = table.counts or ("none" if table.n is None else "total")
    if which == "none":
        return ()
    if which == "rows" and counts is not None and table.n is None:
        totals = counts.sum(axis=1)
        return (Margin(cross=cross.over(table.rows), lower=totals, upper=totals),)
    if counts is None and table.n is None:
        raise InputError(
            f'table "{table.name}" has counts that only the records determine; give n, or the row totals as a table.',
            option="counts",
        )
    if counts is not None and table.n is not None and table.n != counts.sum():
        raise InputError(f'table "{table.name}": n differs from the records; leave it out.', option="n")
    n = table.n if counts is None else int(counts.sum())
    total = np.array([n], dtype=np.int64)
    return (Margin(cross=cross.over(()), lower=total, upper=total),)
