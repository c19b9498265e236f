"""Confidential pages: the frame, the verb's verdict, and pictures by Matplotlib."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from louver._figure import svg
from louver._verdict import Verdict
from louver.data.write import is_replaceable, replacing
from louver.errors import InputError
from louver.release.pages.frame import answers, facts, figure, page, sentence, table, tiles, verdict_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "answers",
    "check_page",
    "facts",
    "page",
    "picture",
    "sentence",
    "table",
    "tiles",
    "verdict",
    "write_page",
]


def verdict(found: Verdict, advice: str = "") -> str:
    """A verb's verdict, coloured by its level, and what to do next."""
    return verdict_line(found.level, sentence(" ".join(filter(None, (str(found), advice)))))


def picture(drawn: Figure, caption: str) -> str:
    """A Matplotlib figure as inline SVG."""
    return figure(svg(drawn), caption)


def check_page(path: Path, read: Iterable[Path]) -> None:
    """Refuse a report that could not be written or would replace a file that the call reads."""
    if not is_replaceable(path):
        raise InputError(
            f"option --html cannot write {path}; name a file in an existing folder.", option="--html"
        )
    for other in read:
        if path.exists() and other.exists() and path.samefile(other):
            raise InputError(
                f"option --html would overwrite {path.name}, which is an input; name another file.",
                option="--html",
            )


def write_page(html: str, path: str | Path) -> None:
    """Write a confidential page, whole or not at all, readable only by its owner."""
    with replacing(path, mode=0o600) as stream:
        stream.write(html.encode("utf-8"))
