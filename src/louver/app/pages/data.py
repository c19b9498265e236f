"""Data: open a file, see what it contains, and give each column a role."""

from __future__ import annotations

from functools import partial
from typing import Any

from louver.app.columns import ROLES, ColumnChoices
from louver.app.copying import Call
from louver.app.jobs.data import profiled
from louver.app.look import (
    RunBar,
    Tag,
    button,
    copy_button,
    drawer,
    empty,
    finder,
    head,
    icon,
    select,
    verdict,
    verdict_of,
)
from louver.app.pages.data_panels import ColumnPanel, ReadingPanel, RowsPanel, TreePanel
from louver.app.projects import go_on
from louver.app.session import SAMPLES, UPLOADED, Session
from louver.profile.options import ProfileOptions

__all__ = ["build", "ways_to_open"]

DECIDE = {"": "Decide"}
HEADS = (
    ("Attribute", ""),
    ("Kind", ""),
    ("Distribution", ""),
    ("Levels", "r"),
    ("Missing", "r"),
    ("How identifying", ""),
    ("Role", ""),
)
MANY_COLUMNS = 15
"""With more than this many, a search field is shown."""
BAR_WIDTH, BAR_HEIGHT = 120, 22
AXES = ("integer", "number", "date")
"""Kinds of columns whose bars are classes of numbers: "20 to 30"."""


async def build(session: Session) -> None:
    """Draw the page."""
    await go_on(session)
    if session.opened is None:
        head("Data", "what the file contains, and the role of each column")
        with empty("Open a file or try a sample", "It stays on this machine: nothing is sent anywhere."):
            ways_to_open(session)
        return
    page = _DataPage(session)
    page.draw()
    await page.start()


def ways_to_open(session: Session) -> None:
    """Buttons that open a file or a sample."""
    choose = Tag("input", "gone", type="file", id="file", aria_label="File", tabindex=-1)
    choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], '', 'yes')")
    opening = button("Open a file", kind="pri", icon_name="file")
    opening.on("click", js_handler="() => document.getElementById('file').click()")
    Tag("p", "s sub", f"{UPLOADED}. You can also drop it anywhere on this page.")
    Tag("h3", text="Samples")
    for name, (title, about, _) in SAMPLES.items():
        with Tag("div", "row sample"):
            button(title, partial(_take_sample, session, name))
            Tag("span", "sub s", about)


def _take_sample(session: Session, name: str) -> None:
    session.open_sample(name)
    session.show("data")


