"""Panels about releases that pages share: publishing what a page shows, and checking a release that a user uploads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from nicegui import ui

from louver.app.columns import ColumnChoices
from louver.app.jobs.releases import checked_upload, free_name, out_folder, packed, report_of
from louver.app.look import RunBar, Tag, button, check, choice, drawer, field, icon, tag, verdict, verdict_of
from louver.app.session import JobAnswer, Receiver, Session
from louver.app.words import COUNT_PEOPLE, NEW_POPULATION, capital, without_flags
from louver.errors import LouverError

__all__ = [
    "MAX_RELEASE",
    "Accepting",
    "Publishing",
    "VerifyPanel",
    "Ways",
    "accepting_fields",
    "count_choice",
    "open_report",
    "people_choices",
    "published_verdict",
    "with_register",
    "without_empty_register",
]

REGISTERED = ("registry", "person", "new_population")
"""Options about a register."""

FORMS = {"zip": ("Download", "release.zip"), "csv": ("CSV", "tables.zip"), "xlsx": ("Excel", "tables.xlsx")}
"""Text of a button, and name of the downloaded file, which contains nothing from the data."""
TITLES = {
    "zip": "All files of the release in one zip file",
    "csv": "Its tables as CSV files in one zip file",
    "xlsx": "Its tables as sheets of one Excel file",
}


class NamedRelease(Protocol):
    """State of a page: the name of its next release."""

    name: str


class Ways:
    """Buttons that download a release or show its report."""

    def __init__(self, session: Session, bar: RunBar, name: str) -> None:
        self._session, self._bar, self._name = session, bar, name
        for form, (text, _) in FORMS.items():
            icon_name = "download" if form == "zip" else ""
            button(text, partial(self._take, form), kind="mini", icon_name=icon_name, title=TITLES[form])
        button("Open report", self._report, kind="mini")

    async def _take(self, form: str) -> None:
        setup, folder = self._session.setup, str(self._session.folder)
        content = await self._bar.do(packed, str(setup.releases), self._name, form, folder, key="download")
        if content is not None and not self._bar.is_gone:
            ui.download.content(content, FORMS[form][1])

    async def _report(self) -> None:
        await open_report(self._session, self._bar, self._name)


async def open_report(session: Session, bar: RunBar, name: str) -> None:
    """Show the report page of a release on top of this page."""
    page = await bar.do(report_of, str(session.setup.releases), name, key="report")
    if bar.is_gone:
        return
    if page is None:
        bar.tell(bar.sentence or "this release was made without a report.")
        return
    with ui.context.client.content, Tag("dialog", "sheet", aria_label="Report") as dialog:
        with Tag("div", "row between"):
            Tag("h2", text="Report")
            button("Close", dialog.delete, data_close="")
        Tag("iframe", srcdoc=page, sandbox="", title="Report")
    dialog.on("close", dialog.delete, args=[])
    dialog.client.run_javascript(f"document.getElementById('c{dialog.id}').showModal()")


class MayBeOthers(Protocol):
    """State of a page: whether the steward states that these people are not those in the register."""

    new_population: bool


class Registering(MayBeOthers, Protocol):
    """State of a page, including whether everything in the register is taken into account."""

    with_register: bool


class MayCountPeople(Protocol):
    """State of a page: whether the steward states that people are counted although households are known."""

    count_people: bool


def people_choices(session: Session, page_state: MayBeOthers, names: Sequence[str]) -> None:
    """Ask how the register recognises these people: by a column of person keys, or not at all, because they are different people.

    `names` are the columns that may hold a person key; counted data have none. The key is the same on all pages.
    """
    assert session.opened is not None
    columns = session.state(ColumnChoices)
    if session.opened.source.weight is None:
        choices = {"": "none: compare all values"} | {name: name for name in names}
        chosen = columns.person if columns.person in choices else ""
        text = "Person key: a column that identifies a person, kept only as keyed hashes"
        choice("Person key", choices, chosen, columns.set_person, text)
    check(
        NEW_POPULATION, page_state.new_population, lambda value: setattr(page_state, "new_population", value)
    )


def with_register(
    options: dict[str, Any], page_state: Registering, registry: str, person: str
) -> dict[str, Any]:
    """The options of a job, with those about the register that a page asks for."""
    if not page_state.with_register:
        return options
    own = {"person": person, "new_population": page_state.new_population}
    return options | {"registry": registry} | {name: value for name, value in own.items() if value}


def without_empty_register(session: Session, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a job, without those about a register that does not exist yet."""
    if session.setup.releases.is_dir() or session.setup.register is not None:
        return options
    return {key: value for key, value in options.items() if key not in REGISTERED}


def count_choice(session: Session, page_state: MayCountPeople) -> None:
    """Ask whether people are counted deliberately; counted data have no households."""
    assert session.opened is not None
    if session.opened.source.weight is None:
        check(COUNT_PEOPLE, page_state.count_people, lambda value: setattr(page_state, "count_people", value))


