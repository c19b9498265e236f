"""What a file of generalised records contains: its number of records, the dictionary of its columns, and the same records as CSV."""

from __future__ import annotations

from typing import Annotated, Literal

import pyarrow as pa
from pydantic import Field

from louver.release.folder import Malformed
from louver.release.promises.base import Context, Outcome, Promise
from louver.release.promises.copies import csv_problem
from louver.release.promises.mapping import DATA, published_columns

__all__ = ["Columns", "CsvCopy", "ReleasedRecords", "check_columns", "check_csv", "check_records"]


class ReleasedRecords(Promise):
    """The file has as many records as stated."""

    promise: Literal["records"]
    file: Literal["data/anonymized.parquet"]
    records: Annotated[int, Field(ge=0)]


def check_records(context: Context, promise: ReleasedRecords) -> Outcome:
    """Count them in the file's metadata."""
    found = context.folder.rows(promise.file)
    return Outcome(found == promise.records, f"{found} records")


SCHEMA = dict.fromkeys(("name", "role", "kind", "done"), pa.string())
NOT_PUBLISHED = ("identifying", "weight", "unit")
ADDED = ("class_id", "unit_id")
"""Columns with the numbers of classes and of households, which the source does not have."""


class Columns(Promise):
    """Every column of the file is in the dictionary with its role, and columns that the dictionary calls dropped are not in the file."""

    promise: Literal["columns"]
    file: Literal["data/anonymized.parquet"]
    dictionary: Literal["data/columns.parquet"]


class CsvCopy(Promise):
    """The CSV file holds the same records."""

    promise: Literal["csv"]
    file: Literal["data/anonymized.parquet"]
    csv: Literal["data/anonymized.csv"]


def check_columns(context: Context, promise: Columns) -> Outcome:
    """Compare the column names of both."""
    folder = context.folder
    dictionary = folder.table(promise.dictionary)
    if [(field.name, field.type) for field in dictionary.schema] != list(SCHEMA.items()):
        raise Malformed("the dictionary has other columns")
    lines = dictionary.to_pylist()
    kept = [line for line in lines if line["role"] not in NOT_PUBLISHED]
    listed = [
        name
        for line in kept
        for name in (published_columns(folder, line["name"]) if line["role"] == "quasi" else [line["name"]])
    ]
    published = [name for name in folder.schema(DATA).names if name not in ADDED or name in listed]
    if listed != published:
        return Outcome(False, "the dictionary does not list the columns of the file")
    n_unchanged = sum(line["role"] != "quasi" for line in kept)
    return Outcome(True, f"{len(lines)} columns, {n_unchanged} published unchanged")


def check_csv(context: Context, promise: CsvCopy) -> Outcome:
    """Read the text and compare value by value."""
    problem = csv_problem(context.folder, promise.csv, promise.file)
    if problem is not None:
        return Outcome(False, problem)
    return Outcome(True, f"{context.folder.rows(promise.file)} records as in the Parquet file")
