"""What a plan's errors will be, before anything is spent: in closed form for large counts, by simulation for small ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from louver._arrays import Floats
from louver._html import Shown
from louver.engine.engines import ONE_CORE, Engine
from louver.run import Run
from louver.topdown.errors.simulate import AssumedTruth, public_seed
from louver.topdown.estimation.bayes import FEWEST
from louver.topdown.estimation.subspaces import least_squares_variances
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.planning.shares import exact_marginals, total_query, wanted_queries
from louver.topdown.problem import Query, SparseLevel, add_levels
from louver.topdown.result import mean_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ForecastLine", "PlanForecast", "forecast", "percent", "total_query"]

MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
"""Mean absolute error over the standard error, where many draws add up."""

SIMULATED_LEAVES = 3000
"""About how many leaves each simulation estimates, whole families; of the levels above all regions."""

LARGE = 4.0
"""Standard errors of a count beyond which zero does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastLine:
    """One query at one level under one plan; errors are those of one row in one region.

    Parameters
    ----------
    plan, level, query : str
    share : str or None
        Its share of the whole budget, an exact fraction; None where it is not measured there.
    people : float
        Mean count of a row in the stand-in.
    mean_absolute, standard_error : float
        Means over regions and rows: of the absolute error, and of its square, the root taken.
    relative : float or None
        `mean_absolute` over `people`.
    method : {"closed form", "simulated"}
    """

    plan: str
    level: str
    query: str
    share: str | None
    people: float
    mean_absolute: float
    standard_error: float
    relative: float | None
    method: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlanForecast(Shown):
    """Plans side by side; nothing here comes from the records.

    Parameters
    ----------
    lines : tuple of ForecastLine
    plans : mapping of str to QueryPlan
    stand_in : str
        What simulations were made on, in words.
    simulations : int
        Simulated releases behind each mean.
    notes : tuple of str
        Sentences about targets and strategies.
    headline : str
        The plan that the sentences about totals describe: the one that is written where one is, otherwise the spec's.
    """

    lines: tuple[ForecastLine, ...]
    plans: Mapping[str, QueryPlan]
    stand_in: str
    simulations: int
    headline: str
    notes: tuple[str, ...] = ()

    def line(self, plan: str, level: str, query: str) -> ForecastLine:
        """One of the lines."""
        return next(x for x in self.lines if (x.plan, x.level, x.query) == (plan, level, query))

    def in_words(self) -> list[str]:
        """What the headline's plan will do to the total of a region, level by level."""
        design = self.plans[self.headline].design
        total = total_query(design).name
        lines = [self.line(self.headline, level, total) for level in design.spine.names]
        return [f'With the shares called "{self.headline}":', *map(_sentence, lines)]

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "stand_in": self.stand_in,
            "simulations": self.simulations,
            "plans": {
                name: {
                    "estimator": plan.design.options.estimator,
                    "shares": plan.design.options.model_dump(mode="json")["shares"],
                }
                for name, plan in self.plans.items()
            },
            "lines": [asdict(line) for line in self.lines],
            "headline": self.headline,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pa.Table:
        """One row for each plan, level and query."""
        return pa.Table.from_pylist([asdict(line) for line in self.lines])

    def plot(self) -> Figure:
        """Shares of the plans, and the errors they lead to."""
        from louver.topdown.plot import plot_forecast

        return plot_forecast(self)

    def __repr__(self) -> str:
        how = (
            f"{self.simulations} simulated releases of {self.stand_in}" if self.simulations else "closed form"
        )
        names = list(self.plans)
        wide = max(8, *(len(line.level) for line in self.lines))
        deep = max(8, *(len(line.query) for line in self.lines))
        head = f"{'level':<{wide}} {'query':<{deep}} {'people':>11}" + "".join(
            f" | {name + ': share':>15} {'error':>9}" for name in names
        )
        lines = [head]
        for one in (line for line in self.lines if line.plan == names[0]):
            lines.append(f"{one.level:<{wide}} {one.query:<{deep}} {one.people:>11,.1f}" + "".join(
                _told(self.line(name, one.level, one.query)) for name in names
            ))  # fmt: skip
        top = f"Forecast of the mean absolute error of one count ({how}); nothing is spent, and no record is opened"
        return "\n".join([top, *lines, *self.in_words(), *self.notes])


def _told(line: ForecastLine) -> str:
    mark = " " if line.method == "simulated" else "*"
    return f" | {line.share or '-':>15} {line.mean_absolute:>8,.2f}{mark}"


def _sentence(line: ForecastLine) -> str:
    share = "" if line.relative is None else f" ({percent(line.relative)})"
    if line.mean_absolute == 0.0:
        return f"Totals of level {line.level} will be exact."
    return f"Totals of level {line.level} will be off by about {_round(line.mean_absolute)} people{share}."


