"""Panels of the page Data: how the file is read, the kind of a column, its hierarchy, and the first rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from louver._words import counted
from louver.app.columns import KINDS, ColumnChoices, MergeTree
from louver.app.jobs.data import first_rows, labelled
from louver.app.look import RunBar, Tag, button, choice, field, icon, problem, segments, select, table
from louver.app.pages.tables_state import natural_name
from louver.app.session import Session
from louver.app.work import Late
from louver.errors import InputError, LouverError
from louver.schema.source import ALL_COLUMNS, ENCODINGS, SourceOptions

__all__ = ["ColumnPanel", "ReadingPanel", "RowsPanel", "TreePanel"]

CHOICES = {
    "decimal_mark": (
        "Decimal mark",
        {
            "": "point; refuse numbers with commas",
            ",": "comma, as in 1,5",
            ".": "point; numbers with commas are text",
        },
    ),
    "delimiter": (
        "Separator of fields",
        {"": "as in the first line", ",": "commas", ";": "semicolons", "\t": "tabs", "|": "|"},
    ),
    "encoding": ("Encoding", {name: name for name in ENCODINGS}),
    "keep_codes": ("Stata, SPSS and SAS files", {"": "show value labels", "yes": "show codes"}),
    "weight_is_count": (
        "The column of counts",
        {
            "": "is refused if it looks like money or a sampling weight",
            "yes": "counts people, even if it looks like money or a weight",
        },
    ),
}
TYPED = {
    "table": "Sheet of an Excel file",
    "header_row": "Row with the column names, counted from 1",
    "missing_code": "Values that mean missing in every column, such as N, 99",
    "where": "Only rows that meet a condition, such as age >= 18",
}
FLAGS = ("keep_codes", "weight_is_count")


class ReadingPanel:
    """Options for reading the file, and a button that reads it again."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self._session, self._chosen = session, _in_words(session.opened.source)
        with Tag("div", "stack reading"):
            for name, (label, choices) in CHOICES.items():
                choice(label, choices, self._chosen[name], partial(self._choose, name))
            for name, label in TYPED.items():
                field(label, self._chosen[name], partial(self._choose, name))
            self._wrong = Tag("div")
            button("Read it this way", self._read, kind="pri")

    def _choose(self, name: str, value: str) -> None:
        self._chosen[name] = value

    def _read(self) -> None:
        assert self._session.opened is not None
        given: dict[str, Any] = {name: value.strip(" ") or None for name, value in self._chosen.items()}
        given |= {name: given[name] is not None for name in FLAGS}
        codes = [code.strip() for code in (given["missing_code"] or "").split(",")]
        before = self._session.opened.source.missing_code
        given["missing_code"] = {name: one for name, one in before.items() if name != ALL_COLUMNS}
        given["missing_code"] |= {ALL_COLUMNS: codes} if any(codes) else {}
        self._wrong.clear()
        try:
            given["header_row"] = _row(given["header_row"])
            self._session.read_as(**given)
        except InputError as error:
            with self._wrong:
                problem(str(error))
            return
        self._session.show("data")


def _row(text: str | None) -> int | None:
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    raise InputError("the row with the column names must be a whole number.")


def _in_words(source: SourceOptions) -> dict[str, str]:
    """The current choices, in words."""
    content = {
        name: getattr(source, name) or ""
        for name in ("decimal_mark", "delimiter", "encoding", "table", "where")
    }
    content |= {name: "yes" if getattr(source, name) else "" for name in FLAGS}
    content["header_row"] = "" if source.header_row is None else str(source.header_row)
    return content | {"missing_code": ", ".join(source.missing_code.get(ALL_COLUMNS, ()))}


