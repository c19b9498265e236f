"""The frame around every page (rail, top bar and main part), and the routes of the server."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from nicegui import Client, ElementFilter, app, background_tasks, ui
from starlette.requests import Request
from starlette.responses import Response

from louver.app.controls import ask_to_replace
from louver.app.jobs.ledgers import ledger_left
from louver.app.look import Tag, icon, problem
from louver.app.pages import PAGES, Page
from louver.app.session import Opened, Session, Setup
from louver.app.words import amount_text
from louver.app.work import SPARE_AFTER_SECONDS, end_spares, prepare
from louver.errors import Cancelled, LouverError, internal_error

__all__ = ["install"]

ASSETS = Path(__file__).with_name("assets")
HEAD = '<link rel="stylesheet" href="assets/louver.css"><script src="assets/louver.js"></script>'
"""Below the prefix of the page load; the script then removes the prefix from the address."""
CONNECT_SECONDS = 60.0
START, FIRST = "start", "data"
"""Pages shown first: without data, and with data."""
LOGO = (
    '<rect x="1" y="1" width="20" height="20" rx="4" fill="var(--accent)"/><g stroke="var(--on-accent)" stroke-width="2" '
    'stroke-linecap="round"><path d="M5.500 7.500 16.500 5.500M5.500 12l11-2M5.500 16.500l11-2"/></g>'
)


def install(setup: Setup) -> None:
    """Register the page, the upload and the assets with the framework; sessions end with their tabs, or with the server."""
    sessions: dict[str, Session] = {}
    shells: dict[str, Shell] = {}

    def end(client_id: str) -> None:
        shells.pop(client_id, None)
        if (session := sessions.pop(client_id, None)) is not None:
            session.close()

    async def page(client: Client) -> None:
        await client.connected(timeout=CONNECT_SECONDS)
        session = sessions[client.id] = Session(setup)
        client.on_delete(lambda: end(client.id))
        shells[client.id] = Shell(session, client)
        await shells[client.id].start()

    async def upload(request: Request) -> Response:
        shell = shells.get(request.path_params["client_id"])
        if shell is None:
            return Response(status_code=404)
        purpose = request.headers.get("x-purpose", "")
        await shell.take_upload(unquote(request.headers.get("x-name", "")), purpose, request)
        return Response(status_code=204)

    ui.add_head_html(HEAD, shared=True)
    app.add_static_files("/assets", ASSETS)
    app.add_route("/upload/{client_id}", upload, methods=["POST"])
    ui.page("/")(page)

    def end_all() -> None:
        for client_id in list(sessions):
            end(client_id)
        end_spares()

    app.on_startup(prepare)
    app.on_shutdown(end_all)


class Shell:
    """The frame of one tab."""

    def __init__(self, session: Session, client: Client) -> None:
        self._session, self._client = session, client
        self._task: asyncio.Task[None] | None = None
        self._page = PAGES[FIRST]
        session.show, session.refresh_top = self.show, self._draw_top
        session.refresh_ledger = self.refresh_ledger
        session.tell = self._tell_sentence
        session.mark_work = self._mark_work
        self._has_work = False

    async def start(self) -> None:
        """Draw the frame, open the first data, and show the page that the address names."""
        wanted = await self._client.run_javascript("location.hash.slice(1)", timeout=CONNECT_SECONDS)
        with self._client.content:
            Tag("a", "skip", "Skip to the page", href="#main")
            with Tag("div", "app"):
                self._top = Tag("header", "top")
                self._rail = Tag("nav", "rail", aria_label="Pages")
                self._main = Tag("main", "main", id="main", tabindex=-1)
            Tag("div", "announcer", role="status", id="announcer")
            self._session.say = Tag("div", "announcer", role="status").set_text
            _keys_help()
        self._client.on_exception(self._tell)
        ui.on("louver_go", lambda e: self.show(str(e.args)))
        first = FIRST if self._session.open_start() else START
        self._session.warm()
        asyncio.get_running_loop().call_later(SPARE_AFTER_SECONDS, prepare)
        self.show(wanted or first)
        background_tasks.create(self.refresh_ledger())

    def _mark_work(self) -> None:
        """Let the browser ask before it leaves a page with work that would be lost."""
        has_work = self._session.has_work
        if has_work != self._has_work and not self._main.is_deleted:
            self._has_work = has_work
            self._client.run_javascript(f"louver.unsaved = {str(has_work).lower()}")

    async def refresh_ledger(self) -> None:
        """Show the balance below the rail."""
        if self._session.setup.ledger is None:
            return
        with suppress(LouverError):  # the page Ledger shows the error
            # Without a key, so that no request is dropped as late: one made after spending must show the new balance.
            self._session.balance = await self._session.ask(
                ledger_left, str(self._session.setup.ledger), key=""
            )
        if not self._rail.is_deleted:
            with self._client:
                self._draw_rail()

    def show(self, name: str) -> None:
        """Go to a page."""
        self._page = PAGES.get(name, PAGES[FIRST])
        if self._task is not None:
            self._task.cancel()
        with self._client:
            for drawer in ElementFilter(kind=Tag, marker="drawer"):
                drawer.delete()
            self._draw_rail()
            self._draw_top()
            self._mark_work()
            self._main.clear()
            self._client.run_javascript(f"louver.at('{self._page.name}')")
            self._task = background_tasks.create(self._build(self._page))

    async def take_upload(self, name: str, purpose: str, request: Request) -> None:
        """Keep an upload, and give it to the page that asked for it, or open it on the first page."""
        with self._client:
            try:
                if purpose:
                    await self._session.receive(purpose, name, request.stream())
                    return
                kept = await self._session.keep(name, request.stream())
            except Exception as error:  # noqa: BLE001 - the page tells where
                self._tell(error)
                return
            self._offer(kept, is_chosen=request.headers.get("x-chosen") == "yes")

    def _offer(self, kept: Opened, *, is_chosen: bool) -> None:
        """Open an upload; one dropped on a page may have been meant for something else, so ask first if a file is open."""

        def take() -> None:
            self._session.open(kept)
            self.show(FIRST)

        with self._main:
            question = None if is_chosen else ask_to_replace(self._session, f"Open {kept.name}", take)
        if question is None:
            take()
        else:
            question.show()

    def _tell(self, error: Exception) -> None:
        """Report an unexpected error by its location in the code, never by its message. A late answer is not an error."""
        if isinstance(error, Cancelled) or self._main.is_deleted:
            return
        with self._main:
            problem(str(error) if isinstance(error, LouverError) else f"{internal_error(error)}.").move(
                target_index=0
            )

    def _tell_sentence(self, sentence: str) -> None:
        self._tell(LouverError(sentence))

    async def _build(self, page: Page) -> None:
        with self._client, self._main:
            try:
                await page.build(self._session)
            except Exception as error:  # noqa: BLE001 - the page tells where
                self._tell(error)

    def _draw_rail(self) -> None:
        self._rail.clear()
        with self._rail:
            is_below = False
            for page in PAGES.values():
                if page.is_below and not is_below:
                    Tag("div", "sep")
                is_below = page.is_below
                _rail_link(page, is_current=page is self._page)
            with Tag("div", "foot s"):
                _ledger_foot(self._session)

    def _draw_top(self) -> None:
        opened = self._session.opened
        self._top.clear()
        with self._top:
            with Tag("div", "brand"):
                Tag("svg", viewBox="0 0 22 22", aria_hidden="true", innerHTML=LOGO)
                Tag("span", text="louver")
            with Tag("div", "file"):
                icon("file")
                Tag("span", text="No data" if opened is None else opened.name)
                Tag("span", "sub", self._session.shape)
            Tag("div", "grow")
            with Tag("span", "inside" if self._page.is_inside else "inside public"):
                icon("hidden" if self._page.is_inside else "ok", "mini")
                Tag("span", text="Inside view" if self._page.is_inside else "Only published numbers")
                if self._page.is_inside:
                    Tag("span", "long", "· confidential counts, do not share this screen")
            _round_button("moon", "Light or dark", "() => louver.theme()")
            _round_button("help", "Keys", "() => louver.help()")


def _rail_link(page: Page, *, is_current: bool) -> None:
    current: dict[str, Any] = {"aria_current": "page"} if is_current else {}
    with Tag(
        "a",
        "on" if is_current else "",
        href=f"#{page.name}",
        title=f"{page.title} (g {page.letter})",
        **current,
    ):
        icon(page.icon)
        Tag("span", text=page.title)


def _ledger_foot(session: Session) -> None:
    """The balance, below the rail."""
    if session.setup.ledger is None:
        Tag("b", "b", "No ledger")
        with Tag("p", "sub"):
            Tag("span", text="Nothing can be spent. Make one on the page Ledger to publish with noise.")
        return
    left = session.balance
    with Tag("div", "row between"):
        Tag("b", "b", "Ledger")
        Tag("span", text="" if left is None else f"{left['measure']} {amount_text(left['left'])} left")
    if left is not None and Fraction(left["granted"]) > 0:
        granted = Fraction(left["granted"])
        with Tag("div", "gauge"):
            for part, colour in (("left", "accent"), ("held", "d-exact")):
                Tag("i").style(
                    f"width:{float(100 * Fraction(left[part]) / granted):.1f}%;background:var(--{colour})"
                )
        held = f"; {amount_text(left['held'])} held" if Fraction(left["held"]) else ""
        Tag("p", "sub", f"of {amount_text(left['granted'])} granted{held}")


def _round_button(name: str, label: str, handler: str) -> None:
    with Tag("button", "round", type="button", aria_label=label, title=label) as made:
        icon(name)
    made.on("click", js_handler=handler)


def _keys_help() -> None:
    keys = [
        *((f"g {page.letter}", page.title) for page in PAGES.values()),
        ("?", "this list"),
        ("Ctrl Z", "undo"),
        ("Ctrl Enter", "run"),
        ("Ctrl Shift C", "copy as a command"),
        ("Esc", "cancel, or close"),
    ]
    with Tag("dialog", "keys", id="keys", aria_label="Keys"):
        Tag("h2", text="Keys")
        with Tag("dl"):
            for key, text in keys:
                with Tag("dt"):
                    Tag("kbd", text=key)
                Tag("dd", text=text)
        Tag("button", "btn", "Close", type="button").on("click", js_handler="() => louver.help()")
