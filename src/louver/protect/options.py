"""What `louver protect` can be told: tables, hierarchies, rules for primary cells, who attacks, and how far to search."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.schema.options import Names, VerbOptions, option
from louver.schema.validate import OWN, Options

__all__ = ["CodesOptions", "ProtectOptions", "RuleOptions", "StatusOptions", "TableOptions"]

MAX_DECIMALS = 6
MAX_BASE = 1_000_000_000


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _one_or_more(value: Any) -> Any:
    """One name stands for a list of it."""
    return (value,) if isinstance(value, str) else _as_tuple(value)


Text = Annotated[str, Field(min_length=1)]
Percent = Annotated[FiniteFloat, Field(gt=0, le=1000)]


class CodesOptions(Options):
    """`[protect.codes.NAME]`: the codes of an attribute and what their totals are the sums of."""

    hierarchy: Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)] = ()
    total: Text = "Total"
    of: Text | None = None


class TableOptions(Options):
    """One of `[[protect.tables]]`: sums of a variable (`value`) or counts, from the records or from a file."""

    name: Text
    by: Annotated[Names, Field(min_length=1)]
    value: Text | None = None
    variable: Text | None = None
    file: Text | None = None
    frequency: Text | None = None
    largest: Names = ()
    status: Text | None = None
    cost: Text | None = None
    depth: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    base: Annotated[int, Field(ge=2, le=MAX_BASE)] | None = None
    negative: bool = False

    @property
    def is_counts(self) -> bool:
        return self.value is None

    @property
    def measured(self) -> str:
        """Name of what the numbers measure."""
        return self.variable or self.value or "count"

    @property
    def quantity(self) -> str:
        """What the numbers measure: tables of the same quantity share cells, a sum and a count of one name do not."""
        return f"{'count' if self.is_counts else 'sum'} of {self.measured}"

    @model_validator(mode="after")
    def _check(self) -> TableOptions:
        file_only = [
            ("frequency", self.frequency),
            ("largest", self.largest),
            ("status", self.status),
            ("cost", self.cost),
        ]
        faults = [
            (len(set(self.by)) < len(self.by), "names an attribute twice; name each once"),
            (
                not set(self.depth) <= set(self.by),
                "limits the depth of an attribute that it does not have; check the names under depth",
            ),
            (
                self.is_counts and bool(self.largest),
                "counts, so it has no largest contributions; leave out largest",
            ),
            (self.is_counts and self.negative, "counts, so nothing is negative; leave out negative"),
            (
                self.is_counts and self.decimals is not None and self.decimals > 0,
                "counts, so it has no decimals; leave out decimals",
            ),
            (
                self.file is not None and self.is_counts and self.frequency is None,
                "needs value (a sum) or frequency (a count): the column of the file with the numbers",
            ),
        ]
        for name, given in file_only:
            faults.append(
                (
                    self.file is None and bool(given),
                    f"has {name} without file: records tell it; leave out {name}",
                )
            )
        for is_wrong, told in faults:
            if is_wrong:
                raise PydanticCustomError(OWN, told)
        return self


NEEDED = {"frequency": ("minimum",), "p-percent": ("p",), "p-q": ("p", "q"), "dominance": ("n", "k")}


class RuleOptions(Options):
    """One of `[[protect.rules]]`: when a cell is primary, and how wide its safety range is."""

    rule: Literal["frequency", "p-percent", "p-q", "dominance"]
    minimum: Annotated[int, Field(ge=2, le=1000)] | None = None
    p: Percent | None = None
    q: Percent | None = None
    n: Annotated[int, Field(ge=1, le=10)] | None = None
    k: Annotated[FiniteFloat, Field(gt=0, lt=100)] | None = None
    range: Percent | None = None
    tables: Names = ()

    @model_validator(mode="after")
    def _check(self) -> RuleOptions:
        own = NEEDED[self.rule]
        for name in ("minimum", "p", "q", "n", "k"):
            if name in own and getattr(self, name) is None:
                raise PydanticCustomError(OWN, "needs {name}", {"name": " and ".join(own)})
            if name not in own and getattr(self, name) is not None:
                raise PydanticCustomError(
                    OWN, "has {name}, which this rule does not use; leave it out", {"name": name}
                )
        if self.rule == "p-q" and self.p is not None and self.q is not None and self.p >= self.q:
            raise PydanticCustomError(
                OWN, "needs a p below q: what is known before is less than what is known after"
            )
        return self


class StatusOptions(Options):
    """One of `[[protect.status]]`: a cell whose fate somebody decided, and why."""

    table: Text
    cell: dict[str, str]
    set: Literal["hide", "publish", "cost"]
    cost: Annotated[FiniteFloat, Field(ge=0)] | None = None
    range: Percent | None = None
    reason: Text

    @model_validator(mode="after")
    def _check(self) -> StatusOptions:
        if (self.set == "cost") != (self.cost is not None):
            raise PydanticCustomError(OWN, 'needs cost where set is "cost", and only there')
        if self.range is not None and self.set != "hide":
            raise PydanticCustomError(
                OWN, 'has range, which only a cell that is set to "hide" has; leave it out'
            )
        return self


class ProtectOptions(VerbOptions):
    """Everything `louver protect` can be told, but for where the records are."""

    verb: ClassVar[str] = "protect"
    needs_data: ClassVar[bool] = False
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    tables: Annotated[tuple[TableOptions, ...], BeforeValidator(_as_tuple)] = ()
    codes: dict[str, CodesOptions] = Field(default_factory=dict)
    rules: Annotated[tuple[RuleOptions, ...], BeforeValidator(_as_tuple)] = ()
    status: Annotated[tuple[StatusOptions, ...], BeforeValidator(_as_tuple)] = ()
    method: Literal["hide", "round"] = option(
        "hide",
        "How the tables are protected: hide further cells, or round all numbers to multiples of a base so that they add up.",
        metavar="hide|round",
        group="search",
    )
    base: int | None = option(
        None,
        "Round to multiples of this number (default 5); a table may have a base of its own.",
        metavar="B",
        group="rounding",
        ge=2,
        le=MAX_BASE,
    )
    minimise: Literal["number", "value", "cost"] = option(
        "number",
        "What the hidden cells are to be few of: their number, their value, or the column named cost.",
        metavar="number|value|cost",
        group="search",
    )
    holding: str | None = option(
        None,
        "Column of the records that says whom a contributor belongs to; all that one owns counts as one contributor.",
        metavar="COLUMN",
        group="contributors",
    )
    sampling_weight: str | None = option(
        None,
        "Column of the records with sampling weights of 1 or more.",
        metavar="COLUMN",
        group="contributors",
    )
    known_percent: FiniteFloat | None = option(
        None,
        "Readers know every number to within so many percent before (default: only that it is not negative).",
        metavar="Q",
        group="attackers",
        gt=0,
    )
    attackers: Literal["contributors", "outsider"] = option(
        "contributors",
        "Who must not learn too much: contributors who know their own part, or only outsiders.",
        metavar="contributors|outsider",
        group="attackers",
    )
    steps: int = option(
        200,
        "Rounds of the search after the first pattern; 0 for that pattern alone.",
        metavar="N",
        group="search",
        ge=0,
        le=1_000_000,
    )
    seconds: FiniteFloat | None = option(
        None,
        "End the search after about so long with the best pattern so far; then two runs may differ.",
        metavar="S",
        group="search",
        gt=0,
    )

    def check(self) -> None:
        """Refuse combinations that contradict one another."""
        if not self.tables:
            raise InputError("no table is listed; add one under [[protect.tables]].", option="tables")
        names = [table.name for table in self.tables]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f'two tables have the name "{name}"; names must differ.', option="tables")
        self._check_method()
        if (
            self.method == "hide"
            and not self.rules
            and not any(one.set == "hide" for one in self.status)
            and not any(table.status for table in self.tables)
        ):
            raise InputError(
                "no rule says which cells must be hidden; add one under [[protect.rules]].", option="rules"
            )
        for number, rule in enumerate(self.rules, start=1):
            for name in rule.tables:
                if name not in names:
                    raise InputError(
                        f'rule {number} names the table "{name}", which is not listed.', option="rules"
                    )
        for number, status in enumerate(self.status, start=1):
            if status.table not in names:
                raise InputError(
                    f'status {number} names the table "{status.table}", which is not listed.', option="status"
                )
        from_files = [table.file is not None for table in self.tables]
        if any(from_files) and not all(from_files):
            raise InputError(
                "some tables have a file and others are to come from the records; give all of them one source.",
                option="tables",
            )
        if (
            self.minimise == "cost"
            and not any(t.cost for t in self.tables)
            and not any(s.set == "cost" for s in self.status)
        ):
            raise InputError(
                "option --minimise cost needs a table with a column of costs.", option="--minimise"
            )
        for name in ("holding", "sampling_weight"):
            if all(from_files) and getattr(self, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"option {flag} is about records, and every table has a file.", option=flag)

    def _check_method(self) -> None:
        """Refuse options of another method."""
        if self.method == "round":
            if any(one.set != "hide" for one in self.status):
                raise InputError(
                    '--method round changes every number, so no cell can be set to "publish" or "cost".',
                    option="status",
                )
            return
        if self.base is not None:
            raise InputError("option --base is for --method round; leave it out.", option="--base")
        if any(table.base is not None for table in self.tables):
            raise InputError(
                "a table has a base, which only --method round uses; leave it out.", option="tables"
            )
