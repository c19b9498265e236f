"""What one tab does at once: answers that come after another choice, another page or another click."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from nicegui import Client, core, ui

from louver._verdict import Level, Verdict
from louver.app import controls, look, region_view
from louver.app.controls import Confirm
from louver.app.pages import groups as groups_page
from louver.app.pages import ledger as ledger_page
from louver.app.pages import tables as tables_page
from louver.app.pages.tables_panels import CategoriesPanel
from louver.app.pages.tables_state import Tables
from louver.app.regions import Region, Regions
from louver.app.session import Session, Setup
from louver.app.spending import Strip
from louver.errors import Cancelled
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation

LOSS = Loss(Fraction(1), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)


class Held(Session):
    """A session whose jobs are answered when the test says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Setup(folder=folder, releases=folder, ledger=folder / "some.ledger"))
        self.asked: list[tuple[tuple[Any, ...], asyncio.Future[Any]]] = []
        self.ended: list[tuple[str, str]] = []

    async def ask(self, job: Callable[..., Any], *args: Any, **how: Any) -> Any:
        self.asked.append((args, asyncio.get_running_loop().create_future()))
        return await self.asked[-1][1]

    def cancel(self, lane: str, key: str = "") -> None:
        self.ended.append((lane, key))


def on_a_page(tmp_path: Path, story: Callable[[Held, ui.element], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        core.loop = asyncio.get_running_loop()
        client = Client(ui.page("/"))
        try:
            with client.content, ui.element() as page:
                await story(Held(tmp_path), page)
        finally:
            client.delete()
            core.loop = None

    asyncio.run(told())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_confirmed_thing_is_done_once(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        done: list[int] = []

        async def pay() -> None:
            done.append(1)
            await asyncio.sleep(0)

        dialog = Confirm("Pay?", "", "Pay", pay)
        await asyncio.gather(dialog.do(), dialog.do())
        assert done == [1]
        await dialog.do()
        assert done == [1, 1], "but again where somebody asks again"

    on_a_page(tmp_path, story)


def regions(name: str) -> Regions:
    return Regions("People", ("all",), (Region(0, name, name, -1, 5, None, None, None),))


def test_the_regions_of_the_release_that_was_chosen_last_are_shown(tmp_path: Path) -> None:
    """One that must be read is overtaken by one that is known; then by one that has none."""

    async def story(session: Held, page: ui.element) -> None:
        view = region_view.RegionView(session)
        first = asyncio.create_task(view.show("slow"))
        await settled()
        session._states[region_view.Looked].trees["known"] = region_view.Folded(regions("known"))
        await view.show("known")
        session.asked[0][1].set_result(regions("slow"))
        await first
        assert view._regions.regions[0].name == "known"
        second = asyncio.create_task(view.show("other"))
        await settled()
        view.clear()
        session.asked[1][1].set_result(regions("other"))
        await second
        assert not list(view._place.descendants())

    on_a_page(tmp_path, story)


def test_cancel_ends_what_the_bar_shows_and_nothing_else(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        bar = look.RunBar(session, "long")
        running = asyncio.create_task(bar.do(print, key="curve"))
        await settled()
        bar.cancel()
        assert session.ended == [("long", "curve")]
        page.clear()
        session.asked[0][1].set_exception(Cancelled())
        assert await running is None and bar.is_gone and bar.is_cancelled

    on_a_page(tmp_path, story)


def test_cancel_does_not_end_a_search_that_was_begun_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "KEEP_SECONDS", 0.0)

    async def story(session: Held, page: ui.element) -> None:
        bar = controls.SearchBar(session, "long", lambda lost, least: "", is_kept=True)
        first = asyncio.create_task(bar.do(print, key="suggest"))
        await settled()
        bar.cancel()
        session.asked[0][1].set_result("kept")
        assert await first == "kept"
        second = asyncio.create_task(bar.do(print, key="suggest"))
        await asyncio.sleep(0.01)
        assert session.ended == []
        session.asked[1][1].set_result("found")
        assert await second == "found"

    on_a_page(tmp_path, story)


def test_a_drawer_that_was_closed_stays_closed(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        checked = asyncio.Event()
        state = Tables(attributes=[{"name": "sex", "labels": ["f", "m"]}], rows=["sex"])
        panel = CategoriesPanel(state, "sex", None, lambda words: checked.wait())
        merging = asyncio.create_task(panel._split())
        await settled()
        drawn = panel._drawer
        drawn.delete()
        checked.set()
        await merging
        assert panel._drawer is drawn

    on_a_page(tmp_path, story)


def strip_of(session: Held) -> tuple[Strip, groups_page.GroupsChoices]:
    asked = groups_page.GroupsChoices()
    asked.name = "new"
    balances = iter(["2", "2", "1", "1", "1", "1"])

    async def refresh() -> None:
        session.balance = {
            "measure": "epsilon",
            "neighbours": "add-remove-record",
            "granted": "2",
            "left": next(balances),
            "held": "0",
        }

    session.refresh_ledger = refresh
    strip = Strip(
        session,
        asked,
        records="",
        stem="new",
        loss=lambda: LOSS,
        job=lambda: (print,),
        title=lambda found: "Released",
    )
    return strip, asked


def test_one_measurement_at_a_time(tmp_path: Path) -> None:
    """A second is refused, on whatever page; what came of the first is told on the page that is shown then."""

    async def story(session: Held, page: ui.element) -> None:
        strip, asked = strip_of(session)
        await strip._refresh_ledger(LOSS)
        first = asyncio.create_task(strip._measure())
        await settled()
        with page:
            other, _ = strip_of(session)
        await other._measure()
        assert "under way" in other._bar.sentence and len(session.asked) == 1
        said: list[str] = []
        session.tell = said.append
        page.clear()
        session.asked[0][1].set_exception(Cancelled())
        await first
        assert asked.result is None and "cancelled" in said[0] and not session.is_spending

    on_a_page(tmp_path, story)


def test_a_measurement_is_found_again_on_another_page(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        strip, asked = strip_of(session)
        await strip._refresh_ledger(LOSS)
        first = asyncio.create_task(strip._measure())
        await settled()
        page.clear()
        with page:
            again, _ = strip_of(session)
        again._state = asked
        shown = asyncio.create_task(again.start())
        await settled()
        session.asked[0][1].set_result({"verdict": Verdict(Level.OK, "Promised.").to_dict()})
        await first
        while len(session.asked) < 2:
            await asyncio.sleep(0.01)
        session.asked[1][1].set_result(None)  # its regions
        await shown
        assert asked.result is not None and asked.result["name"] == "new" and again._button.descendants()

    on_a_page(tmp_path, story)


def test_what_others_spent_meanwhile_is_looked_at_first(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        strip, _ = strip_of(session)
        await strip._refresh_ledger(LOSS)
        await strip._refresh_ledger(LOSS)
        await strip._measure()
        assert "the ledger has been used by others" in strip._bar.sentence and not session.asked
        running = asyncio.create_task(strip._measure())
        await settled()
        (tmp_path / "new").mkdir()
        session.asked[0][1].set_exception(Cancelled())
        await running
        assert "cancelled too late" in strip._bar.sentence

    on_a_page(tmp_path, story)


def test_a_forecast_of_other_regions_is_not_shown(tmp_path: Path) -> None:
    """Every region is unticked while the forecast is made: nothing can be measured then."""

    async def story(session: Held, page: ui.element) -> None:
        shown = groups_page._GroupsPage(session)
        asked = session.state(groups_page.GroupsChoices)
        await shown.start()
        asked.domain, asked.columns, asked.regions = "x.csv", ["state"], ["state"]
        forecast = asyncio.create_task(shown._update())
        await settled()
        await shown._toggle("state")
        told = {"amount": "1", "measure": "epsilon", "neighbours": "add-remove-record"}
        session.asked[0][1].set_result({"loss": told, "levels": []})
        await forecast
        assert asked.loss is None

    on_a_page(tmp_path, story)


def test_neighbours_are_told_in_the_words_of_the_page(tmp_path: Path) -> None:
    """Before the ledger is known nothing can be measured: its refusal would name an option of the command line."""

    async def story(session: Held, page: ui.element) -> None:
        strip, _ = strip_of(session)
        assert strip._left(LOSS) == (strip._left(None)[0], False) and "not known yet" in strip._left(LOSS)[0]
        await strip.start()
        assert session.balance is not None and strip._left(LOSS)[1]
        session.balance["neighbours"] = "add-remove-unit"
        told, is_payable = strip._left(LOSS)
        assert "choose that under Neighbours" in told and "--" not in told and not is_payable

    on_a_page(tmp_path, story)


def test_no_debit_is_given_up_while_it_is_measured(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        entry = {"entry": 3, "amount": "1", "purpose": "crashes"}
        ledger_page._held(entry, None)
        texts = [str(getattr(element, "text", "")) for element in page.descendants()]
        assert "Entry 3 is under way" in texts and not any("Give up" in text for text in texts)

    on_a_page(tmp_path, story)


def test_a_table_that_was_taken_apart_since_is_not_shown(tmp_path: Path) -> None:
    async def story(session: Held, page: ui.element) -> None:
        session.open_sample("survey")
        shown = tables_page._TablesPage(session)
        shown.draw()
        shown.state.attributes = [{"name": name, "labels": ["a", "b"]} for name in ("sex", "age")]
        shown.state.rows, shown.state.cols = ["sex"], ["age"]
        auditing = asyncio.create_task(shown.check("As opened"))
        await settled()
        await shown.moved({"name": "sex", "to": "out", "index": 0})
        session.asked[0][1].set_result({})
        await auditing
        assert shown.shown is None and not shown.state.tries

    on_a_page(tmp_path, story)
