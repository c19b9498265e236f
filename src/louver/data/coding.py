"""From the text of a column to codes: SQL expressions on one side, label look-up on the other.

A column of dates is read in one form: year first (ISO), day first, month first, digits alone (20200229) or with the name of the month
(29feb2020). Times of day are dropped. If day and month cannot be distinguished, the user has to state which comes first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa

from louver._arrays import Ints
from louver.data.read import Source, quoted
from louver.data.sql import literal
from louver.errors import InputError
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode

__all__ = [
    "Coder",
    "binned_sql",
    "calendar_days",
    "date_form",
    "date_sql",
    "find_row",
    "in_order",
    "is_numbers",
    "iso_day",
    "number_sql",
    "text_sql",
]

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
CODE = re.compile(r"0[0-9]+")
"""Digits that start with a zero are a code, such as that of a place or a school."""
SCALAR_TYPES = re.compile(
    r"VARCHAR|ENUM\(.*\)|BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DECIMAL\(.*\)|FLOAT|DOUBLE|DATE|TIME.*|UUID"
    r"|\"?NULL\"?",
    re.DOTALL,
)
MAX_EXACT = 2**53  # largest range in which every whole number is a double
MAX_REMEMBERED = 100  # number of bad values kept to locate a row


def text_sql(source: Source, column: str) -> str:
    """SQL for a column as text, NULL where the value is missing (empty text, NaN and codes of missing values included).

    Whole floating-point numbers are written without a decimal point, because a dataframe turns a column of integers into floats as soon as
    one is missing.
    """
    source.check_column(column)
    kind, name = source.types[column], quoted(column)
    if not SCALAR_TYPES.fullmatch(kind):
        message = (
            f'column "{column}" in {source.name} has a nested or binary type; convert it to text or numbers.'
        )
        raise InputError(message, file=source.name, column=column)
    text = f"nullif(CAST({name} AS VARCHAR), '')"
    if kind in ("FLOAT", "DOUBLE"):
        # TRY_CAST: on Parquet the database casts before it looks at the conditions, and NaN is no integer.
        text = (
            f"CASE WHEN isnan({name}) THEN NULL WHEN abs({name}) < 1e15 AND {name} = trunc({name})"
            f" THEN CAST(TRY_CAST({name} AS BIGINT) AS VARCHAR) ELSE CAST({name} AS VARCHAR) END"
        )
    codes = source.missing_codes_of(column)
    if not codes:
        return text
    return f"CASE WHEN ({text}) IN ({', '.join(map(literal, codes))}) THEN NULL ELSE ({text}) END"


def number_sql(text: str, kind: Kind) -> str:
    """SQL for the number for which a text stands, NULL where it is not a number (for an integer: not a whole number)."""
    value = f"TRY_CAST({text} AS DOUBLE)"
    valid = f"isfinite({value})"
    if kind is Kind.INTEGER:
        valid += f" AND abs({value}) <= {MAX_EXACT} AND {value} = trunc({value})"
    return f"CASE WHEN {valid} THEN {value} END"


def binned_sql(text: str, attribute: Attribute, recode: Recode) -> str:
    """SQL for the label of the bin into which a text falls: NULL where missing, empty where not a number."""
    assert recode.bins is not None
    labels = attribute.recoded(recode)[0].labels
    value = number_sql(text, attribute.kind)
    cases = [
        f"WHEN {value} < {edge!r} THEN '{label}'" for edge, label in zip(recode.bins, labels, strict=False)
    ]
    last = labels[len(recode.bins)]
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN {value} IS NULL THEN '' {' '.join(cases)} ELSE '{last}' END"
    )


def find_row(source: Source, condition: str, **parameters: object) -> int:
    """Number of the first data row that meets an SQL condition; some row of `records` must meet it.

    Rows are counted as in the source, including those that `--where` leaves out.
    """
    # A scan keeps the order of the rows, and so does a window over all of them.
    is_hit = f"({source.condition}) AND ({condition})"
    numbered = f"SELECT row_number() OVER () AS row, {is_hit} AS is_hit FROM whole"
    found = source.first_row(f"SELECT min(row) AS row FROM ({numbered}) WHERE is_hit", **parameters)
    assert found is not None
    return int(found["row"])


def is_numbers(texts: Collection[str]) -> bool:
    """Whether texts are numbers: all of them are, and none has a leading zero, like a code (01206).

    Examples
    --------
    >>> is_numbers(["7", "0.5", "0"]), is_numbers(["1207", "01206"]), is_numbers(["1", "x"])
    (True, False, False)
    """
    return all(NUMBER.fullmatch(text) for text in texts) and not any(CODE.fullmatch(text) for text in texts)


def in_order(labels: Collection[str], missing: str | None) -> list[str]:
    """Labels in numeric order if all are numbers, otherwise in text order; missing last."""
    known = [label for label in labels if label != missing]
    if all(NUMBER.fullmatch(label) for label in known):
        known.sort(key=lambda label: (float(label), label))
    else:
        known.sort()
    return [*known, missing] if missing is not None and missing in labels else known


@dataclass(slots=True, kw_only=True)
class Coder:
    """Codes one column batch by batch, and collects the labels of an attribute that lists none.

    Parameters
    ----------
    attribute : Attribute
        The domain to code into.
    sql : str
        SQL for the column's text.
    """

    attribute: Attribute
    sql: str
    _codes: dict[str | None, int] = field(default_factory=dict)
    _learnt: dict[str, int] = field(default_factory=dict)
    _is_missing_seen: bool = False
    _bad: list[str] = field(default_factory=list)

    def encode(self, column: pa.Array) -> Ints:
        """Codes of a batch; -1 marks a fault, which `check` turns into an error."""
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = np.array([self._code_of(text) for text in encoded.dictionary.to_pylist()], dtype=np.int64)
        # Not `to_numpy`, here and elsewhere: it imports pandas where that is installed.
        return codes[np.asarray(np.from_dlpack(encoded.indices), dtype=np.int32)]

    def check(self, source: Source) -> None:
        """Raise if a value was missing or outside the domain, naming the first such row."""
        name = self.attribute.name
        where = f'column "{name}" in {source.name}'
        if self._is_missing_seen and self.attribute.missing is None:
            row = find_row(source, f"({self.sql}) IS NULL")
            problem = f'has no value on row {row}; give the attribute a "missing" label or drop the row'
        elif self._bad:
            row = find_row(source, f"list_contains($bad, {self.sql})", bad=self._bad)
            problem = f"has a value on row {row} that {self._complaint()}"
        else:
            return
        raise InputError(f"{where} {problem}.", file=source.name, column=name, row=row)

    def finish(self) -> tuple[Attribute, Ints | None]:
        """The attribute with all its labels, and, if they were collected, the map from `encode`'s codes."""
        if self.attribute.labels:
            return self.attribute, None
        labels = in_order(self._learnt, self.attribute.missing)
        codes = np.empty(len(labels), dtype=np.int64)
        for code, label in enumerate(labels):
            codes[self._learnt[label]] = code
        missing = self.attribute.missing if self.attribute.missing in self._learnt else None
        return replace(self.attribute, labels=tuple(labels), missing=missing), codes

    def _code_of(self, text: str | None) -> int:
        if self.attribute.labels and self.attribute.kind in (Kind.CATEGORY, Kind.ORDERED):
            return self._look_up(
                text
            )  # this is equally fast and does not keep the texts of millions of regions
        code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = self._look_up(text)
        return code

    def _look_up(self, text: str | None) -> int:
        """Code of a text that has not occurred before."""
        if text is None:
            self._is_missing_seen = True
            label = self.attribute.missing
            if label is None:
                return -1
        else:
            label = self._label_of(text)
        if not self.attribute.labels and label is not None:
            return self._learnt.setdefault(label, len(self._learnt))
        if label is not None and self.attribute.has_label(label):
            return self.attribute.code_of(label)
        if text is not None and len(self._bad) < MAX_REMEMBERED:
            self._bad.append(text)
        return -1

    def _label_of(self, text: str) -> str | None:
        """Label of a text, numbers in one notation; None if a number is expected and the text is not one."""
        if self.attribute.kind not in (Kind.INTEGER, Kind.NUMBER):
            return text or None
        value = float(text) if NUMBER.fullmatch(text.strip()) else math.nan
        if not math.isfinite(value):
            return None
        if value.is_integer() and abs(value) <= MAX_EXACT:
            return str(int(value))
        return None if self.attribute.kind is Kind.INTEGER else repr(value)

    def _complaint(self) -> str:
        if self.attribute.kind is Kind.DATE:
            return "is not a date, or not among the attribute's days; correct it"
        if self.attribute.kind is Kind.INTEGER or "" in self._bad:
            return "is not a number of the kind the schema requires; correct it"
        if self.attribute.kind is Kind.NUMBER:
            return "is not a number among the labels; correct it"
        return "is not among the attribute's labels; add the label or correct the value"


