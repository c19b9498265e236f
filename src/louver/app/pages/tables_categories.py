"""The categories of one attribute on the Tables page: merge, split, take a level of its hierarchy, move."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from louver.app.columns import Tree
from louver.app.look import Tag, button, drawer
from louver.app.pages.tables_state import SHELVES, Tables, natural_name

__all__ = ["CategoriesPanel"]

NAME_OF_MERGED = "Name of the merged category"


class CategoriesPanel:
    """A drawer about one attribute; `check` audits what is arranged then, under words that say what was done."""

    def __init__(
        self, state: Tables, name: str, tree: Tree | None, check: Callable[[str], Awaitable[None]]
    ) -> None:
        self._state, self._name, self._tree, self._check = state, name, tree, check
        self._draw()

    def _draw(self) -> None:
        self._groups = self._state.groups(self._name)
        self._chosen: set[str] = set()
        self._typed = ""
        about = "Choose categories that belong together and merge them, or split what was merged."
        with drawer(self._name, is_slim=True) as self._drawer:
            Tag("p", "sub s", about)
            with Tag("div", "chips"):
                for label, members in self._groups.items():
                    self._category(label, members)
            self._offer = Tag("input", "inp", aria_label=NAME_OF_MERGED, placeholder=NAME_OF_MERGED, value="")
            self._offer.changed(self._type, "input")
            with Tag("div", "row"):
                button("Merge", self._merge, kind="pri")
                button("Split", self._split)
            self._levels()
            Tag("h3", text="Move to")
            with Tag("div", "row"):
                for key, (title, _) in SHELVES.items():
                    button(title, partial(self._move, key), kind="mini")

    @property
    def _picked(self) -> list[str]:
        return [label for label in self._groups if label in self._chosen]

    def _type(self, text: str) -> None:
        self._typed = text

    def _category(self, label: str, members: Sequence[str]) -> None:
        made = Tag("button", "chip", label, type="button", aria_pressed="false", title="; ".join(members))

        def toggle() -> None:
            self._chosen.symmetric_difference_update({label})
            made.set(aria_pressed=str(label in self._chosen).lower())
            made.classes(add="mark") if label in self._chosen else made.classes(remove="mark")
            picked = self._picked
            self._offer.set(placeholder=natural_name(picked) if len(picked) > 1 else NAME_OF_MERGED)

        made.click(toggle)

    def _levels(self) -> None:
        """Offer the levels of the hierarchy that was made on the page Data."""
        if self._tree is None or not self._tree.steps:
            return
        Tag("h3", text="As merged on the page Data")
        with Tag("div", "row wrap"):
            for level in range(1, len(self._tree.steps) + 1):
                text = f"Level {level}: {len(set(self._tree.at(level).values())):,} groups"
                button(text, partial(self._take, self._tree, level), kind="mini")

    async def _merge(self) -> None:
        picked = self._picked
        if len(picked) > 1:
            old = [member for label in picked for member in self._groups[label]]
            await self._do(self._state.merge(self._name, old, self._typed or natural_name(picked)))

    async def _split(self) -> None:
        await self._do(self._state.split(self._name, self._picked))

    async def _take(self, tree: Tree, level: int) -> None:
        await self._do(self._state.regroup(self._name, tree.at(level), level))

    async def _move(self, to: str) -> None:
        await self._check(self._state.move(self._name, to, len(self._state.attributes)))

    async def _do(self, words: str) -> None:
        await self._check(words)
        if not self._drawer.is_deleted:  # closed, or the page left, while it was audited
            self._draw()
