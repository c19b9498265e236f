"""Measurements and estimates simulated from an assumed truth: how far off a release of a plan would be.

The assumed truth is public: a stand-in before anything is spent, a release itself afterwards. Its answers get noise of the planned
distributions under keys that everybody knows, and are estimated as measurements are. No ledger, no records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
from louver.privacy.noise import KeyedNoise, Nonce, perturb
from louver.run import Run
from louver.topdown.bayes import learning_stride
from louver.topdown.estimation import Span, estimate_by_level
from louver.topdown.measuring import invariant_values
from louver.topdown.plan import QueryPlan
from louver.topdown.problem import Problem, SparseLevel

__all__ = ["AssumedTruth", "Simulated", "SimulatedCounts", "public_key"]

CHUNK_VALUES = 4_096  # drawn under one nonce


def public_key(*parts: str) -> bytes:
    """A key that anybody can make again, and that no debit and no seed has."""
    return hashlib.sha256("\0".join(("louver simulation", *parts)).encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedCounts:
    """Noisy answers of an assumed truth, drawn whenever they are read, and always the same.

    Parameters
    ----------
    plan : QueryPlan
        What is measured, with which noise.
    levels : tuple of SparseLevel
        Histograms of all regions, the root first.
    key : bytes
        Public.
    """

    plan: QueryPlan
    levels: tuple[SparseLevel, ...]
    key: bytes

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for the regions start to stop."""
        return tuple(
            self._answers(level, place, start, stop) for place in range(len(self.plan.measured[level]))
        )

    def _answers(self, level: int, place: int, start: int, stop: int) -> Ints:
        """One query's answers, chunk by chunk: what a region gets does not depend on what is read with it."""
        measured, histograms = self.plan.measured[level][place], self.levels[level]
        noise = KeyedNoise(self.key, is_private=False)
        n_together = max(1, CHUNK_VALUES // measured.query.n_rows)
        parts = []
        for chunk in range(start // n_together, -(-stop // n_together)):
            first, last = chunk * n_together, min((chunk + 1) * n_together, histograms.n_regions)
            true = measured.query.answer(histograms.part(first, last))
            noisy = perturb(true, measured.distribution, noise, Nonce(level, place, chunk))
            parts.append(noisy[max(start - first, 0) : stop - first])
        return np.concatenate(parts)


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
    """Histograms of all regions, taken for true, and the estimation problem with the invariants that they have.

    Examples
    --------
    AssumedTruth.of(plan, leaves).simulate(public_key("forecast", "0")) has the estimates of all levels, to be compared with
    the `levels` of the assumed truth.
    """

    plan: QueryPlan
    levels: tuple[SparseLevel, ...]
    problem: Problem

    @classmethod
    def of(cls, plan: QueryPlan, leaves: SparseLevel) -> AssumedTruth:
        """From the histograms of the leaves; these must fit the bounds of the plan."""
        levels = [leaves]
        for starts in reversed(plan.design.spine.starts):
            levels.insert(0, levels[0].add_up(starts, plan.design.n_cells))
        truth = tuple(levels)
        return cls(plan=plan, levels=truth, problem=plan.problem(invariant_values(plan, truth)))

    def simulate(
        self,
        key: bytes,
        *,
        n_leaves: int | None = None,
        turn: int = 0,
        workers: int = 1,
        run: Run | None = None,
    ) -> Simulated:
        """Measure and estimate with the plan's estimator.

        Parameters
        ----------
        key : bytes
            Of the noise, from `public_key`; every key gives another simulation.
        n_leaves : int, optional
            About how many leaves are estimated, whole families of them; all by default. Regions above are always all there.
        turn : int
            Another one takes other families.
        workers : int
            Threads; the result does not depend on it.
        run : Run, optional
            Asked whether to go on.
        """
        design = self.plan.design
        noisy = SimulatedCounts(plan=self.plan, levels=self.levels, key=key)
        among = (
            None if n_leaves is None or design.spine.n_levels == 1 else list(self._families(n_leaves, turn))
        )
        steps = estimate_by_level(
            self.problem,
            noisy,
            estimator=design.options.estimator,
            shrink=design.shrink,
            kept_margin=self.plan.kept_margin(),
            workers=workers,
            among=among,
            doing="simulating",
            run=run,
        )
        leaves = np.arange(design.spine.sizes[-1])
        if among is not None:
            starts = design.spine.starts[-1]
            leaves = np.concatenate([np.arange(starts[first], starts[last]) for first, last in among])
        return Simulated(levels=tuple(level for level, _ in steps), leaves=leaves, noisy=noisy)

    def _families(self, n_leaves: int, turn: int) -> Iterator[Span]:
        """Parents of the leaves that are estimated: those a prior is learnt from, and of the others every so many-th."""
        n_parents, n_all = self.problem.spine.sizes[-2:]
        learnt = learning_stride(self.problem, self.problem.spine.n_levels - 1)
        stride = max(1, n_all // n_leaves)
        for parent in range(n_parents):
            if parent % learnt == 0 or parent % stride == turn % stride:
                yield parent, parent + 1
