"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, FiniteFloat

from louver.anonymize.columns import Guarantee
from louver.anonymize.methods import CHOICES, METHODS
from louver.errors import InputError
from louver.schema import register
from louver.schema.analysis import Analysis, AnalysisTable, analyses_of
from louver.schema.options import Names, Orders, Table, VerbOptions, option
from louver.schema.recode import Recode, RecodeTable, recodes_of
from louver.schema.source import ALL_COLUMNS, SourceKeywords, SourceOptions

__all__ = ["AnonymizeKeywords", "AnonymizeOptions"]

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from louver.data.read import ArrowStream

    MethodName = str
else:
    MethodName = Literal[CHOICES]

UNIT_METHODS = ("auto", "greedy")
"""Methods that can form classes of distinct units."""

UNIT_NUMBER = "unit_id"
"""The column of fresh numbers of units."""

WEAKER = [method.name for method in METHODS.values() if method.guarantee is Guarantee.FREEFORM]


class AnonymizeOptions(VerbOptions):
    """All options of `louver anonymize`, except the locations of the data and of the release."""

    verb: ClassVar[str] = "anonymize"
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide", "weight_is_count")

    quasi: Names = option(
        (), "Quasi-identifying columns, separated by commas.", metavar="A,B,C", group="columns"
    )
    k: int = option(
        5,
        "Minimum number of records that share their published quasi-identifiers.",
        metavar="K",
        flag="-k",
        group="protection",
        ge=1,
    )
    identifying: Names = option((), "Columns to drop.", metavar="A,B", group="columns")
    sensitive: Names = option(
        (), "Columns that --l and --t protect, published unchanged.", metavar="A,B", group="columns"
    )
    keep: Names = option(
        (), "Columns to publish unchanged, whatever they reveal.", metavar="A,B", group="columns"
    )
    ordered: Orders = option(
        {},
        "Columns whose categories have an order: as listed, or by number or alphabet. May be repeated.",
        metavar="A,B|A=V,V",
        group="columns",
    )
    categorical: Names = option(
        (), "Columns of codes: their numbers are names without an order.", metavar="A,B", group="columns"
    )
    hierarchy: dict[str, str] = option(
        {},
        "Hierarchy in the layout of ARX; a class is published as the lowest node above its values. May be repeated.",
        metavar="A=FILE",
        group="columns",
        file="each",
    )
    weights: dict[str, Annotated[FiniteFloat, Field(ge=0)]] = option(
        {}, "Importance of quasi-identifiers (default 1).", metavar="A=.8,B=.2", group="columns"
    )
    method: MethodName = option(
        "auto",
        f"{', '.join(name for name in CHOICES if name not in WEAKER)}; weaker: {', '.join(WEAKER)}.".replace(
            "auto", "auto (default)", 1
        ),
        metavar="M",
        group="method",
    )
    recoding: Literal["local", "global"] = option(
        "local",
        "Classes generalised one by one (local, default), or one set of intervals and one hierarchy level per column for the "
        "whole file (global).",
        metavar="local|global",
        group="method",
    )
    exceptions: FiniteFloat = option(
        0.0,
        "With --recoding global: share of records that may be exceptions to the recoding, in classes generalised one by one.",
        metavar="SHARE",
        group="method",
        ge=0,
        le=1,
    )
    seconds: FiniteFloat = option(10.0, "Time for the search.", metavar="S", group="method", gt=0)
    steps: int | None = option(
        None,
        "In place of --seconds, for a run that can be repeated: rounds of auto, thousands of search nodes of exact and of each "
        "sub-problem of split-carry.",
        metavar="N",
        group="method",
        ge=0,
    )
    bound_seconds: FiniteFloat | None = option(
        None,
        "Time after the search to prove a lower bound on the loss of any classes: the closer it is, the more is "
        "known about the quality of the answer.",
        metavar="S",
        group="method",
        gt=0,
    )
    normalise: bool = option(False, "Scale the weights so that they add up to one.", group="columns")
    one_hot: Names = option(
        (),
        "Columns whose loss counts one binary attribute per category (section 2.5), not Definition 8.",
        metavar="A,B",
        group="columns",
    )
    sets: int | None = option(
        None, "Split & Carry: k-sets in a sub-problem (default 5).", metavar="S", group="split-carry", ge=2
    )
    boundary: int | None = option(
        None, "Split & Carry: boundary records (default k).", metavar="N", group="split-carry", ge=1
    )
    carry: Literal["classes", "subset", "bubble"] | None = option(
        None,
        "Split & Carry: records that go to the next sub-problem.",
        metavar="classes|subset|bubble",
        group="split-carry",
    )
    size: int | None = option(
        None, "Bubble carry: records in a sub-problem.", metavar="P", group="split-carry", ge=2
    )
    accepted: int | None = option(
        None, "Bubble carry: classes kept from a sub-problem.", metavar="A", group="split-carry", ge=1
    )
    subproblem_seconds: FiniteFloat | None = option(
        None, "Split & Carry: time for one sub-problem.", metavar="S", group="split-carry", gt=0
    )
    l: FiniteFloat | None = option(  # noqa: E741 - the field's own name
        None, "l-diversity of the sensitive columns.", metavar="L", group="protection", ge=1
    )
    l_kind: Literal["distinct", "entropy", "recursive"] = option(
        "distinct", "Kind of l-diversity.", metavar="distinct|entropy|recursive", group="protection"
    )
    c: FiniteFloat | None = option(
        None,
        "Recursive l-diversity: the commonest value has fewer than C times as many records as all from the l-th commonest on.",
        metavar="C",
        group="protection",
        gt=0,
    )
    t: FiniteFloat | None = option(
        None, "t-closeness of the sensitive columns.", metavar="T", group="protection", ge=0, le=1
    )
    distance: Literal["equal", "ordered", "hierarchical"] | None = option(
        None,
        "Distance for --t: equal, ordered or hierarchical (default: ordered for numbers and --ordered, else equal).",
        metavar="D",
        group="protection",
    )
    count_missing: bool = option(
        False, "Count a missing sensitive value as a value for --l and --t.", group="protection"
    )
    suppress: FiniteFloat = option(
        0.0,
        "Share of records that may be left out; each counts as full loss.",
        metavar="SHARE",
        group="protection",
        ge=0,
        le=1,
    )
    population: Table | None = option(
        None,
        "Population with the quasi-identifiers, for journalist risk.",
        metavar="FILE",
        group="population",
        file="one",
    )
    population_count: str | None = option(
        None, "Column of the population that counts people.", metavar="COLUMN", group="population"
    )
    k_map: bool = option(
        False, "Let k count matching people of the population, not records.", group="population"
    )
    unit: str | None = option(
        None,
        "Household or other unit: k counts different units, and values that all members share are generalised alike. Not published.",
        metavar="COLUMN",
        group="protection",
    )
    whole_units: bool = option(
        False,
        "With --unit: publish which records belong together, under fresh numbers (unit_id); k counts units of the same size that are alike "
        "member by member.",
        group="protection",
    )
    sampling_weight: str | None = option(
        None,
        "Column with the number of people that a record stands for, for journalist risk.",
        metavar="COLUMN",
        group="population",
    )
    against: Names = option(
        (),
        "Earlier release of the same data, to report what both disclose together. May be repeated.",
        metavar="RELEASE",
        group="risk",
        file="each",
        repeated=True,
    )
    earlier: Names = option(
        (),
        "Records that the release of --against was made from, for people whose values have changed since; needs --link. May be repeated, "
        "in the order of --against.",
        metavar="FILE",
        group="risk",
        file="each",
        repeated=True,
    )
    link: str | None = option(
        None,
        "Key of a person, in the data and in --earlier, by which people are looked up with the values they had then; never published.",
        metavar="COLUMN",
        group="risk",
    )
    accept: bool = option(
        False,
        "Publish even if, together with the releases of --against, some records have fewer than k candidates.",
        group="risk",
    )
    curve: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    ] = option(
        (),
        "Trace the risk-utility curve at these k, for --html and --json.",
        metavar="K,K,...",
        group="risk",
    )
    recode: RecodeTable | None = option(
        None,
        "TOML file with merged categories, bins or levels of quasi-identifiers, applied first.",
        metavar="FILE",
        group="columns",
        file="one",
    )
    analysis: AnalysisTable | None = option(
        None,
        "TOML file with means, shares and regressions to estimate before and after anonymization, to see which of them survive.",
        metavar="FILE",
        group="method",
        file="one",
    )
    top_code: dict[str, FiniteFloat] = option(
        {},
        "Upper limit for the numbers of a column published unchanged; larger ones are set to it. May be repeated.",
        metavar="A=200000",
        group="columns",
        repeated=True,
    )
    bottom_code: dict[str, FiniteFloat] = option(
        {},
        "Lower limit for the numbers of a column published unchanged; smaller ones are set to it. May be repeated.",
        metavar="A=0",
        group="columns",
        repeated=True,
    )
    round_to: dict[str, Annotated[FiniteFloat, Field(gt=0)]] = option(
        {},
        "Round the numbers of a column published unchanged to multiples of this. May be repeated.",
        metavar="A=100",
        group="columns",
        repeated=True,
    )
    missing: Literal["category", "match", "error"] = option(
        "category",
        "How missing values are treated (default: a category of their own).",
        metavar="category|match|error",
        group="columns",
    )
    parts: Annotated[str, BeforeValidator(lambda v: str(v) if type(v) is int else v)] | None = option(
        None,
        "For files larger than memory: cut into N parts, or parts of about 250,000 records (auto), each read and generalised on its own.",
        metavar="N|auto",
        group="parts",
    )
    engine: str = option(
        "local:1",
        "Where parts are processed: local:N for cores of this machine, dask://HOST:PORT for a Dask cluster; the classes are the same.",
        metavar="ADDRESS",
        group="parts",
    )
    format: Literal["labels", "bounds"] = option(
        "labels", "Intervals as one label (default) or as two columns.", metavar="labels|bounds", group="file"
    )
    registry: str | None = option(
        None,
        "Folder of the register of publications: the counts of the classes are entered, for audits of later tables.",
        metavar="DIR",
        flag="--register",
        group="file",
    )
    person: str | None = register.person("file")
    new_population: bool = register.new_population("file")
    accept_unchecked: bool = register.accept_unchecked("file")
    csv: bool = option(False, "Write the records as CSV in addition to Parquet.", group="file")
    keep_order: bool = option(
        False, "Keep the rows in the order of the source; this is recorded.", group="file"
    )
    class_id: bool = option(False, "Add a column with the number of the class.", group="file")

    def check(self) -> None:
        """Refuse roles that contradict one another, and options about columns that do not exist."""
        if not self.quasi:
            raise InputError("option --quasi is empty; name at least one column.", option="--quasi")
        roles = (
            ("--quasi", self.quasi),
            ("--identifying", self.identifying),
            ("--sensitive", self.sensitive),
            ("--keep", self.keep),
            ("--unit", () if self.unit is None else (self.unit,)),
        )
        role_of: dict[str, str] = {}
        for flag, names in roles:
            for name in names:
                if name in role_of:
                    raise InputError(
                        f'column "{name}" is named in {role_of[name]} and in {flag}; a column has one role.',
                        option=flag,
                        column=name,
                    )
                role_of[name] = flag
        described = (
            ("--ordered", tuple(self.ordered)),
            ("--categorical", self.categorical),
            ("--hierarchy", tuple(self.hierarchy)),
            ("--weights", tuple(self.weights)),
            ("--one-hot", self.one_hot),
        )
        for flag, names in described:
            for name in names:
                is_for_both = flag in ("--ordered", "--categorical", "--hierarchy")
                if name not in self.quasi and not (is_for_both and name in self.sensitive):
                    also = " or --sensitive" if is_for_both else ""
                    raise InputError(
                        f'option {flag} names column "{name}", which is not in --quasi{also}.',
                        option=flag,
                        column=name,
                    )
        for name in self.ordered:
            if name in self.hierarchy:
                raise InputError(
                    f'column "{name}" is named in --ordered and in --hierarchy; choose one.',
                    option="--ordered",
                    column=name,
                )
        self._check_codes()
        for name in self.one_hot:
            if name in self.ordered or name in self.hierarchy:
                raise InputError(
                    f'column "{name}" is named in --one-hot and in --ordered or --hierarchy; choose one.',
                    option="--one-hot",
                    column=name,
                )
        self._check_needs()

    def _check_codes(self) -> None:
        """Refuse codes that contradict one another."""
        for name in self.categorical:
            if name in self.ordered:
                raise InputError(
                    f'column "{name}" is named in --categorical and in --ordered; choose one.',
                    option="--categorical",
                    column=name,
                )
        for name, values in self.ordered.items():
            if len(set(values)) < len(values) or len(values) == 1:
                raise InputError(
                    f'option --ordered: list at least two values of column "{name}", each only once, from the lowest to the highest.',
                    option="--ordered",
                    column=name,
                )

    def check_source(self, source: SourceOptions) -> None:
        """The source must be records, one person per row."""
        if source.weight is not None or source.wide:
            raise InputError(
                "the source of anonymize must be records, one person per row; drop weight and wide.",
                option="--spec",
            )
        for name, values in self.ordered.items():
            codes = {*source.missing_code.get(name, ()), *source.missing_code.get(ALL_COLUMNS, ())}
            if codes & set(values):
                raise InputError(
                    f'column "{name}" has a value in --missing-code and in --ordered; choose one.',
                    option="--missing-code",
                    column=name,
                )

    def _check_needs(self) -> None:
        """Refuse options without another option that they require."""
        register.check_register(self.registry, self.person, self.new_population, self.accept_unchecked)
        if self.registry is not None and self.method in WEAKER:
            raise InputError(
                f"option --register needs classes, which --method {self.method} does not form; choose another method.",
                option="--register",
            )
        if self.steps is not None and "seconds" in self.model_fields_set:
            raise InputError(
                "option --steps replaces the time limit of --seconds; give only one of them.",
                option="--steps",
            )
        self._check_bound()
        if self.count_missing and self.l is None and self.t is None:
            raise InputError("option --count-missing needs --l or --t.", option="--count-missing")
        if self.distance is not None and self.t is None:
            raise InputError("option --distance needs --t.", option="--distance")
        for flag, value in (("--l", self.l), ("--t", self.t)):
            if value is not None and not self.sensitive:
                raise InputError(f"option {flag} needs --sensitive.", option=flag)
        self._check_l_kind()
        if self.accept and not self.against:
            raise InputError("option --accept needs --against.", option="--accept")
        self._check_link()
        for flag, is_given in (
            ("--k-map", self.k_map),
            ("--population-count", self.population_count is not None),
        ):
            if is_given and self.population is None:
                raise InputError(f"option {flag} needs --population.", option=flag)
        if self.population is not None and self.sampling_weight is not None:
            raise InputError(
                "options --population and --sampling-weight both describe the population; give only one.",
                option="--sampling-weight",
            )
        if self.sampling_weight is not None and self.sampling_weight in self.quasi:
            raise InputError(
                f'column "{self.sampling_weight}" is named in --sampling-weight and in --quasi; choose one.',
                option="--sampling-weight",
                column=self.sampling_weight,
            )
        if self.unit is not None:
            self._check_unit()
        if self.whole_units:
            self._check_whole_units()
        self._check_method()
        self._check_recoding()
        self._check_parts()
        self._check_number_codes()
        self._check_added_columns()
        for name in ("size", "accepted"):
            if getattr(self, name) is not None and self.carry != "bubble":
                raise InputError(f"option --{name} needs --carry bubble.", option=f"--{name}")

    def _check_l_kind(self) -> None:
        """Refuse a kind of l-diversity without the options that it needs."""
        is_recursive = self.l_kind == "recursive"
        if is_recursive and (self.l is None or self.c is None):
            raise InputError("option --l-kind recursive needs --l and --c.", option="--l-kind")
        if self.c is not None and not is_recursive:
            raise InputError("option --c needs --l-kind recursive.", option="--c")
        if is_recursive and self.unit is not None:
            raise InputError(
                "option --unit cannot be combined with --l-kind recursive: it counts records, of which a unit has several; "
                "choose --l-kind distinct.",
                option="--l-kind",
            )

    def _check_bound(self) -> None:
        """Refuse time for a bound if none can be proved."""
        for flag, is_given in (
            ("--k-map", self.k_map),
            ("--parts", self.parts is not None),
            ("--recoding global", self.recoding == "global"),
            (f"--method {self.method}", self.method in WEAKER),
        ):
            if self.bound_seconds is not None and is_given:
                raise InputError(
                    f"option --bound-seconds cannot be combined with {flag}: the bound counts the records of classes of the whole file; "
                    "drop one of them.",
                    option="--bound-seconds",
                )

    def _check_added_columns(self) -> None:
        """Refuse a published column with the name of one that these options add."""
        added = {"class_id": "--class-id"} if self.class_id else {}
        added |= {UNIT_NUMBER: "--whole-units"} if self.whole_units else {}
        if self.format == "bounds":
            ranges = [name for name in self.quasi if name not in self.categorical]
            added |= {f"{name}_{end}": "--format bounds" for name in ranges for end in ("lower", "upper")}
        for name in (*self.quasi, *self.sensitive, *self.keep):
            if name in added:
                raise InputError(
                    f'option {added[name]} adds a column "{name}", and the records already have a column with this name; '
                    "rename it, or drop the option.",
                    option=added[name].partition(" ")[0],
                    column=name,
                )

    def _check_link(self) -> None:
        """Refuse a person key without the earlier records, and one that would be published."""
        if len(self.earlier) != (len(self.against) if self.link is not None else 0):
            raise InputError(
                "option --link needs --earlier once for each --against, and --earlier needs --link.",
                option="--earlier" if self.earlier else "--link",
            )
        if self.link is None:
            return
        if not self.against:
            raise InputError("option --link needs --against.", option="--link")
        for flag, names in (
            ("--quasi", self.quasi),
            ("--sensitive", self.sensitive),
            ("--keep", self.keep),
            ("--unit", (self.unit,)),
            ("--sampling-weight", (self.sampling_weight,)),
        ):
            if self.link in names:
                raise InputError(
                    f'column "{self.link}" is named in --link and in {flag}; a person key is never published.',
                    option="--link",
                    column=self.link,
                )

    def _check_unit(self) -> None:
        """Refuse options that cannot be combined with --unit."""
        if self.method not in UNIT_METHODS:
            raise InputError(
                f"option --unit needs --method {' or '.join(UNIT_METHODS)}.",
                option="--unit",
            )
        for flag, is_given in (
            ("--population", self.population is not None),
            ("--suppress", self.suppress > 0 and not self.whole_units),
        ):
            if is_given:
                raise InputError(
                    f"options --unit and {flag} cannot be combined; leave one out.", option="--unit"
                )
        if self.unit == self.sampling_weight:
            raise InputError(
                f'column "{self.unit}" is named in --unit and in --sampling-weight; choose one.',
                option="--unit",
                column=self.unit,
            )

    def _check_whole_units(self) -> None:
        """Refuse options whose meaning would change if records of a unit can be linked."""
        if self.unit is None:
            raise InputError("option --whole-units needs --unit.", option="--whole-units")
        for flag, is_given, reason in WHOLE_REFUSES:
            if is_given(self):
                raise InputError(
                    f"options --whole-units and {flag} cannot be combined: {reason}; leave one out.",
                    option="--whole-units",
                )

    def _check_method(self) -> None:
        """Refuse options that the method cannot use, and options of other methods."""
        refuses = METHODS[self.method].refuses
        if any(getattr(self, name) for name in refuses):
            refused = f"{', '.join(map(flag_of, refuses[:-1]))} or {flag_of(refuses[-1])}"
            raise InputError(
                f"--method {self.method} cannot be combined with {refused}; choose another method.",
                option="--method",
            )
        for method in METHODS.values():
            for name in method.own_options:
                if getattr(self, name) is not None and self.method != method.name:
                    flag = flag_of(name)
                    raise InputError(f"option {flag} needs --method {method.name}.", option=flag)

    def _check_recoding(self) -> None:
        """Refuse options that cannot be combined with global recoding, and recodes of other columns."""
        if self.exceptions > 0 and self.recoding != "global":
            raise InputError(
                "option --exceptions needs --recoding global: otherwise all classes are generalised one by one.",
                option="--exceptions",
            )
        if self.recoding == "global":
            for flag, is_given, reason in GLOBAL_REFUSES:
                if is_given(self):
                    raise InputError(
                        f"option --recoding global cannot be combined with {flag}: {reason}; drop one of them.",
                        option="--recoding",
                    )
        for recode in self.recodes():
            if recode.attribute not in self.quasi:
                raise InputError(
                    f'option --recode names column "{recode.attribute}", which is not in --quasi.',
                    option="--recode",
                    column=recode.attribute,
                )
        if self.recode is not None and self.against:
            raise InputError(
                "option --recode cannot be combined with --against: earlier releases describe values before the recode; drop one of them.",
                option="--recode",
            )

    def _check_parts(self) -> None:
        """Refuse an invalid number of parts, and options that need all records at once."""
        if self.parts is None:
            if "engine" in self.model_fields_set:
                raise InputError("option --engine needs --parts.", option="--engine")
            return
        if self.parts != "auto" and not (self.parts.isdecimal() and 1 <= int(self.parts) <= MOST_PARTS):
            raise InputError(
                f"option --parts must be auto or a whole number from 1 to {MOST_PARTS}.", option="--parts"
            )
        for flag, is_given, reason in PARTS_REFUSES:
            if is_given(self):
                raise InputError(
                    f"option --parts cannot be combined with {flag}: {reason}; drop one of them.",
                    option="--parts",
                )

    def n_parts(self, n_records: int) -> int:
        """The number of parts to make."""
        return -(-n_records // PART_RECORDS) if self.parts == "auto" else int(self.parts or 1)

    def analyses(self) -> tuple[Analysis, ...]:
        """The estimates to compare before and after."""
        return analyses_of(self.analysis)

    def recodes(self) -> list[Recode]:
        """The recodes of quasi-identifiers, which are applied first."""
        return recodes_of(self.recode)

    def _check_number_codes(self) -> None:
        """Refuse to round or cut off columns that are not otherwise published unchanged, and limits that cross."""
        for name, codes in NUMBER_CODES.items():
            for column in codes(self):
                role = (
                    "--quasi"
                    if column in self.quasi
                    else "--identifying"
                    if column in self.identifying
                    else None
                )
                if role is None and column in self.sensitive and (self.l is not None or self.t is not None):
                    role = "--sensitive with --l or --t"
                if role is not None:
                    raise InputError(
                        f'option {flag_of(name)} names column "{column}", which is in {role}; only numbers that are published unchanged '
                        "can be coded.",
                        option=flag_of(name),
                        column=column,
                    )
        for column in self.top_code:
            if self.bottom_code.get(column, self.top_code[column]) > self.top_code[column]:
                raise InputError(
                    f'column "{column}" has a --bottom-code above its --top-code; swap them.',
                    option="--bottom-code",
                    column=column,
                )


NUMBER_CODES: dict[str, Callable[[AnonymizeOptions], dict[str, float]]] = {
    "top_code": lambda options: options.top_code,
    "bottom_code": lambda options: options.bottom_code,
    "round_to": lambda options: options.round_to,
}
"""Options that round or cut off numbers that are otherwise published unchanged."""

MOST_PARTS = 10_000
PART_RECORDS = 250_000
"""Number of records in a part for `--parts auto`."""

PARTS_REFUSES: tuple[tuple[str, Callable[[AnonymizeOptions], bool], str], ...] = (
    (
        "--recoding global",
        lambda o: o.recoding == "global",
        "one recoding is chosen for all records together",
    ),
    (
        "--t",
        lambda o: o.t is not None,
        "a part is not close to the whole file if values correlate with the quasi-identifiers",
    ),
    ("--unit", lambda o: o.unit is not None, "the records of a unit may lie in different parts"),
    ("--analysis", lambda o: o.analysis is not None, "estimates are made from all records"),
    ("--k-map", lambda o: o.k_map, "a part may match too few people of the population"),
    (
        "--against",
        lambda o: bool(o.against),
        "everyone is looked up in earlier releases, which needs all records in memory",
    ),
    ("--method " + "|".join(WEAKER), lambda o: o.method in WEAKER, "every record is matched with all others"),
)
"""Options that cannot be combined with --parts, with the reasons."""

WHOLE_REFUSES: tuple[tuple[str, Callable[[AnonymizeOptions], bool], str], ...] = (
    (
        "--l",
        lambda o: o.l is not None,
        "it counts values of single records, and units would be recognised by the values of all their records",
    ),
    (
        "--t",
        lambda o: o.t is not None,
        "it compares single records, and units would be recognised by all their records",
    ),
    ("--keep-order", lambda o: o.keep_order, "the order of members would distinguish units of a class"),
    ("--against", lambda o: bool(o.against), "people are looked up one by one, not with their units"),
    (
        "--register",
        lambda o: o.registry is not None,
        "tables are audited against counts of people, not of whole units",
    ),
)
"""Options that cannot be combined with --whole-units, with the reasons."""

GLOBAL_REFUSES: tuple[tuple[str, Callable[[AnonymizeOptions], bool], str], ...] = (
    ("--method", lambda o: o.method != "auto", "a method forms classes one by one"),
    ("--k-map", lambda o: o.k_map, "people of a population are matched with classes formed one by one"),
    ("--population", lambda o: o.population is not None, "people are matched with classes formed one by one"),
    ("--unit", lambda o: o.unit is not None, "classes of different units are formed one by one"),
    (
        "--missing match",
        lambda o: o.missing == "match",
        "a value that matches anything has no single label for the whole file",
    ),
    (
        "--suppress with --t",
        lambda o: o.t is not None and o.suppress > 0,
        "leaving classes out changes the distribution to which all others are close",
    ),
)
"""Options that cannot be combined with global recoding, with the reasons."""


def flag_of(name: str) -> str:
    """The option of the command line that sets a field."""
    return f"--{name.replace('_', '-')}"


class AnonymizeKeywords(SourceKeywords, total=False):
    """Keywords of `anonymize`."""

    quasi: str | Sequence[str]
    k: int
    identifying: str | Sequence[str]
    sensitive: str | Sequence[str]
    keep: str | Sequence[str]
    ordered: str | Sequence[str] | Mapping[str, Sequence[str | int]] | None
    categorical: str | Sequence[str]
    hierarchy: Mapping[str, str | Path] | None
    weights: Mapping[str, float] | None
    method: str
    recoding: str
    exceptions: float
    seconds: float
    steps: int | None
    bound_seconds: float | None
    normalise: bool
    one_hot: str | Sequence[str]
    sets: int | None
    boundary: int | None
    carry: str | None
    size: int | None
    accepted: int | None
    subproblem_seconds: float | None
    l: float | None  # noqa: E741 - the field's own name
    l_kind: str
    c: float | None
    t: float | None
    distance: str | None
    count_missing: bool
    suppress: float
    population: str | Path | ArrowStream | None
    population_count: str | None
    k_map: bool
    unit: str | None
    whole_units: bool
    sampling_weight: str | None
    against: str | Path | Sequence[str | Path]
    earlier: str | Path | Sequence[str | Path]
    link: str | None
    accept: bool
    curve: Sequence[int]
    recode: str | Path | Mapping[str, Any] | None
    analysis: str | Path | Mapping[str, Any] | None
    top_code: Mapping[str, float] | None
    bottom_code: Mapping[str, float] | None
    round_to: Mapping[str, float] | None
    missing: str
    parts: int | str | None
    engine: str
    format: str
    registry: str | Path | None
    person: str | None
    new_population: bool
    accept_unchecked: bool
    csv: bool
    keep_order: bool
    class_id: bool
