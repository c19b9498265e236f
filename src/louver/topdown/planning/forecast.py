"""Forecast a plan's errors before anything is spent: in closed form for large counts, by simulation for small ones.

`plan_for` compares several plans for one spec side by side. The records are not opened.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from louver._arrays import Floats, Ints
from louver._html import JsonText, Shown
from louver.data.read import open_source
from louver.data.write import replacing
from louver.engine.engines import ONE_CORE, Engine
from louver.errors import InputError
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.topdown.errors.simulate import AssumedTruth, public_seed
from louver.topdown.estimation.estimators import ESTIMATORS
from louver.topdown.estimation.subspaces import least_squares_variances
from louver.topdown.knowledge.check import read_counts
from louver.topdown.measuring.noise_plan import QueryPlan, make_plan, measurable
from louver.topdown.options import PlanOptions, SharesOptions
from louver.topdown.planning.bayes_errors import stand_in_departures
from louver.topdown.planning.shares import (
    DEFAULT_PEOPLE,
    Aim,
    choose_shares,
    equal_shares,
    exact_marginals,
    has_bayes_errors,
    total_query,
    with_shares,
)
from louver.topdown.planning.stand_in import draw_stand_in, read_stand_in, refuse_records
from louver.topdown.problem import Design, Query, SparseLevel, add_levels
from louver.topdown.result import mean_errors
from louver.topdown.spine.forecast import MEAN_ABSOLUTE, SpineForecast, forecast_spine, geographic_design

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ForecastLine", "PlanForecast", "forecast", "percent", "plan_for", "total_query"]

SIMULATED_LEAVES = 3000
"""Approximate number of leaves, in whole families, that each simulation estimates; at higher levels, all regions are estimated."""

LARGE = 4.0
"""Number of standard errors beyond which a count is not affected by the bound at zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastLine:
    """One query at one level under one plan; errors are those of one row in one region.

    Parameters
    ----------
    plan, level, query : str
    share : str or None
        Its share of the whole budget, an exact fraction; None if it is not measured there.
    people : float
        Mean count of a row in the stand-in.
    mean_absolute, standard_error : float
        Mean absolute error and root mean square error over regions and rows.
    relative : float or None
        `mean_absolute` divided by `people`.
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
class PlanForecast(JsonText, Shown):
    """Plans side by side; nothing here comes from the records.

    Parameters
    ----------
    lines : tuple of ForecastLine
    plans : mapping of str to QueryPlan
    stand_in : str
        Description of the data that simulations were run on.
    simulations : int
        Number of simulated releases behind each mean.
    notes : tuple of str
        Sentences about targets and strategies.
    headline : str
        The plan described by the sentences about totals: the plan that is written, if there is one, otherwise the spec's.
    spine : SpineForecast or None
        The effect of arranging regions for areas, with the shares of the headline; None if the spec has no such spine.
    """

    lines: tuple[ForecastLine, ...]
    plans: Mapping[str, QueryPlan]
    stand_in: str
    simulations: int
    headline: str
    notes: tuple[str, ...] = ()
    spine: SpineForecast | None = None

    def line(self, plan: str, level: str, query: str) -> ForecastLine:
        """One of the lines."""
        return next(x for x in self.lines if (x.plan, x.level, x.query) == (plan, level, query))

    def in_words(self) -> list[str]:
        """The errors of the headline's plan in the total of a region, level by level, in words."""
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
            **({} if self.spine is None else {"spine": asdict(self.spine)}),
        }

    def to_frame(self) -> pa.Table:
        """One row for each plan, level and query."""
        return pa.Table.from_pylist([asdict(line) for line in self.lines])

    def plot(self) -> Figure:
        """Draw the shares of the plans and the resulting errors."""
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
                _error_in_words(self.line(name, one.level, one.query)) for name in names
            ))  # fmt: skip
        top = f"Forecast of the mean absolute error of one count ({how}); nothing is spent, and no record is opened"
        spine = [] if self.spine is None else self.spine.in_words()
        return "\n".join([top, *lines, *self.in_words(), *spine, *self.notes])


