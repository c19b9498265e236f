"""A keyed hash of confidential data: the same data give the same hash, and without the key it says nothing."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from louver.data.endings import format_of
from louver.data.read import POSTGRES_SCHEMES, ArrowStream, open_source, quoted
from louver.errors import Cancelled, LouverError
from louver.run import Run

__all__ = ["fingerprint", "has_same_records"]

BLOCK = 1 << 22  # bytes hashed between two questions whether to go on, a few milliseconds


def fingerprint(
    data: str | os.PathLike[str] | ArrowStream,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
    **reading: object,
) -> Callable[[bytes], bytes]:
    """Return a function from a secret key to the hash of the data.

    Parameters
    ----------
    run : Run, optional
        Asked whether to go on hashing.
    **reading
        How `open_source` reads them, which does not change what they are: a ledger is bound to the whole source, and two
        filters of it spend from one budget.

    Notes
    -----
    A file is hashed byte by byte, so the same records saved in another format are other data. Records of a dataframe or of
    a table in a database (a DuckDB file too: it may hold many tables, and views on other files) are hashed one by one and
    the hashes added up, so their order does not matter; the names of the columns are hashed with them.
    """
    is_file = isinstance(data, str | os.PathLike) and not (
        str(data).startswith(POSTGRES_SCHEMES) or _is_database(data)
    )

    def keyed(secret: bytes) -> bytes:
        if is_file:
            return _file_hash(Path(os.fspath(data)), secret, run or Run())  # type: ignore[arg-type]
        return hmac.digest(secret, _record_sum(data, table, query, run), "sha256")

    return keyed


def _is_database(path: str | os.PathLike[str]) -> bool:
    kind = format_of(path)
    return kind is not None and kind.reader == "database"


def has_same_records(
    one: str | os.PathLike[str] | ArrowStream,
    other: str | os.PathLike[str] | ArrowStream,
    *,
    table: str | None = None,
    query: str | None = None,
    run: Run | None = None,
) -> bool:
    """Whether two sources hold the same columns and records, in whatever order, format and line endings.

    `table` and `query` are those of `other`. False also where one of them cannot be read as a table.
    """
    try:
        names = _columns(one)
        if names != _columns(other, table, query):
            return False
        return _record_sum(one, None, None, run, names) == _record_sum(other, table, query, run, names)
    except Cancelled:
        raise
    except LouverError:
        return False


def _file_hash(path: Path, secret: bytes, run: Run) -> bytes:
    keyed = hmac.new(secret, digestmod="sha256")
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            run.check()
            keyed.update(block)
    return keyed.digest()


def _columns(
    data: str | os.PathLike[str] | ArrowStream, table: str | None = None, query: str | None = None
) -> list[str]:
    with open_source(data, table=table, query=query, decimal_mark=".") as source:
        return sorted(source.columns)


def _record_sum(
    data: str | os.PathLike[str] | ArrowStream,
    table: str | None,
    query: str | None,
    run: Run | None,
    names: Sequence[str] = (),
) -> bytes:
    """Sum of the hashes of all records, modulo 2^256, with their columns in the order of `names`, or else as they lie."""
    total = 0
    with open_source(data, table=table, query=query, decimal_mark=".", run=run) as source:
        # The length of each value before it, so that no two records read the same.
        names = names or source.columns
        columns = [f"coalesce(CAST({quoted(name)} AS VARCHAR), chr(0))" for name in names]
        text = " || ".join(f"length({column}) || ':' || {column}" for column in columns)
        for batch in source.batches(f"SELECT sha256({text}) AS digest FROM records"):
            total += sum(int(digest, 16) for digest in batch.column(0).to_pylist())
    text = "".join(f"{len(name)}:{name}" for name in names)
    return hashlib.sha256(text.encode()).digest() + (total % (1 << 256)).to_bytes(32, "big")
