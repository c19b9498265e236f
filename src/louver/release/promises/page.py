"""The page of a release: what a report may hold.

`verify` cannot draw a page again, since its pictures depend on the software that drew them. What it can do is to leave no room in the page
for anything but a report: plain text, the tables that reports of the verb have, and drawings. There is no script, no comment, nothing
hidden, nothing from elsewhere, and no table but of what reports are about: levels, columns, measures, published numbers. What its sentences
and numbers say is its maker's word all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path

from louver.release.folder import Malformed, read_text

__all__ = ["Keys", "Lines", "page_problem"]

MOST_LINES, MOST_COLUMNS, MOST_FACTS, MOST_TABLES = 400, 12, 80, 400
"""Lines and columns of a table, lines of a list of facts without a header, and tables of a page."""

LONGEST_TEXT, MOST_TEXT, TEXT_OF_A_FILE = 4_000, 30_000, 300
"""Characters of one piece of text, of all text of a page that is in no table, and as many more for every published file.

Reports have about 2,500; each invariant, quasi-identifier and table adds to them.
"""

PAGE = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "h2",
        "h3",
        "p",
        "div",
        "span",
        "b",
        "strong",
        "em",
        "code",
        "dl",
        "dt",
        "dd",
        "ul",
        "ol",
        "li",
        "br",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "figure",
        "figcaption",
        "footer",
    ]
)
DRAWING = frozenset(
    [
        "svg",
        "defs",
        "g",
        "path",
        "rect",
        "circle",
        "line",
        "polyline",
        "polygon",
        "text",
        "tspan",
        "use",
        "clippath",
        "style",
    ]
)
EMPTY = frozenset({"meta", "br"})
ATTRIBUTES = frozenset(["class", "lang", "charset", "name", "content", "role", "aria-label"])
DRAWN = frozenset(
    [
        "id",
        "d",
        "x",
        "y",
        "x1",
        "x2",
        "y1",
        "y2",
        "cx",
        "cy",
        "r",
        "width",
        "height",
        "points",
        "transform",
        "style",
        "clip-path",
        "viewbox",
        "version",
        "xmlns",
        "xmlns:xlink",
        "xlink:href",
        "type",
        "role",
        "aria-label",
        "preserveaspectratio",
        "fill",
        "stroke",
    ]
)

FORBIDDEN = re.compile(
    r"url\s*\(\s*(?!#)|@import|expression|content\s*:|display\s*:\s*none|visibility|javascript:|data:", re.I
)
"""What a style could fetch, hide or say."""

DOCTYPE = "doctype html"

Keys = Mapping[str, frozenset[str] | None]
"""By the name of its first column, what the lines of a table may begin with; anything where that is None."""

Lines = Mapping[tuple[str, ...], set[tuple[str, ...]]]
"""By the names of its columns, the lines that a table may have."""


def page_problem(path: Path, keys: Keys, shown: Lines | None = None, n_files: int = 1) -> str | None:
    """What is in a page that no report has, if anything.

    Parameters
    ----------
    keys : mapping
        Tables that reports of the verb have.
    shown : mapping, optional
        Published tables, of which a page may show lines.
    n_files : int
        Files that the report is about.
    """
    reader = _Reader(MOST_TEXT + TEXT_OF_A_FILE * n_files)
    try:
        reader.feed(read_text(path))
        reader.close()
    except Malformed as error:
        return str(error)
    if len(reader.tables) > MOST_TABLES:
        return "has more tables than any report"
    problems = (_table_problem(header, lines, keys, shown or {}) for header, lines in reader.tables)
    return next((problem for problem in problems if problem is not None), None)


def _table_problem(
    header: tuple[str, ...], lines: Sequence[tuple[str, ...]], keys: Keys, shown: Lines
) -> str | None:
    most, longest = (MOST_LINES, MOST_COLUMNS) if header else (MOST_FACTS, 2)
    if len(lines) > most or any(len(cell) > LONGEST_TEXT for line in lines for cell in line):
        return "has a longer table than any report"
    if len(header) > longest or any(len(line) != (len(header) or 2) for line in lines):
        return "has a table of another form than any report"
    if not header:
        return None
    if header in shown:
        is_shown = shown[header].issuperset(lines)
        return None if is_shown else "shows a line that is not in the published tables"
    allowed = keys.get(header[0], frozenset())
    if allowed is not None and (header[0] not in keys or not allowed.issuperset(line[0] for line in lines)):
        return "has a table that no report of its verb has"
    return None


class _Reader(HTMLParser):
    """Reads a page once, keeps its tables, and ends where something does not belong into a report."""

    def __init__(self, most_text: int) -> None:
        super().__init__(convert_charrefs=True)
        self._most_text = most_text
        self.tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
        self._open: list[str] = []
        self._cells: list[str] | None = None
        self._is_header = False
        self._n_text = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_drawn = tag == "svg" or "svg" in self._open
        if tag not in (DRAWING if is_drawn else PAGE):
            raise Malformed(f"has an element that no report has: {tag[:20]}")
        for name, value in attrs:
            if name not in (DRAWN if is_drawn else ATTRIBUTES):
                raise Malformed(f"has an attribute that no report has: {name[:20]}")
            if FORBIDDEN.search(value or "") or (name == "xlink:href" and not (value or "").startswith("#")):
                raise Malformed("refers to something outside, or hides something")
            if name not in ("d", "points", "style") and len(value or "") > LONGEST_TEXT:
                raise Malformed("has a longer text than any report")
        if tag == "table":
            self.tables.append(((), []))
        elif tag == "tr":
            self._cells = []
        elif tag in ("td", "th") and self._cells is not None:
            self._cells.append("")
            self._is_header = tag == "th"
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in EMPTY:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            raise Malformed("is no well-formed page")
        if tag == "tr" and self._cells is not None:
            if not self.tables:
                raise Malformed("is no well-formed page")
            header, lines = self.tables[-1]
            if self._is_header:
                self.tables[-1] = (header + tuple(self._cells), lines)
            else:
                lines.append(tuple(self._cells))
            self._cells = None

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "style":
            if FORBIDDEN.search(data):
                raise Malformed("refers to something outside, or hides something")
            if "/*" in data:
                raise Malformed("has a comment, which no report has")
        elif self._cells and {"td", "th"} & set(self._open):
            self._cells[-1] += data
        elif data.strip():
            if "table" in self._open:
                raise Malformed("has text in a table that is in none of its cells")
            self._n_text += len(data)
            if len(data) > LONGEST_TEXT or self._n_text > self._most_text:
                raise Malformed("has a longer text than any report")

    def handle_comment(self, data: str) -> None:
        raise Malformed("has a comment, which no report has")

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != DOCTYPE:
            raise Malformed("has a declaration that no report has")

    def handle_pi(self, data: str) -> None:
        raise Malformed("has an instruction that no report has")

    def unknown_decl(self, data: str) -> None:
        raise Malformed("has a declaration that no report has")
