"""Protect: tables with cells hidden or numbers rounded, the pattern in the grid, and manual decisions about cells."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.columns import ColumnChoices
from louver.app.controls import SearchBar
from louver.app.copying import BY_TIME, SAME, Texts, WithFiles
from louver.app.jobs.protect import columns_for_tables, protected, published_protected
from louver.app.look import (
    RunBar,
    button,
    card,
    check,
    choice,
    copy_button,
    empty,
    head,
    listed,
    number_tile,
    segments,
    select,
    tag,
    verdict,
    verdict_of,
)
from louver.app.look import field as text_field
from louver.app.pages.protect_panels import TITLES, CellPanel, RulePanel, TablePanel
from louver.app.pages.protect_state import (
    PINS,
    TIMES,
    Protects,
    hierarchy_text,
    rule_text,
    table_text,
)
from louver.app.parts import HeatGrid
from louver.app.publishing import Publishing, people_choices, without_empty_register
from louver.app.session import JobAnswer, Opened, Session
from louver.app.spec_files import written
from louver.errors import LouverError

__all__ = ["build", "next_hidden", "repeated", "window_of"]

ABOUT = "tables whose cells nobody can derive, with a proof"
METHODS = {"hide": "Hide cells", "round": "Round all numbers"}
FEW = {"number": "as few cells as possible", "value": "as little value as possible"}
ATTACKERS = {"contributors": "contributors and outsiders", "outsider": "only outsiders"}
SAYS = {"value": "True number", "published": "As published"}
SPEC = "louver-explore.toml"
SCALE = {
    "states": ["zero", "safe", "exact", "certain", "small"],
    "marks": ["", "", "S", "P", "!"],
    "spoken": ["zero", "shown", "secondary", "primary", "primary, not protected"],
}
"""How the states of `louver.protect.grid` are drawn."""
LEGEND = {"P": "primary", "S": "secondary", "!": "not protected", "•": "decided by you"}
PINNED = " •"


async def build(session: Session) -> None:
    """Draw the page."""
    if session.opened is None or session.opened.source.weight is not None:
        head("Protect", ABOUT)
        about = (
            "Open a file with one row per contributor: a firm, a household, a person."
            if session.opened is None
            else "The open data are already counts; protecting tables needs one row per contributor. For ready-made tables use louver "
            "protect on the command line."
        )
        with empty("No contributors yet", about):
            button("Try the sample", partial(_take_sample, session), kind="pri")
            button("Open a file", lambda: session.show("start"))
        return
    await _ProtectPage(session).start()


def _take_sample(session: Session) -> None:
    session.open_sample("people")
    session.show("protect")


class _ProtectPage:
    """Tables, rules, who attacks, and what must be hidden."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self._session, self._opened = session, session.opened
        self._state, self._columns = session.state(Protects), session.state(ColumnChoices)
        self._view = (0, 60), (0, 40)
        self._drawn = 0

    async def start(self) -> None:
        with head("Protect", ABOUT):
            copy_button(self._call)
            button("Publish…", self._open_publishing, kind="pri", icon_name="download", data_publish="")
        if not self._state.attributes:
            quick = RunBar(self._session, "quick")
            found = await quick.do(columns_for_tables, self._opened.path, self._opened.source, key="count")
            if found is None:
                return
            self._state.attributes = [one["name"] for one in found["attributes"]]
            self._state.columns = [*self._state.attributes, *found["left"]]
            self._state.numbers = list(found["numbers"])
        with tag("div", "across form"):
            with card("stack form"):
                self._tables, self._rules = tag("div"), tag("div")
                self._draw_choices()
            with tag("div", "stack"):
                self._message = tag("div", aria_live="polite")
                self._bar = SearchBar(self._session, "long", _standing_text)
                self._found = tag("div", "stack")
        self._bar.dim(self._message, self._found)
        self._draw_tables()
        self._draw_rules()
        self._draw_result()
        if await self._bar.follow("protect"):
            self._draw_result()

    # Requests.

    def _draw_tables(self) -> None:
        self._tables.clear()
        with self._tables, tag("div", "pad part"):
            tag("h3", text="Tables")
            if not self._state.tables:
                tag("p", "s sub", "None yet. Tables of the same numbers are linked by what their cells mean.")
            for number, table in enumerate(self._state.tables):
                listed(table["name"], table_text(table), partial(self._remove_table, number))
            button("Describe a table…", self._open_draft, kind="mini", icon_name="plus")

    def _draw_rules(self) -> None:
        self._rules.clear()
        with self._rules, tag("div", "pad part"):
            tag("h3", text="A cell is primary where")
            for number, rule in enumerate(self._state.rules):
                listed("", rule_text(rule), partial(self._remove_rule, number))
            button("Add a rule…", self._open_rule, kind="mini", icon_name="plus")

    def _draw_choices(self) -> None:
        state = self._state
        columns = {name: name for name in state.columns}
        numbers = {name: name for name in state.numbers}
        with tag("div", "pad part"):
            tag("h3", text="How they are protected")
            segments(METHODS, state.method, self._set_method, "Method")
            self._method = tag("div")
            self._draw_method()
        with tag("div", "pad part"):
            tag("h3", text="Who attacks")
            select(ATTACKERS, state.attackers, partial(self._set, "attackers"), "Who attacks")
            text_field(
                "Percentage within which readers know every number beforehand (empty: they do not)",
                state.known_percent,
                partial(self._set, "known_percent"),
                inputmode="decimal",
            )
            choice(
                "Column that groups contributors",
                {"": "nothing", **columns},
                state.holding,
                partial(self._set, "holding"),
            )
            choice(
                "Sampling weight",
                {"": "none", **numbers},
                state.sampling_weight,
                partial(self._set, "sampling_weight"),
            )
        with tag("div", "pad part"):
            tag("h3", text="Published before")
            check(
                "Together with everything in the register",
                state.with_register,
                partial(self._set, "with_register"),
            )
            people_choices(self._session, state, state.columns)
        with tag("div", "pad"):
            with tag("div", "row between"):
                tag("span", "s", "Search")
                times = {name: text for name, (text, _) in TIMES.items()}
                select(times, state.time, partial(self._set, "time"), "Search")
            button("Protect", self._run, kind="fill", data_run="")

    def _draw_method(self) -> None:
        self._method.clear()
        with self._method:
            if self._state.method == "round":
                text_field(
                    "To multiples of", self._state.base, partial(self._set, "base"), inputmode="numeric"
                )
            else:
                choice("Hide", FEW, self._state.minimise, partial(self._set, "minimise"))

    def _set(self, name: str, value: Any) -> None:
        setattr(self._state, name, value.strip() if isinstance(value, str) else value)
        self._changed()

    def _set_method(self, method: str) -> None:
        self._set("method", method)
        self._draw_method()

    def _changed(self) -> None:
        self._state.changed()
        self._draw_message()

    def _remove_table(self, number: int) -> None:
        self._state.remove_table(number)
        self._draw_tables()
        self._changed()

    def _remove_rule(self, number: int) -> None:
        del self._state.rules[number]
        self._draw_rules()
        self._changed()

    def _open_draft(self) -> None:
        TablePanel(self._state, self._columns, self._add_table)

    def _add_table(self, table: dict[str, Any]) -> None:
        self._state.tables.append(table)
        self._draw_tables()
        self._changed()

    def _open_rule(self) -> None:
        RulePanel(self._add_rule)

    def _add_rule(self, rule: dict[str, Any]) -> None:
        self._state.rules.append(rule)
        self._draw_rules()
        self._changed()

    # The search.

    def _options(self) -> dict[str, Any]:
        """The options for a job: hierarchies are files of this session."""
        files, folder = self._state.named_codes(self._columns), None
        if files:
            folder = Path(tempfile.mkdtemp(dir=self._session.folder))
            for name, file in files.items():
                (folder / file).write_text(hierarchy_text(self._columns.trees[name]), encoding="utf-8")
        codes = {name: str(folder / file) for name, file in files.items() if folder is not None}
        return self._state.options(codes, str(self._session.setup.registry), self._columns.person)

    async def _run(self) -> None:
        try:
            options = self._options()
        except LouverError as error:
            self._bar.tell(str(error))
            return
        options = without_empty_register(self._session, options)
        found = await self._bar.do(protected, self._opened.path, self._opened.source, options, key="protect")
        if found is not None:
            self._state.take(found)
            if not self._bar.is_gone:
                self._draw_result()

    # Results.

    def _draw_message(self) -> None:
        self._message.clear()
        found = self._state.result
        with self._message:
            if found is None:
                text = "Describe the tables to be published, and press Protect."
                verdict("plain", "Nothing has been protected yet.", text, is_status=False)
            elif self._state.is_stale:
                text = "Press Protect to search again. The result below is for different choices."
                verdict("plain", "Your choices have changed since.", text, is_status=False)
            else:
                verdict_of(found["verdict"], is_status=False)

    def _draw_result(self) -> None:
        self._draw_message()
        self._found.clear()
        found = self._state.result
        if found is None:
            return
        with self._found:
            self._draw_tiles(found)
            self._draw_grid(found)
            self._pins = tag("div")
        self._draw_pins()

    def _draw_tiles(self, found: JobAnswer) -> None:
        s, rounding = found["summary"], found["rounding"]
        with tag("div", "tiles four"):
            number_tile(f"{s['primary']:,}", f"primary of {s['cells']:,} cells")
            if rounding is None:
                number_tile(f"{s['secondary']:,}", "secondary cells")
            else:
                number_tile(f"{rounding['changed']:,}", "numbers changed")
            best = "proved: no pattern is better" if s["optimal"] else "gap to the bound"
            is_asked = s["optimal"] or s["bound"] > 0
            number_tile(f"{s['gap']:.1%}" if is_asked else "–", best)
            number_tile(f"{s['unprotected']:,}", "primary cells not protected")

    def _draw_grid(self, found: JobAnswer) -> None:
        names = {str(number): grid["table"] for number, grid in enumerate(found["grids"])}
        with tag("section", "card grid tall"):
            with tag("div", "row between wrap gridtop"):
                with tag("div", "row"):
                    if len(names) > 1:
                        select(names, str(self._state.shown), self._show_table, "Table")
                    segments(SAYS, self._state.says, self._show_as, "Content of cells")
                tag("span", "s sub", ", ".join(f"{mark} {text}" for mark, text in LEGEND.items()))
            self._grid = HeatGrid()
        self._grid.hear("view", lambda seen: self._look(tuple(seen["lines"]), tuple(seen["cols"])))
        self._grid.hear("cell", self._explain)
        self._grid.hear("pin", self._open_pin)
        self._grid.hear("next", self._next)
        self._put(is_other=True)

    def _show_table(self, number: str) -> None:
        self._state.shown = int(number)
        self._view = (0, 60), (0, 40)
        self._put(is_other=True)

    def _show_as(self, says: str) -> None:
        self._state.says = says
        self._put()

    def _look(self, lines: tuple[int, int], cols: tuple[int, int]) -> None:
        self._view = lines, cols
        self._put()

    @property
    def _table(self) -> JobAnswer:
        assert self._state.result is not None
        grid: JobAnswer = self._state.result["grids"][self._state.shown]
        return grid

    def _put(self, *, is_other: bool = False) -> None:
        self._drawn += is_other
        pinned = [one["cell"] for one in self._state.pins if one["table"] == self._table["table"]]
        window = window_of(self._table, *self._view, self._state.says, pinned)
        self._grid.put(win={**window, "table": self._drawn, "scale": SCALE}, tip=None)

    def _cell(self, at: Mapping[str, Any]) -> tuple[dict[str, str], JobAnswer | None]:
        """Codes of a cell, and facts about it."""
        row, line = self._table["lines"][int(at["row"])]
        labels = (*row, self._table["columns"][int(at["col"])])
        return dict(zip(self._table["by"], labels, strict=True)), line[int(at["col"])]

    def _explain(self, at: Mapping[str, Any]) -> None:
        labels, cell = self._cell(at)
        self._grid.put(
            tip=None if cell is None else _tip(labels, cell, self._state.pinned(self._table["table"], labels))
        )

    def _open_pin(self, at: Mapping[str, Any] | None) -> None:
        if at is None:
            return
        labels, cell = self._cell(at)
        if cell is not None:
            self._explain(at)
            CellPanel(self._state, self._table["table"], labels, cell, self._pin_changed)

    def _pin_changed(self) -> None:
        self._draw_pins()
        self._draw_message()
        self._put()

    def _next(self, at: Mapping[str, Any]) -> None:
        """Go to the next hidden cell."""
        found = next_hidden(self._table, int(at["line"]), int(at["col"]))
        if found is not None:
            self._look((max(0, found[0] - 60), found[0] + 60), self._view[1])
            self._grid.run_method("goto", *found)

    def _draw_pins(self) -> None:
        self._pins.clear()
        if not self._state.pins:
            return
        with self._pins, card("pad"):
            tag("h2", text="Cells you decided about")
            for one in self._state.pins:
                where = ", ".join(one["cell"].values())
                listed(
                    f"{one['table']}, {where}",
                    f"{PINS[one['set']]}; {one['reason']}",
                    partial(self._unpin, one),
                )

    def _unpin(self, one: Mapping[str, Any]) -> None:
        self._state.pin(one["table"], one["cell"], "", "")
        self._pin_changed()

    # Repeating and publishing.

    def _call(self) -> WithFiles | None:
        files = self._state.named_codes(self._columns)
        try:
            options = self._state.options(files, str(self._session.setup.registry), self._columns.person)
        except LouverError:
            return None
        texts = {file: hierarchy_text(self._columns.trees[name]) for name, file in files.items()}
        return repeated(options, self._opened, texts)

    def _open_publishing(self) -> None:
        Publishing(
            self._session,
            self._state,
            "protected",
            "All tables in the list, protected together with everything in the register, in one release: as CSV, Parquet and Excel. "
            "Nothing is written unless every primary cell is protected.",
            self._publication,
        )

    def _publication(self, out: str) -> tuple[Any, ...] | str:
        self._state.with_register = True
        return published_protected, self._opened.path, self._opened.source, self._options(), out


