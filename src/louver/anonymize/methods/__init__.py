"""Every method by its name; a new method needs its own file and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from louver.anonymize.methods import (
    auto,
    exact,
    freeform,
    global_recoding,
    greedy,
    k_member,
    local_exceptions,
    mondrian,
    sorted_cut,
    split_carry,
    units,
    whole_units,
)
from louver.anonymize.methods.method import Method

if TYPE_CHECKING:
    from louver.anonymize.options import AnonymizeOptions

__all__ = ["CHOICES", "METHODS", "Method", "method_of"]

METHODS = {
    method.name: method
    for method in (
        auto.METHOD,
        exact.METHOD,
        split_carry.METHOD,
        greedy.METHOD,
        sorted_cut.METHOD,
        mondrian.STRICT,
        mondrian.RELAXED,
        k_member.METHOD,
        *freeform.METHODS,
        global_recoding.METHOD,
        local_exceptions.METHOD,
        units.METHOD,
        whole_units.METHOD,
    )
}

CHOICES = tuple(name for name, method in METHODS.items() if method.is_choice)
"""The names that `--method` accepts; other methods are selected by another option."""


def method_of(options: AnonymizeOptions) -> Method:
    """The method for these options."""
    if options.recoding == "global":
        return local_exceptions.METHOD if options.exceptions > 0 else global_recoding.METHOD
    if options.whole_units:
        return whole_units.METHOD
    return METHODS[options.method] if options.unit is None else units.METHOD
