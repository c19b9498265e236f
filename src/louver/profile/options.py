"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from typing import ClassVar

from pydantic import FiniteFloat

from louver.schema.options import Names, VerbOptions, option

__all__ = ["ProfileOptions"]


class ProfileOptions(VerbOptions):
    """Everything `louver profile` can be told, but for where the data are."""

    verb: ClassVar[str] = "profile"
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    columns: Names = option(
        (), "Columns to look at, separated by commas (default: all).", metavar="A,B", group="columns"
    )
    largest: int = option(
        3,
        "Most columns in a set that singles people out.",
        metavar="N",
        group="search",
        ge=1,
        le=4,
    )
    alone: FiniteFloat = option(
        0.05,
        "A set of columns singles people out if at least this share of the records is alone with its values.",
        metavar="SHARE",
        group="search",
        gt=0,
        le=1,
    )
