"""Simulated releases: what measuring and estimating make of a table that may be looked at.

The table stands in for the truth: an earlier census or release, one drawn from the public domain, or the estimate itself. Noise
comes from seeds, no file is written, and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from louver._arrays import Ints
from louver.privacy.noise import KeyedNoise, Nonce, perturb
from louver.run import Run
from louver.topdown.estimation import Estimate, estimate
from louver.topdown.measuring import batches_of, invariant_values
from louver.topdown.plan import QueryPlan
from louver.topdown.problem import SparseLevel, add_levels

__all__ = ["SimulatedCounts", "simulate"]


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
        self._plan, self._truth, self._seed = plan, truth, seed
        self._number = {
            (level, start): number
            for level, batches in enumerate(batches_of(plan))
            for number, (start, _) in enumerate(batches)
        }

    def read(self, level: int, start: int, stop: int) -> tuple[Ints, ...]:
        """Answers of the level's queries for one batch of regions."""
        part = self._truth[level].part(start, stop)
        noise, number = KeyedNoise.from_seed(self._seed), self._number[level, start]
        return tuple(
            perturb(measured.query.answer(part), measured.distribution, noise, Nonce(level, place, number))
            for place, measured in enumerate(self._plan.measured[level])
        )


def simulate(
    plan: QueryPlan,
    leaves: SparseLevel,
    seeds: Sequence[int],
    *,
    workers: int = 1,
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
    design = plan.design
    truth = add_levels(design.spine, leaves, design.n_cells)
    problem = plan.problem(invariant_values(plan, truth))
    for seed in seeds:
        yield estimate(
            problem,
            SimulatedCounts(plan, truth, seed),
            estimator=design.options.estimator,
            shrink=design.shrink,
            kept_margin=plan.kept_margin(),
            workers=workers,
            run=run,
        )
