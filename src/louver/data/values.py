"""Small labelled tables whose values are kept as text: published conditionals, lists of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from louver.data.coding import text_sql
from louver.data.read import Source
from louver.data.tabulate import Records, read_codes
from louver.schema.attribute import Kind

if TYPE_CHECKING:
    from louver.schema.spec import Schema

__all__ = ["read_labelled_text", "read_text"]


def read_text(source: Source, columns: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Rows of some columns as text, None where a value is missing."""
    fields = ", ".join(text_sql(source, column) for column in columns)
    rows: list[tuple[str | None, ...]] = []
    for batch in source.batches(f"SELECT {fields} FROM records"):
        rows.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows


def read_labelled_text(
    source: Source, names: Sequence[str], values: Sequence[str], schema: Schema | None = None
) -> tuple[Records, list[tuple[str | None, ...]]]:
    """Codes of the columns `names`, and the text of the columns `values`, row by row."""
    labelled = None if schema is None else _labelled(schema)
    return read_codes(source, names, labelled), read_text(source, values)


def _labelled(schema: Schema) -> Schema:
    """The schema with its unlisted numbers as categories: each number that occurs is a label."""
    recoded = {recode.attribute for recode in schema.recodes}
    attributes = [
        attribute if attribute.labels or attribute.name in recoded else replace(attribute, kind=Kind.CATEGORY)
        for attribute in schema.attributes
    ]
    return replace(schema, attributes=tuple(attributes))
