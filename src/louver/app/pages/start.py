"""Start: open data, continue a project, or check a release made by someone else."""

from __future__ import annotations

from pathlib import Path

from nicegui import ui

from louver.app.look import button, card, head, problem, tag, verdict
from louver.app.pages.data import ways_to_open
from louver.app.projects import MAX_PROJECT, open_data_of, read_project, saved
from louver.app.publishing import VerifyPanel
from louver.app.session import Receiver, Session
from louver.errors import LouverError

__all__ = ["build"]


async def build(session: Session) -> None:
    """Draw the page."""
    head("Start", "what would you like to do?")
    with tag("div", "across thirds"):
        with card("pad roomy"):
            tag("h2", text="Open data")
            tag("p", "s sub", "It stays on this machine: nothing is sent anywhere.")
            ways_to_open(session)
        with card("pad roomy"):
            tag("h2", text="Open a project")
            _ProjectPanel(session)
        with card("pad roomy"):
            tag("h2", text="Verify a release")
            VerifyPanel(session)


class _ProjectPanel:
    """Save the current choices to continue with them another time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        text = (
            "A project stores how a file is read, roles, hierarchies, the tables you tried and your requirements for microdata. It "
            "contains columns and labels, never records or counts: keep it confidential."
        )
        tag("p", "s sub", text)
        choose = tag("input", "gone", type="file", accept=".json", aria_label="Project file", tabindex=-1)
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'project')")
        with tag("div", "row wrap"):
            button("Choose a project file", icon_name="file").on(
                "click", js_handler=f"() => document.getElementById('c{choose.id}').click()"
            )
            if session.opened is not None:
                button("Save this project", self._save, icon_name="download")
        self._message = tag("div", aria_live="polite")
        session.receivers["project"] = Receiver(self._take, (".json",), MAX_PROJECT, "a project (.json)")
        self._paint()

    def _save(self) -> None:
        ui.download.content(saved(self._session).encode(), "project.json")

    async def _take(self, path: str, name: str) -> None:
        try:
            project = read_project(Path(path))
            is_open = open_data_of(self._session, project)
        except LouverError as error:
            self._say(str(error))
            return
        finally:
            Path(path).unlink(missing_ok=True)
        self._session.project = project
        if is_open:
            self._session.show("data")
        else:
            self._paint()

    def _say(self, sentence: str) -> None:
        if not self._message.is_deleted:
            self._message.clear()
            with self._message:
                problem(sentence)

    def _paint(self) -> None:
        """Ask for the data that a project needs."""
        if self._message.is_deleted or self._session.project is None:
            return
        wanted = self._session.project.data.name
        self._message.clear()
        with self._message:
            verdict(
                "plain",
                f"Now open {wanted}.",
                "The project contains no data; it continues once that file is open.",
            )
