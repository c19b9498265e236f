"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import FiniteFloat

from louver.errors import InputError
from louver.schema.options import Names, Orders, VerbOptions, option
from louver.schema.source import SourceKeywords

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ProfileKeywords", "ProfileOptions"]


class ProfileOptions(VerbOptions):
    """All options of `louver profile`, except the location of the data."""

    verb: ClassVar[str] = "profile"
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    columns: Names = option(
        (), "Columns to examine, separated by commas (default: all).", metavar="A,B", group="columns"
    )
    largest: int = option(
        3,
        "Maximum number of columns in a set that singles people out.",
        metavar="N",
        group="search",
        ge=1,
        le=4,
    )
    alone: FiniteFloat = option(
        0.05,
        "A set of columns singles people out if at least this share of the records is unique in it.",
        metavar="SHARE",
        group="search",
        gt=0,
        le=1,
    )
    scenario: Orders = option(
        {},
        "Columns that an attacker may know about a person, under a name: measures the risk from this knowledge. May be repeated.",
        metavar="NAME=A,B,C",
        group="risk of a sample",
        repeated=True,
    )
    sampling_weight: str | None = option(
        None,
        "People in the population that a record stands for; the file is a sample.",
        metavar="COLUMN",
        group="risk of a sample",
    )
    population_size: int | None = option(
        None,
        "Number of people in the population, if the file is a sample without weights (default: the file is the whole population).",
        metavar="N",
        group="risk of a sample",
        ge=1,
    )

    def check(self) -> None:
        """Refuse scenarios without columns, and two statements of the size of the population."""
        for name, columns in self.scenario.items():
            if not columns or len(set(columns)) < len(columns):
                raise InputError(
                    f'option --scenario "{name}" must list at least one column, and none twice.',
                    option="--scenario",
                )
            if self.sampling_weight in columns:
                raise InputError(
                    f'option --scenario "{name}" lists the sampling weight; leave it out.',
                    option="--scenario",
                )
        if self.sampling_weight is not None and self.population_size is not None:
            raise InputError(
                "options --sampling-weight and --population-size both say how large the population is; choose one.",
                option="--population-size",
            )

    def needed_columns(self) -> tuple[str, ...]:
        """Distinct columns needed for the risk of a sample."""
        known_columns = [column for columns in self.scenario.values() for column in columns]
        weight = [] if self.sampling_weight is None else [self.sampling_weight]
        return tuple(dict.fromkeys(known_columns + weight))


class ProfileKeywords(SourceKeywords, total=False):
    """Keywords of `profile`."""

    columns: str | Sequence[str]
    largest: int
    alone: float
    scenario: Mapping[str, Sequence[str]] | None
    sampling_weight: str | None
    population_size: int | None
