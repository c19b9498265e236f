"""The kind of data in a column, and whether it may identify people, guessed from its values and its name.

It is a guess: "3" may be a number, a rank or the code of a category. The thresholds are stated here for every verb, and each guess comes
with its reason in words. A column identifies people if nearly all its values are distinct; it reveals another column if its value
determines that of the other (`louver.data.dependencies`).
"""

from __future__ import annotations

import re
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from louver._arrays import Floats
from louver.data.coded import CodedColumn

__all__ = [
    "LEAST_RECORDS",
    "LIKE_A_UNIT",
    "NEARLY_ALL",
    "NEARLY_UNIQUE",
    "WORDS",
    "ColumnKind",
    "guess_kind",
    "is_named_like_money",
    "is_named_like_unit",
    "is_named_like_weight",
    "is_positive",
    "is_unit",
    "may_be_unit",
    "why_telling",
    "words_of",
]

NEARLY_ALL = 0.95
"""Share of distinct values above which a column counts as an id or as free text."""
LEAST_RECORDS = 20
"""With fewer records, the number of distinct values says nothing."""
MOST_CODES = 15
"""Whole numbers with at most this many distinct values, all below 100, are treated as codes."""
CODE_BELOW = 100
RECORDS_PER_CODE = 4
DENSE = 0.5
"""Whole numbers without repeats that fill this share of their range are serial numbers."""
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
"""With fewer distinct values, eight digits are no evidence of dates."""
TOKEN = r"^\S+$"
STEP = r"^([<>]=?\s?)?[0-9]+(\.[0-9]+)?\s*([-–+.):]|to |bis )"  # "0-4", "85+", "1. low"


class ColumnKind(StrEnum):
    """The kind of the values of a column."""

    ID = "id"
    CATEGORY = "category"
    ORDERED_CODE = "ordered code"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TEXT = "text"
    EMPTY = "empty"


def guess_kind(column: CodedColumn) -> tuple[ColumnKind, str]:
    """The kind, with the reason."""
    if not column.n_values:
        return ColumnKind.EMPTY, "has no value at all"
    is_various = column.n_known >= LEAST_RECORDS and column.n_values >= NEARLY_ALL * column.n_known
    if _all(column.values, DATE):
        return ColumnKind.DATE, "every value is a date"
    if column.n_values >= LEAST_DATES and _all(column.values, DATE_DIGITS):
        return ColumnKind.DATE, "eight digits each, and every value is a date"
    if _all(column.values, INTEGER):
        return _kind_of_numbers(column, is_various)
    if _all(column.values, DIGITS):
        if is_various:
            return ColumnKind.ID, "digits with leading zeros, nearly all distinct"
        return ColumnKind.CATEGORY, "digits with leading zeros, so a code"
    if _all(column.values, NUMBER):
        return ColumnKind.NUMBER, "every value is a number"
    return _words(column, is_various)


def _kind_of_numbers(column: CodedColumn, is_various: bool) -> tuple[ColumnKind, str]:
    numbers = np.array([int(text) for text in column.values.to_pylist()], dtype=object).astype(np.float64)
    if is_various and _is_numbering(column, numbers):
        return ColumnKind.ID, "whole numbers, nearly all distinct, that look like serial numbers"
    is_small = column.n_values <= MOST_CODES and bool((np.abs(numbers) < CODE_BELOW).all())
    if is_small and column.n_known >= RECORDS_PER_CODE * column.n_values:
        if column.n_values <= 2:
            return ColumnKind.CATEGORY, "at most two whole numbers, so a code"
        return (
            ColumnKind.ORDERED_CODE,
            "few small whole numbers, so perhaps codes; check whether their order matters",
        )
    return ColumnKind.INTEGER, "every value is a whole number"


def _is_numbering(column: CodedColumn, numbers: Floats) -> bool:
    """Whether values follow the order of the file, have equal lengths, or leave few gaps."""
    if column.n_values >= DENSE * (numbers.max() - numbers.min() + 1):
        return True
    known = column.codes[column.codes < column.n_values]
    in_order = numbers[known]
    is_sorted = bool((np.diff(in_order) >= 0).all() or (np.diff(in_order) <= 0).all())
    lengths = pc.utf8_length(column.values)
    return is_sorted or pc.min(lengths).as_py() == pc.max(lengths).as_py() >= 4


def _words(column: CodedColumn, is_various: bool) -> tuple[ColumnKind, str]:
    if is_various and _all(column.values, TOKEN):
        return ColumnKind.ID, "single words, nearly all distinct"
    if is_various or pc.mean(pc.utf8_length(column.values)).as_py() > LONG:
        return ColumnKind.TEXT, "long or nearly all distinct"
    if column.n_values > 2 and _all(column.values, STEP):
        return ColumnKind.ORDERED_CODE, "every value starts with a number, so probably ranges"
    return ColumnKind.CATEGORY, "words that recur"


def _all(values: pa.StringArray, pattern: str) -> bool:
    """Whether all values match; for most other columns, a mismatch is found early."""
    start = values.slice(0, LOOKED_AT_FIRST)
    return all(pc.all(pc.match_substring_regex(part, pattern)).as_py() for part in (start, values))


