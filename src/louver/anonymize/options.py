"""The options of the verb, checked once for the library, the command line and the spec file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, FiniteFloat

from louver.anonymize.guarantee import Guarantee
from louver.anonymize.methods import METHODS
from louver.errors import InputError
from louver.schema.options import Names, Table, VerbOptions, option
from louver.schema.source import SourceOptions

__all__ = ["AnonymizeOptions"]

if TYPE_CHECKING:
    MethodName = str
else:
    MethodName = Literal[tuple(METHODS)]

WEAKER = [method.name for method in METHODS.values() if method.guarantee is Guarantee.FREEFORM]


class AnonymizeOptions(VerbOptions):
    """Everything `louver anonymize` can be told, but for where the data are and where the release goes."""

    verb: ClassVar[str] = "anonymize"
    place: ClassVar[str | None] = "options"
    no_source: ClassVar[tuple[str, ...]] = ("weight", "wide")

    quasi: Names = option(
        (), "Quasi-identifying columns, separated by commas.", metavar="A,B,C", group="columns"
    )
    k: int = option(
        5,
        "Least number of records that share their published quasi-identifiers.",
        metavar="K",
        flag="-k",
        group="protection",
        ge=1,
    )
    identifying: Names = option((), "Columns to drop.", metavar="A,B", group="columns")
    sensitive: Names = option(
        (), "Columns that --l and --t speak of, published unchanged.", metavar="A,B", group="columns"
    )
    keep: Names = option(
        (), "Columns to publish unchanged, whatever they give away.", metavar="A,B", group="columns"
    )
    ordered: Names = option(
        (), "Quasi-identifiers in text whose categories have an order.", metavar="A,B", group="columns"
    )
    hierarchy: dict[str, str] = option(
        {},
        "Hierarchy in the layout of ARX; a class gets the lowest node above its values. May be repeated.",
        metavar="A=FILE",
        group="columns",
        file="each",
    )
    weights: dict[str, Annotated[FiniteFloat, Field(ge=0)]] = option(
        {}, "Importance of quasi-identifiers (default 1).", metavar="A=.8,B=.2", group="columns"
    )
    method: MethodName = option(
        "auto",
        f"{', '.join(name for name in METHODS if name not in WEAKER)}; weaker: {', '.join(WEAKER)}.".replace(
            "auto", "auto (default)", 1
        ),
        metavar="M",
        group="method",
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
        "Split & Carry: what goes to the next sub-problem.",
        metavar="classes|subset|bubble",
        group="split-carry",
    )
    size: int | None = option(
        None, "Bubble carry: records in a sub-problem.", metavar="P", group="split-carry", ge=2
    )
    accepted: int | None = option(
        None, "Bubble carry: classes kept of a sub-problem.", metavar="A", group="split-carry", ge=1
    )
    subproblem_seconds: FiniteFloat | None = option(
        None, "Split & Carry: time for one sub-problem.", metavar="S", group="split-carry", gt=0
    )
    l: FiniteFloat | None = option(  # noqa: E741 - the field's own name
        None, "l-diversity of the sensitive columns.", metavar="L", group="protection", ge=1
    )
    l_kind: Literal["distinct", "entropy"] = option(
        "distinct", "Sort of l-diversity.", metavar="distinct|entropy", group="protection"
    )
    t: FiniteFloat | None = option(
        None, "t-closeness of the sensitive columns.", metavar="T", group="protection", ge=0, le=1
    )
    distance: Literal["equal", "ordered", "hierarchical"] = option(
        "equal",
        "Distance for --t: equal (default), ordered or hierarchical.",
        metavar="D",
        group="protection",
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
        "Population with the quasi-identifiers: journalist risk.",
        metavar="FILE",
        group="population",
        file="one",
    )
    population_count: str | None = option(
        None, "Column of the population that counts people.", metavar="COLUMN", group="population"
    )
    k_map: bool = option(
        False, "k counts matching people of the population, not records.", group="population"
    )
    sampling_weight: str | None = option(
        None, "People that a record stands for: journalist risk.", metavar="COLUMN", group="population"
    )
    against: Names = option(
        (),
        "Earlier release of the same data; says what both disclose together. May be repeated.",
        metavar="RELEASE",
        group="risk",
        file="each",
        repeated=True,
    )
    accept: bool = option(
        False,
        "Publish even if together with --against some records have fewer than k candidates.",
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
    missing: Literal["category", "match", "error"] = option(
        "category",
        "What a missing value is (default: a category of its own).",
        metavar="category|match|error",
        group="columns",
    )
    format: Literal["labels", "bounds"] = option(
        "labels", "Intervals as one label (default) or as two columns.", metavar="labels|bounds", group="file"
    )
    csv: bool = option(False, "Write the records as CSV besides Parquet.", group="file")
    keep_order: bool = option(False, "Leave the rows in the order of the source; recorded.", group="file")
    class_id: bool = option(False, "Add the number of the class.", group="file")

    def check(self) -> None:
        """Refuse roles that contradict one another, and options that speak of nothing."""
        if not self.quasi:
            raise InputError("option --quasi is empty; name at least one column.", option="--quasi")
        roles = (
            ("--quasi", self.quasi),
            ("--identifying", self.identifying),
            ("--sensitive", self.sensitive),
            ("--keep", self.keep),
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
            ("--ordered", self.ordered),
            ("--hierarchy", tuple(self.hierarchy)),
            ("--weights", tuple(self.weights)),
            ("--one-hot", self.one_hot),
        )
        for flag, names in described:
            for name in names:
                if name not in self.quasi and not (flag == "--hierarchy" and name in self.sensitive):
                    raise InputError(
                        f'option {flag} names column "{name}", which is not in --quasi.',
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
        for name in self.one_hot:
            if name in self.ordered or name in self.hierarchy:
                raise InputError(
                    f'column "{name}" is named in --one-hot and in --ordered or --hierarchy; choose one.',
                    option="--one-hot",
                    column=name,
                )
        self._check_needs()

    def check_source(self, source: SourceOptions) -> None:
        """Records, one person a row."""
        if source.weight is not None or source.wide:
            raise InputError(
                "the source of anonymize is records, one person a row; drop weight and wide.", option="--spec"
            )

    def _check_needs(self) -> None:
        """Refuse options that need another one."""
        if self.steps is not None and "seconds" in self.model_fields_set:
            raise InputError(
                "option --steps replaces the time limit of --seconds; give one of them.", option="--steps"
            )
        for flag, value in (("--l", self.l), ("--t", self.t)):
            if value is not None and not self.sensitive:
                raise InputError(f"option {flag} needs --sensitive.", option=flag)
        if self.accept and not self.against:
            raise InputError("option --accept needs --against.", option="--accept")
        for flag, is_given in (
            ("--k-map", self.k_map),
            ("--population-count", self.population_count is not None),
        ):
            if is_given and self.population is None:
                raise InputError(f"option {flag} needs --population.", option=flag)
        if self.population is not None and self.sampling_weight is not None:
            raise InputError(
                "options --population and --sampling-weight both describe the population; give one.",
                option="--sampling-weight",
            )
        if self.sampling_weight is not None and self.sampling_weight in self.quasi:
            raise InputError(
                f'column "{self.sampling_weight}" is named in --sampling-weight and in --quasi; choose one.',
                option="--sampling-weight",
                column=self.sampling_weight,
            )
        self._check_method()
        for name in ("size", "accepted"):
            if getattr(self, name) is not None and self.carry != "bubble":
                raise InputError(f"option --{name} needs --carry bubble.", option=f"--{name}")

    def _check_method(self) -> None:
        """Refuse what the method cannot take, and options of other methods."""
        refuses = METHODS[self.method].refuses
        if any(getattr(self, name) for name in refuses):
            told = f"{', '.join(map(flag_of, refuses[:-1]))} or {flag_of(refuses[-1])}"
            raise InputError(
                f"the method {self.method} takes no {told}; choose another --method.", option="--method"
            )
        for method in METHODS.values():
            for name in method.own_options:
                if getattr(self, name) is not None and self.method != method.name:
                    flag = flag_of(name)
                    raise InputError(f"option {flag} needs --method {method.name}.", option=flag)


def flag_of(name: str) -> str:
    """The option of the command line that sets a field."""
    return f"--{name.replace('_', '-')}"
