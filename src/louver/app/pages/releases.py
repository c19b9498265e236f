"""Releases: everything published from one data set, side by side, with its promises recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from louver.app.charts import points
from louver.app.copying import Texts
from louver.app.jobs.books import checked, listed, report_of
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    copy_button,
    empty,
    head,
    icon,
    pill,
    table,
    tag,
    verdict,
)
from louver.app.session import Session
from louver.app.words import amount_text, date_text, share_text

__all__ = ["build"]

KINDS = {"anonymize": "Microdata", "groups": "Group sizes", "topdown": "TopDown", "audit": "Tables"}
MARKS = {True: ("verified", "ok", "ok"), False: ("broken", "stop", "warning")}
Told = Mapping[str, Any]


class State:
    """What a tab looked at."""

    def __init__(self) -> None:
        self.chosen: str | None = None
        self.outcomes: dict[str, Told] = {}


async def build(session: Session) -> None:
    """Draw the page."""
    actions = head("Releases", "everything published from one data set, side by side")
    if session.setup.releases is None:
        empty("No folder of releases", "Start the explorer with --releases DIR, the folder they lie in.")
        return
    await _Page(session, str(session.setup.releases)).start(actions)


class _Page:
    """The page of one tab: the list, and one release in detail."""

    def __init__(self, session: Session, folder: str) -> None:
        self._session, self._folder = session, folder
        self._state = session.state(State)
        self._releases: dict[str, Told] = {}

    async def start(self, actions: Tag) -> None:
        self._bar = RunBar(self._session, "quick")
        found = await self._bar.do(listed, self._folder, key="releases")
        if not found:
            if found is not None:
                empty("Nothing was released yet", "What is published into this folder is listed here.")
            return
        self._releases = {one["folder"]: one for one in found}
        if self._state.chosen not in self._releases:
            self._state.chosen = next(iter(self._releases))
        with tag("div", "across releases"):
            with tag("div", "stack"):
                self._charts()
                self._list = card()
                self._joint()
            self._detail = card("stack")
        with actions:
            button("Check all", self._check_all, kind="pri", data_run="")
            copy_button(self._texts)
        self._draw()

    def _charts(self) -> None:
        """Three panels, each with an axis of its own: a table, a k and an epsilon are different promises."""
        numbered = list(enumerate(self._releases.values(), start=1))
        microdata = [
            (float(one["results"]["k"]), 100 * float(one["results"]["gcp"]), number)
            for number, one in numbered
            if one["kind"] == "anonymize" and one["results"]["gcp"] is not None
        ]
        noise = [
            (float(Fraction(one["amount"])), float(one["levels"][-1]["forecast_l1"]), number)
            for number, one in numbered
            if one["kind"] == "groups" and one["levels"] and one["levels"][-1]["forecast_l1"] is not None
        ]
        with card("pad"):
            with tag("div", "across thirds"):
                with tag("div"):
                    tag("h2", text="Tables")
                    tag("p", "s sub", "exact counts or shares; what they give away together is the audit's")
                    for number, one in numbered:
                        if one["kind"] == "audit":
                            tag("p", "s", f"{number}: {len(one['tables'])} tables")
                with tag("div"):
                    tag("h2", text="Microdata")
                    tag("p", "s sub", "detail lost, percent of each range")
                    points(microdata, across="k, safer to the left", up="Detail lost", is_reversed=True)
                with tag("div"):
                    tag("h2", text="Noise")
                    tag("p", "s sub", "groups under a wrong size in the smallest regions, as forecast")
                    points(noise, across="epsilon or rho, safer to the left", up="Groups under a wrong size")
            with tag("p", "s sub row"):
                icon("info", "mini")
                tag(
                    "span",
                    text="Compare within a panel, never across: an exact table, k and epsilon are different promises.",
                )

    def _draw(self) -> None:
        self._list.clear()
        columns = {"#": "r", "Release": "", "Kind": "", "What is promised": "", "What it costs": ""}
        with self._list, table(columns | {"When": "", "State": ""}):
            for number, (name, one) in enumerate(self._releases.items(), start=1):
                self._line(number, name, one)
        self._detail.clear()
        with self._detail:
            self._draw_detail()

    def _line(self, number: int, name: str, one: Told) -> None:
        with tag("tr", "sel" if name == self._state.chosen else ""):
            tag("td", "r", str(number))
            with tag("td"):
                button(name, partial(self._choose, name), kind="ghost mini")
            tag("td", "", KINDS.get(one["kind"], str(one["kind"])))
            tag("td", "", _promised(one))
            tag("td", "", _cost(one))
            tag("td", "s nowrap", date_text(one["created"]) if one["created"] else "")
            with tag("td"):
                self._state_pill(name, one)

    def _state_pill(self, name: str, one: Told) -> None:
        outcome = self._state.outcomes.get(name)
        if one["problem"]:
            pill("not readable", "stop", "warning")
        elif outcome is None:
            pill("not checked")
        else:
            pill(*MARKS[bool(outcome["passed"])])

    def _draw_detail(self) -> None:
        name = self._state.chosen
        assert name is not None
        one = self._releases[name]
        with tag("div", "pad part"):
            with tag("div", "row between"):
                tag("h2", text=name)
                self._state_pill(name, one)
            tag("p", "s sub", KINDS.get(one["kind"], str(one["kind"])))
        if one["problem"]:
            tag("p", "pad s", one["problem"])
            return
        _part("What was released", [_released(one), *one["warnings"]])
        self._promises(name, one)
        _part("Published exactly", one["disclosures"])
        _part("Not protected", one["not_protected"])
        _part(
            "Off by, as forecast",
            [
                f"{level['name']}: {level['forecast_l1']:,.0f} groups in {level['regions']:,} regions"
                for level in one["levels"]
                if level["forecast_l1"] is not None
            ],
        )
        with tag("div", "pad row"):
            button("Check its promises", partial(self._check, name))
            button("Open report", partial(self._open_report, name))

    def _promises(self, name: str, one: Told) -> None:
        outcome = self._state.outcomes.get(name)
        if outcome is None:
            _part("Promises, not checked yet", one["promises"])
            return
        with tag("div", "pad part"):
            tag("h3", text="Promises, recomputed")
            for check in outcome["checks"]:
                with tag("div", "row top0 s check"):
                    icon("ok" if check["passed"] else "warning", "mini" + ("" if check["passed"] else " bad"))
                    tag("span", text=f"{check['name']}: {check['found']}")

    def _choose(self, name: str) -> None:
        self._state.chosen = name
        self._draw()

    async def _check(self, name: str) -> bool:
        outcome = await self._bar.do(checked, self._folder, name, key="verify")
        if outcome is not None:
            self._state.outcomes[name] = outcome
            self._draw()
        return outcome is not None

    async def _check_all(self) -> None:
        for name, one in self._releases.items():
            if not one["problem"] and not await self._check(name):
                return

    async def _open_report(self, name: str) -> None:
        page = await self._bar.do(report_of, self._folder, name, key="report")
        if page is None:
            return
        with self._detail, Tag("dialog", "sheet", aria_label="Report") as dialog:
            with tag("div", "row between"):
                tag("h2", text="Report")
                button("Close", dialog.delete, data_close="")
            Tag("iframe", srcdoc=page, sandbox="", title="Report")
        dialog.client.run_javascript(f"document.getElementById('c{dialog.id}').showModal()")

    def _joint(self) -> None:
        if len(self._releases) < 2:
            return
        verdict(
            "care",
            "Each keeps its own promises. Together they have not been checked.",
            note="Tables and files about the same people can give away together what none does alone: `louver audit` checks "
            "tables together; epsilons add up in the ledger.",
            is_status=False,
        )

    def _texts(self) -> Texts:
        path = f"{self._folder}/{self._state.chosen}"
        return Texts(("louver", "verify", path), f"print(lv.verify({path!r}))")


def _part(title: str, lines: list[str]) -> None:
    if not any(lines):
        return
    with tag("div", "pad part"):
        tag("h3", text=title)
        for line in filter(None, lines):
            tag("p", "s", line)


def _promised(one: Told) -> str:
    if one["problem"]:
        return ""
    if not one["is_for_release"]:
        return "nothing: an evaluation, not for release"
    if not one["is_private"]:
        return "nothing: noise from a seed"
    if one["measure"]:
        return f"{one['measure']} {amount_text(one['amount'])}"
    return f"k = {one['results']['k']}" if one["results"]["k"] else "exact numbers"


def _cost(one: Told) -> str:
    if one["problem"]:
        return ""
    if one["results"]["gcp"] is not None:
        return f"{share_text(float(one['results']['gcp']))} of detail"
    off = [level["forecast_l1"] for level in one["levels"] if level["forecast_l1"] is not None]
    return f"about {off[-1]:,.0f} groups" if off else ""


def _released(one: Told) -> str:
    results = one["results"]
    if one["kind"] == "anonymize":
        return f"{results['records']:,} records in {results['classes']:,} classes."
    if one["kind"] == "groups":
        return f"How many groups have each size, at {len(one['levels'])} levels; {results['total_groups']:,} groups."
    if one["kind"] == "topdown":
        return f"{results['people']:,} people, one line each, at {len(one['levels'])} levels."
    return f"{len(one['tables'])} tables."