LIKE_A_UNIT = "each value groups a few records, like a household number"
NEARLY_UNIQUE = 0.05
"""A column identifies people by itself if at least this share of records has a unique value; a single record is ignored."""
MOST_RUNS = 1.5
"""In a column of units, records of a unit are adjacent: at most this many runs of equal values per value on average."""
UNIT_ALONE = 0.5
"""In a column of units, less than this share of records has a unique value."""
LEAST_UNITS = 0.02
MOST_IN_UNIT = 20.0
"""A unit (household, business) has several records on average, but at most this many, and there are many units. Its name suggests a
unit, or it determines other columns and its name suggests nothing else."""

DIRECT = (
    "name surname firstname lastname forename email mail phone mobile ssn passport iban address street ip"
)
UNIT = "household hh hhid hid family fam serialno dwelling couple haushalt firm business employer enterprise"
WEIGHT = re.compile(r".*(weight|wgt|wght|gewicht).*|.*wt|ponder.*|poids|fpond")
"""A word in a name that suggests a sampling weight: weight, pwgtp, fnlwgt, perwt."""
MONEY = re.compile(
    r".*(income|salar|wage|earning|einkommen|revenu|umsatz|turnover|expend|wealth|pension).*|.*(lohn|gehalt)|[hpfg]?incp?|hhinc"
    r"|.*(saving|capital|poverty).*|povpip|inctot|ftotinc|totinc|money|pay|debts?|assets|tax|taxes|price|cost|costs|sales|profit|loan|amount|euro?s?|usd|dollars?|gbp|chf"
)
"""A word in a name that suggests money."""
SENSITIVE = (
    "income incwage wage salary earnings pay debt wealth assets benefit benefits diagnosis disease illness ill icd "
    "health hiv drug drugs crime offence religion faith party vote union orientation pregnant einkommen diagnose "
    "disability disabled disab handicap impairment behinderung dis drem dphy deye dear dout ddrs dvet dratx"
)
QUASI = (
    "age alter sex gender geschlecht birth born dob birthday birthdate zip zipcode plz postcode postal region county state "
    "city town municipality gemeinde commune kommune gemeente comune municipio kreis bezirk kanton canton district tract block puma "
    "country nation nationality citizenship ethnicity race marital marstat "
    "education educ edu schl degree occupation occ occu occucode occup occp job industry indp naicsp language ancestry veteran year "
    "month date agep msp mar civil civilstatus hispanic hisp hispan origin ethnic eth etni race rac racp raced birthplace pobp "
    "nativity native migration migrant foreign immigrant herkunft relat relationship hhsize np npf noc nchild children child kids"
)
WORDS = {
    role: frozenset(words.split())
    for role, words in (
        ("direct", DIRECT),
        ("unit", UNIT),
        ("sensitive", SENSITIVE),
        ("quasi", QUASI),
    )
}


def why_telling(column: CodedColumn, kind: ColumnKind) -> str | None:
    """Why a column identifies people by itself, in words that follow its name; None if it does not."""
    words = words_of(column.name)
    if kind is ColumnKind.EMPTY or column.n_values < 2:
        return None
    numeric = (ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.ORDERED_CODE)
    if is_named_like_weight(column.name) and kind in numeric and is_positive(column):
        return "named like a sampling weight"
    if is_named_like_unit(column.name) and is_unit(column, kind):
        return LIKE_A_UNIT
    if column.n_alone >= max(2.0, NEARLY_UNIQUE * len(column.codes)):
        return "many values occur once"
    if words & WORDS["direct"] and kind in (ColumnKind.TEXT, ColumnKind.CATEGORY, ColumnKind.ID):
        return "its name suggests that it identifies a person"
    return None


def words_of(name: str) -> set[str]:
    """Words of a name: "hhIncome_2019" is hh, income, and hhincome."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {word.lower() for text in (name, spaced) for word in re.findall(r"[A-Za-z]+", text)}


def is_named_like_weight(name: str) -> bool:
    """Whether a name suggests a sampling weight."""
    return any(WEIGHT.fullmatch(word) for word in words_of(name))


def is_named_like_money(name: str) -> bool:
    """Whether a name suggests an amount of money."""
    return any(MONEY.fullmatch(word) for word in words_of(name))


def is_positive(column: CodedColumn) -> bool:
    return not pc.any(pc.starts_with(column.values, "-")).as_py()


def is_named_like_unit(name: str) -> bool:
    """Whether a name suggests a household or another unit."""
    return bool(words_of(name) & WORDS["unit"])


def may_be_unit(column: CodedColumn, kind: ColumnKind) -> bool:
    """Whether a column may identify units, whatever its name; it is one if it also determines other columns."""
    is_other = bool(words_of(column.name) & (WORDS["quasi"] | WORDS["sensitive"])) or is_named_like_money(
        column.name
    )
    return is_unit(column, kind) and not is_other and _stands_together(column)


def _stands_together(column: CodedColumn) -> bool:
    """Whether records with the same value are adjacent, like members of a household; equal amounts of money are not."""
    known = column.codes[column.codes < column.n_values]
    n_runs = 1 + int((known[1:] != known[:-1]).sum())
    return n_runs <= MOST_RUNS * column.n_values


def is_unit(column: CodedColumn, kind: ColumnKind) -> bool:
    """Whether a column has many values with a few records each."""
    if kind in (ColumnKind.NUMBER, ColumnKind.DATE, ColumnKind.TEXT) or not column.n_values:
        return False
    mean_size = column.n_known / column.n_values
    is_many = column.n_values >= LEAST_UNITS * column.n_known and column.n_values > 20
    return is_many and 1.05 <= mean_size <= MOST_IN_UNIT and column.n_alone < UNIT_ALONE * column.n_known
