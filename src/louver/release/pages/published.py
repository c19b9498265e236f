"""The published tables that pages show, whether read from a folder or held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

import pyarrow as pa

from louver.release.folder import Folder, without_dictionary

__all__ = ["Published", "in_folder", "in_memory"]

Published = Callable[[str], Iterable[pa.Table]]
"""Yields the rows of a published file in parts."""


def in_memory(tables: Mapping[str, pa.Table]) -> Published:
    """Tables keyed by the names of the files that they are written to."""
    return lambda name: [without_dictionary(tables[name])]


def in_folder(folder: Folder) -> Published:
    """The Parquet files of a release directory."""
    return partial(_read, folder)


def _read(folder: Folder, name: str) -> Iterator[pa.Table]:
    for batch in folder.batches(name, folder.schema(name).names):
        yield without_dictionary(batch)
