"""The estimators by name; they differ in the evidence to which the children of a parent are fitted.

All three solve the same constrained least squares and round the solution in the same way. They differ in the evidence: the children's
own answers ("plain", Algorithm 1 as the paper has it), the measurements of their whole subtrees ("least-squares"), or posterior means of
that with a prior learnt for each level ("bayes").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from louver.engine.engines import Engine, Shared
from louver.optim.aside import Call
from louver.run import Run
from louver.topdown.estimation.batches import LevelSource, Span
from louver.topdown.estimation.bayes import FEWEST, LevelPrior, learn_level, prior_kernels
from louver.topdown.estimation.evidence import TreeEvidence, differs_by_region, gather_evidence
from louver.topdown.problem import NoisyCounts, Problem

__all__ = ["BAYES", "ESTIMATORS", "LEAST_SQUARES", "PLAIN", "Estimator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """A way to estimate; this base class uses the answers of each level alone.

    Attributes
    ----------
    name : str
        Its name in the option.
    uses_tree : bool
        Whether a region is also fitted to what is measured above and below it.
    learns_prior : bool
        Whether a prior is learnt for levels with enough regions.
    """

    name: str
    uses_tree: bool = False
    learns_prior: bool = False

    def gather_evidence(
        self, problem: Problem, noisy: NoisyCounts, *, engine: Engine, run: Run | None
    ) -> TreeEvidence | None:
        """The evidence of the subtree of each region; None if only the region's own answers are used."""
        if differs_by_region(problem):
            return gather_evidence(problem, noisy, engine=engine, run=run, is_climbing=False)
        return None

    def has_prior(self, sizes: Sequence[int], level: int) -> bool:
        """Whether a prior is learnt for a level of a spine with the given number of regions at each level."""
        return False

    def kernels(self, problem: Problem) -> Sequence[Call]:
        """Kernels that a prior needs, with arguments of the types they are called with."""
        return ()

    def learn(
        self,
        problem: Problem,
        tree: TreeEvidence | None,
        level: int,
        source: Shared[LevelSource],
        batches: Sequence[Span],
        *,
        shrink: float | None,
        engine: Engine,
        run: Run | None,
    ) -> LevelPrior | None:
        """The prior of a level, or None; parameters as for `learn_level`."""
        return None


class _TreeEstimator(Estimator):
    """Fits regions to the evidence of the whole tree."""

    __slots__ = ()

    def gather_evidence(
        self, problem: Problem, noisy: NoisyCounts, *, engine: Engine, run: Run | None
    ) -> TreeEvidence | None:
        return gather_evidence(problem, noisy, engine=engine, run=run)


class _BayesEstimator(_TreeEstimator):
    """Replaces the evidence of the tree by posterior means."""

    __slots__ = ()

    def has_prior(self, sizes: Sequence[int], level: int) -> bool:
        return level > 0 and sizes[level] >= FEWEST

    def kernels(self, problem: Problem) -> Sequence[Call]:
        levels = range(problem.spine.n_levels)
        return prior_kernels(problem, [i for i in levels if self.has_prior(problem.spine.sizes, i)])

    def learn(
        self,
        problem: Problem,
        tree: TreeEvidence | None,
        level: int,
        source: Shared[LevelSource],
        batches: Sequence[Span],
        *,
        shrink: float | None,
        engine: Engine,
        run: Run | None,
    ) -> LevelPrior | None:
        if tree is None or not self.has_prior(problem.spine.sizes, level):
            return None
        return learn_level(problem, tree, level, source, batches, shrink=shrink, engine=engine, run=run)


BAYES = _BayesEstimator(name="bayes", uses_tree=True, learns_prior=True)
LEAST_SQUARES = _TreeEstimator(name="least-squares", uses_tree=True)
PLAIN = Estimator(name="plain")

ESTIMATORS = {estimator.name: estimator for estimator in (BAYES, LEAST_SQUARES, PLAIN)}