def _error_in_words(line: ForecastLine) -> str:
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
    """A percentage with two digits, or as a whole number from 10 % on."""
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
    """Forecast every plan on the same stand-in and with the same seeds, with at least one simulation where there is no closed form."""
    lines: list[ForecastLine] = []
    if any(closed_form(plan, plan.design.published_queries) is None for plan in plans.values()):
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
    queries, truth = design.published_queries, add_levels(design.spine, leaves, design.n_cells)
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
    """Mean variance of a row (queries,) for each level; None if a query merges labels, or regions are fitted alone."""
    design = plan.design
    measured = [one.query for level in plan.measured for one in level]
    is_alone = not ESTIMATORS[design.options.estimator].uses_tree
    if is_alone or any(query.axes is None for query in (*queries, *measured)):
        return None
    variances = least_squares_variances(
        design.spine, design.shape, plan.workloads(), queries, exact=exact_marginals(design)
    )
    return [part.mean(axis=0) for part in variances]


def _is_closed(plan: QueryPlan, level: int, query: Query, variance: float | None, truth: SparseLevel) -> bool:
    """Whether the closed form holds: no prior, and hardly any count near zero."""
    if variance is None:
        return False
    if ESTIMATORS[plan.design.options.estimator].has_prior(plan.design.spine.sizes, level):
        return False
    answers = query.answer(truth.part(0, min(truth.n_regions, 500)))
    return bool((answers > LARGE * math.sqrt(variance)).mean() >= 0.95)


def _share(plan: QueryPlan, level: int, query: Query) -> str | None:
    """Share of the whole budget, None if the query is not measured."""
    losses = {one.query.name: one.loss.amount for one in plan.measured[level]}
    return str(losses[query.name] / plan.design.budget.amount) if query.name in losses else None


SPEC, DEFAULT, CHOSEN, EQUAL = "spec", "default", "chosen", "equal"


def plan_for(design: Design, options: PlanOptions, engine: Engine, run: Run | None = None) -> PlanForecast:
    """Forecast the spec's plan, the one chosen for the workload, and the equal-shares plan."""
    attend = (run or Run()).attend
    target = None if options.write is None else _new_file(design, Path(options.write))
    leaves, sentences = _stand_in(design, options, run)
    is_measured, aim = measurable(design), _aim(design, options, leaves)
    seen: dict[str, Any] = {"people": float(leaves.count.sum())}
    if options.stand_in is not None or not has_bayes_errors(design):
        seen = {"live": _live(design, leaves), "departures": stand_in_departures(design, leaves)}
    shares = {DEFAULT if design.has_chosen_shares else SPEC: design.options.shares}
    is_open = all(query.axes is not None for query in design.queries)
    if is_open or options.weight or options.target or target is not None:
        shares[CHOSEN] = attend(choose_shares, design, is_measured, aim, **seen).shares
    shares[EQUAL] = equal_shares(design, is_measured)
    plans = {
        name: attend(make_plan, with_shares(design, own)) for name, own in shares.items() if own is not None
    }
    found = forecast(plans, leaves, sentences, simulations=options.simulations, engine=engine, run=run)
    if options.target:
        alone = replace(aim, weights=aim.weights * 1e-3)
        least = attend(choose_shares, design, is_measured, alone, **seen)
        found = replace(found, notes=_verdicts(found, design, options.target, least.budget_factor))
    if target is not None:
        _write_spec(design, plans[CHOSEN].design.options.shares, target)
        notes = (*found.notes, f'The shares called "{CHOSEN}" are in {target.name}.')
        found = replace(found, headline=CHOSEN, notes=notes)
    if design.arrangement is not None:
        spine = attend(_forecast_spine, plans[found.headline])
        note = _equal_areas(attend(_forecast_spine, plans[EQUAL]))
        notes = found.notes if found.headline == EQUAL else (*found.notes, note)
        found = replace(found, spine=spine, notes=notes)
    return found


