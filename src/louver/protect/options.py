"""The options of `louver protect`: tables, hierarchies, rules for primary cells, attackers, and limits of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, FiniteFloat, model_validator
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.schema import register
from louver.schema.options import Names, VerbOptions, option
from louver.schema.source import SourceKeywords
from louver.schema.validate import OWN, Options

__all__ = [
    "CodesOptions",
    "ProtectKeywords",
    "ProtectOptions",
    "RuleOptions",
    "StatusOptions",
    "TableOptions",
]

MAX_DECIMALS = 6
STATUS_COLUMNS = frozenset({"obs_status", "conf_status"})
"""Columns of a release with the status of each number."""
MAX_BASE = 1_000_000_000


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _one_or_more(value: Any) -> Any:
    """A single name stands for a list of one."""
    return (value,) if isinstance(value, str) else _as_tuple(value)


Text = Annotated[str, Field(min_length=1)]
Percent = Annotated[FiniteFloat, Field(gt=0, le=1000)]


class CodesOptions(Options):
    """`[protect.codes.NAME]`: the codes of an attribute, and the codes that each total adds up."""

    hierarchy: Annotated[tuple[Text, ...], BeforeValidator(_one_or_more)] = ()
    mark: Annotated[str, Field(min_length=1, max_length=1)] = "@"
    levels: Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_as_tuple)] = ()
    total: Text = "Total"
    of: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> CodesOptions:
        if self.levels and self.hierarchy:
            raise PydanticCustomError(OWN, "has both hierarchy and levels; keep one")
        return self


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
    status_codes: dict[str, Literal["hide", "secondary", "publish", ""]] = Field(default_factory=dict)
    columns: Names = ()
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    cost: Text | None = None
    depth: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    decimals: Annotated[int, Field(ge=0, le=MAX_DECIMALS)] | None = None
    base: Annotated[int, Field(ge=2, le=MAX_BASE)] | None = None
    negative: bool = False
    hide_with: Text | None = None

    @property
    def is_counts(self) -> bool:
        return self.value is None

    @property
    def measured(self) -> str:
        """Name of the quantity that the numbers measure."""
        return self.variable or self.value or "count"

    @property
    def quantity(self) -> str:
        """The quantity that the numbers measure: tables of the same quantity share cells; a sum and a count with the same name do not."""
        return f"{'count' if self.is_counts else 'sum'} of {self.measured}"

    @model_validator(mode="after")
    def _check(self) -> TableOptions:
        file_only = [
            ("frequency", self.frequency),
            ("largest", self.largest),
            ("status", self.status),
            ("cost", self.cost),
            ("columns", self.columns),
        ]
        faults = [
            (len(set(self.by)) < len(self.by), "names an attribute twice; name each once"),
            (
                not STATUS_COLUMNS.isdisjoint(self.by),
                "has an attribute called obs_status or conf_status, which are columns of the release; rename it",
            ),
            (
                not set(self.depth) <= set(self.by),
                "limits the depth of an attribute that it does not have; check the names under depth",
            ),
            (
                self.is_counts and bool(self.largest),
                "is a count, which has no largest contributions; leave out the key largest",
            ),
            (
                self.is_counts and self.negative,
                "is a count, which cannot be negative; leave out the key negative",
            ),
            (
                self.is_counts and self.decimals is not None and self.decimals > 0,
                "is a count, which has no decimals; leave out the key decimals",
            ),
            (
                bool(self.columns) != (self.separator is not None),
                "needs columns and separator together, for a file without a header",
            ),
            (
                bool(self.status_codes) and self.status is None,
                "has status_codes but no status; name the column",
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
                    f"has {name} without file: it comes from the records; leave out {name}",
                )
            )
        for is_wrong, message in faults:
            if is_wrong:
                raise PydanticCustomError(OWN, message)
        return self


NEEDED = {
    "frequency": ("minimum",),
    "p-percent": ("p",),
    "p-q": ("p", "q"),
    "dominance": ("n", "k"),
    "request": ("k",),
    "zero": ("up",),
}


class RuleOptions(Options):
    """One of `[[protect.rules]]`: when a cell is primary, and how wide its safety range is."""

    rule: Literal["frequency", "p-percent", "p-q", "dominance", "request", "zero"]
    minimum: Annotated[int, Field(ge=2, le=1000)] | None = None
    p: Percent | None = None
    q: Percent | None = None
    n: Annotated[int, Field(ge=1, le=10)] | None = None
    k: Annotated[FiniteFloat, Field(gt=0, lt=100)] | None = None
    up: Annotated[FiniteFloat, Field(gt=0, le=1e12)] | None = None
    range: Percent | None = None
    tables: Names = ()

    @model_validator(mode="after")
    def _check(self) -> RuleOptions:
        own = NEEDED[self.rule]
        for name in ("minimum", "p", "q", "n", "k", "up"):
            if name in own and getattr(self, name) is None:
                raise PydanticCustomError(OWN, "needs {name}", {"name": " and ".join(own)})
            if name not in own and getattr(self, name) is not None:
                raise PydanticCustomError(
                    OWN, "has {name}, which this rule does not use; leave it out", {"name": name}
                )
        if self.rule == "zero" and self.range is not None:
            raise PydanticCustomError(OWN, "has range, a percentage, which has no effect on 0; leave it out")
        if self.rule == "p-q" and self.p is not None and self.q is not None and self.p >= self.q:
            raise PydanticCustomError(
                OWN, "needs p below q: readers must know less before publication than after"
            )
        return self


class StatusOptions(Options):
    """One of `[[protect.status]]`: a cell whose status is set by hand, with the reason."""

    table: Text
    cell: dict[str, str]
    set: Literal["hide", "secondary", "publish", "cost"]
    cost: Annotated[FiniteFloat, Field(ge=0)] | None = None
    range: Percent | None = None
    reason: Text

    @model_validator(mode="after")
    def _check(self) -> StatusOptions:
        if (self.set == "cost") != (self.cost is not None):
            raise PydanticCustomError(OWN, 'needs cost if set is "cost", and only then')
        if self.range is not None and self.set != "hide":
            raise PydanticCustomError(OWN, 'has range, which only applies if set is "hide"; leave it out')
        return self


class ProtectKeywords(SourceKeywords, total=False):
    """Keywords of `protect`."""

    tables: Sequence[Mapping[str, Any]]
    codes: Mapping[str, Mapping[str, Any]] | None
    rules: Sequence[Mapping[str, Any]]
    status: Sequence[Mapping[str, Any]]
    method: str
    base: int | None
    variance: float | None
    max_noise: int | None
    noise_table: str | Path | None
    minimise: str
    holding: str | None
    request: str | None
    sampling_weight: str | None
    given_pattern: bool
    known_percent: float | None
    attackers: str
    steps: int
    seconds: float | None
    state: str | Path | None
    registry: str | Path | None
    person: str | None
    new_population: bool
    accept_unchecked: bool


class ProtectOptions(VerbOptions):
    """All options of `louver protect`, except the location of the records."""

    verb: ClassVar[str] = "protect"
    needs_data: ClassVar[bool] = False
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    tables: Annotated[tuple[TableOptions, ...], BeforeValidator(_as_tuple)] = ()
    codes: dict[str, CodesOptions] = Field(default_factory=dict)
    rules: Annotated[tuple[RuleOptions, ...], BeforeValidator(_as_tuple)] = ()
    status: Annotated[tuple[StatusOptions, ...], BeforeValidator(_as_tuple)] = ()
    method: Literal["hide", "round", "cellkey"] = option(
        "hide",
        "How the tables are protected: hide further cells, round all numbers to multiples of a base so that they add up, or add noise to "
        "counts, always the same for the same cell.",
        metavar="hide|round|cellkey",
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
    variance: FiniteFloat | None = option(
        None,
        "Variance of the noise of cell keys (default 2).",
        metavar="V",
        group="cell keys",
        gt=0,
        le=10_000,
    )
    max_noise: int | None = option(
        None, "Largest noise of cell keys (default 5).", metavar="D", group="cell keys", ge=1, le=100
    )
    noise_table: str | None = option(
        None,
        "CSV file with a perturbation table for cell keys: columns i (true count), j (published count) and p (probability).",
        metavar="FILE",
        group="cell keys",
        file="one",
    )
    minimise: Literal["number", "value", "cost"] = option(
        "number",
        "Quantity to minimise over the hidden cells: their number, their value, or the column named by cost.",
        metavar="number|value|cost",
        group="search",
    )
    holding: str | None = option(
        None,
        "Column with the owner of each contributor; all that have the same owner count as one contributor.",
        metavar="COLUMN",
        group="contributors",
    )
    request: str | None = option(
        None,
        "Column of the records that shows who requested protection (1 or yes, 0 or no), for the rule request.",
        metavar="COLUMN",
        group="contributors",
    )
    sampling_weight: str | None = option(
        None,
        "Column of the records with sampling weights of 1 or more.",
        metavar="COLUMN",
        group="contributors",
    )
    given_pattern: bool = option(
        False,
        "Hide only the cells whose status says so, and check whether this protects the cells that the rules make primary.",
        group="search",
    )
    known_percent: FiniteFloat | None = option(
        None,
        "Percentage within which readers know every number beforehand (default: they know only that it is not negative).",
        metavar="Q",
        group="attackers",
        gt=0,
    )
    attackers: Literal["contributors", "outsider"] = option(
        "contributors",
        "Attackers: contributors who know their own part, or only outsiders.",
        metavar="contributors|outsider",
        group="attackers",
    )
    steps: int = option(
        200,
        "Rounds of the search after the first pattern; 0 for the first pattern only.",
        metavar="N",
        group="search",
        ge=0,
        le=1_000_000,
    )
    seconds: FiniteFloat | None = option(
        None,
        "Stop the search after about this time with the best pattern so far; two runs may then differ.",
        metavar="S",
        group="search",
        gt=0,
    )
    state: str | None = option(
        None,
        "File that stores the best pattern during the search; if it exists, the search continues from it. It is confidential.",
        metavar="FILE",
        group="search",
    )
    registry: str | None = option(
        None,
        "Folder of the register of publications about the same people; the tables are protected together with "
        "them and, with --out, entered.",
        metavar="DIR",
        flag="--register",
        group="publication",
    )
    person: str | None = register.person("publication")
    new_population: bool = register.new_population("publication")
    accept_unchecked: bool = register.accept_unchecked("publication")

    def check(self) -> None:
        """Refuse combinations that contradict one another."""
        if not self.tables:
            raise InputError("no table is listed; add one under [[protect.tables]].", option="tables")
        names = [table.name for table in self.tables]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f'two tables have the name "{name}"; give them different names.', option="tables"
                )
        by_value: dict[str | None, TableOptions] = {}
        for table in self.tables:
            first = by_value.setdefault(table.value, table)
            if table.file is None and first.file is None and first.quantity != table.quantity:
                raise InputError(
                    f'tables "{first.name}" and "{table.name}" have the same numbers of the records under two names, and would be '
                    "protected separately; give both the same variable.",
                    option="tables",
                )
        self._check_method()
        if self.given_pattern and not any(one.status for one in self.tables) and not self.status:
            raise InputError(
                "option --given-pattern needs cells whose status says that they are hidden; name the column as status.",
                option="--given-pattern",
            )
        if (
            self.method == "hide"
            and not self.rules
            and not any(one.set in ("hide", "secondary") for one in self.status)
            and not any(table.status for table in self.tables)
        ):
            raise InputError(
                "no rule says which cells must be hidden; add one under [[protect.rules]].", option="rules"
            )
        for number, rule in enumerate(self.rules, start=1):
            for name in rule.tables:
                if name not in names:
                    raise InputError(
                        f'rule {number} refers to table "{name}", which is not listed.', option="rules"
                    )
        for number, status in enumerate(self.status, start=1):
            if status.table not in names:
                raise InputError(
                    f'status {number} refers to table "{status.table}", which is not listed.', option="status"
                )
        self._check_together()
        from_files = [table.file is not None for table in self.tables]
        if any(from_files) and not all(from_files):
            raise InputError(
                "some tables have a file and others would come from the records; use one source for all.",
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
        if (self.request is not None) != any(rule.rule == "request" for rule in self.rules):
            raise InputError(
                "option --request and the rule request need each other: a column that shows who requested protection, and "
                "a limit; give both or neither.",
                option="--request",
            )
        for name in ("holding", "request", "sampling_weight"):
            if all(from_files) and getattr(self, name) is not None:
                flag = f"--{name.replace('_', '-')}"
                raise InputError(f"option {flag} is about records, but every table has a file.", option=flag)
        if all(from_files) and self.registry is not None:
            raise InputError(
                "option --register needs the records, which identify the people, but every table has a file.",
                option="--register",
            )
        register.check_register(self.registry, self.person, self.new_population, self.accept_unchecked)

    def _check_together(self) -> None:
        """Refuse tables that are to be hidden with an unlisted table or with themselves."""
        tables = {table.name: table for table in self.tables}
        for table in self.tables:
            if table.hide_with is None:
                continue
            other = tables.get(table.hide_with)
            if other is None:
                problem = "is to be hidden with a table that is not listed; check the name"
            elif other.quantity == table.quantity:
                problem = "is to be hidden with a table of the same variable, whose cells it shares anyway; leave out hide_with"
            elif self.method != "hide" or self.given_pattern:
                problem = "has hide_with, which is for a search for hidden cells; leave it out"
            else:
                continue
            raise InputError(f'table "{table.name}" {problem}.', option="tables")

    def _check_method(self) -> None:
        """Refuse options of another method."""
        if self.method != "hide" and self.given_pattern:
            raise InputError(
                "option --given-pattern is for --method hide; leave it out.", option="--given-pattern"
            )
        if self.method != "hide" and any(one.set != "hide" for one in self.status):
            raise InputError(
                f'--method {self.method} changes every number, so no cell can be set to "publish" or "cost".',
                option="status",
            )
        if self.state is not None and (self.method != "hide" or self.given_pattern):
            raise InputError(
                "option --state is for a search for hidden cells; leave it out.", option="--state"
            )
        if self.method != "round" and self.base is not None:
            raise InputError("option --base needs --method round; leave it out.", option="--base")
        if self.method != "round" and any(table.base is not None for table in self.tables):
            raise InputError(
                "a table has a base, which only --method round uses; leave it out.", option="tables"
            )
        if self.method == "cellkey":
            self._check_cell_keys()
            return
        for flag, given in self._noise_options():
            if given is not None:
                raise InputError(f"option {flag} needs --method cellkey; leave it out.", option=flag)

    def _noise_options(self) -> tuple[tuple[str, object], ...]:
        return (
            ("--variance", self.variance),
            ("--max-noise", self.max_noise),
            ("--noise-table", self.noise_table),
        )

    def _check_cell_keys(self) -> None:
        """Refuse missing or incompatible options of cell keys."""
        for table in self.tables:
            if table.file is not None or not table.is_counts:
                problem = "has a file" if table.file is not None else f'adds up "{table.value}"'
                raise InputError(
                    f'table "{table.name}" {problem}, but --method cellkey counts records; name the records and leave out file and value.',
                    option="tables",
                )
        if self.registry is None or self.person is None:
            raise InputError(
                "--method cellkey needs --register, which keeps the secret of the keys, and --person, a column that identifies people.",
                option="--register",
            )
        for flag, given in (
            ("--holding", self.holding),
            ("--request", self.request),
            ("--sampling-weight", self.sampling_weight),
            ("--known-percent", self.known_percent),
            ("status", self.status or None),
            ("--seconds", self.seconds),
        ):
            if given is not None:
                raise InputError(
                    f"option {flag} cannot be combined with --method cellkey; leave it out.", option=flag
                )
        if any(rule.rule != "frequency" for rule in self.rules):
            raise InputError(
                "--method cellkey protects small counts only; leave out rules other than frequency.",
                option="rules",
            )
        (_, variance), (_, most), (_, file) = self._noise_options()
        if file is not None and (variance is not None or most is not None):
            raise InputError(
                "option --noise-table sets variance and largest noise; leave out --variance and --max-noise.",
                option="--noise-table",
            )
