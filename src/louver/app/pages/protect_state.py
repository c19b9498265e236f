"""State of the Protect page: tables, rules, pinned cells and the last result."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from louver.app.columns import ColumnChoices, MergeTree
from louver.app.publishing import with_register
from louver.app.session import JobAnswer
from louver.app.words import as_number
from louver.errors import InputError
from louver.protect.options import ProtectOptions, RuleOptions, TableOptions
from louver.schema.validate import validated

__all__ = [
    "PINS",
    "RULES",
    "TIMES",
    "Protects",
    "hierarchy_text",
    "rule_of",
    "rule_text",
    "table_of",
    "table_text",
]

RULES = {
    "frequency": ("Too few contributors", {"minimum": "At least this many must contribute"}),
    "dominance": ("Dominance", {"n": "Number of largest contributors", "k": "Maximum share in percent"}),
    "p-percent": ("p %", {"p": "Percentage within which nobody may estimate another contributor"}),
    "zero": ("Zeros", {"up": "How far above 0 a hidden zero must be possible"}),
    "p-q": (
        "p-q",
        {"p": "Estimated afterwards to within (percent)", "q": "Known beforehand to within (percent)"},
    ),
}
"""Rule -> its title, and the meaning of its numbers."""
WHOLE = ("minimum", "n")
PINS = {
    "": "as the search decides",
    "publish": "never hide",
    "cost": "rather hide",
    "hide": "hide",
}
"""Possible decisions about one cell, in the words of `[[protect.status]]`."""
TIMES: dict[str, tuple[str, dict[str, Any]]] = {
    "first": ("First pattern only", {"steps": 0}),
    "rounds": ("Up to 200 rounds", {}),
    "60": ("1 minute", {"seconds": 60.0}),
    "600": ("10 minutes", {"seconds": 600.0}),
}


@dataclass
class Protects:
    """State of the page between visits."""

    attributes: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=lambda: [{"rule": "frequency", "minimum": 3}])
    pins: list[dict[str, Any]] = field(default_factory=list)
    method: str = "hide"
    base: str = "5"
    minimise: str = "number"
    attackers: str = "contributors"
    known_percent: str = ""
    holding: str = ""
    sampling_weight: str = ""
    time: str = "rounds"
    with_register: bool = True
    new_population: bool = False
    name: str = ""
    shown: int = 0
    """Number of the table on the screen."""
    says: str = "value"
    result: JobAnswer | None = None
    is_stale: bool = False
    """Whether choices have changed since the last result."""

    @property
    def has_work(self) -> bool:
        """Whether any tables have been described."""
        return bool(self.tables)

    def changed(self) -> None:
        """Mark the last result as belonging to other choices."""
        self.is_stale = self.result is not None

    def take(self, result: JobAnswer) -> None:
        self.result, self.is_stale = result, False
        self.shown = min(self.shown, len(result["grids"]) - 1)

    def pin(self, table: str, cell: Mapping[str, str], decision: str, reason: str) -> None:
        """Decide about a cell, or withdraw the decision.

        Raises
        ------
        InputError
            If there is no reason, which the report needs.
        """
        if decision and not reason:
            raise InputError("give a reason: it goes into the report.")
        self.pins = [one for one in self.pins if (one["table"], one["cell"]) != (table, cell)]
        if decision:
            cost = {"cost": 0.0} if decision == "cost" else {}
            self.pins.append({"table": table, "cell": dict(cell), "set": decision, **cost, "reason": reason})
        self.changed()

    def pinned(self, table: str, cell: Mapping[str, str]) -> dict[str, Any] | None:
        """The decision about a cell."""
        return next((one for one in self.pins if one["table"] == table and one["cell"] == cell), None)

    def remove_table(self, number: int) -> None:
        """Remove a table, with the decisions about its cells; tables that hide the same cells as this one no longer do."""
        name = self.tables.pop(number)["name"]
        for table in self.tables:
            if table.get("hide_with") == name:
                del table["hide_with"]
        self.pins = [one for one in self.pins if one["table"] != name]
        self.changed()

    def named_codes(self, columns: ColumnChoices) -> dict[str, str]:
        """Attribute -> name of the file with its hierarchy, where one was made on the page Data."""
        used = dict.fromkeys(name for table in self.tables for name in table["by"])
        wanted = [name for name in used if name in columns.trees and columns.trees[name].steps]
        return {name: f"hierarchy-{number}.csv" for number, name in enumerate(wanted, start=1)}

    def options(self, codes: Mapping[str, str], registry: str, person: str = "") -> dict[str, Any]:
        """The options for the verb, validated by its own model.

        Parameters
        ----------
        codes : mapping
            Attribute -> path of its hierarchy.
        registry, person : str
            Folder of the register, and the column by which it recognises people.

        Raises
        ------
        InputError
            If something is missing, or the verb does not take it.
        """
        if not self.tables:
            raise InputError("describe a table first.")
        request: dict[str, Any] = {"tables": self.tables, "rules": self.rules, "attackers": self.attackers}
        request |= {"codes": {name: {"hierarchy": [path]} for name, path in codes.items()}} if codes else {}
        request |= {"status": self.pins} if self.pins else {}
        if self.method == "round":
            request |= {"method": "round", "base": as_number(self.base, "the base", int)}
        else:
            request |= {"minimise": self.minimise}
        request |= {
            name: getattr(self, name) for name in ("holding", "sampling_weight") if getattr(self, name)
        }
        if self.known_percent:
            request["known_percent"] = as_number(self.known_percent, "the percentage known beforehand", float)
        request |= TIMES[self.time][1]
        request = with_register(request, self, registry, person)
        validated(ProtectOptions, request).check()
        return request


def table_of(name: str, by: Sequence[str], value: str, hide_with: str = "") -> dict[str, Any]:
    """A described table in the form that the verb takes."""
    chosen = {"value": value, "hide_with": hide_with}
    table = {"name": name, "by": list(by)} | {key: text for key, text in chosen.items() if text}
    validated(TableOptions, table, name or "the table")
    return table


def table_text(table: JobAnswer) -> str:
    """A table in words."""
    content = f"sums of {table['value']}" if "value" in table else "contributors"
    words = f"{content} by {', '.join(table['by'])}"
    return words + (f"; hides the same cells as {table['hide_with']}" if "hide_with" in table else "")


def rule_of(kind: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """A rule in the form that the verb takes; an empty range means that of the rule."""
    rule: dict[str, Any] = {"rule": kind}
    for name, text in RULES[kind][1].items():
        rule[name] = as_number(typed.get(name, ""), text.lower(), int if name in WHOLE else float)
    if typed.get("range"):
        rule["range"] = as_number(typed["range"], "the range", float)
    validated(RuleOptions, rule, "the rule")
    return rule


def rule_text(rule: JobAnswer) -> str:
    """A rule in words."""
    words = {
        "frequency": "fewer than {minimum} contribute",
        "dominance": "the {n} largest have more than {k:g} %",
        "p-percent": "a contributor can be estimated to within {p:g} %",
        "zero": "all contributors have 0; range up to {up:g}",
        "p-q": "known to {q:g} %, estimated to within {p:g} %",
    }[rule["rule"]].format(**rule)
    words = words.replace("the 1 largest have", "the largest has")
    return words + (f"; range {rule['range']:g} %" if "range" in rule else "")


def hierarchy_text(tree: MergeTree) -> str:
    """A hierarchy as CSV text with a header, its most general level first."""
    made = io.StringIO()
    levels = [tree.at(level) for level in reversed(range(len(tree.steps) + 1))]
    lines = csv.writer(made, lineterminator="\n")
    lines.writerow([f"level {number}" for number in range(1, len(levels) + 1)])
    lines.writerows([level[label] for level in levels] for label in tree.labels)
    return made.getvalue()
