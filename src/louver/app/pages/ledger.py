"""Ledger: what has been spent on a data set, what is left, and what was interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from louver.app.charts import steps
from louver.app.controls import Confirm
from louver.app.copying import show_ledger
from louver.app.jobs.ledgers import admitted, given_up, granted, ledger_made, ledger_read, ledgers_there
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    check,
    choice,
    copy_button,
    field,
    head,
    icon,
    number_tile,
    pill,
    table,
    tag,
    verdict,
    verdict_of,
)
from louver.app.session import JobAnswer, Session
from louver.app.words import RELATIONS, amount_text
from louver.errors import InputError
from louver.privacy.ledger import SUFFIX, ledger_next_to

__all__ = ["NewLedger", "build", "place_of"]

KINDS = {
    "init": "Opened",
    "grant": "Grant",
    "reserve": "Debit",
    "disclosure": "Exact",
    "refusal": "Refused",
    "admit": "Admitted",
    "people": "People",
    "succeeded": "Closed",
}
VERBS = {
    "bounds": "Tables",
    "audit": "Tables",
    "protect": "Protected tables",
    "anonymize": "Microdata",
    "groups": "Group sizes",
    "topdown": "TopDown",
}
STATES = {"sealed": ("ok", "ok"), "pending": ("care", "clock"), "abandoned": ("care", "warning")}
Do = Callable[..., Awaitable[None]]


async def build(session: Session) -> None:
    """Draw the page."""
    ledger = session.setup.ledger
    actions = head("Ledger", "what has been spent on this data set, and what is left")
    if ledger is None:
        await NewLedger(session).start()
        return
    releases = str(session.setup.releases) if session.setup.releases.is_dir() else None
    bar = RunBar(session, "quick")
    body = tag("div", "stack")

    async def do(job: Callable[..., Any], *args: Any) -> None:
        content = await bar.do(
            job, str(ledger), releases, *args, key=job.__name__
        )  # reading the ledger does not delay a grant
        if content is not None:
            if not bar.is_gone:
                body.clear()
                with body:
                    _show(content, do, is_spending=session.is_spending)
            if session.refresh_ledger is not None:
                await session.refresh_ledger()

    with actions:
        _grant_button(do)
        _admit_button(session, do)
        if not session.is_spending:
            button("Another ledger…", partial(_draw_choice, session, body))
        copy_button(lambda: show_ledger(str(ledger)))
    await do(ledger_read)


async def _draw_choice(session: Session, body: Tag) -> None:
    """Other data are about other people: make a ledger for them, or choose theirs."""
    body.clear()
    with body:
        await NewLedger(session).start()


def _grant_button(do: Do) -> None:
    typed = {"amount": ""}
    dialog = Confirm(
        "Grant more?",
        "This allows more to be spent on the same people. It cannot be undone.",
        "Grant",
        lambda: do(granted, typed["amount"]),
    )
    with dialog.inside, Tag("label", "field"):
        Tag("span", "s sub", "Amount to add")
        Tag("input", "inp", inputmode="decimal").changed(lambda text: typed.update(amount=text))
    dialog.opens(button("Grant more…", icon_name="plus"))


def _admit_button(session: Session, do: Do) -> None:
    """Button that admits the open data once the user confirms that they are about the same people."""
    opened = session.opened
    if opened is None or opened.is_sample:
        return
    name = "the database" if "://" in opened.path else opened.name
    source = opened.source
    said = {"is_new": False}
    dialog = Confirm(
        "Let this ledger pay for the open data?",
        f"Do so only if {name} is about the same people: spending on it then counts together with the rest.",
        "Admit",
        lambda: do(admitted, opened.path, name, source.table, source.query, said["is_new"]),
    )
    with dialog.inside:
        check(
            "These are different people from those of the other ledgers in the folder",
            False,
            lambda is_new: said.update(is_new=is_new),
        )
    dialog.opens(button("Admit the open data…"))


def _show(content: JobAnswer, do: Do, *, is_spending: bool) -> None:
    left = amount_text(content["remaining"])
    by = RELATIONS.get(content["neighbours"], content["neighbours"])
    with verdict_of(
        content["check"]["verdict"],
        note=f"{left} of {amount_text(content['granted'])} can still be spent. "
        f"It counts {content['measure']} for neighbours that differ by {by}. Checked when this page was opened.",
    ):
        button("Check again", partial(do, ledger_read))
    with tag("div", "across ledger"):
        with card("pad"):
            tag("h2", text=f"{content['measure'].capitalize()} left")
            steps(_balance(content["history"]), held=float(Fraction(content["held"])))
        with tag("div", "stack"):
            number_tile(left, "left to spend")
            number_tile(
                amount_text(Fraction(content["spent"]) - Fraction(content["held"])), "spent, for good"
            )
            number_tile(amount_text(content["held"]), "held")
        with tag("div", "stack"):
            for entry in content["pending"]:
                _held(entry, None if is_spending else do)
            if not content["pending"]:
                with card("pad"):
                    tag("h2", text="No amount is held")
                    tag("p", "s sub", "Every debit was completed.")
    _entries(content)


def _held(entry: JobAnswer, do: Do | None) -> None:
    """A debit that is not sealed; while this tab is measuring, it may be this tab's own and cannot be given up."""
    number = entry["entry"]
    with card("pad held"):
        with tag("div", "row"):
            icon("clock")
            tag(
                "h2", text=f"Entry {number} is under way" if do is None else f"Entry {number} was interrupted"
            )
        tag("p", "s", str(entry["purpose"]))
        tag(
            "p",
            "s sub",
            f"{amount_text(entry['amount'])} is held for it. Running the same command again draws the same noise and pays "
            "nothing more.",
        )
        if do is None:
            tag("p", "s sub", "This tab is measuring. Check again when it has finished.")
            return
        tag(
            "p",
            "s sub",
            "Abandoning it erases its key. Its cost stays spent. Do so only if it is not running anywhere else.",
        )
        dialog = Confirm(
            f"Abandon entry {number}?",
            "Its noise can never be drawn again, and the amount stays spent. This cannot be undone.",
            "Give up",
            partial(do, given_up, number),
        )
        dialog.opens(button(f"Give up {amount_text(entry['amount'])}…", kind="stop mini"))


