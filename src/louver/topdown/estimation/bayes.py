"""Empirical Bayes: posterior means of the children's counts, with priors learnt from the measurements of their level.

A child is expected to have the composition of its parent. How far children depart from that is learnt, for all children of a level
together, from the noisy answers and the parents' estimates alone; the records are never opened. The posterior means, each with its
variance, then take the place of the evidence in the constrained least squares, followed by rounding as usual: invariants, bounds, zeros
and sums hold whatever the prior.

Notes
-----
**Privacy**: post-processing of measurements and published data.
**Departs**: from Abowd et al. (2019), whose objective is the measurements alone; that is the estimator "plain".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from louver._arrays import Floats
from louver.engine.engines import Engine, Shared
from louver.optim.aside import Call
from louver.run import Run
from louver.topdown.estimation.batches import LevelSource, Span
from louver.topdown.estimation.bayes_cells import CellPrior, cell_evidence, cell_kernels, learn_cells
from louver.topdown.estimation.bayes_leaves import MOST_LEAVES, LeafPrior, leaf_kernels, learn_leaves
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.entries import Entries
from louver.topdown.estimation.evidence import TreeEvidence
from louver.topdown.estimation.least_squares import solve
from louver.topdown.problem import UNMEASURED, Families, Problem, region_range

__all__ = ["FEWEST", "LevelPrior", "learn_level", "learning_stride", "prior_kernels"]

FEWEST = 20
"""Regions a level must have for a prior to be learnt; smaller levels keep least squares."""

MOST_REGIONS = 4_000  # maximum number of regions from whose cells a prior is learnt

N_HALVINGS = 100
"""Of an interval that holds the multiplier of a sum: far below what numbers can tell apart."""

_Sample = tuple[Families | None, Entries, Floats, Floats]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelPrior:
    """The prior learnt for a level, its regions' people (regions, types) by least squares, and the settings of a draw."""

    prior: CellPrior | LeafPrior
    totals: Floats
    variances: Floats
    shrink: float | None
    draws: Draws | None = None

    def improve(self, problem: Problem, families: Families, run: Run) -> Families:
        """The same families with posterior means for evidence, or with one draw of the posteriors."""
        own = slice(families.first_child, families.first_child + int(families.child_start[-1]))
        entries = Entries.of(problem, families, self.totals[own])
        prior, draws = self.prior, self.draws
        if isinstance(prior, LeafPrior):
            evidence = (
                prior.improve(problem, families, entries, self.shrink, run)
                if draws is None
                else prior.draw(problem, families, entries, draws, run)
            )
        else:
            variances = np.broadcast_to(self.variances, len(self.totals))[own]
            evidence = (
                prior.improve(problem, families, entries, variances, self.shrink)
                if draws is None
                else prior.draw(problem, families, entries, variances, draws)
            )
        return replace(families, evidence=evidence)


def learn_level(
    problem: Problem,
    tree: TreeEvidence,
    level: int,
    source: Shared[LevelSource],
    batches: Sequence[Span],
    *,
    shrink: float | None,
    engine: Engine,
    run: Run | None = None,
) -> LevelPrior:
    """Learn a level's prior: one pass over its batches, least squares where totals are needed, then EM on a sample.

    Parameters
    ----------
    problem : Problem
    tree : TreeEvidence
    level : int
        Not the root.
    source : Shared of LevelSource
        Makes the families of a batch, with the tree's evidence.
    batches : sequence
    shrink : float or None
        Standard deviations by which a cell of small share may be moved below its evidence; None for any.
    engine : Engine
    run : Run, optional
        Checked for cancellation.
    """
    is_last, variances = _is_leaf_prior(problem, level), tree.cell_variance[level]
    looking = engine.map(partial(_look_at_batch, source, engine.share(variances)), batches, run)
    totals = np.zeros((problem.spine.sizes[level], problem.implied.n_types))
    samples: list[_Sample] = []
    for span, (own, sample) in zip(batches, looking, strict=True):
        totals[slice(*region_range(problem.spine, level, span))] = own
        samples += [sample] if sample is not None else []
    prior: CellPrior | LeafPrior
    if is_last:
        prior = learn_leaves(
            problem,
            problem.workloads[level],
            [(families, entries) for families, entries, _, _ in samples if families is not None],
            engine,
            run,
        )
    else:
        prior = learn_cells(problem, [(entries, values, noise) for _, entries, values, noise in samples])
    return LevelPrior(prior=prior, totals=totals, variances=variances, shrink=shrink)


