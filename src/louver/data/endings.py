"""The kinds of file that louver reads: their endings, which options of reading apply to them, and whether they may be uploaded.

The one list: `read` dispatches on it, the explorer takes uploads by it, and messages are written from it. A new kind is a line here and
a reader in `read.READERS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FORMATS", "UPLOADS", "Format", "endings_of", "format_of", "names_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    name : str
        What people call it.
    endings : tuple of str
        In lower case.
    reader : str
        Its reader in `read.READERS`.
    options : frozenset of str
        Options of reading that apply to it, besides those that apply to all.
    function : str
        For files of statistics programs, the function of pyreadstat.
    is_uploaded : bool
        Whether the explorer takes it. A database holds more than one table, and views on other files.
    """

    name: str
    endings: tuple[str, ...]
    reader: str
    options: frozenset[str] = frozenset()
    function: str = ""
    is_uploaded: bool = True


TEXT = frozenset({"delimiter", "encoding", "header_row"})
CODED = frozenset({"encoding", "keep_codes"})
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

FORMATS = (
    Format("CSV", (".csv", ".csv.gz"), "separated", TEXT),
    Format("TSV", (".tsv", ".tsv.gz"), "separated", TEXT),
    Format("Parquet", (".parquet",), "parquet"),
    Format("DuckDB", (".duckdb", ".db"), "database", frozenset({"table"}), is_uploaded=False),
    Format("Excel", SHEETS, "excel", frozenset({"table", "header_row"})),
    Format("Stata", (".dta",), "statistical", CODED, "read_dta"),
    Format("SPSS", (".sav", ".zsav"), "statistical", CODED, "read_sav"),
    Format("SPSS", (".por",), "statistical", CODED, "read_por"),
    Format("SAS", (".sas7bdat",), "statistical", CODED, "read_sas7bdat"),
    Format("SAS", (".xpt",), "statistical", CODED, "read_xport"),
)


def format_of(path: str | os.PathLike[str]) -> Format | None:
    """The kind of a file by its ending; None where no kind has it.

    Examples
    --------
    >>> format_of("People.CSV.gz").name, format_of("people.txt")
    ('CSV', None)
    """
    last = Path(path)
    ending = last.suffix.lower()
    if ending == ".gz":
        ending = last.with_suffix("").suffix.lower() + ending
    return next((one for one in FORMATS if ending in one.endings), None)


def endings_of(applies: Callable[[Format], bool] = lambda one: True) -> tuple[str, ...]:
    """Endings of the kinds to which something applies."""
    return tuple(ending for one in FORMATS if applies(one) for ending in one.endings)


def names_of(applies: Callable[[Format], bool] = lambda one: True) -> list[str]:
    """What these kinds are called, each once."""
    return list(dict.fromkeys(one.name for one in FORMATS if applies(one)))


UPLOADS = endings_of(lambda one: one.is_uploaded)
"""Endings of files that the explorer takes as data."""