class _DataPage:
    """The elements of the page and their behaviour."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self.session, self.opened = session, session.opened
        self.columns = session.state(ColumnChoices)

    def draw(self) -> None:
        """The page before its numbers."""
        with head("Data", "what the file contains, and the role of each column"):
            button("Open another", self.open_another, icon_name="file")
            button("How it is read", self.open_reading)
            button("Rows", self.open_rows)
            copy_button(self.call)
            with Tag("a", "btn pri", href="#tables"):
                Tag("span", text="Next: Tables")
                icon("right", "mini")
        with Tag("div", "panes"):
            with Tag("div", "stack centre"):
                self.message = Tag("div", "stack")
                self.bar = RunBar(self.session, "quick")
                self.table = Tag("section", "card scroll attr gone")
            self.side = Tag("aside", "card side gone")

    async def start(self) -> None:
        """Profile the file unless this has been done."""
        if self.columns.profile is None:
            found = await self.bar.do(profiled, self.opened.path, self.opened.source, key="profile")
            if found is None:
                if self.bar.sentence:
                    self._offer_reading()
                return
            self.columns.take(found)
        assert self.columns.profile is not None
        profile = self.columns.profile
        what = "records" if self.opened.source.weight is None else "people, counted"
        self.session.shape = f"{profile['n_rows']:,} {what}, {len(profile['columns'])} columns"
        self.session.refresh_top()
        self._paint_verdict()
        self._paint_table(profile)
        self._paint_side(profile)

    def call(self) -> Call:
        return Call(
            options=ProfileOptions(),
            data=self.opened.copied,
            source=self.opened.source,
            command="profile",
            function="profile",
        )

    def open_another(self) -> None:
        with drawer("Open another file"):
            ways_to_open(self.session)

    def open_reading(self) -> None:
        with drawer("How the file is read", is_slim=True):
            ReadingPanel(self.session)

    async def open_rows(self) -> None:
        with drawer("The first rows").classes("wide"):
            panel = RowsPanel(self.session)
        await panel.start()

    # Actions of the user.

    async def choose_role(self, name: str, role: str) -> None:
        self.columns.roles[name] = role
        self.columns.is_edited = True
        self.session.mark_work()
        self._paint_verdict()
        self.chosen[name].classes(add="decide") if not role else self.chosen[name].classes(remove="decide")

    def take_suggested(self) -> None:
        self.columns.take_suggested()
        assert self.columns.profile is not None
        self._paint_verdict()
        self._paint_table(self.columns.profile)

    def has_people(self) -> None:
        """Use no column as counts of people."""
        self.columns.has_people = True
        self._paint_verdict()

    def count_by(self, name: str | None) -> None:
        """Use a column as counts of people; the numbers on every page change accordingly."""
        self.session.count_by(name)
        self.session.show("data")

    def choose(self, name: str) -> None:
        """Show a column at the side, unless it is already shown."""
        if name == self.columns.selected:
            return
        self.columns.selected = name
        assert self.columns.profile is not None
        for one, line in self.lines.items():
            line.classes(add="sel") if one == name else line.classes(remove="sel")
        self._paint_side(self.columns.profile)

    # Drawing.

    def _offer_reading(self) -> None:
        """If a file was not understood, ask how to read it."""
        self.table.classes(remove="gone")
        with self.table, Tag("div", "pad"):
            Tag("h2", text="How the file is read")
            ReadingPanel(self.session)

    def _paint_verdict(self) -> None:
        assert self.columns.profile is not None
        self.message.clear()
        waiting = self.columns.with_role("")
        weight = self.opened.source.weight
        with self.message:
            if weight is not None:
                with verdict(
                    "plain",
                    "Counted data.",
                    f"Column {weight} gives the number of people for each row.",
                    "The file can be used for tables; microdata need one row per person.",
                ):
                    button("One row per person", partial(self.count_by, None))
            elif (guess := self.columns.counts()) is not None:
                with verdict(
                    "care", "Are these counts?", f"Does {guess} give the number of people for each row?"
                ):
                    button("Yes, use it as the count", partial(self.count_by, guess), kind="pri")
                    button("No, every row is one person", self.has_people)
            elif waiting:
                need = "One column needs" if len(waiting) == 1 else f"{len(waiting)} columns need"
                one = len(waiting) == 1
                text = f"{'It singles' if one else 'They single'} people out, or {'reveals' if one else 'reveal'} another column."
                with verdict("care", f"{need} a decision before you publish anything.", text):
                    button("Take the suggested roles", self.take_suggested)
            else:
                verdict("ok", "Every column has a role.", "Continue with Tables or Microdata.")
            if "verdict" in self.columns.profile:
                verdict_of(self.columns.profile["verdict"], is_status=False)

    def _paint_table(self, profile: dict[str, Any]) -> None:
        warnings = self.columns.warnings()
        self.lines: dict[str, Tag] = {}
        self.chosen: dict[str, Tag] = {}
        self.table.clear()
        self.table.classes(remove="gone")
        if len(profile["columns"]) > MANY_COLUMNS:
            with self.table, Tag("div", "pad find"):
                finder(f"Find one of {len(profile['columns'])} columns", ".attr tbody tr")
        with self.table, Tag("table"):
            with Tag("thead"), Tag("tr"):
                for text, classes in HEADS:
                    Tag("th", classes, text, scope="col")
            with Tag("tbody"):
                for column in profile["columns"]:
                    self._line(column, warnings.get(column["name"], ""))

    def _line(self, column: dict[str, Any], warning: str) -> None:
        name = column["name"]
        with Tag("tr", "sel" if name == self.columns.selected else "", data_name=name) as self.lines[name]:
            with Tag("td"):
                Tag("button", "linky b", name, type="button", title=column["reason"]).click(
                    partial(self.choose, name)
                )
            Tag("td", "sub", column["kind"], title=column["kind_reason"])
            with Tag("td"):
                _bars(column)
            Tag("td", "r", f"{column['distinct']:,}")
            Tag("td", "r", f"{column['missing']:,}" if column["missing"] else "–")
            with Tag("td"):
                _identifying(column, warning)
            with Tag("td"):
                role = self.columns.roles.get(name, "")
                label = f"Role of {name}"
                self.chosen[name] = select(DECIDE | ROLES, role, partial(self.choose_role, name), label)
                self.chosen[name].classes(add="" if role else "decide")

    def _paint_side(self, profile: dict[str, Any]) -> None:
        self.side.clear()
        self.side.classes(remove="gone")
        column = next((c for c in profile["columns"] if c["name"] == self.columns.selected), None)
        with self.side:
            if column is None:
                Tag("p", "pad sub s", "Choose an attribute to merge its values step by step.")
            else:
                with Tag("div", "pad"), Tag("div", "row between"):
                    Tag("h2", "clip", column["name"], title=column["name"])
                    Tag("span", "s sub nowrap", f"{column['distinct']:,} values, {column['kind']}")
                if column["distribution"] is None:
                    Tag("p", "pad sub s", column["kind_reason"] or "There is nothing to merge.")
                else:
                    ColumnPanel(self.session, self.columns, column)
                    TreePanel(self.session, self.columns, column)
            if profile["sets"]:
                _singling(profile["sets"])


def _bars(column: dict[str, Any]) -> None:
    """At most twelve bars with their axes: the first and last value, and the record count of the highest. Only numbers are drawn."""
    distribution = column["distribution"]
    if distribution is None or not distribution["counts"]:
        return
    counts = [int(count) for count in distribution["counts"]]
    first, last = _ends(distribution["labels"], column["kind"])
    label = f"Bars from {first} to {last}; the highest has {max(counts):,} records"
    with Tag("div", "dist", role="img", aria_label=label, title=_listed(distribution)):
        _drawn(counts)
        Tag("span", text=f"{max(counts):,}")
        with Tag("div", "ends" if column["kind"] in AXES else "ends labels"):
            Tag("span", "clip", first)
            Tag("span", "clip", last if len(counts) > 1 or first != last else "")


def _ends(labels: list[str], kind: str) -> tuple[str, str]:
    """The text below the first and the last bar: the smallest and the largest number, or labels."""
    first, last = str(labels[0]), str(labels[-1])
    if kind in AXES:
        return first.partition(" to ")[0], last.rpartition(" to ")[2]
    return first, last


def _listed(distribution: dict[str, Any]) -> str:
    return "\n".join(
        f"{label}: {count:,}"
        for label, count in zip(distribution["labels"], distribution["counts"], strict=True)
    )


def _drawn(counts: list[int]) -> None:
    step, most = BAR_WIDTH / len(counts), max(counts) or 1
    heights = [max(round(BAR_HEIGHT * count / most), 1) for count in counts]
    drawn = "".join(
        f'<rect x="{i * step:.1f}" y="{BAR_HEIGHT - h}" width="{step - 1:.1f}" height="{h}"/>'
        for i, h in enumerate(heights)
    )
    Tag(
        "svg",
        "bars",
        viewBox=f"0 0 {BAR_WIDTH} {BAR_HEIGHT}",
        preserveAspectRatio="none",
        aria_hidden="true",
        innerHTML=drawn,
    )


def _identifying(column: dict[str, Any], warning: str) -> None:
    if warning:
        with Tag("span", "pill stop", title=column["reason"]):
            icon("warning", "mini")
            Tag("span", text=warning)
    elif column["alone"]:
        Tag("span", "s", f"{column['alone']:,} {'person' if column['alone'] == 1 else 'people'} alone")


def _singling(sets: list[dict[str, Any]]) -> None:
    with Tag("div", "pad singling"):
        Tag("h3", text="What singles people out")
        for one in sorted(sets, key=lambda one: -one["n_alone"])[:5]:
            with Tag("div", "row between s"):
                Tag("span", text=" + ".join(one["columns"]))
                Tag("b", "b", f"{one['n_alone']:,}")
