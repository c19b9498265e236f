"""What kind of column it is, guessed from its values.

A guess: nobody can tell from "3" whether it is a number, a rank or the name of a race. The thresholds are stated here, and
the reason is told in words.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver.data.coded import CodedColumn

__all__ = ["LEAST_RECORDS", "NEARLY_ALL", "ColumnKind", "guess_kind"]

NEARLY_ALL = 0.95
"""Share of different values from which a column counts as an id, or as free text."""
LEAST_RECORDS = 20
"""With fewer records, different values say nothing."""
MOST_CODES = 15
"""Whole numbers with at most so many values below 100 are taken for codes."""
CODE_BELOW = 100
RECORDS_PER_CODE = 4
DENSE = 0.5
"""Whole numbers that fill this share of their range, none twice, are a numbering."""
LOOKED_AT_FIRST = 1000
LONG = 40  # letters

INTEGER = r"^[+-]?(0|[1-9][0-9]{0,17})$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DIGITS = r"^[0-9]+$"
DATE = (
    r"^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./]([0-9]{2}|[0-9]{4})|[0-9]{1,2}[- ]?[A-Za-z]{3,9}[- ]?[0-9]{4})"
    r"([ T][0-9]{1,2}:.*)?$"
)
DATE_DIGITS = r"^(1[89]|2[01])[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])$"
LEAST_DATES = 5
"""With fewer different values, eight digits say nothing about dates."""
TOKEN = r"^\S+$"
STEP = r"^([<>]=?\s?)?[0-9]+(\.[0-9]+)?\s*([-–+.):]|to |bis )"  # "0-4", "85+", "1. low"


class ColumnKind(StrEnum):
    """What the values of a column are."""

    ID = "id"
    CATEGORY = "category"
    ORDERED_CODE = "ordered code"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TEXT = "text"
    EMPTY = "empty"


def guess_kind(column: CodedColumn) -> tuple[ColumnKind, str]:
    """The kind, and why."""
    if not column.n_values:
        return ColumnKind.EMPTY, "has no value at all"
    is_various = column.n_known >= LEAST_RECORDS and column.n_values >= NEARLY_ALL * column.n_known
    if _all(column.values, DATE):
        return ColumnKind.DATE, "every value is a date"
    if column.n_values >= LEAST_DATES and _all(column.values, DATE_DIGITS):
        return ColumnKind.DATE, "eight digits each, and every value is a date"
    if _all(column.values, INTEGER):
        return _whole(column, is_various)
    if _all(column.values, DIGITS):
        if is_various:
            return ColumnKind.ID, "digits with leading zeros, nearly all different"
        return ColumnKind.CATEGORY, "digits with leading zeros, so a code"
    if _all(column.values, NUMBER):
        return ColumnKind.NUMBER, "every value is a number"
    return _words(column, is_various)


def _whole(column: CodedColumn, is_various: bool) -> tuple[ColumnKind, str]:
    numbers = np.array([int(text) for text in column.values.to_pylist()], dtype=object).astype(np.float64)
    if is_various and _is_numbering(column, numbers):
        return ColumnKind.ID, "whole numbers, nearly all different, that look like a numbering"
    is_small = column.n_values <= MOST_CODES and bool((np.abs(numbers) < CODE_BELOW).all())
    if is_small and column.n_known >= RECORDS_PER_CODE * column.n_values:
        if column.n_values <= 2:
            return ColumnKind.CATEGORY, "two whole numbers at most, so a code"
        return (
            ColumnKind.ORDERED_CODE,
            "few small whole numbers, so perhaps codes; check whether their order means anything",
        )
    return ColumnKind.INTEGER, "every value is a whole number"


def _is_numbering(column: CodedColumn, numbers: Floats) -> bool:
    """In the order of the file, all of one length, or with few gaps."""
    if column.n_values >= DENSE * (numbers.max() - numbers.min() + 1):
        return True
    known = column.codes[column.codes < column.n_values]
    in_order = numbers[known]
    is_sorted = bool((np.diff(in_order) >= 0).all() or (np.diff(in_order) <= 0).all())
    lengths = pc.utf8_length(column.values)
    return is_sorted or pc.min(lengths).as_py() == pc.max(lengths).as_py() >= 4


def _words(column: CodedColumn, is_various: bool) -> tuple[ColumnKind, str]:
    if is_various and _all(column.values, TOKEN):
        return ColumnKind.ID, "single words, nearly all different"
    if is_various or pc.mean(pc.utf8_length(column.values)).as_py() > LONG:
        return ColumnKind.TEXT, "long or nearly all different"
    if column.n_values > 2 and _all(column.values, STEP):
        return ColumnKind.ORDERED_CODE, "every value starts with a number, so probably steps"
    return ColumnKind.CATEGORY, "words that come again"


def _all(values: pa.StringArray, pattern: str) -> bool:
    """Whether all values match; most that do not show it early."""
    start = values.slice(0, LOOKED_AT_FIRST)
    return all(pc.all(pc.match_substring_regex(part, pattern)).as_py() for part in (start, values))
