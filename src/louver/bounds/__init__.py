"""bounds: what can be recovered from a released table of conditional frequencies.

Wright & Smucker (2014), and past it: rounded conditionals and a search for safe redesigns.

`louver.bounds(...)` audits one arrangement; `louver.bounds.compare` a list of them; `louver.bounds.suggest`
looks for better ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._callable import make_callable
from louver.bounds.answer import BoundsAnswer
from louver.bounds.audit import AuditOptions, audit_table
from louver.bounds.audit import compare as compare_arrangements
from louver.bounds.knowledge import Statement, parse_given, read_given
from louver.bounds.options import BoundsOptions, parse_arrangements, read_arrangements
from louver.bounds.problem import Arrangement, TwoWayTable, arrange, from_conditionals
from louver.bounds.result import BoundsAudit, Comparison, Suggestion, Suggestions, Summary
from louver.bounds.suggest import suggest as suggest_redesigns
from louver.data.read import Source, open_source
from louver.data.tabulate import tabulate
from louver.data.values import read_labelled_text, read_text
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.request import Request, SpecLike, door, requested
from louver.schema.spec import Schema

if TYPE_CHECKING:
    from louver.data.histogram import Histogram
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = [
    "Arrangement",
    "BoundsAnswer",
    "BoundsAudit",
    "BoundsOptions",
    "Comparison",
    "Statement",
    "Suggestion",
    "Suggestions",
    "Summary",
    "answer",
    "bounds",
    "compare",
    "suggest",
]

FRACTION = re.compile(r"\d{1,18}/\d{1,18}|\d{1,18}(\.\d{0,18})?|\.\d{1,18}")


@door(BoundsOptions)
def bounds(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    table: str | None = None,
    query: str | None = None,
    rows: str | Sequence[str] = (),
    cols: str | Sequence[str] = (),
    conditionals: bool = False,
    n: int | None = None,
    recode: str | Path | Mapping[str, Any] | None = None,
    given: str | Path | Sequence[Statement | Mapping[str, Any]] | None = None,
    cells: str | Path | Sequence[Mapping[str, str]] | None = None,
    decimals: int | None = None,
    rounding: str = "half-up",
    small: int = 5,
    drop_zero_rows: bool = False,
    merge_zero_rows: bool = False,
    run: Run | None = None,
) -> BoundsAudit:
    """Audit one arrangement: tight bounds and all feasible values of every cell.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`, or published conditionals with `conditionals=True`.
    spec : path, mapping or Spec, optional
        A spec with the source, its attributes and a section `[bounds]`; what is given here wins.
    schema : Schema, optional
        Labels, order, hierarchies and structural zeros; labels come from the data otherwise.
    weight : str, optional
        Column of counts, or of conditionals.
    wide : mapping, optional
        Column of counts -> {attribute: label}, for tables with one column per cell.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
    rows, cols : sequence of str
        Attributes that make the rows and the columns; all others are summed over.
    conditionals : bool
        The weight column holds conditionals ("3/7" or exact decimals); `n` is then the sample size.
    n : int, optional
        Sample size, with `conditionals`.
    recode, given, cells : path or inline value, optional
        Recodes, a-priori knowledge (`[[known]]` entries), and cells to solve (all by default).
    decimals : int, optional
        Published proportions are rounded to this many decimals; exact fractions otherwise.
    rounding : {"half-up", "half-even"}
        How ties are rounded, with `decimals`.
    small : int
        Counts below this are small.
    drop_zero_rows, merge_zero_rows : bool
        Leave rows with a zero cell out, or add them up in one row "Other".
    run : Run, optional
        Told how far the work is, and asked whether it shall end.

    Returns
    -------
    BoundsAudit

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"site": ["A", "A", "B", "B"], "ill": ["y", "n", "y", "n"], "count": [3, 4, 5, 3]})
    >>> audit = bounds(people, rows=["site"], cols=["ill"], weight="count")
    >>> [(cell.lower, cell.upper) for cell in audit.cells()]
    [(4, 4), (3, 3), (3, 3), (5, 5)]
    """
    return _audit(requested(spec, BoundsOptions), run)


@door(BoundsOptions)
def compare(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    table: str | None = None,
    query: str | None = None,
    arrangements: str | Path | Sequence[Mapping[str, Any]] | None = None,
    decimals: int | None = None,
    rounding: str = "half-up",
    small: int = 5,
    drop_zero_rows: bool = False,
    merge_zero_rows: bool = False,
    run: Run | None = None,
) -> Comparison:
    """Audit a list of arrangements and sort them by risk.

    Parameters
    ----------
    arrangements : path or sequence of mappings
        A TOML file with `[[arrangement]]` entries, or the entries.

    The other parameters are those of `bounds`.
    """
    return _compare(requested(spec, BoundsOptions), run)


@door(BoundsOptions)
def suggest(
    data: Data | None = None,
    *,
    spec: SpecLike = None,
    schema: Schema | None = None,
    weight: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    table: str | None = None,
    query: str | None = None,
    rows: str | Sequence[str] = (),
    cols: str | Sequence[str] = (),
    recode: str | Path | Mapping[str, Any] | None = None,
    decimals: int | None = None,
    rounding: str = "half-up",
    small: int = 5,
    drop_zero_rows: bool = False,
    merge_zero_rows: bool = False,
    seconds: float = 30.0,
    run: Run | None = None,
) -> Suggestions:
    """Search for redesigns of one arrangement without a disclosed small cell.

    Parameters
    ----------
    seconds : float
        Most time for the search.

    The other parameters are those of `bounds`.
    """
    return _suggest(requested(spec, BoundsOptions), run)


def answer(request: Request[BoundsOptions], run: Run | None = None) -> BoundsAnswer:
    """All that the options ask for: an audit with or without redesigns, or a comparison of arrangements."""
    audit = comparison = suggestions = None
    if request.options.arrangements is not None:
        comparison = _compare(request, run)
    else:
        audit = _audit(request, run)
        if request.options.suggest:
            suggestions = _suggest(request, run)
    return BoundsAnswer(
        audit=audit, comparison=comparison, suggestions=suggestions, fail_on=request.options.fail_on
    )


def _audit(request: Request[BoundsOptions], run: Run | None) -> BoundsAudit:
    options = request.options
    with open_source(request.data, **request.source.opening()) as source:
        two_way, arrangement, audit_options = _load(source, request)
    selected = None if options.cells is None else _selected_cells(options.cells, two_way)
    if run is not None:
        run.check()
    return audit_table(
        two_way, arrangement, audit_options, selected=selected, is_counted=not options.conditionals
    )


def _compare(request: Request[BoundsOptions], run: Run | None) -> Comparison:
    given = request.options.arrangements
    if given is None:
        raise InputError("option --arrangements is needed to compare arrangements.", option="--arrangements")
    arrangements = read_arrangements(given) if isinstance(given, str) else parse_arrangements(given)
    names = list(dict.fromkeys(name for a in arrangements for name in (*a.rows, *a.cols)))
    histogram = _tabulated(request, names)
    if run is not None:
        run.check()
    return compare_arrangements(histogram, arrangements, _audit_options(request))


def _suggest(request: Request[BoundsOptions], run: Run | None) -> Suggestions:
    arrangement = request.options.arrangement()
    histogram = _tabulated(request, (*arrangement.rows, *arrangement.cols))
    progress = None
    if run is not None:
        progress = lambda share, told: run.report(f"searching redesigns, {told}", min(share, 1.0), 1.0)  # noqa: E731
    return suggest_redesigns(
        histogram, arrangement, _audit_options(request), seconds=request.options.seconds, progress=progress
    )


def _audit_options(request: Request[BoundsOptions]) -> AuditOptions:
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


def _tabulated(request: Request[BoundsOptions], names: Sequence[str]) -> Histogram:
    with open_source(request.data, **request.source.opening()) as source:
        return _counted(source, names, request)


def _counted(source: Source, names: Sequence[str], request: Request[BoundsOptions]) -> Histogram:
    about = request.source
    histogram = tabulate(source, names, weight=about.weight, wide=about.wide or None, schema=request.schema)
    if not histogram.total:
        raise InputError(
            f"{source.name} counts no people; give at least one count above 0.", file=source.name
        )
    return histogram


def _load(source: Source, request: Request[BoundsOptions]) -> tuple[TwoWayTable, Arrangement, AuditOptions]:
    checked = request.options
    arrangement = checked.arrangement()
    audit_options = _audit_options(request)
    if checked.conditionals:
        return _load_conditionals(source, request, arrangement), arrangement, audit_options
    histogram = _counted(source, (*arrangement.rows, *arrangement.cols), request)
    two_way = arrange(
        histogram,
        arrangement,
        structural_zeros=audit_options.structural_zeros,
        zero_rows=audit_options.zero_rows,
    )
    if checked.n is not None and checked.n != two_way.n:
        raise InputError(
            f"option --n differs from the total of {source.name}; leave it out, or use --conditionals where counts "
            "are not known.",
            option="--n",
        )
    return two_way, arrangement, audit_options


def _load_conditionals(
    source: Source, request: Request[BoundsOptions], arrangement: Arrangement
) -> TwoWayTable:
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
            raise InputError(
                f'column "{weight}" in {source.name} has no conditional on row {row}; give a fraction such as '
                "3/7 or a decimal between 0 and 1.",
                file=source.name,
                column=weight,
                row=row,
            )
        values.append(Fraction(text))
        if values[-1] > 1:
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


make_callable(__name__, bounds)
