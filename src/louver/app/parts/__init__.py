"""Custom elements with their own script: shelves of chips, the table on a canvas, numbered points, regions as a tree and as a map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicegui.element import Element

__all__ = ["HeatGrid", "Points", "RegionMap", "RegionTreeView", "Shelves"]


class _ExplorerPart(Element):
    def put(self, **props: Any) -> None:
        """Set the data; only changes are sent."""
        for name, value in props.items():
            self._props[name] = value
        self.update()

    def hear(self, event: str, handler: Callable[[Any], Any]) -> None:
        """Call `handler` with the arguments of the event."""
        self.on(event, lambda e: handler(e.args))


class Shelves(_ExplorerPart, component="shelves.js"):
    """Chips on shelves; emits `move` (name, to, index), `open` (name) and `split` (name)."""

    def __init__(self, shelves: Sequence[Mapping[str, Any]]) -> None:
        super().__init__()
        self.put(shelves=list(shelves))


class HeatGrid(_ExplorerPart, component="heatgrid.js"):
    """A table of which only the visible window is drawn; emits `view`, `cell`, `pin`, `fold` and `next`."""


class Points(_ExplorerPart, component="points.js"):
    """Numbered points in a plane; emits `choose` (number)."""

    def __init__(
        self,
        *,
        xlabel: str,
        ylabel: str,
        label: str,
        band: tuple[float, float] | None = None,
        line: bool = False,
        even: bool = False,
    ) -> None:
        super().__init__()
        self.put(
            xlabel=xlabel, ylabel=ylabel, label=label, band=band, line=line, even=even, points=[], chosen=0
        )


class RegionTreeView(_ExplorerPart, component="regiontree.js"):
    """Lines of a tree; only the visible ones are sent. Emits `view` (first, last), `choose`, `toggle`, `pick` (region), `press` (key)."""


class RegionMap(_ExplorerPart, component="regionmap.js"):
    """Outlines to choose from; emits `choose` and, on a click or with the space bar, `pick` (region)."""