TIME = r"(?:[ T][0-9]{1,2}:[0-9]{2}.*)?"
YEAR_FIRST = re.compile(rf"[0-9]{{4}}([-/.])[0-9]{{1,2}}\1[0-9]{{1,2}}{TIME}")
YEAR_LAST = re.compile(rf"([0-9]{{1,2}})([-/.])([0-9]{{1,2}})\2[0-9]{{4}}{TIME}")
SHORT_YEAR = re.compile(rf"[0-9]{{1,2}}([-/.])[0-9]{{1,2}}\1[0-9]{{2}}{TIME}")
NAMED = re.compile(rf"[0-9]{{1,2}}([- ]?)[A-Za-z]{{3,9}}\1[0-9]{{4}}{TIME}")
DIGITS = re.compile(r"(1[89]|2[01])[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])")
LEAST_DIGITS = 5
"""With fewer distinct values, eight digits are no evidence of dates."""
MOST_YEARS = 300
"""Dates spanning more years than this are assumed to include codes such as 9999-12-31."""

ISO = ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d")
DAY_FIRST = ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y")
MONTH_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y")
MONTH_NAMES = ("%d%b%Y", "%d-%b-%Y", "%d %b %Y", "%d%B%Y", "%d-%B-%Y", "%d %B %Y")

Form = tuple[str, ...]
"""How dates are written, in the notation of `strptime`; one of several."""


def date_form(texts: Collection[str], source: Source, column: str) -> Form | None:
    """The form of the distinct values of a column; None if they are not dates.

    Raises
    ------
    InputError
        If day and month cannot be distinguished, or years have two digits.
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
    """Whether day or month comes first: by `--date-order`, by numbers above twelve, or the day if the separators are points."""
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
        f'column "{column}" in {source.name} has dates whose day and month cannot be distinguished; '
        "say which comes first (--date-order dmy or mdy).",
        file=source.name,
        column=column,
        option="date_order",
    )


def date_sql(source: Source, column: str, text: str) -> str:
    """SQL for the ISO day of a column of dates, with `text` as its text: NULL where missing, empty where it is not a date."""
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
    """The ISO day of one text, None if it is not a date.

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
    """All ISO days of the years that the given days span, because the days that occur would reveal who is in the data.

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
