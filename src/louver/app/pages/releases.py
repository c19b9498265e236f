"""Releases: everything published from one data set, side by side, with its promises recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from louver._words import counted
from louver.app.charts import points
from louver.app.copying import Texts, verify_release
from louver.app.jobs.regions import compared
from louver.app.jobs.releases import checked, listed
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    copy_button,
    drawer,
    empty,
    head,
    icon,
    pill,
    table,
    tag,
    verdict,
    verdict_of,
)
from louver.app.pages.topdown_form import TopDownChoices
from louver.app.publishing import Accepting, VerifyPanel, Ways, accepting_fields
from louver.app.region_view import RegionView
from louver.app.session import JobAnswer, Session
from louver.app.words import amount_text, date_text, share_text
from louver.release.verify import TOGETHER, judge_all

__all__ = ["build"]

KINDS = {
    "anonymize": "Microdata",
    "groups": "Group sizes",
    "topdown": "TopDown",
    "audit": "Tables",
    "protect": "Protected tables",
}
APART = (
    "Compare within a panel, never across: an exact count, k and epsilon are different promises, and lost detail is not an error. Epsilon "
    "and rho, or different neighbour relations, cannot be compared either. Errors are as published; none was measured against the truth."
)
WITH_REGIONS = ("groups", "topdown")
MARKS = {True: ("verified", "ok", "ok"), False: ("broken", "stop", "warning")}


class State:
    """The state of the page in a tab."""

    def __init__(self) -> None:
        self.chosen: str | None = None
        self.outcomes: dict[str, JobAnswer] = {}
        self.compared: dict[str, JobAnswer] = {}
        self.accepting = Accepting()


async def build(session: Session) -> None:
    """Draw the page."""
    actions = head("Releases", "everything published from one data set, side by side")
    await _ReleasesPage(session, str(session.setup.releases)).start(actions)


@dataclass(frozen=True, slots=True)
class _ReleaseLine:
    """A line of the list, and the cells in it that are filled later."""

    row: Tag
    cost: Tag
    state: Tag


@dataclass(frozen=True, slots=True)
class _ReleaseDetail:
    """The parts of a release in detail that are filled later."""

    state: Tag
    promises: Tag
    published: Tag


class _ReleasesPage:
    """The page of one tab: the list, and one release in detail."""

    def __init__(self, session: Session, folder: str) -> None:
        self._session, self._folder = session, folder
        self._state = session.state(State)
        self._releases: dict[str, JobAnswer] = {}
        self._compared = self._state.compared
        self._lines: dict[str, _ReleaseLine] = {}
        self._parts: _ReleaseDetail | None = None

    async def start(self, actions: Tag) -> None:
        self._bar = RunBar(self._session, "quick")
        with actions:
            button("Verify another…", self._open_verifying)
        found = await self._bar.do(listed, self._folder, key="releases")
        if not found:
            if found is not None:
                empty(
                    "Nothing has been released yet", "Everything published into this folder is listed here."
                )
            return
        self._releases = {one["folder"]: one for one in found}
        if self._state.chosen not in self._releases:
            self._state.chosen = next(iter(self._releases))
        with tag("div", "across releases"):
            with tag("div", "stack"):
                self._message = tag("div")
                self._charts = card("pad")
                self._list = card()
                self._regions = RegionView(self._session)
            self._detail = card("stack")
        with actions:
            button("Check all", self._check_all, kind="pri", data_run="")
            copy_button(self._texts)
        self._draw()
        self._draw_detail()
        await self._show_regions()
        await self._compare()

    def _open_verifying(self) -> None:
        """Check a release that is stored elsewhere."""
        with drawer("Verify a release", is_slim=True):
            VerifyPanel(self._session)

    async def _compare(self) -> None:
        """Read, once, the releases whose cost is only in their files."""
        kinds = (*WITH_REGIONS, "audit")
        wanted = [
            name
            for name, one in self._releases.items()
            if one["kind"] in kinds and name not in self._compared
        ]
        found = await self._bar.do(compared, self._folder, wanted, key="compare") if wanted else None
        if found:
            self._compared.update(found)
            self._update(*found)

    async def _show_regions(self) -> None:
        """Numbers by region, if the chosen release has any."""
        name = self._state.chosen
        if name is not None and self._releases[name]["kind"] in WITH_REGIONS:
            await self._regions.show(name)
        else:
            self._regions.clear()

    def _draw_charts(self) -> None:
        """Three panels, each with its own axis: a table, a k and an epsilon are different promises."""
        numbered = list(enumerate(self._releases.items(), start=1))
        lines = [(number, one, self._compared.get(name, {})) for number, (name, one) in numbered]
        self._charts.clear()
        with self._charts:
            with tag("div", "across thirds"):
                _panel(
                    "Tables",
                    "numbers hidden or rounded, percent",
                    [(c["small"], 100 * c["lost"], number) for number, _, c in lines if "small" in c],
                    across="small counts shown, safer to the left",
                )
                _panel(
                    "Microdata",
                    "detail lost, percent of each range",
                    [
                        (float(one["results"]["k"]), 100 * float(one["results"]["gcp"]), number)
                        for number, one, _ in lines
                        if one["kind"] == "anonymize" and one["results"]["gcp"] is not None
                    ],
                    across="k, safer to the left",
                    is_reversed=True,
                )
                _panel(
                    "Noise",
                    "published standard error in a smallest region, percent",
                    [
                        ((str(one["measure"]), Fraction(one["amount"])), 100 * c["off"], number)
                        for number, one, c in lines
                        if "off" in c and one["amount"]
                    ],
                    across="epsilon, then rho; safer to the left",
                    tick=_amount_tick,
                )
            with tag("p", "s sub row"):
                icon("info", "mini")
                tag("span", text=APART)

    def _draw(self) -> None:
        """The list, built once: later findings are filled into its lines, so that no click is lost."""
        columns = {"#": "r", "Release": "", "Kind": "", "What is promised": "", "What it costs": ""}
        with self._list, table(columns | {"When": "", "State": ""}):
            for number, (name, one) in enumerate(self._releases.items(), start=1):
                self._lines[name] = self._line(number, name, one)
        self._update(*self._releases)

    def _update(self, *names: str) -> None:
        """Show what is known about the releases, in their lines, on the charts and next to them."""
        self._draw_charts()
        self._message.clear()
        with self._message:
            verdict_on(self._releases, self._state.outcomes)
        for name in names:
            line, one = self._lines[name], self._releases[name]
            line.cost.text = _cost(one, self._compared.get(name, {}))
            line.state.clear()
            with line.state:
                self._state_pill(name, one)
        if self._state.chosen in names:
            self._fill_detail()

    def _line(self, number: int, name: str, one: JobAnswer) -> _ReleaseLine:
        with tag("tr", "sel" if name == self._state.chosen else "") as row:
            tag("td", "r", str(number))
            with tag("td"):
                button(name, partial(self._choose, name), kind="ghost mini")
            tag("td", "", KINDS.get(one["kind"], str(one["kind"])))
            tag("td", "", _promised(one))
            cost = tag("td")
            tag("td", "s nowrap", date_text(one["created"]) if one["created"] else "")
            return _ReleaseLine(row, cost, tag("td"))

    def _state_pill(self, name: str, one: JobAnswer) -> None:
        outcome = self._state.outcomes.get(name)
        if one["problem"]:
            pill("not readable", "stop", "warning")
        elif outcome is None:
            pill("not checked")
        else:
            pill(*MARKS[bool(outcome["passed"])])

    def _draw_detail(self) -> None:
        """The chosen release, built once: later findings are filled in, so that no click is lost."""
        name = self._state.chosen
        assert name is not None
        self._detail.clear()
        with self._detail:
            self._parts = self._detail_of(name, self._releases[name])
        self._fill_detail()

    def _detail_of(self, name: str, one: JobAnswer) -> _ReleaseDetail:
        with tag("div", "pad part"):
            with tag("div", "row between"):
                tag("h2", text=name)
                state = tag("div")
            tag("p", "s sub", KINDS.get(one["kind"], str(one["kind"])))
        if one["problem"]:
            tag("p", "pad s", one["problem"])
            return _ReleaseDetail(state, tag("div"), tag("div"))
        _part("What was released", [_released(one), *one["warnings"]])
        promises = tag("div")
        _part(
            "Protected by noise",
            [one["neighbours"] and f"It is hard to tell whether {one['neighbours']}."],
        )
        _part("Published exactly", one["disclosures"])
        _part("Not protected", one["not_protected"])
        _part(
            "Forecast error",
            [
                f"{level['name']}: {level['forecast_l1']:,.0f} groups in {counted(level['regions'], 'region')}"
                for level in one["levels"]
                if level["forecast_l1"] is not None
            ],
        )
        with tag("div", "pad stack"):
            accepting_fields(self._state.accepting)
        with tag("div", "pad row wrap"):
            button("Check its promises", partial(self._check, name), kind="mini")
            Ways(self._session, self._bar, name)
            if one["kind"] == "topdown" and one["is_private"] and "extension" not in one["promises"]:
                button("Extend…", partial(self._extend, name), kind="mini")
        published = tag("div")  # placed last: its answer comes late and must not move the buttons
        return _ReleaseDetail(state, promises, published)

    def _fill_detail(self) -> None:
        """Show what is known about the chosen release."""
        name, parts = self._state.chosen, self._parts
        if name is None or parts is None:
            return
        one = self._releases[name]
        for part in (parts.state, parts.promises, parts.published):
            part.clear()
        with parts.state:
            self._state_pill(name, one)
        if one["problem"]:
            return
        with parts.promises:
            self._promises(name, one)
        off = self._compared.get(name, {}).get("off")
        if off is not None:
            level = one["levels"][-1]["name"]
            with parts.published:
                _part(
                    "Published error",
                    [f"{level}: its number of people has a standard error of {share_text(off)}"],
                )

    def _extend(self, name: str) -> None:
        """Give the people of a release new or finer attributes, on the page TopDown."""
        self._session.state(TopDownChoices).extending = name
        self._session.show("topdown")

    def _promises(self, name: str, one: JobAnswer) -> None:
        outcome = self._state.outcomes.get(name)
        if outcome is None:
            _part("Promises, not checked yet", one["promises"])
            return
        with tag("div", "pad part"):
            tag("h3", text="Promises, recomputed")
            for check in _shortened(outcome["checks"]):
                with tag("div", "row top0 s check"):
                    icon("ok" if check["passed"] else "warning", "mini" + ("" if check["passed"] else " bad"))
                    tag("span", text=f"{check['name']}: {check['found']}")

    async def _choose(self, name: str) -> None:
        if self._state.chosen is not None:
            self._lines[self._state.chosen].row.classes(remove="sel")
        self._lines[name].row.classes(add="sel")
        self._state.chosen = name
        self._draw_detail()
        await self._show_regions()

    async def _check(self, name: str) -> bool:
        outcome = await self._bar.do(
            checked,
            self._folder,
            name,
            self._state.accepting.skip_report,
            self._state.accepting.strings,
            key=f"verify {name}",
        )
        if outcome is not None:
            self._state.outcomes[name] = outcome
            if not self._bar.is_gone:
                self._update(name)
        return outcome is not None and not self._bar.is_gone

    async def _check_all(self) -> None:
        for name, one in self._releases.items():
            if not one["problem"] and not await self._check(name):
                return

    def _texts(self) -> Texts:
        accepting = self._state.accepting
        return verify_release(
            f"{self._folder}/{self._state.chosen}",
            skip_report=accepting.skip_report,
            accept_strings=accepting.strings,
        )


def verdict_on(releases: Mapping[str, JobAnswer], outcomes: Mapping[str, JobAnswer]) -> None:
    """The verdict of the checks so far on all releases."""
    passed = {
        name: False if one["problem"] else outcomes[name]["passed"] if name in outcomes else None
        for name, one in releases.items()
    }
    found = judge_all(passed)
    if found is not None:
        verdict_of(found.to_dict())
        return
    bold = "No promise has been checked yet." if not outcomes else "Not all promises have been checked yet."
    note = TOGETHER if len(releases) > 1 else ""
    verdict("plain", bold, "Check all recomputes them from the published files.", note)


def _part(title: str, lines: list[str]) -> None:
    if not any(lines):
        return
    with tag("div", "pad part"):
        tag("h3", text=title)
        for line in filter(None, lines):
            tag("p", "s", line)


def _shortened(checks: list[JobAnswer]) -> list[JobAnswer]:
    """The checks of unchanged files as one line, below the checks of their content."""
    same = [check for check in checks if check["passed"] and check["name"].startswith("file ")]
    together = {"name": counted(len(same), "file"), "passed": True, "found": "unchanged"}
    return [*(check for check in checks if check not in same), *([together] if same else [])]


def _promised(one: JobAnswer) -> str:
    if one["problem"]:
        return ""
    if not one["is_for_release"]:
        return "nothing: an evaluation, not for release"
    if not one["is_private"]:
        return "nothing: noise from a seed"
    if one["measure"]:
        return f"{one['measure']} {amount_text(one['amount'])}"
    return f"k = {one['results']['k']}" if one["results"]["k"] else "exact numbers"


def _cost(one: JobAnswer, found: JobAnswer) -> str:
    if one["problem"]:
        return ""
    if one["results"]["gcp"] is not None:
        return f"{share_text(float(one['results']['gcp']))} of detail"
    if "lost" in found:
        return f"{share_text(found['lost'])} hidden or rounded"
    return f"± {share_text(found['off'])} in a {one['levels'][-1]['name']}" if "off" in found else ""


def _panel(title: str, about: str, places: list[tuple[Any, float, int]], *, across: str, **more: Any) -> None:
    with tag("div", "panel"):
        tag("h2", text=title)
        tag("p", "s sub", about)
        points(places, across=across, up=about.capitalize(), **more)


def _amount_tick(place: tuple[str, Fraction]) -> str:
    measure, amount = place
    return f"{'ρ' if measure == 'rho' else 'ε'} {float(amount):.3g}"


def _released(one: JobAnswer) -> str:
    results = one["results"]
    if one["kind"] == "anonymize":
        return f"{results['records']:,} records in {results['classes']:,} classes."
    if one["kind"] == "groups":
        return f"How many groups have each size, at {len(one['levels'])} levels; {results['total_groups']:,} groups."
    if one["kind"] == "topdown":
        return f"{results['people']:,} people, one row each, at {len(one['levels'])} levels."
    return f"{len(one['tables'])} tables."
