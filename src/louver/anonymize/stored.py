"""Published records that are not held in memory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["StoredRecords"]


@dataclass(frozen=True, slots=True)
class StoredRecords:
    """A Parquet file of records, in the place of the table that it holds."""

    path: Path

    @property
    def num_rows(self) -> int:
        return int(pq.read_metadata(self.path).num_rows)

    @property
    def schema(self) -> pa.Schema:
        return pq.read_schema(self.path)

    def read(self) -> pa.Table:
        """All records, in memory."""
        return pq.read_table(self.path)

    def write(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self.path, path)
