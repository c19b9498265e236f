"""Tables: what a table of row percentages discloses, while it is being arranged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from louver.app.columns import ColumnChoices
from louver.app.controls import SearchBar
from louver.app.copying import Call
from louver.app.jobs.releases import publish_table
from louver.app.jobs.tables import (
    ArrangedTable,
    TableView,
    audited,
    counted,
    explained,
    find_disclosed,
    measured,
    suggested,
    window,
)
from louver.app.look import (
    RunBar,
    Tag,
    button,
    check,
    copy_button,
    drawer,
    empty,
    field,
    finder,
    head,
    problem,
    segments,
    select,
    verdict,
)
from louver.app.pages.tables_panels import CategoriesPanel, TogetherPanel, TriedPanel, statement
from louver.app.pages.tables_state import Tables
from louver.app.parts import HeatGrid, Shelves
from louver.app.publishing import Publishing, count_choice, people_choices
from louver.app.session import Session
from louver.app.words import ACCEPT_STATUS
from louver.errors import LouverError

__all__ = ["build"]

FORMS = {"": "exact fractions", "4": "rounded to 0.01 %", "3": "rounded to 0.1 %", "2": "rounded to 1 %"}
SAYS = {"range": "What outsiders can derive", "share": "Published %", "count": "True count"}
TILES = {
    "small": ("S", "small, exact"),
    "certain": ("C", "reveal a status"),
    "exact": ("E", "exact"),
    "narrow": ("N", "2 to 10 fit"),
    "safe": ("", "safe"),
    "zero": ("0", "zeros visible"),
}
SUGGEST_SECONDS = 15.0
MANY_ATTRIBUTES = 15
"""With more than this many, a search field is shown."""
LIMITS = {
    "small": "Counts below this are small",
    "certain": "Percent of a row in one cell that reveal a person's status",
    "within": "Several tables together: percent within which a count is disclosed (0: only exact)",
}


async def build(session: Session) -> None:
    """Draw the page."""
    if session.opened is None:
        head("Tables", "what a table of row percentages discloses")
        with empty("No table yet", "Open a file with categories, or try the sample with 48,842 people."):
            button("Try the sample", partial(_take_sample, session), kind="pri")
            button("Open a file", lambda: session.show("data"))
        return
    page = _TablesPage(session)
    page.draw()
    await page.start()


def _take_sample(session: Session) -> None:
    session.open_sample("survey")
    session.show("tables")


class _TablesPage:
    """The elements of the page and their behaviour."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self.session, self.opened = session, session.opened
        self.state = session.state(Tables)
        self.view = TableView()
        self.shown: ArrangedTable | None = None
        """The table on the screen; the current arrangement may be newer."""
        self.number = self.checks = 0
        self.pinned: dict[str, Any] | None = None
        self.knowledge: Tag | None = None

    def draw(self) -> None:
        """The page before its numbers."""
        with head("Tables", "what a table of row percentages discloses"):
            Tag("span", "s sub nowrap", "Published as")
            chosen = "" if self.state.decimals is None else str(self.state.decimals)
            self.form = select(FORMS, chosen, self.publish_as, "Published as")
            button("What outsiders know", self.open_knowledge, icon_name="plus")
            button("Limits", self.open_limits)
            copy_button(self.call)
            button("Publish…", self.open_publishing, kind="pri", icon_name="download", data_publish="")
        with Tag("div", "panes"):
            with Tag("div", "stack centre"):
                self.find = Tag("div")
                self.shelves = Shelves(self.state.shelves())
                self.unusable = Tag("div", "row wrap")
                self._paint_unusable()
                self.message = Tag("div", aria_live="polite")
                self.long = SearchBar(self.session, "long", _kept_text, is_kept=True)
                self._draw_tiles()
                self.bar = RunBar(self.session, "quick", [self.message, self.tiles])
                self._draw_grid()
            with Tag("aside", "card side"):
                self.side = TriedPanel(
                    self.state, go_back=self.go_back, undo=self.undo, together=self.open_together
                )
        self.shelves.hear("move", self.moved)
        self.shelves.hear("open", self.open_categories)
        self.shelves.hear("split", lambda name: self.split(name, ()))

    async def start(self) -> None:
        """Count the file if necessary, and audit the latest arrangement."""
        if not self.state.attributes:
            found = await self.bar.do(counted, self.opened.path, self.opened.source, key="count")
            if found is None:
                return
            self.state.open(found)
            self._paint_unusable()
        self.session.shape = f"{self.state.n:,} people, {len(self.state.attributes)} attributes"
        self.session.refresh_top()
        if not await self.go_on():
            await self.check("As opened")
        if await self.long.follow("suggest"):
            self.side.paint()

    async def go_on(self) -> bool:
        """Audit the arrangements of a project again, the most recently shown one last; False if there are none."""
        waiting, self.state.waiting = self.state.waiting, []
        is_any = False
        for one in waiting:
            if self.state.arrange(one.options):
                await self.check(one.words)
                is_any = True
        return is_any

    async def check(self, words: str, before: ArrangedTable | None = None) -> None:
        """Audit the current arrangement; until then, the screen is out of date. Cells that have become disclosed since `before` are
        marked."""
        self.checks += 1
        number = self.checks
        self.shelves.put(shelves=self.state.shelves())
        if not self.state.rows or not self.state.cols:
            self._say(
                "plain", "This is not a table yet.", "Put at least one attribute on Rows and one on Columns."
            )
            self._show_numbers(False)
            return
        try:
            arranged = self.arranged()
        except LouverError as error:
            self.bar.tell(str(error))
            return
        self.view = replace(self.view, before=before)
        if before is None:
            self.view = replace(self.view, lines=(0, 60), cols=(0, 40), folded=frozenset())
        found = await self.bar.do(audited, arranged, self.view, key="audit")
        if (
            found is None or number != self.checks
        ):  # the arrangement has changed in the meantime, or there is no table
            return
        await self._compare_with(arranged)
        self.state.remember(words, arranged.options, found)
        if not self.bar.is_gone:
            self.shown = arranged
            self._paint(found)

    async def _compare_with(self, arranged: ArrangedTable) -> None:
        """Compare everything tried with the new base, if the base has changed."""
        if arranged.base != self.state.base:
            tried = [one.options for one in self.state.tries]
            kept = await self.session.ask(measured, arranged, tried, key="") if tried else []
            self.state.rebase(arranged.base, kept)

    def arranged(self) -> ArrangedTable:
        options = self.state.options()
        return ArrangedTable(
            path=self.opened.path,
            source=self.opened.source,
            names=tuple(a["name"] for a in self.state.attributes),
            options=options,
            base=self.state.base_of(options),
        )

    def call(self) -> Call | None:
        """The table on the screen, as a call of the verb."""
        if not self.state.rows or not self.state.cols:
            return None
        return Call(
            options=self.state.options(),
            data=self.opened.copied,
            source=self.opened.source,
            command="bounds",
            function="bounds",
        )

    # Actions of the user.

    async def moved(self, move: dict[str, Any]) -> None:
        words = self.state.move(str(move["name"]), str(move["to"]), int(move["index"]))
        await self.check(words)

    async def publish_as(self, chosen: str) -> None:
        self.state.decimals = int(chosen) if chosen else None
        await self.check(f"Publish {FORMS[chosen]}")

    async def split(self, name: str, labels: Sequence[str]) -> None:
        await self.check(self.state.split(name, labels))

    async def go_back(self, number: int) -> None:
        self.state.restore(number)
        self.form.set(value="" if self.state.decimals is None else str(self.state.decimals))
        await self.check("")

    async def undo(self) -> None:
        if (number := self.state.before()) is not None:
            await self.go_back(number)

    async def suggest(self) -> None:
        """Redesigns of the current table; the information they keep is measured relative to it, as in the verb."""
        arranged = self.arranged()
        arranged = replace(arranged, base=arranged.options)
        found = await self.long.do(suggested, arranged, SUGGEST_SECONDS, "attribute", key="suggest")
        if found is None:
            return
        await self._compare_with(arranged)
        self.state.take_suggestions(found)
        if self.long.is_gone:
            return
        self.side.paint()
        if self.long.is_hurried:
            self.long.tell("cancelled; what was found so far is kept.")

    async def look(self, **changes: Any) -> None:
        """Look at another part of the table on the screen."""
        self.view = replace(self.view, **changes)
        if (shown := self.shown) is not None:
            found = await self.session.ask(window, shown, self.view, key="window")
            if self._is_shown(shown):
                self.grid.put(win={**found, "table": self.number})

    def _is_shown(self, arranged: ArrangedTable) -> bool:
        """Whether a table is still on the screen."""
        return arranged is self.shown and not self.bar.is_gone

    def only_known(self) -> None:
        """Leave out the records that lack a value of a column that could appear in a table."""
        self.session.only_known(self.state.missing)
        self.session.show("tables")

    # Drawing.

    def _paint_unusable(self) -> None:
        self.find.clear()
        if len(self.state.attributes) > MANY_ATTRIBUTES:
            with self.find:
                finder(f"Find one of {len(self.state.attributes)} attributes", ".shelf .chip")
        self.unusable.clear()
        with self.unusable:
            if text := self.state.unusable_text():
                Tag("p", "s sub", text)
            if self.state.missing:
                title = "Records without one of these values are then not counted, on any page"
                button("Count only records that have them", self.only_known, kind="mini", title=title)

    def _draw_tiles(self) -> None:
        self.tile: dict[str, tuple[Tag, Tag]] = {}
        with Tag("div", "tiles six") as self.tiles:
            for state, (letter, text) in TILES.items():
                made = Tag(
                    "button",
                    "tile",
                    type="button",
                    aria_pressed="false",
                    title=f"Show only rows with such cells: {text}",
                )
                with made:
                    Tag("span", f"sw d-{state}", letter, aria_hidden="true")
                    with Tag("span"):
                        number = Tag("b", text="–")
                        Tag("span", text=text)
                made.click(partial(self.press, state))
                self.tile[state] = made, number

    async def press(self, state: str) -> None:
        """Show only rows with cells in a given state, or all rows again."""
        only = "" if self.view.only == state else state
        for name, (made, _) in self.tile.items():
            made.set(aria_pressed=str(name == only).lower())
        await self.look(only=only, lines=(0, 60))

    def _draw_grid(self) -> None:
        with Tag("section", "card grid") as self.table:
            with Tag("div", "row between gridtop"):
                segments(SAYS, "range", lambda says: self.look(says=says), "Content of cells")
                self.row_counts = Tag("span", "s sub")
            self.grid = HeatGrid()
        self.grid.hear("view", lambda seen: self.look(lines=tuple(seen["lines"]), cols=tuple(seen["cols"])))
        self.grid.hear("cell", self.explain)
        self.grid.hear("pin", self.pin)
        self.grid.hear("fold", lambda group: self.look(folded=self.view.folded ^ {int(group)}))
        self.grid.hear("next", self.next_disclosed)

    async def explain(self, cell: dict[str, int], key: str = "cell") -> dict[str, Any] | None:
        """Describe a cell; None if another table is shown by then."""
        if (shown := self.shown) is None:
            return None
        found: dict[str, Any] = await self.session.ask(
            explained, shown, int(cell["row"]), int(cell["col"]), key=key
        )
        if not self._is_shown(shown):
            return None
        self.grid.put(tip={key: value for key, value in found.items() if key != "labels"})
        return found

    async def pin(self, cell: dict[str, int] | None) -> None:
        self.pinned = None if cell is None else await self.explain(cell, "pin")
        if self._knows:
            self.open_knowledge()

    async def next_disclosed(self, at: dict[str, int]) -> None:
        if (shown := self.shown) is None:
            return
        found = await self.session.ask(
            find_disclosed, shown, self.view, int(at["line"]), int(at["col"]), key="next"
        )
        if found is not None and self._is_shown(shown):
            await self.look(lines=(max(0, found[0] - 60), found[0] + 60))
            self.grid.run_method("goto", *found)

    def _show_numbers(self, are_there: bool) -> None:
        """Show or hide the six counts and the table, because those of another table could be mistaken for this one's."""
        for part in (self.tiles, self.table):
            part.classes(**({"remove": "gone"} if are_there else {"add": "gone"}))

    def _paint(self, found: dict[str, Any]) -> None:
        self.number += 1
        self._show_numbers(True)
        summary, tiles = found["summary"], found["tiles"]
        for state, (_, number) in self.tile.items():
            number.set_text(f"{tiles[state]:,}")
        people = summary["rows"] - summary["zero_rows"]
        self.row_counts.set_text(f"{people:,} rows with people, {summary['zero_rows']:,} without")
        self.grid.put(win={**found["window"], "table": self.number}, tip=None)
        self.session.say(f"{self.state.words_now()}. {_plural(tiles['small'], 'small count')} disclosed.")
        self._paint_verdict(found["verdict"], found["n"], found["fallen"])
        self.side.paint()

    def _paint_verdict(self, content: dict[str, Any], n: int, fallen: int | None) -> None:
        """The verb's own verdict, and its scope."""
        note = (
            f"From the row percentages and the {n:,} people alone. It says nothing about other tables of the same people; "
            "Publish audits it together with them."
        )
        if self.state.given:
            falls = "" if fallen is None else f" {_plural(fallen, 'cell')} newly disclosed by the last fact."
            note = f"With {_plural(len(self.state.given), 'fact')} that outsiders know in addition.{falls}"
        self._say(content["level"], content["sentence"], " ".join(content["reasons"]), note)

    def _say(self, kind: str, bold: str, text: str, note: str = "") -> None:
        self.message.clear()
        with self.message, verdict(kind, bold, text, note, is_status=False):
            if kind in ("stop", "care"):
                button("Suggest safer tables", self.suggest, icon_name="spark", data_run="")

    # Drawers.

    def open_categories(self, name: str) -> None:
        """Merge or split the categories of an attribute, or move it."""
        CategoriesPanel(self.state, name, self.session.state(ColumnChoices).trees.get(name), self.check)

    def open_together(self) -> None:
        """Audit several of the arrangements as if all were published."""
        with drawer("What they disclose together", is_slim=True):
            TogetherPanel(self.session, self.state, self.arranged())

    def open_limits(self) -> None:
        """The limits for small counts, revealing rows and narrow ranges."""
        typed = {name: f"{getattr(self.state, name):g}" for name in LIMITS}
        with drawer("Limits", is_slim=True):
            for name, text in LIMITS.items():
                field(text, typed[name], partial(typed.__setitem__, name), inputmode="decimal")
            wrong = Tag("div")
            button("Use them", partial(self.set_limits, typed, wrong), kind="pri")

    async def set_limits(self, typed: dict[str, str], wrong: Tag) -> None:
        wrong.clear()
        try:
            self.state.set_limits(typed)
        except LouverError as error:
            with wrong:
                problem(str(error))
            return
        await self.check(f"Small is below {self.state.small}, certain from {self.state.certain:g} %")

    def open_publishing(self) -> None:
        """Publish the table that is arranged."""
        Publishing(
            self.session,
            self.state,
            "table",
            "The row percentages as arranged, with the number of people. They are audited alone and together with everything in the "
            "register, and entered there: as CSV, Parquet and a report.",
            self._publication,
            self._publishing_choices,
        )

    def _publishing_choices(self) -> None:
        check(
            ACCEPT_STATUS,
            self.state.accept,
            lambda value: setattr(self.state, "accept", value),
        )
        count_choice(self.session, self.state)
        people_choices(self.session, self.state, self.state.names())

    def _publication(self, out: str) -> tuple[Any, ...] | str:
        if not self.state.rows or not self.state.cols:
            return "put at least one attribute on Rows and one on Columns."
        if self.state.given:
            return (
                "remove what outsiders know first: a publication is audited with what was published before."
            )
        given = {"registry": str(self.session.setup.registry), "accept": self.state.accept}
        given |= {"new_population": self.state.new_population, "count_people": self.state.count_people}
        given |= {"person": self.session.state(ColumnChoices).person or None}
        units = self.session.state(ColumnChoices).with_role("unit")
        given |= {"unit": units[0]} if units and not self.state.count_people else {}
        return publish_table, self.opened.path, self.opened.source, self.state.options(), given, out

    def open_knowledge(self) -> None:
        """What outsiders know in addition to the table, and which cells it discloses."""
        with drawer("What outsiders know", is_slim=True) as self.knowledge:
            Tag(
                "p",
                "sub s",
                "Somebody may know how many people a cell or a row has. Add it to see which cells that discloses.",
            )
            for position, one in enumerate(self.state.given):
                with Tag("div", "row between known"):
                    Tag("span", "s", self.state.given_text(one))
                    button(
                        "",
                        partial(self.forget, position),
                        kind="ghost mini",
                        icon_name="close",
                        aria_label="Remove",
                    )
            if self.pinned is None:
                Tag("p", "s", "Click a cell of the table to add a fact about it.")
                return
            statement(self.pinned, lambda one: self.know([*self.state.given, one]))

    async def forget(self, position: int) -> None:
        await self.know([one for i, one in enumerate(self.state.given) if i != position])

    async def know(self, given: list[dict[str, Any]]) -> None:
        arranged, before = self.arranged(), self.state.given
        self.state.given = given
        more = len(given) > len(before)
        words = f"Outsiders know {_plural(len(given), 'thing')}" if given else "Outsiders know nothing else"
        await self.check(words, arranged if more else None)
        wrong = self.bar.sentence
        if wrong:
            self.state.given = before
        if self._knows:
            self.open_knowledge()
            if wrong and self.knowledge is not None:
                with self.knowledge:
                    problem(wrong)

    @property
    def _knows(self) -> bool:
        """Whether the drawer about it is open."""
        return self.knowledge is not None and not self.knowledge.is_deleted


def _kept_text(lost: float, least: float | None) -> str:
    most = "" if least is None else f"; none keeps more than {100 * (1 - least):.1f} %"
    return f"A safe table keeps {100 * (1 - lost):.1f} %{most}"


def _plural(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
