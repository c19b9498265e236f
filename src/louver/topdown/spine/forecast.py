"""The effect of an arranged spine on named areas and geographic regions, compared with the geography at equal budget. Everything here is
public.

Errors are those of least squares before any constraint, for totals: the count of people in an area."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from louver._arrays import Floats, Ints
from louver.data.regions import RegionTree
from louver.optim.spines import members, off_spine_distances, union_variances
from louver.topdown.measuring.noise_plan import QueryPlan, measurable
from louver.topdown.options import SharesOptions
from louver.topdown.planning.shares import Aim, choose_shares, with_shares
from louver.topdown.problem import Design
from louver.topdown.spine.arrange import ArrangedSpine, region_of

__all__ = [
    "MEAN_ABSOLUTE",
    "AreaForecast",
    "SpineForecast",
    "default_shares",
    "forecast_spine",
    "geographic_design",
]

MEAN_ABSOLUTE = math.sqrt(2.0 / math.pi)
"""Ratio of the mean absolute error to the standard error, if many draws add up."""

NOTHING = 1e-12
"""Precision of a level that measures nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaForecast:
    """An area, or the mean over the regions of a level, under both spines.

    Parameters
    ----------
    kind : str
        Kind of area, or level of the geography.
    area : str or None
        None for the mean over a level.
    leaves : float
    steps_geography, steps_spine : float
        Regions that have to be added and subtracted to make it.
    error_geography, error_spine : float
        Mean absolute error of the number of people in it.
    """

    kind: str
    area: str | None
    leaves: float
    steps_geography: float
    steps_spine: float
    error_geography: float
    error_spine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpineForecast:
    """Forecasts of named areas, and of geographic levels below the fixed one."""

    areas: tuple[AreaForecast, ...]
    levels: tuple[AreaForecast, ...]
    rules: tuple[tuple[str, str, tuple[str, ...]], ...]

    def in_words(self) -> list[str]:
        """One line for each kind of area and each level, after a description of the new regions."""
        lines = ["Regions of the spine:"]
        for name, level, kinds in self.rules:
            lines.append(f"  {name}: {' and '.join((level, *kinds))} in common")
        lines.append(
            "Forecast of the mean absolute error of totals by least squares, geography and spine (steps in brackets):"
        )
        for kind in dict.fromkeys(one.kind for one in self.areas):
            lines.append(_line(kind, [one for one in self.areas if one.kind == kind]))
        return [*lines, *(_line(one.kind, [one]) for one in self.levels)]


def _line(name: str, rows: Sequence[AreaForecast]) -> str:
    def mean(key: str) -> float:
        return float(np.mean([getattr(row, key) for row in rows]))

    before, after = mean("error_geography"), mean("error_spine")
    n = f" ({len(rows):,} areas)" if rows[0].area is not None else ""
    ratio = f", {after / before:.2f} times" if before else ""
    steps = f"({mean('steps_geography'):,.1f} and {mean('steps_spine'):,.1f})"
    return f"  {name}{n}: {before:,.1f} and {after:,.1f}{ratio} {steps}"


def geographic_design(design: Design, choose: Callable[[Design], SharesOptions]) -> Design:
    """The same release with the geography as its spine, and with the same shares level by level, or those chosen for it.

    Parameters
    ----------
    design : Design
        With an arrangement.
    choose : callable
        Chooses shares for a design, if those of the spec cannot be used.
    """
    arrangement = design.arrangement
    assert arrangement is not None
    tree, spine = arrangement.geographic, design.spine
    last = tree.n_levels - 1
    statements = tuple(
        replace(one, level=last) if one.level == spine.n_levels - 1 else one for one in design.statements
    )
    own = replace(design, spine=tree, arrangement=None, statements=statements)
    if not design.has_chosen_shares and tree.n_levels == spine.n_levels:
        return own  # the shares follow the order of the levels
    shares = choose(own)
    options = own.options.model_copy(update={"shares": shares})
    return with_shares(replace(own, options=options), shares)


def forecast_spine(plan: QueryPlan, geographic: QueryPlan) -> SpineForecast:
    """Errors of all areas and of the regions of all levels under both plans."""
    arrangement = plan.design.arrangement
    assert arrangement is not None
    areas: list[AreaForecast] = []
    for kind in arrangement.kinds:
        columns = _both(arrangement, plan, geographic, kind.area_of, len(kind.areas))
        areas += [
            AreaForecast(kind=kind.name, area=name, **{key: float(own[i]) for key, own in columns.items()})
            for i, name in enumerate(kind.areas)
        ]
    levels = []
    tree = arrangement.geographic
    for level in range(arrangement.fixed, tree.n_levels):
        columns = _both(arrangement, plan, geographic, region_of(tree, level), tree.sizes[level])
        means = {key: float(own.mean()) for key, own in columns.items()}
        levels.append(AreaForecast(kind=tree.names[level], area=None, **means))
    names = plan.design.spine.names[arrangement.fixed + 1 : -1]
    rules = tuple((name, *rule) for name, rule in zip(names, arrangement.rule_names, strict=True))
    return SpineForecast(areas=tuple(areas), levels=tuple(levels), rules=rules)


def _both(
    arrangement: ArrangedSpine, plan: QueryPlan, geographic: QueryPlan, area_of: Ints, n_areas: int
) -> dict[str, Floats | Ints]:
    """Leaves, steps and errors of some areas, given by those of the geographic leaves."""
    found: dict[str, Floats | Ints] = {"leaves": np.bincount(area_of[area_of >= 0], minlength=n_areas)}
    for name, own, areas in (
        ("geography", geographic, area_of),
        ("spine", plan, area_of[arrangement.leaf]),
    ):
        parents, (leaf, area) = _parents(own.design.spine), members(areas)
        found[f"steps_{name}"] = off_spine_distances(parents, leaf, area, n_areas)
        variances = union_variances(parents, _precisions(own), leaf, area, n_areas)
        found[f"error_{name}"] = MEAN_ABSOLUTE * np.sqrt(variances)
    return found


def _parents(tree: RegionTree) -> list[Ints]:
    """The parent of every region, level by level below the root."""
    return [np.repeat(np.arange(n), np.diff(s)) for n, s in zip(tree.sizes, tree.starts, strict=False)]


def _precisions(plan: QueryPlan) -> list[float]:
    """Precision of each level's measurement of the total of a region; infinite where an invariant fixes it."""
    exact = {one.level for one in plan.invariants if one.cells[plan.design.is_possible].all()}
    return [
        math.inf
        if level in exact
        else sum((1.0 / (one.variance * one.query.n_rows) for one in queries), NOTHING)
        for level, queries in enumerate(plan.measured)
    ]


def default_shares(design: Design) -> SharesOptions:
    """The shares chosen for the workload "even"."""
    arrangement = design.arrangement
    if arrangement is None or arrangement.geographic.n_levels != design.spine.n_levels:
        return _even(design)
    shares = geographic_design(design, _even).options.shares
    assert shares is not None
    name = dict(zip(arrangement.geographic.names, design.spine.names, strict=True))
    levels = {name[level]: share for level, share in shares.levels.items()}
    return shares.model_copy(
        update={"levels": levels, "at": {name[level]: own for level, own in shares.at.items()}}
    )


def _even(design: Design) -> SharesOptions:
    return choose_shares(design, measurable(design), Aim.for_workload("even", design)).shares
