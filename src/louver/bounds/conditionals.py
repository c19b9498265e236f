"""Somebody else's table as it was published: fractions, decimals or percentages, with the sample size or row totals beside them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod

import numpy as np

from louver._arrays import Ints
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, check_size, mixed_radix
from louver.bounds.rounded import Rounding
from louver.data.read import Source
from louver.data.tabulate import read_labelled_text
from louver.errors import InputError
from louver.optim.kernels.semigroups.rounded_conditionals import count_interval
from louver.schema.attribute import Attribute
from louver.schema.request import Request

__all__ = ["from_conditionals", "read_conditionals"]

FRACTION = re.compile(r"\d{1,18}/0*[1-9]\d{0,17}|\d{1,18}(\.\d{0,18})?|\.\d{1,18}")
COUNT = re.compile(r"\d{1,16}(\.0*)?")

MAX_DENOMINATOR = 2**40
"""Largest reduced row sum that is taken from fractions; no table of people has a larger one."""


def read_conditionals(
    source: Source, request: Request[BoundsOptions], arrangement: Arrangement
) -> TwoWayTable:
    """Read one line per cell: labels, conditional, and the row's total where --row-n names its column."""
    checked, weight = request.options, request.source.weight
    assert weight is not None
    columns = [weight] if checked.row_n is None else [weight, checked.row_n]
    names = (*arrangement.rows, *arrangement.cols)
    records, lines = read_labelled_text(source, names, columns, request.schema)
    if request.source.decimal_mark == ",":
        lines = [(line[0] and line[0].replace(",", "."), *line[1:]) for line in lines]
    values = [_value(source, weight, row, line[0], checked) for row, line in enumerate(lines, start=1)]
    totals = None
    if checked.row_n is not None:
        totals = [_total(source, checked.row_n, row, line[1]) for row, line in enumerate(lines, start=1)]
    return from_conditionals(
        records.attributes,
        records.codes.astype(np.int64),
        values,
        arrangement,
        checked.n,
        decimals=checked.decimals,
        where=source.name,
        totals=totals,
        rounding=checked.rounding_rule,
        printed_decimals=_printed_decimals([line[0] for line in lines], checked.percent),
    )


def _value(source: Source, column: str, row: int, text: str | None, checked: BoundsOptions) -> Fraction:
    plain = "" if text is None else text.strip()
    number = plain.removesuffix("%").rstrip()
    unit, kind = (100, "percentage") if checked.percent else (1, "conditional")
    told = None
    if number != plain and not checked.percent:
        told = "has a percentage on row {row}; add --percent"
    elif not FRACTION.fullmatch(number) or (checked.percent and "/" in number):
        shape = (
            "a number between 0 and 100"
            if checked.percent
            else "a fraction such as 3/7 or a decimal between 0 and 1"
        )
        told = f"has no {kind} on row {{row}}; give {shape}"
    elif Fraction(number) > unit:
        remedy = (
            "check it" if checked.percent else "give proportions, or --percent where they are percentages"
        )
        told = f"has a {kind} above {unit} on row {{row}}; {remedy}"
    if told is not None:
        raise _fault(source, column, row, told)
    return Fraction(number) / unit


def _total(source: Source, column: str, row: int, text: str | None) -> int | None:
    if text is None or not text.strip():
        return None
    if not COUNT.fullmatch(text.strip()) or int(text.split(".")[0]) > 2**53:
        raise _fault(source, column, row, "has no whole number of people on row {row}; give the row's total")
    return int(text.split(".")[0])


def _fault(source: Source, column: str, row: int, told: str) -> InputError:
    row = source.row_of(row)
    message = f'column "{column}" in {source.name} {told.format(row=row)}.'
    return InputError(message, file=source.name, column=column, row=row)


def _printed_decimals(texts: Sequence[str | None], is_percent: bool) -> int | None:
    """Most decimals of the proportions as printed; None where all are fractions or whole."""
    found = [re.search(r"\.(\d+)", text or "") for text in texts]
    most = max((len(one[1]) for one in found if one is not None), default=0)
    return most + 2 if is_percent else most or None


