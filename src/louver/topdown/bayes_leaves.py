"""Empirical Bayes in leaves: an unknown size, common to all cells, and a factor common to each group of cells.

Sizes are known where bounds fix them, near enough. Otherwise the totals are chosen at one quantile of all siblings' posteriors: means
would draw large leaves down and empty ones up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.optim.kernels.posteriors.leaves import Seen, leaves_inplace, totals_inplace
from louver.topdown.entries import SHARE_CUTS, Entries, capped, normalised, posterior_evidence, usual_weights
from louver.topdown.noise_tables import STEP, column_of, tabulate_noise
from louver.topdown.problem import Evidence, Families, Problem, Workload

__all__ = ["MOST_LEAVES", "LeafPrior", "is_sized", "learn_leaves"]

SIZE_STEPS = np.concatenate(
    [[0], 3 * np.arange(-13, 11)]
)  # exponents, in steps of the tables; the first is zero itself
FACTOR_STEPS = np.concatenate([[0], 4 * np.arange(-7, 8)])
VARIATION = 0.2  # of a count's mean beyond Poisson's
N_STEPS = 6  # of the EM algorithm
LEAST_VARIANCE = 0.01
MOST_LEAVES = 1_000
"""Leaves that a prior is learnt from, about."""


def is_sized(families: Families) -> bool:
    """Whether the children's totals are taken from least squares; without bounds a leaf's is estimated with its cells."""
    return families.is_bounded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafPrior:
    """How leaves depart from their parents.

    Parameters
    ----------
    seen : Seen
        What noisy counts say about counts.
    sizes : ndarray, shape (classes, sizes)
        Weights of a leaf's size over the mean of its siblings, by that mean; a single column where sizes are known.
    cuts : ndarray
        Between the classes.
    factors : ndarray, shape (classes, factors)
        Weights of what is common to a group of cells, by its share.
    """

    seen: Seen
    sizes: Floats
    cuts: Floats
    factors: Floats

    def improve(
        self, problem: Problem, families: Families, entries: Entries, shrink: float | None
    ) -> Evidence:
        """Evidence for the constrained solve: posterior means, and totals at one quantile."""
        leaves = _Leaves.of(problem, families, entries, self.seen)
        mean, variance, sizes, size_mean, size_variance = leaves.posterior(
            self, int(families.child_start[-1])
        )
        totals = entries.totals
        if not is_sized(families):
            parent_total = np.zeros(families.n_families)
            assert families.parents is not None
            np.add.at(
                parent_total,
                np.repeat(np.arange(families.n_families), np.diff(families.parents.start)),
                families.parents.count,
            )
            totals = np.empty(len(sizes))
            totals_inplace(families.child_start.copy(), parent_total, sizes, size_mean, size_variance, totals)
            totals = totals[:, None]
        _update_by_marginals(problem, families, entries, is_sized(families), mean, variance)
        evidence = families.evidence
        values = np.asarray(evidence.values[evidence.detailed][entries.child, entries.cell], np.float64)
        noise = np.full(len(values), self.seen.noise_variance)
        mean = capped(mean, values, noise, entries.share, shrink)
        return posterior_evidence(
            problem, families, entries, mean, np.maximum(variance, LEAST_VARIANCE), totals
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Leaves:
    """Entries leaf by leaf and, within a leaf, group by group, as the kernel takes them."""

    order: Ints
    children: Ints
    start: Ints
    group_start: Ints
    values: Floats
    place: Ints
    kind: Ints
    mean_size: Floats
    total: Floats
    total_variance: float
    is_sized: bool

    @classmethod
    def of(cls, problem: Problem, families: Families, entries: Entries, seen: Seen) -> _Leaves:
        evidence = families.evidence
        group = _groups(problem)[entries.cell]
        order = np.lexsort((entries.cell, group, entries.child))
        child, own = entries.child[order], group[order]
        children, first, place = np.unique(child, return_index=True, return_inverse=True)
        start = np.append(first, len(child)).astype(np.int64)
        is_new = np.diff(child * (int(group.max(initial=0)) + 1) + own, prepend=-1) != 0
        group_start = np.append(np.flatnonzero(is_new), len(order)).astype(np.int64)
        sized = is_sized(families)
        expected = (entries.expected if sized else entries.even)[order]
        share = entries.share[order]
        by_group = np.add.reduceat(share, group_start[:-1]) if len(order) else np.zeros(0)
        values = np.asarray(evidence.values[evidence.detailed], np.float64)[child, entries.cell[order]]
        mean_size = np.zeros(len(children))
        np.add.at(mean_size, place, entries.even[order])
        total = next((i for i, q in enumerate(evidence.queries) if q.n_rows == 1 and not q.is_detailed), None)
        use = total is not None and not sized
        return cls(
            order=order,
            children=children,
            start=start,
            group_start=group_start,
            values=values,
            place=column_of(expected, seen),
            kind=np.searchsorted(SHARE_CUTS, by_group).astype(np.int64),
            mean_size=mean_size,
            total=np.asarray(evidence.values[total or 0][children, 0], np.float64)
            if use
            else np.zeros(len(children)),
            total_variance=1.0 / float(evidence.weights[total or 0][0, 0]) if use else -1.0,
            is_sized=sized,
        )

    def run(
        self, seen: Seen, sizes: Floats, cuts: Floats, factors: Floats
    ) -> tuple[Floats, Floats, Floats, Floats, Floats, Ints, Floats]:
        """One call of the kernel: posteriors, the classes of sizes, and the weights of factors added up."""
        steps = np.zeros(1, np.int64) if self.is_sized else SIZE_STEPS
        n = len(self.start) - 1
        size_kind = np.searchsorted(cuts, self.mean_size).astype(np.int64)
        mean, variance = np.empty(len(self.values)), np.empty(len(self.values))
        found, size_mean, size_variance = (np.empty((n, len(steps))) for _ in range(3))
        added = np.zeros(factors.shape)
        leaves_inplace(
            seen, self.start, self.group_start, self.values, self.place, self.kind, steps, np.log(sizes), size_kind,
            FACTOR_STEPS, np.log(factors), self.total, self.total_variance, mean, variance, found, size_mean,
            size_variance, added,
        )  # fmt: skip
        return mean, variance, found, size_mean, size_variance, size_kind, added

    def posterior(self, prior: LeafPrior, n_children: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Mean and variance of every entry in its own order, and the mixtures of all children's totals."""
        mean, variance, found, size_mean, size_variance, _, _ = self.run(
            prior.seen, prior.sizes, prior.cuts, prior.factors
        )
        means, variances = np.empty(len(mean)), np.empty(len(mean))
        means[self.order], variances[self.order] = mean, variance
        mixture = np.zeros((3, n_children, found.shape[1]))
        mixture[:, self.children] = found, size_mean, size_variance
        return means, variances, mixture[0], mixture[1], mixture[2]