class ColumnPanel:
    """The top of the Data page's side panel."""

    def __init__(self, session: Session, columns: ColumnChoices, column: Mapping[str, Any]) -> None:
        self._session, self._columns, self._name = session, columns, str(column["name"])
        self._guessed = str(column["kind"])
        self._typed = ""
        with Tag("div", "pad part"):
            with Tag("div", "row between"):
                Tag("span", "s", "Kind")
                choices = {"": f"as found: {self._guessed}"} | KINDS
                chosen = columns.kinds.get(self._name, "")
                select(choices, chosen, self._set_kind, f"Kind of {self._name}")
            assert session.opened is not None
            codes = session.opened.source.missing_code.get(self._name, ())
            field("Values that mean missing, such as 9, 99", ", ".join(codes), self._set_missing)
            self._bar = RunBar(session, "quick")
            self._body = Tag("div", "stack")
        self._paint()

    def _set_missing(self, text: str) -> None:
        """Read the data again without these values; the order and the hierarchy of the column are reset."""
        assert self._session.opened is not None
        codes = [code.strip() for code in text.split(",") if code.strip()]
        given = {**self._session.opened.source.missing_code, self._name: codes}
        try:
            self._session.reread(missing_code={name: one for name, one in given.items() if one})
        except LouverError as error:
            self._bar.tell(str(error))
            return
        self._columns.trees.pop(self._name, None)
        self._columns.orders.pop(self._name, None)
        self._session.show("data")

    async def _set_kind(self, kind: str) -> None:
        self._columns.set_kind(self._name, kind)
        if kind == "ordered" and self._name not in self._columns.orders:
            await self._fetch()
        self._paint()

    async def _fetch(self) -> None:
        """The values in their natural order, which can then be changed."""
        assert self._session.opened is not None
        opened = self._session.opened
        tree = self._columns.trees.get(self._name)
        found = list(tree.labels) if tree is not None else None
        if found is None:
            labels = await self._bar.do(labelled, opened.path, opened.source, self._name, key="labels")
            found = None if labels is None else list(labels)
        if found is not None:
            self._columns.orders[self._name] = found

    def _paint(self) -> None:
        if self._body.is_deleted:
            return
        self._body.clear()
        order = self._columns.orders.get(self._name, [])
        if self._columns.kinds.get(self._name) != "ordered" or not order:
            return
        with self._body:
            Tag("span", "s sub", "Values from lowest to highest, one per line")
            self._typed = "\n".join(order)
            box = Tag("textarea", "inp wide", rows=min(len(order) + 1, 6), value=self._typed)
            box.set(aria_label=f"Order of the values of {self._name}")
            box.changed(self._type, "input")
            button("Use this order", self._use, kind="mini")
            self._message = Tag("p", "s sub", role="status")

    def _type(self, text: str) -> None:
        self._typed = text

    def _use(self) -> None:
        self._message.text = self._columns.set_order(self._name, self._typed.splitlines())


MISSING = "missing"
LONG = 40


class RowsPanel:
    """A few rows in a table; missing values are distinguished from all others."""

    def __init__(self, session: Session) -> None:
        self._session = session
        Tag(
            "p",
            "s sub",
            "As currently read: separators, decimals, conditions and codes of missing values are applied.",
        )
        self._bar = RunBar(session, "quick")
        self._body = Tag("div", "scroll")

    async def start(self) -> None:
        """Fetch and draw them."""
        assert self._session.opened is not None
        opened = self._session.opened
        found = await self._bar.do(first_rows, opened.path, opened.source, key="rows")
        if found is None or self._bar.is_gone:
            return
        self._body.clear()
        with self._body, table(dict.fromkeys(found["columns"], "")):
            for row in found["rows"]:
                with Tag("tr"):
                    for value in row:
                        short = (
                            MISSING if value is None else value[:LONG] + ("…" if len(value) > LONG else "")
                        )
                        Tag("td", "s sub" if value is None else "s nowrap", short)


WAYS = {"tree": "Tree", "csv": "CSV", "bins": "Bands", "prefix": "Prefix", "dates": "Dates"}
MOST_CHIPS = 300
HELP = {
    "csv": (
        "One line per value: first the value, then its groups from fine to coarse.",
        "value,group,larger group",
    ),
    "bins": ("Edges between the classes; each class includes its lower edge.", "18, 25, 45, 65"),
    "prefix": ("How many leading characters form a group, from coarse to fine.", "1, 3"),
    "dates": (
        "Levels from fine to coarse; all if left empty.",
        "month, quarter, year, decade",
    ),
}


