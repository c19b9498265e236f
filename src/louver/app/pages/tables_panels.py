"""Panels of the page Tables: categories of an attribute, facts known to outsiders, joint audits, and the history of attempts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from louver.app.columns import MergeTree
from louver.app.jobs.tables import ArrangedTable, together
from louver.app.look import RunBar, Tag, button, drawer, select, verdict_of
from louver.app.pages.tables_state import SHELVES, Tables, Try, natural_name
from louver.app.parts import Points
from louver.app.session import Session

__all__ = ["CategoriesPanel", "TogetherPanel", "TriedPanel", "statement"]

NAME_OF_MERGED = "Name of the merged category"


class CategoriesPanel:
    """A drawer about one attribute; `check` audits the resulting arrangement under a description of the change."""

    def __init__(
        self, state: Tables, name: str, tree: MergeTree | None, check: Callable[[str], Awaitable[None]]
    ) -> None:
        self._state, self._name, self._tree, self._check = state, name, tree, check
        self._draw()

    def _draw(self) -> None:
        self._groups = self._state.groups(self._name)
        self._chosen: set[str] = set()
        self._typed = ""
        about = "Choose categories that belong together and merge them, or split what was merged."
        with drawer(self._name, is_slim=True) as self._drawer:
            Tag("p", "sub s", about)
            with Tag("div", "chips"):
                for label, members in self._groups.items():
                    self._category(label, members)
            self._offer = Tag("input", "inp", aria_label=NAME_OF_MERGED, placeholder=NAME_OF_MERGED, value="")
            self._offer.changed(self._type, "input")
            with Tag("div", "row"):
                button("Merge", self._merge, kind="pri")
                button("Split", self._split)
            self._levels()
            Tag("h3", text="Move to")
            with Tag("div", "row"):
                for key, (title, _) in SHELVES.items():
                    button(title, partial(self._move, key), kind="mini")

    @property
    def _picked(self) -> list[str]:
        return [label for label in self._groups if label in self._chosen]

    def _type(self, text: str) -> None:
        self._typed = text

    def _category(self, label: str, members: Sequence[str]) -> None:
        made = Tag("button", "chip", label, type="button", aria_pressed="false", title="; ".join(members))

        def toggle() -> None:
            self._chosen.symmetric_difference_update({label})
            made.set(aria_pressed=str(label in self._chosen).lower())
            made.classes(add="mark") if label in self._chosen else made.classes(remove="mark")
            picked = self._picked
            self._offer.set(placeholder=natural_name(picked) if len(picked) > 1 else NAME_OF_MERGED)

        made.click(toggle)

    def _levels(self) -> None:
        """Offer the levels of the hierarchy that was made on the page Data."""
        if self._tree is None or not self._tree.steps:
            return
        Tag("h3", text="As merged on the page Data")
        with Tag("div", "row wrap"):
            for level in range(1, len(self._tree.steps) + 1):
                text = f"Level {level}: {len(set(self._tree.at(level).values())):,} groups"
                button(text, partial(self._take, self._tree, level), kind="mini")

    async def _merge(self) -> None:
        picked = self._picked
        if len(picked) > 1:
            old = [member for label in picked for member in self._groups[label]]
            await self._do(self._state.merge(self._name, old, self._typed or natural_name(picked)))

    async def _split(self) -> None:
        await self._do(self._state.split(self._name, self._picked))

    async def _take(self, tree: MergeTree, level: int) -> None:
        await self._do(self._state.regroup(self._name, tree.at(level), level))

    async def _move(self, to: str) -> None:
        await self._check(self._state.move(self._name, to, len(self._state.attributes)))

    async def _do(self, words: str) -> None:
        await self._check(words)
        if not self._drawer.is_deleted:  # the drawer was closed, or the page left, during the audit
            self._draw()


ABOUT = {"cell": "this cell has", "row": "this row has"}
BOUNDS = {"exactly": "exactly", "at_least": "at least", "at_most": "at most"}


def statement(cell: Mapping[str, Any], add: Callable[[dict[str, Any]], Any]) -> None:
    """A form about an explained cell; `add` receives its content in the form of the verb's `given`."""
    form = {"about": "cell", "bound": "exactly", "number": ""}
    Tag("p", "s b", str(cell["where"]))
    with Tag("div", "row"):
        select(ABOUT, "cell", lambda v: form.update(about=v), "About")
        select(BOUNDS, "exactly", lambda v: form.update(bound=v), "Bound")
        number = Tag("input", "inp", type="number", min=0, aria_label="Number of people", style="width:90px")
        number.changed(lambda v: form.update(number=v), "input")
        Tag("span", "s", "people")

    async def take() -> None:
        if form["number"].isdecimal():
            row, col = cell["labels"]
            where = {"row": row} | ({"col": col} if form["about"] == "cell" else {})
            await add({**where, form["bound"]: int(form["number"])})

    button("Add", take, kind="pri")


SECONDS = 20.0


