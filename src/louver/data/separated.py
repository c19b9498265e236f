"""Separated text (CSV, TSV): its header is read before DuckDB reads the file, and its errors are located afterwards.

DuckDB renames duplicate columns and quotes the file in its messages. So the header is read here, and a malformed file is read
again, slowly, to name the row. A file that is not UTF-8 is copied: in memory where the system supports it, otherwise into the private
folder of its source.

Many files start with a title, an empty row or two rows of headings. Read literally, a heading becomes a record: a person who does not
exist. The first rows are compared with those below them, and a file that seems to start with headings is refused until the user
says which row names the columns.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from louver.errors import InputError

__all__ = [
    "HEADER_SAMPLE_ROWS",
    "Header",
    "SheetRow",
    "TextFile",
    "check_headings",
    "check_names",
    "find_fault",
    "read_header",
    "text_file",
]

HEADER_CHARACTERS = 2**20
COPIED_CHARACTERS = 2**20
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
LIKELY_SEPARATORS = re.compile(r"[;\t|,]")
GZIP_MAGIC = b"\x1f\x8b"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
NOT_TEXT = re.compile("[\udc80-\udcff\x00]")  # replaces stray bytes; NUL suggests UTF-16
UNDECODED = "louver-undecoded"  # an error handler for any encoding: one such character for bytes that cannot be decoded

codecs.register_error(UNDECODED, lambda error: ("\udcff", error.end))  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file of separated text: its name in messages, its location, and how to decode its bytes."""

    name: str
    path: Path
    encoding: str = "utf-8"
    is_compressed: bool = False

    def open(self, errors: str = UNDECODED) -> IO[str]:
        opener = gzip.open if self.is_compressed else open
        encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
        return opener(self.path, "rt", encoding=encoding, errors=errors, newline="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Column names, the field separator, and the line of the file that holds the names."""

    names: tuple[str, ...]
    separator: str
    row: int = 1


def text_file(path: Path, encoding: str, folder: Path, held: ExitStack) -> TextFile:
    """The file, or a copy in UTF-8 if it is in another encoding.

    Parameters
    ----------
    folder : Path
        Private folder, for systems without in-memory files.
    held : ExitStack
        Closing it releases the copy.

    Raises
    ------
    InputError
        If it cannot be opened or decoded, with the row.
    """
    is_compressed = path.suffix.lower() == ".gz"
    file = TextFile(name=path.name, path=path, encoding=encoding, is_compressed=is_compressed)
    if encoding == "utf-8":
        return file
    _check_start(file)
    copy = folder / "copy.csv"
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("records")
        held.callback(os.close, descriptor)
        copy = Path(f"/proc/self/fd/{descriptor}")
    try:
        _copy(file, copy)
    except UnicodeError:
        raise _undecoded(file) from None
    return replace(file, path=copy, encoding="utf-8", is_compressed=False)


def read_header(file: TextFile, delimiter: str | None = None, header_row: int | None = None) -> Header:
    """Read the line of a CSV or TSV file that names its columns: the first.

    Parameters
    ----------
    delimiter : str, optional
        The field separator; by default, whichever of comma, semicolon and tab splits the first line into most names.
    header_row : int, optional
        Number of the line that names the columns. Without it a first line that looks like a title is refused.

    Raises
    ------
    InputError
        If the file is empty, is compressed in a way that its name does not indicate, is not UTF-8, names a column twice, or can be split in
        two ways.
    """
    name = file.name
    start = _check_start(file)
    if header_row is None:
        _check_title(start, delimiter, name)
    else:
        start = _from_line(start, header_row, name)
    names, separator = _split(start, delimiter, name)
    if NOT_TEXT.search("".join(names)):
        message = f"{name} is not UTF-8 text in its first line; name its encoding (--encoding cp1252, say)."
        raise InputError(message, file=name, option="encoding")
    if not names:
        raise InputError(f"{name} has no column names in its first line; add them.", file=name)
    if len(names) == 1 and LIKELY_SEPARATORS.search(names[0]) and not start.startswith('"'):
        message = f"{name} has one column, whose name contains another separator; say which separates fields (--delimiter)."
        raise InputError(message, file=name, option="delimiter")
    filled = tuple(column or f"column {number}" for number, column in enumerate(names, start=1))
    check_names(filled, name)
    return Header(names=filled, separator=separator, row=header_row or 1)


def check_names(names: Sequence[str], file: str) -> None:
    """Refuse a table without names, and column names that are equal or differ only in case: SQL could not distinguish them.

    The message gives positions, because without a header the first line holds data values.
    """
    if not names:
        raise InputError(f"{file} has no columns; the data need at least one.", file=file)
    seen: dict[str, int] = {}
    for number, column in enumerate(names, start=1):
        first = seen.setdefault(column.lower(), number)
        if first != number:
            message = (
                f"{file} has the same name (apart from case) in columns {first} and {number}; rename one."
            )
            raise InputError(message, file=file)


def find_fault(file: TextFile, header: Header) -> InputError | None:
    """Read the whole file with Python's slow parser and report the row and its error; None if no error is found."""
    name, row = file.name, 0
    try:
        with file.open() as text:
            for _ in range(header.row - 1):
                next(text)
            records = csv.reader(text, delimiter=header.separator, strict=True)
            for row, fields in enumerate(filter(None, records)):  # blank lines are not rows
                problem = _problem_of(fields, len(header.names), file.encoding)
                if problem is not None:
                    return InputError(f"{name}: row {row} {problem}.", file=name, row=row)
    except csv.Error:
        message = f"{name}: row {row + 1} has a misplaced quote or an overlong value; correct it."
        return InputError(message, file=name, row=row + 1)
    except (OSError, EOFError, zlib.error):
        return InputError(f"{name} is damaged or ends early; check how it was made.", file=name)
    return None


def _problem_of(fields: list[str], n_columns: int, encoding: str) -> str | None:
    """What is wrong with the fields of one row; a separator at the end of the line is ignored."""
    if len(fields) == n_columns + 1 and fields[-1] == "":
        fields = fields[:-1]
    for number, value in enumerate(fields, start=1):
        if NOT_TEXT.search(value):
            expected = "UTF-8" if encoding == "utf-8" else encoding
            return f"is not {expected} text in column {number}; name the file's encoding (--encoding)"
    if len(fields) < n_columns:
        return f"has fewer than the {n_columns} fields of the header; complete it or quote line breaks"
    if len(fields) > n_columns:
        return f"has more than the {n_columns} fields of the header; quote separators inside values"
    return None


def _check_start(file: TextFile) -> str:
    """Beginning of the file, with stray bytes marked and the byte order mark removed; rejected if it cannot be text."""
    name, head, start = file.name, b"", ""
    try:
        with open(file.path, "rb") as raw:
            head = raw.read(4)
        with file.open() as text:
            start = text.read(HEADER_CHARACTERS)
    except UnicodeError:  # only this codec requires a byte order mark
        message = f"{name} does not start with a UTF-16 byte order mark; name its encoding (--encoding)."
        raise InputError(message, file=name, option="encoding") from None
    except PermissionError:
        raise InputError(f"{name} cannot be opened; check its permissions.", file=name) from None
    except (OSError, EOFError, zlib.error):
        message = f"{name} is not a gzip file or ends early; check how it was made."
        raise InputError(message, file=name) from None
    if not head:
        raise InputError(f"{name} is empty; it needs column names and rows.", file=name)
    if head.startswith(GZIP_MAGIC) and not file.is_compressed:
        raise InputError(f"{name} is gzip-compressed; name it .csv.gz.", file=name)
    if head.startswith(UTF16_MARKS) and file.encoding != "utf-16":
        message = f"{name} is not UTF-8 text but UTF-16; say so (--encoding utf-16)."
        raise InputError(message, file=name, option="encoding")
    if head.startswith(codecs.BOM_UTF8) and file.encoding != "utf-8":
        message = f"{name} starts with a UTF-8 byte order mark; leave out --encoding."
        raise InputError(message, file=name, option="encoding")
    if not start:
        raise InputError(f"{name} is empty; it needs column names and rows.", file=name)
    return start


def _split(start: str, delimiter: str | None, name: str) -> tuple[list[str], str]:
    """Names in the first line and their separator; refused if two separators give equally many names."""
    if delimiter is not None:
        return _first_record(start, delimiter), delimiter
    readings = {separator: _first_record(start, separator) for separator in _likely_separators(name)}
    most = max(map(len, readings.values()))
    found = [separator for separator, names in readings.items() if len(names) == most]
    if most > 1 and len(found) > 1:
        ways = " and at ".join(SEPARATORS[separator] for separator in found[:2])
        message = f"{name} can be split at {ways}; say which separates fields (--delimiter)."
        raise InputError(message, file=name, option="delimiter")
    return readings[found[0]], found[0]


def _from_line(start: str, number: int, name: str) -> str:
    """The file from the given line onwards."""
    lines = io.StringIO(start, newline="")
    for _ in range(number - 1):
        next(lines, None)
    rest = lines.read()
    if not rest.strip():
        message = f"{name} has an empty row {number}; say which row names the columns (--header-row)."
        raise InputError(message, file=name, row=number, option="header_row")
    return rest


def _check_title(start: str, delimiter: str | None, name: str) -> None:
    """Reject a file that starts with a title, a comment or two heading lines.

    The first line may be a title, so lines are split at the separator that suits most of them.
    """
    marks = (delimiter,) if delimiter else _likely_separators(name)
    readings = {mark: rows for mark in marks if (rows := _numbered(start, mark))}
    if not readings:
        return
    mark = max(readings, key=lambda one: len(readings[one][0].cells))
    width = _common_width(readings[mark])
    if width < 2 or len(readings[mark][0].cells) != width:
        mark = max(readings, key=lambda one: _common_width(readings[one]))
    check_headings(readings[mark], name)


def _common_width(rows: Sequence[SheetRow]) -> int:
    """The number of fields that most lines below the first have."""
    widths = Counter(len(row.cells) for row in rows[1:])
    return widths.most_common(1)[0][0] if widths else 0


def _numbered(start: str, separator: str) -> list[SheetRow]:
    """The first lines that are not blank, with their numbers."""
    reader = csv.reader(io.StringIO(start, newline=""), delimiter=separator)
    rows = []
    try:
        before = 0
        for fields in reader:
            if any(fields):
                rows.append(SheetRow(before + 1, tuple(field.strip() for field in fields)))
            before = reader.line_num
            if len(rows) == HEADER_SAMPLE_ROWS:
                break
    except csv.Error:
        return []
    return rows


def _likely_separators(name: str) -> tuple[str, ...]:
    return ("\t",) if ".tsv" in name.lower() else tuple(SEPARATORS)


def _first_record(start: str, separator: str) -> list[str]:
    """Fields of the first record, which quoted line breaks may spread over several lines."""
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=separator), [])
    except csv.Error:
        return []