class TreePanel:
    """The Data page's side panel for one column."""

    def __init__(self, session: Session, columns: ColumnChoices, column: Mapping[str, Any]) -> None:
        self.session, self.columns, self.name = session, columns, str(column["name"])
        self.level, self.way = 1, "tree"
        self.chosen: set[str] = set()
        self.new_name = ""
        self.body = Tag("div", "stack treebody")
        self._fill()

    def _fill(self) -> None:
        with self.body:
            if self.name in self.columns.trees:
                self._paint()
            else:
                Tag("p", "pad s sub", "Merge values to publish broader categories.")
                with Tag("div", "pad"):
                    button("Make a hierarchy", self.load)

    async def load(self) -> None:
        """Fetch the values; they are not read until the user asks for them."""
        assert self.session.opened is not None
        opened = self.session.opened
        try:
            labels = await self.session.ask(labelled, opened.path, opened.source, self.name, key="labels")
        except Late:
            return
        except LouverError as error:
            with self.body:
                problem(str(error))
            return
        self.columns.trees[self.name] = MergeTree(labels)
        if not self.body.is_deleted:
            self._paint()

    @property
    def tree(self) -> MergeTree:
        return self.columns.trees[self.name]

    def _paint(self, sentence: str = "") -> None:
        self.body.clear()
        levels = {str(n): f"Level {n}" for n in range(1, len(self.tree.steps) + 2)}
        with self.body:
            with Tag("div", "pad row between wrap"):
                segments(WAYS, self.way, self._go, "How to merge")
                if self.way == "tree":
                    select(levels, str(self.level), self._at, "Level of the hierarchy")
            with Tag("div", "scroll groups"):
                self._tree() if self.way == "tree" else self._typed()
            if sentence:
                with Tag("div", "pad"):
                    problem(sentence)
            self._coverage()

    def _go(self, way: str) -> None:
        self.way = way
        self._paint()

    def _at(self, level: str) -> None:
        self.level = int(level)
        self.chosen.clear()
        self._paint()

    def _tree(self) -> None:
        shown = 0
        for label, (inside, records) in self.tree.groups(self.level).items():
            is_group = inside != [label]
            with Tag("div", "row between grouphead" if is_group else "row between"):
                if is_group:
                    with Tag("span", "row"):
                        icon("down", "mini")
                        Tag("b", "b", label)
                        Tag("span", "s sub", counted(len(inside), "value"))
                else:
                    self._chip(label)
                Tag("span", "s", f"{records:,}")
            if is_group:
                with Tag("div", "chips"):
                    for one in inside:
                        self._chip(one)
            shown += len(inside)
            if shown > MOST_CHIPS:
                Tag("p", "s sub", "More values are not shown; merge them by CSV, bands, prefixes or dates.")
                break
        with Tag("div", "row mergebar"):
            name_field = Tag("input", "inp", placeholder="name of the group", aria_label="Name of the group")
            name_field.changed(self._name_group)
            button("Merge", self._merge, kind="mini", title="Choose values, and optionally name the group")
            button("Split", self._split, kind="mini")

    def _chip(self, label: str) -> None:
        made = Tag("button", "chip", label, type="button", aria_pressed=str(label in self.chosen).lower())

        def toggle() -> None:
            self.chosen.symmetric_difference_update({label})
            made.set(aria_pressed=str(label in self.chosen).lower())

        made.click(toggle)

    def _merge(self) -> None:
        there = list(dict.fromkeys(self.tree.at(self.level - 1).values()))
        picked = [label for label in there if label in self.chosen]
        if not picked or (len(picked) < 2 and not self.new_name):
            self._paint("choose at least two values to merge, or one to rename.")
            return
        self.tree.merge(self.level, picked, self.new_name or natural_name(picked))
        self.chosen.clear()
        self.new_name = ""
        self._paint()

    def _name_group(self, value: str) -> None:
        self.new_name = value.strip()

    def _split(self) -> None:
        self.tree.split(self.level, list(self.chosen))
        self.chosen.clear()
        self._paint()

    def _typed(self) -> None:
        text, example = HELP[self.way]
        Tag("p", "s sub", text)
        typed = {"text": ""}
        name = "textarea" if self.way == "csv" else "input"
        box = Tag(
            name,
            "inp wide",
            placeholder=example,
            aria_label=WAYS[self.way],
            rows=8 if self.way == "csv" else None,
        )
        box.changed(lambda value: typed.update(text=value), "input")
        with Tag("div", "row"):
            button("Use it", partial(self._use, typed), kind="mini pri")
            if self.way == "csv":
                _from_file(box)

    def _use(self, typed: dict[str, str]) -> None:
        ways: dict[str, Callable[[str], object]] = {
            "csv": self.tree.take_csv,
            "bins": self.tree.take_bins,
            "prefix": self.tree.take_prefixes,
            "dates": self.tree.take_dates,
        }
        try:
            missing = ways[self.way](typed["text"])
        except LouverError as error:
            self._paint(str(error))
            return
        self.way, self.level = "tree", 1
        self._paint(f"{missing} values are not in the hierarchy; they stay as they are." if missing else "")

    def _coverage(self) -> None:
        """A line with the number of values covered; the tree ensures that each occurs once."""
        n_labels = len(self.tree.labels)
        groups = len(set(self.tree.at(len(self.tree.steps)).values()))
        with Tag("div", "pad row s covered"):
            icon("ok", "mini")
            Tag(
                "span", text=f"{n_labels:,} of {n_labels:,} values covered, each once; {groups:,} at the top."
            )


def _from_file(box: Tag) -> None:
    """A hierarchy file is loaded into the box, where it can be viewed and corrected before it is used."""
    choose = Tag("input", "gone", type="file", aria_label="Hierarchy file", tabindex=-1)
    choose.on("change", js_handler=f"(e) => louver.fill('c{box.id}', e.target.files[0])")
    opening = button("From a file", kind="mini")
    opening.on("click", js_handler=f"() => document.getElementById('c{choose.id}').click()")
