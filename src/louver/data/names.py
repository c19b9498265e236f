"""What to say about a column that the data do not have."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from louver.data.sql import literal, quoted
from louver.errors import InputError

if TYPE_CHECKING:
    from louver.data.read import Source

__all__ = ["no_such_column"]

MAX_SUGGESTED = 3
NAME_SAMPLE_ROWS = 10_000
MOSTLY = 0.5
VALUE = re.compile(r"[+-]?[\d.,:/ -]*\d[\d.,:/ -]*|\S+@\S+")
"""What is a value rather than a name: a number, a date, a time, an address."""


def no_such_column(source: Source, column: str, *, has_header: bool) -> InputError:
    """The error, with close names from the header.

    Parameters
    ----------
    has_header : bool
        The names come from the first line of a text file. Where that line looks like data nothing of it is repeated.
    """
    if has_header and _looks_like_data(source):
        advice = "its first line looks like data, so add one with the names of the columns."
    else:
        advice = _suggestion(column, source.columns)
    message = f'{source.name} has no column "{column}"; {advice}'
    return InputError(message, file=source.name, column=column)


def _suggestion(column: str, names: tuple[str, ...]) -> str:
    """Close names, differences of case aside."""
    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(column.lower(), by_lower, n=MAX_SUGGESTED, cutoff=0.7)
    if not near:
        return "check the spelling."
    return "perhaps " + " or ".join(f'"{by_lower[name]}"' for name in near) + " is meant."


def _looks_like_data(source: Source) -> bool:
    """Whether most names look like values, or one of them is a value of its own column further down."""
    names = source.columns
    if sum(1 for name in names if VALUE.fullmatch(name)) > MOSTLY * len(names):
        return True
    repeated = " OR ".join(f"CAST({quoted(name)} AS VARCHAR) = {literal(name)}" for name in names)
    start = f"(SELECT * FROM raw LIMIT {NAME_SAMPLE_ROWS})"
    return source.first_row(f"SELECT 1 FROM {start} WHERE {repeated} LIMIT 1") is not None
