"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypedDict

from pydantic import BeforeValidator, Field, FiniteFloat
from pydantic_core import PydanticCustomError

from louver.bounds.knowledge import KnownCells
from louver.bounds.problem import Arrangement, ZeroRows
from louver.bounds.rounded import RoundingRule
from louver.errors import InputError
from louver.schema import register
from louver.schema.options import Names, VerbOptions, option
from louver.schema.recode import Recode, RecodeTable, parse_recodes, recodes_of
from louver.schema.source import CountedSourceKeywords, SourceOptions
from louver.schema.validate import OWN, Options, file_or, read_toml, validated

__all__ = [
    "BoundsOptions",
    "CompareKeywords",
    "CompareOptions",
    "OneTableKeywords",
    "OneTableOptions",
    "PublishKeywords",
    "PublishOptions",
    "SuggestKeywords",
    "SuggestOptions",
    "parse_arrangements",
    "read_arrangements",
]

MAX_DECIMALS = 9
MAX_DECIMALS_TOGETHER = 6


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _is_labels(value: Any) -> bool:
    return _is_tables(value) and all(isinstance(label, str) for entry in value for label in entry.values())


TableList = Annotated[str | list[dict[str, Any]], file_or(_is_tables, "a list of tables")]
LabelList = Annotated[str | list[dict[str, str]], file_or(_is_labels, "a list of tables of labels")]


def _apart(value: Any) -> Any:
    """Attribute -> labels, or lists of labels, no two of which may be merged; stored as lists of lists."""
    if not isinstance(value, dict):
        raise PydanticCustomError(OWN, "must be a table of lists of labels")
    found = {}
    for name, labels in value.items():
        listed = [label.strip() for label in labels.split(",")] if isinstance(labels, str) else labels
        sets = listed if listed and _is_lists(listed) else [listed]
        if not _is_lists(sets) or not all(
            len(one) > 1 and all(isinstance(x, str) for x in one) for one in sets
        ):
            raise PydanticCustomError(OWN, "must list at least two labels for each column")
        found[name] = tuple(tuple(one) for one in sets)
    return found


def _is_lists(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, list | tuple) for one in value)


Apart = Annotated[dict[str, tuple[tuple[str, ...], ...]], BeforeValidator(_apart)]


class _ArrangedKeywords(TypedDict, total=False):
    rows: str | Sequence[str]
    cols: str | Sequence[str]
    n: int | None
    recode: str | Path | Mapping[str, Any] | None


class _FormKeywords(TypedDict, total=False):
    decimals: int | None
    rounding: str
    small: int
    certain: float


class _ZeroRowKeywords(TypedDict, total=False):
    drop_zero_rows: bool
    merge_zero_rows: bool


class OneTableKeywords(
    CountedSourceKeywords, _ArrangedKeywords, _FormKeywords, _ZeroRowKeywords, total=False
):
    """Keywords of `bounds`."""

    conditionals: bool
    percent: bool
    row_n: str | None
    given: str | Path | Sequence[KnownCells | Mapping[str, Any]] | None
    cells: str | Path | Sequence[Mapping[str, str]] | None


class CompareKeywords(CountedSourceKeywords, _FormKeywords, _ZeroRowKeywords, total=False):
    """Keywords of `compare`."""

    arrangements: str | Path | Sequence[Mapping[str, Any]] | None


class SuggestKeywords(CountedSourceKeywords, _ArrangedKeywords, _FormKeywords, _ZeroRowKeywords, total=False):
    """Keywords of `suggest`."""

    seconds: float
    avoid: str
    fix: str | Sequence[str]
    apart: Mapping[str, Sequence[str] | Sequence[Sequence[str]]] | None
    write_recodes: str | Path | None


class PublishKeywords(CountedSourceKeywords, _ArrangedKeywords, _FormKeywords, total=False):
    """Keywords of `publish`."""

    seconds: float
    registry: str | Path | None
    person: str | None
    new_population: bool
    unit: str | None
    count_people: bool
    publish: str | Path | None
    accept: bool
    accept_unchecked: bool


class _Arranged(VerbOptions):
    """The columns that form the rows and the columns of a table."""

    verb: ClassVar[str] = "bounds"

    rows: Names = option(
        (), "Columns whose combinations are the rows, separated by commas.", metavar="A,B", group="table"
    )
    cols: Names = option(
        (), "Columns whose combinations are the columns (the responses).", metavar="C,D", group="table"
    )
    n: int | None = option(
        None, "Sample size, with --conditionals.", metavar="N", group="table", ge=1, le=2**53
    )
    recode: RecodeTable | None = option(
        None, "TOML file with merged categories and bins.", metavar="FILE", group="table", file="one"
    )

    def arrangement(self) -> Arrangement:
        """The arrangement that --rows, --cols and --recode describe."""
        return _arrangement(self.rows, self.cols, recodes_of(self.recode))


