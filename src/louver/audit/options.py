"""The options of `louver audit`: pieces, knowledge of an outsider, targets, and limits of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.schema import register
from louver.schema.options import Names, VerbOptions, option
from louver.schema.source import CountedSourceKeywords
from louver.schema.validate import OWN, Options

__all__ = ["MAX_COUNT", "AuditKeywords", "AuditOptions", "AuditTableOptions", "KnownOptions", "TargetOptions"]

MAX_DECIMALS = 6
MAX_COUNT = 2**33


def _check_filter(value: Any) -> Any:
    """Attribute -> label or list of labels; stored as lists."""
    if not isinstance(value, dict):
        raise PydanticCustomError(OWN, "must be a table of labels")
    found = {}
    for name, labels in value.items():
        listed = [labels] if isinstance(labels, str) else labels
        if not isinstance(listed, list | tuple) or not listed or not all(isinstance(x, str) for x in listed):
            raise PydanticCustomError(OWN, "must give each attribute a label or a list of labels, in quotes")
        found[name] = tuple(listed)
    return found


Filter = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_check_filter)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class AuditTableOptions(Options):
    """One of `[[audit.tables]]`: a table of counts (`by`) or of row conditionals (`rows` and `cols`)."""

    name: Annotated[str, Field(min_length=1)]
    by: Names = ()
    rows: Names = ()
    cols: Names = ()
    where: Filter = Field(default_factory=dict)
    recode: dict[str, Any] = Field(default_factory=dict)
    totals: bool = False
    below: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    hide: list[dict[str, str]] = Field(default_factory=list)
    base: Annotated[int, Field(ge=2, le=MAX_COUNT)] | None = None
    rounding: Literal["nearest", "random", "half-up", "half-even"] | None = None
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    counts: Literal["none", "total", "rows"] | None = None
    n: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    file: str | None = None
    value: Annotated[str, Field(min_length=1)] = "count"
    mark: Names = ()
    mark_range: Annotated[tuple[Count, Count], BeforeValidator(_as_tuple)] | None = None
    total: Annotated[str, Field(min_length=1)] = "Total"
    unlisted: Literal["zero", "hidden"] | None = None

    @property
    def kind(self) -> Literal["counts", "shares"]:
        """The kind of the table; see `KINDS`."""
        return "shares" if self.rows or self.cols else "counts"

    @model_validator(mode="after")
    def _check(self) -> AuditTableOptions:
        for is_wrong, content in _table_faults(self):
            if is_wrong:
                raise PydanticCustomError(OWN, content)
        return self


def _table_faults(table: AuditTableOptions) -> list[tuple[bool, Any]]:
    """Contradictory combinations, each with a remedy."""
    shares_only = [("decimals", table.decimals), ("counts", table.counts), ("n", table.n)]
    counts_only = [
        ("totals", table.totals),
        ("below", table.below),
        ("hide", table.hide),
        ("base", table.base),
        ("mark", table.mark),
        ("mark_range", table.mark_range),
        ("unlisted", table.unlisted),
    ]
    file_only = [
        ("mark", table.mark),
        ("unlisted", table.unlisted),
        ("n", table.n),
    ]
    names = (*table.by, *table.rows, *table.cols)
    faults = [
        (
            bool(table.by) and table.kind == "shares",
            "has both by (counts) and rows or cols (conditionals); keep one",
        ),
        (
            table.kind == "shares" and not (table.rows and table.cols),
            "needs both rows and cols for conditionals",
        ),
        (len(set(names)) < len(names), "names an attribute twice; name each once"),
        (
            table.rounding == "random" and table.file is None,
            "is rounded at random, so it needs file, the numbers that were drawn",
        ),
        (
            table.base is None and table.rounding in ("nearest", "random"),
            "has rounding but no base; add base",
        ),
        (
            table.base is not None and table.rounding in ("half-up", "half-even"),
            "has base, so rounding must be nearest or random",
        ),
        (
            table.decimals is None and table.rounding in ("half-up", "half-even"),
            "has rounding but no decimals",
        ),
        (
            table.mark_range is not None and table.mark_range[0] > table.mark_range[1],
            "has a mark_range that ends before it starts",
        ),
        (
            table.file is not None and table.below is not None,
            "is read from a file, where mark shows what is hidden; leave out below",
        ),
        (
            table.file is not None and bool(table.hide),
            "is read from a file, where mark shows what is hidden; leave out hide",
        ),
    ]
    if table.kind == "shares":
        faults += [(bool(given), f"has {key}, which conditionals do not take") for key, given in counts_only]
    else:
        faults += [
            (given is not None, f"has {key}, which only conditionals take") for key, given in shares_only
        ]
    if table.file is None:
        is_marked = table.below is not None or bool(table.hide)
        faults.append(
            (
                table.mark_range is not None and not is_marked,
                "has mark_range but hides nothing; add below or hide",
            )
        )
        faults += [(bool(given), f"has {key} but no file to read") for key, given in file_only]
    return faults


class KnownOptions(Options):
    """One of `[[audit.known]]`: what an outsider already knows about a number of people."""

    name: str = ""
    where: Filter = Field(default_factory=dict)
    recode: dict[str, Any] = Field(default_factory=dict)
    at_least: Count | None = None
    at_most: Count | None = None
    exactly: Count | None = None

    @model_validator(mode="after")
    def _check(self) -> KnownOptions:
        if self.at_least is None and self.at_most is None and self.exactly is None:
            raise PydanticCustomError(OWN, "has no bound; give at_least, at_most or exactly")
        if self.exactly is not None and (self.at_least is not None or self.at_most is not None):
            raise PydanticCustomError(OWN, "has exactly and another bound; keep one of them")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise PydanticCustomError(OWN, "has at_least above at_most")
        return self


class TargetOptions(Options):
    """One of `[[audit.targets]]`: the cells of a cross, or one sum if `by` is left out."""

    name: str = ""
    by: Names = ()
    where: Filter = Field(default_factory=dict)
    recode: dict[str, Any] = Field(default_factory=dict)
    only_small: bool = False

    @model_validator(mode="after")
    def _check(self) -> TargetOptions:
        if not self.by and not self.where:
            raise PydanticCustomError(OWN, "names no cells; give by, where or both")
        if len(set(self.by)) < len(self.by):
            raise PydanticCustomError(OWN, "names an attribute twice; name each once")
        return self


class AuditKeywords(CountedSourceKeywords, total=False):
    """Keywords of `audit`."""

    tables: Sequence[Mapping[str, Any]]
    known: Sequence[Mapping[str, Any]]
    targets: Sequence[Mapping[str, Any]]
    small: int
    within: float
    decide: bool
    hide: bool
    registry: str | Path | None
    person: str | None
    new_population: bool
    unit: str | None
    count_people: bool
    publish: str | Path | None
    accept_unchecked: bool
    no_advice: bool
    seconds: float
    fail_on: str | None


class AuditOptions(VerbOptions):
    """All options of `louver audit`, except the location of the records."""

    verb: ClassVar[str] = "audit"
    needs_data: ClassVar[bool] = False

    tables: Annotated[tuple[AuditTableOptions, ...], BeforeValidator(_as_tuple)] = ()
    known: Annotated[tuple[KnownOptions, ...], BeforeValidator(_as_tuple)] = ()
    targets: Annotated[tuple[TargetOptions, ...], BeforeValidator(_as_tuple)] = ()
    small: int = option(5, "Counts below this are small.", metavar="N", group="limits", ge=1, le=MAX_COUNT)
    within: FiniteFloat = option(
        0.0,
        "A count that is known to within this percentage also counts as disclosed.",
        metavar="P",
        group="limits",
        ge=0,
        lt=100,
    )
    decide: bool = option(
        False, "Only decide which cells are disclosed; compute no bounds for the others.", group="search"
    )
    hide: bool = option(
        False,
        "Propose further cells to hide, so that no cell hidden by `below` can be derived.",
        group="search",
    )
    registry: str | None = option(
        None,
        "Folder of the register of earlier publications; all of them are audited together with the tables.",
        metavar="DIR",
        flag="--register",
        group="publication",
    )
    person: str | None = register.person("publication")
    new_population: bool = register.new_population("publication")
    unit: str | None = register.unit("limits")
    count_people: bool = register.count_people("publication")
    publish: str | None = option(
        None,
        "Write the tables as a release to this folder and enter them into the register, if no small cell is disclosed.",
        metavar="DIR",
        group="publication",
    )
    accept_unchecked: bool = register.accept_unchecked("publication")
    no_advice: bool = option(False, "Do not search for tables to leave out or coarsen.", group="search")
    seconds: FiniteFloat = option(
        60.0,
        "Stop after about this time, with the best answers found so far.",
        metavar="S",
        group="search",
        gt=0,
    )
    fail_on: Literal["exact", "small", "within"] | None = option(
        None,
        "Exit with 1 if any cell is exact, a small cell is exact, or a cell is known to within --within per cent.",
        metavar="exact|small|within",
        group="limits",
    )

    def check(self) -> None:
        """Refuse combinations that contradict one another."""
        if not self.tables:
            raise InputError("no table is listed; add one under [[audit.tables]].", option="tables")
        names = [piece.name for piece in self.tables]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f'two tables have the name "{name}"; give them different names.', option="tables"
                )
        if self.publish is not None and self.registry is None:
            raise InputError(
                "option --publish needs --register, the folder where it is recorded.", option="--publish"
            )
        if self.publish is not None:
            self._check_published()
        register.check_register(self.registry, self.person, self.new_population, self.accept_unchecked)
        register.check_units(self.unit, self.count_people)
        if self.hide and not any(piece.below is not None for piece in self.tables):
            raise InputError(
                "option --hide needs a table with below, which hides its small cells.", option="--hide"
            )
        if self.fail_on == "within" and not self.within:
            raise InputError("option --fail-on within needs --within, the percentage.", option="--within")

    def _check_published(self) -> None:
        """Refuse attributes with the same name as the number column of their own table."""
        for table in self.tables:
            number = "share" if table.kind == "shares" else "count"
            if number in (*table.by, *table.rows, *table.cols):
                raise InputError(
                    f'table "{table.name}" has an attribute "{number}", which is the name of its column of numbers in the release; rename '
                    "it.",
                    option="tables",
                    column=number,
                )

    def with_unit(self, column: str) -> Self:
        """Count by the units of the spec, unless the options say otherwise."""
        has_units = self.unit is not None or self.count_people
        return self if has_units else self.model_copy(update={"unit": column})
