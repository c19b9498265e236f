"""Whether a column of weights can count people.

`--weight` names a column that says how many people a row stands for. A column of incomes holds whole numbers too, and an audit of
euros says nothing about people; a sampling weight says how many people a record represents, not how many were counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from louver.data.telling import is_named_like_money, is_named_like_weight
from louver.errors import InputError

if TYPE_CHECKING:
    from louver.data.read import Source

__all__ = ["check_weight"]

LOOKED_AT_ROWS = 100_000
ROUND = 100
MOSTLY = 0.5
LARGE = 1000
FEWEST = 10
"""Counts of people are seldom multiples of 100: where most are, and half of them are 1,000 or more, they look like money. Fewer rows
than `FEWEST` say nothing."""


def check_weight(source: Source, column: str) -> None:
    """Refuse a column that looks like money or like a sampling weight, unless somebody says that it counts people.

    Raises
    ------
    InputError
        Naming the column and what makes it suspicious.
    """
    source.check_column(column)
    if source.is_weight_count:
        return
    reason = _reason(source, column)
    if reason is None:
        return
    raise InputError(
        f'column "{column}" in {source.name} {reason}, so it may not count people; name a column of counts, leave --weight out '
        "where a row is one person, or give --weight-is-count if every row stands for that many people.",
        file=source.name,
        column=column,
        option="weight",
    )


def _reason(source: Source, column: str) -> str | None:
    if is_named_like_money(column):
        return "is named like an amount of money"
    if is_named_like_weight(column):
        return "is named like a sampling weight"
    from louver.data.coding import text_sql

    value = f"TRY_CAST({text_sql(source, column)} AS DOUBLE)"
    found = source.first_row(
        f"SELECT count(*) >= {FEWEST} AND count_if(v % {ROUND} = 0) >= {MOSTLY} * count(*) AND median(v) >= {LARGE} AS is_round"
        f" FROM (SELECT {value} AS v FROM records LIMIT {LOOKED_AT_ROWS}) WHERE v > 0"
    )
    assert found is not None
    return (
        f"holds large numbers that are mostly multiples of {ROUND}, as amounts of money are"
        if found["is_round"]
        else None
    )