def from_conditionals(
    attributes: Sequence[Attribute],
    codes: Ints,
    conditionals: Sequence[Fraction],
    arrangement: Arrangement,
    n: int | None,
    *,
    decimals: int | None,
    where: str,
    totals: Sequence[int | None] | None = None,
    rounding: Rounding = Rounding.HALF_UP,
    printed_decimals: int | None = None,
) -> TwoWayTable:
    """A table known only by its conditionals and the sample size, or by the total of each row.

    Exact conditionals of a row must add up to exactly one and become its reduced counts; rounded ones must have no
    more decimals than stated. A row whose conditionals are all zero is a zero row. `totals` holds the total of each line's
    row; one line of a row is enough.
    """
    n_row_names = len(arrangement.rows)
    row_attributes, col_attributes = tuple(attributes[:n_row_names]), tuple(attributes[n_row_names:])
    row_of = mixed_radix(codes[:, :n_row_names], row_attributes).tolist()
    col_of = mixed_radix(codes[:, n_row_names:], col_attributes).tolist()
    n_cols = prod(a.size for a in col_attributes)
    check_size(len(set(row_of)), n_cols)
    rows: dict[int, _PrintedRow] = {}
    for line, (row, col, value) in enumerate(zip(row_of, col_of, conditionals, strict=True), start=1):
        printed = rows.setdefault(row, _PrintedRow(where, line, [Fraction(0)] * n_cols, [0] * n_cols))
        printed.put(line, col, value, None if totals is None else totals[line - 1])
    nonzero = {row: printed for row, printed in sorted(rows.items()) if any(printed.values)}
    counts = np.zeros((len(nonzero), n_cols), dtype=np.int64)
    for position, printed in enumerate(nonzero.values()):
        counts[position] = printed.whole(decimals, printed_decimals)
    row_totals = None
    if totals is not None:
        row_totals = np.array([row.known_total() for row in nonzero.values()], dtype=np.int64)
        _check_totals(rows, nonzero, counts, row_totals, decimals, rounding)
    return TwoWayTable(
        row_attributes=row_attributes,
        col_attributes=col_attributes,
        row_index=np.array(list(nonzero), dtype=np.int64),
        counts=counts,
        n=_sample_size(n, row_totals, where),
        published=None if decimals is None else counts,
        row_totals=row_totals,
        printed_decimals=None if decimals is not None else printed_decimals,
    )


@dataclass(slots=True)
class _PrintedRow:
    """A table row as it was read: where it begins, its values, the line of each cell, and its total."""

    where: str
    first: int
    values: list[Fraction]
    lines: list[int]
    total: int | None = None

    def put(self, line: int, col: int, value: Fraction, total: int | None) -> None:
        if self.lines[col]:
            raise InputError(
                f"row {line} of {self.where} gives a cell that row {self.lines[col]} gave already; remove one.",
                file=self.where,
                row=line,
            )
        if total is not None and self.total not in (None, total):
            raise InputError(
                f"row {line} of {self.where} gives another total of its table row than the rows before; correct one.",
                file=self.where,
                row=line,
                option="--row-n",
            )
        self.values[col], self.lines[col] = value, line
        self.total = total if self.total is None else self.total

    def fault(self, told: str, option: str | None = None) -> InputError:
        place = f"the table row that begins on row {self.first} of {self.where}"
        return InputError(told.format(place=place), file=self.where, row=self.first, option=option)

    def known_total(self) -> int:
        if not self.total:
            raise self.fault("{place} has people but no total; complete the column of --row-n.", "--row-n")
        return self.total

    def whole(self, decimals: int | None, printed_decimals: int | None) -> list[int]:
        """Reduced counts of exact conditionals, or rounded ones in units of their last decimal."""
        if decimals is not None:
            units = [value * 10**decimals for value in self.values]
            if any(unit.denominator > 1 for unit in units):
                raise self.fault(
                    "{place} has a conditional with more decimals than --decimals says; set it to what is printed, counted "
                    "as a proportion: 42.9 % is 0.429 and has three.",
                    "--decimals",
                )
            return [int(unit) for unit in units]
        if sum(self.values) != 1:
            raise self.fault(
                "the conditionals of {place} do not add up to exactly 1; give exact fractions such as 3/7, or "
                f"--decimals {'D' if printed_decimals is None else printed_decimals} for rounded values."
            )
        denominator = lcm(*(value.denominator for value in self.values))
        if denominator > MAX_DENOMINATOR:
            raise self.fault("{place} has fractions with too large a denominator; check them.")
        return [int(value * denominator) for value in self.values]


def _check_totals(
    rows: dict[int, _PrintedRow],
    nonzero: dict[int, _PrintedRow],
    counts: Ints,
    totals: Ints,
    decimals: int | None,
    rounding: Rounding,
) -> None:
    """Row totals must go with the conditionals beside them."""
    for row, printed in rows.items():
        if row not in nonzero and printed.total:
            raise printed.fault("{place} has a total but only zeros; correct one of them.", "--row-n")
    for printed, values, total in zip(nonzero.values(), counts, totals.tolist(), strict=True):
        if decimals is None:
            fits = total % int(values.sum() // np.gcd.reduce(values)) == 0
            hint = "check it, or give --decimals where the conditionals are rounded"
        else:
            is_half_even = rounding is Rounding.HALF_EVEN
            ends = [count_interval(k, 10**decimals, total, is_half_even) for k in values.tolist()]
            fits = all(low <= high for low, high in ends)
            fits = fits and sum(low for low, _ in ends) <= total <= sum(high for _, high in ends)
            hint = "check it, --decimals and --rounding"
        if not fits:
            raise printed.fault(
                f"{{place}} has a total that its conditionals do not allow; {hint}.", "--row-n"
            )


def _sample_size(n: int | None, row_totals: Ints | None, where: str) -> int:
    if row_totals is None:
        assert n is not None
        return n
    total = int(row_totals.sum())
    if n is not None and n != total:
        raise InputError(
            f"option --n differs from the sum of the row totals in {where}; leave it out.", option="--n"
        )
    return total