def _copy(file: TextFile, path: Path) -> None:
    with file.open("strict") as text, open(path, "w", encoding="utf-8", newline="") as copy:
        while letters := text.read(COPIED_CHARACTERS):
            copy.write(letters)


def _undecoded(file: TextFile) -> InputError:
    """The error for a file that does not match its specified encoding, with its location."""
    found = None
    with file.open() as text:
        # Nothing is known about its fields yet, so lines are counted, not records.
        for number, line in enumerate(text):
            if NOT_TEXT.search(line):
                found = number
                break
    place = f"on row {found}" if found else "in its first line"
    message = f"{file.name} is not {file.encoding} text {place}; name its encoding (--encoding)."
    return InputError(message, file=file.name, row=found, option="encoding")


HEADER_SAMPLE_ROWS = 200
MOST_HEADINGS = 20
"""Maximum number of rows searched above the column names."""
LEAST_BELOW = 3
"""With fewer rows below it, a header cannot be distinguished from a record."""
ENOUGH_BELOW = 20
"""Number of rows from which on words that do not recur are informative."""
NEARLY_ALL = 0.9

VALUE = re.compile(r"[<>=~€$£]?\s?[+-]?[\d.,:/ T-]*\d[\d.,:/ TZ+-]*\s?[%€$£]?")
"""A number, a date, a time, an amount."""
MISSING = re.compile(r"[\W_]*|n/?a|nan|null|none|missing|unknown|k\. ?a\.", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a file: its number, counted from 1 as in editors and spreadsheets, and its cells; a blank cell is an empty string."""

    number: int
    cells: tuple[str, ...]

    @property
    def n_filled(self) -> int:
        return sum(map(bool, self.cells))

    def is_like_names(self, width: int) -> bool:
        """Whether it could name this many columns, because it has as many distinct words."""
        words = [cell for cell in self.cells if cell and not VALUE.fullmatch(cell)]
        return len(set(words)) == len(words) == width


def check_headings(rows: Sequence[SheetRow], file: str) -> None:
    """Refuse a table whose first row is a title, or whose second row is another row of headings.

    Parameters
    ----------
    rows : sequence of SheetRow
        The first non-empty rows, including the one used as the column names.
    file : str
        Name of the file in messages.
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
        f"{file}: row {names} looks like column names, not like a record, although it is not the first row; give "
        f"--header-row {names} if it names them, another row that does, or --header-row {start} to read the file as it is."
    )
    raise InputError(message, file=file, row=names, option="header_row")


def _first_names(rows: Sequence[SheetRow], width: int) -> int:
    """The first row that can name the columns; those above it are titles if at most half filled."""
    for place, row in enumerate(rows[:MOST_HEADINGS]):
        if row.n_filled > max(1, width // 2):
            return place if place == 0 or row.is_like_names(row.n_filled) else 0
    return 0


def _is_heading(row: SheetRow, below: Sequence[SheetRow]) -> bool:
    """Whether a row has words above numbers, or consists of words that never recur below it."""
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
