"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, FiniteFloat

from louver.bounds.problem import Arrangement, ZeroRows
from louver.bounds.rounded import Rounding
from louver.errors import InputError
from louver.schema.files import read_toml
from louver.schema.recode import Recode, parse_recodes, read_recodes
from louver.schema.spec import validated
from louver.schema.validate import Options, file_or

__all__ = ["BoundsOptions", "parse_arrangements", "read_arrangements"]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]
MAX_DECIMALS = 9


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_labels(value: Any) -> bool:
    return _is_tables(value) and all(isinstance(label, str) for entry in value for label in entry.values())


RecodeTable = Annotated[str | dict[str, Any], file_or(lambda value: isinstance(value, dict), "a table")]
TableList = Annotated[str | list[dict[str, Any]], file_or(_is_tables, "a list of tables")]
LabelList = Annotated[str | list[dict[str, str]], file_or(_is_labels, "a list of tables of labels")]


class BoundsOptions(Options):
    """Everything `louver bounds` can be told, but for where the data are."""

    rows: Names = ()
    cols: Names = ()
    weight: str | None = None
    conditionals: bool = False
    n: Annotated[int, Field(ge=1, le=2**53)] | None = None
    recode: RecodeTable | None = None
    given: TableList | None = None
    cells: LabelList | None = None
    arrangements: TableList | None = None
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    rounding: Literal["half-up", "half-even"] = "half-up"
    small: Annotated[int, Field(ge=1)] = 5
    drop_zero_rows: bool = False
    merge_zero_rows: bool = False
    suggest: bool = False
    seconds: Annotated[FiniteFloat, Field(gt=0)] = 30.0
    fail_on: Literal["small", "rows", "any"] | None = None

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
        if self.conditionals and self.weight is None:
            raise InputError("option --conditionals needs --weight to name their column.", option="--weight")
        if self.conditionals and self.n is None:
            raise InputError("option --conditionals needs --n, the sample size.", option="--n")
        if self.rounding == "half-even" and self.decimals is None:
            raise InputError("option --rounding needs --decimals.", option="--rounding")

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
        if isinstance(self.recode, str):
            recodes = read_recodes(self.recode)
        else:
            recodes = parse_recodes(self.recode or {}, "recode")
        return _arrangement(self.rows, self.cols, recodes)


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
