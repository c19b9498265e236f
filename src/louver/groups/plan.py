"""The plan of the measurements: noise and loss of every level, and shares of the budget.

A plan is public. It is made from the domain, the budget and the options, never from the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import BudgetError, InputError
from louver.groups.mechanisms import Mechanism
from louver.groups.problem import (
    GroupTable,
    NoisyAnswers,
    SizeQuery,
    Total,
    answers,
    first_size,
    sensitivity,
    squared_sensitivity,
    ways_to_change,
)
from louver.optim.trees import LevelTree
from louver.privacy.budget import Loss, Measure, compose_sequential, split
from louver.privacy.composition import largest_rho
from louver.privacy.distributions import Distribution, noise_for
from louver.privacy.measurements import NoisyBatch, TrueBatch
from louver.privacy.noise import Noise, Nonce

__all__ = [
    "LevelPlan",
    "SizePlan",
    "chosen_shares",
    "equal_shares",
    "level_noise",
    "make_plan",
    "noisy_answers",
    "priced",
    "true_batches",
]

BATCH_CELLS = 1 << 22
"""Maximum number of cells measured at once: 32 MiB of true counts."""

SHARE_PARTS = 1000
"""Chosen shares are multiples of a thousandth."""

LEAST_PARTS = 10
"""Minimum share of a level, in thousandths."""

LARGEST_LOSS = 3.0
"""Factor by which chosen shares may increase a level's forecast noise over equal ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPlan:
    """The measurement of one level."""

    name: str
    n_regions: int
    share: Fraction
    loss: Loss
    sensitivity: int
    squared_sensitivity: int
    distribution: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlan:
    """The measurements of all levels.

    Attributes
    ----------
    mechanism : Mechanism
    query : SizeQuery
        The counts to which the mechanism adds noise with this kind of total.
    regions : RegionTree
    first_size, largest_size : int
        Sizes that are counted separately.
    total : Total
    levels : tuple of LevelPlan
    is_private : bool
        False if the noise is smaller than the sensitivity requires.
    promise : tuple of Fraction or None
        Epsilon and delta of this release alone, if the noise was chosen by composing.
    """

    mechanism: Mechanism
    query: SizeQuery
    regions: RegionTree
    first_size: int
    largest_size: int
    total: Total
    levels: tuple[LevelPlan, ...]
    is_private: bool = True
    promise: tuple[Fraction, Fraction] | None = None

    @property
    def n_sizes(self) -> int:
        return self.largest_size + 1 - self.first_size

    @property
    def loss(self) -> Loss:
        """The privacy loss of all levels together."""
        return compose_sequential([level.loss for level in self.levels])

    @property
    def not_protected(self) -> tuple[str, ...]:
        """What a public total reveals, in words: everything on which neighbours agree."""
        if self.total is Total.NOISY:
            return ()
        return (
            "whether a person who is alone in a unit is there at all (public total)",
            "how many units a region has: no noise of this budget hides it (public total)",
        )

    @property
    def deviations(self) -> tuple[float, ...]:
        """Standard deviation of one count of every level once levels are weighted; monotony makes sparse sizes more accurate."""
        accuracies = [1 / max(1e-3, math.sqrt(level.distribution.variance)) for level in self.levels]
        sizes = self.regions.tree.level_sizes
        noise = level_noise(accuracies, sizes, is_weighted=self.mechanism.is_weighted)
        return tuple(total / n for total, n in zip(noise, sizes, strict=True))


