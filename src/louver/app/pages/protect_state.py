"""State of the Protect page: tables, rules, pinned cells and the last result."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from louver.app.columns import ColumnChoices, MergeTree
from louver.app.session import JobAnswer
from louver.errors import InputError
from louver.protect.options import ProtectOptions, RuleOptions, TableOptions
from louver.schema.validate import validated

__all__ = [
    "PINS",
    "RULES",
    "TIMES",
    "Protects",
    "as_number",
    "hierarchy_text",
    "rule_of",
    "rule_text",
    "table_of",
    "table_text",
]

RULES = {
    "frequency": ("Too few contributors", {"minimum": "At least this many must contribute"}),
    "dominance": ("Dominance", {"n": "Number of largest contributors", "k": "Maximum share in percent"}),
    "p-percent": ("p %", {"p": "Nobody may estimate another contributor to within percent"}),
    "zero": ("Zeros", {"up": "How far above 0 a hidden zero must be possible"}),
    "p-q": ("p-q", {"p": "Estimated to within percent afterwards", "q": "Known to within percent before"}),
}
"""Rule -> its title, and what its numbers mean."""
WHOLE = ("minimum", "n")
PINS = {
    "": "as the search decides",
    "publish": "never hide",
    "cost": "rather hide",
    "hide": "hide",
}
"""What may be decided about one cell, in the words of `[[protect.status]]`."""
TIMES: dict[str, tuple[str, dict[str, Any]]] = {
    "first": ("First pattern only", {"steps": 0}),
    "rounds": ("Up to 200 rounds", {}),
    "60": ("1 minute", {"seconds": 60.0}),
    "600": ("10 minutes", {"seconds": 600.0}),
}


@dataclass
class Protects:
    """What the page keeps between visits."""

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
    """Whether something was chosen since the last result."""

    @property
    def has_work(self) -> bool:
        """Whether any tables have been described."""
        return bool(self.tables)

    def changed(self) -> None:
        """The last result is one of other choices."""
        self.is_stale = self.result is not None

    def take(self, result: JobAnswer) -> None:
        self.result, self.is_stale = result, False
        self.shown = min(self.shown, len(result["grids"]) - 1)

    def pin(self, table: str, cell: Mapping[str, str], decision: str, reason: str) -> None:
        """Decide about a cell, or take the decision back.

        Raises
        ------
        InputError
            If there is no reason: it goes into the report.
        """
        if decision and not reason:
            raise InputError("give a reason: it goes into the report.")
        self.pins = [one for one in self.pins if (one["table"], one["cell"]) != (table, cell)]
        if decision:
            cost = {"cost": 0.0} if decision == "cost" else {}
            self.pins.append({"table": table, "cell": dict(cell), "set": decision, **cost, "reason": reason})
        self.changed()

    def pinned(self, table: str, cell: Mapping[str, str]) -> dict[str, Any] | None:
        """What was decided about a cell."""
        return next((one for one in self.pins if one["table"] == table and one["cell"] == cell), None)

    def remove_table(self, number: int) -> None:
        """Forget a table, and what was decided about its cells and rules."""
        name = self.tables.pop(number)["name"]
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
        asked: dict[str, Any] = {"tables": self.tables, "rules": self.rules, "attackers": self.attackers}
        asked |= {"codes": {name: {"hierarchy": [path]} for name, path in codes.items()}} if codes else {}
        asked |= {"status": self.pins} if self.pins else {}
        if self.method == "round":
            asked |= {"method": "round", "base": as_number(self.base, "the base", int)}
        else:
            asked |= {"minimise": self.minimise}
        asked |= {name: getattr(self, name) for name in ("holding", "sampling_weight") if getattr(self, name)}
        if self.known_percent:
            asked["known_percent"] = as_number(self.known_percent, "the percentage known beforehand", float)
        asked |= TIMES[self.time][1]
        if self.with_register:
            asked["registry"] = registry
            asked |= {"person": person} if person else {}
            asked |= {"new_population": True} if self.new_population else {}
        validated(ProtectOptions, asked).check()
        return asked


def as_number(text: str, what: str, kind: type[int] | type[float]) -> int | float:
    """A number that was typed.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return kind(text)
    except ValueError:
        pass
    raise InputError(f"{what} must be a number.")


def table_of(name: str, by: Sequence[str], value: str) -> dict[str, Any]:
    """A described table as the verb takes it."""
    table = {"name": name, "by": list(by)} | ({"value": value} if value else {})
    validated(TableOptions, table, name or "the table")
    return table


def table_text(table: JobAnswer) -> str:
    """A table in words."""
    content = f"sums of {table['value']}" if "value" in table else "contributors"
    return f"{content} by {', '.join(table['by'])}"


def rule_of(kind: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """A rule as the verb takes it; an empty range is the rule's own."""
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
