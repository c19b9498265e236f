"""Facts and decisions about the columns of the opened data: their profile, roles and hierarchies.

The Data page fills it in and other pages read it: `session.state(ColumnChoices)`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from louver.errors import InputError
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import bin_labels

__all__ = ["KINDS", "ROLES", "ColumnChoices", "MergeTree"]

ROLES = {
    "quasi": "Quasi-identifier",
    "sensitive": "Sensitive",
    "keep": "Keep as is",
    "identifying": "Identifying: drop",
    "unit": "Household or unit",
    "weight": "Sampling weight",
}
"""Role, as in `profile` -> the text shown to users."""
KINDS = {"category": "Categories without an order", "ordered": "Categories in an order"}
"""Kinds that a user may assign to a column if the profile guessed wrong."""
COUNT_NAMES = {"count", "counts", "n", "freq", "frequency", "number", "people", "persons"}
DATE = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])\b.*")


PARTS_OF_DATES: dict[str, Callable[[str, int], str]] = {
    "month": lambda year, month: f"{year}-{month:02d}",
    "quarter": lambda year, month: f"{year}-Q{(month + 2) // 3}",
    "year": lambda year, month: year,
    "decade": lambda year, month: f"{year[:3]}0-{year[:3]}9",
}
"""Levels of a hierarchy of dates, from fine to coarse."""


@dataclass
class MergeTree:
    """The merges of the values of one column, level by level.

    Attributes
    ----------
    labels : dict of str to int
        Values that occur, with the records of each, in the order they are shown.
    steps : list of dict
        For each level above the values: new label -> labels of the level below; labels not mentioned remain unchanged.
    """

    labels: dict[str, int]
    steps: list[dict[str, list[str]]] = field(default_factory=list)

    def at(self, level: int) -> dict[str, str]:
        """The label of each value at a level; level 0 has the values themselves."""
        current = {label: label for label in self.labels}
        for step in self.steps[:level]:
            new_of = {old: new for new, olds in step.items() for old in olds}
            current = {label: new_of.get(now, now) for label, now in current.items()}
        return current

    def groups(self, level: int) -> dict[str, tuple[list[str], int]]:
        """Labels at a level, each with the labels of the level below it and its number of records."""
        below, now = self.at(level - 1), self.at(level)
        found: dict[str, tuple[list[str], int]] = {}
        for label, count in self.labels.items():
            inside, records = found.get(now[label], ([], 0))
            if below[label] not in inside:
                inside.append(below[label])
            found[now[label]] = inside, records + count
        return found

    def merge(self, level: int, labels: Sequence[str], new: str) -> None:
        """Merge labels of the level below into one at this level."""
        self.split(level, labels)
        while len(self.steps) < level:
            self.steps.append({})
        taken = set(self.at(level - 1).values()) - set(labels) | set(self.steps[level - 1])
        while new in taken:
            new += " (merged)"
        self.steps[level - 1][new] = list(labels)
        self._tidy()

    def split(self, level: int, labels: Sequence[str]) -> None:
        """Remove labels of the level below from their groups."""
        if level <= len(self.steps):
            kept = {new: [x for x in old if x not in labels] for new, old in self.steps[level - 1].items()}
            self.steps[level - 1] = {new: old for new, old in kept.items() if old}
            self._tidy()

    def take(self, columns: Sequence[Sequence[str]]) -> None:
        """Set the levels from columns of labels: the values, and their labels at each level."""
        by_value = {row[0]: row[1:] for row in zip(*columns, strict=True)}
        self.steps = []
        below = {label: label for label in self.labels}
        for level in range(len(columns) - 1):
            step: dict[str, list[str]] = {}
            now = {
                label: by_value[label][level] if label in by_value else below[label] for label in self.labels
            }
            for label in self.labels:
                inside = step.setdefault(now[label], [])
                if below[label] not in inside:
                    inside.append(below[label])
            self.steps.append({new: old for new, old in step.items() if old != [new]})
            below = now

    def take_csv(self, text: str) -> int:
        """Read a hierarchy from text, one line per value; returns how many values it lacks."""
        try:
            delimiter = ";" if ";" in text.partition("\n")[0] else ","
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter) if row]
        except csv.Error:
            raise InputError(
                "the hierarchy is not CSV text; write one line per value, its groups after commas."
            ) from None
        if not rows or any(len(row) != len(rows[0]) for row in rows):
            raise InputError("the hierarchy needs one line per value, all with the same number of levels.")
        columns = [[row[level].strip() for row in rows] for level in range(len(rows[0]))]
        Hierarchy.from_levels(columns)
        self.take(columns)
        return sum(label not in set(columns[0]) for label in self.labels)

    def take_bins(self, text: str) -> None:
        """Cut numbers at edges such as "18, 25, 45"."""
        try:
            edges = sorted({float(edge) for edge in text.replace(";", ",").split(",") if edge.strip()})
            values = {label: float(label) for label in self.labels}
        except ValueError:
            raise InputError(
                "bins need numbers: edges between commas, and values that are numbers."
            ) from None
        if not edges:
            raise InputError("bins need at least one edge, such as 18, 25, 45.")
        is_whole = all(value.is_integer() for value in values.values()) and all(
            edge.is_integer() for edge in edges
        )
        names = bin_labels(edges, whole=is_whole)
        self.take([list(values), [names[sum(edge <= value for edge in edges)] for value in values.values()]])

    def take_prefixes(self, text: str) -> None:
        """Levels from the first characters of codes: lengths such as "3, 1"."""
        lengths = sorted(
            {int(part) for part in text.replace(";", ",").split(",") if part.strip().isdecimal()}
        )
        tree = Hierarchy.from_prefixes(list(self.labels), lengths, source="the column")
        self.take(
            tree.columns if len(set(tree.columns[-1])) > 1 or len(tree.columns) < 3 else tree.columns[:-1]
        )

    def take_dates(self, text: str) -> None:
        """Levels of dates, from fine to coarse: those of month, quarter, year and decade that are given, or all of them if none is."""
        found = {label: DATE.fullmatch(label) for label in self.labels}
        if not all(found.values()):
            raise InputError(
                "dates are written as year, month and day, such as 2013-05-31; merge others by CSV."
            )
        wanted = [part.strip().lower() for part in text.replace(";", ",").split(",") if part.strip()]
        if not set(wanted) <= set(PARTS_OF_DATES):
            raise InputError("levels of dates are month, quarter, year and decade; choose some of them.")
        levels = [name for name in PARTS_OF_DATES if name in wanted or not wanted]
        parts = [(match[1], int(match[2])) for match in found.values() if match is not None]
        self.take(
            [list(found), *([PARTS_OF_DATES[name](year, month) for year, month in parts] for name in levels)]
        )

    def text(self) -> str:
        """The hierarchy as a CSV file."""
        made = io.StringIO()
        levels = [self.at(level) for level in range(len(self.steps) + 1)]
        csv.writer(made, lineterminator="\n").writerows(
            [level[label] for level in levels] for label in self.labels
        )
        return made.getvalue()

    def _tidy(self) -> None:
        """Drop labels that no longer exist, and levels that merge nothing."""
        for level in range(1, len(self.steps) + 1):
            there = set(self.at(level - 1).values())
            kept = {new: [x for x in old if x in there] for new, old in self.steps[level - 1].items()}
            self.steps[level - 1] = {new: old for new, old in kept.items() if old}
        while self.steps and not self.steps[-1]:
            self.steps.pop()


@dataclass
class ColumnChoices:
    """All columns of the opened data.

    Attributes
    ----------
    profile : dict or None
        The JSON result of `louver profile`; None until it has run.
    roles : dict of str to str
        Column -> role; an empty role is undecided.
    trees : dict of str to MergeTree
    kinds : dict of str to str
        Column -> one of `KINDS`, if the user set it.
    orders : dict of str to list of str
        Column -> its values from the lowest to the highest.
    selected : str
        The column whose hierarchy is edited.
    person : str
        The column that identifies a person, if the user chose one: registers keep its keyed hashes.
    is_edited : bool
        Whether the user has decided something.
    has_people : bool
        Whether the user says that every row is one person, whatever the columns are called.
    """

    profile: dict[str, Any] | None = None
    roles: dict[str, str] = field(default_factory=dict)
    trees: dict[str, MergeTree] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    orders: dict[str, list[str]] = field(default_factory=dict)
    selected: str = ""
    person: str = ""
    is_edited: bool = False
    has_people: bool = False

    @property
    def has_work(self) -> bool:
        """Whether discarding this state would lose any decision."""
        return self.is_edited or bool(self.hierarchies())

    def take(self, profile: dict[str, Any]) -> None:
        """Apply a profile: safe columns get the role it suggests; the others await a decision."""
        self.profile = profile
        risky, before = self.warnings(), self.roles
        found = {c["name"]: "" if c["name"] in risky else c["role"] for c in profile["columns"]}
        self.roles = {name: before.get(name) or role for name, role in found.items()}
        if self.selected not in self.roles:
            self.selected = next((name for name, role in self.roles.items() if role == "quasi"), "")

    def reread(self) -> None:
        """Drop the counts, because other rows are now read; roles and hierarchies are kept."""
        self.profile = None

    def warnings(self) -> dict[str, str]:
        """Columns that need a decision, with a brief reason."""
        assert self.profile is not None
        found: dict[str, str] = {}
        for column in self.profile["columns"]:
            if column["role"] == "identifying" or column["share_alone"] >= self.profile["share"]:
                found[column["name"]] = f"{column['alone']:,} people alone"
        for content in self.profile["dependencies"]:
            back = any(
                d["determinant"] == content["dependent"] and d["dependent"] == content["determinant"]
                for d in self.profile["dependencies"]
            )
            if content["determinant"] in found or (
                back and self._place(content["determinant"]) < self._place(content["dependent"])
            ):
                continue
            sure = "always" if content["is_exact"] else f"{100 * content['accuracy']:.0f} %"
            found[content["determinant"]] = f"reveals {content['dependent']}, {sure}"
        return found

    def take_suggested(self) -> None:
        """Give every column without a role the one that the profile suggests; choices of the user are kept."""
        assert self.profile is not None
        suggested = {column["name"]: column["role"] for column in self.profile["columns"]}
        self.roles = {name: self.roles.get(name) or role for name, role in suggested.items()}
        self.is_edited = True

    def counts(self) -> str | None:
        """A column of whole numbers that is named like counts of people, unless the user has said that it is not one."""
        assert self.profile is not None
        if self.has_people:
            return None
        found = (
            column["name"]
            for column in self.profile["columns"]
            if column["name"].lower() in COUNT_NAMES and column["kind"] in ("integer", "ordered code", "id")
        )
        return next(found, None)

    def with_role(self, role: str) -> list[str]:
        """Columns with a role; an empty role stands for undecided columns."""
        return [name for name, given in self.roles.items() if given == role]

    def set_kind(self, name: str, kind: str) -> None:
        """Set the kind of a column; an empty kind means the detected one."""
        self.is_edited = True
        if kind:
            self.kinds[name] = kind
        else:
            self.kinds.pop(name, None)

    def set_person(self, name: str) -> None:
        """Set the column that identifies a person; an empty name means none."""
        self.is_edited = True
        self.person = name

    def set_order(self, name: str, values: Sequence[str]) -> str:
        """Set an order of the values that occur; returns a sentence that reports a problem with it, or that it is used."""
        given = [value for value in values if value]
        if sorted(given) != sorted(self.orders[name]):
            return "List every value exactly once, and nothing else: the order was not changed."
        self.orders[name] = given
        return "This order is now used."

    def described(self, names: Sequence[str]) -> dict[str, Any]:
        """Kinds and orders of columns, as `anonymize` takes them; a hierarchy takes precedence over an order."""
        merged = self.hierarchies()
        kind_of = {name: self.kinds[name] for name in names if name in self.kinds}
        ordered = {
            name: list(self.orders.get(name, ()))
            for name, kind in kind_of.items()
            if kind == "ordered" and name not in merged
        }
        return {"ordered": ordered, "categorical": [n for n, kind in kind_of.items() if kind == "category"]}

    def hierarchies(self) -> dict[str, str]:
        """Column -> its hierarchy as CSV text, where values were merged."""
        return {name: tree.text() for name, tree in self.trees.items() if tree.steps}

    def _place(self, name: str) -> int:
        assert self.profile is not None
        return next(i for i, column in enumerate(self.profile["columns"]) if column["name"] == name)
