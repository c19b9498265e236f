"""The role that each column might play in a release, with the reason in words.

These are suggestions for a person to review: they depend on how identifying a column is, on which columns determine others, and on words in
its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from louver._words import listed
from louver.data.coded import CodedColumn
from louver.data.dependencies import Dependency
from louver.data.kinds import (
    LEAST_RECORDS,
    NEARLY_ALL,
    WORDS,
    ColumnKind,
    is_named_like_money,
    is_named_like_unit,
    is_named_like_weight,
    is_positive,
    is_unit,
    may_be_unit,
    why_telling,
    words_of,
)
from louver.profile.singling import SinglingSet

__all__ = ["Role", "RoleSuggestion", "find_unit", "suggest_roles"]

NUMERIC = (ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.ORDERED_CODE)
MOSTLY_ALONE = 0.5
"""A column is called identifying by itself if at least this share of records have a unique value in it."""


class Role(StrEnum):
    """The treatment of a column when microdata are protected."""

    IDENTIFYING = "identifying"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    WEIGHT = "weight"
    UNIT = "unit"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSuggestion:
    """A role and the reason for it."""

    role: Role
    reason: str


def suggest_roles(
    columns: Sequence[CodedColumn],
    kinds: Sequence[ColumnKind],
    sets: Sequence[SinglingSet],
    dependencies: Sequence[Dependency],
) -> list[RoleSuggestion]:
    """A suggestion for every column; a column that determines a quasi-identifier is one, too.

    In a set of columns that singles people out, one must be protected; the rest then identifies no one.
    So columns whose names suggest nothing become quasi-identifiers only if every column of a set would otherwise be kept unchanged.
    """
    determining = {d.determinant for d in dependencies}
    found = [
        _by_itself(column, kind, column.name in determining)
        for column, kind in zip(columns, kinds, strict=True)
    ]
    place = {column.name: i for i, column in enumerate(columns)}
    for one in sets:
        if len(one.columns) > 1 and all(found[place[name]].role is Role.KEEP for name in one.columns):
            chosen = max(one.columns, key=lambda name: columns[place[name]].n_values)
            others = [name for name in one.columns if name != chosen]
            found[place[chosen]] = RoleSuggestion(
                role=Role.QUASI, reason=f"singles people out together with {listed(others)}"
            )
    quasi = {c.name for c, role in zip(columns, found, strict=True) if role.role is Role.QUASI}
    for i, column in enumerate(columns):
        determined = [
            d.dependent for d in dependencies if d.determinant == column.name and d.dependent in quasi
        ]
        if found[i].role in (Role.KEEP, Role.SENSITIVE) and determined:
            found[i] = RoleSuggestion(
                role=Role.QUASI, reason=f"determines {listed(determined)}, which are quasi-identifying"
            )
    return found


def find_unit(
    columns: Sequence[CodedColumn], kinds: Sequence[ColumnKind], dependencies: Sequence[Dependency]
) -> int | None:
    """Position of the first column that identifies households or other units, judged by its name, then by what it determines."""
    determining = {d.determinant for d in dependencies}
    places = [
        place
        for place, (column, kind) in enumerate(zip(columns, kinds, strict=True))
        if _by_itself(column, kind, column.name in determining).role is Role.UNIT
    ]
    return min(places, key=lambda place: (not is_named_like_unit(columns[place].name), place), default=None)


def _by_itself(column: CodedColumn, kind: ColumnKind, is_telling: bool) -> RoleSuggestion:
    words = words_of(column.name)
    share = column.n_alone / max(len(column.codes), 1)
    is_alone = share >= MOSTLY_ALONE
    if kind is ColumnKind.EMPTY:
        return RoleSuggestion(role=Role.KEEP, reason="has no values")
    if is_named_like_weight(column.name) and kind in NUMERIC and is_positive(column):
        if pc.min(pc.cast(column.values, pa.float64())).as_py() < 1:
            return RoleSuggestion(
                role=Role.IDENTIFYING, reason="named like a sampling weight, but below 1; drop it"
            )
        return RoleSuggestion(
            role=Role.WEIGHT, reason="named like a sampling weight, which may reveal the stratum"
        )
    is_named = is_named_like_unit(column.name) and not is_named_like_money(column.name)
    if (is_named and is_unit(column, kind)) or (is_telling and may_be_unit(column, kind)):
        return RoleSuggestion(
            role=Role.UNIT, reason="each value groups a few records, like a household number"
        )
    if is_named and why_telling(column, kind) is not None:
        return RoleSuggestion(
            role=Role.IDENTIFYING, reason="named like the number of a unit, and many values occur once"
        )
    if kind is ColumnKind.ID or (kind is ColumnKind.TEXT and is_alone):
        return RoleSuggestion(role=Role.IDENTIFYING, reason="nearly every value occurs once")
    if words & WORDS["direct"] and kind in (ColumnKind.TEXT, ColumnKind.CATEGORY):
        return RoleSuggestion(role=Role.IDENTIFYING, reason="its name suggests that it identifies a person")
    if words & WORDS["sensitive"] or is_named_like_money(column.name):
        also = "; most values occur once, so round it or publish classes" if is_alone else ""
        return RoleSuggestion(role=Role.SENSITIVE, reason=f"its name suggests something private{also}")
    if words & WORDS["quasi"] or kind is ColumnKind.DATE:
        return RoleSuggestion(
            role=Role.QUASI, reason="known to neighbours or in registers, judging by its name or kind"
        )
    if kind is ColumnKind.INTEGER and _is_number_of_a_person(column):
        return RoleSuggestion(role=Role.IDENTIFYING, reason="whole numbers, nearly all distinct; drop it")
    telling = why_telling(column, kind)
    if telling is not None:
        return RoleSuggestion(role=Role.QUASI, reason=f"{telling}; round it, publish classes or drop it")
    return RoleSuggestion(
        role=Role.KEEP, reason="common values, and known to few, judging by its name; check that"
    )


def _is_number_of_a_person(column: CodedColumn) -> bool:
    """Whether values are nearly all different, like person identifiers, whatever the column's name."""
    return column.n_known >= LEAST_RECORDS and column.n_values >= NEARLY_ALL * column.n_known
