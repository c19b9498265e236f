"""The TopDown spec: what is released, what it costs, and what is publicly known; and the options given with each call.

[topdown]
epsilon = 4                      # or rho = "1/2", delta = 1e-10; or epsilon with delta, composed
neighbours = "change-record"
estimator = "bayes"              # or "least-squares"; "plain" is Algorithm 1 as the paper has it
shrink = 2                       # cap on the shrinking of small groups, or "off"
intervals = 3                    # simulations for standard errors and intervals; 0 for none

[topdown.published]              # written by import-nmf: noise that somebody else drew, in place of budget and shares
by = "U.S. Census Bureau"
files = 11
sha256 = "..."                   # of the list of their hashes
tabulation = 16                  # the last characters of a leaf's code name it in tabulation geography
variances = { state = { total = "1.2092" }, block = { detailed = "10.09" } }

[topdown.geography]              # if omitted: one region, "all", with everybody
column = "GEOID"                 # or columns = ["state", "county"], one for each level
levels = ["state", "county", "block"]
prefixes = [2, 5, 15]
leaves = "blocks.csv"            # public list of the leaves

[topdown.spine]                  # if omitted: the regions of the geography are measured
areas = "districts.csv"          # columns leaf and area, and perhaps kind: the public areas of interest
fixed = "state"                  # levels down to this one are kept, those between it and the leaves are rearranged

[topdown.queries]                # "detailed", all cells, is always included
total = []
age = ["age"]
minority = { attributes = ["race"], merge = { race = { other = ["black", "asian"] } } }

[topdown.shares]                 # exact fractions that sum to one
levels = { state = "1/3", county = "1/3", block = "1/3" }
queries = { total = "0.1", age = "0.2", detailed = "0.7" }
at = { block = { detailed = 1 } }      # another split at one level

[[topdown.invariants]]           # published exactly
name = "state total"
level = "state"

[[topdown.bounds]]               # from a public table with one row per leaf
name = "dormitories"
file = "facilities.csv"
cells = { quarters = ["dormitory"] }
facilities = "dormitories"       # at least one person in each; nobody where there is none

[[topdown.covariates]]           # public numbers that correlate with the people of a leaf
column = "housing_units"         # of the list of leaves; file = "..." for another public table

[[topdown.covariates]]
column = "asian_2010"
cells = { race = ["asian"] }     # only for these people
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.privacy.budget import Loss, Measure, exact_fraction, fraction_of
from louver.privacy.composition import check_promise, enough_rho
from louver.privacy.neighbours import Relation
from louver.schema.options import Table, option
from louver.schema.validate import OWN, Options

__all__ = [
    "MAX_CELLS",
    "AreasOptions",
    "BoundOptions",
    "CheckOptions",
    "CovariateOptions",
    "EstimatorName",
    "GeographyOptions",
    "ImportOptions",
    "InvariantOptions",
    "PlanOptions",
    "PublishedOptions",
    "RunOptions",
    "SharesOptions",
    "Shrink",
    "SpineOptions",
    "TopDownOptions",
]

DECIMALS = 10**15
"""Losses derived from published variances are integer multiples of its inverse, which keeps their sums short."""

MAX_CELLS = 1 << 20
"""Maximum number of entries in one table of regions by cells."""

Amount = int | float | str
Labels = dict[str, Annotated[list[str], Field(min_length=1)]]
EstimatorName = Literal["bayes", "least-squares", "plain"]
"""The method by which noisy answers become counts."""


def _as_shrink(value: Any) -> Any:
    """A positive number, possibly as text, or "off"."""
    if value is None or value == "off":
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(value, bool) or not 0.0 < number < math.inf:
        raise PydanticCustomError(OWN, 'must be a number above 0, or "off"')
    return number


Shrink = Annotated[float | str, BeforeValidator(_as_shrink)]
"""Maximum number of standard deviations that a cell of small share may be moved below its evidence; "off" for no limit."""


Simulations = Annotated[int, Field(ge=0, le=100)]
"""Number of simulations of a release used to estimate its error; 0 for none."""


class GeographyOptions(Options):
    """`[topdown.geography]`."""

    levels: Annotated[list[str], Field(min_length=1)]
    leaves: str
    column: str | None = None
    prefixes: list[int] | None = None
    columns: Annotated[list[str], Field(min_length=1)] | None = None

    @property
    def region_columns(self) -> tuple[str, ...]:
        """Columns with the location of a person: one for each level, or the one with the leaf's code."""
        return tuple(self.columns or (self.column or "",))


class SpineOptions(Options):
    """`[topdown.spine]`: regions between a fixed level and the leaves, arranged for areas of interest."""

    areas: Annotated[str, Field(min_length=1)]
    fixed: str | None = None
    levels: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=8)] | None = (
        None
    )
    tolerance: Annotated[float, Field(ge=0.0, le=10.0)] = 0.05


class QueryOptions(Options):
    """One entry of `[topdown.queries]`: a list of attributes, or a table that also merges labels."""

    attributes: list[str]
    merge: dict[str, Labels] = Field(default_factory=dict)


