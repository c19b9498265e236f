"""How the opened file is read: what marks decimals, what separates fields, which rows count."""

from __future__ import annotations

from functools import partial
from typing import Any

from louver.app.look import Tag, button, field, problem, select
from louver.app.session import Session
from louver.errors import InputError
from louver.schema.source import ALL_COLUMNS, ENCODINGS, SourceOptions

__all__ = ["ReadingPanel"]

CHOICES = {
    "decimal_mark": (
        "Decimals are marked by",
        {"": "a point; refuse commas", ",": "a comma, as in 1,5", ".": "a point; commas are text"},
    ),
    "delimiter": (
        "Fields are separated by",
        {"": "what the first line has", ",": "commas", ";": "semicolons", "\t": "tabs", "|": "|"},
    ),
    "encoding": ("Letters are written in", {name: name for name in ENCODINGS}),
    "keep_codes": ("Stata, SPSS and SAS files", {"": "show value labels", "yes": "show codes"}),
    "weight_is_count": (
        "The column of counts",
        {
            "": "is refused where it looks like money or a sampling weight",
            "yes": "counts people, however it looks",
        },
    ),
}
TYPED = {
    "table": "Sheet of an Excel file",
    "header_row": "Row that names the columns, counted from 1",
    "missing_code": "Values that stand for missing in every column, such as N, 99",
    "where": "Only rows that meet a condition, such as age >= 18",
}
FLAGS = ("keep_codes", "weight_is_count")


class ReadingPanel:
    """Choices about the file, and one button that reads it anew."""

    def __init__(self, session: Session) -> None:
        assert session.opened is not None
        self._session, self._chosen = session, _told(session.opened.source)
        with Tag("div", "stack reading"):
            for name, (label, choices) in CHOICES.items():
                with Tag("label", "field"):
                    Tag("span", "s sub", label)
                    select(choices, self._chosen[name], partial(self._choose, name), label)
            for name, label in TYPED.items():
                field(label, self._chosen[name], partial(self._choose, name))
            self._wrong = Tag("div")
            button("Read it like this", self._read, kind="pri")

    def _choose(self, name: str, value: str) -> None:
        self._chosen[name] = value

    def _read(self) -> None:
        assert self._session.opened is not None
        given: dict[str, Any] = {name: value.strip(" ") or None for name, value in self._chosen.items()}
        given |= {name: given[name] is not None for name in FLAGS}
        codes = [code.strip() for code in (given["missing_code"] or "").split(",")]
        before = self._session.opened.source.missing_code
        given["missing_code"] = {name: one for name, one in before.items() if name != ALL_COLUMNS}
        given["missing_code"] |= {ALL_COLUMNS: codes} if any(codes) else {}
        self._wrong.clear()
        try:
            given["header_row"] = _row(given["header_row"])
            self._session.read_as(**given)
        except InputError as error:
            with self._wrong:
                problem(str(error))
            return
        self._session.show("data")


def _row(text: str | None) -> int | None:
    if text is None or text.isdecimal():
        return None if text is None else int(text)
    raise InputError("the row that names the columns must be a whole number.")


def _told(source: SourceOptions) -> dict[str, str]:
    """The choices as they are now."""
    told = {
        name: getattr(source, name) or ""
        for name in ("decimal_mark", "delimiter", "encoding", "table", "where")
    }
    told |= {name: "yes" if getattr(source, name) else "" for name in FLAGS}
    told["header_row"] = "" if source.header_row is None else str(source.header_row)
    return told | {"missing_code": ", ".join(source.missing_code.get(ALL_COLUMNS, ()))}
