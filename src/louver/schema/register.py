"""Options that several verbs share: how the people of a register are identified, and their units (households)."""

from __future__ import annotations

from typing import Any

from louver.errors import InputError
from louver.schema.options import option

__all__ = [
    "accept_unchecked",
    "check_register",
    "check_units",
    "count_people",
    "new_population",
    "person",
    "unit",
]


def person(group: str) -> Any:
    """The field `person`."""
    return option(
        None,
        "With --register: column that identifies a person; stored as keyed hashes, never published.",
        metavar="COLUMN",
        group=group,
    )


def new_population(group: str) -> Any:
    """The field `new_population`."""
    return option(
        False,
        "With --register: people not found in the register are different people from those in it.",
        group=group,
    )


def accept_unchecked(group: str) -> Any:
    """The field `accept_unchecked`."""
    return option(
        False,
        "Publish although it is not known what is disclosed together with an earlier publication, or with exact numbers of a ledger.",
        group=group,
    )


def count_people(group: str) -> Any:
    """The field `count_people`."""
    return option(
        False,
        "Count groups by people even though the records number households.",
        group=group,
    )


def check_register(
    registry: str | None, person: str | None, is_new: bool, accepts_unchecked: bool = False
) -> None:
    """Refuse options that have no effect without a register."""
    given = {
        "--person": person is not None,
        "--new-population": is_new,
        "--accept-unchecked": accepts_unchecked,
    }
    for flag, is_given in given.items():
        if is_given and registry is None:
            raise InputError(f"option {flag} needs --register.", option=flag)


def unit(group: str) -> Any:
    """The field `unit`."""
    return option(
        None,
        "Column of households or other units: a group is small if its members come from fewer than --small of them.",
        metavar="COLUMN",
        group=group,
    )


def check_units(unit: str | None, is_by_people: bool) -> None:
    """Refuse to count both by units and by people."""
    if unit is not None and is_by_people:
        raise InputError("options --unit and --count-people contradict; keep one.", option="--count-people")
