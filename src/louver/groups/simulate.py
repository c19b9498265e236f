"""Mechanisms run in memory on tables that are not confidential, and the distance of their results from the truth.

They serve forecasts on stand-in tables, evaluation with a seed, and tests. No ledger is involved.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from louver._arrays import Ints
from louver._words import counted
from louver.data.regions import RegionTree
from louver.errors import printable
from louver.groups.plan import SizePlan, noisy_answers, true_batches
from louver.groups.problem import GroupTable, NoisyAnswers, Total, sizes_of
from louver.optim.trees import LevelTree
from louver.privacy.measurements import NoisyBatch
from louver.privacy.noise import KeyedNoise, Noise, perturb
from louver.run import Run

__all__ = ["Forecast", "LevelError", "Preview", "averages", "errors", "forecast", "measured", "stand_in"]


@dataclass(frozen=True, slots=True)
class LevelError:
    """Distance of a released level from the true one.

    Attributes
    ----------
    l1 : float
        Sum over regions and sizes of the absolute difference of numbers of groups.
    emd : float
        Earth mover's distance (ERRATA G8): the same for numbers of groups of at most each size.
    suffix_emd : float
        The same for numbers of groups of at least each size.

    Notes
    -----
    The two distances differ if a region's number of groups is wrong: an extra group of size s counts for every size from s up in the
    first, and for every size from s down in the second.
    """

    l1: float
    emd: float
    suffix_emd: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected errors of every level, root first.

    Attributes
    ----------
    before : tuple of LevelError
        Errors of the measurements as drawn, which are neither whole nor consistent tables.
    after : tuple of LevelError
        Errors of the table after post-processing.
    """

    before: tuple[LevelError, ...]
    after: tuple[LevelError, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Preview:
    """The plan of a release, and the errors it would have with about `expect` groups spread evenly."""

    plan: SizePlan
    forecast: Forecast
    expect: int

    def to_dict(self) -> dict[str, Any]:
        errors = zip(self.plan.levels, self.forecast.before, self.forecast.after, strict=True)
        levels = [
            {
                "name": level.name,
                "regions": level.n_regions,
                "share": float(level.share),
                "measured_l1": before.l1,
                "forecast_l1": after.l1,
                "forecast_emd": after.emd,
            }
            for level, before, after in errors
        ]
        return {"mechanism": self.plan.mechanism.name, "levels": levels}

    def to_json(self) -> str:
        """`to_dict` as JSON text."""
        return json.dumps(self.to_dict())

    def __repr__(self) -> str:
        found = self.to_dict()
        lines = [
            f"Forecast for {found['mechanism']} on {self.expect:,} groups spread evenly, {self.plan.loss}; nothing is spent:"
        ]
        lines += [
            f"  {level['name']}: {counted(level['regions'], 'region')}, share {level['share']:.3f}, "
            f"L1 error about {level['forecast_l1']:,.0f}, earth mover's about {level['forecast_emd']:,.0f}"
            for level in found["levels"]
        ]
        return "\n".join(map(printable, lines))


def measured(table: GroupTable, plan: SizePlan, noise: Noise) -> NoisyAnswers:
    """Measure a table in memory."""
    batches = (
        NoisyBatch(
            level=batch.level,
            query=batch.query,
            nodes=batch.nodes,
            noisy_counts=perturb(batch.true_counts, batch.distribution, noise, batch.nonce),
            variance=batch.distribution.variance,
        )
        for batch in true_batches(table, plan)
    )
    return noisy_answers(batches, plan, table.n_groups if plan.total is Total.PUBLIC else None)


def errors(released: Ints, true: Ints, tree: LevelTree) -> tuple[LevelError, ...]:
    """Compare two tables level by level.

    Examples
    --------
    >>> tree = LevelTree.from_counts([[2]])
    >>> true, released = np.array([[2, 1], [1, 1], [1, 0]]), np.array([[2, 1], [1, 0], [1, 1]])
    >>> errors(released, true, tree)
    (LevelError(l1=0.0, emd=0.0, suffix_emd=0.0), LevelError(l1=2.0, emd=2.0, suffix_emd=4.0))
    """
    difference = released - true
    kinds = (difference, difference.cumsum(axis=1), difference[:, ::-1].cumsum(axis=1))
    return tuple(
        LevelError(*(float(np.abs(kind[level]).sum()) for kind in kinds))
        for level in map(tree.level, range(tree.n_levels))
    )


def stand_in(
    regions: RegionTree, largest_size: int, n_groups: int, first: int, mean_size: float = 2.5
) -> GroupTable:
    """Make a public table to forecast on: groups spread evenly over leaf regions, sizes geometric with a given mean; `first` is 0 or 1.

    It does not depend on the data; a steward who knows a similar public table can use that for a forecast instead.
    """
    shares = np.zeros(largest_size + 1 - first)
    shares[1 - first :] = (1 - 1 / mean_size) ** np.arange(largest_size)
    n_leaves = len(regions.leaf_labels)
    wanted = np.outer(np.full(n_leaves, n_groups / n_leaves), shares / shares.sum())
    # Rounding cumulative numbers keeps the total and drops no size systematically.
    rounded = np.diff(np.rint(wanted.ravel().cumsum()), prepend=0).astype(np.int64)
    return GroupTable(regions, regions.tree.sum_up(rounded.reshape(wanted.shape)), first)


def forecast(table: GroupTable, plan: SizePlan, runs: int = 5, run: Run | None = None) -> Forecast:
    """Average errors of a plan on a public table: a stand-in before the budget is spent, the release itself afterwards."""
    tree = plan.regions.tree
    before, after = [], []
    for seed in range(runs):
        if run is not None:
            run.report("forecasting errors", seed, runs)
        noisy = measured(table, plan, KeyedNoise.from_seed(seed))
        before.append(errors(sizes_of(noisy.rows, plan.query, tree), table.counts, tree))
        after.append(errors(plan.mechanism.solve(noisy, run), table.counts, tree))
    return Forecast(averages(before), averages(after))


def averages(runs: list[tuple[LevelError, ...]]) -> tuple[LevelError, ...]:
    """The mean errors of every level over runs."""
    return tuple(
        LevelError(
            fmean(level.l1 for level in levels),
            fmean(level.emd for level in levels),
            fmean(level.suffix_emd for level in levels),
        )
        for levels in zip(*runs, strict=True)
    )
