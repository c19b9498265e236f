"""The released histogram: how many units of each size a region has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louver.app.jobs.groups import sizes_of
from louver.app.look import RunBar, card, select, table, tag
from louver.app.session import Session

__all__ = ["SizesPanel"]

TOTAL = ""
Told = Mapping[str, Any]


class SizesPanel:
    """The sizes of one region at a time, as published."""

    def __init__(self, session: Session) -> None:
        self._session, self._name = session, ""
        self._bar = RunBar(session, "quick")
        self._place = tag("div")

    async def show(self, name: str | None) -> None:
        """Show the release of this name from the total down, or nothing."""
        self._name = name or ""
        if not name:
            self._place.clear()
            return
        await self._go(TOTAL)

    async def _go(self, region: str) -> None:
        name = self._name
        found = await self._bar.do(sizes_of, str(self._session.setup.releases), name, region, key="sizes")
        if found is not None and name == self._name and not self._bar.is_gone:
            self._draw(found, region)

    def _draw(self, found: Told, region: str) -> None:
        most = max((units for _, units in found["sizes"]), default=0) or 1
        self._place.clear()
        with self._place, card():
            with tag("div", "pad row between wrap"):
                tag("h2", text="Released: how many units have each size")
                choices = {TOTAL: "all regions"} | {one: one for one in found["regions"]}
                select(choices, region, self._go, "Region of the sizes")
            with tag("div", "scroll sizes"), table({"Size": "r", "Units": "r", "": ""}):
                for size, units in found["sizes"]:
                    last = size == found["largest"]
                    with tag("tr"):
                        tag("td", "r", f"{size:,} or more" if last else f"{size:,}")
                        tag("td", "r b", f"{units:,}")
                        with tag("td"), tag("div", "lane"):
                            tag("i").style(f"width:{100 * units / most:.1f}%")
            if found["left"]:
                tag("p", "pad s sub", f"{found['left']:,} more regions are in the files of the release.")
