"""From the data to the table that is audited, read once: counts or conditionals, what is known, and the cells asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from louver.bounds.check import DisclosureRules
from louver.bounds.conditionals import read_conditionals
from louver.bounds.knowledge import Statement, parse_given, read_given
from louver.bounds.options import BoundsOptions
from louver.bounds.problem import Arrangement, TwoWayTable, arrange
from louver.bounds.redesigns import Wishes
from louver.data.histogram import Histogram
from louver.data.read import Source, open_source
from louver.data.tabulate import read_text, tabulate
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request

__all__ = ["Loaded", "count", "load", "read_rules"]


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
    wishes : Wishes
        What redesigns must leave alone.
    """

    table: TwoWayTable
    arrangement: Arrangement
    options: DisclosureRules
    selected: list[tuple[int, int]] | None
    histogram: Histogram | None
    wishes: Wishes


def load(request: Request[BoundsOptions]) -> Loaded:
    """Read the arrangement that the options name."""
    checked = request.options
    arrangement, options = checked.arrangement(), read_rules(request)
    with open_source(request.data, **request.source.opening(), run=request.run) as source:
        histogram = None
        if checked.conditionals:
            table = read_conditionals(source, request, arrangement)
        else:
            histogram = _counted(source, (*arrangement.rows, *arrangement.cols), request)
            table = _arranged(source, histogram, arrangement, options, checked.n)
    selected = None if checked.cells is None else _selected_cells(checked.cells, table, request.run)
    return Loaded(
        table=table,
        arrangement=arrangement,
        options=options,
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
    """What the audit is told beside the table."""
    checked, schema = request.options, request.schema
    given: tuple[Statement, ...] = ()
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
