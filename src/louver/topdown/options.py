"""The TopDown spec: what is released, what it costs, and what is publicly known; and what a call is told beside it.

[topdown]
epsilon = 4                      # or rho = "1/2", delta = 1e-10; or epsilon with delta, composed
neighbours = "change-record"
estimator = "bayes"              # or "least-squares"; "plain" is Algorithm 1 as the paper has it
shrink = 2                       # cap on the shrinking of small groups, or "off"
intervals = 3                    # simulations that standard errors and intervals are read from; 0 for none

[topdown.geography]              # left out: one region, "all", with everybody
column = "GEOID"                 # or columns = ["state", "county"], one for each level
levels = ["state", "county", "block"]
prefixes = [2, 5, 15]
leaves = "blocks.csv"            # public list of the leaves

[topdown.queries]                # "detailed", all cells, is always there
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
facilities = "dormitories"       # at least one person each, none where there is none
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from louver.errors import InputError
from louver.privacy.budget import Loss, Measure, fraction_of
from louver.privacy.composition import check_promise, enough_rho
from louver.privacy.neighbours import Relation
from louver.schema.options import Table, option
from louver.schema.validate import OWN, Options

__all__ = [
    "MAX_CELLS",
    "BoundOptions",
    "CheckOptions",
    "EstimatorName",
    "GeographyOptions",
    "InvariantOptions",
    "PlanOptions",
    "RunOptions",
    "SharesOptions",
    "Shrink",
    "TopDownOptions",
]

MAX_CELLS = 1 << 20
"""Cells that one table of regions by cells may have."""

Amount = int | float | str
Labels = dict[str, Annotated[list[str], Field(min_length=1)]]
EstimatorName = Literal["bayes", "least-squares", "plain"]
"""How noisy answers become counts."""


def _as_shrink(value: Any) -> Any:
    """A positive number, also as text, or "off"."""
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
"""Standard deviations that a cell of small share may be moved below its evidence; "off" for any number."""


Simulations = Annotated[int, Field(ge=0, le=100)]
"""How often a release is simulated to know its error; 0 for never."""


class GeographyOptions(Options):
    """`[topdown.geography]`."""

    levels: Annotated[list[str], Field(min_length=1)]
    leaves: str
    column: str | None = None
    prefixes: list[int] | None = None
    columns: Annotated[list[str], Field(min_length=1)] | None = None

    @property
    def region_columns(self) -> tuple[str, ...]:
        """Columns that say where a person is: one for each level, or the one with the leaf's code."""
        return tuple(self.columns or (self.column or "",))


class QueryOptions(Options):
    """One entry of `[topdown.queries]`: a list of attributes, or a table that also merges labels."""

    attributes: list[str]
    merge: dict[str, Labels] = Field(default_factory=dict)


class SharesOptions(Options):
    """`[topdown.shares]`."""

    levels: dict[str, Amount]
    queries: dict[str, Amount]
    at: dict[str, dict[str, Amount]] = Field(default_factory=dict)


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


def _as_query(value: Any) -> Any:
    return {"attributes": value} if isinstance(value, list) else value


