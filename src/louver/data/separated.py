"""Separated text (CSV, TSV): its header before DuckDB reads it, and its faults after DuckDB could not.

DuckDB renames duplicate columns and quotes the file in its messages. So the header is read here, and when a
file turns out to be malformed it is read again, slowly, to name the row.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from louver.errors import InputError

__all__ = ["Header", "check_names", "find_fault", "read_header"]

HEADER_CHARACTERS = 2**20
SEPARATORS = (",", ";", "\t")
GZIP_MAGIC = b"\x1f\x8b"
NOT_UTF8 = re.compile("[\udc80-\udcff\x00]")  # what surrogateescape makes of stray bytes; NUL hints at UTF-16


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Column names and how fields are separated."""

    names: tuple[str, ...]
    separator: str
    is_compressed: bool


def read_header(path: Path) -> Header:
    """Read the first line of a CSV or TSV file.

    Raises
    ------
    InputError
        If the file is empty, compressed otherwise than its name says, not UTF-8, or names a column twice.
    """
    name = path.name
    is_compressed = path.suffix.lower() == ".gz"
    start = _read_start(path, is_compressed)
    if not start:
        raise InputError(f"{name} is empty; give a file with column names and rows.", file=name)
    if start.startswith(GZIP_MAGIC.decode("utf-8", "surrogateescape")):
        raise InputError(f"{name} is gzip-compressed; name it .csv.gz.", file=name)
    separators = ("\t",) if ".tsv" in name.lower() else SEPARATORS
    readings = [(_first_record(start, separator), separator) for separator in separators]
    names, separator = max(readings, key=lambda reading: len(reading[0]))
    if NOT_UTF8.search("".join(names)):
        raise InputError(f"{name} is not UTF-8 text in its first line; save it in that encoding.", file=name)
    if not names:
        raise InputError(f"{name} has no column names in its first line; add them.", file=name)
    filled = tuple(column or f"column {number}" for number, column in enumerate(names, start=1))
    check_names(filled, name)
    return Header(names=filled, separator=separator, is_compressed=is_compressed)


def check_names(names: Sequence[str], file: str) -> None:
    """Refuse no names at all, and names that differ at most in case: SQL could not tell them apart.

    The message gives positions, because a file without a header has values there.
    """
    if not names:
        raise InputError(f"{file} has no columns; give data with at least one.", file=file)
    seen: dict[str, int] = {}
    for number, column in enumerate(names, start=1):
        first = seen.setdefault(column.lower(), number)
        if first != number:
            message = f"{file} has the same name (but for case) on columns {first} and {number}; rename one."
            raise InputError(message, file=file)


def find_fault(path: Path, header: Header) -> InputError | None:
    """Read the whole file the slow way and say what is wrong on which row, or None if nothing is found."""
    name, row = path.name, 0
    try:
        with _open_text(path, header.is_compressed) as text:
            records = csv.reader(text, delimiter=header.separator, strict=True)
            for row, fields in enumerate(filter(None, records)):  # blank lines are no rows
                problem = _problem_of(fields, len(header.names))
                if problem is not None:
                    return InputError(f"{name}: row {row} {problem}.", file=name, row=row)
    except csv.Error:
        message = f"{name}: row {row + 1} has a quote that does not fit or a value too long; correct it."
        return InputError(message, file=name, row=row + 1)
    except (OSError, EOFError, zlib.error):
        return InputError(f"{name} is damaged or ends early; check how it was made.", file=name)
    return None


def _problem_of(fields: list[str], n_columns: int) -> str | None:
    """What is wrong with the fields of one row; a separator at the end of the line is nothing."""
    if len(fields) == n_columns + 1 and fields[-1] == "":
        fields = fields[:-1]
    if len(fields) < n_columns:
        return f"has fewer than the {n_columns} fields of the header; complete it or quote line breaks"
    if len(fields) > n_columns:
        return f"has more than the {n_columns} fields of the header; quote separators inside values"
    for number, value in enumerate(fields, start=1):
        if NOT_UTF8.search(value):
            return f"is not UTF-8 text in column {number}; save the file in that encoding"
    return None


def _read_start(path: Path, is_compressed: bool) -> str:
    """Beginning of the file, stray bytes escaped and the byte order mark removed."""
    name = path.name
    try:
        with _open_text(path, is_compressed) as text:
            return text.read(HEADER_CHARACTERS)
    except PermissionError:
        problem = "cannot be opened; check its permissions"
    except (OSError, EOFError, zlib.error):
        problem = "is not a gzip file or ends early; check how it was made"
    raise InputError(f"{name} {problem}.", file=name)


def _open_text(path: Path, is_compressed: bool) -> IO[str]:
    opener = gzip.open if is_compressed else open
    return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")


def _first_record(start: str, separator: str) -> list[str]:
    """Fields of the first line, which quotes may stretch over several."""
    try:
        return next(csv.reader(io.StringIO(start, newline=""), delimiter=separator), [])
    except csv.Error:
        return []