def _equal_areas(spine: SpineForecast) -> str:
    """The gain of named areas with equal shares, for which the regions were arranged."""
    found = []
    for kind in dict.fromkeys(one.kind for one in spine.areas):
        before, after = (
            float(np.mean([getattr(one, key) for one in spine.areas if one.kind == kind]))
            for key in ("error_geography", "error_spine")
        )
        found.append(f"{kind} {before:,.1f} with the geography and {after:,.1f} with the spine")
    return f"With equal shares, totals of named areas would be off by: {'; '.join(found)}."


def _forecast_spine(plan: QueryPlan) -> SpineForecast:
    """Errors of areas under the plan, and under a plan with the geography as the spine."""

    def shares(design: Design) -> SharesOptions:
        is_measured = measurable(design)
        if any(query.axes is None for query in design.queries):
            return equal_shares(design, is_measured)
        return choose_shares(design, is_measured, Aim.for_workload("even", design)).shares

    return forecast_spine(plan, make_plan(geographic_design(plan.design, shares)))


def _stand_in(design: Design, options: PlanOptions, run: Run | None) -> tuple[SparseLevel, str]:
    """Leaves to simulate on, and a description of them in words."""
    composition = None
    if options.composition is not None:
        if options.stand_in is None:
            message = "option --composition adjusts a stand-in; give --stand-in too."
            raise InputError(message, option="--composition")
        composition = _composition(design, Path(options.composition), run)
    if options.stand_in is not None:
        leaves = read_stand_in(
            design, options.stand_in, people=options.people, composition=composition, run=run
        )
        if not leaves.count.any():
            raise InputError("the stand-in has no people; give another.", option="--stand-in")
        return leaves, "the stand-in"
    leaves = draw_stand_in(design, options.people or DEFAULT_PEOPLE * design.spine.sizes[-1])
    return leaves, f"a synthetic population of {int(leaves.count.sum()):,}"


def _composition(design: Design, path: Path, run: Run | None = None) -> Ints:
    """Counts (regions, cells) of the level for which the file has a column; without one, counts of the whole."""
    refuse_records(design, path, "--composition", run)
    with open_source(path) as source:
        there = set(source.columns) - {attribute.name for attribute in design.attributes}
    level = max((i for i, name in enumerate(design.spine.names) if name in there), default=None)
    if level is None:
        counts = read_counts(design, path)[None]
    else:
        by = Attribute(name=design.spine.names[level], labels=design.spine.codes[level])
        counts = read_counts(design, path, by).reshape(by.size, -1)
    if not counts.any():
        message = f"{path.name} has no people; give the counts of an area."
        raise InputError(message, file=path.name, option="--composition")
    return counts


def _live(design: Design, leaves: SparseLevel) -> Floats:
    """Share of the rows of every query that are not empty, at every level (levels, queries)."""
    live = []
    for level in add_levels(design.spine, leaves, design.n_cells):
        some = level.part(0, min(level.n_regions, 2000))
        live.append([(query.answer(some) > 0).mean() for query in design.queries])
    return np.clip(np.array(live), 0.02, 1.0)


def _aim(design: Design, options: PlanOptions, leaves: SparseLevel) -> Aim:
    """The requirements on the release, in numbers."""
    wanted, aim = design.published_queries, Aim.for_workload(options.workload, design)
    if options.weight:
        weights = np.zeros_like(aim.weights)
        for key, weight in options.weight.items():
            level, queries = _place(design, key, "--weight")
            if not 0.0 <= weight < 1e9:
                raise InputError("option --weight needs weights of 0 or more.", option="--weight")
            weights[level, queries] = weight
        if not weights.any():
            raise InputError(
                "option --weight gives no query a positive weight; give at least one.", option="--weight"
            )
        aim = Aim(weights=weights)
    targets = {}
    for key, percent in options.target.items():
        level, queries = _place(design, key, "--target")
        if not 0.0 < percent < 1e6:
            raise InputError("option --target needs percentages above 0.", option="--target")
        for query in queries:
            people = float(leaves.count.sum()) / design.spine.sizes[level] / wanted[query].n_rows
            targets[level, query] = percent / 100.0 * people / MEAN_ABSOLUTE
    return replace(aim, targets=targets)


