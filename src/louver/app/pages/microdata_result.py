"""What came of a run on the page Microdata: numbers, the curve over k, losses, distributions, what was tried, classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from louver.app.look import Tag, button, card, drawer, number_tile, segments, table
from louver.app.parts import Points
from louver.app.words import natural_order, share_text

__all__ = ["ClassesPanel", "curve", "distributions", "losses", "numbers", "tried"]

MOST_BINS = 40
SHORT = 14
FIRST_CLASSES = {"ascending": "Smallest first", "descending": "Largest first"}
Told = Mapping[str, Any]


def numbers(found: Told) -> None:
    """The four numbers that people ask for first."""
    risk = found["risk"]
    with Tag("div", "tiles four"):
        number_tile(share_text(found["gcp"]), "detail lost")
        out = f", {found['suppressed']:,} left out" if found["suppressed"] else ""
        number_tile(f"{found['classes']:,}", f"classes, smallest {found['smallest_class']:,}{out}")
        number_tile(f"{risk['uniques_before']:,} → {risk['uniques_after']:,}", "people alone")
        number_tile(share_text(risk["prosecutor_highest"]), "highest chance to be found")


def curve(points: Mapping[int, float], chosen: int, choose: Callable[[int], Any]) -> None:
    """Detail lost against k, to click on."""
    chart = Points(
        xlabel="k, safer to the right",
        ylabel="detail lost, %",
        label="Detail lost, by k",
        line=True,
        even=True,
    )
    listed = [
        {"n": k, "x": k, "y": 100 * lost, "ok": False, "label": f"k = {k}: {share_text(lost)} lost"}
        for k, lost in sorted(points.items())
    ]
    chart.put(points=listed, chosen=chosen, high=max(110 * lost for lost in points.values()) or 1)
    chart.hear("choose", lambda k: choose(int(k)))


def losses(by_column: Sequence[tuple[str, float]]) -> None:
    """What each attribute loses, as bars."""
    most = max((share for _, share in by_column), default=0) or 1
    for name, share in by_column:
        with Tag("div", "slide wide"):
            Tag("span", "s clip", name, title=name)
            with Tag("div", "lane"):
                Tag("i").style(f"width:{100 * share / most:.1f}%")
            Tag("span", "s", share_text(share))


def distributions(lines: Sequence[Told]) -> None:
    """Before and after of all columns at once."""
    with card("pad"):
        with Tag("div", "row between"):
            Tag("h2", text="Before and after")
            Tag(
                "span",
                "s sub",
                "Grey bars: before. Blue lines: after. The percentage says how far apart they are.",
            )
        with Tag("div", "multiples"):
            for line in lines:
                with Tag("div"):
                    _before_after(line)


def _before_after(line: Told) -> None:
    bins = list(zip(line["bins"], line["before"], line["after"], strict=True))
    bins = [bins[place] for place in _order(line["bins"])][:MOST_BINS]
    most = max((max(before, after) for _, before, after in bins), default=0) or 1
    with Tag("div", "row between s"):
        Tag("b", "b clip", line["name"], title=line["name"])
        Tag("span", "sub nowrap", share_text(line["distance"]))
    with Tag(
        "div",
        "pairs",
        role="img",
        aria_label=f"{line['name']} before and after; the table below it says the same",
    ):
        for label, before, after in bins:
            with Tag("div", title=f"{label}: {share_text(before)} before, {share_text(after)} after"):
                Tag("i").style(f"height:{100 * before / most:.1f}%")
                Tag("b").style(f"bottom:{100 * after / most:.1f}%")
        Tag("u", text=share_text(most), aria_hidden="true")
    with Tag("div", "row between s sub ends", aria_hidden="true"):
        Tag("span", "clip", str(bins[0][0]) if bins else "")
        Tag("span", "clip r", str(bins[-1][0]) if len(bins) > 1 else "")
    with Tag("details", "s"):
        Tag("summary", text="As a table")
        with table({"Value": "", "Before": "r", "After": "r"}):
            for label, before, after in bins:
                with Tag("tr"):
                    Tag("td", "", str(label))
                    Tag("td", "r", share_text(before))
                    Tag("td", "r", share_text(after))


def _order(labels: Sequence[str]) -> Sequence[int]:
    """Labels in the order of text have none of their own: then numbers go by their size."""
    listed = list(labels)
    is_text = listed == sorted(listed) or listed[:-1] == sorted(listed[:-1])  # a missing value comes last
    return natural_order(listed) if is_text else range(len(listed))


def tried(runs: Sequence[Told], again: Callable[[int], Any]) -> None:
    """All runs of this tab side by side; a click sets the form as it was."""
    with card("pad"):
        Tag("h2", text="Tried so far")
        heads = {
            "#": "",
            "k": "r",
            "Recoding": "",
            "Method": "",
            "Left out": "r",
            "Classes": "r",
            "Detail lost": "r",
        }
        with table(heads):
            for number, one in enumerate(runs):
                with Tag("tr", "sel" if number == len(runs) - 1 else ""):
                    with Tag("td"):
                        Tag(
                            "button", "linky b", str(number + 1), type="button", title="Set the form to this"
                        ).click(partial(again, number))
                    Tag("td", "r", str(one["k"]))
                    Tag("td", "s", one["recoding"])
                    Tag("td", "s", one["method"])
                    for text in (f"{one['suppressed']:,}", f"{one['classes']:,}", share_text(one["lost"])):
                        Tag("td", "r", text)


class ClassesPanel:
    """The published classes, a page of them at a time."""

    def __init__(self, fetch: Callable[[int, str], Any], found: Told) -> None:
        self._fetch, self._order, self._start = fetch, "ascending", 0
        with drawer("Classes of people who look alike").classes("wide"):
            segments(FIRST_CLASSES, self._order, self._sort, "Order of the classes")
            self._body = Tag("div", "stack")
        self._paint(found)

    async def _sort(self, order: str) -> None:
        self._order, self._start = order, 0
        await self._go(0)

    async def _go(self, start: int) -> None:
        found = await self._fetch(start, self._order)
        if found is not None and not self._body.is_deleted:
            self._start = start
            self._paint(found)

    def _paint(self, found: Told) -> None:
        last = self._start + len(found["rows"])
        self._body.clear()
        with self._body:
            with Tag("div", "row between"):
                Tag("span", "s sub", f"{self._start + 1:,} to {last:,} of {found['n']:,} classes")
                with Tag("span", "row"):
                    if self._start:
                        button("Before", partial(self._go, max(self._start - found["step"], 0)), kind="mini")
                    if last < found["n"]:
                        button("Next", partial(self._go, last), kind="mini")
            values = {f"{name}, values": "r" for name in found["sensitive"]}
            with table({"Records": "r"} | values | dict.fromkeys(found["columns"], "")):
                for labels, counts in found["rows"]:
                    with Tag("tr"):
                        for count in counts:
                            Tag("td", "r", f"{count:,}")
                        for label in labels:
                            Tag("td", "s nowrap" if len(label) < SHORT else "s", label)
