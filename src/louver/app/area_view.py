"""An area of a release: regions that are chosen on a tree, on a map or by a list, and the people of all of them together."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from louver._words import counted
from louver.app.copying import Texts, WithFiles
from louver.app.jobs.areas import area_of, area_of_file, area_of_text
from louver.app.look import RunBar, Tag, button, copy_button, pill, select, table, tag
from louver.app.regions import Regions, in_words
from louver.app.session import Receiver, Session

__all__ = ["Area", "AreaPanel", "copied", "toggled"]

MOST_CHIPS = 24
MOST_ROWS = 200
MAX_LIST = 30_000_000
HOW = "Check regions in the tree, click them on the map, or use a list below: their people are added up, with an interval."
FILE = "area.csv"
"""What a copied command calls the list."""
Told = Mapping[str, Any]


class Area:
    """What a tab chose of one release, and what came of it."""

    def __init__(self) -> None:
        self.is_open = False
        self.codes: list[str] = []
        self.found: Told | None = None
        self.query = ""

    def marks(self, regions: Regions, lines: Sequence[int]) -> list[str]:
        """How lines of the tree stand to the area: `in`, `within` a region that is in it, `part` of it is in, or `out`."""
        own = {regions.places[code] for code in self.codes if code in regions.places}
        own |= {root for root in regions.roots if set(regions.below(root)) <= own and regions.below(root)}
        above = {up for one in own for up in regions.above(one)}
        return [
            "in"
            if one in own
            else "within"
            if own & set(regions.above(one))
            else "part"
            if one in above
            else "out"
            for one in lines
        ]


def toggled(regions: Regions, codes: Sequence[str], region: int) -> list[str] | None:
    """The area with a region put in or taken out; None where the region lies in one that is in it.

    The whole is put in as the regions right below it, for it may have no code.
    """
    code = regions.regions[region].code
    if code in codes and code:
        return [one for one in codes if one != code]
    inside = set(regions.inside(region))
    if not code:
        below = [regions.regions[i].code for i in regions.below(region)]
        return [] if set(below) <= set(codes) else below
    if any(regions.regions[up].code in codes for up in regions.above(region) if regions.regions[up].code):
        return None
    return [*(one for one in codes if regions.places.get(one) not in inside), code]


def copied(release: str, codes: Sequence[str]) -> WithFiles:
    """The same at the command line, with the list as a file, and in Python."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([code] for code in codes)
    command = ("louver", "topdown", "area", release, f"--leaves={FILE}")
    return WithFiles(
        Texts(command, f"print(lv.topdown.area({release!r}, leaves={FILE!r}))"), {FILE: text.getvalue()}
    )


