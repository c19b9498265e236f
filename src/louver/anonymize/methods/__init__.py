"""Every method by its name; a new one is its file and a line here."""

from __future__ import annotations

from louver.anonymize.methods import (
    auto,
    exact,
    freeform,
    greedy,
    k_member,
    mondrian,
    sorted_cut,
    split_carry,
)
from louver.anonymize.methods.method import Method

__all__ = ["METHODS", "Method"]

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
    )
}
