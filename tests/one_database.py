"""One database in memory for the sources of many tests: a new one takes longer than most tests, and what a source makes is its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import duckdb

__all__ = ["one_database"]

connect = duckdb.connect


@contextmanager
def one_database() -> Iterator[None]:
    """Sources opened in the block share it; at most one of them may be a file of DuckDB, which is attached to it."""
    with patch("duckdb.connect", _connect):
        yield
    if _database.cache_info().currsize:
        _database().execute("DETACH DATABASE IF EXISTS origin")


def _connect(database: str, **options: Any) -> duckdb.DuckDBPyConnection:
    return _database().cursor() if database == ":memory:" else connect(database, **options)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    keys = ("autoinstall_known_extensions", "autoload_known_extensions", "python_enable_replacements")
    return connect(":memory:", config=dict.fromkeys(keys, "false") | {"temp_directory": ""})
