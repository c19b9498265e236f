"""Shares on sliders and in fields: exact, and what was set by hand stays while the others are set."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.app.controls import equal_parts, shares_of, with_share
from louver.app.pages.groups import GroupsChoices

PERCENT = st.fractions(Fraction(1, 100), Fraction(9999, 100), max_denominator=100)


def test_a_plan_is_typed_one_value_after_the_other() -> None:
    parts, kept = equal_parts(["county", "tract", "group", "block"]), []
    for name, percent in {"county": 10, "tract": 30, "group": 25}.items():
        parts = with_share(parts, name, Fraction(percent), kept)
        kept.append(name)
    assert shares_of(parts) == {"county": "1/10", "tract": "3/10", "group": "1/4", "block": "7/20"}


@few_or_many(
    20,
    100,
    given(st.lists(PERCENT, min_size=2, max_size=5), st.lists(PERCENT, min_size=1, max_size=8), st.data()),
)
def test_shares_are_positive_and_the_whole_budget(
    first: list[Fraction], typed: list[Fraction], data: st.DataObject
) -> None:
    parts, kept = {str(i): part for i, part in enumerate(first)}, []
    for percent in typed:
        name = data.draw(st.sampled_from(sorted(parts)))
        parts = with_share(parts, name, percent, kept)
        kept.append(name)
        assert parts[name] == percent and sum(parts.values()) == 100
        assert all(part > 0 for part in parts.values())


def test_a_level_that_is_added_later_gets_a_share() -> None:
    asked = GroupsChoices()
    asked.sharing, asked.regions = "own", ["state", "county"]
    asked.shares = {"total": Fraction(10), "state": Fraction(30)}
    assert asked.options()["shares"] == ["1/6", "1/2", "1/3"]
