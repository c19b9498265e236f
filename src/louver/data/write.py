"""Writing files whole or not at all: temporary sibling, fsync, rename."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from louver.errors import InputError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["replacing", "write_csv", "write_parquet"]


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only once the block has ended well.

    Parameters
    ----------
    path : path
        The file to make or to replace.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to.
    """
    path = Path(path)
    sibling = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with sibling.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        sibling.replace(path)
        _sync_folder(path.parent)
    except OSError:
        sibling.unlink(missing_ok=True)
        message = f"{path.name} cannot be written; check its folder, permissions and disk space."
        raise InputError(message, file=path.name) from None
    except BaseException:
        sibling.unlink(missing_ok=True)
        raise


def write_parquet(table: pyarrow.Table, path: str | Path) -> None:
    """Write an Arrow table as Parquet."""
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(table, file, compression="zstd")


def write_csv(table: pyarrow.Table, path: str | Path) -> None:
    """Write an Arrow table as CSV: UTF-8, a header, text in quotes, nulls empty."""
    import pyarrow as pa
    from pyarrow import csv

    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    plain = pa.table(columns, names=table.column_names)
    with replacing(path) as file:
        csv.write_csv(plain, file, csv.WriteOptions(quoting_style="needed"))


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