def learn_leaves(
    problem: Problem,
    workload: Workload,
    samples: Sequence[tuple[Families, Entries]],
) -> LeafPrior:
    """Learn how leaves depart from their parents, from entries of some of them.

    Notes
    -----
    **Implements**: maximum likelihood of a mixture by EM; classes of sizes by terciles of the siblings' mean, of factors by
    the group's share.
    """
    detailed = next(i for i, query in enumerate(workload.queries) if query.is_detailed)
    seen = tabulate_noise(workload.variances[detailed], workload.is_gaussian, VARIATION)
    leaves = [_Leaves.of(problem, families, entries, seen) for families, entries in samples]
    cuts = np.quantile(np.concatenate([*(part.mean_size for part in leaves), np.zeros(1)]), [1 / 3, 2 / 3])
    sized = bool(leaves) and leaves[0].is_sized
    usual_factor = usual_weights(STEP * FACTOR_STEPS[1:])
    usual_size = np.ones(1) if sized else usual_weights(STEP * SIZE_STEPS[1:] / 2)
    sizes, factors = np.tile(usual_size, (3, 1)), np.tile(usual_factor, (len(SHARE_CUTS) + 1, 1))
    for _ in range(N_STEPS):
        size_counts, factor_counts = np.zeros(sizes.shape), np.zeros(factors.shape)
        for part in leaves:
            _, _, found, _, _, size_kind, added = part.run(seen, sizes, cuts, factors)
            np.add.at(size_counts, size_kind, found)
            factor_counts += added
        sizes, factors = normalised(size_counts, usual_size), normalised(factor_counts, usual_factor)
    return LeafPrior(seen=seen, sizes=sizes, cuts=cuts, factors=factors)


def _groups(problem: Problem) -> Ints:
    """Groups of cells that share a factor: those of one type and one label of the attribute with the most labels."""
    if not problem.shape:
        return np.arange(problem.n_cells)
    axis = int(np.argmax(problem.shape))
    label = np.indices(problem.shape)[axis].ravel()
    return np.asarray(problem.type_of * problem.shape[axis] + label)


def _update_by_marginals(
    problem: Problem, families: Families, entries: Entries, sized: bool, mean: Floats, variance: Floats
) -> None:
    """Weigh in what further marginals say: cells move in proportion to their variance, row by row."""
    evidence = families.evidence
    for query, values, weights in zip(evidence.queries, evidence.values, evidence.weights, strict=True):
        is_used = query.is_detailed or query.n_rows == 1 or np.array_equal(query.row_of, problem.type_of)
        if is_used and (sized or query.is_detailed or query.n_rows == 1):
            continue
        row = query.row_of[entries.cell]
        held, spread = np.zeros(values.shape), np.zeros(values.shape)
        np.add.at(held, (entries.child, row), mean)
        np.add.at(spread, (entries.child, row), variance)
        gain = 1.0 / (spread + 1.0 / weights)
        away = (values - held) * gain
        mean += variance * away[entries.child, row]
        np.maximum(mean, 0.0, out=mean)
        variance -= variance**2 * gain[entries.child, row]
