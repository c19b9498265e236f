"""The regions of a release as a collapsible tree: the visible lines, their text, and the effect of keys.

It shows only published numbers: counts with their standard errors and 90 % intervals, as in the files of the release.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from louver._arrays import Bools, Floats, Ints
from louver._verdict import RATINGS, TOO_NOISY, rate_error
from louver.errors import InputError
from louver.run import Run
from louver.schema.validate import decode_text, read_bytes

__all__ = [
    "MAX_OUTLINES",
    "TONES",
    "Folded",
    "Match",
    "Outlines",
    "Region",
    "Regions",
    "coloured",
    "in_words",
    "matched",
    "read_outlines",
    "tone_of",
]

SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Possible upper ends of the scale of interval plots."""
COVERED = 0.9
"""Share of the intervals that should fit on the scale."""
TONES = {"very good": "ok", "usable": "acc", "rough": "care"}
"""The colour of each rating of a relative error; the others are red."""
PAGE_LINES = 10
"""Number of lines that Page Up and Page Down move."""


@dataclass(frozen=True, slots=True)
class Region:
    """One region as listed in its release; `code` is the name that outlines may use, `parent` its position in the list, or -1."""

    level: int
    name: str
    code: str
    parent: int
    count: int
    error: float | None
    lower: int | None
    upper: int | None


@dataclass(frozen=True, eq=False)
class Regions:
    """All regions of a release, each followed by those inside it.

    Attributes
    ----------
    what : str
        What is counted, such as "People".
    levels : tuple of str
    regions : tuple of Region
        In the order of the tree; `parent` is a place in this order.
    left_out : int
        Regions of lower levels that are too many to show.
    finest : str
        The lowest level, shown or not.
    can_add_up : bool
        Whether any regions can be added up with an interval.
    """

    what: str
    levels: tuple[str, ...]
    regions: tuple[Region, ...]
    left_out: int = 0
    finest: str = ""
    can_add_up: bool = False

    @classmethod
    def of(
        cls,
        what: str,
        levels: Sequence[str],
        listed: Sequence[Region],
        most: int,
        *,
        can_add_up: bool = False,
    ) -> Regions:
        """Sort a list, in which parents may appear anywhere, into tree order; levels beyond `most` regions are left out."""
        sizes = np.bincount([region.level for region in listed], minlength=len(levels)).cumsum()
        depth = max(int(np.searchsorted(sizes, most, side="right")), 1)
        kept = [i for i, region in enumerate(listed) if region.level < depth]
        inside: dict[int, list[int]] = {}
        for i in kept:
            inside.setdefault(listed[i].parent, []).append(i)
        place: dict[int, int] = {-1: -1}
        ordered: list[Region] = []
        waiting = inside.get(-1, [])[::-1]
        while waiting:
            i = waiting.pop()
            one = listed[i]
            place[i] = len(ordered)
            ordered.append(replace(one, parent=place[one.parent]))
            waiting += inside.get(i, [])[::-1]
        return cls(
            what, tuple(levels[:depth]), tuple(ordered), len(listed) - len(kept), levels[-1], can_add_up
        )

    @cached_property
    def parent(self) -> Ints:
        return np.array([region.parent for region in self.regions], np.int64)

    @cached_property
    def level(self) -> Ints:
        return np.array([region.level for region in self.regions], np.int64)

    @cached_property
    def places(self) -> dict[str, int]:
        """Position of each region, by its code."""
        return {region.code: i for i, region in enumerate(self.regions)}

    def above(self, region: int) -> list[int]:
        """The regions in which a region lies."""
        found = []
        while (region := int(self.parent[region])) >= 0:
            found.append(region)
        return found

    def inside(self, region: int) -> range:
        """The regions inside a region, which come after it in the list."""
        ends = np.flatnonzero(self.level[region + 1 :] <= self.level[region])
        return range(region + 1, region + 1 + int(ends[0]) if len(ends) else len(self.regions))

    def below(self, region: int) -> list[int]:
        """The regions directly below a region."""
        found: list[int] = np.flatnonzero(self.parent == region).tolist()
        return found

    @property
    def roots(self) -> list[int]:
        """The regions at the top."""
        return self.below(-1)

    @cached_property
    def has_inside(self) -> Bools:
        """Whether there are regions below."""
        found = np.zeros(len(self.regions), np.bool_)
        found[self.parent[self.parent >= 0]] = True
        return found

    @cached_property
    def relative(self) -> Floats:
        """Half of each interval as a share of its number; NaN where no interval is known."""
        halves = [
            np.nan if one.lower is None or one.upper is None else (one.upper - one.lower) / 2
            for one in self.regions
        ]
        counts = np.array([max(one.count, 1) for one in self.regions])
        return np.asarray(np.array(halves) / counts, np.float64)

    @cached_property
    def scale(self) -> float:
        """Upper end of the drawn intervals: the smallest limit within which most of them fit."""
        known = self.relative[~np.isnan(self.relative)]
        most = float(np.quantile(known, COVERED)) if len(known) else SCALES[-1]
        return next((scale for scale in SCALES if most <= scale), SCALES[-1])

    def find(self, text: str, after: int) -> int | None:
        """The next region whose name or code contains a text, starting over at the end."""
        wanted, n = text.casefold(), len(self.regions)
        places: Iterable[int] = ((after + 1 + step) % n for step in range(n))
        return next(
            (
                i
                for i in places
                if wanted in self.regions[i].name.casefold() or wanted in self.regions[i].code.casefold()
            ),
            None,
        )

    def describe(self, i: int) -> str:
        """A region in one line."""
        one = self.regions[i]
        return f"{self.levels[one.level]} {one.name}: {one.count:,} ({_interval(one)})"