def _round(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.5 else f"{value:.1f}"


def percent(value: float) -> str:
    """Two digits, or whole from 10 % on."""
    return f"{100 * value:.0f} %" if value >= 0.095 else f"{100 * value:.2g} %"


def forecast(
    plans: Mapping[str, QueryPlan],
    leaves: SparseLevel,
    stand_in: str,
    *,
    simulations: int = 3,
    notes: Sequence[str] = (),
    engine: Engine = ONE_CORE,
    run: Run | None = None,
) -> PlanForecast:
    """Forecast every plan, on the same stand-in and with the same seeds; at least once where there is no closed form."""
    lines: list[ForecastLine] = []
    if any(closed_form(plan, wanted_queries(plan.design)) is None for plan in plans.values()):
        simulations = max(simulations, 1)
    for name, plan in plans.items():
        lines += _lines(name, plan, leaves, simulations, engine, run)
    return PlanForecast(
        lines=tuple(lines),
        plans=plans,
        stand_in=stand_in,
        simulations=simulations,
        headline=next(iter(plans)),
        notes=tuple(notes),
    )


def _lines(
    name: str, plan: QueryPlan, leaves: SparseLevel, simulations: int, engine: Engine, run: Run | None
) -> list[ForecastLine]:
    """Forecasts of one plan."""
    design = plan.design
    queries, truth = wanted_queries(design), add_levels(design.spine, leaves, design.n_cells)
    closed = closed_form(plan, queries)
    sums = _simulated(plan, leaves, queries, simulations, engine, run)
    lines = []
    for level, place in np.ndindex(*sums.shape[:2]):
        query = queries[place]
        variance = None if closed is None else float(closed[level][place])
        if simulations and not _is_closed(plan, level, query, variance, truth[level]):
            mean, square = sums[level, place] / simulations
            error, method = (float(mean), math.sqrt(square)), "simulated"
        else:
            error, method = (
                (MEAN_ABSOLUTE * math.sqrt(variance or 0.0), math.sqrt(variance or 0.0)),
                "closed form",
            )
        people = float(truth[level].count.sum()) / truth[level].n_regions / query.n_rows
        lines.append(
            ForecastLine(
                plan=name,
                level=design.spine.names[level],
                query=query.name,
                share=_share(plan, level, query),
                people=people,
                mean_absolute=error[0],
                standard_error=error[1],
                relative=error[0] / people if people else None,
                method=method,
            )
        )
    return lines


def _simulated(
    plan: QueryPlan,
    leaves: SparseLevel,
    queries: Sequence[Query],
    simulations: int,
    engine: Engine,
    run: Run | None,
) -> Floats:
    """Sums over simulations of mean absolute and mean squared errors, (levels, queries, 2)."""
    sums = np.zeros((plan.design.spine.n_levels, len(queries), 2))
    assumed = AssumedTruth.of(plan, leaves)
    for number in range(simulations):
        found = assumed.simulate(
            public_seed("forecast", str(number)),
            among=assumed.families(SIMULATED_LEAVES, turn=number),
            engine=engine,
            run=run,
        )
        truth = [*assumed.levels[:-1], assumed.levels[-1].take(found.leaves)]
        for level, place in np.ndindex(*sums.shape[:2]):
            sums[level, place] += mean_errors(queries[place], found.levels[level], truth[level])
    return sums


def closed_form(plan: QueryPlan, queries: Sequence[Query]) -> list[Floats] | None:
    """Mean variance of a row (queries,) for each level; None where a query merges labels, or regions are fitted alone."""
    design = plan.design
    measured = [one.query for level in plan.measured for one in level]
    if design.options.estimator == "plain" or any(query.axes is None for query in (*queries, *measured)):
        return None
    variances = least_squares_variances(
        design.spine, design.shape, plan.workloads(), queries, exact=exact_marginals(design)
    )
    return [part.mean(axis=0) for part in variances]


def _is_closed(plan: QueryPlan, level: int, query: Query, variance: float | None, truth: SparseLevel) -> bool:
    """Whether the closed form holds: no prior, and hardly any count near zero."""
    if variance is None:
        return False
    is_improved = plan.design.options.estimator == "bayes" and plan.design.spine.sizes[level] >= FEWEST
    if level == 0 or not is_improved:
        answers = query.answer(truth.part(0, min(truth.n_regions, 500)))
        return bool((answers > LARGE * math.sqrt(variance)).mean() >= 0.95)
    return False


def _share(plan: QueryPlan, level: int, query: Query) -> str | None:
    """Share of the whole budget, None where the query is not measured."""
    losses = {one.query.name: one.loss.amount for one in plan.measured[level]}
    return str(losses[query.name] / plan.design.budget.amount) if query.name in losses else None
