"""Simulated releases: the result of measuring and estimating on a table that is not confidential.

The table stands in for the truth: an earlier census or release, or a table drawn from the public domain or from the measurements. Noise
comes from seeds, no file is written and no budget is spent.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from louver._arrays import Ints
from louver.engine.engines import ONE_CORE, Engine
from louver.privacy.noise import KeyedNoise, Nonce, perturb
from louver.run import Run
from louver.topdown.estimation.batches import Span
from louver.topdown.estimation.bayes import learning_stride
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.estimators import BAYES
from louver.topdown.estimation.levels import LevelReport, estimate_by_level
from louver.topdown.measuring.noise_plan import QueryPlan
from louver.topdown.measuring.true_counts import batches_of, invariant_values
from louver.topdown.problem import NoisyCounts, Problem, SparseLevel, add_levels

__all__ = ["AssumedTruth", "Simulated", "SimulatedCounts", "public_seed"]

KEPT_BATCHES = 4  # so that families read one by one do not draw a whole batch each


def public_seed(*parts: str) -> int:
    """A seed that anyone can reproduce from words, far larger than the seeds that people choose."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")


class _BatchedCounts(ABC):
    """Noisy answers generated batch by batch, reproducibly; any regions of one batch can be read."""

    def __init__(self, plan: QueryPlan) -> None:
        self._batches = batches_of(plan)
        self._starts = [[start for start, _ in batches] for batches in self._batches]
        self._batch = lru_cache(KEPT_BATCHES)(self._read_batch)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_batch"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._batch = lru_cache(KEPT_BATCHES)(self._read_batch)

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for regions of one batch."""
        number = bisect_right(self._starts[level], start) - 1
        first = self._starts[level][number]
        return tuple(answers[start - first : stop - first] for answers in self._batch(level, number))

    @abstractmethod
    def _read_batch(self, level: int, number: int) -> tuple[Ints, ...]:
        """Answers of one batch."""


class SimulatedCounts(_BatchedCounts):
    """Noisy answers drawn from a seed on demand: `NoisyCounts` without a file.

    Parameters
    ----------
    plan : QueryPlan
    truth : tuple of SparseLevel
        Histograms of every level, the root first.
    seed : int
    """

    def __init__(self, plan: QueryPlan, truth: tuple[SparseLevel, ...], seed: int) -> None:
        super().__init__(plan)
        self._measured, self._truth, self._seed = plan.measured, truth, seed
        self._by_region, self._n_cells = plan.by_region, plan.design.n_cells

    def _read_batch(self, level: int, number: int) -> tuple[Ints, ...]:
        start, stop = self._batches[level][number]
        part = self._truth[level].part(start, stop)
        if not self._measured[level]:
            return (np.zeros((stop - start, self._n_cells), np.int64),)
        answers = []
        for place, measured in enumerate(self._measured[level]):
            true, nonce = measured.query.answer(part), Nonce(level, place, number)
            relative = np.ones(stop - start)
            if self._by_region:
                relative = self._by_region[level].kinds[self._by_region[level].kind_of[start:stop], place]
            noisy = np.zeros_like(true)
            for precision in np.unique(relative[relative > 0]):
                noise = KeyedNoise.from_seed(self._seed)
                own = measured.distribution if precision == 1.0 else measured.departing(precision)
                here = relative == precision
                noisy[here] = perturb(true, own, noise, nonce)[here]
            answers.append(noisy)
        return tuple(answers)


class _MeasuredCounts(_BatchedCounts):
    """Answers that are read in whole batches only."""

    def __init__(self, plan: QueryPlan, noisy: NoisyCounts) -> None:
        super().__init__(plan)
        self._noisy = noisy

    def _read_batch(self, level: int, number: int) -> tuple[Ints, ...]:
        return self._noisy.read(level, *self._batches[level][number])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """The result of one simulation.

    Parameters
    ----------
    levels : tuple of SparseLevel
        Estimates, the root first; at the last level, of the simulated leaves only.
    leaves : ndarray of int64
        Which leaves these are.
    noisy : SimulatedCounts
        The noisy answers used for the estimates.
    """

    levels: tuple[SparseLevel, ...]
    leaves: Ints
    noisy: SimulatedCounts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssumedTruth:
    """Histograms of all regions that stand in for the truth, and the estimation problem with their invariants."""

    plan: QueryPlan
    levels: tuple[SparseLevel, ...]
    problem: Problem

    @classmethod
    def of(cls, plan: QueryPlan, leaves: SparseLevel) -> AssumedTruth:
        """Build from the histograms of all leaves, which agree with public knowledge."""
        levels = add_levels(plan.design.spine, leaves, plan.design.n_cells)
        return cls(plan=plan, levels=levels, problem=plan.problem(invariant_values(plan, levels)))

    def drawn(
        self,
        noisy: NoisyCounts,
        seed: int,
        *,
        among: Sequence[Span] | None = None,
        engine: Engine = ONE_CORE,
        run: Run | None = None,
    ) -> AssumedTruth:
        """Draw another truth for the same public knowledge, from the distribution that "bayes" learns from the noisy answers.

        A release is smoother than the truth it was made from; a draw is equally rough.

        Parameters
        ----------
        noisy : NoisyCounts
        seed : int
        among : sequence of Span, optional
            Parents whose leaves are drawn; other parents keep everyone in their first leaf, which suffices for sums. All by default.
        """
        steps = estimate_by_level(
            self.problem,
            _MeasuredCounts(self.plan, noisy),
            estimator=BAYES.name,
            shrink=None,
            kept_margin=self.plan.kept_margin(),
            engine=engine,
            among=among,
            draws=Draws(seed % 2**64),
            doing="drawing",
            run=run,
        )
        found = [level for level, _ in steps]
        leaves = found[-1] if among is None else self._spread(found[-1], found[-2], self._leaves(among))
        levels = add_levels(self.problem.spine, leaves, self.plan.design.n_cells)
        return AssumedTruth(plan=self.plan, levels=levels, problem=self.problem)

    def simulate(
        self,
        seed: int,
        *,
        among: Sequence[Span] | None = None,
        engine: Engine = ONE_CORE,
        run: Run | None = None,
    ) -> Simulated:
        """Measure and estimate with the plan's estimator.

        Parameters
        ----------
        seed : int
        among : sequence of Span, optional
            Parents whose leaves are estimated; all by default. The regions above are always all estimated.
        engine : Engine
            Where batches are processed.
        run : Run, optional
            Receives progress and is checked for cancellation.
        """
        noisy = SimulatedCounts(self.plan, self.levels, seed)
        steps = self.steps(noisy, among, engine, run)
        return Simulated(levels=tuple(level for level, _ in steps), leaves=self._leaves(among), noisy=noisy)

    def steps(
        self, noisy: SimulatedCounts, among: Sequence[Span] | None, engine: Engine, run: Run | None
    ) -> Iterator[tuple[SparseLevel, LevelReport]]:
        """Estimates level by level."""
        design = self.plan.design
        return estimate_by_level(
            self.problem,
            noisy,
            estimator=design.options.estimator,
            shrink=design.shrink,
            kept_margin=self.plan.kept_margin(),
            engine=engine,
            among=among,
            doing="simulating",
            run=run,
        )

    def families(self, n_leaves: int, *, largest: int = 0, turn: int = 0) -> list[Span] | None:
        """Parents of the largest leaves and of those that a prior is learnt from, and every k-th parent; None if all of them are roots.

        Parameters
        ----------
        n_leaves : int
            Approximate number of leaves that they have.
        largest : int
            Number of the largest leaves whose families are included.
        turn : int
            Different values select different families.
        """
        spine = self.problem.spine
        if spine.n_levels == 1:
            return None
        large = np.argsort(-self.levels[-1].people, kind="stable")[:largest]
        first = set(np.searchsorted(spine.starts[-1], large, side="right") - 1)
        learnt = learning_stride(self.problem, spine.n_levels - 1)
        stride = max(1, spine.sizes[-1] // n_leaves)
        return [
            (parent, parent + 1)
            for parent in range(spine.sizes[-2])
            if parent in first or parent % learnt == 0 or parent % stride == turn % stride
        ]

    def _leaves(self, among: Sequence[Span] | None) -> Ints:
        """Leaves of the given parents; of all by default."""
        if among is None:
            return np.arange(self.problem.spine.sizes[-1])
        starts = self.problem.spine.starts[-1]
        return np.concatenate([np.arange(starts[first], starts[last]) for first, last in among])

    def _spread(self, leaves: SparseLevel, parents: SparseLevel, chosen: Ints) -> SparseLevel:
        """Histograms of all leaves: chosen leaves keep their own; in other families, the first leaf holds everyone."""
        starts, nobody = self.problem.spine.starts[-1], SparseLevel.from_dense(np.zeros((1, 1), np.int64))
        place = np.full(self.problem.spine.sizes[-1], leaves.n_regions + parents.n_regions)
        place[starts[:-1]] = leaves.n_regions + np.arange(parents.n_regions)
        place[chosen] = np.arange(leaves.n_regions)
        return SparseLevel.concatenate([leaves, parents, nobody]).take(place)