class Folded:
    """A tree with some regions open and one chosen."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.is_open = np.zeros(len(regions.regions), np.bool_)
        self.is_open[regions.parent == -1] = True
        self.chosen = 0
        self._lines: Ints | None = None

    @property
    def lines(self) -> Ints:
        """Visible regions, from top to bottom."""
        if self._lines is None:
            regions = self.regions
            is_seen = regions.parent == -1
            for level in range(1, len(regions.levels)):
                here = np.flatnonzero(regions.level == level)
                above = regions.parent[here]
                is_seen[here] = is_seen[above] & self.is_open[above]
            self._lines = np.flatnonzero(is_seen)
        return self._lines

    def toggle(self, region: int, *, to: bool | None = None) -> None:
        """Open or close a region; if the chosen region lies inside one being closed, that one is chosen instead."""
        self.is_open[region] = (not self.is_open[region]) if to is None else to
        self._lines = None
        while self.line(self.chosen) is None:
            self.chosen = int(self.regions.parent[self.chosen])

    def open_all(self, *, to: bool = True) -> None:
        """Open or close everything; the top level stays open."""
        self.is_open[:] = to
        self.is_open[self.regions.parent == -1] = True
        self._lines = None
        self.toggle(0, to=True)

    def choose(self, region: int) -> None:
        """Choose a region, and open the regions that contain it."""
        self.chosen = region
        above = int(self.regions.parent[region])
        while above >= 0:
            self.is_open[above] = True
            above = int(self.regions.parent[above])
        self._lines = None

    def line(self, region: int) -> int | None:
        """The line in which a region is visible."""
        place = int(np.searchsorted(self.lines, region))
        return place if place < len(self.lines) and self.lines[place] == region else None

    def press(self, key: str) -> None:
        """Handle a key as in every tree: arrows move, right opens, left closes or goes up."""
        region, line = self.chosen, self.line(self.chosen) or 0
        if key in ("Enter", " "):
            self.toggle(region)
        elif key == "ArrowRight" and self.regions.has_inside[region] and not self.is_open[region]:
            self.toggle(region, to=True)
        elif key == "ArrowLeft" and self.regions.has_inside[region] and self.is_open[region]:
            self.toggle(region, to=False)
        elif key == "ArrowLeft":
            self.chosen = max(int(self.regions.parent[region]), 0)
        else:
            step = {"ArrowDown": 1, "ArrowUp": -1, "PageDown": PAGE_LINES, "PageUp": -PAGE_LINES}
            step |= {"Home": -line, "End": len(self.lines)}
            step["ArrowRight"] = 1 if self.regions.has_inside[region] else 0
            self.chosen = int(self.lines[np.clip(line + step.get(key, 0), 0, len(self.lines) - 1)])

    def window(self, first: int, last: int) -> dict[str, Any]:
        """The lines of a window, and the position of the chosen one."""
        first = max(0, min(first, len(self.lines)))
        seen = self.lines[first : max(first, last)].tolist()
        return {
            "n": len(self.lines),
            "first": first,
            "lines": [self._line(region) for region in seen],
            "chosen": self.chosen,
            "at": self.line(self.chosen),
        }

    def _line(self, i: int) -> dict[str, Any]:
        one = self.regions.regions[i]
        words: dict[str, Any] = {
            "id": i,
            "level": one.level,
            "name": one.name,
            "kind": self.regions.levels[one.level],
            "has": bool(self.regions.has_inside[i]),
            "open": bool(self.is_open[i]),
            "count": f"{one.count:,}",
            "error": "" if one.error is None else f"{one.error:,.3g}" if one.error else "0",
            "interval": _interval(one),
        }
        if one.lower is None or one.upper is None:
            return words
        count, relative = max(one.count, 1), float(self.regions.relative[i])
        ends = ((end - one.count) / count for end in (one.lower, one.upper))
        start, end = (round(50 + 50 * max(-1.0, min(1.0, off / self.regions.scale)), 2) for off in ends)
        word, kind = in_words(relative)
        return words | {"start": start, "end": end, "word": word, "tone": kind, "off": _percent(relative)}


def in_words(share: float) -> tuple[str, str]:
    """The rating of a number with this relative error, and the kind of its pill."""
    word = rate_error(share)
    return word, tone_of(word)


def tone_of(rating: str) -> str:
    """The kind of the pill of a rating."""
    return TONES.get(rating, "stop")


def _interval(one: Region) -> str:
    if one.lower is None or one.upper is None:
        return "no interval"
    return "exact" if one.lower == one.upper else f"{one.lower:,} to {one.upper:,}"


def _percent(relative: float) -> str:
    if not relative:
        return ""
    return f"± {100 * relative:,.0f} %" if relative >= 0.1 else f"± {100 * relative:.2g} %"


MAX_OUTLINES = 30_000_000
"""Bytes of a GeoJSON file."""
MOST_POINTS, MOST_SHAPES, MOST_PROPERTIES, MOST_LETTERS = 2_000_000, 20_000, 40, 200
WIDE, HIGH = 600.0, 560.0
"""Maximum size of the drawing."""
APART = 0.4
"""Points closer than this are merged: no screen can separate them."""
CLASSES = 5
Ring = Floats


@dataclass(frozen=True, slots=True)
class Outlines:
    """Shapes that can be drawn.

    Attributes
    ----------
    width, height : float
        Of the drawing.
    paths : list of str
        SVG paths, made of numbers and the letters M, L and Z.
    centres : list of (float, float)
    properties : mapping of str to list of str
        Properties of each shape in the file, by name; an empty text where a property is missing.
    """

    width: float
    height: float
    paths: list[str]
    centres: list[tuple[float, float]]
    properties: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Match:
    """The regions of shapes: shape -> region, all of one level."""

    level: int
    regions: Mapping[int, int]


def read_outlines(path: str, run: Run) -> Outlines:
    """Read a GeoJSON file of polygons.

    Raises
    ------
    InputError
        One sentence on why it cannot be drawn.
    """
    features = _features(path)
    shapes = [list(_rings(feature, number)) for number, feature in enumerate(features, start=1)]
    run.check()
    if sum(len(ring) for shape in shapes for ring in shape) > MOST_POINTS:
        raise InputError(f"the outlines have more than {MOST_POINTS:,} points; simplify them.")
    width, height, drawn = _projected(shapes)
    paths = ["".join(map(_path, shape)) for shape in drawn]
    centres = [_centre(shape) for shape in drawn]
    return Outlines(width, height, paths, centres, _properties(features))


def _features(path: str) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(decode_text(read_bytes(path), "the file"))
    except (ValueError, RecursionError):  # the parser's own message may quote the file
        content = None
    found = content.get("features") if isinstance(content, dict) else None
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise InputError(
            "this is not a GeoJSON file; choose a FeatureCollection with an outline for each region."
        )
    if len(found) > MOST_SHAPES:
        raise InputError(f"there are more than {MOST_SHAPES:,} outlines; choose those of a higher level.")
    return found


def _rings(feature: Mapping[str, Any], number: int) -> Iterator[Ring]:
    """The closed lines of one shape."""
    geometry = feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise InputError(f"outline {number} is neither a Polygon nor a MultiPolygon; leave out all others.")
    assert isinstance(geometry, dict)
    given: Any = geometry.get("coordinates")
    try:
        for polygon in [given] if kind == "Polygon" else list(given):
            for ring in polygon:
                points = np.array([point[:2] for point in ring], np.float64)
                if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3:
                    raise ValueError
                if not np.isfinite(points).all() or np.abs(points).max() > 1e9:
                    raise ValueError
                yield points
    except (ValueError, TypeError, IndexError, OverflowError, KeyError):
        raise InputError(
            f"outline {number} has coordinates that are not a closed line; correct it, or leave it out."
        ) from None


def _projected(shapes: Sequence[Sequence[Ring]]) -> tuple[float, float, list[list[Ring]]]:
    """Shapes on the drawing: longitudes are narrowed according to latitude, north is up."""
    points = [ring for shape in shapes for ring in shape]
    if not points:
        raise InputError("the outlines have no points; choose another file.")
    every = np.concatenate(points)
    is_degrees = np.abs(every[:, 0]).max() <= 360 and np.abs(every[:, 1]).max() <= 90
    squeeze = math.cos(math.radians(float(every[:, 1].mean()))) if is_degrees else 1.0
    squeeze = max(squeeze, 0.05)
    turn = is_degrees and float(np.ptp(every[:, 0])) > 180  # both sides of the date line
    if turn:
        shapes = [[np.column_stack([ring[:, 0] % 360, ring[:, 1]]) for ring in shape] for shape in shapes]
        every = np.concatenate([ring for shape in shapes for ring in shape])
    low, high = every.min(axis=0), every.max(axis=0)
    span = np.maximum((high - low) * (squeeze, 1.0), 1e-9)
    scale = min(WIDE / span[0], HIGH / span[1])
    drawn = [
        [
            np.column_stack([(ring[:, 0] - low[0]) * squeeze * scale, (high[1] - ring[:, 1]) * scale])
            for ring in shape
        ]
        for shape in shapes
    ]
    return float(span[0] * scale), float(span[1] * scale), drawn


def _path(ring: Ring) -> str:
    kept = [ring[0]]
    for point in ring[1:]:
        if abs(point[0] - kept[-1][0]) + abs(point[1] - kept[-1][1]) >= APART:
            kept.append(point)
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in kept) + "Z"


def _centre(shape: Sequence[Ring]) -> tuple[float, float]:
    """The centre of the largest ring of a shape."""
    if not shape:
        return 0.0, 0.0
    largest = max(shape, key=lambda ring: float(np.prod(np.ptp(ring, axis=0))))
    low, high = largest.min(axis=0), largest.max(axis=0)
    return float((low[0] + high[0]) / 2), float((low[1] + high[1]) / 2)


def _properties(features: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Texts and whole numbers that may name regions, by property."""
    found: dict[str, list[str]] = {}
    for number, feature in enumerate(features):
        words = feature.get("properties")
        words = dict(words) if isinstance(words, dict) else {}
        for name, value in {"id": feature.get("id"), **words}.items():
            is_name = isinstance(value, str | int) and not isinstance(value, bool)
            if not is_name or (name not in found and len(found) >= MOST_PROPERTIES):
                continue
            texts = found.setdefault(str(name)[:MOST_LETTERS], [""] * len(features))
            texts[number] = str(value).strip()[:MOST_LETTERS]
    return found


