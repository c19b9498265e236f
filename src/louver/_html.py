"""How results show themselves: as JSON text, and as tables in HTML for reports and notebooks, with text escaped and numbers
right-aligned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST_LINES", "JsonText", "Shown", "html_table", "number"]

MOST_LINES = 20


class JsonText:
    """A result whose content for programs is `to_dict()`."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        raise NotImplementedError

    def to_json(self) -> str:
        """The content for programs, as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)


class Shown:
    """A result that a notebook shows as its text summary and the first rows of its table."""

    __slots__ = ()

    def to_frame(self) -> pa.Table:
        raise NotImplementedError

    def _shown(self) -> tuple[pa.Table, int]:
        """The rows to show, and how many there are in total."""
        frame = self.to_frame()
        return frame.slice(0, MOST_LINES), frame.num_rows

    def _repr_html_(self) -> str:
        frame, total = self._shown()
        lines = zip(*(column.to_pylist() for column in frame.columns), strict=True)
        left = total - frame.num_rows
        more = f"<p>and {left:,} more; <code>to_frame()</code> has them all</p>" if left else ""
        return f"<pre>{escape(repr(self))}</pre>{html_table(frame.column_names, lines)}{more}"


def html_table(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    rows = [list(line) for line in lines]
    is_number = [
        bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))
    ]
    mark = [' class="number"' if flag else "" for flag in is_number]
    head = "".join(f"<th{m}>{escape(name)}</th>" for m, name in zip(mark, header, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f"<td{m}>{escape(number(x))}</td>" for m, x in zip(mark, row, strict=True))
        + "</tr>\n"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"


def number(value: object) -> str:
    """Integers with thousands separators; missing values as an empty cell."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
