"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from louver.bounds.problem import Arrangement, ZeroRows
from louver.bounds.rounded import Rounding
from louver.errors import InputError
from louver.schema.files import read_toml
from louver.schema.recode import Recode, parse_recodes
from louver.schema.spec import validated
from louver.schema.validate import Options

__all__ = ["BoundsOptions", "parse_arrangements", "read_arrangements"]

Names = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
]
MAX_DECIMALS = 9


class BoundsOptions(Options):
    """Everything `louver bounds` can be told, but for where the data are."""

    rows: Names = ()
    cols: Names = ()
    weight: str | None = None
    conditionals: bool = False
    n: Annotated[int, Field(ge=1, le=2**53)] | None = None
    recode: str | dict[str, Any] | None = None
    given: str | list[dict[str, Any]] | None = None
    cells: str | list[dict[str, str]] | None = None
    arrangements: str | list[dict[str, Any]] | None = None
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    rounding: Literal["half-up", "half-even"] = "half-up"
    small: Annotated[int, Field(ge=1)] = 5
    drop_zero_rows: bool = False
    merge_zero_rows: bool = False
    suggest: bool = False
    seconds: Annotated[float, Field(gt=0)] = 30.0
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
        recodes: tuple[Recode, ...] = ()
        if self.recode is not None:
            where = Path(self.recode).name if isinstance(self.recode, str) else "recode"
            mapping = read_toml(self.recode) if isinstance(self.recode, str) else self.recode
            recodes = tuple(parse_recodes(mapping, where))
        names = (*self.rows, *self.cols)
        for recode in recodes:
            if recode.attribute not in names:
                raise InputError(
                    f'a recode is given for "{recode.attribute}", which is neither in --rows nor in --cols.',
                    option="--recode",
                    column=recode.attribute,
                )
        return Arrangement(rows=self.rows, cols=self.cols, recodes=recodes)


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
    entries = validated(_ArrangementFile, mapping, where).arrangement
    return [
        Arrangement(
            rows=entry.rows,
            cols=entry.cols,
            recodes=tuple(parse_recodes(entry.recode, where)),
            name=entry.name,
        )
        for entry in entries
    ]
