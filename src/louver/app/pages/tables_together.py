"""Several tables of the same people, which look safe one by one, together."""

from __future__ import annotations

from functools import partial
from typing import Any

from louver.app.jobs.tables import Asked, together
from louver.app.look import RunBar, Tag, button, verdict_of
from louver.app.pages.tables_state import Tables, Try
from louver.app.session import Session

__all__ = ["TogetherPanel"]

SECONDS = 20.0


class TogetherPanel:
    """Choose arrangements that were tried, and audit them as if all were published."""

    def __init__(self, session: Session, state: Tables, asked: Asked) -> None:
        self.session, self.state, self.asked = session, state, asked
        self.chosen: set[int] = {state.current}
        Tag(
            "p",
            "sub s",
            "Choose the tables that would be published. What nobody can work out from one may follow from two.",
        )
        with Tag("div", "chips"):
            for one in state.tries:
                self._choice(one)
        button("Audit together", self.run, kind="pri")
        self.bar = RunBar(session, "long")
        self.told = Tag("div")

    def _choice(self, one: Try) -> None:
        made = Tag("button", "chip", f"{one.number} {one.words}", type="button", title=one.told)
        made.set(aria_pressed=str(one.number in self.chosen).lower())
        made.click(partial(self._toggle, made, one.number))

    def _toggle(self, made: Tag, number: int) -> None:
        self.chosen.symmetric_difference_update({number})
        made.set(aria_pressed=str(number in self.chosen).lower())

    async def run(self) -> None:
        """Audit what is chosen."""
        tries = [one for one in self.state.tries if one.number in self.chosen]
        if not tries:
            self.bar.tell("choose at least one table.")
            return
        options = [one.options for one in tries]
        found = await self.bar.do(
            together, self.asked.path, self.asked.source, options, self.state.within, SECONDS, key="together"
        )
        if found is not None and not self.bar.is_gone:
            self._paint(found, [one.number for one in tries])

    def _paint(self, found: dict[str, Any], numbers: list[int]) -> None:
        told, summary = found["verdict"], found["summary"]
        looked = (
            f"{summary['targets']:,} cells were looked at, {summary['certified']:,} bounds are proved tight."
        )
        self.told.clear()
        with self.told:
            verdict_of(told, note=looked)
            for cell in found["cells"]:
                names = [str(numbers[int(name.removeprefix("table ")) - 1]) for name in cell["because"]]
                why = f" (from {' and '.join(names)})" if names else ""
                Tag("p", "s", f"{cell['where']}: {cell['count']:,}{why}")
