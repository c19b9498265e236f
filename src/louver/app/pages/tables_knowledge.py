"""A statement about a cell or a row, as somebody outside may know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from louver.app.look import Tag, button, select

__all__ = ["statement"]

ABOUT = {"cell": "this cell has", "row": "this row has"}
BOUNDS = {"exactly": "exactly", "at_least": "at least", "at_most": "at most"}


def statement(cell: Mapping[str, Any], add: Callable[[dict[str, Any]], Any]) -> None:
    """A form about a cell that was explained; `add` is told what it says, as `given` of the verb has it."""
    asked = {"about": "cell", "bound": "exactly", "number": ""}
    Tag("p", "s b", str(cell["where"]))
    with Tag("div", "row"):
        select(ABOUT, "cell", lambda v: asked.update(about=v), "About")
        select(BOUNDS, "exactly", lambda v: asked.update(bound=v), "Bound")
        number = Tag("input", "inp", type="number", min=0, aria_label="Number of people", style="width:90px")
        number.changed(lambda v: asked.update(number=v), "input")
        Tag("span", "s", "people")

    async def take() -> None:
        if asked["number"].isdecimal():
            row, col = cell["labels"]
            where = {"row": row} | ({"col": col} if asked["about"] == "cell" else {})
            await add({**where, asked["bound"]: int(asked["number"])})

    button("Add", take, kind="pri")