def _standing_text(lost: float, least: float | None) -> str:
    """The progress of a search, as shares of the cost of all cells that may be hidden."""
    if least is None:
        return f"hides {lost:.1%} of what may be hidden"
    return f"hides {lost:.1%} of what may be hidden, gap {1 - least / lost if lost else 0.0:.1%}"


def _tip(labels: Mapping[str, str], cell: JobAnswer, pin: JobAnswer | None) -> dict[str, Any]:
    why = "; ".join(cell["reasons"]) or {"exact": "otherwise others would follow from it"}.get(
        SCALE["states"][cell["state"]], "no rule applies to it"
    )
    return {
        "state": SCALE["states"][cell["state"]],
        "title": f"{cell['value']} · {TITLES[cell['state']]}",
        "published": cell["published"] or "hidden",
        "where": ", ".join(labels.values()),
        "dots": [],
        "is_range": False,
        "why": why if pin is None else f"{why}. You decided: {PINS[pin['set']]}",
    }


def window_of(
    grid: JobAnswer,
    lines: tuple[int, int],
    cols: tuple[int, int],
    says: str,
    pinned: list[dict[str, str]],
) -> dict[str, Any]:
    """The lines and columns of a table that are seen; cells with a manual decision have a dot."""
    first, left = max(0, lines[0]), max(0, cols[0])
    columns = grid["columns"][left : cols[1]]
    marked = {tuple(one[name] for name in grid["by"]) for one in pinned}
    shown = []
    for number, (row, line) in enumerate(grid["lines"][first : lines[1]], start=first):
        cells = line[left : cols[1]]
        texts = ["" if one is None else one[says] or "×" for one in cells]
        shown.append(
            {
                "row": number,
                "label": " · ".join(row) or "All",
                "states": [0 if one is None else one["state"] for one in cells],
                "texts": [
                    text + PINNED if (*row, column) in marked else text
                    for text, column in zip(texts, columns, strict=True)
                ],
            }
        )
    *names, last = grid["by"]
    return {
        "n_lines": len(grid["lines"]),
        "n_cols": len(grid["columns"]),
        "first": first,
        "left": left,
        "lines": shown,
        "heads": [{"name": last, "labels": [[label, 1] for label in columns]}],
        "row_names": names,
    }


def next_hidden(grid: JobAnswer, line: int, col: int) -> tuple[int, int] | None:
    """Line and column of the next hidden cell after this one; the first one after the last."""
    hidden = [
        (number, place)
        for number, (_, cells) in enumerate(grid["lines"])
        for place, cell in enumerate(cells)
        if cell is not None and cell["published"] is None
    ]
    return next((one for one in hidden if one > (line, col)), hidden[0] if hidden else None)


def repeated(options: JobAnswer, opened: Opened, hierarchies: Mapping[str, str]) -> WithFiles:
    """The call as a spec, and a command that reads it."""
    kind = "uri" if "://" in opened.path else "file"
    source = opened.source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    text = written({"source": {kind: opened.copied, **source}, "protect": dict(options)})
    note = BY_TIME if "seconds" in options else SAME
    call = Texts(("louver", "protect", SPEC), f"print(lv.protect(spec={SPEC!r}))", note)
    return WithFiles(call, {**hierarchies, SPEC: text})