class AreaPanel:
    """The regions that are added up, a list to choose them by, and their people with intervals.

    Parameters
    ----------
    session : Session
    name : str
        Of the release.
    regions : Regions
    area : Area
    changed : callable
        Called when other regions make the area.
    headline : Tag
        Where the total stands too, in sight of the tree.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        regions: Regions,
        area: Area,
        changed: Callable[[], object],
        headline: Tag,
    ) -> None:
        self._session, self._name, self._regions = session, name, regions
        self._area, self._changed, self._headline = area, changed, headline
        self._release = f"{session.setup.releases}/{name}"
        with tag("div", "pad stack area"):
            with tag("div", "row wrap"):
                tag("h3", text="Area")
                tag("div", "grow")
                button("Clear", self._clear, kind="mini ghost")
                copy_button(self._copied, "Copy the area as…", kind="mini", data_copy=None)
            self._chips = tag("div", "chips", aria_label="Regions of the area", role="group")
            self._draw_list()
            self._bar = RunBar(session, "quick")
            self._result = tag("div", "stack")
        self._bar.dim(self._result)
        self._draw()

    async def toggle(self, region: int) -> None:
        """Put a region in, or take it out."""
        codes = toggled(self._regions, self._area.codes, region)
        if codes is None:
            self._session.say("This region lies in one that is part of the area.")
            return
        self._area.codes = codes
        self._changed()
        await self._estimate()

    def _draw_list(self) -> None:
        with tag("details", "s"):
            tag("summary", text="Use a list")
            with tag("div", "stack"):
                tag(
                    "p",
                    "s sub",
                    "One code of a region per line, or a CSV file with the geography columns of the release. "
                    "A region stands for everything in it. The list replaces the area.",
                )
                box = tag("textarea", "inp mono", rows=4, aria_label="List of regions", spellcheck="false")
                choose = tag(
                    "input", "gone", type="file", id="area", accept=".csv,.txt", aria_label="File with a list"
                )
                choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'area')")
                with tag("div", "row"):
                    use = button("Use this list", kind="mini")
                    button("Choose a file", kind="mini").on(
                        "click", js_handler="() => document.getElementById('area').click()"
                    )
        use.on(
            "click",
            lambda e: self._take(area_of_text, str(e.args), str(self._session.folder)),
            js_handler=f"() => emit(document.getElementById('c{box.id}').value)",
        )
        self._session.receivers["area"] = Receiver(
            self._take_file, (".csv", ".txt"), MAX_LIST, "a CSV or text file"
        )

    async def _take_file(self, path: str, name: str) -> None:
        await self._take(area_of_file, path)

    async def _take(self, job: Callable[..., Any], *given: str) -> None:
        """Take a list in place of the regions that were chosen."""
        releases = str(self._session.setup.releases)
        found = await self._bar.do(job, releases, self._name, *given, key="area")
        if found is not None:
            self._area.codes, self._area.found = found["codes"], found
            if not self._bar.is_gone:
                self._changed()
                self._draw()

    async def _clear(self) -> None:
        self._area.codes = []
        self._changed()
        await self._estimate()

    async def _estimate(self) -> None:
        area, codes = self._area, list(self._area.codes)
        if not codes:
            area.found = None
            self._draw()
            return
        self._draw_chips()
        found = await self._bar.do(area_of, str(self._session.setup.releases), self._name, codes, key="area")
        if found is not None and codes == area.codes:
            area.found = found
            if not self._bar.is_gone:
                self._draw()

    def _copied(self) -> WithFiles | None:
        return copied(self._release, self._area.codes) if self._area.codes else None

    def _draw(self) -> None:
        found = self._area.found
        self._headline.text = HOW if found is None else _sentence(found, self._regions.finest)
        self._draw_chips()
        self._result.clear()
        if found is not None:
            with self._result:
                self._draw_result(found)

    def _draw_chips(self) -> None:
        codes = self._area.codes
        self._chips.clear()
        with self._chips:
            for code in codes[:MOST_CHIPS]:
                button(
                    code,
                    partial(self._take_out, code),
                    kind="mini",
                    icon_name="close",
                    aria_label=f"Take {code} out",
                )
            if len(codes) > MOST_CHIPS:
                tag("span", "s sub", f"and {len(codes) - MOST_CHIPS:,} more")
            if not codes:
                tag("span", "s sub", "No region yet.")

    async def _take_out(self, code: str) -> None:
        self._area.codes = [one for one in self._area.codes if one != code]
        self._changed()
        await self._estimate()

    def _draw_result(self, found: Told) -> None:
        total = found["total"]
        half = (total["upper_90"] - total["lower_90"]) / 2
        with tag("div", "row wrap", data_area=""):
            tag("b", "b", _sentence(found, self._regions.finest))
            pill(*in_words(half / max(total["count"], 1)))
        queries = list(dict.fromkeys(count["query"] for count in found["counts"]))
        if not queries:
            return
        query = self._area.query if self._area.query in queries else queries[0]
        rows = [count for count in found["counts"] if count["query"] == query]
        with tag("div", "row wrap"):
            tag("span", "s sub", "Counts by")
            select({name: name for name in queries}, query, self._set_query, "Question about the area")
        with tag("div", "sizes scroll"):
            self._draw_counts(rows[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            tag("p", "s sub", f"And {len(rows) - MOST_ROWS:,} more; the copied command has them all.")

    def _draw_counts(self, rows: Sequence[Told]) -> None:
        names = list(rows[0]["labels"])
        columns = dict.fromkeys(names, "") | {"People": "r", "Standard error": "r", "90 % interval": "r"}
        with table(columns):
            for row in rows:
                with tag("tr"):
                    for name in names:
                        tag("td", "", row["labels"][name])
                    tag("td", "r b", f"{row['count']:,}")
                    tag("td", "r", f"{row['standard_error']:g}")
                    tag("td", "r", f"{row['lower_90']:,} to {row['upper_90']:,}")

    def _set_query(self, query: str) -> None:
        self._area.query = query
        self._draw()


def _sentence(found: Told, level: str) -> str:
    """The people of an area in one line."""
    total = found["total"]
    return (
        f"{total['count']:,} people in {counted(found['leaves'], 'region')} of the level {level}; 90 % interval "
        f"{total['lower_90']:,} to {total['upper_90']:,}, standard error {total['standard_error']:g}."
    )
