"""Writing files whole or not at all: temporary sibling, fsync, rename."""

from __future__ import annotations

import glob
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from louver._files import sync, try_lock
from louver.errors import InputError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["is_replaceable", "replacing", "spreadsheet_safe", "write_csv"]


@contextmanager
def replacing(path: str | Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only if the block succeeds and does not close it.

    Parameters
    ----------
    path : path
        The file to make or to replace.
    mode : int
        Its permissions, reduced by the umask; until it appears, only its owner may read it.

    Raises
    ------
    InputError
        If it cannot be written, or must not be replaced.
    """
    path = Path(path)
    message = (
        f"{path.name} cannot be written; name a plain file, and check its folder, permissions and disk space."
    )
    if not is_replaceable(path):
        raise InputError(message, file=path.name)
    _sweep(path)
    try:
        sibling, handle, mode = _locked_sibling(path, mode)
    except OSError:
        raise InputError(message, file=path.name) from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            is_kept = not file.closed
            if is_kept:
                file.flush()
                os.fsync(handle)
                sibling.replace(path)
                if hasattr(os, "fchmod"):
                    os.fchmod(
                        handle, mode
                    )  # a writer killed before this point leaves nothing that others may read
        if is_kept:
            sync(path.parent)
        else:
            sibling.unlink()
    except OSError:
        sibling.unlink(missing_ok=True)
        raise InputError(message, file=path.name) from None
    except BaseException:
        sibling.unlink(missing_ok=True)
        raise


def _locked_sibling(path: Path, mode: int) -> tuple[Path, int, int]:
    """A new locked file that only its owner may read, its descriptor, and the permissions that `mode` leaves under the umask."""
    while True:
        sibling = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
        handle = os.open(sibling, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        allowed = os.fstat(handle).st_mode & 0o777
        if hasattr(os, "fchmod"):
            os.fchmod(handle, 0o600)
        try_lock(handle)
        if os.fstat(handle).st_nlink:
            return sibling, handle, allowed
        os.close(handle)  # removed by another process before it was locked


def _sweep(path: Path) -> None:
    """Remove the temporary files that killed writers of this file left behind and that no living process has locked."""
    for stale in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 16}.tmp"):
        with suppress(OSError):
            handle = os.open(stale, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if try_lock(handle):
                    stale.unlink()
            finally:
                os.close(handle)


def is_replaceable(path: Path) -> bool:
    """Whether a file may be written there: replacing a device would break the machine for everyone."""
    return path.parent.is_dir() and (path.is_file() or not path.exists())


def write_csv(table: pyarrow.Table | Iterator[pyarrow.Table], path: str | Path) -> None:
    """Write an Arrow table, or several below each other, as CSV: UTF-8, a header, text in quotes, nulls empty, no text that a spreadsheet
    would run as a formula.
    """
    import pyarrow as pa
    from pyarrow import csv

    parts = (_as_text(part) for part in ([table] if isinstance(table, pa.Table) else table))
    first = next(parts)
    options = csv.WriteOptions(quoting_style="needed")
    with replacing(path) as file, csv.CSVWriter(file, first.schema, write_options=options) as writer:
        for part in chain([first], parts):
            writer.write_table(part)


def _as_text(table: pyarrow.Table) -> pyarrow.Table:
    """The same table without dictionaries, and with text and names that are safe in a spreadsheet."""
    import pyarrow as pa

    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    safe = [spreadsheet_safe(column) if pa.types.is_string(column.type) else column for column in columns]
    return pa.table(safe, names=spreadsheet_safe(pa.array(table.column_names)).to_pylist())


NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def spreadsheet_safe(column: pyarrow.Array | pyarrow.ChunkedArray) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Text that no spreadsheet reads as a formula, and that can be restored.

    Text that begins with `=`, `+`, `-`, `@`, a tab, a carriage return or an apostrophe is preceded by an apostrophe, unless it is a number.
    Removing one leading apostrophe restores the text.

    Examples
    --------
    >>> import pyarrow as pa
    >>> spreadsheet_safe(pa.array(["=1+1", "-1", "'s", "a=b"])).to_pylist()
    ["'=1+1", '-1', "''s", 'a=b']
    """
    import pyarrow.compute as pc

    is_formula = pc.match_substring_regex(column, r"^[=+\-@\t\r']")
    is_number = pc.match_substring_regex(column, NUMBER)
    return pc.if_else(pc.and_not(is_formula, is_number), pc.binary_join_element_wise("'", column, ""), column)
