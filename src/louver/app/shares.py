"""Shares of a budget on sliders and in fields: what one part gets, the others give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from louver.app.look import Tag, tag
from louver.errors import LouverError
from louver.privacy.budget import fraction_of

__all__ = ["equal_parts", "share_sliders", "shares_of", "with_share"]

WHOLE = 100
"""Percent."""
STEP = 0.5
HINT = "A percentage above 0 and below 100"


def equal_parts(names: Collection[str]) -> dict[str, Fraction]:
    """The same percentage for everybody."""
    return {name: Fraction(WHOLE, len(names)) for name in names}


def shares_of(parts: Mapping[str, Fraction | int]) -> dict[str, str]:
    """Exact shares that add up to 1, as a spec has them."""
    whole = sum(parts.values())
    return {name: str(Fraction(part) / whole) for name, part in parts.items()}


def with_share(
    parts: Mapping[str, Fraction | int], name: str, percent: Fraction, kept: Collection[str] = ()
) -> dict[str, Fraction]:
    """Give one part a percentage; the others divide the rest in the proportions they had.

    Parts in `kept` stay as they are while the others leave enough.

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

    What somebody set by hand stays while other parts are set, so that a plan can be typed one value after the other.
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
    """A percentage with four digits; 33.33 stands for exactly a third."""
    return f"{float(percent):.4g}"
