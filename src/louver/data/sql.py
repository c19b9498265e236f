"""How names, texts, numbers and files are written in SQL."""

from __future__ import annotations

import glob
from pathlib import Path

__all__ = ["file_literal", "literal", "quoted", "split_table"]


def quoted(identifier: str) -> str:
    """An identifier in SQL."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def file_literal(path: Path) -> str:
    """The path of one file, with nothing that DuckDB would take for a pattern or a protocol."""
    return literal(glob.escape(str(path.absolute())))


def split_table(table: str, default_schema: str) -> tuple[str, str]:
    """Schema and name of a table."""
    schema, dot, name = table.rpartition(".")
    return (schema, name) if dot else (default_schema, table)
