"""What was tried on the Tables page: a chart to click on, and the same as a list that can be sorted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from louver.app.look import Tag, button
from louver.app.pages.tables_state import Tables, Try
from louver.app.parts import Points

__all__ = ["TriedPanel"]

HEADS = {"#": "number", "Arrangement": "", "S": "small", "C": "certain", "Kept %": "kept"}
SORT_WORDS = {
    "number": "number",
    "small": "small counts disclosed",
    "certain": "rows that tell a status",
    "kept": "information kept",
}
MOST_TRIED = 40


class TriedPanel:
    """The side of the Tables page."""

    def __init__(
        self,
        state: Tables,
        *,
        go_back: Callable[[int], Any],
        undo: Callable[[], Any],
        together: Callable[[], Any],
    ) -> None:
        self._state, self._go_back = state, go_back
        self._listed: list[int] = []
        self._lines: dict[int, Tag] = {}
        with Tag("div", "pad row between"):
            Tag("h2", text="Risk and usefulness")
        self._chart = Points(
            xlabel="small counts and rows that tell",
            ylabel="information kept, %",
            label="Arrangements tried",
            band=(0, 0),
        )
        self._chart.hear("choose", lambda number: go_back(int(number)))
        with Tag("div", "pad row between tried"):
            Tag("h2", "nowrap", "Tried so far")
            with Tag("span", "row"):
                title = "What several of them give away together"
                button("Together…", together, kind="ghost mini", title=title)
                button("Undo", undo, kind="ghost mini", icon_name="undo", data_undo="")
        self._tried = Tag("div", "scroll")
        self._best = Tag("div", "pad s sub best")
        self.paint()

    def paint(self) -> None:
        """Draw what is new."""
        placed = [_point(one) for one in self._state.tries if one.kept is not None]
        self._chart.put(points=placed, chosen=self._state.current)
        self._paint_list()
        self._best.set_text(self._state.best())

    def _paint_list(self) -> None:
        """The list of what was tried; where only the choice has changed, only that is drawn."""
        listed = self._state.sorted()
        shown = [one.number for one in listed]
        if shown == self._listed:
            for number, line in self._lines.items():
                line.classes(add="sel") if number == self._state.current else line.classes(remove="sel")
            return
        self._listed, self._lines = shown, {}
        self._tried.clear()
        with self._tried:
            with Tag("table"):
                with Tag("thead"), Tag("tr"):
                    for text, by in HEADS.items():
                        self._sort_head(text, by)
                with Tag("tbody"):
                    for one in listed[:MOST_TRIED]:
                        self._line(one)
            if (left := len(listed) - MOST_TRIED) > 0:
                Tag("p", "pad s sub", f"{left:,} more; sort by another column to see others.")

    def _sort_head(self, text: str, by: str) -> None:
        is_sorted = by == self._state.sort_by
        way = ("descending" if self._state.is_reversed else "ascending") if is_sorted else None
        with Tag("th", "r" if by in ("small", "certain", "kept") else "", scope="col", aria_sort=way):
            if not by:
                Tag("span", text=text)
                return
            title = f"Sort by {SORT_WORDS[by]}"
            made = Tag("button", "linky", text, type="button", title=title, aria_label=title)
            made.click(partial(self._sort, by))

    def _sort(self, by: str) -> None:
        self._state.sort(by)
        self._listed = []
        self._paint_list()

    def _line(self, one: Try) -> None:
        with Tag("tr", "sel" if one.number == self._state.current else "") as self._lines[one.number]:
            Tag("td", "b", str(one.number))
            with Tag("td", "s"):
                made = Tag("button", "linky", one.words, type="button", title=one.words)
                made.click(partial(self._go_back, one.number))
            for text in (f"{one.small:,}", f"{one.certain:,}", one.kept_told):
                Tag("td", "r", text)


def _point(one: Try) -> dict[str, Any]:
    place = {"x": one.small + one.certain, "y": round(100 * (one.kept or 0), 1)}
    return {"n": one.number, **place, "ok": one.level == "ok", "label": one.told}