def _balance(history: Sequence[JobAnswer]) -> list[tuple[float, float, int]]:
    """Time, balance afterwards, and entry: grants add, debits subtract."""
    left, points = Fraction(0), []
    for event in history:
        if event["amount"] is None or event["kind"] not in ("init", "grant", "reserve"):
            continue
        sign = -1 if event["kind"] == "reserve" else 1
        left += sign * Fraction(event["amount"])
        points.append((datetime.fromisoformat(event["at"]).timestamp(), float(left), event["entry"]))
    return points


def _entries(content: JobAnswer) -> None:
    shown = [
        one
        for one in content["history"]
        if one["kind"] not in ("seal", "abandon", "handed over") and (one["kind"] != "people" or one["what"])
    ]
    columns = {"#": "r", "When": "", "What": "", "Purpose, or what was published exactly": ""}
    columns |= {content["measure"].capitalize(): "r", "Release": "", "State": ""}
    with card(), table(columns):
        for event in reversed(shown):
            _entry(event)


def _release_name(folder: str) -> str:
    """The name of a release; its measurements are sealed in a hidden folder next to it."""
    is_next_to = folder.startswith(".") and folder.endswith(".topdown")
    return folder[1:].removesuffix(".topdown") if is_next_to else folder


def _entry(event: JobAnswer) -> None:
    with tag("tr"):
        tag("td", "r", str(event["entry"]))
        tag("td", "nowrap", event["at"][:16].replace("T", " "))
        tag("td", "b", VERBS.get(event["verb"] or "", KINDS.get(event["kind"], str(event["kind"]))))
        tag("td", "s", event["what"] or "")
        sign = "+ " if event["kind"] in ("init", "grant") else ""
        tag("td", "r b", "" if event["amount"] is None else f"{sign}{amount_text(event['amount'])}")
        tag("td", "s", _release_name(event["release"] or ""))
        with tag("td"):
            if event["state"]:
                kind, mark = STATES.get(event["state"], ("", "info"))
                pill("held" if event["state"] == "pending" else event["state"], kind, mark)
            elif event["kind"] in ("disclosure", "refusal"):
                pill("logged")


MEASURES = {"epsilon": "epsilon, for Laplace noise", "rho": "rho, for Gaussian noise"}


