"""What makes a column give people away, going by its values and its name: thresholds and words, for every verb.

A column tells who somebody is where its values are nearly all different, and it tells another column where whoever knows the one
knows the other (`louver.data.dependencies`).
"""

from __future__ import annotations

import re

import pyarrow.compute as pc

from louver.data.coded import CodedColumn
from louver.data.kinds import ColumnKind

__all__ = [
    "LIKE_A_UNIT",
    "NEARLY_UNIQUE",
    "WORDS",
    "is_named_like_money",
    "is_named_like_unit",
    "is_named_like_weight",
    "is_positive",
    "is_unit",
    "may_be_unit",
    "why_telling",
    "words_of",
]

LIKE_A_UNIT = "groups a few records each, like the number of a household"
NEARLY_UNIQUE = 0.05
"""From this share of records alone with its value on, a column singles people out by itself; one such record is none."""
MOST_RUNS = 1.5
"""In a column of units, records of a unit stand next to each other: runs of equal values for each value on average."""
UNIT_ALONE = 0.5
"""In a column of units fewer records than this are alone."""
LEAST_UNITS = 0.02
MOST_IN_UNIT = 20.0
"""A unit (household, business) has several records on average, but no more than this, and there are many units. It is named like
one, or tells other columns and is not named like anything else."""

DIRECT = (
    "name surname firstname lastname forename email mail phone mobile ssn passport iban address street ip"
)
UNIT = "household hh hhid hid family fam serialno dwelling couple haushalt firm business employer enterprise"
WEIGHT = re.compile(r".*(weight|wgt|wght|gewicht).*|.*wt|ponder.*|poids|fpond")
"""A word of a name that speaks of a sampling weight: weight, pwgtp, fnlwgt, perwt."""
MONEY = re.compile(
    r".*(income|salar|wage|earning|einkommen|revenu|umsatz|turnover|expend|wealth|pension).*|.*(lohn|gehalt)|[hpfg]?incp?|hhinc"
    r"|.*(saving|capital|poverty).*|povpip|inctot|ftotinc|totinc|money|pay|debts?|assets|tax|taxes|price|cost|costs|sales|profit|loan|amount|euro?s?|usd|dollars?|gbp|chf"
)
"""A word of a name that speaks of money."""
SENSITIVE = (
    "income incwage wage salary earnings pay debt wealth assets benefit benefits diagnosis disease illness ill icd "
    "health hiv drug drugs crime offence religion faith party vote union orientation pregnant einkommen diagnose "
    "disability disabled disab handicap impairment behinderung dis drem dphy deye dear dout ddrs dvet dratx"
)
QUASI = (
    "age alter sex gender geschlecht birth born dob birthday birthdate zip zipcode plz postcode postal region county state "
    "city town municipality gemeinde commune kommune gemeente comune municipio kreis bezirk kanton canton district tract block puma country nation nationality citizenship ethnicity race marital marstat "
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
    """Why a column gives people away by itself, in words that follow its name; None where it does not."""
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
        return "named like something that names a person"
    return None


def words_of(name: str) -> set[str]:
    """Words of a name: "hhIncome_2019" is hh, income, and hhincome."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {word.lower() for text in (name, spaced) for word in re.findall(r"[A-Za-z]+", text)}


def is_named_like_weight(name: str) -> bool:
    """Whether a name speaks of a sampling weight."""
    return any(WEIGHT.fullmatch(word) for word in words_of(name))


def is_named_like_money(name: str) -> bool:
    """Whether a name speaks of an amount of money."""
    return any(MONEY.fullmatch(word) for word in words_of(name))


def is_positive(column: CodedColumn) -> bool:
    return not pc.any(pc.starts_with(column.values, "-")).as_py()


def is_named_like_unit(name: str) -> bool:
    """Whether a name speaks of a household or another unit."""
    return bool(words_of(name) & WORDS["unit"])


def may_be_unit(column: CodedColumn, kind: ColumnKind) -> bool:
    """Whether a column may number units whatever its name is; it does where it tells other columns, too."""
    is_other = bool(words_of(column.name) & (WORDS["quasi"] | WORDS["sensitive"])) or is_named_like_money(
        column.name
    )
    return is_unit(column, kind) and not is_other and _stands_together(column)


def _stands_together(column: CodedColumn) -> bool:
    """Whether records with one value stand next to each other, as people of a household do; amounts of money do not."""
    known = column.codes[column.codes < column.n_values]
    n_runs = 1 + int((known[1:] != known[:-1]).sum())
    return n_runs <= MOST_RUNS * column.n_values


def is_unit(column: CodedColumn, kind: ColumnKind) -> bool:
    """Many values with a few records each."""
    if kind in (ColumnKind.NUMBER, ColumnKind.DATE, ColumnKind.TEXT) or not column.n_values:
        return False
    mean_size = column.n_known / column.n_values
    is_many = column.n_values >= LEAST_UNITS * column.n_known and column.n_values > 20
    return is_many and 1.05 <= mean_size <= MOST_IN_UNIT and column.n_alone < UNIT_ALONE * column.n_known
