"""Small charts as SVG, drawn by louver's own code: the same numbers give the same bytes on every machine.

Matplotlib's drawings differ between versions, so `verify` could not reproduce a page that contains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

__all__ = [
    "BLUE",
    "COLOURS",
    "GREY",
    "Bars",
    "ChartArea",
    "ChartLine",
    "Mark",
    "Panel",
    "Ranges",
    "across",
    "drawing",
    "integers",
    "percents",
]

BLUE, GREY, INK, MUTED, RULE = "#2a6f97", "#b9c6d0", "#22313f", "#5d6b78", "#dde3e9"
COLOURS = (BLUE, "#e07a5f", "#81b29a", "#6d597a", "#f2cc8f", INK, "#c1442d", "#8d99ae")
WIDTH, LETTER = 980, 6.2
"""Width of a drawing and of a letter, in drawing units."""
LEFT, TOP, BOTTOM, GAP = 62.0, 24.0, 44.0, 16.0
MOST_TICKS, LONGEST = 6, 26

Points = Sequence[float]


@dataclass(frozen=True, slots=True)
class Bars:
    """Vertical bars, one at each position."""

    places: Points
    upper: Points
    lower: Points | None = None
    width: float = 0.8
    colour: str = BLUE


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range from minimum to maximum at each position, as a thin vertical line."""

    places: Points
    lower: Points
    upper: Points


@dataclass(frozen=True, slots=True)
class ChartArea:
    """The area between two stepped lines; there is one more of `edges` than steps."""

    edges: Points
    lower: Points
    upper: Points
    colour: str = BLUE
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Points and the lines between them."""

    places: Points
    values: Points
    colour: str = BLUE


Mark = Bars | Ranges | ChartArea | ChartLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Marks on one pair of axes.

    Attributes
    ----------
    straight : float or None
        Values up to this are drawn on a linear scale, those above it on a logarithmic one; None draws all on a linear scale.
    ticks : sequence of (place, text), optional
        Ticks of the horizontal axis; whole numbers if omitted.
    """

    title: str
    marks: Sequence[Mark]
    x_label: str = ""
    y_label: str = ""
    straight: float | None = None
    ticks: Sequence[tuple[float, str]] | None = None
    ends: tuple[float, float] | None = field(default=None)