class _Form(VerbOptions):
    """The form in which a table is published, and what counts as a disclosure."""

    verb: ClassVar[str] = "bounds"

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
        "Rounding of ties, with --decimals.",
        metavar="half-up|half-even",
        group="publication",
    )
    small: int = option(5, "Counts below this are small.", metavar="N", group="publication", ge=1)
    certain: FiniteFloat = option(
        100.0,
        "A row with at least P percent in one cell reveals a person's status.",
        metavar="P",
        group="publication",
        gt=50,
        le=100,
    )

    def check(self) -> None:
        if self.rounding == "half-even" and self.decimals is None:
            raise InputError("option --rounding needs --decimals.", option="--rounding")
        if (self.certain_share * 10**8).denominator > 1:
            raise InputError("option --certain has more than six decimals; round it.", option="--certain")

    @property
    def certain_share(self) -> Fraction:
        return Fraction(str(self.certain)) / 100

    @property
    def rounding_rule(self) -> RoundingRule:
        return RoundingRule(self.rounding)


class _ZeroRows(VerbOptions):
    """How rows with a zero cell are handled."""

    verb: ClassVar[str] = "bounds"

    drop_zero_rows: bool = option(
        False, "Leave out rows with a zero cell, and their people.", group="publication"
    )
    merge_zero_rows: bool = option(
        False, 'Merge rows with a zero cell into one row "Other".', group="publication"
    )

    @property
    def zero_rows(self) -> ZeroRows:
        if self.drop_zero_rows:
            return ZeroRows.DROP
        return ZeroRows.MERGE if self.merge_zero_rows else ZeroRows.KEEP


class _Timed(VerbOptions):
    """The time limit of a search."""

    verb: ClassVar[str] = "bounds"

    seconds: FiniteFloat = option(
        30.0, "Time limit of --suggest and of the audit with --register.", metavar="S", group="search", gt=0
    )


class OneTableOptions(_ZeroRows, _Form, _Arranged):
    """Options of `bounds`, which checks one table: of counts, or of published conditionals."""

    conditionals: bool = option(
        False,
        "The weight column contains conditionals such as 3/7, not counts; needs --n or --row-n.",
        group="table",
    )
    percent: bool = option(
        False, "With --conditionals: they are percentages, with or without a % sign.", group="table"
    )
    row_n: str | None = option(
        None,
        "With --conditionals: column with the number of people in each row; --n is then their sum.",
        metavar="COLUMN",
        group="table",
    )
    given: TableList | None = option(
        None,
        "TOML file with bounds that outsiders already know.",
        metavar="FILE",
        group="knowledge",
        file="one",
    )
    cells: LabelList | None = option(
        None, "CSV file of cells; only these are solved.", metavar="FILE", group="knowledge", file="one"
    )

    def check(self) -> None:
        super().check()
        _refuse_pairs(
            (self.drop_zero_rows and self.merge_zero_rows, "--drop-zero-rows", "--merge-zero-rows"),
            (self.conditionals and self.drop_zero_rows, "--conditionals", "--drop-zero-rows"),
            (self.conditionals and self.merge_zero_rows, "--conditionals", "--merge-zero-rows"),
            (self.conditionals and self.recode is not None, "--conditionals", "--recode"),
        )
        _refuse_alone(
            (self.percent and not self.conditionals, "--percent", "--conditionals"),
            (self.row_n is not None and not self.conditionals, "--row-n", "--conditionals"),
        )
        if self.conditionals and self.n is None and self.row_n is None:
            raise InputError(
                "option --conditionals needs --n, the sample size, or --row-n, a column of row totals.",
                option="--n",
            )

    def check_source(self, source: SourceOptions) -> None:
        """Require a column of conditionals, and a separate column of row totals."""
        if self.conditionals and source.weight is None:
            raise InputError("option --conditionals needs --weight to name their column.", option="--weight")
        if self.row_n is not None and self.row_n in (*self.rows, *self.cols, source.weight):
            raise InputError(
                f'option --row-n names column "{self.row_n}", which is already in use; name the column of row totals.',
                option="--row-n",
                column=self.row_n,
            )


class CompareOptions(_ZeroRows, _Form):
    """Options of `compare`, which ranks a list of arrangements."""

    arrangements: TableList | None = option(
        None, "TOML file with arrangements to compare.", metavar="FILE", group="search", file="one"
    )


class SuggestOptions(_Timed, _ZeroRows, _Form, _Arranged):
    """Options of `suggest`, which searches for redesigns of one table."""

    avoid: Literal["small", "attribute"] = option(
        "attribute",
        "What redesigns must avoid: disclosed small cells only, or also rows that reveal a status.",
        metavar="small|attribute",
        group="search",
    )
    fix: Names = option((), "Columns that redesigns neither change nor move.", metavar="A,B", group="search")
    apart: Apart = option(
        {},
        "Categories that redesigns never merge; may be repeated.",
        metavar="A=X,Y",
        group="search",
    )
    write_recodes: str | None = option(
        None,
        "Write every redesign as a recode file into this folder, which must not exist.",
        metavar="DIR",
        group="search",
    )

    def check(self) -> None:
        super().check()
        for name in (*self.fix, *self.apart):
            if name not in (*self.rows, *self.cols):
                flag = "--fix" if name in self.fix else "--apart"
                raise InputError(
                    f'option {flag} names column "{name}", which is neither in --rows nor in --cols.',
                    option=flag,
                    column=name,
                )