def make_plan(
    mechanism: Mechanism,
    regions: RegionTree,
    largest_size: int,
    budget: Loss,
    shares: Sequence[Fraction],
    *,
    total: Total,
    smallest_size: int = 0,
    largest_quantity: int = 1,
    as_published: bool = False,
    promise: tuple[Fraction, Fraction] | None = None,
) -> SizePlan:
    """Choose the noise of every level.

    Parameters
    ----------
    mechanism : Mechanism
    regions : RegionTree
    largest_size : int
        Larger units are counted at this size.
    budget : Loss
        Epsilon gives discrete Laplace noise, rho discrete Gaussian noise.
    shares : sequence of Fraction
        One for each level, root first; they sum to one.
    total : Total
    smallest_size : int
        Smaller units are counted at this size; 0 or 1.
    largest_quantity : int
        Maximum that one record adds to its unit.
    as_published : bool
        Whether to use the noise printed in Fioretto et al. (2021), which for M_c^ch is not private (ERRATA G1).
    promise : tuple of Fraction, optional
        Epsilon and delta that the levels together may cost; the budget then follows from them.

    Notes
    -----
    **Neighbours**: those of `budget`. **Sensitivity**: `problem.sensitivity`. **Privacy**: levels compose sequentially, regions
    of a level in parallel; `docs/proofs/groups.md`.
    """
    query = mechanism.query if total is Total.PUBLIC else mechanism.open_query
    if query is None:
        message = f"{mechanism.name} needs a public total: add --total public, or use louver or M_H^dp."
        raise InputError(message, option="--total")
    if len(shares) != regions.tree.n_levels:
        raise BudgetError(
            f"{len(shares)} budget shares are given for {regions.tree.n_levels} levels; give one for each of {', '.join(regions.names)}."
        )
    parts = split(budget, shares)
    first = first_size(total, smallest_size)
    true = [
        sensitivity(
            query,
            budget.neighbours,
            total,
            n_level_regions=n_regions,
            n_sizes=largest_size + 1 - first,
            largest_quantity=largest_quantity,
        )
        for n_regions in regions.tree.level_sizes
    ]
    if promise is not None:
        rho = largest_rho(*promise, shares, ways_to_change(query, budget.neighbours, true))
        parts = split(Loss(rho, Measure.RHO, budget.neighbours), shares)
    used = [1] * len(true) if as_published and query is SizeQuery.CHAIN else true
    levels = []
    for name, n_regions, loss, share, l1 in zip(
        regions.names, regions.tree.level_sizes, parts, shares, used, strict=True
    ):
        squared = squared_sensitivity(query, budget.neighbours, l1)
        levels.append(
            LevelPlan(
                name=name,
                n_regions=n_regions,
                share=share,
                loss=loss,
                sensitivity=l1,
                squared_sensitivity=squared,
                distribution=noise_for(loss, l1=l1, l2_squared=squared),
            )
        )
    return SizePlan(
        mechanism=mechanism,
        query=query,
        regions=regions,
        first_size=first,
        largest_size=largest_size,
        total=total,
        levels=tuple(levels),
        is_private=used == true,
        promise=promise,
    )


def priced(plan: SizePlan, noise: Noise) -> SizePlan:
    """The same plan priced by a source of noise: every level costs at least what the source states."""
    levels = []
    for level in plan.levels:
        changed = level.distribution.sensitivity(level.sensitivity, level.squared_sensitivity)
        price = noise.price(level.distribution, changed)
        levels.append(replace(level, loss=replace(level.loss, amount=max(level.loss.amount, price))))
    return replace(plan, levels=tuple(levels))


def equal_shares(n_levels: int) -> tuple[Fraction, ...]:
    return (Fraction(1, n_levels),) * n_levels


