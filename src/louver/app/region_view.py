"""The regions of a release on a page: a tree with error bars, and a map if outlines are provided."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from louver._words import counted
from louver.app.copying import Texts, WithFiles
from louver.app.jobs.regions import area_of, area_of_file, area_of_text, outlined, regions_of
from louver.app.look import RunBar, Tag, button, card, copy_button, pill, segments, select, table, tag
from louver.app.parts import RegionMap, RegionTreeView
from louver.app.regions import MAX_OUTLINES, Folded, Match, Outlines, Regions, coloured, matched, tone_of
from louver.app.session import JobAnswer, Receiver, Session
from louver.data.samples import sample_outlines

__all__ = ["AreaPanel", "ChosenArea", "RegionView", "copied", "toggled"]

MOST_CHIPS = 24
MOST_ROWS = 200
MAX_LIST = 30_000_000
HOW = "Select regions in the tree, on the map, or with a list below: their people are added up, with an interval."
FILE = "area.csv"
"""Name of the list in a copied command."""


class ChosenArea:
    """The choices of a tab in one release, and the outcome."""

    def __init__(self) -> None:
        self.is_open = False
        self.codes: list[str] = []
        self.found: JobAnswer | None = None
        self.query = ""

    def marks(self, regions: Regions, lines: Sequence[int]) -> list[str]:
        """How lines of the tree relate to the area: `in`, `within` a region that is in it, `part` of it is in, or `out`."""
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
    """The area with a region added or removed; None if the region lies within one already in it.

    The root is added as the regions right below it, because it may have no code.
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
    area : ChosenArea
    changed : callable
        Called when the regions of the area change.
    headline : Tag
        Element near the tree that also shows the total.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        regions: Regions,
        area: ChosenArea,
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
        """Add or remove a region."""
        codes = toggled(self._regions, self._area.codes, region)
        if codes is None:
            self._session.say("This region lies within one that is already in the area.")
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
                    "A region includes everything in it. The list replaces the area.",
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
        """Replace the chosen regions with those of a list."""
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

    def _draw_result(self, found: JobAnswer) -> None:
        total = found["total"]
        with tag("div", "row wrap", data_area=""):
            tag("b", "b", _sentence(found, self._regions.finest))
            pill(total["rating"], tone_of(total["rating"]))
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

    def _draw_counts(self, rows: Sequence[JobAnswer]) -> None:
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


def _sentence(found: JobAnswer, level: str) -> str:
    """The people of an area in one line."""
    total = found["total"]
    return (
        f"{total['count']:,} people in {counted(found['leaves'], 'region')} of the level {level}; 90 % interval "
        f"{total['lower_90']:,} to {total['upper_90']:,}, standard error {total['standard_error']:g}."
    )


FIRST_LINES = 60
NOT_KNOWN = "no number"


class Looked:
    """The state in a tab: trees as they were left, by release, and the outlines provided."""

    def __init__(self) -> None:
        self.trees: dict[str, Folded] = {}
        self.areas: dict[str, ChosenArea] = {}
        self.outlines: Outlines | None = None
        self.property = ""
        self.by = "value"


