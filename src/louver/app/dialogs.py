"""Asking before something that cannot be undone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from louver.app.look import Tag, button

__all__ = ["Confirm"]


class Confirm:
    """A dialog with a question, what follows from it, and one button that does it, however often it is clicked meanwhile."""

    def __init__(self, question: str, what: str, yes: str, handler: Callable[[], Awaitable[None]]) -> None:
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

    async def do(self) -> None:
        """Do what was asked for, unless that is under way."""
        if self._is_doing:
            return
        self._is_doing = True
        try:
            await self._handler()
        finally:
            self._is_doing = False

    def _js(self, call: str) -> str:
        return f"() => document.getElementById('c{self._dialog.id}').{call}"