def _place(design: Design, key: str, option: str) -> tuple[int, list[int]]:
    """Level and queries named by LEVEL/QUERY or by LEVEL alone."""
    names = [query.name for query in design.published_queries]
    level, slash, query = key.rpartition("/") if "/" in key else (key, "", "")
    if level not in design.spine.names or (slash and query not in names):
        message = f"option {option} names a level or query that the spec does not have; write LEVEL/QUERY, as in tract/total."
        raise InputError(message, option=option)
    return design.spine.names.index(level), [names.index(query)] if slash else list(range(len(names)))


def _verdicts(
    found: PlanForecast, design: Design, targets: Mapping[str, float], factor: float
) -> tuple[str, ...]:
    """Sentences that say whether each target is reached, and the minimum budget for it."""
    sentences, is_reached = [], True
    for key, percent in targets.items():
        level, queries = _place(design, key, "--target")
        for query in queries:
            line = found.line(CHOSEN, design.spine.names[level], design.published_queries[query].name)
            error = 100.0 * (line.relative or 0.0)
            is_reached = is_reached and error <= percent
            how = "is reached" if error <= percent else "cannot be reached within the budget"
            sentences.append(
                f"{line.level}/{line.query} within {percent:g} % {how}: the forecast is {error:.2g} %."
            )
    missed = max(
        (found.line(CHOSEN, *place).relative or 0.0) * 100.0 / percent
        for place, percent in _each(design, targets)
    )
    power = 2.0 if design.budget.measure == "rho" else 1.0
    amount = float(design.budget.amount) * (factor if is_reached else missed**power)
    return (
        *sentences,
        f"That needs at least about {design.budget.measure} {amount:.2g}; the spec has {float(design.budget.amount):.3g}.",
    )


def _each(design: Design, targets: Mapping[str, float]) -> list[tuple[tuple[str, str], float]]:
    places = [(_place(design, key, "--target"), percent) for key, percent in targets.items()]
    return [
        ((design.spine.names[level], design.published_queries[query].name), percent)
        for (level, queries), percent in places
        for query in queries
    ]


def _new_file(design: Design, path: Path) -> Path:
    """The path of the spec to be written; refused if the file exists or relative file names would no longer apply."""
    spec = design.spec.path
    if not spec.is_file():
        raise InputError("option --write needs a spec in a file.", option="--write")
    if os.path.lexists(path):
        raise InputError(f"option --write: {path.name} already exists; name a new file.", option="--write")
    if path.absolute().parent != spec.absolute().parent:
        message = f"option --write must name a file in the folder of {spec.name}, because its file names are relative to it."
        raise InputError(message, option="--write")
    return path


def _write_spec(design: Design, shares: SharesOptions | None, path: Path) -> None:
    """Write the spec's own text with other shares."""
    assert shares is not None
    text = design.spec.path.read_text(encoding="utf-8")
    kept = re.sub(r"(?ms)^\[topdown\.shares(\.[^\]]*)?\].*?(?=^\[|\Z)", "", text)
    written = f"{kept.rstrip()}\n\n{_section(shares)}"
    wanted = tomllib.loads(text)
    wanted["topdown"]["shares"] = shares.model_dump(exclude_defaults=True)
    if _parsed(written) != wanted:
        message = f"{design.spec.path.name} has shares that are not in their own section [topdown.shares]; move them there."
        raise InputError(message, file=design.spec.path.name, option="--write")
    with replacing(path) as sink:
        sink.write(written.encode())


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _section(shares: SharesOptions) -> str:
    lines = ["[topdown.shares]                       # chosen by `louver topdown plan`"]
    lines += [f"levels = {_table(shares.levels)}", f"queries = {_table(shares.queries)}"]
    if shares.at:
        at = ", ".join(f"{json.dumps(name)} = {_table(own)}" for name, own in shares.at.items())
        lines.append(f"at = {{ {at} }}")
    return "\n".join(lines) + "\n"


def _table(shares: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f'{json.dumps(name)} = "{share}"' for name, share in shares.items()) + " }"