def _look_at_batch(
    source: Shared[LevelSource], variances: Shared[Floats], span: Span, run: Run
) -> tuple[Floats, _Sample | None]:
    """The data of one batch for learning a prior: all totals, and the sampled entries, if any."""
    problem, level = source.value.known.value.problem, source.value.level
    is_last, every = _is_leaf_prior(problem, level), learning_stride(problem, level)
    start, stop = region_range(problem.spine, level, span)
    totals = np.zeros((stop - start, problem.implied.n_types))
    is_sampled = -(-span[0] // every) * every < span[1]
    if is_last and not is_sampled:
        return totals, None
    families = source.value.gather(span, run)
    if not is_last:
        totals = _totals(problem, families)
    if not is_sampled:
        return totals, None
    entries = Entries.of(problem, families, totals)
    entries = entries.part((families.first_parent + entries.family) % every == 0)
    if is_last:
        own = families.evidence.weights[families.evidence.detailed]
        if len(own) > 1:  # leaves without answers say nothing about a prior
            entries = entries.part(own[entries.child, 0] > UNMEASURED * own.max())
        return totals, (families, entries, np.zeros(0), np.zeros(0)) if len(entries.child) else None
    variance = np.broadcast_to(variances.value, problem.spine.sizes[level])[start:stop]
    values, noise, _ = cell_evidence(problem, families, entries, variance)
    return totals, (None, entries, values, noise)


def prior_kernels(problem: Problem, levels: Sequence[int]) -> list[Call]:
    """Kernels that the priors of these levels need, with arguments of the types they are called with."""
    kinds = {_is_leaf_prior(problem, level) for level in levels}
    return [*(cell_kernels() if False in kinds else ()), *(leaf_kernels() if True in kinds else ())]


def learning_stride(problem: Problem, level: int) -> int:
    """A prior of a level is learnt from the children of every n-th parent."""
    most = MOST_LEAVES if _is_leaf_prior(problem, level) else MOST_REGIONS
    return max(1, -(-problem.spine.sizes[level] // most))


def _is_leaf_prior(problem: Problem, level: int) -> bool:
    is_last = level == problem.spine.n_levels - 1
    return is_last and not problem.has_exact_leaves and problem.workloads[level].is_even


def _totals(problem: Problem, families: Families) -> Floats:
    """People of the children by type (children, types): least squares over cells that are not negative.

    In published measurements thousands of cells are measured where few people are. Setting those that were measured below zero to zero
    moves totals that are known much better, so that these are least squares over totals alone there, and cells only tell the types.
    """
    n_children = int(families.child_start[-1])
    entries = Entries.of(problem, families, np.zeros((n_children, problem.implied.n_types)))
    totals = np.zeros((n_children, problem.implied.n_types))
    np.add.at(totals, (entries.child, problem.type_of[entries.cell]), solve(problem, families).counts)
    if problem.workloads[families.level].by_region is not None:
        largest = (np.arange(n_children), totals.argmax(axis=1))
        moved = _whole_totals(problem, families) - totals.sum(axis=1)
        totals[largest] = np.maximum(totals[largest] + moved, 0.0)
    return totals


def _whole_totals(problem: Problem, families: Families) -> Floats:
    """Everybody in each child: the numbers within public bounds that add up to the parent and fit the evidence about totals best.

    Notes
    -----
    **Implements**: least squares with one sum and bounds, by bisection of the multiplier.
    """
    assert families.parents is not None
    value, variance = _total_evidence(problem, families)
    family = np.repeat(np.arange(families.n_families), np.diff(families.child_start))
    lower, upper = np.zeros(len(value)), np.full(len(value), np.inf)
    if families.is_bounded:
        lower, upper = (side[:, -1].astype(np.float64) for side in (families.lower, families.upper))
    people = families.parents.people.astype(np.float64)
    most = np.zeros(families.n_families)  # beyond it, everybody is at a bound
    np.maximum.at(most, family, 2.0 * (np.abs(value) + lower + people[family]) / variance)
    low, high = -most, most
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        found = np.clip(value + variance * middle[family], lower, upper)
        is_short = np.bincount(family, found, minlength=len(people)) < people
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return np.clip(value + variance * (0.5 * (low + high))[family], lower, upper)


def _total_evidence(problem: Problem, families: Families) -> tuple[Floats, Floats]:
    """Estimates of everybody in each child, and their variances.

    Rows of a query that hold the same types are added up; rows of types that public bounds rule out are left out, and queries whose rows
    overlap in types.
    """
    evidence, n_types = families.evidence, problem.implied.n_types
    n_children = len(evidence.values[0])
    possible = np.ones((n_children, n_types), np.bool_)
    if families.is_bounded:
        possible = families.upper[:, 1 << np.arange(n_types)] > 0
    total, precision = np.zeros(n_children), np.zeros(n_children)
    for query, answers, weights in zip(evidence.queries, evidence.values, evidence.weights, strict=True):
        held = np.zeros((query.n_rows, n_types), np.bool_)
        held[query.row_of, problem.type_of] = True
        sets, place = np.unique(held, axis=0, return_inverse=True)
        if (sets.sum(axis=0) <= 1).all():
            is_open = (possible @ sets.T)[:, place.ravel()]  # (children, rows)
            n_open = is_open.sum(axis=1)
            own = np.broadcast_to(weights[:, 0], n_children) / np.maximum(n_open, 1) * (n_open > 0)
            total += own * (answers * is_open).sum(axis=1)
            precision += own
    precision = np.where(precision > 0.0, precision, 1.0)  # nobody can be in the others
    return total / precision, 1.0 / precision
