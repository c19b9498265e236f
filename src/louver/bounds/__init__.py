"""bounds: what can be recovered from a released table of conditional frequencies.

Wright & Smucker (2014), and past it: rounded conditionals and a search for safe redesigns.

`louver.bounds(...)` audits one arrangement; `louver.bounds.compare` a list of them; `louver.bounds.suggest`
looks for better ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._callable import make_callable
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
from louver.schema.attribute import Attribute
from louver.schema.spec import Schema, validated

if TYPE_CHECKING:
    from louver.data.histogram import Histogram
    from louver.data.read import ArrowStream

    Data = str | Path | ArrowStream

__all__ = [
    "Arrangement",
    "BoundsAudit",
    "BoundsOptions",
    "Comparison",
    "Statement",
    "Suggestion",
    "Suggestions",
    "Summary",
    "bounds",
    "compare",
    "suggest",
]

FRACTION = re.compile(r"\d{1,18}/\d{1,18}|\d{1,18}(\.\d{0,18})?|\.\d{1,18}")


def bounds(
    data: Data,
    *,
    table: str | None = None,
    query: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema | None = None,
    **options: Any,
) -> BoundsAudit:
    """Audit one arrangement: tight bounds and all feasible values of every cell.

    Parameters
    ----------
    data : path, PostgreSQL uri or dataframe
        Records, or a counted table with `weight`, or published conditionals with `conditionals=True`.
    table, query : str, optional
        Table of a DuckDB file or PostgreSQL database; query for PostgreSQL.
    wide : mapping, optional
        Column of counts -> {attribute: label}, for tables with one column per cell.
    schema : Schema, optional
        Labels, order, hierarchies and structural zeros; labels come from the data otherwise.
    rows, cols : sequence of str
        Attributes that make the rows and the columns; all others are summed over.
    weight : str, optional
        Column of counts, or of conditionals.
    conditionals : bool
        The weight column holds conditionals ("3/7" or exact decimals); `n` is then the sample size.
    recode, given, cells : path or inline value, optional
        Recodes, a-priori knowledge (`[[known]]` entries), and cells to solve (all by default).
    decimals : int, optional
        Published proportions are rounded to this many decimals; exact fractions otherwise.
    rounding : {"half-up", "half-even"}
    small : int
        Counts below this are small (5).
    drop_zero_rows, merge_zero_rows : bool
        Leave rows with a zero cell out, or add them up in one row "Other".

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
    checked = _checked(options)
    with open_source(data, table=table, query=query) as source:
        two_way, arrangement, audit_options = _load(source, checked, wide, schema)
    selected = None if checked.cells is None else _selected_cells(checked.cells, two_way)
    return audit_table(
        two_way, arrangement, audit_options, selected=selected, is_counted=not checked.conditionals
    )


def compare(
    data: Data,
    *,
    table: str | None = None,
    query: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema | None = None,
    **options: Any,
) -> Comparison:
    """Audit a list of arrangements (`arrangements`: a TOML file or a list of mappings) and sort them by risk.

    The other parameters are those of `bounds`.
    """
    checked = _checked(options)
    if checked.arrangements is None:
        raise InputError("option --arrangements is needed to compare arrangements.", option="--arrangements")
    if isinstance(checked.arrangements, str):
        arrangements = read_arrangements(checked.arrangements)
    else:
        arrangements = parse_arrangements(checked.arrangements)
    names = list(dict.fromkeys(name for a in arrangements for name in (*a.rows, *a.cols)))
    with open_source(data, table=table, query=query) as source:
        histogram = _tabulated(source, names, checked, wide, schema)
    return compare_arrangements(histogram, arrangements, _audit_options(checked, schema))


def suggest(
    data: Data,
    *,
    table: str | None = None,
    query: str | None = None,
    wide: Mapping[str, Mapping[str, str]] | None = None,
    schema: Schema | None = None,
    progress: Callable[[float, str], None] | None = None,
    **options: Any,
) -> Suggestions:
    """Search for redesigns of one arrangement without a disclosed small cell, for at most `seconds`.

    The other parameters are those of `bounds`.
    """
    checked = _checked(options)
    arrangement = checked.arrangement()
    names = (*arrangement.rows, *arrangement.cols)
    with open_source(data, table=table, query=query) as source:
        histogram = _tabulated(source, names, checked, wide, schema)
    audit_options = _audit_options(checked, schema)
    return suggest_redesigns(
        histogram, arrangement, audit_options, seconds=checked.seconds, progress=progress
    )


def _checked(options: Mapping[str, Any]) -> BoundsOptions:
    """Options as a checked model; lists of statements may hold `Statement` objects."""
    plain = dict(options)
    for name in ("rows", "cols"):
        if isinstance(plain.get(name), str):
            plain[name] = (plain[name],)
    for name in ("recode", "given", "cells", "arrangements"):
        if isinstance(plain.get(name), Path):
            plain[name] = str(plain[name])
    if isinstance(plain.get("given"), Sequence) and not isinstance(plain["given"], str):
        plain["given"] = [
            entry.model_dump(exclude_none=True) if isinstance(entry, Statement) else entry
            for entry in plain["given"]
        ]
    checked = validated(BoundsOptions, plain)
    checked.check()
    return checked


def _audit_options(checked: BoundsOptions, schema: Schema | None) -> AuditOptions:
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


def _tabulated(
    source: Source,
    names: Sequence[str],
    checked: BoundsOptions,
    wide: Mapping[str, Mapping[str, str]] | None,
    schema: Schema | None,
) -> Histogram:
    histogram = tabulate(source, names, weight=checked.weight, wide=wide, schema=schema)
    if not histogram.total:
        raise InputError(
            f"{source.name} counts no people; give at least one count above 0.", file=source.name
        )
    return histogram


def _load(
    source: Source,
    checked: BoundsOptions,
    wide: Mapping[str, Mapping[str, str]] | None,
    schema: Schema | None,
) -> tuple[TwoWayTable, Arrangement, AuditOptions]:
    arrangement = checked.arrangement()
    audit_options = _audit_options(checked, schema)
    if checked.conditionals:
        return _load_conditionals(source, checked, arrangement, schema), arrangement, audit_options
    names = (*arrangement.rows, *arrangement.cols)
    histogram = _tabulated(source, names, checked, wide, schema)
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
    source: Source, checked: BoundsOptions, arrangement: Arrangement, schema: Schema | None
) -> TwoWayTable:
    names = (*arrangement.rows, *arrangement.cols)
    assert checked.weight is not None and checked.n is not None
    records, texts = read_labelled_text(source, names, checked.weight, schema)
    values: list[Fraction] = []
    for row, text in enumerate(texts, start=1):
        if (
            text is None
            or not FRACTION.fullmatch(text)
            or text.endswith("/" + "0" * (len(text) - text.find("/") - 1))
        ):
            raise InputError(
                f'column "{checked.weight}" in {source.name} has no conditional on row {row}; give a fraction such as '
                "3/7 or a decimal between 0 and 1.",
                file=source.name,
                column=checked.weight,
                row=row,
            )
        values.append(Fraction(text))
        if values[-1] > 1:
            raise InputError(
                f'column "{checked.weight}" in {source.name} has a conditional above 1 on row {row}; give proportions, '
                "not percentages or counts.",
                file=source.name,
                column=checked.weight,
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
