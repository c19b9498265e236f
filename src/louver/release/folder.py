"""The files of an untrusted release directory, opened with care.

Only plain files inside the folder are opened, by names that the manifest lists. Parquet files are read in batches, text as numbers into its
dictionary, so that memory depends on the distinct values in a file and not on the size to which its compression can expand. A column that
must be in memory as a whole may have the number of values that the file's metadata state, up to `MOST_VALUES`. Time depends on the bytes on
disk: files that expand to more values than their size allows, or that consist of holes, are not read. Reading Parquet does not examine
everything: numbers of dictionary values may be out of range, and text may not be UTF-8. So every table is examined before it is used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = [
    "BATCH_ROWS",
    "MOST_VALUES",
    "Folder",
    "Malformed",
    "are_hollow",
    "examined",
    "is_text",
    "plain_files",
    "read_text",
    "without_dictionary",
]

BATCH_ROWS = 1 << 18
"""Number of rows processed together."""

MOST_VALUES = 1 << 27
"""Maximum number of values in a file that is read into memory as a whole."""

MOST_BYTES = 1 << 32
"""Maximum uncompressed size, in bytes, of a file that is read into memory as a whole."""

MOST_ENTRIES = 100_000
"""Maximum number of files and folders in a release."""

FREE_VALUES, VALUES_PER_BYTE = 100_000_000, 64
"""Number of values that a column of any Parquet file may have, and additional values allowed for each byte of the file.

A column of equal values takes a few bytes for any number of rows; reading them still takes time.
"""

MOST_TEXT = 1 << 26
"""Maximum size, in bytes, of a page or other text that is read into memory as a whole."""

MOST_HOLES, MOST_SIZE, FILLED = 1 << 30, 1 << 42, 100
"""Maximum number of bytes that all files together may have without occupying disk space, and maximum number of bytes in total.

A file system with compression may store FILLED bytes as one, so this many bytes count as stored for each byte on disk.
"""


class Malformed(ValueError):
    """Files or promises that do not have the required form; the message says how."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A release directory and the files in it that may be opened.

    Parameters
    ----------
    path : Path
    files : collection of str
        Names, with `/`, that are listed in the manifest and were found by `plain_files`.
    """

    path: Path
    files: Collection[str]

    def file(self, name: str) -> Path:
        """The path of a file that may be opened."""
        if name not in self.files:
            raise Malformed(f"there is no file {name}")
        return self.path / name

    def footer(self, name: str) -> pq.FileMetaData:
        """Metadata of a Parquet file, refused if it would expand to more than its size allows."""
        path = self.file(name)
        metadata = pq.read_metadata(path)
        found = path.stat()
        most = FREE_VALUES + VALUES_PER_BYTE * found.st_size
        if metadata.num_rows > most:
            raise Malformed(f"{name} would expand to more values than its size allows; it was not read")
        try:
            _begin_columns(path, found.st_size, found.st_mtime_ns)
        except (OSError, pa.ArrowException):
            raise Malformed(f"{name} is damaged: its columns cannot be read") from None
        longest = [0] * metadata.num_columns
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in range(metadata.num_columns):
                longest[column] += group.column(column).num_values
        if max(longest, default=0) > most:
            raise Malformed(f"{name} would expand to more values than its size allows; it was not read")
        return metadata

    def rows(self, name: str) -> int:
        """Number of rows of a Parquet file, from its metadata."""
        return int(self.footer(name).num_rows)

    def schema(self, name: str) -> pa.Schema:
        """Columns of a Parquet file."""
        return self.footer(name).schema.to_arrow_schema()

    def batches(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of a Parquet file in batches; text comes as a dictionary."""
        names = list(dict.fromkeys(columns))
        metadata = self.footer(name)
        schema = metadata.schema.to_arrow_schema()
        texts = [column for column in names if is_text(schema.field(column).type)]
        with pq.ParquetFile(self.file(name), metadata=metadata, read_dictionary=texts) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield examined(pa.Table.from_batches([batch]).select(names), name)

    def row_groups(self, name: str, columns: Sequence[str]) -> Iterator[tuple[pa.Table, int]]:
        """Every row group of a Parquet file: the given columns, and the number of values of its longest column."""
        metadata = self.footer(name)
        with pq.ParquetFile(self.file(name), metadata=metadata) as file:
            for place in range(metadata.num_row_groups):
                group = metadata.row_group(place)
                longest = max(group.column(column).num_values for column in range(group.num_columns))
                rows = examined(file.read_row_group(place, columns=list(columns)), name)
                yield rows.select(list(columns)), int(longest)

    def check_rows(self, name: str, most: int) -> None:
        """Refuse a file of more rows than the promise allows."""
        if self.rows(name) > most:
            raise Malformed(f"{name} is larger than the promise allows; it was not read")

    def table(self, name: str, *, most_rows: int | None = None) -> pa.Table:
        """A whole Parquet file, refused if its metadata say that it is too large.

        Parameters
        ----------
        most_rows : int, optional
            Maximum number of rows, if the promise implies one.
        """
        metadata = self.footer(name)
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
        with pq.ParquetFile(self.file(name), metadata=metadata) as file:
            return examined(file.read(), name)

    def metadata(self, name: str) -> dict[bytes, bytes]:
        """Key-value metadata of a Parquet file."""
        return dict(self.schema(name).metadata or {})


@lru_cache(maxsize=64)
def _begin_columns(path: Path, size: int, changed: int) -> None:
    """Begin to read every column of a Parquet file: a false description of one is an error here, but ends the process in `column`.

    `size` and `changed` identify the content, so that a file is tried once.
    """
    with pq.ParquetFile(path) as file:
        for group in range(file.metadata.num_row_groups):
            next(file.iter_batches(1, row_groups=[group], use_threads=False), None)


def examined(rows: pa.Table, file: str) -> pa.Table:
    """The same rows; Malformed if a value refers outside its dictionary, or text is not UTF-8: working on them could crash."""
    try:
        rows.validate(full=True)
    except pa.ArrowException:
        raise Malformed(f"{file} is damaged: its values cannot be read") from None
    return rows


def are_hollow(paths: Iterable[Path]) -> bool:
    """Whether files together are larger than any release, or much larger than their disk usage: reading holes takes hours."""
    size, holes = 0, 0
    for path in paths:
        found = os.stat(path, follow_symlinks=False)
        size += found.st_size
        on_disk = getattr(found, "st_blocks", None)
        holes += 0 if on_disk is None else max(0, found.st_size - FILLED * 512 * on_disk)
    return holes > MOST_HOLES or size > MOST_SIZE


def read_text(path: Path) -> str:
    """The text of a page; Malformed if it is larger than any page can be."""
    with path.open("rb") as stream:
        text = stream.read(MOST_TEXT + 1)
    if len(text) > MOST_TEXT:
        raise Malformed(f"{path.name} is too large to be read")
    return text.decode("utf-8", errors="replace")


def plain_files(folder: Path) -> tuple[set[str], int]:
    """Names of the plain files below a folder, and the number of entries that are neither plain files nor real folders."""
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
    """Dictionary columns decoded to their values."""
    columns: list[Any] = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this kind are text, in a dictionary or not."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_dictionary(kind) and is_text(kind.value_type))
    )
