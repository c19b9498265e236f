"""Audit: several tables of the same people, with hierarchies and the register, before any of them is published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from louver._words import counted as count_of
from louver.app.columns import ColumnChoices
from louver.app.copying import Texts, WithFiles
from louver.app.jobs.tables import audited_together, counted, published_together
from louver.app.look import (
    RunBar,
    button,
    card,
    check,
    choice,
    copy_button,
    drawer,
    empty,
    finder,
    head,
    listed,
    segments,
    select,
    table,
    tag,
    tried,
    verdict,
    verdict_of,
)
from louver.app.look import field as text_field
from louver.app.pages.tables_state import Tables
from louver.app.publishing import (
    Publishing,
    count_choice,
    people_choices,
    with_register,
    without_empty_register,
)
from louver.app.session import JobAnswer, Opened, Session
from louver.app.spec_files import written
from louver.app.words import as_number, capital, next_name
from louver.audit.options import AuditOptions, AuditTableOptions
from louver.bounds.answer import as_piece
from louver.errors import InputError, LouverError
from louver.schema.validate import validated

__all__ = ["Audits", "Draft", "advised", "build", "piece_of", "piece_text", "repeated"]

KINDS = {"counts": "Counts", "shares": "Row percentages"}
PLACES = {"counts": {"by": "in the table"}, "shares": {"rows": "rows", "cols": "columns"}}
COUNTS = {
    "total": "with the number of people",
    "rows": "with the number of people in every row",
    "none": "without any count",
}
SECONDS = {"20": "20 seconds", "60": "1 minute", "300": "5 minutes"}
MOST_CHIPS = 60
MANY_ATTRIBUTES = 15
"""A further search is possible."""
SPEC = "louver-explore.toml"


@dataclass
class Draft:
    """A table while it is being described; `places` gives the place of an attribute and its level: "rows", or "rows:1"."""

    name: str
    kind: str = "counts"
    places: dict[str, str] = field(default_factory=dict)
    totals: bool = True
    below: str = ""
    base: str = ""
    decimals: str = ""
    counts: str = "total"
    only: str = ""
    labels: set[str] = field(default_factory=set)


@dataclass
class Audits:
    """State of the page between visits."""

    pieces: list[dict[str, Any]] = field(default_factory=list)
    small: str = "5"
    within: str = ""
    hide: bool = False
    with_register: bool = True
    new_population: bool = False
    count_people: bool = False
    seconds: str = "60"
    name: str = ""
    result: JobAnswer | None = None

    @property
    def has_work(self) -> bool:
        """Whether any tables have been described."""
        return bool(self.pieces)

    def options(self, registry: str, person: str = "", units: Sequence[str] = ()) -> dict[str, Any]:
        """The options for the verb, validated by its own model; `units` are columns with the role of a household or unit.

        Raises
        ------
        InputError
            If a limit is not a number, or there is no table.
        """
        if not self.pieces:
            raise InputError("add a table first.")
        request: dict[str, Any] = {
            "tables": self.pieces,
            "small": as_number(self.small, "the limit of small counts", int),
        }
        request |= {"seconds": float(self.seconds)}
        request |= {"within": as_number(self.within, "the percentage", float)} if self.within else {}
        request |= {"hide": True} if self.hide else {}
        request |= {"count_people": True} if self.count_people else {}
        request |= {"unit": units[0]} if units and not self.count_people else {}
        request = with_register(request, self, registry, person)
        validated(AuditOptions, request).check()
        return request

    def hide_more(self, plans: Sequence[JobAnswer]) -> None:
        """Hide the cells that the verb proposes, table by table; this makes the last audit out of date."""
        proposed = {plan["table"]: plan["cells"] for plan in plans}
        self.pieces = [
            piece | {"hide": [*piece.get("hide", ()), *proposed[piece["name"]]]}
            if piece["name"] in proposed
            else piece
            for piece in self.pieces
        ]
        self.result = None


def piece_of(draft: Draft, columns: ColumnChoices) -> dict[str, Any]:
    """A described table in the form that the verb takes.

    Raises
    ------
    InputError
        If something is missing, or the verb does not take it.
    """
    piece: dict[str, Any] = {"name": draft.name}
    levels: dict[str, int] = {}
    for name, chosen in draft.places.items():
        place, _, level = chosen.partition(":")
        if place in PLACES[draft.kind]:
            piece.setdefault(place, []).append(name)
            levels |= {name: int(level)} if level else {}
    recode = {name: _merged(columns, name, level) for name, level in levels.items()}
    piece |= {"recode": recode} if recode else {}
    if draft.only and draft.labels:
        piece["where"] = {draft.only: sorted(draft.labels)}
    if draft.kind == "counts":
        piece |= {"totals": True} if draft.totals else {}
        for name, text in (("below", draft.below), ("base", draft.base)):
            piece |= {name: as_number(text, f"the number of {name}", int)} if text else {}
    else:
        piece["counts"] = draft.counts
        piece |= {"decimals": as_number(draft.decimals, "the decimals", int)} if draft.decimals else {}
    validated(AuditTableOptions, piece, draft.name or "the table")
    return piece


def _merged(columns: ColumnChoices, name: str, level: int) -> dict[str, list[str]]:
    """The groups of a level of a hierarchy that was made on the page Data."""
    groups: dict[str, list[str]] = {}
    for label, group in columns.trees[name].at(level).items():
        groups.setdefault(group, []).append(label)
    return {new: old for new, old in groups.items() if old != [new]}


def piece_text(piece: JobAnswer) -> str:
    """A table in words."""
    if "rows" in piece:
        content = f"percentages of {', '.join(piece['cols'])} by {', '.join(piece['rows'])}"
    else:
        content = f"counts by {', '.join(piece.get('by', ())) or 'nothing'}"
    more = [
        *(f"only some {name}" for name in piece.get("where", ())),
        *(f"{name} merged" for name in piece.get("recode", ())),
        *([f"below {piece['below']} hidden"] if "below" in piece else []),
        *([count_of(len(piece["hide"]), "more cell") + " hidden"] if piece.get("hide") else []),
        *([f"rounded to {piece['base']}"] if "base" in piece else []),
        *([f"{piece['decimals']} decimals"] if "decimals" in piece else []),
    ]
    return "; ".join([content, *more])


async def build(session: Session) -> None:
    """Draw the page."""
    if session.opened is None:
        head("Audit", "what several tables disclose together")
        with empty("No data yet", "Open a file with categories first."):
            button("Open a file", lambda: session.show("start"), kind="pri")
        return
    await _AuditPage(session).start()


class _AuditPage:
    """The tables, the limits, and what they disclose."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self._session, self._opened = session, session.opened
        self._state, self._tables = session.state(Audits), session.state(Tables)
        self._columns = session.state(ColumnChoices)

    async def start(self) -> None:
        with head("Audit", "what several tables disclose together"):
            copy_button(self._call)
            button("Publish…", self._open_publishing, kind="pri", icon_name="download", data_publish="")
        quick = RunBar(self._session, "quick")
        if not self._tables.attributes:
            found = await quick.do(counted, self._opened.path, self._opened.source, key="count")
            if found is None:
                return
            self._tables.open(found)
        with tag("div", "across form"):
            with card("stack form"):
                self._list = tag("div")
                self._limits = tag("div")
            with tag("div", "stack"):
                self._message = tag("div", aria_live="polite")
                self._bar = RunBar(self._session, "long")
                self._found = tag("div", "stack")
        self._bar.dim(self._message, self._found)
        self._draw_list()
        self._draw_limits()
        self._draw_result()
        if await self._bar.follow("together"):
            self._draw_result()

    # The tables.

    def _draw_list(self) -> None:
        self._list.clear()
        with self._list, tag("div", "pad part"):
            tag("h3", text="Tables to be published")
            if not self._state.pieces:
                tag("p", "s sub", "None yet. Describe one, or add those you tried on the page Tables.")
            for number, piece in enumerate(self._state.pieces):
                listed(piece["name"], piece_text(piece), partial(self._remove, number))
            with tag("div", "row wrap"):
                button("Describe a table…", self._open_draft, kind="mini", icon_name="plus")
                if self._tables.tries:
                    button("Take from Tables…", self._open_tries, kind="mini")

    def _remove(self, number: int) -> None:
        del self._state.pieces[number]
        self._changed()

    def _add(self, piece: dict[str, Any]) -> None:
        taken = {one["name"] for one in self._state.pieces}
        name, number = piece["name"], 1
        while piece["name"] in taken:
            number += 1
            piece = {**piece, "name": f"{name} {number}"}
        self._state.pieces.append(piece)
        self._changed()

    def _changed(self) -> None:
        self._state.result = None
        self._draw_list()
        self._draw_result()

    def _open_tries(self) -> None:
        """Add arrangements from the page Tables."""
        with drawer("Take from Tables", is_slim=True):
            tag("p", "s sub", "Each becomes a table of percentages with the number of people.")
            for one in self._tables.tries:
                if not one.options.given:
                    button(
                        f"{one.number} {one.words}",
                        partial(self._add, as_piece(one.options) | {"name": f"tried {one.number}"}),
                        kind="mini",
                    )

    def _open_draft(self) -> None:
        """Describe a table."""
        DraftPanel(Draft(name=self._next_name()), self._tables, self._columns, self._add, self._next_name)

    def _next_name(self) -> str:
        """A name that no table in the list has."""
        return next_name(self._state.pieces)

    # The limits.

    def _draw_limits(self) -> None:
        state = self._state
        with self._limits:
            with tag("div", "pad part"):
                tag("h3", text="What must not be disclosed")
                text_field("Counts below", state.small, partial(self._set, "small"), inputmode="numeric")
                text_field(
                    "Counts known to within this many percent (empty: only exact ones)",
                    state.within,
                    partial(self._set, "within"),
                    inputmode="decimal",
                )
                check("Propose further cells to hide", state.hide, partial(self._set, "hide"))
                count_choice(self._session, state)
            with tag("div", "pad part"):
                tag("h3", text="Published before")
                check(
                    "Together with everything in the register",
                    state.with_register,
                    partial(self._set, "with_register"),
                )
                people_choices(self._session, state, self._tables.names())
            with tag("div", "pad"):
                with tag("div", "row between"):
                    tag("span", "s", "Time")
                    select(SECONDS, state.seconds, partial(self._set, "seconds"), "Time")
                button("Audit", self._run, kind="fill", data_run="")

    def _set(self, name: str, value: Any) -> None:
        setattr(self._state, name, value.strip() if isinstance(value, str) else value)

    # The result.

    def _options(self) -> dict[str, Any]:
        units = self._columns.with_role("unit")
        return self._state.options(str(self._session.setup.registry), self._columns.person, units)

    async def _run(self) -> None:
        try:
            options = self._options()
        except LouverError as error:
            self._bar.tell(str(error))
            return
        options = without_empty_register(self._session, options)
        found = await self._bar.do(
            audited_together, self._opened.path, self._opened.source, options, key="together"
        )
        if found is not None:
            self._state.result = found
            if not self._bar.is_gone:
                self._draw_result()

    def _draw_result(self) -> None:
        found = self._state.result
        self._message.clear()
        self._found.clear()
        if found is None:
            with self._message:
                verdict(
                    "plain",
                    "Nothing has been audited yet.",
                    "List the tables to be published, and press Audit.",
                    is_status=False,
                )
            return
        judged = found["verdict"]
        with self._message:
            verdict_of(judged, note=capital(found["remark"] or ""), is_status=False)
        with self._found:
            if found["earlier"]:
                before = count_of(found["earlier"], "table")
                tag("p", "s sub", f"Audited together with {before} published before.")
            if found["cells"]:
                self._draw_cells(found)
            self._advise(found)

    def _advise(self, found: JobAnswer) -> None:
        """The changes that the verb suggests; cells that it would hide can be hidden at once."""
        lines = advised(found, len(self._state.pieces))
        plans = [plan for plan in found["hide"] if plan["safe"] and plan["cells"]]
        if not lines:
            return
        with card("pad roomy"):
            tag("h2", text="What to change")
            for line in lines:
                tag("p", "s", line)
            if plans:
                button("Hide these cells and audit again", partial(self._hide, plans), kind="start")

    async def _hide(self, plans: Sequence[JobAnswer]) -> None:
        self._state.hide_more(plans)
        self._changed()
        await self._run()

    def _draw_cells(self, found: JobAnswer) -> None:
        with card("scroll"), table({"Who": "", "Count": "r", "Why": ""}):
            for cell in found["cells"]:
                with tag("tr"):
                    tag("td", "", cell["named"])
                    tag("td", "r b", cell["range"])
                    tag("td", "s", cell["why"])
        if (left := found["n_cells"] - len(found["cells"])) > 0:
            tag("p", "s sub", f"{left:,} more are disclosed.")

    def _call(self) -> WithFiles | None:
        try:
            return repeated(self._options(), self._opened)
        except LouverError:
            return None

    def _open_publishing(self) -> None:
        Publishing(
            self._session,
            self._state,
            "tables",
            "All tables of the list in one release. They are audited together with everything in the register, and entered there: as "
            "CSV, Parquet and a report.",
            self._publication,
        )

    def _publication(self, out: str) -> tuple[Any, ...] | str:
        self._state.with_register = True
        options = self._options()
        return published_together, self._opened.path, self._opened.source, options, out


