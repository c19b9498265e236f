"""Publishing from any page: a name, who the people are, one button, what came of it, and ways to take it away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from nicegui import ui

from louver.app.columns import Columns
from louver.app.jobs.books import free_name, out_folder, report_of
from louver.app.jobs.publishing import packed
from louver.app.look import RunBar, Tag, button, check, drawer, field, select, verdict
from louver.app.session import Session
from louver.app.words import COUNT_PEOPLE, NEW_POPULATION, capital, without_flags
from louver.errors import LouverError

__all__ = ["Publishing", "Ways", "count_choice", "open_report", "people_choices"]

FORMS = {"zip": ("Download", "release.zip"), "csv": ("CSV", "tables.zip"), "xlsx": ("Excel", "tables.xlsx")}
"""What a button says, and what the browser calls the file: nothing of the data."""
TITLES = {
    "zip": "All files of the release in one zip file",
    "csv": "Its tables as CSV files in one zip file",
    "xlsx": "Its tables as sheets of one Excel file",
}
Told = Mapping[str, Any]


class Named(Protocol):
    """What a page keeps: the name that its release shall have."""

    name: str


class Ways:
    """Buttons that take a release away, or show its report."""

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
    """The page that lies in a release, over this one."""
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
    """What a page keeps: whether the steward says that these are other people than the register knows."""

    new_population: bool


class MayCountPeople(Protocol):
    """What a page keeps: whether the steward says that people are counted, although households are known."""

    count_people: bool


def people_choices(session: Session, asked: MayBeOthers, names: Sequence[str]) -> None:
    """Ask how the register recognises these people: by a column of their own, or not at all, for they are others.

    `names` are the columns that may hold a person key; counted data have none. The key is the same on all pages.
    """
    assert session.opened is not None
    columns = session.state(Columns)
    if session.opened.source.weight is None:
        with Tag("label", "field"):
            Tag(
                "span",
                "s sub",
                "Person key: a column that identifies a person, kept only as keyed hashes",
            )
            choices = {"": "none: compare all values"} | {name: name for name in names}
            chosen = columns.person if columns.person in choices else ""
            select(choices, chosen, columns.set_person, "Person key")
    check(NEW_POPULATION, asked.new_population, lambda value: setattr(asked, "new_population", value))


def count_choice(session: Session, asked: MayCountPeople) -> None:
    """Ask whether people are counted on purpose; counted data have no households."""
    assert session.opened is not None
    if session.opened.source.weight is None:
        check(COUNT_PEOPLE, asked.count_people, lambda value: setattr(asked, "count_people", value))


class Publishing:
    """A drawer that publishes what its page shows.

    Parameters
    ----------
    session : Session
    asked : Named
        Where the page keeps the name of its release.
    stem : str
        What a release of this page is called unless somebody says otherwise.
    about : str
        What is published, and what is asked before.
    job : callable
        Given the folder of the release: the job and its arguments, or a sentence about what is missing. The job answers with
        `refused`, why nothing was published, or None; and with `remark`, what to know besides.
    choices : callable, optional
        Draws what else is to be decided.
    """

    def __init__(
        self,
        session: Session,
        asked: Named,
        stem: str,
        about: str,
        job: Callable[[str], tuple[Any, ...] | str],
        choices: Callable[[], object] | None = None,
    ) -> None:
        self._session, self._asked, self._job = session, asked, job
        if not asked.name or (session.setup.releases / asked.name).exists():
            asked.name = free_name(session.setup.releases, stem)
        with drawer("Publish", is_slim=True) as self._drawer:
            Tag("p", "s sub", about)
            field("Name of the release", asked.name, self._set_name)
            if choices is not None:
                with Tag("div", "stack"):
                    choices()
            self._button = button("Publish", self.publish, kind="pri", data_run="")
            self._bar = RunBar(session, "long")
            self._told = Tag("div", "stack", aria_live="polite")
            folder = session.setup.releases.name
            Tag("p", "s sub", f"Releases go to the folder {folder}, and are listed on the page Releases.")

    def _set_name(self, value: str) -> None:
        self._asked.name = value.strip()

    async def publish(self) -> None:
        """Publish, or say why not."""
        name = self._asked.name
        self._told.clear()
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
            with self._told:
                self._tell(name, found)

    def _tell(self, name: str, found: Told) -> None:
        note = found.get("remark") or ""
        note = capital(note)
        if found["refused"] is not None:
            reason = str(found["refused"])
            verdict("stop", "Not published.", capital(without_flags(reason)), note)
            return
        with verdict("ok", f"Published: {name}.", found.get("words", ""), note):
            pass
        with Tag("div", "row wrap"):
            Ways(self._session, self._bar, name)
        button("See all releases", lambda: self._session.show("releases"), kind="mini")
        self._session.say(f"Published: {name}.")

    def _tell_elsewhere(self, name: str, found: Told | None) -> None:
        """What came of it, for somebody who has left the page meanwhile."""
        if found is None:
            if self._bar.sentence:
                self._session.tell(f"the release {name}: {self._bar.sentence}")
        elif found["refused"] is not None:
            self._session.tell(f"the release {name} was not published: {found['refused']}")
