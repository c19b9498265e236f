"""Neighbour relations: the pairs of data sets that a privacy loss compares.

Counts how many steps of one relation lead from a data set to any neighbour of it under another relation. A loss stated for one relation
then holds for the other, multiplied according to group privacy (`budget.convert`).

A *record* is one row of the confidential data. A *unit* (household, business, trip) is a set of records that share an identifier. If an
invariant is published by policy, neighbours are those of the relation that agree on the invariant; releases state it with the relation.
"""

from __future__ import annotations

from enum import StrEnum

from louver.errors import BudgetError, InputError

__all__ = ["Relation", "check_filter", "steps"]


class Relation(StrEnum):
    """The relation between neighbours, by what one step changes."""

    ADD_REMOVE_RECORD = "add-remove-record"
    CHANGE_RECORD = "change-record"
    ADD_REMOVE_UNIT = "add-remove-unit"

    @property
    def meaning(self) -> str:
        """The relation in a sentence, for reports."""
        return _MEANING[self]


_MEANING = {
    Relation.ADD_REMOVE_RECORD: "one record is added or removed",
    Relation.CHANGE_RECORD: "one record is replaced by another, in the same unit or not",
    Relation.ADD_REMOVE_UNIT: "one unit is added or removed with all its records",
}


def steps(source: Relation, target: Relation, *, largest_unit: int | None = None) -> int | None:
    """Count the `source` steps that reach every `target` neighbour, or None if no number does.

    Parameters
    ----------
    source : Relation
        The relation for which a loss is stated.
    target : Relation
        The relation for which the loss is needed.
    largest_unit : int, optional
        Maximum number of records of a unit, if the domain states it.

    Notes
    -----
    Replacing a record is a removal and an addition. Replacing records never changes how many there are, so it reaches no neighbour with
    another number. A unit that gains, loses or replaces a record is removed and added again; if a record is replaced by one in another
    unit, this happens to two units. A unit of m records takes m additions.

    Examples
    --------
    >>> steps(Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD)
    2
    >>> steps(Relation.CHANGE_RECORD, Relation.ADD_REMOVE_RECORD) is None
    True
    >>> steps(Relation.ADD_REMOVE_RECORD, Relation.ADD_REMOVE_UNIT, largest_unit=20)
    20
    """
    if largest_unit is not None and largest_unit < 1:
        raise BudgetError("the largest unit must have at least one record.")
    if source is target:
        return 1
    if source is Relation.CHANGE_RECORD:
        return None
    if source is Relation.ADD_REMOVE_UNIT:
        return 2 if target is Relation.ADD_REMOVE_RECORD else 4
    return 2 if target is Relation.CHANGE_RECORD else largest_unit


def check_filter(where: str | None, relation: Relation) -> None:
    """Refuse a filter of the records if neighbours have equal numbers of records.

    A filter judges each record by itself, so adding or removing a record adds or removes at most that record after the filter. But a
    changed record may pass the filter only before or only after the change, and then the number of remaining records differs.
    """
    if where is not None and relation is Relation.CHANGE_RECORD:
        message = (
            "option --where cannot be used with neighbours change-record, because a changed record may drop out; use "
            "add-remove-record."
        )
        raise InputError(message, option="where")