def repeated(options: JobAnswer, opened: Opened) -> WithFiles:
    """The audit as a spec, and a command that reads it."""
    kind = "uri" if "://" in opened.path else "file"
    source = opened.source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    text = written({"source": {kind: opened.copied, **source}, "audit": dict(options)})
    return WithFiles(Texts(("louver", "audit", SPEC), f"print(lv.audit(spec={SPEC!r}))"), {SPEC: text})


def advised(found: JobAnswer, n_tables: int) -> list[str]:
    """The changes that the verb suggests, in words. "Nothing is disclosed if nothing is published" is not useful advice."""
    lines = [f"Safe {found['advised']}."] if found["advised"] and found["n_out"] < n_tables else []
    for plan in found["hide"]:
        if not plan["safe"]:
            lines.append(f"Hide in {plan['table']}: found no pattern that protects all.")
        elif plan["cells"]:
            more = count_of(len(plan["cells"]), "more cell")
            small = count_of(plan["small_cells"], "small one")
            lines.append(f"Hide in {plan['table']}: {more} in addition to {small}.")
    return lines


class DraftPanel:
    """A drawer that describes one table."""

    def __init__(
        self,
        draft: Draft,
        tables: Tables,
        columns: ColumnChoices,
        add: Callable[[dict[str, Any]], None],
        next_name: Callable[[], str],
    ) -> None:
        self._draft, self._tables, self._columns = draft, tables, columns
        self._add, self._next = add, next_name
        with drawer("Describe a table"):
            self._named = text_field("Name", draft.name, partial(self._set, "name"))
            segments(KINDS, draft.kind, self._set_kind, "Kind of table")
            self._body = tag("div", "stack")
            self._wrong = tag("div")
            button("Add it", self._take, kind="pri", data_run="")
        self._paint()

    def _set(self, name: str, value: Any) -> None:
        setattr(self._draft, name, value.strip() if isinstance(value, str) else value)

    def _set_kind(self, kind: str) -> None:
        self._draft.kind = kind
        self._draft.places.clear()
        self._paint()

    def _set_only(self, name: str) -> None:
        self._draft.only = name
        self._draft.labels.clear()
        self._paint()

    def _paint(self) -> None:
        draft = self._draft
        self._body.clear()
        with self._body:
            if len(self._tables.attributes) > MANY_ATTRIBUTES:
                finder(f"Find one of {len(self._tables.attributes)} attributes", ".places .row")
            with tag("div", "stack places"):
                for attribute in self._tables.attributes:
                    self._draw_place(attribute["name"])
            if draft.kind == "counts":
                check("With totals", draft.totals, partial(self._set, "totals"))
                text_field("Hide counts below (empty: none)", draft.below, partial(self._set, "below"))
                text_field("Round to a multiple of (empty: exact)", draft.base, partial(self._set, "base"))
            else:
                text_field(
                    "Decimals of proportions (empty: exact)", draft.decimals, partial(self._set, "decimals")
                )
                select(
                    COUNTS, draft.counts, partial(self._set, "counts"), "What is published along with them"
                )
            names = {"": "everybody"} | {a["name"]: f"only some {a['name']}" for a in self._tables.attributes}
            choice("Who is counted", names, draft.only, self._set_only)
            if draft.only:
                self._draw_labels()

    def _draw_place(self, name: str) -> None:
        tree = self._columns.trees.get(name)
        levels = range(1, len(tree.steps) + 1) if tree is not None else ()
        choices = {"": "not in it"}
        for place, text in PLACES[self._draft.kind].items():
            choices |= {place: text} | {f"{place}:{n}": f"{text}, level {n}" for n in levels}
        with tag("div", "row between", data_name=name):
            tag("span", "s clip", name, title=name)
            select(
                choices, self._draft.places.get(name, ""), partial(self._place, name), f"Where {name} stands"
            )

    def _place(self, name: str, value: str) -> None:
        if value:
            self._draft.places[name] = value
        else:
            self._draft.places.pop(name, None)

    def _draw_labels(self) -> None:
        labels = next(a["labels"] for a in self._tables.attributes if a["name"] == self._draft.only)
        with tag("div", "chips"):
            for label in labels[:MOST_CHIPS]:
                made = tag("button", "chip", label, type="button", aria_pressed="false")
                made.click(partial(self._toggle, made, label))

    def _toggle(self, made: Any, label: str) -> None:
        self._draft.labels.symmetric_difference_update({label})
        made.set(aria_pressed=str(label in self._draft.labels).lower())

    def _take(self) -> None:
        text = f"{self._draft.name} is in the list. Change the form to add another."
        if tried(self._wrong, lambda: self._add(piece_of(self._draft, self._columns)), text):
            self._draft.name = self._next()
            self._named.set(value=self._draft.name)
