"""The regions of a release as a tree that folds: which lines are seen, what they say, and where keys lead.

Only published numbers: counts with their standard errors and 90 % intervals, as the files of the release have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from louver._arrays import Bools, Floats, Ints

__all__ = ["WORDS", "Folded", "Region", "Regions", "in_words"]

SCALES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Where the pictures of intervals may end."""
COVERED = 0.9
"""Share of the intervals that shall fit."""
WORDS = ((0.01, "very good", "ok"), (0.05, "usable", "acc"), (0.2, "rough", "care"))
PAGE_LINES = 10
"""How far Page Up and Page Down go."""


@dataclass(frozen=True, slots=True)
class Region:
    """One region as its release lists it; `code` is how outlines may name it, `parent` its place in the list or -1."""

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
        """Put a list, in which parents may stand anywhere, into the order of a tree; levels beyond `most` regions are left out."""
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
        """Where each region stands, by its code."""
        return {region.code: i for i, region in enumerate(self.regions)}

    def above(self, region: int) -> list[int]:
        """The regions that a region lies in."""
        found = []
        while (region := int(self.parent[region])) >= 0:
            found.append(region)
        return found

    def inside(self, region: int) -> range:
        """The regions in a region, which follow it."""
        ends = np.flatnonzero(self.level[region + 1 :] <= self.level[region])
        return range(region + 1, region + 1 + int(ends[0]) if len(ends) else len(self.regions))

    def below(self, region: int) -> list[int]:
        """The regions right below a region."""
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
        """Where the pictures of intervals end: the least at which most of them fit."""
        known = self.relative[~np.isnan(self.relative)]
        most = float(np.quantile(known, COVERED)) if len(known) else SCALES[-1]
        return next((scale for scale in SCALES if most <= scale), SCALES[-1])

    def find(self, text: str, after: int) -> int | None:
        """The next region whose name or code holds a text, beginning anew at the end."""
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

    def told(self, i: int) -> str:
        """A region in one line."""
        one = self.regions[i]
        return f"{self.levels[one.level]} {one.name}: {one.count:,} ({_interval(one)})"


class Folded:
    """A tree of which some regions are open, and one is chosen."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.is_open = np.zeros(len(regions.regions), np.bool_)
        self.is_open[regions.parent == -1] = True
        self.chosen = 0
        self._lines: Ints | None = None

    @property
    def lines(self) -> Ints:
        """Regions that are seen, from top to bottom."""
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
        """Open or close a region; one that was chosen inside a closed one gives way to it."""
        self.is_open[region] = (not self.is_open[region]) if to is None else to
        self._lines = None
        while self.line(self.chosen) is None:
            self.chosen = int(self.regions.parent[self.chosen])

    def open_all(self, *, to: bool = True) -> None:
        """Open or close everything; what is at the top stays open."""
        self.is_open[:] = to
        self.is_open[self.regions.parent == -1] = True
        self._lines = None
        self.toggle(0, to=True)

    def choose(self, region: int) -> None:
        """Choose a region, and open what it lies in."""
        self.chosen = region
        above = int(self.regions.parent[region])
        while above >= 0:
            self.is_open[above] = True
            above = int(self.regions.parent[above])
        self._lines = None

    def line(self, region: int) -> int | None:
        """Where a region is seen."""
        place = int(np.searchsorted(self.lines, region))
        return place if place < len(self.lines) and self.lines[place] == region else None

    def press(self, key: str) -> None:
        """What a key does, as in every tree: arrows walk, right opens, left closes or goes up."""
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
        """The lines of a window, and where the chosen one is."""
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
        told: dict[str, Any] = {
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
            return told
        count, relative = max(one.count, 1), float(self.regions.relative[i])
        ends = ((end - one.count) / count for end in (one.lower, one.upper))
        start, end = (round(50 + 50 * max(-1.0, min(1.0, off / self.regions.scale)), 2) for off in ends)
        word, kind = in_words(relative)
        return told | {"start": start, "end": end, "word": word, "tone": kind, "off": _percent(relative)}


def in_words(share: float) -> tuple[str, str]:
    """How good a number is that is off by this share of it, and the kind of its pill."""
    return next(((word, kind) for most, word, kind in WORDS if share <= most), ("too noisy alone", "stop"))


def _interval(one: Region) -> str:
    if one.lower is None or one.upper is None:
        return "no interval"
    return "exact" if one.lower == one.upper else f"{one.lower:,} to {one.upper:,}"


def _percent(relative: float) -> str:
    if not relative:
        return ""
    return f"± {100 * relative:,.0f} %" if relative >= 0.1 else f"± {100 * relative:.2g} %"