class Publishing:
    """A drawer that publishes what its page shows.

    Parameters
    ----------
    session : Session
    page_state : NamedRelease
        State of the page with the name of its release.
    stem : str
        Default name of a release of this page.
    about : str
        Description of the publication, and the questions to answer first.
    job : callable
        Given the folder of the release: the job and its arguments, or a sentence about what is missing. The job answers with `refused`, the
        reason why nothing was published, or None; with `verdict`, the verb's verdict on what was published; and with `remark`, further
        information.
    choices : callable, optional
        Draws further choices.
    """

    def __init__(
        self,
        session: Session,
        page_state: NamedRelease,
        stem: str,
        about: str,
        job: Callable[[str], tuple[Any, ...] | str],
        choices: Callable[[], object] | None = None,
    ) -> None:
        self._session, self._state, self._job = session, page_state, job
        if not page_state.name or (session.setup.releases / page_state.name).exists():
            page_state.name = free_name(session.setup.releases, stem)
        with drawer("Publish", is_slim=True) as self._drawer:
            Tag("p", "s sub", about)
            field("Name of the release", page_state.name, self._set_name)
            if choices is not None:
                with Tag("div", "stack"):
                    choices()
            self._button = button("Publish", self.publish, kind="pri", data_run="")
            self._bar = RunBar(session, "long")
            self._message = Tag("div", "stack", aria_live="polite")
            folder = session.setup.releases.name
            Tag("p", "s sub", f"Releases go to the folder {folder}, and are listed on the page Releases.")

    def _set_name(self, value: str) -> None:
        self._state.name = value.strip()

    async def publish(self) -> None:
        """Publish, or show why not."""
        name = self._state.name
        self._message.clear()
        try:
            job = self._job(out_folder(self._session.setup.releases, name))
        except LouverError as error:
            job = str(error)
        if isinstance(job, str):
            self._bar.tell(job)
            return
        self._button.set(disabled=True)
        found = await self._bar.do(*job, key="release")
        if self._bar.is_gone:
            self._tell_elsewhere(name, found)
            return
        self._button.set(disabled=None)
        if found is not None:
            with self._message:
                self._tell(name, found)

    def _tell(self, name: str, found: JobAnswer) -> None:
        published_verdict(name, found)
        if found["refused"] is not None:
            return
        with Tag("div", "row wrap"):
            Ways(self._session, self._bar, name)
        with Tag("div", "row"):
            button("See all releases", lambda: self._session.show("releases"), kind="mini")
        self._session.say(f"Published: {name}.")

    def _tell_elsewhere(self, name: str, found: JobAnswer | None) -> None:
        """The outcome, for a user who has left the page in the meantime."""
        if found is None:
            if self._bar.sentence:
                self._session.tell(f"the release {name}: {self._bar.sentence}")
        elif found["refused"] is not None:
            self._session.tell(f"the release {name} was not published: {found['refused']}")


def published_verdict(name: str, found: JobAnswer) -> None:
    """Show that a release was published, with the verb's verdict on it, or why it was not."""
    note = capital(found["remark"] or "")
    if found["refused"] is not None:
        verdict("stop", "Not published.", capital(without_flags(str(found["refused"]))), note)
        return
    judged = found["verdict"]
    reasons = (judged["sentence"], *judged["reasons"])
    note = "" if note in reasons else note
    verdict(judged["level"], f"Published: {name}.", found.get("words", ""), note, reasons=reasons)


MAX_RELEASE = 300_000_000
"""Maximum size of the zip file in bytes."""
MOST_CHECKS = 60


@dataclass(slots=True)
class Accepting:
    """What a user has read and accepts unchecked: a page of another version, strings found in no published file."""

    skip_report: bool = False
    strings: int = 0

    def accept_report(self, value: bool) -> None:
        self.skip_report = value

    def accept_strings(self, value: str) -> None:
        self.strings = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else 0


def accepting_fields(accepting: Accepting) -> None:
    """The choices that `louver verify` offers as --skip-report and --accept-strings."""
    check("Skip report.html; I have read it", accepting.skip_report, accepting.accept_report)
    field("Strings that are in no file, read and accepted", accepting.strings, accepting.accept_strings)


class VerifyPanel:
    """A button that takes a release, and the results of its checks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        tag(
            "p",
            "s sub",
            "Every promise of a release is recomputed from its published files. Choose a zip file of its folder; no part of it is kept.",
        )
        choose = tag(
            "input", "gone", type="file", accept=".zip", aria_label="Zip file of a release", tabindex=-1
        )
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'release')")
        self._accepting = Accepting()
        accepting_fields(self._accepting)
        with tag("div", "row"):
            button("Choose a zip file", icon_name="box").on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )
        self._bar = RunBar(session, "long")
        self._found = tag("div", "stack", aria_live="polite")
        session.receivers["release"] = Receiver(
            self._take, (".zip",), MAX_RELEASE, "a zip file of a release folder"
        )

    async def _take(self, path: str, name: str) -> None:
        if self._found.is_deleted:
            return
        self._found.clear()
        found = await self._bar.do(
            checked_upload,
            path,
            str(self._session.folder),
            self._accepting.skip_report,
            self._accepting.strings,
            key="brought",
        )
        if found is not None and not self._bar.is_gone:
            with self._found:
                _tell(name, found)


def _tell(name: str, found: JobAnswer) -> None:
    """Show what the checks found; no judgement is made here."""
    failed = [one for one in found["checks"] if not one["passed"]]
    manifest = found["manifest"]
    about = "" if manifest is None else f"{name}: made by louver {manifest['kind']}, {manifest['method']}."
    verdict_of(found["verdict"], about)
    for one in [*failed, *(one for one in found["checks"] if one["passed"])][:MOST_CHECKS]:
        with tag("div", "row top0 s check"):
            icon("ok" if one["passed"] else "warning", "mini" + ("" if one["passed"] else " bad"))
            tag("span", text=f"{one['name']}: {one['found']}")
    if manifest is not None and manifest["not_protected"]:
        tag("p", "s sub", f"Not protected: {'; '.join(manifest['not_protected'])}")
