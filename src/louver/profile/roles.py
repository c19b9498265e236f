"""What each column might be used for in a release, with the reason in words.

Suggestions, for a person to judge: they rest on how identifying a column is, on what determines what, and on words in its name.
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

__all__ = ["Role", "Suggestion", "find_unit", "suggest_roles"]

NUMERIC = (ColumnKind.NUMBER, ColumnKind.INTEGER, ColumnKind.ORDERED_CODE)
MOSTLY_ALONE = 0.5
"""From this share of records alone with its value on, a column is called identifying by itself."""


class Role(StrEnum):
    """What happens to a column when microdata are made safe."""

    IDENTIFYING = "identifying"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    WEIGHT = "weight"
    UNIT = "unit"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A role and why."""

    role: Role
    reason: str


def suggest_roles(
    columns: Sequence[CodedColumn],
    kinds: Sequence[ColumnKind],
    sets: Sequence[SinglingSet],
    dependencies: Sequence[Dependency],
) -> list[Suggestion]:
    """A suggestion for every column; whatever tells a quasi-identifier is one.

    A set of columns that singles people out needs one protected column: what is left of it, nobody knows or everybody shares.
    So columns without a word for them become quasi-identifiers only where every column of a set would be kept as it is.
    """
    tells = {d.determinant for d in dependencies}
    found = [
        _by_itself(column, kind, column.name in tells) for column, kind in zip(columns, kinds, strict=True)
    ]
    place = {column.name: i for i, column in enumerate(columns)}
    for one in sets:
        if len(one.columns) > 1 and all(found[place[name]].role is Role.KEEP for name in one.columns):
            chosen = max(one.columns, key=lambda name: columns[place[name]].n_values)
            others = [name for name in one.columns if name != chosen]
            found[place[chosen]] = Suggestion(
                role=Role.QUASI, reason=f"singles people out together with {listed(others)}"
            )
    quasi = {c.name for c, told in zip(columns, found, strict=True) if told.role is Role.QUASI}
    for i, column in enumerate(columns):
        told = [d.dependent for d in dependencies if d.determinant == column.name and d.dependent in quasi]
        if found[i].role in (Role.KEEP, Role.SENSITIVE) and told:
            found[i] = Suggestion(
                role=Role.QUASI, reason=f"tells {listed(told)}, which are quasi-identifying"
            )
    return found


def find_unit(
    columns: Sequence[CodedColumn], kinds: Sequence[ColumnKind], dependencies: Sequence[Dependency]
) -> int | None:
    """The place of the first column that numbers households or other units, by name before by what it tells."""
    tells = {d.determinant for d in dependencies}
    places = [
        place
        for place, (column, kind) in enumerate(zip(columns, kinds, strict=True))
        if _by_itself(column, kind, column.name in tells).role is Role.UNIT
    ]
    return min(places, key=lambda place: (not is_named_like_unit(columns[place].name), place), default=None)


def _by_itself(column: CodedColumn, kind: ColumnKind, is_telling: bool) -> Suggestion:
    words = words_of(column.name)
    share = column.n_alone / max(len(column.codes), 1)
    is_alone = share >= MOSTLY_ALONE
    if kind is ColumnKind.EMPTY:
        return Suggestion(role=Role.KEEP, reason="has no values")
    if is_named_like_weight(column.name) and kind in NUMERIC and is_positive(column):
        if pc.min(pc.cast(column.values, pa.float64())).as_py() < 1:
            return Suggestion(
                role=Role.IDENTIFYING, reason="named like a sampling weight, but below 1; drop it"
            )
        return Suggestion(role=Role.WEIGHT, reason="named like a sampling weight, which may tell the stratum")
    is_named = is_named_like_unit(column.name) and not is_named_like_money(column.name)
    if (is_named and is_unit(column, kind)) or (is_telling and may_be_unit(column, kind)):
        return Suggestion(role=Role.UNIT, reason="groups a few records each, like a household number")
    if is_named and why_telling(column, kind) is not None:
        return Suggestion(
            role=Role.IDENTIFYING, reason="named like the number of a unit, and many values occur once"
        )
    if kind is ColumnKind.ID or (kind is ColumnKind.TEXT and is_alone):
        return Suggestion(role=Role.IDENTIFYING, reason="nearly every value occurs once")
    if words & WORDS["direct"] and kind in (ColumnKind.TEXT, ColumnKind.CATEGORY):
        return Suggestion(role=Role.IDENTIFYING, reason="named like something that names a person")
    if words & WORDS["sensitive"] or is_named_like_money(column.name):
        also = "; most values occur once, so round it or publish classes" if is_alone else ""
        return Suggestion(role=Role.SENSITIVE, reason=f"named like something private{also}")
    if words & WORDS["quasi"] or kind is ColumnKind.DATE:
        return Suggestion(
            role=Role.QUASI, reason="known to neighbours or registers, going by its name or kind"
        )
    if kind is ColumnKind.INTEGER and _is_number_of_a_person(column):
        return Suggestion(role=Role.IDENTIFYING, reason="whole numbers, nearly all different; drop it")
    telling = why_telling(column, kind)
    if telling is not None:
        return Suggestion(role=Role.QUASI, reason=f"{telling}; round it, publish classes or drop it")
    return Suggestion(
        role=Role.KEEP, reason="common values, and not known to many, going by its name; check that"
    )


def _is_number_of_a_person(column: CodedColumn) -> bool:
    """Whether values are nearly all different, as numbers of persons are whatever their column is called."""
    return column.n_known >= LEAST_RECORDS and column.n_values >= NEARLY_ALL * column.n_known
