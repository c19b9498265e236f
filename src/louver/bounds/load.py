"""From the data to the audited table, read once: counts or conditionals, prior knowledge, and the cells to solve."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod
from pathlib import Path

import numpy as np

from louver._arrays import Ints
from louver.bounds.check import DisclosureRules
from louver.bounds.knowledge import KnownCells, parse_given, read_given
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, arrange, check_size, mixed_radix
from louver.bounds.redesigns import Wishes
from louver.bounds.rounded import RoundingRule
from louver.data.histogram import Histogram
from louver.data.kinds import is_named_like_weight
from louver.data.read import Source, open_source
from louver.data.tabulate import read_labelled_text, read_text, tabulate
from louver.errors import InputError
from louver.optim.kernels.semigroups.rounded_conditionals import count_interval
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request
from louver.schema.source import SourceOptions

__all__ = ["LoadedArrangement", "count", "from_conditionals", "load", "read_conditionals", "read_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedArrangement:
    """The input of one arrangement.

    Attributes
    ----------
    table : TwoWayTable
    arrangement : Arrangement
    rules : DisclosureRules
    selected : list of (row index, column) or None
        Cells to solve; None for all.
    histogram : Histogram or None
        The counts before they were arranged; None if conditionals were read.
    wishes : Wishes
        What redesigns must leave unchanged.
    """

    table: TwoWayTable
    arrangement: Arrangement
    rules: DisclosureRules
    selected: list[tuple[int, int]] | None
    histogram: Histogram | None
    wishes: Wishes


def load(request: Request[BoundsOptions]) -> LoadedArrangement:
    """Read the arrangement that the options name."""
    checked = request.options
    arrangement, rules = checked.arrangement(), read_rules(request)
    with open_source(request.data, **request.source.opening(), run=request.run) as source:
        histogram = None
        if checked.conditionals:
            table = read_conditionals(source, request, arrangement)
        else:
            histogram = _counted(source, (*arrangement.rows, *arrangement.cols), request)
            table = _arranged(source, histogram, arrangement, rules, checked.n)
    selected = None if checked.cells is None else _selected_cells(checked.cells, table, request.run)
    return LoadedArrangement(
        table=table,
        arrangement=arrangement,
        rules=rules,
        selected=selected,
        histogram=histogram,
        wishes=_wishes(request),
    )


def _wishes(request: Request[BoundsOptions]) -> Wishes:
    listed = () if request.schema is None else request.schema.attributes
    return Wishes(
        fix=request.options.fix,
        apart=request.options.apart,
        categories=frozenset(attribute.name for attribute in listed if not attribute.is_ordered),
    )


def count(request: Request[BoundsOptions], names: Sequence[str]) -> Histogram:
    """Count the source by some of its columns."""
    with open_source(request.data, **request.source.opening(), run=request.run) as source:
        return _counted(source, names, request)


def read_rules(request: Request[BoundsOptions]) -> DisclosureRules:
    """The input of the audit in addition to the table."""
    checked, schema = request.options, request.schema
    given: tuple[KnownCells, ...] = ()
    given_from = "the known bounds"
    if isinstance(checked.given, str):
        given, given_from = tuple(read_given(checked.given)), Path(checked.given).name
    elif checked.given is not None:
        given = tuple(parse_given(checked.given))
    return DisclosureRules(
        small=checked.small,
        certain=checked.certain_share,
        decimals=checked.decimals,
        rounding=checked.rounding_rule,
        zero_rows=checked.zero_rows,
        given=given,
        given_from=given_from,
        structural_zeros=() if schema is None else schema.structural_zeros,
        survey_weight=_survey_weight(request.source),
    )


def _survey_weight(source: SourceOptions) -> str | None:
    """The column of counts, if its name suggests that it holds sampling weights."""
    return source.weight if source.weight is not None and is_named_like_weight(source.weight) else None


def _counted(source: Source, names: Sequence[str], request: Request[BoundsOptions]) -> Histogram:
    about = request.source
    histogram = tabulate(source, names, weight=about.weight, wide=about.wide or None, schema=request.schema)
    if not histogram.total:
        raise InputError(
            f"{source.name} has no people; at least one count must be above 0.", file=source.name
        )
    return histogram


def _arranged(
    source: Source, histogram: Histogram, arrangement: Arrangement, options: DisclosureRules, n: int | None
) -> TwoWayTable:
    table = arrange(
        histogram,
        arrangement,
        structural_zeros=options.structural_zeros,
        zero_rows=options.zero_rows,
    )
    if n is not None and n != table.n:
        raise InputError(
            f"option --n differs from the total of {source.name}; leave it out, or use --conditionals where counts "
            "are not known.",
            option="--n",
        )
    return table


def _selected_cells(
    cells: str | list[dict[str, str]], two_way: TwoWayTable, run: Run
) -> list[tuple[int, int]]:
    """(row index, column) of the cells listed in a file with one column per attribute, or in a list."""
    attributes = (*two_way.row_attributes, *two_way.col_attributes)
    names = [attribute.name for attribute in attributes]
    if isinstance(cells, str):
        where = Path(cells).name
        with open_source(cells, run=run) as source:
            entries: list[dict[str, str | None]] = [
                dict(zip(names, row, strict=True)) for row in read_text(source, names)
            ]
    else:
        where, entries = "cells", [dict(entry) for entry in cells]
    selected = [
        (
            _index_of(entry, two_way.row_attributes, where, row),
            _index_of(entry, two_way.col_attributes, where, row),
        )
        for row, entry in enumerate(entries, start=1)
    ]
    shown = set(two_way.row_index.tolist())
    for row, (index, _) in enumerate(selected, start=1):
        if two_way.dropped_rows and index not in shown:
            raise InputError(
                f"row {row} of {where} is about a table row with a zero cell, which the table leaves out.",
                file=where,
                row=row,
            )
    return list(dict.fromkeys(selected))


def _index_of(entry: Mapping[str, str | None], attributes: Sequence[Attribute], where: str, row: int) -> int:
    index = 0
    for attribute in attributes:
        label = entry.get(attribute.name)
        if label is None or not attribute.has_label(label):
            raise InputError(
                f'row {row} of {where} has no label that column "{attribute.name}" has; describe cells by their labels.',
                file=where,
                column=attribute.name,
                row=row,
            )
        index = index * attribute.size + attribute.code_of(label)
    return index


FRACTION = re.compile(r"\d{1,18}/0*[1-9]\d{0,17}|\d{1,18}(\.\d{0,18})?|\.\d{1,18}")
COUNT = re.compile(r"\d{1,16}(\.0*)?")

MAX_DENOMINATOR = 2**40
"""Largest reduced row sum accepted from fractions; no table of people has a larger one."""


def read_conditionals(
    source: Source, request: Request[BoundsOptions], arrangement: Arrangement
) -> TwoWayTable:
    """Read one line per cell: labels, conditional, and the row's total if --row-n names its column."""
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
    content = None
    if number != plain and not checked.percent:
        content = "has a percentage on row {row}; add --percent"
    elif not FRACTION.fullmatch(number) or (checked.percent and "/" in number):
        shape = (
            "a number between 0 and 100"
            if checked.percent
            else "a fraction such as 3/7 or a decimal between 0 and 1"
        )
        content = f"has no {kind} on row {{row}}; give {shape}"
    elif Fraction(number) > unit:
        remedy = (
            "check it" if checked.percent else "give proportions, or add --percent if they are percentages"
        )
        content = f"has a {kind} above {unit} on row {{row}}; {remedy}"
    if content is not None:
        raise _fault(source, column, row, content)
    return Fraction(number) / unit


