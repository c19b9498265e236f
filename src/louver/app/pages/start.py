"""Start: open data, go on with a project, or check a release that somebody else made."""

from __future__ import annotations

from louver.app.look import card, head, tag
from louver.app.pages.data import ways_to_open
from louver.app.session import Session
from louver.app.verifying import VerifyPanel

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
            tag("h2", text="Verify a release")
            VerifyPanel(session)
