"""Options of every verb that publishes counts of people who belong to units, such as households."""

from __future__ import annotations

from typing import Any

from louver.errors import InputError
from louver.schema.options import option

__all__ = ["check_units", "unit"]


def unit(group: str) -> Any:
    """The field `unit`."""
    return option(
        None,
        "Column of households or other units: a group is small if its members belong to fewer than --small of them.",
        metavar="COLUMN",
        group=group,
    )


def check_units(unit: str | None, is_by_people: bool) -> None:
    """Refuse to count both ways."""
    if unit is not None and is_by_people:
        raise InputError("options --unit and --count-people contradict; keep one.", option="--count-people")