def drawing(
    panels: Sequence[Panel], *, across: int | None = None, height: float = 250.0, legend: Sequence[str] = ()
) -> str:
    """Panels, `across` in a row, with a legend below."""
    n = across or max(1, len(panels))
    wide = (WIDTH - GAP * (n - 1)) / n
    parts = []
    for number, one in enumerate(panels):
        x, y = (number % n) * (wide + GAP), (number // n) * height
        parts.append(f'<g transform="translate({x:.1f} {y:.1f})">{_panel(one, wide, height)}</g>')
    total = height * max(1, math.ceil(len(panels) / n))
    if legend:
        parts.append(_legend(legend, total))
        total += 24
    return _svg(total, parts)


def _svg(height: float, parts: Iterable[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" font-size="11.5" fill="{INK}">\n{"".join(parts)}</svg>'


def _legend(names: Sequence[str], top: float) -> str:
    parts, x = [], LEFT
    for number, name in enumerate(names):
        parts.append(
            f'<rect x="{x:.1f}" y="{top + 6:.1f}" width="11" height="11" fill="{COLOURS[number % len(COLOURS)]}"/>'
            + _text(x + 16, top + 16, _short(name))
        )
        x += 16 + LETTER * len(_short(name)) + 24
    return "".join(parts) + "\n"


def _panel(one: Panel, wide: float, height: float) -> str:
    """One pair of axes with its marks."""
    lowest, highest = one.ends or _ends(one.marks)
    most = max([0.0, *(float(value) for mark in one.marks for value in _values(mark))]) or 1.0
    ticks = _powers(one.straight, most) if one.straight else _linear(0.0, most, is_whole=False)
    raised = _scale(one.straight)
    # The highest mark may lie above the last tick; both must be inside.
    top = max(1.02 * raised(most), raised(ticks[-1]))
    right, bottom = wide - 6, height - BOTTOM

    def at_x(value: float) -> float:
        return LEFT + (value - lowest) / (highest - lowest) * (right - LEFT)

    def at_y(value: float) -> float:
        return bottom - raised(max(0.0, value)) / top * (bottom - TOP)

    parts = [_text(LEFT, 14, _short(one.title, int((wide - LEFT) / LETTER)), weight="600")]
    for tick in ticks:
        y = at_y(tick)
        parts.append(
            f'<path d="M{LEFT:.1f} {y:.1f}H{right:.1f}" stroke="{RULE}"/>'
            + _text(LEFT - 6, y + 4, _number(tick), "end")
        )
    below = one.ticks if one.ticks is not None else [(x, _number(x)) for x in integers(lowest, highest)]
    is_tilted = sum(LETTER * (len(_short(text)) + 1) for _, text in below) > right - LEFT
    for place, text in below:
        parts.append(_tick(at_x(place), bottom, text, is_tilted))
    parts += [_mark(mark, at_x, at_y) for mark in one.marks]
    parts.append(f'<path d="M{LEFT:.1f} {TOP:.1f}V{bottom:.1f}H{right:.1f}" fill="none" stroke="{MUTED}"/>')
    parts.append(_text((LEFT + right) / 2, height - 6, one.x_label, "middle", fill=MUTED))
    if one.y_label:
        y = (TOP + bottom) / 2
        parts.append(
            f'<g transform="translate(11 {y:.1f}) rotate(-90)">{_text(0, 0, one.y_label, "middle", fill=MUTED)}</g>'
        )
    return "\n".join(filter(None, parts)) + "\n"


def _tick(x: float, bottom: float, text: str, is_tilted: bool) -> str:
    if not is_tilted:
        return _text(x, bottom + 16, _short(text), "middle")
    return f'<g transform="translate({x + 3:.1f} {bottom + 12:.1f}) rotate(-24)">{_text(0, 0, _short(text), "end")}</g>'


def _values(mark: Mark) -> Points:
    return mark.values if isinstance(mark, ChartLine) else mark.upper


def _ends(marks: Sequence[Mark]) -> tuple[float, float]:
    """The smallest and largest positions, with room for the marks there."""
    places = [
        float(place)
        for mark in marks
        for place in (mark.edges if isinstance(mark, ChartArea) else mark.places)
    ]
    room = 0.0 if marks and all(isinstance(mark, ChartArea) for mark in marks) else 0.6
    lowest, highest = min(places, default=0.0) - room, max(places, default=1.0) + room
    return lowest, highest if highest > lowest else lowest + 1


def _mark(mark: Mark, at_x: Callable[[float], float], at_y: Callable[[float], float]) -> str:
    if isinstance(mark, Bars):
        lower = mark.lower or [0.0] * len(mark.upper)
        path = "".join(
            f"M{at_x(x - mark.width / 2):.1f} {at_y(low):.1f}V{at_y(high):.1f}H{at_x(x + mark.width / 2):.1f}V{at_y(low):.1f}z"
            for x, low, high in zip(mark.places, lower, mark.upper, strict=True)
            if high > low
        )
        return f'<path d="{path}" fill="{mark.colour}"/>'
    if isinstance(mark, Ranges):
        path = "".join(
            f"M{at_x(x):.1f} {at_y(low):.1f}V{at_y(high):.1f}"
            for x, low, high in zip(mark.places, mark.lower, mark.upper, strict=True)
        )
        return f'<path d="{path}" stroke="{INK}" fill="none"/>'
    if isinstance(mark, ChartArea):
        steps = list(zip(mark.edges[:-1], mark.edges[1:], mark.lower, mark.upper, strict=True))
        there = "".join(f"L{at_x(a):.1f} {at_y(high):.1f}H{at_x(b):.1f}" for a, b, _, high in steps)
        back = "".join(f"L{at_x(b):.1f} {at_y(low):.1f}H{at_x(a):.1f}" for a, b, low, _ in reversed(steps))
        path = f"M{there[1:]}{back}z" if steps else ""
        return f'<path d="{path}" fill="{mark.colour}" fill-opacity="{mark.opacity:g}"/>'
    points = [(at_x(x), at_y(y)) for x, y in zip(mark.places, mark.values, strict=True)]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{mark.colour}"/>' for x, y in points)
    return (
        f'<path d="M{path}" fill="none" stroke="{mark.colour}" stroke-width="1.6"/>{dots}' if points else ""
    )


def across(
    title: str,
    names: Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    label_of: Callable[[float], str],
    x_label: str = "",
    straight: float | None = None,
) -> str:
    """Horizontal bars, one per series for every name, each labelled with its number."""
    left = 12 + LETTER * max([4, *(len(_short(name)) for name in names)])
    most = max([0.0, *(value for _, values in series for value in values)]) or 1.0
    raised, row = _scale(straight), 15.0 * len(series) + 9
    right, parts = WIDTH - 90.0, [_text(0, 14, title, weight="600")]
    for place, name in enumerate(names):
        y = TOP + place * row
        parts.append(_text(left - 6, y + row / 2, _short(name), "end"))
        for number, (_, values) in enumerate(series):
            wide = raised(values[place]) / raised(most) * (right - left)
            at = y + 15 * number
            colour = BLUE if number == len(series) - 1 else GREY
            parts.append(
                f'<rect x="{left:.1f}" y="{at:.1f}" width="{wide:.1f}" height="13" fill="{colour}"/>'
                + _text(left + wide + 5, at + 11, label_of(values[place]))
            )
    height = TOP + len(names) * row + 8
    parts.append(_text(left, height + 8, x_label, fill=MUTED))
    x = left
    for number, (label, _) in enumerate(series if len(series) > 1 else ()):
        colour = BLUE if number == len(series) - 1 else GREY
        parts.append(
            f'<rect x="{x:.1f}" y="{height + 17:.1f}" width="11" height="11" fill="{colour}"/>'
            + _text(x + 16, height + 27, label)
        )
        x += 40 + LETTER * len(label)
    return _svg(height + (34 if len(series) > 1 else 14), [f"{part}\n" for part in filter(None, parts)])


def _text(x: float, y: float, text: str, anchor: str = "start", *, weight: str = "", fill: str = "") -> str:
    if not text:
        return ""
    more = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (
        f' font-weight="{weight}"' if weight else ""
    )
    more += f' fill="{fill}"' if fill else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _short(text: str, longest: int = LONGEST) -> str:
    """A label shortened to the available space."""
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


def _scale(straight: float | None) -> Callable[[float], float]:
    """Position at which a value is drawn, from 0."""
    if straight is None:
        return lambda value: value
    return lambda value: value / straight if value <= straight else 1 + math.log10(value / straight)


def _linear(lowest: float, highest: float, *, is_whole: bool) -> list[float]:
    """Round numbers covering a range."""
    step = 10.0 ** math.floor(math.log10(max(highest - lowest, 1e-300)))
    steps = (step * factor for factor in (0.1, 0.2, 0.5, 1, 2, 5, 10))
    step = next(one for one in steps if (highest - lowest) / one <= MOST_TICKS)
    step = max(step, 1.0) if is_whole else step
    first, last = math.ceil(lowest / step - 1e-9), math.floor(highest / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _powers(straight: float, most: float) -> list[float]:
    """0, and powers of ten up to the one that covers the maximum; every second or third if there are many."""
    first, last = math.ceil(math.log10(straight) - 1e-9), math.ceil(math.log10(max(most, straight)) - 1e-9)
    step = max(1, math.ceil((last - first + 1) / MOST_TICKS))
    return [0.0, *(10.0**power for power in range(first, last + 1, step))]


def integers(lowest: float, highest: float) -> list[float]:
    """Whole numbers for an axis."""
    return _linear(lowest, highest, is_whole=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e9 else f"{value:.3g}"


def percents(share: float) -> str:
    return f"{share:.2%}"
