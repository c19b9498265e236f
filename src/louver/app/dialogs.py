"""Asking before something that cannot be undone, or that replaces what is open."""

from __future__ import annotations

from collections.abc import Awaitable

from nicegui import context

from louver.app.look import Handler, Tag, button
from louver.app.session import Session

__all__ = ["Confirm", "ask_to_replace"]


class Confirm:
    """A dialog with a question, what follows from it, and one button that does it, however often it is clicked meanwhile."""

    def __init__(self, question: str, what: str, yes: str, handler: Handler) -> None:
        self._handler, self._is_doing = handler, False
        self._dialog = Tag("dialog", aria_label=question)
        with self._dialog:
            Tag("h2", text=question)
            Tag("p", "sub", what)
            self.inside = Tag("div", "stack ask")
            with Tag("div", "row actions"):
                button("Keep as it is").on("click", js_handler=self._js("close()"))
                button(yes, self.do, kind="pri").on("click", js_handler=self._js("close()"))

    def opens(self, made: Tag) -> Tag:
        """Let a button open it."""
        made.on("click", js_handler=self._js("showModal()"))
        return made

    def show(self) -> None:
        """Open it now."""
        context.client.run_javascript(f"({self._js('showModal()')})()")

    async def do(self) -> None:
        """Do what was asked for, unless that is under way."""
        if self._is_doing:
            return
        self._is_doing = True
        try:
            answer = self._handler()
            if isinstance(answer, Awaitable):
                await answer
        finally:
            self._is_doing = False

    def _js(self, call: str) -> str:
        return f"() => document.getElementById('c{self._dialog.id}').{call}"


def ask_to_replace(session: Session, what: str, handler: Handler) -> Confirm | None:
    """A question before other data take the place of what is open; None where nothing is lost, and nobody need be asked.

    Parameters
    ----------
    what : str
        What would be opened, as a button says it: "Open the sample".
    handler : callable
        Opens it.
    """
    opened = session.opened
    if opened is None or opened.is_sample:
        return None
    return Confirm(
        f"Close {opened.name}?",
        "Another file would take its place. What you chose for it on all pages is forgotten: roles, tables tried, results. What "
        "was published or spent stays.",
        what,
        handler,
    )
