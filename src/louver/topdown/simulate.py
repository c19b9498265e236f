"""Simulated releases: what measuring and estimating make of a table that may be looked at.

The table stands in for the truth: an earlier census or release, one drawn from the public domain, or the estimate itself. Noise
comes from seeds, no file is written, and nothing is spent.
"""

from __future__ import annotations

import hashlib
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
from louver.topdown.batches import Span
from louver.topdown.bayes import learning_stride
from louver.topdown.estimation import Estimate, LevelReport, estimate_by_level
from louver.topdown.measuring import batches_of, invariant_values
from louver.topdown.plan import QueryPlan
from louver.topdown.problem import Problem, SparseLevel, add_levels

__all__ = ["AssumedTruth", "Simulated", "SimulatedCounts", "public_seed", "simulate"]

KEPT_BATCHES = 4  # so that families read one by one do not draw a whole batch each


def public_seed(*parts: str) -> int:
    """A seed that anybody can make again from words, far beyond those that people choose."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest(), "big")


class SimulatedCounts:
    """Noisy answers drawn from a seed whenever they are asked for, the same each time: `NoisyCounts` without a file.

    Parameters
    ----------
    plan : QueryPlan
    truth : tuple of SparseLevel
        Histograms of every level, the root first.
    seed : int
    """

    def __init__(self, plan: QueryPlan, truth: tuple[SparseLevel, ...], seed: int) -> None:
        self._measured, self._truth, self._seed = plan.measured, truth, seed
        self._batches = batches_of(plan)
        self._starts = [[start for start, _ in batches] for batches in self._batches]
        self._batch = lru_cache(KEPT_BATCHES)(self._drawn)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_batch"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._batch = lru_cache(KEPT_BATCHES)(self._drawn)

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for regions of one batch."""
        number = bisect_right(self._starts[level], start) - 1
        first = self._starts[level][number]
        return tuple(answers[start - first : stop - first] for answers in self._batch(level, number))

    def _drawn(self, level: int, number: int) -> tuple[Ints, ...]:
        part = self._truth[level].part(*self._batches[level][number])
        noise = KeyedNoise.from_seed(self._seed)
        return tuple(
            perturb(measured.query.answer(part), measured.distribution, noise, Nonce(level, place, number))
            for place, measured in enumerate(self._measured[level])
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """What came out of one simulation.

    Parameters
    ----------
    levels : tuple of SparseLevel
        Estimates, the root first; at the last level of the simulated leaves alone.
    leaves : ndarray of int64
        Which leaves these are.
    noisy : SimulatedCounts
        What was estimated from.
    """

    levels: tuple[SparseLevel, ...]
    leaves: Ints
    noisy: SimulatedCounts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AssumedTruth:
    """Histograms of all regions that stand in for the truth, and the estimation problem with the invariants that they have."""

    plan: QueryPlan
    levels: tuple[SparseLevel, ...]
    problem: Problem

    @classmethod
    def of(cls, plan: QueryPlan, leaves: SparseLevel) -> AssumedTruth:
        """From the histograms of all leaves; they agree with what is publicly known."""
        levels = add_levels(plan.design.spine, leaves, plan.design.n_cells)
        return cls(plan=plan, levels=levels, problem=plan.problem(invariant_values(plan, levels)))

    def simulate(
        self,
        seed: int,
        *,
        n_leaves: int | None = None,
        largest: int = 0,
        turn: int = 0,
        engine: Engine = ONE_CORE,
        run: Run | None = None,
    ) -> Simulated:
        """Measure and estimate with the plan's estimator.

        Parameters
        ----------
        seed : int
        n_leaves : int, optional
            About how many leaves are estimated, whole families of them; all by default. The regions above are always all there.
        largest : int
            Families of so many of the largest leaves are among them.
        turn : int
            Another one takes other families.
        engine : Engine
            Where batches are worked on.
        run : Run, optional
            Told how far it is, and asked whether to go on.
        """
        noisy = SimulatedCounts(self.plan, self.levels, seed)
        among = None if n_leaves is None else list(self._families(n_leaves, turn, largest))
        leaves = np.arange(self.problem.spine.sizes[-1])
        if among:
            starts = self.problem.spine.starts[-1]
            leaves = np.concatenate([np.arange(starts[first], starts[last]) for first, last in among])
        steps = self.steps(noisy, among or None, engine, run)
        return Simulated(levels=tuple(level for level, _ in steps), leaves=leaves, noisy=noisy)

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

    def _families(self, n_leaves: int, turn: int, largest: int) -> Iterator[Span]:
        """Parents of the leaves that are estimated: of the largest, those a prior is learnt from, and every so many-th."""
        spine = self.problem.spine
        large = np.argsort(-self.levels[-1].people, kind="stable")[:largest]
        first = (
            set(np.searchsorted(spine.starts[-1], large, side="right") - 1) if spine.n_levels > 1 else set()
        )
        learnt = learning_stride(self.problem, spine.n_levels - 1)
        stride = max(1, spine.sizes[-1] // n_leaves)
        for parent in range(spine.sizes[-2] if spine.n_levels > 1 else 0):
            if parent in first or parent % learnt == 0 or parent % stride == turn % stride:
                yield parent, parent + 1


def simulate(
    plan: QueryPlan,
    leaves: SparseLevel,
    seeds: Sequence[int],
    *,
    engine: Engine = ONE_CORE,
    run: Run | None = None,
) -> Iterator[Estimate]:
    """Release a table once for each seed, as the plan would release the records.

    Parameters
    ----------
    plan : QueryPlan
    leaves : SparseLevel
        Histograms of all leaves that stand in for the truth; they agree with what is publicly known.
    seeds : sequence of int
    """
    truth = AssumedTruth.of(plan, leaves)
    for seed in seeds:
        noisy = SimulatedCounts(plan, truth.levels, seed)
        yield Estimate.of(truth.steps(noisy, None, engine, run))
