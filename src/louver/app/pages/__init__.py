"""The pages, in the order of the navigation rail: a page is a module with a function `build(session)` and a line here."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from louver.app.session import Session

__all__ = ["PAGES", "Page"]


@dataclass(frozen=True, slots=True)
class Page:
    """One entry of the rail.

    Attributes
    ----------
    name : str
        Name of its module, and the part after # in the address.
    title, icon : str
    letter : str
        Pressing `g` and then this letter opens the page.
    is_below : bool
        Whether it is below the line, among past work.
    is_inside : bool
        Whether it shows confidential counts; otherwise only what was published.
    """

    name: str
    title: str
    icon: str
    letter: str
    is_below: bool = False
    is_inside: bool = True

    def build(self, session: Session) -> Awaitable[None]:
        """Draw the page into the current container."""
        module: Any = import_module(f"louver.app.pages.{self.name}")
        return cast("Awaitable[None]", module.build(session))


PAGES = {
    page.name: page
    for page in (
        Page("start", "Start", "home", "h", is_inside=False),
        Page("data", "Data", "data", "d"),
        Page("tables", "Tables", "table", "t"),
        Page("audit", "Audit", "layers", "a"),
        Page("protect", "Protect", "hidden", "c"),
        Page("microdata", "Microdata", "people", "m"),
        Page("groups", "Group sizes", "bars", "s", is_inside=False),
        Page("topdown", "TopDown", "tree", "p", is_inside=False),
        Page("releases", "Releases", "box", "r", is_below=True, is_inside=False),
        Page("ledger", "Ledger", "book", "l", is_below=True, is_inside=False),
    )
}
