"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, FiniteFloat

from louver.bounds.problem import Arrangement, ZeroRows
from louver.bounds.rounded import Rounding
from louver.errors import InputError
from louver.schema.files import read_toml
from louver.schema.options import Names, VerbOptions, option
from louver.schema.recode import Recode, RecodeTable, parse_recodes, recodes_of
from louver.schema.source import SourceKeywords, SourceOptions
from louver.schema.validate import Options, file_or, validated

__all__ = ["BoundsOptions", "TableKeywords", "parse_arrangements", "read_arrangements"]

MAX_DECIMALS = 9


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_labels(value: Any) -> bool:
    return _is_tables(value) and all(isinstance(label, str) for entry in value for label in entry.values())


TableList = Annotated[str | list[dict[str, Any]], file_or(_is_tables, "a list of tables")]
LabelList = Annotated[str | list[dict[str, str]], file_or(_is_labels, "a list of tables of labels")]


class TableKeywords(SourceKeywords, total=False):
    """What `compare` and `suggest` share with `bounds`."""

    weight: str | None
    wide: Mapping[str, Mapping[str, str]] | None
    decimals: int | None
    rounding: str
    small: int
    drop_zero_rows: bool
    merge_zero_rows: bool


class BoundsOptions(VerbOptions):
    """Everything `louver bounds` can be told, but for where the data are."""

    verb: ClassVar[str] = "bounds"

    rows: Names = option((), "Columns that make the rows, separated by commas.", metavar="A,B", group="table")
    cols: Names = option((), "Columns that make the columns (the responses).", metavar="C,D", group="table")
    conditionals: bool = option(
        False,
        "The weight column holds conditionals such as 3/7, not counts; needs --n.",
        group="table",
    )
    n: int | None = option(
        None, "Sample size, with --conditionals.", metavar="N", group="table", ge=1, le=2**53
    )
    recode: RecodeTable | None = option(
        None, "TOML file with merged categories and bins.", metavar="FILE", group="table", file="one"
    )
    given: TableList | None = option(
        None,
        "TOML file with bounds that outsiders know beforehand.",
        metavar="FILE",
        group="knowledge",
        file="one",
    )
    cells: LabelList | None = option(
        None, "CSV file of cells; only these are solved.", metavar="FILE", group="knowledge", file="one"
    )
    arrangements: TableList | None = option(
        None, "TOML file with arrangements to compare.", metavar="FILE", group="search", file="one"
    )
    decimals: int | None = option(
        None,
        "Decimals of the published proportions (0.429 has 3, and so has 42.9 %); exact fractions otherwise.",
        metavar="D",
        group="publication",
        ge=0,
        le=MAX_DECIMALS,
    )
    rounding: Literal["half-up", "half-even"] = option(
        "half-up",
        "How ties are rounded, with --decimals.",
        metavar="half-up|half-even",
        group="publication",
    )
    small: int = option(5, "Counts below this are small.", metavar="N", group="publication", ge=1)
    drop_zero_rows: bool = option(
        False, "Leave out rows with a zero cell, and their people.", group="publication"
    )
    merge_zero_rows: bool = option(
        False, 'Add rows with a zero cell up in one row "Other".', group="publication"
    )
    suggest: bool = option(False, "Search for redesigns without a disclosed small cell.", group="search")
    seconds: FiniteFloat = option(30.0, "Time for --suggest.", metavar="S", group="search", gt=0)
    fail_on: Literal["small", "rows", "any"] | None = option(
        None,
        "Exit with 1 if a small cell, a row, or anything at all (zero cells too) is disclosed.",
        metavar="small|rows|any",
        group="search",
    )

    def check(self) -> None:
        """Refuse combinations that contradict one another."""
        together = [
            (self.drop_zero_rows and self.merge_zero_rows, "--drop-zero-rows", "--merge-zero-rows"),
            (self.conditionals and self.drop_zero_rows, "--conditionals", "--drop-zero-rows"),
            (self.conditionals and self.merge_zero_rows, "--conditionals", "--merge-zero-rows"),
            (self.conditionals and self.recode is not None, "--conditionals", "--recode"),
            (self.conditionals and self.suggest, "--conditionals", "--suggest"),
            (self.conditionals and self.arrangements is not None, "--conditionals", "--arrangements"),
            (self.arrangements is not None and self.suggest, "--arrangements", "--suggest"),
            (self.arrangements is not None and self.cells is not None, "--arrangements", "--cells"),
            (self.arrangements is not None and self.given is not None, "--arrangements", "--given"),
            (self.arrangements is not None and self.recode is not None, "--arrangements", "--recode"),
            (self.arrangements is not None and self.n is not None, "--arrangements", "--n"),
            (self.suggest and self.given is not None, "--suggest", "--given"),
            (self.suggest and self.cells is not None, "--suggest", "--cells"),
        ]
        for is_given, first, second in together:
            if is_given:
                raise InputError(f"options {first} and {second} cannot be used together.", option=second)
        if self.conditionals and self.n is None:
            raise InputError("option --conditionals needs --n, the sample size.", option="--n")
        if self.rounding == "half-even" and self.decimals is None:
            raise InputError("option --rounding needs --decimals.", option="--rounding")

    def check_source(self, source: SourceOptions) -> None:
        """Conditionals have a column of their own."""
        if self.conditionals and source.weight is None:
            raise InputError("option --conditionals needs --weight to name their column.", option="--weight")

    @property
    def rounding_rule(self) -> Rounding:
        return Rounding(self.rounding)

    @property
    def zero_rows(self) -> ZeroRows:
        if self.drop_zero_rows:
            return ZeroRows.DROP
        return ZeroRows.MERGE if self.merge_zero_rows else ZeroRows.KEEP

    def arrangement(self) -> Arrangement:
        """The arrangement that --rows, --cols and --recode describe."""
        return _arrangement(self.rows, self.cols, recodes_of(self.recode))


class _ArrangementEntry(Options):
    name: str = ""
    rows: Names
    cols: Names
    recode: dict[str, Any] = Field(default_factory=dict)


class _ArrangementFile(Options):
    arrangement: Annotated[list[_ArrangementEntry], Field(min_length=1)]


def read_arrangements(path: str | Path) -> list[Arrangement]:
    """Read `[[arrangement]]` entries with rows, cols, and recodes from a TOML file."""
    return _parse(read_toml(path), Path(path).name)


def parse_arrangements(entries: list[dict[str, Any]]) -> list[Arrangement]:
    """The same from a list of mappings, for the library and the spec file."""
    return _parse({"arrangement": entries}, "arrangements")


def _parse(mapping: Mapping[str, Any], where: str) -> list[Arrangement]:
    arrangements = []
    for number, entry in enumerate(validated(_ArrangementFile, mapping, where).arrangement, start=1):
        place = f"arrangement {number} of {where}"
        recodes = parse_recodes(entry.recode, place)
        try:
            arrangements.append(_arrangement(entry.rows, entry.cols, recodes, entry.name))
        except InputError as error:
            message = f"{place}: {error}"
            raise InputError(message, file=where, column=error.column, option=error.option) from None
    return arrangements


def _arrangement(
    rows: tuple[str, ...], cols: tuple[str, ...], recodes: Sequence[Recode], name: str = ""
) -> Arrangement:
    for recode in recodes:
        if recode.attribute not in (*rows, *cols):
            raise InputError(
                f'a recode is given for "{recode.attribute}", which is neither in --rows nor in --cols.',
                option="--recode",
                column=recode.attribute,
            )
    return Arrangement(rows=rows, cols=cols, recodes=tuple(recodes), name=name)
