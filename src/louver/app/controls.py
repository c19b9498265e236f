"""Controls that pages share: a confirmation dialog, shares of a budget on sliders, and the run bar of a search."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from nicegui import context

from louver.app.look import Handler, RunBar, Tag, button, tag
from louver.app.session import Session
from louver.errors import LouverError
from louver.privacy.budget import fraction_of

__all__ = [
    "Confirm",
    "SearchBar",
    "ask_to_replace",
    "equal_parts",
    "falling",
    "share_sliders",
    "shares_of",
    "with_share",
]


class Confirm:
    """A dialog with a question, the consequences, and a button that runs the action only once, however often it is clicked."""

    def __init__(self, question: str, what: str, yes: str, handler: Handler) -> None:
        self._handler, self._is_doing = handler, False
        self._dialog = Tag("dialog", aria_label=question)
        with self._dialog:
            Tag("h2", text=question)
            Tag("p", "sub", what)
            self.inside = Tag("div", "stack ask")
            with Tag("div", "row actions"):
                button("Keep as it is").on("click", js_handler=self._js("close()"))
                button(yes, self.do, kind="pri").on("click", js_handler=self._js("close()"))

    def opens(self, made: Tag) -> Tag:
        """Let a button open the dialog."""
        made.on("click", js_handler=self._js("showModal()"))
        return made

    def show(self) -> None:
        """Open the dialog."""
        context.client.run_javascript(f"({self._js('showModal()')})()")

    async def do(self) -> None:
        """Run the action, unless it is already running."""
        if self._is_doing:
            return
        self._is_doing = True
        try:
            answer = self._handler()
            if isinstance(answer, Awaitable):
                await answer
        finally:
            self._is_doing = False

    def _js(self, call: str) -> str:
        return f"() => document.getElementById('c{self._dialog.id}').{call}"


def ask_to_replace(session: Session, what: str, handler: Handler) -> Confirm | None:
    """A question asked before other data replace the open ones; None if nothing would be lost.

    Parameters
    ----------
    what : str
        The action, as worded on a button: "Open the sample".
    handler : callable
        Opens it.
    """
    opened = session.opened
    if opened is None or opened.is_sample:
        return None
    return Confirm(
        f"Close {opened.name}?",
        "Another file would replace it. Your choices for it on all pages are lost: roles, tables tried, results. What was published or "
        "spent stays.",
        what,
        handler,
    )


WHOLE = 100
"""Percent."""
STEP = 0.5
HINT = "A percentage above 0 and below 100"


def equal_parts(names: Collection[str]) -> dict[str, Fraction]:
    """The same percentage for every part."""
    return {name: Fraction(WHOLE, len(names)) for name in names}


def shares_of(parts: Mapping[str, Fraction | int]) -> dict[str, str]:
    """Exact shares that add up to 1, as a spec requires."""
    whole = sum(parts.values())
    return {name: str(Fraction(part) / whole) for name, part in parts.items()}


def with_share(
    parts: Mapping[str, Fraction | int], name: str, percent: Fraction, kept: Collection[str] = ()
) -> dict[str, Fraction]:
    """Give one part a percentage; the others divide the rest in their previous proportions.

    Parts in `kept` stay unchanged as long as the others leave enough.

    Examples
    --------
    >>> found = with_share({"state": 50, "county": 25, "block": 25}, "state", Fraction(20))
    >>> {name: str(part) for name, part in found.items()}
    {'state': '20', 'county': '40', 'block': '40'}
    """
    now = _percentages(parts)
    fixed = {one for one in kept if one != name}
    free = [one for one in now if one != name and one not in fixed]
    rest = WHOLE - percent - sum(now[one] for one in fixed)
    if not free or rest <= 0:
        free, rest = [one for one in now if one != name], WHOLE - percent
    before = sum(now[one] for one in free)
    return now | {one: now[one] * rest / before for one in free} | {name: percent}


def share_sliders(title: str, parts: dict[str, Fraction], handler: Callable[[], Any]) -> None:
    """A slider and a field for each part; `handler` is called once `parts` has changed.

    Parts that the user has set are kept while other parts are set, so that a plan can be typed one value after the other.
    """
    parts.update(_percentages(parts))
    kept: list[str] = []
    sliders: dict[str, Tag] = {}
    fields: dict[str, Tag] = {}

    def give(name: str, percent: Fraction) -> Any:
        parts.update(with_share(parts, name, percent, kept))
        if name not in kept:
            kept.append(name)
        for other in parts:
            fields[other].set(value=_shown(parts[other]), aria_invalid=None)
            if other != name:
                sliders[other].set(value=float(parts[other]))
        return handler()

    def slid(name: str, place: str) -> Any:
        return give(name, Fraction(place))

    def typed(name: str, text: str) -> Any:
        try:
            percent = fraction_of(text.strip().removesuffix("%").strip(), "the share")
        except LouverError:
            percent = Fraction(WHOLE)
        if percent >= WHOLE:
            fields[name].set(aria_invalid="true")
            return None
        sliders[name].set(value=float(percent))
        return give(name, percent)

    for name in parts:
        alone = True if len(parts) == 1 else None
        with tag("div", "slide typed"):
            tag("span", "s clip", name, title=name)
            sliders[name] = tag(
                "input",
                type="range",
                min=STEP,
                max=WHOLE - STEP,
                step=STEP,
                value=float(parts[name]),
                aria_label=f"{title}: {name}",
                disabled=alone,
            )
            sliders[name].changed(partial(slid, name), "input")
            fields[name] = tag(
                "input",
                "inp",
                value=_shown(parts[name]),
                inputmode="decimal",
                title=HINT,
                aria_label=f"{title}: {name}, percent",
                disabled=alone,
            )
            fields[name].changed(partial(typed, name))


def _percentages(parts: Mapping[str, Fraction | int]) -> dict[str, Fraction]:
    whole = sum(parts.values())
    return {name: Fraction(part) * WHOLE / whole for name, part in parts.items()}


def _shown(percent: Fraction) -> str:
    """A percentage with four digits; 33.33 means exactly a third."""
    return f"{float(percent):.4g}"


WIDTH, HEIGHT, EDGE = 132.0, 28.0, 3.0
REDRAW_SECONDS = 0.2
KEEP_SECONDS = 0.6
"""Seconds that a cancelled search may take to return its best result; after that it is killed like any other job."""


class SearchBar(RunBar):
    """A run bar of searches.

    Parameters
    ----------
    content : callable
        Describes in words the loss of the best answer and the lower bound for any answer.
    is_kept : bool
        Whether Cancel keeps the answer found so far; if not, a separate button does.
    """

    def __init__(
        self,
        session: Session,
        lane: str,
        content: Callable[[float, float | None], str],
        *,
        is_kept: bool = False,
    ) -> None:
        self._say_standing, self._is_kept = content, is_kept
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
        label = "Loss of the best answer so far; the dashed line is a lower bound on any answer's loss"
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
        """Ask for the best answer found."""
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
        if self._running and search == self._search:  # not a search that was started since
            super().cancel()

    def stand(self, lost: float, least: float | None) -> None:
        now = time.monotonic()
        if now - self._drawn < REDRAW_SECONDS:
            return
        self._drawn = now
        self._path.append((now - self._began, lost))
        self._figures.text = self._say_standing(lost, least)
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
