"""The description of the data source that all verbs share: one model, part of every spec and of every call."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.schema.options import Orders, option
from louver.schema.validate import OWN, Options, validated
from louver.schema.where import parse_where

__all__ = ["ALL_COLUMNS", "ENCODINGS", "CountedSourceKeywords", "SourceKeywords", "SourceOptions"]

ALL_COLUMNS = "*"
"""Key that stands for every column in `missing_code`."""

RIVALS = {"table": "query", "query": "table", "weight": "wide", "wide": "weight"}
"""Options of a call, with the settings of the spec that each of them replaces."""

ENCODINGS = [
    "utf-8",
    "utf-16",
    "cp1252",
    "latin-1",
    "iso8859-15",
    "cp1250",
    "cp1251",
    "cp437",
    "cp850",
    "mac-roman",
    "shift_jis",
    "gb18030",
    "big5",
    "euc_kr",
]


def _encoding(name: str) -> str:
    """Canonical name of an encoding: two aliases of the same encoding make the same request."""
    try:
        meant = codecs.lookup(name)
        return next(known for known in ENCODINGS if codecs.lookup(known).name == meant.name)
    except (LookupError, ValueError, StopIteration):  # a name with a zero byte raises ValueError
        known = ", ".join(ENCODINGS)
    raise PydanticCustomError(OWN, "is not a known encoding; choose from {known}", {"known": known})


def _delimiter(text: str) -> str:
    mark = {"tab": "\t", "\\t": "\t"}.get(text, text)
    is_usable = len(mark) == 1 and mark.isascii() and (mark == "\t" or mark.isprintable())
    if not is_usable or mark.isalnum() or mark in "\"'.+-":
        raise PydanticCustomError(OWN, "must be one character such as ; or |, or the word tab")
    return mark


def _where(text: str) -> str:
    try:
        parse_where(text)
    except InputError as error:
        problem = str(error)
    else:
        return text
    raise PydanticCustomError(OWN, "{problem}", {"problem": problem})


def _missing_codes(codes: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for values in codes.values():
        if not values or "" in values:
            raise PydanticCustomError(OWN, "needs the values that stand for missing, such as A=9,99 or *=N")
    return codes


class SourceOptions(Options):
    """`[source]`: the location of the records, how they are read, and how rows are counted."""

    file: str | None = None
    uri: str | None = None
    table: str | None = option(
        None,
        "Table in a DuckDB file or PostgreSQL database, or sheet of an Excel file.",
        metavar="NAME",
        group="source",
    )
    query: str | None = option(None, "Query for a PostgreSQL database.", metavar="SQL", group="source")
    weight: str | None = option(
        None,
        "Column of counts; without it, every row is one person.",
        metavar="COLUMN",
        group="source",
    )
    wide: dict[str, dict[str, str]] = Field(default_factory=dict)
    decimal_mark: Literal[".", ","] | None = option(
        None,
        "Decimal mark of numbers written as text; without it, numbers with commas are refused.",
        metavar=".|,",
        group="source",
    )
    encoding: Annotated[str, AfterValidator(_encoding)] = option(
        "utf-8", "Encoding of a CSV file, such as cp1252 or utf-16.", metavar="NAME", group="source"
    )
    delimiter: Annotated[str, AfterValidator(_delimiter)] | None = option(
        None,
        "Separator of the fields of a CSV file: one character, or tab (default: comma, semicolon or tab, whichever the header has).",
        metavar="SIGN",
        group="source",
    )
    keep_codes: bool = option(
        False, "Keep the codes of a Stata, SPSS or SAS file instead of their value labels.", group="source"
    )
    where: Annotated[str, AfterValidator(_where)] | None = option(
        None,
        "Only rows that meet a condition, such as \"age >= 18 and state in ('GA', 'NY')\".",
        metavar="CONDITION",
        group="source",
    )
    header_row: int | None = option(
        None,
        "Row of a CSV or Excel file that names the columns, counted from 1; rows above it are skipped (default: the first).",
        metavar="N",
        group="source",
        ge=1,
    )
    missing_code: Annotated[Orders, AfterValidator(_missing_codes)] = option(
        {},
        "Values that stand for missing, in one column or in all of them (*=N,99). May be repeated.",
        metavar="A=V,V",
        group="source",
    )
    date_order: Literal["dmy", "mdy", "ymd"] | None = option(
        None,
        "Order of day, month and year in dates such as 03/04/2020; without it, ambiguous dates are refused.",
        metavar="dmy|mdy|ymd",
        group="source",
    )
    weight_is_count: bool = option(
        False,
        "The weight column does count people, although it looks like money or a sampling weight.",
        group="source",
    )

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
        """Arguments of `open_source`: everything except the location of the data and how rows are counted."""
        return self.model_dump(exclude={"file", "uri", "weight", "wide"})

    def keywords(self) -> dict[str, Any]:
        """The same for a verb that treats each row as one record, as keywords: without the column of counts."""
        return {name: value for name, value in self.opening().items() if name != "weight_is_count"}

    def noted(self) -> str:
        """The part of this source that enters the fingerprint of a design: how records are read, not where they are stored."""
        return self.model_dump_json(exclude={"file", "uri"})

    def replaced(self, given: dict[str, Any]) -> SourceOptions:
        """The same, with values given in a call replacing these."""
        kept = self.model_dump(exclude={RIVALS[name] for name in given if name in RIVALS})
        return validated(SourceOptions, {**kept, **given})


class SourceKeywords(TypedDict, total=False):
    """How records are read, as keywords."""

    table: str | None
    query: str | None
    decimal_mark: str | None
    encoding: str | None
    delimiter: str | None
    keep_codes: bool | None
    where: str | None
    header_row: int | None
    missing_code: Mapping[str, Sequence[str | int]] | None
    date_order: str | None


class CountedSourceKeywords(SourceKeywords, total=False):
    """The same for verbs that also take counts: from one column, or from one column per cell."""

    weight: str | None
    wide: Mapping[str, Mapping[str, str]] | None
    weight_is_count: bool | None
