"""How the opened file is read: what marks decimals, what separates fields, which rows count."""

from __future__ import annotations

from functools import partial

from louver.app.look import Tag, button, field, problem, select
from louver.app.session import Session
from louver.errors import InputError
from louver.schema.source import ENCODINGS, SourceOptions

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
}
TYPED = {"table": "Sheet of an Excel file", "where": "Only rows that meet a condition, such as age >= 18"}


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
        given = {name: value.strip(" ") or None for name, value in self._chosen.items()}
        self._wrong.clear()
        try:
            self._session.read_as(**given | {"keep_codes": given["keep_codes"] is not None})
        except InputError as error:
            with self._wrong:
                problem(str(error))
            return
        self._session.show("data")


def _told(source: SourceOptions) -> dict[str, str]:
    """The choices as they are now."""
    told = {
        name: getattr(source, name) or ""
        for name in ("decimal_mark", "delimiter", "encoding", "table", "where")
    }
    return told | {"keep_codes": "yes" if source.keep_codes else ""}
