"""The files of somebody's release directory, opened with care.

Only plain files are opened, by names that the manifest lists and that stay inside the folder. Parquet files are read in
batches, text as numbers into its dictionary, so that memory follows what is distinct in a file and not what its
compression can be made to unfold to. What has to be held whole may have as many values as the file's metadata admit to, up to
`MOST_VALUES`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["BATCH_ROWS", "MOST_VALUES", "Folder", "Malformed", "plain_files", "without_dictionary"]

BATCH_ROWS = 1 << 18
"""Rows that are looked at together."""

MOST_VALUES = 1 << 27
"""Most values of a file that is held whole."""

MOST_BYTES = 1 << 32
"""Most bytes, before compression, of a file that is held whole."""

MOST_ENTRIES = 100_000
"""Most files and folders of a release."""


class Malformed(ValueError):
    """Files or promises that are not of the form they must have; the message says how."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A release directory and the files in it that may be opened.

    Parameters
    ----------
    path : Path
    files : collection of str
        Names, with `/`, that the manifest lists and `plain_files` found.
    """

    path: Path
    files: Collection[str]

    def file(self, name: str) -> Path:
        """Where a file is, if it may be opened."""
        if name not in self.files:
            raise Malformed(f"there is no file {name}")
        return self.path / name

    def rows(self, name: str) -> int:
        """Rows of a Parquet file, from its metadata."""
        return int(pq.read_metadata(self.file(name)).num_rows)

    def schema(self, name: str) -> pa.Schema:
        """Columns of a Parquet file."""
        return pq.read_schema(self.file(name))

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of a Parquet file in batches; text comes as a dictionary."""
        names = list(dict.fromkeys(columns))
        schema = self.schema(name)
        texts = [column for column in names if _is_text(schema.field(column).type)]
        with pq.ParquetFile(self.file(name), read_dictionary=texts) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield pa.Table.from_batches([batch]).select(names)

    def check_rows(self, name: str, most: int) -> None:
        """Refuse a file of more rows than the promise allows."""
        if self.rows(name) > most:
            raise Malformed(f"{name} is larger than the promise allows; it was not read")

    def table(self, name: str, *, most_rows: int | None = None) -> pa.Table:
        """A whole Parquet file, refused where its metadata say that it is too large.

        Parameters
        ----------
        most_rows : int, optional
            What follows from the promise.
        """
        metadata = pq.read_metadata(self.file(name))
        chunks = [
            metadata.row_group(group).column(column)
            for group in range(metadata.num_row_groups)
            for column in range(metadata.num_columns)
        ]
        is_large = (
            sum(chunk.num_values for chunk in chunks) > MOST_VALUES
            or sum(chunk.total_uncompressed_size for chunk in chunks) > MOST_BYTES
        )
        if is_large or (most_rows is not None and metadata.num_rows > most_rows):
            raise Malformed(f"{name} is larger than the promise allows; it was not read")
        return pq.ParquetFile(self.file(name)).read()

    def metadata(self, name: str) -> dict[bytes, bytes]:
        """Key-value metadata of a Parquet file."""
        return dict(self.schema(name).metadata or {})


def plain_files(folder: Path) -> tuple[set[str], int]:
    """Names of the plain files below a folder, and how many entries are neither a plain file nor a folder of its own."""
    names: set[str] = set()
    odd = 0
    waiting = [(folder, "")]
    while waiting:
        place, prefix = waiting.pop()
        for entry in _entries(place):
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                waiting.append((Path(entry.path), f"{prefix}{entry.name}/"))
            elif stat.S_ISREG(mode):
                names.add(prefix + entry.name)
            else:
                odd += 1
        if len(names) + len(waiting) + odd > MOST_ENTRIES:
            raise Malformed("the folder has more entries than any release")
    return names, odd


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        raise Malformed("a folder inside cannot be listed") from None


def without_dictionary(table: pa.Table) -> pa.Table:
    """Dictionary columns as what they stand for."""
    columns: list[Any] = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_dictionary(kind) and _is_text(kind.value_type))
    )
