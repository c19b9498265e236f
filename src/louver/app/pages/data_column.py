"""What one column is: its kind, and the order of its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from louver.app.columns import KINDS, Columns
from louver.app.jobs.data import labelled
from louver.app.look import RunBar, Tag, button, field, select
from louver.app.session import Session
from louver.errors import LouverError

__all__ = ["ColumnPanel"]


class ColumnPanel:
    """The top of the side of the Data page."""

    def __init__(self, session: Session, columns: Columns, column: Mapping[str, Any]) -> None:
        self._session, self._columns, self._name = session, columns, str(column["name"])
        self._guessed = str(column["kind"])
        self._typed = ""
        with Tag("div", "pad part"):
            with Tag("div", "row between"):
                Tag("span", "s", "Kind")
                choices = {"": f"as found: {self._guessed}"} | KINDS
                chosen = columns.kinds.get(self._name, "")
                select(choices, chosen, self._set_kind, f"Kind of {self._name}")
            assert session.opened is not None
            codes = session.opened.source.missing_code.get(self._name, ())
            field("Values that stand for missing, such as 9, 99", ", ".join(codes), self._set_missing)
            self._bar = RunBar(session, "quick")
            self._body = Tag("div", "stack")
        self._paint()

    def _set_missing(self, text: str) -> None:
        """Read the data again without these values; the order and the hierarchy of the column begin anew."""
        assert self._session.opened is not None
        codes = [code.strip() for code in text.split(",") if code.strip()]
        given = {**self._session.opened.source.missing_code, self._name: codes}
        try:
            self._session.reread(missing_code={name: one for name, one in given.items() if one})
        except LouverError as error:
            self._bar.tell(str(error))
            return
        self._columns.trees.pop(self._name, None)
        self._columns.orders.pop(self._name, None)
        self._session.show("data")

    async def _set_kind(self, kind: str) -> None:
        self._columns.set_kind(self._name, kind)
        if kind == "ordered" and self._name not in self._columns.orders:
            await self._fetch()
        self._paint()

    async def _fetch(self) -> None:
        """The values in the order that is natural to them; it can be changed then."""
        assert self._session.opened is not None
        opened = self._session.opened
        tree = self._columns.trees.get(self._name)
        found = list(tree.labels) if tree is not None else None
        if found is None:
            labels = await self._bar.do(labelled, opened.path, opened.source, self._name, key="labels")
            found = None if labels is None else list(labels)
        if found is not None:
            self._columns.orders[self._name] = found

    def _paint(self) -> None:
        if self._body.is_deleted:
            return
        self._body.clear()
        order = self._columns.orders.get(self._name, [])
        if self._columns.kinds.get(self._name) != "ordered" or not order:
            return
        with self._body:
            Tag("span", "s sub", "Values from the lowest to the highest, one a line")
            self._typed = "\n".join(order)
            box = Tag("textarea", "inp wide", rows=min(len(order) + 1, 6), value=self._typed)
            box.set(aria_label=f"Order of the values of {self._name}")
            box.changed(self._type, "input")
            button("Use this order", self._use, kind="mini")
            self._told = Tag("p", "s sub", role="status")

    def _type(self, text: str) -> None:
        self._typed = text

    def _use(self) -> None:
        self._told.text = self._columns.set_order(self._name, self._typed.splitlines())
