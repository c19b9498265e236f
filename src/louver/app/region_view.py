"""The regions of a release on a page: a tree with error bars, and a map where somebody gives the outlines."""

from __future__ import annotations

from collections import Counter
from typing import Any

from louver.app.area_view import Area, AreaPanel
from louver.app.jobs.regions import outlined, regions_of
from louver.app.look import RunBar, button, card, segments, select, tag
from louver.app.outlines import MAX_OUTLINES, Match, Outlines, coloured, matched
from louver.app.parts import RegionMap, RegionTree
from louver.app.regions import Folded, Regions
from louver.app.session import Receiver, Session
from louver.data.samples import sample_outlines

__all__ = ["RegionView"]

FIRST_LINES = 60
NOT_KNOWN = "no number"


class Looked:
    """What a tab looked at: trees as they were left, by release, and the outlines that were given."""

    def __init__(self) -> None:
        self.trees: dict[str, Folded] = {}
        self.areas: dict[str, Area] = {}
        self.outlines: Outlines | None = None
        self.property = ""
        self.by = "value"


class RegionView:
    """A tree of the regions of one release and a map beside it; a region chosen on one is chosen on the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._looked = session.state(Looked)
        self._bar = RunBar(session, "quick")
        self._place = tag("div")
        self._wanted: str | None = None
        self._tree: Folded | None = None
        self._map: RegionMap | None = None
        self._area = Area()
        self._panel: AreaPanel | None = None
        self._drawn: list[int] = []
        self._window = (0, FIRST_LINES)

    def clear(self) -> None:
        """Show nothing."""
        self._wanted = None
        self._place.clear()

    async def show(self, name: str) -> None:
        """Show the regions of a release; nothing where it has none, or where another was chosen meanwhile."""
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
        self._area = self._looked.areas.setdefault(name, Area())
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
            self._told = tag("p", "pad s sub gone", role="status")
            self._headline = tag("p", f"pad s headline{'' if self._area.is_open else ' gone'}", role="status")
            with tag("div", "mapped" if self._looked.outlines is not None else ""):
                self._lines = RegionTree()
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
        """Put a region into the area, or take it out."""
        if self._panel is not None and 0 <= int(region) < len(self._regions.regions):
            await self._panel.toggle(int(region))

    def _show_area(self) -> None:
        """Mark the regions of the area in the tree and on the map."""
        self._lines.put(win=self._tree_window())
        if self._map is not None:
            self._map.put(picked=self._picked())

    def _picked(self) -> list[int]:
        """Places of the regions on the map that are in the area."""
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
                "Its regions cannot be added up here: the release has no intervals.",
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
                    "A map needs outlines: a public GeoJSON file, one outline for each region.",
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
        """Send the lines that are seen, those around the chosen one if it is elsewhere, and the choice to the map."""
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
        self._told.classes(remove="gone")
        self._told.text = "No region has this in its name." if found is None else self._regions.told(found)
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
                label=f"Map of {len(match.regions)} outlines; arrows go from one to the next, the tree says the same",
            )
            self._map.hear("choose", self._choose)
            self._map.hear("pick", self._pick)
            self._legend(legend, has_unknown=len(classes) < len(self._drawn))
        inside = sum(one.level == match.level for one in regions.regions)
        told = f"{len(self._drawn):,} of {inside:,} regions of the level {level} have an outline."
        if not match.regions:
            told = "No outline has the name of a region; choose another property, or another file."
        elif (others := len(outlines.paths) - len(match.regions)) > 0:
            told += f" {others:,} outlines name no such region and are not drawn."
        tag("p", "s sub", told)
        with tag("div", "row wrap"):
            if not match.regions:
                self._choose_outlines("Choose other outlines")
            button("Take the map away", self._forget, kind="mini ghost")

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
    """What is drawn: a region's outlines as one."""
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
            "told": regions.told(region),
        }
    return list(drawn.values())