class TogetherPanel:
    """Choose arrangements that were tried and audit them as if all of them were published."""

    def __init__(self, session: Session, state: Tables, form: ArrangedTable) -> None:
        self.session, self.state, self.form = session, state, form
        self.chosen: set[int] = {state.current}
        Tag(
            "p",
            "sub s",
            "Choose the tables to be published. What nobody can derive from one may follow from two.",
        )
        with Tag("div", "chips"):
            for one in state.tries:
                self._choice(one)
        button("Audit together", self.run, kind="pri")
        self.bar = RunBar(session, "long")
        self.message = Tag("div")

    def _choice(self, one: Try) -> None:
        made = Tag("button", "chip", f"{one.number} {one.words}", type="button", title=one.label)
        made.set(aria_pressed=str(one.number in self.chosen).lower())
        made.click(partial(self._toggle, made, one.number))

    def _toggle(self, made: Tag, number: int) -> None:
        self.chosen.symmetric_difference_update({number})
        made.set(aria_pressed=str(number in self.chosen).lower())

    async def run(self) -> None:
        """Audit the chosen arrangements."""
        tries = [one for one in self.state.tries if one.number in self.chosen]
        if not tries:
            self.bar.tell("choose at least one table.")
            return
        options = [one.options for one in tries]
        found = await self.bar.do(
            together, self.form.path, self.form.source, options, self.state.within, SECONDS, key="together"
        )
        if found is not None and not self.bar.is_gone:
            self._paint(found, [one.number for one in tries])

    def _paint(self, found: dict[str, Any], numbers: list[int]) -> None:
        content, summary = found["verdict"], found["summary"]
        looked = (
            f"{summary['targets']:,} cells were examined, {summary['certified']:,} bounds are proved tight."
        )
        self.message.clear()
        with self.message:
            verdict_of(content, note=looked)
            for cell in found["cells"]:
                names = [str(numbers[int(name.removeprefix("table ")) - 1]) for name in cell["because"]]
                why = f" (from {' and '.join(names)})" if names else ""
                Tag("p", "s", f"{cell['where']}: {cell['count']:,}{why}")


HEADS = {"#": "number", "Arrangement": "", "S": "small", "C": "certain", "Kept %": "kept"}
SORT_WORDS = {
    "number": "number",
    "small": "small counts disclosed",
    "certain": "rows that reveal a status",
    "kept": "information kept",
}
MOST_TRIED = 40


class TriedPanel:
    """The side panel of the page Tables."""

    def __init__(
        self,
        state: Tables,
        *,
        go_back: Callable[[int], Any],
        undo: Callable[[], Any],
        together: Callable[[], Any],
    ) -> None:
        self._state, self._go_back = state, go_back
        self._listed: list[int] = []
        self._lines: dict[int, Tag] = {}
        with Tag("div", "pad row between"):
            Tag("h2", text="Risk and usefulness")
        self._chart = Points(
            xlabel="small counts and revealing rows",
            ylabel="information kept, %",
            label="Arrangements tried",
            band=(0, 0),
        )
        self._chart.hear("choose", lambda number: go_back(int(number)))
        with Tag("div", "pad row between tried"):
            Tag("h2", "nowrap", "Tried so far")
            with Tag("span", "row"):
                title = "What several of them disclose together"
                button("Together…", together, kind="ghost mini", title=title)
                button("Undo", undo, kind="ghost mini", icon_name="undo", data_undo="")
        self._tried = Tag("div", "scroll")
        self._best = Tag("div", "pad s sub best")
        self.paint()

    def paint(self) -> None:
        """Draw the changes."""
        placed = [_point(one) for one in self._state.tries if one.kept is not None]
        self._chart.put(points=placed, chosen=self._state.current)
        self._paint_list()
        self._best.set_text(self._state.best())

    def _paint_list(self) -> None:
        """The list of what was tried; if only the selection has changed, only that is redrawn."""
        listed = self._state.sorted()
        shown = [one.number for one in listed]
        if shown == self._listed:
            for number, line in self._lines.items():
                line.classes(add="sel") if number == self._state.current else line.classes(remove="sel")
            return
        self._listed, self._lines = shown, {}
        self._tried.clear()
        with self._tried:
            with Tag("table"):
                with Tag("thead"), Tag("tr"):
                    for text, by in HEADS.items():
                        self._sort_head(text, by)
                with Tag("tbody"):
                    for one in listed[:MOST_TRIED]:
                        self._line(one)
            if (left := len(listed) - MOST_TRIED) > 0:
                Tag("p", "pad s sub", f"{left:,} more; sort by another column to see others.")

    def _sort_head(self, text: str, by: str) -> None:
        is_sorted = by == self._state.sort_by
        way = ("descending" if self._state.is_reversed else "ascending") if is_sorted else None
        with Tag("th", "r" if by in ("small", "certain", "kept") else "", scope="col", aria_sort=way):
            if not by:
                Tag("span", text=text)
                return
            title = f"Sort by {SORT_WORDS[by]}"
            made = Tag("button", "linky", text, type="button", title=title, aria_label=title)
            made.click(partial(self._sort, by))

    def _sort(self, by: str) -> None:
        self._state.sort(by)
        self._listed = []
        self._paint_list()

    def _line(self, one: Try) -> None:
        with Tag("tr", "sel" if one.number == self._state.current else "") as self._lines[one.number]:
            Tag("td", "b", str(one.number))
            with Tag("td", "s"):
                made = Tag("button", "linky", one.words, type="button", title=one.words)
                made.click(partial(self._go_back, one.number))
            for text in (f"{one.small:,}", f"{one.certain:,}", one.kept_text):
                Tag("td", "r", text)


def _point(one: Try) -> dict[str, Any]:
    place = {"x": one.small + one.certain, "y": round(100 * (one.kept or 0), 1)}
    return {"n": one.number, **place, "ok": one.level == "ok", "label": one.label}
