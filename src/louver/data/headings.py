"""Titles and headings above the names of the columns.

Files made for people start with a title, an empty row or two rows of headings. Read as they stand, a heading becomes a record:
a person who does not exist. The first rows are compared with those below them, and where they look like headings nothing is read
until somebody says which row names the columns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from louver.errors import InputError

__all__ = ["HEADER_SAMPLE_ROWS", "Row", "check_headings"]

HEADER_SAMPLE_ROWS = 200
MOST_HEADINGS = 20
"""Rows above the names of the columns that are looked for."""
LEAST_BELOW = 3
"""With fewer rows below it, nobody can tell a heading from a record."""
ENOUGH_BELOW = 20
"""Rows from which on words that do not come again say something."""
NEARLY_ALL = 0.9

VALUE = re.compile(r"[<>=~€$£]?\s?[+-]?[\d.,:/ T-]*\d[\d.,:/ TZ+-]*\s?[%€$£]?")
"""A number, a date, a time, an amount."""
MISSING = re.compile(r"[\W_]*|n/?a|nan|null|none|missing|unknown|k\. ?a\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file: its number, counted from 1 as editors and spreadsheets do, and its cells; empty where there is nothing."""

    number: int
    cells: tuple[str, ...]

    @property
    def n_filled(self) -> int:
        return sum(map(bool, self.cells))

    def is_like_names(self, width: int) -> bool:
        """Whether it could name that many columns: as many different words."""
        words = [cell for cell in self.cells if cell and not VALUE.fullmatch(cell)]
        return len(set(words)) == len(words) == width


def check_headings(rows: Sequence[Row], file: str) -> None:
    """Refuse a table whose first row is a title, or whose second one is a further row of headings.

    Parameters
    ----------
    rows : sequence of Row
        The first rows that are not empty, the one that is taken for the names included.
    file : str
        What messages call the file.
    """
    if len(rows) < 2:
        return
    width = max(row.n_filled for row in rows)
    first = _first_names(rows, width)
    last = first
    while last + 1 < min(MOST_HEADINGS, len(rows)) and _is_heading(rows[last + 1], rows[last + 2 :]):
        last += 1
    if last == 0:
        return
    start, names = rows[0].number, rows[last].number
    message = (
        f"{file}: row {names} looks like names of columns, and not like a record, although it is below the first row; give "
        f"--header-row {names} if it names them, another row that does, or --header-row {start} to read the file as it is."
    )
    raise InputError(message, file=file, row=names, option="header_row")


def _first_names(rows: Sequence[Row], width: int) -> int:
    """The first row that can name the columns, where those above it are titles: filled to half at most."""
    for place, row in enumerate(rows[:MOST_HEADINGS]):
        if row.n_filled > max(1, width // 2):
            return place if place == 0 or row.is_like_names(row.n_filled) else 0
    return 0


def _is_heading(row: Row, below: Sequence[Row]) -> bool:
    """Whether a row has words where numbers stand below it, or words throughout that never come again."""
    if len(below) < LEAST_BELOW:
        return False
    n_among_numbers = n_alone = 0
    for place, cell in enumerate(row.cells):
        values = [other.cells[place] for other in below if place < len(other.cells) and other.cells[place]]
        if not cell or not values:
            continue
        if cell in values or VALUE.fullmatch(cell) or MISSING.fullmatch(cell):
            return False
        if sum(bool(VALUE.fullmatch(value)) for value in values) >= NEARLY_ALL * len(values):
            n_among_numbers += len(values) >= LEAST_BELOW
        elif 2 * len(set(values)) <= len(values) >= ENOUGH_BELOW:
            n_alone += 1
    return n_among_numbers > 0 or n_alone > 1