def chosen_shares(
    tree: LevelTree, measure: Measure = Measure.EPSILON, *, is_weighted: bool = True
) -> tuple[Fraction, ...]:
    """Shares that minimise the forecast L1 error over all levels, with no level more than three times as bad as with equal shares.

    Parameters
    ----------
    tree : LevelTree
    measure : Measure
        Noise is inversely proportional to the share for epsilon, and to its square root for rho.
    is_weighted : bool
        Whether post-processing weights levels by their noise, so that regions are also measured through their children.

    Notes
    -----
    The forecast is `level_noise`; it depends on the tree alone. Minimising its sum alone would give nearly everything to the lowest level.

    Examples
    --------
    >>> [str(share) for share in chosen_shares(LevelTree.from_counts([[4], [25] * 4]))]
    ['43/500', '1/100', '113/125']
    """
    sizes = tree.level_sizes
    power = 1.0 if measure is Measure.EPSILON else 0.5

    def forecast(parts: Sequence[int]) -> list[float]:
        return level_noise([part**power for part in parts], sizes, is_weighted=is_weighted)

    parts = [SHARE_PARTS // len(sizes)] * len(sizes)
    parts[-1] += SHARE_PARTS - sum(parts)
    most = [LARGEST_LOSS * noise for noise in forecast(parts)]
    step = SHARE_PARTS // 4
    while step >= 1:
        better = _best_move(parts, step, forecast, most)
        if better is None:
            step //= 2
        else:
            parts = better
    return tuple(Fraction(part, SHARE_PARTS) for part in parts)


def level_noise(
    accuracies: Sequence[float], sizes: Sequence[int], *, is_weighted: bool = True
) -> list[float]:
    """Forecast noise of every level: its regions times the standard deviation of one count.

    Parameters
    ----------
    accuracies : sequence of float
        One over the standard deviation of each level's own noise.
    sizes : sequence of int
        Regions of every level; a region is assumed to have the average number of children of its level.
    is_weighted : bool
        Whether the noise is that after generalised least squares over the tree, or that of each level by itself.

    Examples
    --------
    >>> [round(noise, 3) for noise in level_noise([1, 1], [1, 4])]      # root: variance 1 / (1 + 1 / 4)
    [0.894, 3.578]
    """
    if not is_weighted:
        return [n / accuracy for n, accuracy in zip(sizes, accuracies, strict=True)]
    children = [below / here for here, below in pairwise(sizes)]
    precision = [accuracy * accuracy for accuracy in accuracies]
    for k in range(len(sizes) - 2, -1, -1):
        precision[k] += precision[k + 1] / children[k]
    variance = [1 / precision[0]]
    for n, p in zip(children, precision[1:], strict=True):
        # The information of the children except for their sum, which is the parent's.
        variance.append((1 - 1 / n) / p + variance[-1] / n**2)
    return [n * math.sqrt(v) for n, v in zip(sizes, variance, strict=True)]


def _best_move(
    parts: list[int], step: int, forecast: Callable[[Sequence[int]], list[float]], most: list[float]
) -> list[int] | None:
    """Move parts from one level to one or two others so that the summed noise falls most; None if no move lowers it."""
    best, least = None, sum(forecast(parts))
    for giver, first, second in product(range(len(parts)), repeat=3):
        moved = parts.copy()
        moved[giver] -= 2 * step
        moved[first] += step
        moved[second] += step
        if moved[giver] < LEAST_PARTS:
            continue
        noise = forecast(moved)
        if sum(noise) < least and all(n <= m for n, m in zip(noise, most, strict=True)):
            best, least = moved, sum(noise)
    return best


def true_batches(table: GroupTable, plan: SizePlan) -> Iterator[TrueBatch]:
    """Yield the exact answers to the queries of a plan, a few regions of one level at a time. Confidential."""
    tree = plan.regions.tree
    rows = answers(table.counts, plan.query, tree)
    names = plan.regions.node_names
    step = max(1, BATCH_CELLS // plan.n_sizes)
    for k, level in enumerate(plan.levels):
        start, stop = int(tree.level_start[k]), int(tree.level_start[k + 1])
        for batch, first in enumerate(range(start, stop, step)):
            last = min(first + step, stop)
            yield TrueBatch(
                level=level.name,
                query=str(plan.query),
                nonce=Nonce(k, 0, batch),
                nodes=names[first:last],
                true_counts=rows[first:last],
                distribution=level.distribution,
            )


def noisy_answers(batches: Iterator[NoisyBatch], plan: SizePlan, n_groups: int | None) -> NoisyAnswers:
    """Reassemble the measurements into the input of post-processing."""
    rows: Ints = np.concatenate([batch.noisy_counts for batch in batches])
    variances = tuple(level.distribution.variance for level in plan.levels)
    return NoisyAnswers(plan.regions.tree, rows, variances, n_groups)