def place_of(session: Session, name: str) -> Path:
    """Where a new ledger is kept: next to the file that the explorer was started with, otherwise in the folder of releases.

    Raises
    ------
    InputError
        If the name is not a plain file name.
    """
    opened, file = session.opened, session.setup.file
    if opened is not None and opened.path == file and "://" not in opened.path:
        return ledger_next_to(Path(opened.path))
    plain = name.removesuffix(SUFFIX)
    if not plain or not plain.isprintable() or plain.startswith((".", "-")) or set(plain) & set("/\\:"):
        raise InputError("the ledger needs a simple name, such as people.")
    return session.setup.releases / f"{plain}{SUFFIX}"


class NewLedger:
    """A form that makes a ledger, and a list of the existing ones."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._typed = {"name": self._stem(), "amount": "1", "population": ""}
        self._chosen = {"measure": "epsilon", "neighbours": "add-remove-record"}
        self._is_new_population = False

    async def start(self) -> None:
        """Draw the form, then the ledgers found."""
        is_first = self._session.setup.ledger is None
        verdict(
            "plain",
            "No ledger: nothing can be spent." if is_first else "The ledger in use stays as it is.",
            "A ledger records the privacy budget for these people, and what has been spent. Make one ledger per population, and keep it.",
            is_status=False,
        )
        self._bar = RunBar(self._session, "quick")
        with tag("div", "across halves"):
            with card("pad roomy"):
                tag("h2", text="Make a ledger")
                self._draw()
            self._there = card("pad roomy")
        with self._there:
            tag("h2", text="Existing ledgers")
        await self._list()

    def _stem(self) -> str:
        opened = self._session.opened
        return "people" if opened is None else opened.name.partition(".")[0] or "people"

    def _draw(self) -> None:
        opened = self._session.opened
        is_next_to = (
            opened is not None and opened.path == self._session.setup.file and "://" not in opened.path
        )
        if is_next_to and opened is not None:
            tag("p", "s sub", f"It is kept next to the data, as {ledger_next_to(Path(opened.path)).name}.")
        else:
            field("Name", self._typed["name"], partial(self._type, "name"))
            tag("p", "s sub", f"It is kept in the folder {self._session.setup.releases.name}.")
        for name, label, choices in (
            ("measure", "Counts", MEASURES),
            ("neighbours", "Protects", RELATIONS),
        ):
            text = f"{label}; cannot be changed later"
            choice(label, choices, self._chosen[name], partial(self._choose, name), text)
        field("Amount granted now", self._typed["amount"], partial(self._type, "amount"), inputmode="decimal")
        field(
            "Population, if several files are about the same people (optional)",
            "",
            partial(self._type, "population"),
        )
        if is_next_to:
            check(
                "These are different people from those of the other ledgers in the folder",
                self._is_new_population,
                self._say_new,
            )
        button("Make the ledger", self._make, kind="pri", data_run="")

    def _type(self, name: str, value: str) -> None:
        self._typed[name] = value.strip()

    def _say_new(self, is_new: bool) -> None:
        self._is_new_population = is_new

    def _choose(self, name: str, value: str) -> None:
        self._chosen[name] = value

    async def _make(self) -> None:
        try:
            path = place_of(self._session, self._typed["name"])
        except InputError as error:
            self._bar.tell(str(error))
            return
        request = (self._chosen["measure"], self._typed["amount"], self._chosen["neighbours"])
        found = await self._bar.do(
            ledger_made,
            str(path),
            *request,
            self._typed["population"] or None,
            self._is_new_population,
            key="make",
        )
        if found is not None:
            await self._take(str(path))

    async def _list(self) -> None:
        opened = self._session.opened
        data = None if opened is None or opened.path != self._session.setup.file else opened.path
        found = await self._bar.do(ledgers_there, str(self._session.setup.releases), data, key="there")
        if found is None or self._bar.is_gone:
            return
        with self._there:
            if not found:
                tag("p", "s sub", "None next to the data, and none among the releases.")
                return
            with table({"Ledger": "", "Left": "r", "": ""}):
                for one in found:
                    with tag("tr"):
                        tag("td", "", one["name"])
                        tag("td", "r", f"{one['measure']} {amount_text(one['left'])}")
                        with tag("td"):
                            button("Use it", partial(self._take, one["path"]), kind="mini")

    async def _take(self, path: str) -> None:
        self._session.setup.ledger = Path(path)
        if self._session.refresh_ledger is not None:
            await self._session.refresh_ledger()
        self._session.show("ledger")
