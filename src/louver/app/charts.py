"""Small charts as SVG: drawn from numbers only, so that no label ever becomes markup; a table next to each chart shows the same data.

A chart fills its container's width and its text is the same size everywhere: x is in percent, y in pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from louver.app.look import Tag
from louver.app.words import MONTHS

__all__ = ["points", "steps"]

HEIGHT, TOP, BOTTOM, LABELS = 190, 12.0, 26.0, 8.0
"""In pixels: height of a chart, space above its highest point and below its axis, and distance of the labels from its end."""
MOST_TICKS = 8


def steps(history: Sequence[tuple[float, float, int]], *, held: float) -> None:
    """The balance after each entry: (time, left, entry), one step each; the amount held is drawn above the last."""
    if not history:
        Tag("p", "s sub", "Nothing has been granted yet.")
        return
    top = max(left for _, left, _ in history) or 1.0

    def x(step: int) -> float:
        return 3 + 97 * step / len(history)

    shapes = []
    for step, (_, left, _) in enumerate(history):
        shapes.append(
            f'<rect x="{x(step):.2f}%" y="{_y(left, top):.1f}" width="{97 / len(history):.2f}%" '
            f'height="{_y(0, top) - _y(left, top):.1f}" fill="var(--accent-soft)" shape-rendering="crispEdges"/>'
        )
        shapes.append(_stroke(x(step), _y(left, top), x(step + 1), _y(left, top)))
        if step:
            before = history[step - 1][1]
            shapes.append(_stroke(x(step), _y(before, top), x(step), _y(left, top)))
    if held > 0:
        end = history[-1][1]
        shapes.append(
            f'<rect x="{x(len(history) - 1):.2f}%" y="{_y(end + held, top):.1f}" width="{97 / len(history):.2f}%" '
            f'height="{_y(end, top) - _y(end + held, top):.1f}" fill="var(--d-exact)" opacity=".55"/>'
        )
    for step, (time, left, entry) in enumerate(history):
        shapes.append(
            f'<circle cx="{x(step):.2f}%" cy="{_y(left, top):.1f}" r="9" fill="var(--surface)" stroke="var(--accent)" '
            'stroke-width="1.500"/>'
            f'<text x="{x(step):.2f}%" y="{_y(left, top) + 4:.1f}" class="axl" text-anchor="middle" fill="var(--ink)">{int(entry)}</text>'
        )
        is_new_day = step == 0 or _day(time) != _day(history[0][0])
        if is_new_day and step in (0, len(history) - 1):
            shapes.append(_below(x(step), _day(time), "start" if step == 0 else "middle"))
    _draw(shapes, top, "The balance after each numbered entry; the table below has the same numbers.")


def points(
    places: Sequence[tuple[Any, float, int]],
    *,
    across: str,
    up: str,
    is_reversed: bool = False,
    tick: Callable[[Any], str] = "{:.4g}".format,
) -> None:
    """Numbered points, such as loss against k; a list explains the numbers. x positions are sorted; `tick` labels them."""
    if not places:
        Tag("p", "s sub", "None yet.")
        return
    xs, top = sorted({place[0] for place in places}), max(place[1] for place in places) or 1.0
    slots = {
        value: (number + 0.5) / len(xs)
        for number, value in enumerate(reversed(xs) if is_reversed else iter(xs))
    }

    shapes = [_below(100 * slots[value], tick(value)) for value in xs[:MOST_TICKS]]
    for value, up_at, number, aside in _apart(places):
        shapes.append(
            f'<g transform="translate({aside:.0f} {_y(up_at, top):.1f})"><circle cx="{100 * slots[value]:.2f}%" r="9" '
            'fill="var(--accent)"/>'
            f'<text class="axl on" x="{100 * slots[value]:.2f}%" y="4" text-anchor="middle">{int(number)}</text></g>'
        )
    _draw(shapes, top, f"{up} against {across}; the list below has the same numbers.")
    Tag("p", "s sub r", f"{across}")


def _apart(places: Sequence[tuple[Any, float, int]]) -> Iterator[tuple[Any, float, int, float]]:
    """Horizontal offsets in pixels that keep the points of one column from hiding one another."""
    for value in dict.fromkeys(place[0] for place in places):
        column = [place for place in places if place[0] == value]
        for number, place in enumerate(column):
            yield (*place, 20 * (number - (len(column) - 1) / 2))


def _y(value: float, top: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}" stroke="var(--accent)" stroke-width="2" '
        'stroke-linecap="square"/>'
    )


def _below(x: float, text: str, anchor: str = "middle") -> str:
    """A label on the horizontal axis."""
    return (
        f'<text class="axl" x="{x:.2f}%" y="{HEIGHT - LABELS}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _axis(top: float) -> str:
    return "".join(
        f'<line class="axis" x1="0" x2="100%" y1="{_y(share * top, top):.1f}" y2="{_y(share * top, top):.1f}"/>'
        f'<text class="axl" x="-8" y="{_y(share * top, top) + 4:.1f}" text-anchor="end">{share * top:.3g}</text>'
        for share in (0.0, 0.5, 1.0)
    )


def _day(time: float) -> str:
    day = datetime.fromtimestamp(time, UTC)
    return f"{day.day} {MONTHS[day.month - 1]}"


def _draw(shapes: Sequence[str], top: float, label: str) -> None:
    """Draw the shapes; without a viewBox, nothing is scaled. Axis labels are placed in the padding on the left."""
    Tag("svg", "chart", height=HEIGHT, role="img", aria_label=label, innerHTML=_axis(top) + "".join(shapes))