class SharesOptions(Options):
    """`[topdown.shares]`."""

    levels: dict[str, Amount]
    queries: dict[str, Amount]
    at: dict[str, dict[str, Amount]] = Field(default_factory=dict)


class PublishedOptions(Options):
    """`[topdown.published]`: measurements made and published by a third party, in place of a budget and its shares."""

    by: Annotated[str, Field(min_length=1, max_length=100)]
    files: Annotated[int, Field(ge=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    tabulation: Annotated[int, Field(ge=1, le=64)] | None = None
    variances: dict[str, dict[str, Amount]]

    def variance(self, level: str, query: str) -> float:
        """The usual variance of the regions of a level."""
        return float(exact_fraction(self.variances[level][query]))

    def losses(self, where: str) -> dict[str, dict[str, Fraction]]:
        """What every query would lose, in rho, if records changed: the inverse of its variance, to 15 decimals."""
        found: dict[str, dict[str, Fraction]] = {}
        key = f'{where}: key "published.variances'
        for level, queries in self.variances.items():
            found[level] = {
                query: Fraction(round(DECIMALS / fraction_of(variance, f'{key}.{level}.{query}"')), DECIMALS)
                for query, variance in queries.items()
            }
        if not any(found.values()):
            raise InputError(f'{where}: key "published.variances" lists no query.', option="published")
        return found


class InvariantOptions(Options):
    """One of `[[topdown.invariants]]`."""

    name: Annotated[str, Field(min_length=1)]
    level: str
    cells: Labels = Field(default_factory=dict)


class BoundOptions(Options):
    """One of `[[topdown.bounds]]`."""

    name: Annotated[str, Field(min_length=1)]
    file: str
    cells: Labels = Field(default_factory=dict)
    lower: int | str | None = None
    upper: int | str | None = None
    facilities: str | None = None


class CovariateOptions(Options):
    """One of `[[topdown.covariates]]`."""

    column: Annotated[str, Field(min_length=1)]
    file: str | None = None
    cells: Labels = Field(default_factory=dict)


def _as_query(value: Any) -> Any:
    return {"attributes": value} if isinstance(value, list) else value


class TopDownOptions(Options):
    """`[topdown]`."""

    most_cells: ClassVar[int] = MAX_CELLS
    needs_detailed: ClassVar[bool] = True

    geography: GeographyOptions | None = None
    spine: SpineOptions | None = None
    shares: SharesOptions | None = None
    queries: dict[str, Annotated[QueryOptions, BeforeValidator(_as_query)]] = Field(default_factory=dict)
    invariants: list[InvariantOptions] = Field(default_factory=list)
    bounds: list[BoundOptions] = Field(default_factory=list)
    covariates: list[CovariateOptions] = Field(default_factory=list)
    extended_by: str | None = None
    published: PublishedOptions | None = None
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    neighbours: Literal["change-record", "add-remove-record"] = "change-record"
    acknowledge_invariants: bool = False
    estimator: EstimatorName = "bayes"
    shrink: Shrink = 2.0
    intervals: Simulations = 3

    def budget(self, where: str) -> Loss:
        """The whole budget; with epsilon and delta, a lower bound on it. `where` is the name of the section in messages.

        For published measurements it is the loss implied by their stated variances.
        """
        if self.published is not None:
            if (self.epsilon, self.rho, self.delta, self.shares) != (None, None, None, None):
                message = f"{where} describes published measurements, which have no budget and no shares; leave them out."
                raise InputError(message, option="published")
            losses = [loss for level in self.published.losses(where).values() for loss in level.values()]
            return Loss(sum(losses, Fraction(0)), Measure.RHO, Relation(self.neighbours))
        if (self.epsilon is None) == (self.rho is None):
            raise InputError(f"{where} needs a budget: either epsilon or rho.", option="epsilon")
        if self.rho is not None and self.delta is None:
            raise InputError(f"{where} needs delta in addition to rho.", option="delta")
        relation, promise = Relation(self.neighbours), self.promise(where)
        if promise is not None:
            return Loss(enough_rho(*promise), Measure.RHO, relation)
        if self.epsilon is not None:
            return Loss(fraction_of(self.epsilon, f'{where}: key "epsilon"'), Measure.EPSILON, relation)
        if not fraction_of(self.delta, f'{where}: key "delta"') < 1:
            raise InputError(f'{where}: key "delta" must be below 1.', option="delta")
        return Loss(fraction_of(self.rho, f'{where}: key "rho"'), Measure.RHO, relation)

    def promise(self, where: str) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of this release alone, if its noise is chosen by composing; its cost follows from the plan."""
        if self.epsilon is None or self.delta is None:
            return None
        promise = (
            fraction_of(self.epsilon, f'{where}: key "epsilon"'),
            fraction_of(self.delta, f'{where}: key "delta"'),
        )
        check_promise(*promise)
        return promise


class RunOptions(Options):
    """How a release is computed; none of these options decides what is measured."""

    measurements: str | None = option(
        None, "Folder written by measure, or a release directory.", metavar="DIR", group="run"
    )
    engine: str = option(
        "local:1",
        "Where to estimate: local:N for cores of this machine, dask://HOST:PORT for a Dask cluster; results do not depend on it.",
        metavar="ADDRESS",
        group="run",
    )
    resume: bool = option(
        False,
        "Resume an interrupted run from its last finished level; its noise is already paid for and costs nothing more.",
        group="run",
    )
    seed: int | None = option(
        None, "For tests and demos: repeatable, NOT private, no ledger.", metavar="S", group="evaluation"
    )
    evaluate: bool = option(
        False, "Compare with the truth; needs --seed, never for release.", group="evaluation"
    )
    estimator: EstimatorName | None = option(
        None, "bayes, least-squares or plain; overrides the spec.", metavar="NAME", group="run"
    )
    shrink: Shrink | None = option(
        None,
        'For bayes: maximum number of standard deviations by which small groups may be shrunk, or "off"; overrides the spec.',
        metavar="K",
        group="run",
    )
    intervals: Simulations | None = option(
        None,
        "Number of simulations for standard errors and intervals, 0 for none; overrides the spec.",
        metavar="N",
        group="run",
    )
    csv: bool = option(False, "Write the microdata as CSV too.", group="run")


class ImportOptions(Options):
    """Options for reading published noisy measurement files."""

    by: str = option("U.S. Census Bureau", "Publisher of the measurements.", metavar="NAME", group="import")
    states: list[str] = option(
        [], "FIPS codes of the states to read, as in 44,15; all by default.", metavar="S1,S2", group="import"
    )
    totals: str | None = option(
        None,
        "Public file with the exact number of people of every state: columns geocode and value.",
        metavar="FILE",
        group="import",
    )


class AreaOptions(Options):
    """The part of a release that is queried."""

    leaves: str | None = option(
        None,
        "Leaves and regions that make up the area: one per line, or a CSV with the release's geography columns.",
        metavar="FILE",
        group="area",
    )


class AreasOptions(Options):
    """The areas of a release that are queried together."""

    areas: str | None = option(
        None,
        "CSV with the columns area and leaf: one row for each leaf or region of each area. By default the areas of the release's spine.",
        metavar="FILE",
        group="area",
    )
    csv: str | None = option(
        None,
        "Write the table as CSV: area, estimate, standard_error, lower_90, upper_90.",
        metavar="NEWFILE",
        group="area",
    )


class PlanOptions(Options):
    """The input of a forecast, and the workload for which shares are chosen."""

    stand_in: Table | None = option(
        None,
        "Public table to simulate on, laid out like the source, or a release; its regions may differ.",
        metavar="FILE",
        group="forecast",
    )
    people: int | None = option(
        None,
        "Total number of people (default: that of the stand-in; without one, 50 for each leaf).",
        metavar="N",
        group="forecast",
        ge=1,
        le=10**10,
    )
    composition: str | None = option(
        None,
        "Earlier counts, with the attributes, a column count and optionally one of regions; the stand-in is adjusted to them.",
        metavar="FILE",
        group="forecast",
    )
    simulations: int = option(
        3,
        "Simulated releases of each plan; 0 for the closed form alone.",
        metavar="N",
        group="forecast",
        ge=0,
        le=100,
    )
    workload: Literal["even", "below"] = option(
        "even",
        "Workload for which shares are chosen: even (no error worse than with equal shares) or below (the lowest three levels).",
        metavar="NAME",
        group="workload",
    )
    weight: dict[str, float] = option(
        {},
        "Weights of errors, in place of --workload: LEVEL/QUERY=W or LEVEL=W, separated by commas.",
        metavar="L/Q=W",
        group="workload",
    )
    target: dict[str, float] = option(
        {},
        "Target errors, in per cent of the mean count, as in tract/total=2.",
        metavar="L/Q=P",
        group="workload",
    )
    engine: str = option(
        "local:1", "Cores to work on; results do not depend on it.", metavar="local:N", group="run"
    )
    write: str | None = option(
        None,
        "Write the spec with the chosen shares to a new file in the same folder.",
        metavar="NEWFILE",
        group="run",
    )


class CheckOptions(Options):
    """Known values to check against the spec."""

    invariants: str | None = option(
        None,
        "Known values: columns invariant, level, region, value.",
        metavar="FILE",
        group="knowledge",
    )
    table: str | None = option(
        None,
        "Counts of one region, to check whether they can be divided among its leaves.",
        metavar="FILE",
        group="knowledge",
    )
    level: str | None = option(None, "Level of the region of --table.", metavar="LEVEL", group="knowledge")
    region: str | None = option(None, "The region of --table.", metavar="CODE", group="knowledge")

    def placed(self) -> tuple[str, str, str] | None:
        """Level, region and file of the table, as `check` takes them."""
        if [self.table, self.level, self.region].count(None) in (1, 2):
            raise InputError(
                "options --table, --level and --region belong together; give all three.", option="--table"
            )
        return None if self.table is None else (self.level or "", self.region or "", self.table)