def _total(source: Source, column: str, row: int, text: str | None) -> int | None:
    if text is None or not text.strip():
        return None
    if not COUNT.fullmatch(text.strip()) or int(text.split(".")[0]) > 2**53:
        raise _fault(source, column, row, "has no whole number of people on row {row}; give the row's total")
    return int(text.split(".")[0])


def _fault(source: Source, column: str, row: int, content: str) -> InputError:
    row = source.row_of(row)
    message = f'column "{column}" in {source.name} {content.format(row=row)}.'
    return InputError(message, file=source.name, column=column, row=row)


def _printed_decimals(texts: Sequence[str | None], is_percent: bool) -> int | None:
    """Largest number of decimals among the printed proportions; None if all are fractions or whole numbers."""
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
    rounding: RoundingRule = RoundingRule.HALF_UP,
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
        counts[position] = printed.in_units(decimals, printed_decimals)
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
    """A table row as read: its first line, its values, the line of each cell, and its total."""

    where: str
    first: int
    values: list[Fraction]
    lines: list[int]
    total: int | None = None

    def put(self, line: int, col: int, value: Fraction, total: int | None) -> None:
        if self.lines[col]:
            raise InputError(
                f"row {line} of {self.where} repeats the cell of row {self.lines[col]}; remove one.",
                file=self.where,
                row=line,
            )
        if total is not None and self.total not in (None, total):
            raise InputError(
                f"row {line} of {self.where} has a different total for its table row than earlier rows; correct one.",
                file=self.where,
                row=line,
                option="--row-n",
            )
        self.values[col], self.lines[col] = value, line
        self.total = total if self.total is None else self.total

    def fault(self, content: str, option: str | None = None) -> InputError:
        place = f"the table row that begins on row {self.first} of {self.where}"
        return InputError(content.format(place=place), file=self.where, row=self.first, option=option)

    def known_total(self) -> int:
        if not self.total:
            raise self.fault("{place} has people but no total; complete the column in --row-n.", "--row-n")
        return self.total

    def in_units(self, decimals: int | None, printed_decimals: int | None) -> list[int]:
        """Reduced counts of exact conditionals, or rounded ones in units of their last decimal."""
        if decimals is not None:
            units = [value * 10**decimals for value in self.values]
            if any(unit.denominator > 1 for unit in units):
                raise self.fault(
                    "{place} has a conditional with more decimals than --decimals; count the decimals of the proportion: 42.9 % is 0.429 "
                    "and has three.",
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
    rounding: RoundingRule,
) -> None:
    """Row totals must be consistent with the conditionals in the same row."""
    for row, printed in rows.items():
        if row not in nonzero and printed.total:
            raise printed.fault("{place} has a total but only zeros; correct one of them.", "--row-n")
    for printed, values, total in zip(nonzero.values(), counts, totals.tolist(), strict=True):
        if decimals is None:
            fits = total % int(values.sum() // np.gcd.reduce(values)) == 0
            hint = "check it, or give --decimals if the conditionals are rounded"
        else:
            is_half_even = rounding is RoundingRule.HALF_EVEN
            ends = [count_interval(k, 10**decimals, total, is_half_even) for k in values.tolist()]
            fits = all(low <= high for low, high in ends)
            fits = fits and sum(low for low, _ in ends) <= total <= sum(high for _, high in ends)
            hint = "check it, --decimals and --rounding"
        if not fits:
            raise printed.fault(
                f"{{place}} has a total that contradicts its conditionals; {hint}.", "--row-n"
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
