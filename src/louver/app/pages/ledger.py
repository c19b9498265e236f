"""Ledger: what has been spent on a data set, what is left, and what was interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import partial
from typing import Any

from louver.app.charts import steps
from louver.app.copying import show_ledger
from louver.app.dialogs import Confirm
from louver.app.jobs.books import given_up, granted, ledger_read
from louver.app.jobs.ledgers import admitted
from louver.app.look import (
    RunBar,
    Tag,
    button,
    card,
    check,
    copy_button,
    head,
    icon,
    number_tile,
    pill,
    table,
    tag,
    verdict,
)
from louver.app.pages.ledger_new import NewLedger
from louver.app.session import Session
from louver.app.words import RELATIONS, amount_text

__all__ = ["build"]

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
    "anonymize": "Microdata",
    "groups": "Group sizes",
    "topdown": "TopDown",
}
STATES = {"sealed": ("ok", "ok"), "pending": ("care", "clock"), "abandoned": ("care", "warning")}
Told = Mapping[str, Any]
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
        told = await bar.do(
            job, str(ledger), releases, *args, key=job.__name__
        )  # reading makes no grant late
        if told is not None:
            if not bar.is_gone:
                body.clear()
                with body:
                    _show(told, do, is_spending=session.is_spending)
            if session.refresh_ledger is not None:
                await session.refresh_ledger()

    with actions:
        _grant_button(do)
        _admit_button(session, do)
        copy_button(lambda: show_ledger(str(ledger)))
    await do(ledger_read)


def _grant_button(do: Do) -> None:
    typed = {"amount": ""}
    dialog = Confirm(
        "Grant more?",
        "This lets more be spent on the same people. It cannot be taken back.",
        "Grant",
        lambda: do(granted, typed["amount"]),
    )
    with dialog.inside, Tag("label", "field"):
        Tag("span", "s sub", "Amount to add")
        Tag("input", "inp", inputmode="decimal").changed(lambda text: typed.update(amount=text))
    dialog.opens(button("Grant more…", icon_name="plus"))


def _admit_button(session: Session, do: Do) -> None:
    """The open data, where somebody says that they are about the same people."""
    opened = session.opened
    if opened is None or opened.is_sample:
        return
    name = "the database" if "://" in opened.path else opened.name
    source = opened.source
    said = {"is_new": False}
    dialog = Confirm(
        "Let it pay for the open data?",
        f"Say so only if {name} is about the same people: what is spent on it then counts together with the rest.",
        "Admit",
        lambda: do(admitted, opened.path, name, source.table, source.query, said["is_new"]),
    )
    with dialog.inside:
        check(
            "These are other people than those of the other ledgers that are there",
            False,
            lambda is_new: said.update(is_new=is_new),
        )
    dialog.opens(button("Admit the open data…"))


def _show(told: Told, do: Do, *, is_spending: bool) -> None:
    check, left = told["check"], amount_text(told["remaining"])
    if check["sound"]:
        bold = f"{left} of {amount_text(told['granted'])} can still be spent."
        made = verdict(
            "ok",
            bold,
            "Nothing in the past was edited or rolled back (checked when this page was opened).",
            f"It counts {told['measure']} for neighbours that differ by {RELATIONS.get(told['neighbours'], told['neighbours'])}.",
        )
    else:
        bold = "This ledger does not agree with itself or with the releases."
        made = verdict("stop", bold, _problems(check["problems"]))
    with made:
        button("Check again", partial(do, ledger_read))
    with tag("div", "across ledger"):
        with card("pad"):
            tag("h2", text=f"{told['measure'].capitalize()} left")
            steps(_balance(told["history"]), held=float(Fraction(told["held"])))
        with tag("div", "stack"):
            number_tile(left, "left to spend")
            number_tile(amount_text(Fraction(told["spent"]) - Fraction(told["held"])), "spent, for good")
            number_tile(amount_text(told["held"]), "held")
        with tag("div", "stack"):
            for entry in told["pending"]:
                _held(entry, None if is_spending else do)
            if not told["pending"]:
                with card("pad"):
                    tag("h2", text="Nothing is held")
                    tag("p", "s sub", "Every debit came to its end.")
    _entries(told)


def _problems(problems: Sequence[str]) -> str:
    told = ". ".join(one[:1].upper() + one[1:] for one in problems[:2])
    return f"{told}." + (f" {len(problems) - 2} more like these." if len(problems) > 2 else "")


def _held(entry: Told, do: Do | None) -> None:
    """A debit that is not sealed; while this tab measures it may be that one, and nobody gives it up."""
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
            tag("p", "s sub", "This tab measures now. Check again when it has ended.")
            return
        tag(
            "p",
            "s sub",
            "Giving up erases its key. What it was to cost stays spent. Do so only if it is not under way in another place.",
        )
        dialog = Confirm(
            f"Give up entry {number}?",
            "Its noise can never be drawn again, and the amount stays spent. This cannot be undone.",
            "Give up",
            partial(do, given_up, number),
        )
        dialog.opens(button(f"Give up {amount_text(entry['amount'])}…", kind="stop mini"))


def _balance(history: Sequence[Told]) -> list[tuple[float, float, int]]:
    """Time, what was left after it, and the entry: grants add, debits take."""
    left, points = Fraction(0), []
    for event in history:
        if event["amount"] is None or event["kind"] not in ("init", "grant", "reserve"):
            continue
        sign = -1 if event["kind"] == "reserve" else 1
        left += sign * Fraction(event["amount"])
        points.append((datetime.fromisoformat(event["at"]).timestamp(), float(left), event["entry"]))
    return points


def _entries(told: Told) -> None:
    shown = [
        one
        for one in told["history"]
        if one["kind"] not in ("seal", "abandon", "handed over") and (one["kind"] != "people" or one["what"])
    ]
    columns = {"#": "r", "When": "", "What": "", "For what, or what was published exactly": ""}
    columns |= {told["measure"].capitalize(): "r", "Release": "", "State": ""}
    with card(), table(columns):
        for event in reversed(shown):
            _entry(event)


def _release_name(folder: str) -> str:
    """What a release is called; measurements are sealed in a hidden folder beside it."""
    is_beside = folder.startswith(".") and folder.endswith(".topdown")
    return folder[1:].removesuffix(".topdown") if is_beside else folder


def _entry(event: Told) -> None:
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
