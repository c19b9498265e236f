"""The run bar of a search: what the best answer so far loses as a falling line, and a way to be content with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from louver.app.look import RunBar, Tag, button
from louver.app.session import Session

__all__ = ["SearchBar", "falling"]

WIDTH, HEIGHT, EDGE = 132.0, 28.0, 3.0
REDRAW_SECONDS = 0.2
KEEP_SECONDS = 0.6
"""How long a search that is to keep what it found may take to hand it over; then it is ended as any other work."""


class SearchBar(RunBar):
    """A run bar of searches.

    Parameters
    ----------
    told : callable
        Says in words what the best answer loses, and what every one loses at least.
    is_kept : bool
        Cancelling keeps what was found; otherwise there is a button for that.
    """

    def __init__(
        self,
        session: Session,
        lane: str,
        told: Callable[[float, float | None], str],
        *,
        is_kept: bool = False,
    ) -> None:
        self._told_by, self._is_kept = told, is_kept
        self._path: list[tuple[float, float]] = []
        self._began, self._drawn = time.monotonic(), 0.0
        self.is_hurried = False
        self._search = 0
        super().__init__(session, lane)
        if is_kept:
            self._cancel.clear()
            with self._cancel:
                Tag("span", text="Cancel, keep what was found")

    def _add(self) -> None:
        self._figures = Tag("span", "s nowrap figures")
        label = "What the best answer loses, as it falls; the dashed line is the least that any can lose"
        self._line = Tag(
            "svg", "falling gone", viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}", role="img", aria_label=label
        )
        if not self._is_kept:
            self._keep = button("Keep the best so far", self.hurry, kind="mini gone", data_keep="")

    async def do(self, job: Callable[..., Any], *args: Any, key: str) -> Any:
        self._search += 1
        self._path, self._began, self._drawn, self.is_hurried = [], time.monotonic(), 0.0, False
        self._figures.text = ""
        self._line.classes(add="gone")
        if not self._is_kept:
            self._keep.classes(add="gone")
        return await super().do(job, *args, key=key)

    def hurry(self) -> None:
        """Ask for the best that was found."""
        self.is_hurried = True
        self._stage.text = "keeping the best so far"
        self._session.hurry(self._lane)

    def cancel(self) -> None:
        if not self._is_kept:
            super().cancel()
            return
        self.hurry()
        asyncio.get_running_loop().call_later(KEEP_SECONDS, self._end, self._search)

    def _end(self, search: int) -> None:
        if self._running and search == self._search:  # not one that was begun since
            super().cancel()

    def stand(self, lost: float, least: float | None) -> None:
        now = time.monotonic()
        if now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        self._path.append((now - self._began, lost))
        self._figures.text = self._told_by(lost, least)
        self._line.classes(remove="gone").set(innerHTML=falling(self._path, least))
        if not self._is_kept:
            self._keep.classes(remove="gone")


def falling(path: Sequence[tuple[float, float]], least: float | None) -> str:
    """The line as shapes, from (seconds, lost) pairs; nothing but numbers is written.

    Examples
    --------
    >>> falling([(0.0, 0.5), (1.0, 0.25)], None)
    '<path class="fall" d="M3.0 3.0H129.0V25.0"/>'
    """
    high = max(lost for _, lost in path)
    low = min([lost for _, lost in path] if least is None else [least, path[-1][1]])
    last = path[-1][0] or 1.0

    def y(lost: float) -> float:
        return EDGE + (HEIGHT - 2 * EDGE) * ((high - lost) / (high - low) if high > low else 0.5)

    line = f"M{EDGE} {y(path[0][1]):.1f}" + "".join(
        f"H{EDGE + (WIDTH - 2 * EDGE) * at / last:.1f}V{y(lost):.1f}" for at, lost in path[1:]
    )
    bound = "" if least is None else f'<path class="least" d="M{EDGE} {y(least):.1f}H{WIDTH - EDGE}"/>'
    return f'{bound}<path class="fall" d="{line}"/>'
