"""The number of records in the file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from louver.release.promises.base import Context, Outcome, Promise

__all__ = ["ReleasedRecords", "check_records"]


class ReleasedRecords(Promise):
    """The file has as many records as stated."""

    promise: Literal["records"]
    file: Literal["data/anonymized.parquet"]
    records: Annotated[int, Field(ge=0)]


def check_records(context: Context, promise: ReleasedRecords) -> Outcome:
    """Count them in the file's metadata."""
    found = context.folder.rows(promise.file)
    return Outcome(found == promise.records, f"{found} records")
