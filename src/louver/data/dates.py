"""Dates in the forms that files have, as ISO days.

A column is read in one form: year first (ISO), day first, month first, digits alone (20200229) or with the name of the month
(29feb2020). Times of day are left out: a day is the finest that is told about a date. Where day and month can be taken for each
other, somebody has to say which comes first.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from louver.data.sql import literal
from louver.errors import InputError

if TYPE_CHECKING:
    from louver.data.read import Source

__all__ = ["calendar_days", "date_form", "date_sql", "iso_day"]

TIME = r"(?:[ T][0-9]{1,2}:[0-9]{2}.*)?"
YEAR_FIRST = re.compile(rf"[0-9]{{4}}([-/.])[0-9]{{1,2}}\1[0-9]{{1,2}}{TIME}")
YEAR_LAST = re.compile(rf"([0-9]{{1,2}})([-/.])([0-9]{{1,2}})\2[0-9]{{4}}{TIME}")
SHORT_YEAR = re.compile(rf"[0-9]{{1,2}}([-/.])[0-9]{{1,2}}\1[0-9]{{2}}{TIME}")
NAMED = re.compile(rf"[0-9]{{1,2}}([- ]?)[A-Za-z]{{3,9}}\1[0-9]{{4}}{TIME}")
DIGITS = re.compile(r"(1[89]|2[01])[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
LEAST_DIGITS = 5
"""With fewer different values, eight digits say nothing about dates."""
MOST_YEARS = 300
"""Dates further apart than this hold codes such as 9999-12-31."""

ISO = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d")
DAY_FIRST = ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y")
MONTH_NAMES = ("%d%b%Y", "%d-%b-%Y", "%d %b %Y", "%d%B%Y", "%d-%B-%Y", "%d %B %Y")

Form = tuple[str, ...]
"""How dates are written, in the notation of `strptime`; one of several."""


def date_form(texts: Collection[str], source: Source, column: str) -> Form | None:
    """The form of the different values of a column; None where they are not dates.

    Raises
    ------
    InputError
        If day and month can be taken for each other, or years have two digits.
    """
    if not texts or not all(text[:1].isdigit() for text in texts):
        return None
    for pattern, form in ((YEAR_FIRST, ISO), (NAMED, MONTH_NAMES)):
        if all(map(pattern.fullmatch, texts)):
            return form
    if len(texts) >= LEAST_DIGITS and all(map(DIGITS.fullmatch, texts)):
        return ("%Y%m%d",)
    if all(map(SHORT_YEAR.fullmatch, texts)):
        problem = "has dates with two-digit years; write years with four digits"
        raise InputError(f'column "{column}" in {source.name} {problem}.', file=source.name, column=column)
    found = [YEAR_LAST.fullmatch(text) for text in texts]
    if not all(found):
        return None
    return _day_or_month_first([(one[1], one[2], one[3]) for one in found if one], source, column)


def _day_or_month_first(parts: list[tuple[str, str, str]], source: Source, column: str) -> Form | None:
    """Which comes first: what somebody says, what exceeds twelve, the day where points separate."""
    if source.date_order in ("dmy", "mdy"):
        return DAY_FIRST if source.date_order == "dmy" else MONTH_FIRST
    is_first_day = any(int(first) > 12 for first, _, _ in parts)
    is_second_day = any(int(second) > 12 for _, _, second in parts)
    if is_first_day and is_second_day:
        return None
    if is_first_day or is_second_day:
        return DAY_FIRST if is_first_day else MONTH_FIRST
    if all(mark == "." for _, mark, _ in parts):
        return DAY_FIRST
    raise InputError(
        f'column "{column}" in {source.name} has dates whose day and month can be taken for each other; say which comes '
        "first (--date-order dmy or mdy).",
        file=source.name,
        column=column,
        option="date_order",
    )


def date_sql(source: Source, column: str, text: str) -> str:
    """SQL for the ISO day of a column of dates, of which `text` is the text: NULL where missing, empty where it is no date."""
    texts = [
        value
        for batch in source.batches(f"SELECT DISTINCT {text} AS v FROM records")
        for value in batch.column(0).to_pylist()
        if value is not None
    ]
    form = date_form(texts, source, column) or ISO
    formats = ", ".join(map(literal, form))
    day = f"regexp_replace({text}, '[ T][0-9]{{1,2}}:.*$', '')"
    return (
        f"CASE WHEN ({text}) IS NULL THEN NULL"
        f" ELSE coalesce(strftime(try_strptime({day}, [{formats}]), '%Y-%m-%d'), '') END"
    )


def iso_day(text: str, form: Form) -> str | None:
    """The ISO day of one text, None where it is no date.

    Examples
    --------
    >>> iso_day("3.4.2020 08:30", DAY_FIRST), iso_day("29feb2021", MONTH_NAMES)
    ('2020-04-03', None)
    """
    day = re.sub(r"[ T][0-9]{1,2}:.*$", "", text)
    for one in form:
        try:
            return datetime.strptime(day, one).date().isoformat()
        except ValueError:
            continue
    return None


def calendar_days(days: Collection[str], file: str, column: str) -> tuple[str, ...]:
    """All ISO days of the years from the first to the last of some: which of them occur says who is in the data.

    Raises
    ------
    InputError
        If they are too far apart to be dates of one data set.
    """
    first, last = int(min(days)[:4]), int(max(days)[:4])
    if last - first >= MOST_YEARS:
        raise InputError(
            f'column "{column}" in {file} has dates {MOST_YEARS} years apart or more; declare those that stand for '
            "missing (--missing-code).",
            file=file,
            column=column,
            option="missing_code",
        )
    start = date(first, 1, 1)
    n_days = (date(last, 12, 31) - start).days + 1
    return tuple((start + timedelta(days=n)).isoformat() for n in range(n_days))
