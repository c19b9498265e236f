"""Panels of the page Protect: a table, a rule, and a manual decision about a cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from louver._words import counted as count_of
from louver.app.columns import ColumnChoices
from louver.app.look import button, check, choice, drawer, finder, tag, tried
from louver.app.look import field as text_field
from louver.app.pages.protect_state import PINS, RULES, Protects, rule_of, table_of
from louver.app.session import JobAnswer
from louver.app.words import next_name

__all__ = ["TITLES", "CellPanel", "RulePanel", "TablePanel"]

MANY_ATTRIBUTES = 15
"""A further search is possible."""
TITLES = (
    "Zero",
    "Shown",
    "Secondary: hidden to protect others",
    "Primary: protected",
    "Primary: not protected",
)


class TablePanel:
    """A drawer that describes one table."""

    def __init__(
        self, state: Protects, columns: ColumnChoices, add: Callable[[dict[str, Any]], None]
    ) -> None:
        self._state, self._columns, self._add = state, columns, add
        self._name, self._value, self._twin = self._next_name(), "", ""
        self._by: list[str] = []
        with drawer("Describe a table"):
            self._named = text_field("Name", self._name, lambda text: setattr(self, "_name", text.strip()))
            numbers = {"": "contributors are counted", **{name: f"sums of {name}" for name in state.numbers}}
            choice("Content of its cells", numbers, "", lambda value: setattr(self, "_value", value))
            if state.tables and state.method == "hide":
                others = {"": "no other table", **{one["name"]: one["name"] for one in state.tables}}
                choice("Hides the same cells as", others, "", lambda value: setattr(self, "_twin", value))
            tag("h3", text="By")
            if len(state.attributes) > MANY_ATTRIBUTES:
                finder(f"Find one of {len(state.attributes)} attributes", ".places .row")
            with tag("div", "stack places"):
                for name in state.attributes:
                    check(self._label(name), False, partial(self._take_attribute, name))
            self._wrong = tag("div")
            button("Add it", self._take, kind="pri", data_run="")

    def _label(self, name: str) -> str:
        tree = self._columns.trees.get(name)
        levels = 0 if tree is None else len(tree.steps)
        return f"{name}, with its {count_of(levels, 'level')} above" if levels else name

    def _next_name(self) -> str:
        return next_name(self._state.tables)

    def _take_attribute(self, name: str, is_in: bool) -> None:
        self._by = [one for one in self._by if one != name] + ([name] if is_in else [])

    def _take(self) -> None:
        text = f"{self._name} is in the list. Change the form to add another."
        if tried(
            self._wrong, lambda: self._add(table_of(self._name, self._by, self._value, self._twin)), text
        ):
            self._name = self._next_name()
            self._named.set(value=self._name)


class RulePanel:
    """A drawer that describes one rule."""

    def __init__(self, add: Callable[[dict[str, Any]], None]) -> None:
        self._add, self._kind, self._typed = add, "frequency", dict[str, str]()
        with drawer("Add a rule", is_slim=True):
            titles = {kind: title for kind, (title, _) in RULES.items()}
            choice("A cell is primary by", titles, self._kind, self._set_kind)
            self._body = tag("div", "stack")
            self._wrong = tag("div")
            button("Add it", self._take, kind="pri", data_run="")
        self._paint()

    def _set_kind(self, kind: str) -> None:
        self._kind = kind
        self._typed.clear()
        self._paint()

    def _paint(self) -> None:
        self._body.clear()
        with self._body:
            for name, text in RULES[self._kind][1].items():
                text_field(text, "", partial(self._typed.__setitem__, name), inputmode="decimal")
            text_field(
                "Safety range in percent (empty: that of the rule)",
                "",
                partial(self._typed.__setitem__, "range"),
                inputmode="decimal",
            )

    def _take(self) -> None:
        tried(self._wrong, lambda: self._add(rule_of(self._kind, self._typed)), "The rule is in the list.")


class CellPanel:
    """A drawer about one cell: its fate, and a manual decision."""

    def __init__(
        self,
        state: Protects,
        table: str,
        labels: dict[str, str],
        cell: JobAnswer,
        changed: Callable[[], None],
    ) -> None:
        self._state, self._table, self._labels, self._changed = state, table, labels, changed
        before = state.pinned(table, labels)
        self._decision = "" if before is None else before["set"]
        self._reason = "" if before is None else before["reason"]
        with drawer("One cell", is_slim=True):
            tag("p", "b", ", ".join(f"{name}: {label}" for name, label in labels.items()))
            tag("p", "s", f"{cell['value']}. {TITLES[cell['state']]}.")
            for reason in cell["reasons"]:
                tag("p", "s sub", f"Because {reason}.")
            choice("This cell", PINS, self._decision, lambda value: setattr(self, "_decision", value))
            text_field(
                "Reason, for the report", self._reason, lambda text: setattr(self, "_reason", text.strip())
            )
            if cell["reasons"]:
                tag("p", "s sub", "A primary cell set to never hidden is published, and the verdict says so.")
            self._wrong = tag("div")
            button("Decide", self._take, kind="pri", data_run="")

    def _take(self) -> None:
        pin = partial(self._state.pin, self._table, self._labels, self._decision, self._reason)
        if tried(self._wrong, pin, "Noted. Press Protect to search again."):
            self._changed()