class TopDownOptions(Options):
    """`[topdown]`."""

    most_cells: ClassVar[int] = MAX_CELLS
    needs_detailed: ClassVar[bool] = True

    geography: GeographyOptions | None = None
    shares: SharesOptions | None = None
    queries: dict[str, Annotated[QueryOptions, BeforeValidator(_as_query)]] = Field(default_factory=dict)
    invariants: list[InvariantOptions] = Field(default_factory=list)
    bounds: list[BoundOptions] = Field(default_factory=list)
    extended_by: str | None = None
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    neighbours: Literal["change-record", "add-remove-record"] = "change-record"
    acknowledge_invariants: bool = False
    estimator: EstimatorName = "bayes"
    shrink: Shrink = 2.0
    intervals: Simulations = 3

    def budget(self, where: str) -> Loss:
        """The whole budget, with epsilon and delta what it is at least; `where` is what messages call the section."""
        if (self.epsilon is None) == (self.rho is None):
            raise InputError(f"{where} needs a budget, epsilon or rho, one of them.", option="epsilon")
        if self.rho is not None and self.delta is None:
            raise InputError(f"{where} needs delta beside rho.", option="delta")
        relation, promise = Relation(self.neighbours), self.promise(where)
        if promise is not None:
            return Loss(enough_rho(*promise), Measure.RHO, relation)
        if self.epsilon is not None:
            return Loss(fraction_of(self.epsilon, f'{where}: key "epsilon"'), Measure.EPSILON, relation)
        if not fraction_of(self.delta, f'{where}: key "delta"') < 1:
            raise InputError(f'{where}: key "delta" must be below 1.', option="delta")
        return Loss(fraction_of(self.rho, f'{where}: key "rho"'), Measure.RHO, relation)

    def promise(self, where: str) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of the one release, where noise is chosen by composing; what it costs follows from the plan."""
        if self.epsilon is None or self.delta is None:
            return None
        promise = (
            fraction_of(self.epsilon, f'{where}: key "epsilon"'),
            fraction_of(self.delta, f'{where}: key "delta"'),
        )
        check_promise(*promise)
        return promise


class RunOptions(Options):
    """How a release is computed; none of it decides what is measured."""

    measurements: str | None = option(
        None, "Folder that measure left, or a release directory.", metavar="DIR", group="run"
    )
    engine: str = option(
        "local:1",
        "Where to estimate: local:N for cores of this machine, dask://HOST:PORT for a Dask cluster; results do not depend on it.",
        metavar="ADDRESS",
        group="run",
    )
    resume: bool = option(
        False,
        "Carry on a run that was interrupted, from its last finished level; its noise was paid for and costs nothing more.",
        group="run",
    )
    seed: int | None = option(
        None, "For tests and demos: repeatable, NOT private, no ledger.", metavar="S", group="evaluation"
    )
    evaluate: bool = option(
        False, "Compare with the truth; needs --seed, never for release.", group="evaluation"
    )
    estimator: EstimatorName | None = option(
        None, "bayes, least-squares or plain, in place of the spec's.", metavar="NAME", group="run"
    )
    shrink: Shrink | None = option(
        None,
        'For bayes: standard deviations that small groups may be shrunk by, or "off"; in place of the spec\'s.',
        metavar="K",
        group="run",
    )
    intervals: Simulations | None = option(
        None,
        "Simulations that standard errors and intervals are read from, 0 for none; in place of the spec's.",
        metavar="N",
        group="run",
    )
    csv: bool = option(False, "Write the microdata as CSV too.", group="run")


class AreaOptions(Options):
    """Which part of a release is asked about."""

    leaves: str | None = option(
        None,
        "Leaves and regions that make the area: one a line, or a CSV with the release's geography columns.",
        metavar="FILE",
        group="area",
    )


class PlanOptions(Options):
    """What a forecast is made from, and what shares are chosen for."""

    stand_in: Table | None = option(
        None,
        "Public table to simulate on, laid out like the source, or a release; its regions may be others.",
        metavar="FILE",
        group="forecast",
    )
    people: int | None = option(
        None,
        "People in all (default: as the stand-in has them; 50 for each leaf without one).",
        metavar="N",
        group="forecast",
        ge=1,
        le=10**10,
    )
    composition: str | None = option(
        None,
        "Counts as they were once, with the attributes, a column count and perhaps one of regions: bends the stand-in.",
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
        "What shares are chosen for: even (nothing worse than with equal shares) or below (the lowest three levels).",
        metavar="NAME",
        group="workload",
    )
    weight: dict[str, float] = option(
        {},
        "Errors that matter, in place of --workload: LEVEL/QUERY=W or LEVEL=W, separated by commas.",
        metavar="L/Q=W",
        group="workload",
    )
    target: dict[str, float] = option(
        {},
        "Errors to be reached, in per cent of the mean count, as in tract/total=2.",
        metavar="L/Q=P",
        group="workload",
    )
    engine: str = option(
        "local:1", "Cores to work on; results do not depend on it.", metavar="local:N", group="run"
    )
    write: str | None = option(
        None, "Write the spec with the chosen shares to a new file beside it.", metavar="NEWFILE", group="run"
    )


class CheckOptions(Options):
    """What is known already and shall be checked with the spec."""

    invariants: str | None = option(
        None,
        "Values known already: columns invariant, level, region, value.",
        metavar="FILE",
        group="knowledge",
    )
    table: str | None = option(
        None, "Counts of one region; can they be divided among its leaves?", metavar="FILE", group="knowledge"
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