class RegionView:
    """A tree of the regions of one release next to a map; a region selected in one is selected in the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._looked = session.state(Looked)
        self._bar = RunBar(session, "quick")
        self._place = tag("div")
        self._wanted: str | None = None
        self._tree: Folded | None = None
        self._map: RegionMap | None = None
        self._area = ChosenArea()
        self._panel: AreaPanel | None = None
        self._drawn: list[int] = []
        self._window = (0, FIRST_LINES)

    def clear(self) -> None:
        """Clear the view."""
        self._wanted = None
        self._place.clear()

    async def show(self, name: str) -> None:
        """Show the regions of a release; nothing if it has none, or if another was chosen in the meantime."""
        self._wanted = name
        if name not in self._looked.trees:
            folder = str(self._session.setup.releases)
            found: Regions | None = await self._bar.do(regions_of, folder, name, key="regions")
            if found is not None and found.regions:
                self._looked.trees[name] = Folded(found)
            if self._wanted != name or self._bar.is_gone:
                return
            if name not in self._looked.trees:
                self._place.clear()
                return
        self._tree = self._looked.trees[name]
        self._area = self._looked.areas.setdefault(name, ChosenArea())
        self._window = (0, FIRST_LINES)
        self._session.receivers["outlines"] = Receiver(
            self._take_outlines, (".geojson", ".json"), MAX_OUTLINES, "a GeoJSON file (.geojson or .json)"
        )
        self._draw()

    @property
    def _regions(self) -> Regions:
        assert self._tree is not None
        return self._tree.regions

    def _draw(self) -> None:
        regions = self._regions
        self._place.clear()
        with self._place, card():
            with tag("div", "pad row wrap"):
                tag("h2", text="Regions")
                counted = Counter(regions.levels[one.level] for one in regions.regions)
                listed = ", ".join(f"{level} {n:,}" for level, n in counted.items())
                tag("span", "s sub", listed)
                tag("div", "grow")
                find = tag(
                    "input", "inp", type="search", placeholder="Find a region", aria_label="Find a region"
                )
                find.on(
                    "keydown.enter", lambda e: self._find(e.args), js_handler="(e) => emit(e.target.value)"
                )
                if regions.can_add_up:
                    pressed = str(self._area.is_open).lower()
                    button("Add up regions", self._open_area, kind="mini", aria_pressed=pressed)
                button("Open all", lambda: self._fold(to=True), kind="mini")
                button("Close all", lambda: self._fold(to=False), kind="mini")
            self._message = tag("p", "pad s sub gone", role="status")
            self._headline = tag("p", f"pad s headline{'' if self._area.is_open else ' gone'}", role="status")
            with tag("div", "mapped" if self._looked.outlines is not None else ""):
                self._lines = RegionTreeView()
                self._lines.put(
                    columns=[
                        "Region",
                        regions.what,
                        "Standard error",
                        "90 % interval",
                        f"± {regions.scale:.0%}".replace("%", " %"),
                        "In words",
                    ],
                    label="Regions with their published numbers",
                    win=self._tree_window(),
                )
                for event, handler in (
                    ("view", self._view),
                    ("choose", self._choose),
                    ("toggle", self._toggle),
                    ("press", self._press),
                    ("pick", self._pick),
                ):
                    self._lines.hear(event, handler)
                self._side = tag("div", "stack")
            self._panel = None
            if self._area.is_open and self._wanted is not None:
                self._panel = AreaPanel(
                    self._session, self._wanted, regions, self._area, self._show_area, self._headline
                )
            self._draw_notes()
        self._draw_map()

    def _open_area(self) -> None:
        self._area.is_open = not self._area.is_open
        self._draw()

    async def _pick(self, region: int) -> None:
        """Add a region to the area, or remove it."""
        if self._panel is not None and 0 <= int(region) < len(self._regions.regions):
            await self._panel.toggle(int(region))

    def _show_area(self) -> None:
        """Mark the regions of the area in the tree and on the map."""
        self._lines.put(win=self._tree_window())
        if self._map is not None:
            self._map.put(picked=self._picked())

    def _picked(self) -> list[int]:
        """Positions on the map of the regions that are in the area."""
        if self._panel is None:
            return []
        places = self._drawn
        marks = self._area.marks(self._regions, places)
        return [one for one, mark in zip(places, marks, strict=True) if mark in ("in", "within")]

    def _draw_notes(self) -> None:
        regions = self._regions
        if regions.what == "People" and not regions.can_add_up:
            tag(
                "p",
                "pad s sub",
                "Regions cannot be added up here: the release has no intervals.",
            )
        if regions.left_out:
            tag(
                "p",
                "pad s sub",
                f"{regions.left_out:,} smaller regions are left out here; the files have them all.",
            )
        if self._looked.outlines is None:
            with tag("div", "pad row wrap"):
                tag(
                    "span",
                    "s sub",
                    "A map needs outlines: a public GeoJSON file with one outline per region.",
                )
                self._choose_outlines("Choose outlines")

    def _choose_outlines(self, text: str) -> None:
        choose = tag(
            "input", "gone", type="file", id="outlines", accept=".geojson,.json", aria_label="Outlines"
        )
        choose.on("change", js_handler="(e) => louver.upload(e.target.files[0], 'outlines')")
        button(text, kind="mini").on("click", js_handler="() => document.getElementById('outlines').click()")
        sample = sample_outlines(one.code for one in self._regions.regions)
        if sample is not None:
            button("Try made-up outlines", lambda: self._take_outlines(str(sample), ""), kind="mini ghost")

    def _tree_window(self) -> dict[str, Any]:
        assert self._tree is not None
        window = self._tree.window(*self._window)
        if self._area.is_open:
            lines = window["lines"]
            marks = self._area.marks(self._regions, [line["id"] for line in lines])
            for line, mark in zip(lines, marks, strict=True):
                line["mark"] = mark
        return window

    def _update(self) -> None:
        """Send the visible lines, or those around the chosen one if it is elsewhere, and the choice to the map."""
        assert self._tree is not None
        at = self._tree.line(self._tree.chosen)
        first, last = self._window
        if at is not None and not first <= at < last:
            self._window = (max(0, at - FIRST_LINES // 2), at + FIRST_LINES)
        self._lines.put(win=self._tree_window())
        if self._map is not None:
            self._map.put(chosen=self._tree.chosen)

    def _view(self, window: list[int]) -> None:
        assert self._tree is not None
        self._window = (int(window[0]), min(int(window[1]), int(window[0]) + 10 * FIRST_LINES))
        self._lines.put(win=self._tree_window())

    def _choose(self, region: int) -> None:
        assert self._tree is not None
        if 0 <= int(region) < len(self._regions.regions):
            self._tree.choose(int(region))
            self._update()

    def _toggle(self, region: int) -> None:
        assert self._tree is not None
        if 0 <= int(region) < len(self._regions.regions):
            self._tree.toggle(int(region))
            self._update()

    async def _press(self, key: str) -> None:
        assert self._tree is not None
        if key == " " and self._panel is not None:
            await self._panel.toggle(self._tree.chosen)
            return
        self._tree.press(str(key))
        self._update()

    def _fold(self, *, to: bool) -> None:
        assert self._tree is not None
        self._tree.open_all(to=to)
        self._update()

    def _find(self, text: object) -> None:
        assert self._tree is not None
        wanted = str(text).strip()
        found = self._regions.find(wanted, self._tree.chosen) if wanted else None
        self._message.classes(remove="gone")
        self._message.text = (
            "No region has a name with this text." if found is None else self._regions.describe(found)
        )
        if found is not None:
            self._choose(found)

    async def _take_outlines(self, path: str, name: str) -> None:
        found: Outlines | None = await self._bar.do(outlined, path, key="outlines")
        if found is None:
            return
        if not found.properties:
            self._bar.tell("the outlines have no property that could name a region; choose another file.")
            return
        best = max(
            found.properties, key=lambda one: len(set(matched(found, self._regions, one).regions.values()))
        )
        self._looked.outlines, self._looked.property = found, best
        if not self._bar.is_gone:
            self._draw()

    def _forget(self) -> None:
        self._looked.outlines = None
        self._draw()

    def _set_property(self, name: str) -> None:
        self._looked.property = name
        self._draw_map()

    def _set_by(self, by: str) -> None:
        self._looked.by = by
        self._draw_map()

    def _draw_map(self) -> None:
        outlines, looked = self._looked.outlines, self._looked
        self._side.clear()
        self._map = None
        if outlines is None:
            return
        match = matched(outlines, self._regions, looked.property)
        with self._side:
            with tag("div", "row wrap"):
                names = {name: name for name in outlines.properties}
                tag("span", "s sub", "Named by")
                select(names, looked.property, self._set_property, "Property that names the region")
                choices = {"value": self._regions.what, "error": "Error"}
                segments(choices, looked.by, self._set_by, "Colour by")
            self._paint(outlines, match)

    def _paint(self, outlines: Outlines, match: Match) -> None:
        regions, by = self._regions, self._looked.by
        level = regions.levels[match.level]
        self._drawn = sorted(set(match.regions.values()))
        if match.regions:
            classes, legend = coloured(regions, self._drawn, by)
            self._map = RegionMap()
            self._map.put(
                width=outlines.width,
                height=outlines.height,
                shapes=_shapes(outlines, match, regions, classes),
                chosen=0 if self._tree is None else self._tree.chosen,
                picked=self._picked(),
                label=f"Map of {len(match.regions)} outlines; arrow keys move from one to the next, the tree has the same numbers",
            )
            self._map.hear("choose", self._choose)
            self._map.hear("pick", self._pick)
            self._legend(legend, has_unknown=len(classes) < len(self._drawn))
        inside = sum(one.level == match.level for one in regions.regions)
        content = f"{len(self._drawn):,} of {inside:,} regions of the level {level} have an outline."
        if not match.regions:
            content = "No outline has the name of a region; choose another property, or another file."
        elif (others := len(outlines.paths) - len(match.regions)) > 0:
            content += f" {others:,} outlines name no such region and are not drawn."
        tag("p", "s sub", content)
        with tag("div", "row wrap"):
            if not match.regions:
                self._choose_outlines("Choose other outlines")
            button("Remove the map", self._forget, kind="mini ghost")

    def _legend(self, legend: list[str], *, has_unknown: bool) -> None:
        with tag("div", "legend s"):
            for number, text in enumerate(legend):
                with tag("span", "row"):
                    tag("i", f"c{number}")
                    tag("span", text=text)
            if has_unknown:
                with tag("span", "row"):
                    tag("i", "c-1")
                    tag("span", text=NOT_KNOWN)


def _shapes(
    outlines: Outlines, match: Match, regions: Regions, classes: dict[int, int]
) -> list[dict[str, Any]]:
    """The drawing: the outlines of each region, merged into one path."""
    drawn: dict[int, dict[str, Any]] = {}
    for shape, region in match.regions.items():
        if region in drawn:
            drawn[region]["d"] += outlines.paths[shape]
            continue
        x, y = outlines.centres[shape]
        drawn[region] = {
            "id": region,
            "d": outlines.paths[shape],
            "x": round(x, 1),
            "y": round(y, 1),
            "c": classes.get(region, -1),
            "words": regions.describe(region),
        }
    return list(drawn.values())
