"""The first rows of the open data, as they are read now."""

from __future__ import annotations

from louver.app.jobs.data import first_rows
from louver.app.look import RunBar, Tag, table
from louver.app.session import Session

__all__ = ["RowsPanel"]

MISSING = "missing"
LONG = 40


class RowsPanel:
    """A few rows in a table; what is missing is told apart from every value."""

    def __init__(self, session: Session) -> None:
        self._session = session
        Tag(
            "p",
            "s sub",
            "As they are read now: separators, decimals, conditions and codes of missing values are applied.",
        )
        self._bar = RunBar(session, "quick")
        self._body = Tag("div", "scroll")

    async def start(self) -> None:
        """Fetch and draw them."""
        assert self._session.opened is not None
        opened = self._session.opened
        found = await self._bar.do(first_rows, opened.path, opened.source, key="rows")
        if found is None or self._bar.is_gone:
            return
        self._body.clear()
        with self._body, table(dict.fromkeys(found["columns"], "")):
            for row in found["rows"]:
                with Tag("tr"):
                    for value in row:
                        short = (
                            MISSING if value is None else value[:LONG] + ("…" if len(value) > LONG else "")
                        )
                        Tag("td", "s sub" if value is None else "s nowrap", short)
