"""What all verbs share about where their records are: one model, part of every spec and of every call."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from louver.schema.options import option
from louver.schema.validate import OWN, Options, validated

__all__ = ["SourceOptions"]

RIVALS = {"table": "query", "query": "table", "weight": "wide", "wide": "weight"}
"""What is given replaces what a spec says about the same."""

NOTED = ("file", "uri", "table", "query", "weight", "wide")
"""Fields, in this order, that fingerprints of designs always held."""


class SourceOptions(Options):
    """Where the records are, how they are read and what a row counts: `[source]`."""

    file: str | None = None
    uri: str | None = None
    table: str | None = option(
        None, "Table in a DuckDB file or PostgreSQL database.", metavar="NAME", group="source"
    )
    query: str | None = option(None, "Query for a PostgreSQL database.", metavar="SQL", group="source")
    weight: str | None = option(
        None,
        "Column of counts; without it every line is one person.",
        metavar="COLUMN",
        group="source",
    )
    wide: dict[str, dict[str, str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> SourceOptions:
        if self.file is not None and self.uri is not None:
            raise PydanticCustomError(OWN, "names both a file and a uri; give one of them")
        if self.table is not None and self.query is not None:
            raise PydanticCustomError(OWN, "names both a table and a query; give one of them")
        if self.weight is not None and self.wide:
            raise PydanticCustomError(OWN, "has both a weight column and wide columns; give one of them")
        return self

    def opening(self) -> dict[str, Any]:
        """What `open_source` is told beside the data: all but where they are and what a row counts."""
        return self.model_dump(exclude={"file", "uri", "weight", "wide"})

    def noted(self) -> str:
        """What stands for this in the fingerprint of a design; an option added later is noted where it is given."""
        added = {name for name in type(self).model_fields if name not in NOTED}
        return self.model_dump_json(exclude={"file", "uri"} | (added - self.model_fields_set))

    def replaced(self, given: dict[str, Any]) -> SourceOptions:
        """The same with what a call gives in its place."""
        kept = self.model_dump(exclude={RIVALS[name] for name in given if name in RIVALS})
        return validated(SourceOptions, {**kept, **given})
