"""Small charts as SVG: drawn from numbers alone, so that no label ever becomes markup; a table beside each says the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from louver.app.look import Tag
from louver.app.words import MONTHS

__all__ = ["points", "steps"]

WIDTH, HEIGHT = 600.0, 190.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 12.0, 12.0, 24.0


def steps(history: Sequence[tuple[float, float, int]], *, held: float) -> None:
    """What was left after each entry: (time, left, entry), a step each; what is held hangs above the last."""
    if not history:
        Tag("p", "s sub", "Nothing was granted yet.")
        return
    top = max(left for _, left, _ in history) or 1.0

    def x(step: int) -> float:
        return LEFT + 14 + (WIDTH - LEFT - RIGHT - 14) * step / len(history)

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    line = f"M{x(0):.1f} {y(history[0][1]):.1f}"
    for step, (_, left, _) in enumerate(history[1:], start=1):
        line += f"H{x(step):.1f}V{y(left):.1f}"
    line += f"H{WIDTH - RIGHT:.1f}"
    end, floor = history[-1], y(0)
    shapes = [_axis(y, top)]
    shapes.append(
        f'<path d="{line}V{floor:.1f}H{x(0):.1f}z" fill="var(--accent-soft)"/>'
        f'<path d="{line}" fill="none" stroke="var(--accent)" stroke-width="2"/>'
    )
    if held > 0:
        at = x(len(history) - 1)
        shapes.append(
            f'<rect x="{at:.1f}" y="{y(end[1] + held):.1f}" width="{WIDTH - RIGHT - at:.1f}" '
            f'height="{y(end[1]) - y(end[1] + held):.1f}" fill="var(--d-exact)" opacity=".55"/>'
        )
    for step, (time, left, entry) in enumerate(history):
        shapes.append(
            f'<circle cx="{x(step):.1f}" cy="{y(left):.1f}" r="9" fill="var(--surface)" stroke="var(--accent)" stroke-width="1.500"/>'
            f'<text x="{x(step):.1f}" y="{y(left) + 4:.1f}" class="axl" text-anchor="middle" fill="var(--ink)">{int(entry)}</text>'
        )
        if step in (0, len(history) - 1):
            shapes.append(
                f'<text x="{x(step):.1f}" y="{HEIGHT - 6:.1f}" class="axl" text-anchor="middle">{_day(time)}</text>'
            )
    _svg("".join(shapes), "What was left after each numbered entry; the table below says the same.")


def points(
    places: Sequence[tuple[Any, float, int]],
    *,
    across: str,
    up: str,
    is_reversed: bool = False,
    tick: Callable[[Any], str] = "{:.4g}".format,
) -> None:
    """Numbered points, such as loss against k; the list beside says what the numbers are. Places across are sorted, `tick` names them."""
    if not places:
        Tag("p", "s sub", "None yet.")
        return
    xs, top = sorted({place[0] for place in places}), max(place[1] for place in places) or 1.0
    slots = {
        value: (number + 0.5) / len(xs)
        for number, value in enumerate(reversed(xs) if is_reversed else iter(xs))
    }

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM - 12) * (1 - value / top)

    def x(value: Any) -> float:
        return LEFT + (WIDTH / 2 - LEFT - RIGHT) * slots[value]

    shapes = [_axis(y, top, WIDTH / 2)]
    shapes += [
        f'<text class="axl" x="{x(value):.1f}" y="{HEIGHT - 20:.1f}" text-anchor="middle">{escape(tick(value))}</text>'
        for value in xs[:8]
    ]
    for _, up_at, number, at in _apart(places, x):
        shapes.append(
            f'<circle cx="{at:.1f}" cy="{y(up_at):.1f}" r="9" fill="var(--accent)"/>'
            f'<text x="{at:.1f}" y="{y(up_at) + 4:.1f}" text-anchor="middle" font-size="11" fill="var(--on-accent)">{int(number)}</text>'
        )
    _svg("".join(shapes), f"{up} against {across}; the list below says the same.", WIDTH / 2)
    Tag("p", "s sub r", f"{across}")


def _apart(
    places: Sequence[tuple[Any, float, int]], x: Callable[[Any], float]
) -> Iterator[tuple[Any, float, int, float]]:
    """Points of one column side by side, so that none hides another."""
    for value in dict.fromkeys(place[0] for place in places):
        column = [place for place in places if place[0] == value]
        for number, place in enumerate(column):
            yield (*place, x(value) + 20 * (number - (len(column) - 1) / 2))


def _axis(y: Callable[[float], float], top: float, width: float = WIDTH) -> str:
    return "".join(
        f'<line class="axis" x1="{LEFT}" x2="{width - RIGHT}" y1="{y(share * top):.1f}" y2="{y(share * top):.1f}"/>'
        f'<text class="axl" x="{LEFT - 8}" y="{y(share * top) + 4:.1f}" text-anchor="end">{share * top:.3g}</text>'
        for share in (0.0, 0.5, 1.0)
    )


def _day(time: float) -> str:
    day = datetime.fromtimestamp(time, UTC)
    return f"{day.day} {MONTHS[day.month - 1]}"


def _svg(shapes: str, label: str, width: float = WIDTH) -> None:
    Tag(
        "svg",
        "chart",
        viewBox=f"0 0 {width:g} {HEIGHT:g}",
        role="img",
        aria_label=label,
        innerHTML=shapes,
    ).style(f"max-width:{width:g}px")  # never magnified: text has one size in all charts
