"""Extending a release: new or finer attributes for the same people, from the spec of the extension or a ready schema."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from louver._words import counted, listed
from louver.app.jobs.topdown import (
    extendable,
    extended,
    extension_described,
    extension_loss,
    fitting_schemas,
    is_extension_paid,
    ready_spec,
)
from louver.app.look import RunBar, button, card, copy_button, empty, head, pill, problem, select, table, tag
from louver.app.pages.topdown_form import SpecForm, TopDownChoices, choose_files, extends_of, repeated
from louver.app.session import JobAnswer, Session
from louver.app.spending import Strip, loss_of
from louver.app.words import amount_text

__all__ = ["BeginExtension", "ExtensionPage"]

BEGIN = (
    "An extension gives the people of a release new or finer attributes; nothing else about them changes. The ledger that paid for the "
    "release pays for it. Choose the spec of the extension together with the public files that it names."
)
AS_SPEC = "as the spec says"


class BeginExtension:
    """A release has been chosen: which spec or ready schema should extend it?"""

    def __init__(self, session: Session, chosen: TopDownChoices) -> None:
        self._session, self._choices = session, chosen

    async def start(self) -> None:
        """Draw the panel."""
        chosen, name = self._choices, self._choices.extending
        head("TopDown", "extend a release")
        with empty(f"Extend the release {name}", BEGIN):
            with tag("div", "row wrap"):
                choose_files("Choose files", "pri")
                ready = tag("div", "row wrap")
                button("Back", self._back)
            note = tag(
                "p", "s sub", "Ready-made schemas are offered once the spec of the release is open here."
            )
            self._bar = RunBar(self._session, "quick")
        if chosen.spec is None:
            return
        note.text = ""
        releases = str(self._session.setup.releases)
        found = await self._bar.do(fitting_schemas, str(chosen.spec), releases, name, key="schemas")
        if found is None or self._bar.is_gone:
            return
        note.text = (
            "A ready-made schema uses the records, regions and budget of the open spec, and has no bounds."
            if found
            else "No ready-made schema refines the attributes of this release."
        )
        with ready:
            for schema in found:
                button(f"Use {schema}", partial(self._take_ready, schema))

    async def _take_ready(self, schema: str) -> None:
        chosen, name, session = self._choices, self._choices.extending, self._session
        releases = str(session.setup.releases)
        folder = str(session.folder if chosen.files is None else chosen.files.folder)
        made = await self._bar.do(ready_spec, str(chosen.spec), releases, name, schema, folder, key="ready")
        if made is not None:
            chosen.open_ready(Path(made), schema)
            session.show("topdown")

    def _back(self) -> None:
        self._choices.extending = ""
        self._session.show("topdown")


class ExtensionPage(SpecForm):
    """The budget of an extension, what it adds to the release, and the outcome."""

    async def start(self) -> None:
        """Draw the panel."""
        chosen, setup = self._choices, self._session.setup
        with head("TopDown", "extend a release"):
            copy_button(lambda: repeated(chosen, setup.ledger))
        self._bar = RunBar(self._session, "quick")
        self._names = await self._bar.do(extendable, str(setup.releases), key="extendable") or []
        self._choose_first()
        if chosen.about is None:
            await self._describe()
        if self._bar.is_gone:
            return
        with tag("div", "across form"):
            self._form = card("stack form")
            with tag("div", "stack"):
                if chosen.about is not None:
                    with card():
                        self._draw_added(chosen.about)
                    self._draw_strip(chosen.about)
        self._draw_form()
        if chosen.about is not None:
            await self._update()
            await self._strip.start()

    async def _describe(self) -> None:
        """Verify the release, and find out what the extension adds to it."""
        chosen, ledger = self._choices, self._session.setup.ledger
        section = {} if chosen.first is None else {"extends": str(chosen.first)}
        paying = None if ledger is None else str(ledger)
        about = await self._bar.do(extension_described, self._spec, section, paying, key="spec")
        if about is not None:
            chosen.reset(about)

    def _choose_first(self) -> None:
        """Take the release that the user chose or that an uploaded spec names; no path of an uploaded spec is followed."""
        chosen, releases = self._choices, self._session.setup.releases.resolve()
        if chosen.extending in self._names and chosen.first != releases / chosen.extending:
            chosen.change_first(releases / chosen.extending)
        first_name = Path(extends_of(Path(self._spec)) or "").name
        if chosen.first is None and chosen.files is not None and first_name in self._names:
            chosen.first = releases / first_name
        chosen.extending = ""

    def _draw_strip(self, about: JobAnswer) -> None:
        chosen = self._choices
        self._strip = Strip(
            self._session,
            chosen,
            records="the records that the spec names",
            stem=f"{about['first']}-extended",
            loss=lambda: chosen.loss,
            job=self._job,
            title=lambda found: f"Released: {found['people']:,} people with their new attributes.",
            is_paid=lambda: (is_extension_paid, self._spec, chosen.section()),
        )

    def _job(self) -> tuple[Any, ...] | str:
        about = self._choices.about
        assert about is not None
        refused: str = about["refused"] or self._missing()
        return refused or (extended, self._spec, self._choices.section())

    def _draw_form(self) -> None:
        chosen = self._choices
        self._form.clear()
        with self._form:
            self._draw_spec()
            with tag("div", "pad part"):
                tag("h3", text="Release to extend")
                first = "" if chosen.first is None else chosen.first.name
                own = {} if first else {"": AS_SPEC if chosen.files is None else "choose one"}
                select(
                    own | {name: name for name in self._names},
                    first,
                    self._set_first,
                    "Release to extend",
                )
                if chosen.before is not None or chosen.files is not None:
                    button("Do not extend", self._leave, kind="mini ghost")
            if chosen.about is not None:
                self._draw_budget()
                with tag("div", "pad"):
                    self._draw_neighbours()

    def _set_first(self, name: str) -> None:
        releases = self._session.setup.releases.resolve()
        self._choices.change_first(releases / name if name in self._names else None)
        self._session.show("topdown")

    def _leave(self) -> None:
        self._choices.open(self._choices.before)
        self._session.show("topdown")

    async def _update(self) -> None:
        """The plan for the current choices; a later choice replaces an earlier one. Until it is known, nothing can be spent."""
        self._choices.loss = None
        self._strip.draw()
        found = await self._bar.do(extension_loss, self._spec, self._choices.section(), key="loss")
        if found is not None and not self._bar.is_gone:
            self._choices.loss = loss_of(found)
            self._draw_losses()
            await self._strip.update()

    def _draw_added(self, about: JobAnswer) -> None:
        with tag("div", "pad row wrap"):
            tag("h2", text=f"What the extension adds to {about['first']}")
            pill(f"{about['first']} is verified", "ok", "ok")
            pill("spends nothing, reads no records", "ok", "ok")
        if about["refused"]:
            with tag("div", "pad"):
                problem(about["refused"])
        with table({"Attribute": "", f"In {about['first']}": "", "In the extension": "", "": ""}):
            for one in about["attributes"]:
                with tag("tr"):
                    tag("td", "b", one["name"])
                    before = counted(one["labels_before"], "label")
                    is_renamed = one["before"] not in (None, one["name"])
                    tag(
                        "td",
                        "",
                        f"{one['before']}: {before}" if is_renamed else before if one["before"] else "",
                    )
                    tag("td", "", counted(one["labels"], "label"))
                    with tag("td"):
                        _kind(one)
        with tag("div", "pad stack"):
            for line in _kept(about):
                tag("p", "s", line)
            self._losses = tag("div")

    def _draw_losses(self) -> None:
        """The privacy loss of the release, of the extension, and their total, if they add up."""
        about, loss = self._choices.about, self._choices.loss
        assert about is not None and loss is not None
        first = loss_of(about["first_loss"])
        lines = [(about["first"], first.measure, first.amount), ("This extension", loss.measure, loss.amount)]
        if (first.measure, first.neighbours) == (loss.measure, loss.neighbours):
            lines.append(("Both together", loss.measure, first.amount + loss.amount))
        self._losses.clear()
        with self._losses:
            tag("h3", text="Privacy loss")
            with tag("table", "sums total"), tag("tbody"):
                for name, measure, amount in lines:
                    with tag("tr"):
                        tag("th", text=name, scope="row")
                        tag("td", "r", f"{measure} {amount_text(Fraction(amount))}")


def _kind(attribute: JobAnswer) -> None:
    """Whether an attribute is new, finer or unchanged."""
    if attribute["before"] is None:
        pill("new", "acc")
    elif attribute["labels"] > attribute["labels_before"]:
        pill("finer", "acc")
    else:
        pill("unchanged")


def _kept(about: JobAnswer) -> list[str]:
    """What remains the same, and which bounds hold in every smallest region."""
    before, after = about["cells"]
    level = about["levels"][-1]["name"]
    lines = [
        f"{about['people']:,} people keep every attribute they have in {about['first']}; "
        f"{before:,} cells become {after:,}."
    ]
    if about["bounds"]:
        lines.append(f"Bounds in every {level}: {listed(about['bounds'])}.")
    if about["rules"]:
        lines.append(f"Edit rules in every {level}: {listed(about['rules'])}.")
    if about["has_households"]:
        lines.append(f"Ages fit together in every {level} that is one household, as far as possible.")
    return [*lines, "There is no forecast for an extension; its tables have intervals."]
