"""From the data to the table that is audited, read once: counts or conditionals, what is known, and the cells asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from louver.bounds.audit import AuditOptions
from louver.bounds.knowledge import Statement, parse_given, read_given
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, arrange, from_conditionals
from louver.data.histogram import Histogram
from louver.data.read import Source, open_source
from louver.data.tabulate import tabulate
from louver.data.values import read_labelled_text, read_text
from louver.errors import InputError
from louver.schema.attribute import Attribute
from louver.schema.request import Request

__all__ = ["Loaded", "audit_options", "count", "load"]

FRACTION = re.compile(r"\d{1,18}/\d{1,18}|\d{1,18}(\.\d{0,18})?|\.\d{1,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was read of one arrangement.

    Attributes
    ----------
    table : TwoWayTable
    arrangement : Arrangement
    options : AuditOptions
    selected : list of (row index, column) or None
        Cells to solve; None for all.
    histogram : Histogram or None
        The counts before they were arranged; None where conditionals were read.
    """

    table: TwoWayTable
    arrangement: Arrangement
    options: AuditOptions
    selected: list[tuple[int, int]] | None
    histogram: Histogram | None


def load(request: Request[BoundsOptions]) -> Loaded:
    """Read the arrangement that the options name."""
    checked = request.options
    arrangement, options = checked.arrangement(), audit_options(request)
    with open_source(request.data, **request.source.opening()) as source:
        histogram = None
        if checked.conditionals:
            table = _conditionals(source, request, arrangement)
        else:
            histogram = _counted(source, (*arrangement.rows, *arrangement.cols), request)
            table = _arranged(source, histogram, arrangement, options, checked.n)
    selected = None if checked.cells is None else _selected_cells(checked.cells, table)
    return Loaded(
        table=table, arrangement=arrangement, options=options, selected=selected, histogram=histogram
    )


def count(request: Request[BoundsOptions], names: Sequence[str]) -> Histogram:
    """Count the source by some of its columns."""
    with open_source(request.data, **request.source.opening()) as source:
        return _counted(source, names, request)


def audit_options(request: Request[BoundsOptions]) -> AuditOptions:
    """What the audit is told beside the table."""
    checked, schema = request.options, request.schema
    given: tuple[Statement, ...] = ()
    given_from = "the known bounds"
    if isinstance(checked.given, str):
        given, given_from = tuple(read_given(checked.given)), Path(checked.given).name
    elif checked.given is not None:
        given = tuple(parse_given(checked.given))
    return AuditOptions(
        small=checked.small,
        decimals=checked.decimals,
        rounding=checked.rounding_rule,
        zero_rows=checked.zero_rows,
        given=given,
        given_from=given_from,
        structural_zeros=() if schema is None else schema.structural_zeros,
    )


def _counted(source: Source, names: Sequence[str], request: Request[BoundsOptions]) -> Histogram:
    about = request.source
    histogram = tabulate(source, names, weight=about.weight, wide=about.wide or None, schema=request.schema)
    if not histogram.total:
        raise InputError(
            f"{source.name} counts no people; give at least one count above 0.", file=source.name
        )
    return histogram


def _arranged(
    source: Source, histogram: Histogram, arrangement: Arrangement, options: AuditOptions, n: int | None
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


def _conditionals(source: Source, request: Request[BoundsOptions], arrangement: Arrangement) -> TwoWayTable:
    names = (*arrangement.rows, *arrangement.cols)
    checked, weight = request.options, request.source.weight
    assert weight is not None and checked.n is not None
    records, texts = read_labelled_text(source, names, weight, request.schema)
    values: list[Fraction] = []
    for row, text in enumerate(texts, start=1):
        if (
            text is None
            or not FRACTION.fullmatch(text)
            or text.endswith("/" + "0" * (len(text) - text.find("/") - 1))
        ):
            row = source.row_of(row)
            raise InputError(
                f'column "{weight}" in {source.name} has no conditional on row {row}; give a fraction such as '
                "3/7 or a decimal between 0 and 1.",
                file=source.name,
                column=weight,
                row=row,
            )
        values.append(Fraction(text))
        if values[-1] > 1:
            row = source.row_of(row)
            raise InputError(
                f'column "{weight}" in {source.name} has a conditional above 1 on row {row}; give proportions, '
                "not percentages or counts.",
                file=source.name,
                column=weight,
                row=row,
            )
    return from_conditionals(
        records.attributes,
        records.codes.astype(np.int64),
        values,
        arrangement,
        checked.n,
        decimals=checked.decimals,
        where=source.name,
    )


def _selected_cells(cells: str | list[dict[str, str]], two_way: TwoWayTable) -> list[tuple[int, int]]:
    """(row index, column) of the cells listed in a file with one column per attribute, or in a list."""
    attributes = (*two_way.row_attributes, *two_way.col_attributes)
    names = [attribute.name for attribute in attributes]
    if isinstance(cells, str):
        where = Path(cells).name
        with open_source(cells) as source:
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
                f"row {row} of {where} names a table row with a zero cell, which the table leaves out.",
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
                f'row {row} of {where} has no label that column "{attribute.name}" has; list cells by their labels.',
                file=where,
                column=attribute.name,
                row=row,
            )
        index = index * attribute.size + attribute.code_of(label)
    return index
