"""How the values of a column are merged and renamed step by step: by hand, from a CSV file, by bands, prefixes or dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from louver._words import counted
from louver.app.columns import Columns, Tree
from louver.app.jobs.data import labelled
from louver.app.look import Tag, button, icon, problem, segments, select
from louver.app.pages.tables_state import natural_name
from louver.app.session import Session
from louver.app.work import Late
from louver.errors import LouverError

__all__ = ["TreePanel"]

WAYS = {"tree": "Tree", "csv": "CSV", "bins": "Bands", "prefix": "Prefix", "dates": "Dates"}
MOST_CHIPS = 300
HELP = {
    "csv": (
        "One line per value: the value, then its groups, from fine to coarse.",
        "value,group,larger group",
    ),
    "bins": ("Edges between the classes; each class holds its lower edge.", "18, 25, 45, 65"),
    "prefix": ("How many of the first letters make a group, from coarse to fine.", "1, 3"),
    "dates": (
        "Which levels, from fine to coarse; all where nothing is written.",
        "month, quarter, year, decade",
    ),
}


class TreePanel:
    """The side of the Data page for one column."""

    def __init__(self, session: Session, columns: Columns, column: Mapping[str, Any]) -> None:
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
        """Fetch the values; they are not read before somebody asks."""
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
        self.columns.trees[self.name] = Tree(labels)
        if not self.body.is_deleted:
            self._paint()

    @property
    def tree(self) -> Tree:
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
            named = Tag("input", "inp", placeholder="name of the group", aria_label="Name of the group")
            named.changed(self._name_group)
            button("Merge", self._merge, kind="mini", title="Choose values, and name the group if you like")
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
            self._paint("choose two values or more to merge them, or one and a new name for it.")
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
        """Every value is in the tree once: that is how it is kept. What is told is what it comes to."""
        n_labels = len(self.tree.labels)
        groups = len(set(self.tree.at(len(self.tree.steps)).values()))
        with Tag("div", "pad row s covered"):
            icon("ok", "mini")
            Tag(
                "span", text=f"{n_labels:,} of {n_labels:,} values covered, each once; {groups:,} at the top."
            )


def _from_file(box: Tag) -> None:
    """A file of the hierarchy goes into the box, where it can be seen and mended before it is used."""
    choose = Tag("input", "gone", type="file", aria_label="File of a hierarchy", tabindex=-1)
    choose.on("change", js_handler=f"(e) => louver.fill('c{box.id}', e.target.files[0])")
    opening = button("From a file", kind="mini")
    opening.on("click", js_handler=f"() => document.getElementById('c{choose.id}').click()")