def matched(outlines: Outlines, regions: Regions, name: str) -> Match:
    """Shapes and regions that match: by code, or by a name that is unique within its level."""
    texts = outlines.properties.get(name, [])
    best = Match(len(regions.levels) - 1, {})
    for level in range(len(regions.levels)):
        places: dict[str, int | None] = {}
        for i, one in enumerate(regions.regions):
            if one.level == level:
                for text in {one.name, one.code, one.code.replace("/", "")}:
                    places[text] = i if text not in places else None
        found = {
            shape: region
            for shape, text in enumerate(texts)
            if text and (region := places.get(text)) is not None
        }
        if len(set(found.values())) > len(set(best.regions.values())):
            best = Match(level, found)
    return best


def coloured(regions: Regions, chosen: Sequence[int], by: str) -> tuple[dict[int, int], list[str]]:
    """The class of each region on the map, lightest first, and the legend; "value" or "error"."""
    if by == "error":
        edges = [most for most, _ in RATINGS]
        words = [f"to ± {100 * most:g} %: {word}" for most, word in RATINGS] + [f"more: {TOO_NOISY}"]
        values = regions.relative[list(chosen)]
        known = {r: v for r, v in zip(chosen, values.tolist(), strict=True) if not math.isnan(v)}
        return {r: int(np.searchsorted(edges, v)) for r, v in known.items()}, words
    counts = {r: regions.regions[r].count for r in chosen}
    least, most = min(counts.values(), default=0), max(counts.values(), default=0)
    cuts = np.quantile(list(counts.values()) or [0], np.arange(1, CLASSES) / CLASSES)
    edges = sorted({int(cut) for cut in cuts if least <= int(cut) < most})
    starts, ends = [least, *(edge + 1 for edge in edges)], [*edges, most]
    words = [f"{a:,} to {b:,}" if a < b else f"{b:,}" for a, b in zip(starts, ends, strict=True)]
    return {r: int(np.searchsorted(edges, v)) for r, v in counts.items()}, words
