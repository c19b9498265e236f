"""Tables."""

from __future__ import annotations

from louver.app.look import empty, head
from louver.app.session import Session


async def build(session: Session) -> None:
    head("Tables", "what a table of row percentages gives away")
    empty("Nothing", "to see")