class PublishOptions(_Timed, _Form, _Arranged):
    """Options of `publish`, which audits a table together with earlier ones and writes it as a release."""

    registry: str | None = option(
        None,
        "Folder of the register of earlier publications; all of them are audited together with the table.",
        metavar="DIR",
        flag="--register",
        group="release",
    )
    person: str | None = register.person("release")
    new_population: bool = register.new_population("release")
    unit: str | None = register.unit("release")
    count_people: bool = register.count_people("release")
    publish: str | None = option(
        None,
        "Write the table as a release to this folder and enter it into the register, if nothing is disclosed.",
        metavar="DIR",
        group="release",
    )
    accept: bool = option(
        False, "With --publish: publish although rows reveal a person's status.", group="release"
    )
    accept_unchecked: bool = register.accept_unchecked("release")

    def check(self) -> None:
        super().check()
        _refuse_alone(
            (self.publish is not None and self.registry is None, "--publish", "--register"),
            (self.accept and self.publish is None, "--accept", "--publish"),
            (self.count_people and self.registry is None, "--count-people", "--register"),
            (self.unit is not None and self.registry is None, "--unit", "--register"),
        )
        register.check_register(self.registry, self.person, self.new_population, self.accept_unchecked)
        register.check_units(self.unit, self.count_people)
        if self.registry is not None and (self.decimals or 0) > MAX_DECIMALS_TOGETHER:
            raise InputError(
                f"option --register takes at most {MAX_DECIMALS_TOGETHER} --decimals; round the table.",
                option="--decimals",
            )

    def with_unit(self, column: str) -> Self:
        """Count by the units in the spec, unless the options state otherwise."""
        is_decided = self.unit is not None or self.count_people or self.registry is None
        return self if is_decided else self.model_copy(update={"unit": column})


class BoundsOptions(PublishOptions, SuggestOptions, CompareOptions, OneTableOptions):
    """All options of `louver bounds` except the data: those of its four functions, and which of them to run."""

    suggest: bool = option(False, "Search for redesigns that disclose nothing, see --avoid.", group="search")
    fail_on: Literal["small", "rows", "attribute", "any"] | None = option(
        None,
        "Exit with 1 if a small cell or a row is disclosed, if a row reveals a status, or if anything at all is "
        "disclosed (even zero cells).",
        metavar="small|rows|attribute|any",
        group="search",
    )

    def check(self) -> None:
        """Refuse options that a requested function does not have."""
        requested = self._requested()
        for flag, model in requested:
            for name in ("conditionals", *OneTableOptions.model_fields):
                is_given = getattr(self, name) != OneTableOptions.model_fields[name].get_default(
                    call_default_factory=True
                )
                # A spec may also have rows and columns for its other calls.
                if is_given and name not in ("rows", "cols", *model.model_fields):
                    other = f"--{name.replace('_', '-')}"
                    pair = (other, flag) if name == "conditionals" else (flag, other)
                    _refuse_pairs((True, *pair))
        if self.arrangements is not None:
            _refuse_pairs(*((True, "--arrangements", flag) for flag, _ in requested[1:]))
        super().check()

    def _requested(self) -> list[tuple[str, type[VerbOptions]]]:
        """The functions called in addition to the check of the table, each with the option that requests it."""
        functions: list[tuple[bool, str, type[VerbOptions]]] = [
            (self.arrangements is not None, "--arrangements", CompareOptions),
            (self.suggest, "--suggest", SuggestOptions),
            (self.registry is not None, "--register", PublishOptions),
        ]
        return [(flag, model) for is_requested, flag, model in functions if is_requested]

    def check_suggest(self) -> None:
        """Refuse options of a search that is not requested."""
        given = {
            "--fix": bool(self.fix),
            "--apart": bool(self.apart),
            "--write-recodes": self.write_recodes is not None,
            "--avoid": self.avoid == "small",
        }
        for name, is_given in given.items():
            if is_given and not self.suggest:
                raise InputError(f"option {name} needs --suggest.", option=name)


def _refuse_pairs(*pairs: tuple[bool, str, str]) -> None:
    for is_given, first, second in pairs:
        if is_given:
            raise InputError(f"options {first} and {second} cannot be used together.", option=second)


def _refuse_alone(*pairs: tuple[bool, str, str]) -> None:
    for is_missing, first, second in pairs:
        if is_missing:
            raise InputError(f"option {first} needs {second}.", option=first)


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
    """Read the same from a list of mappings, for the library and the spec file."""
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
