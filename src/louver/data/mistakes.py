"""Common mistakes in files, found from their first rows: a missing header, misspelt columns, numbers with commas.

"16090,69" is text to every reader that expects a point, and a column of exact incomes would pass for categories. So numbers with commas are
refused unless they are declared; then they are read as numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from louver.data.sql import literal, quoted
from louver.errors import InputError

if TYPE_CHECKING:
    from louver.data.read import Source

__all__ = ["check_commas", "no_such_column", "with_points"]

LIKELY_SHARE = 0.9
"""A column looks like numbers if this share of its values does: some write N/A, or a dot, for missing."""

DECIMAL_COMMA = "[+-]?([0-9]+,[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?"
COMMAS = (
    rf"{DECIMAL_COMMA}|[+-]?[0-9]{{1,3}}(\.[0-9]{{3}})+,[0-9]+|[+-]?[0-9]{{1,3}}(,[0-9]{{3}})+(\.[0-9]+)?"
)
PLAIN = "[+-]?[0-9]+"
GROUPED = r"[+-]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?"


def check_commas(source: Source, view: str) -> None:
    """Refuse a column of text that looks like numbers with commas, judging by a view of the first rows."""
    texts = [column for column, kind in source.types.items() if kind == "VARCHAR"]
    if not texts:
        return
    has_comma = _evaluated(source, view, [f"bool_or(contains({quoted(name)}, ','))" for name in texts])
    likely = [name for name, is_so in zip(texts, has_comma, strict=True) if is_so]
    if not likely:
        return
    for name, is_number in zip(likely, _evaluated(source, view, map(_looks_numeric, likely)), strict=True):
        if is_number:
            message = (
                f'column "{name}" in {source.name} has numbers with commas; give --decimal-mark "," where they mark '
                'decimals, take them out where they mark thousands, or give --decimal-mark "." if they are not numbers.'
            )
            raise InputError(message, file=source.name, column=name, option="decimal_mark")


def with_points(source: Source, view: str) -> str:
    """SQL for all columns with points in place of decimal commas.

    Raises
    ------
    InputError
        On a number with points as thousands separators: "1.234" is ambiguous.
    """
    texts = {column for column, kind in source.types.items() if kind == "VARCHAR"}
    _check_grouped(source, view, sorted(texts))
    return ", ".join(
        f"{_pointed(quoted(name))} AS {quoted(name)}" if name in texts else quoted(name)
        for name in source.types
    )


def _pointed(name: str) -> str:
    return f"CASE WHEN regexp_full_match({name}, '{DECIMAL_COMMA}') THEN replace({name}, ',', '.') ELSE {name} END"


def _looks_numeric(column: str) -> str:
    name = quoted(column)
    commas, plain = (f"count_if(regexp_full_match({name}, '{form}'))" for form in (COMMAS, PLAIN))
    return f"{commas} > 0 AND {commas} + {plain} >= {LIKELY_SHARE} * count(nullif({name}, ''))"


def _check_grouped(source: Source, view: str, texts: list[str]) -> None:
    if not texts:
        return
    found = _evaluated(
        source, view, [f"bool_or(regexp_full_match({quoted(name)}, '{GROUPED}'))" for name in texts]
    )
    for name, is_grouped in zip(texts, found, strict=True):
        if is_grouped:
            message = (
                f'column "{name}" in {source.name} has points inside numbers although --decimal-mark is a comma; '
                "take out what separates thousands."
            )
            raise InputError(message, file=source.name, column=name, option="decimal_mark")


def _evaluated(source: Source, relation: str, conditions: Iterable[str]) -> list[bool]:
    """Results of one scan."""
    fields = ", ".join(f"{condition} AS c{i}" for i, condition in enumerate(conditions))
    found = source.first_row(f"SELECT {fields} FROM {relation}")
    assert found is not None
    return [bool(value) for value in found.values()]


MAX_SUGGESTED = 3
NAME_SAMPLE_ROWS = 10_000
MOSTLY = 0.5
VALUE = re.compile(r"[+-]?[\d.,:/ -]*\d[\d.,:/ -]*|\S+@\S+")
"""Texts that are values rather than names: a number, a date, a time, an address."""


def no_such_column(source: Source, column: str, *, has_header: bool) -> InputError:
    """The error, with similar names from the header.

    Parameters
    ----------
    has_header : bool
        Whether the names come from the first line of a text file. If that line looks like data, none of it is quoted.
    """
    if has_header and _looks_like_data(source):
        advice = "its first line looks like data; add a line with the column names."
    else:
        advice = _suggestion(column, source.columns)
    message = f'{source.name} has no column "{column}"; {advice}'
    return InputError(message, file=source.name, column=column)


def _suggestion(column: str, names: tuple[str, ...]) -> str:
    """Similar names, ignoring case."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), by_lower, n=MAX_SUGGESTED, cutoff=0.7)
    if not near:
        return "check the spelling."
    return "perhaps " + " or ".join(f'"{by_lower[name]}"' for name in near) + " is meant."


def _looks_like_data(source: Source) -> bool:
    """Whether most names look like values, or one of them is a value of its own column in a later row."""
    names = source.columns
    if sum(1 for name in names if VALUE.fullmatch(name)) > MOSTLY * len(names):
        return True
    repeated = " OR ".join(f"CAST({quoted(name)} AS VARCHAR) = {literal(name)}" for name in names)
    start = f"(SELECT * FROM sample LIMIT {NAME_SAMPLE_ROWS})"
    return source.first_row(f"SELECT 1 FROM {start} WHERE {repeated} LIMIT 1") is not None
