"""Empirical Bayes in leaves: an unknown size, common to all cells, and a factor common to each group of cells.

All siblings' totals are taken at the same posterior quantile: means would pull large leaves down and empty ones up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from louver._arrays import Bools, Floats, Ints
from louver.engine.engines import ONE_CORE, Engine, Shared
from louver.optim.aside import Call
from louver.optim.kernels.posteriors.leaves import Seen, draw_leaves_inplace, leaves_inplace, totals_inplace
from louver.run import Run
from louver.topdown.estimation.division import Division, learn_division
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.entries import (
    SHARE_CUTS,
    Entries,
    capped,
    groups_of,
    normalised,
    posterior_evidence,
    usual_weights,
)
from louver.topdown.estimation.noise_tables import STEP, column_of, tabulate_noise
from louver.topdown.problem import Evidence, Families, Problem, Query, Workload

__all__ = ["MOST_LEAVES", "LeafPrior", "leaf_kernels", "learn_leaves"]

SIZE_STEPS = np.concatenate(
    [[0], 3 * np.arange(-13, 11)]
)  # exponents, in steps of the tables; the first is zero itself
FACTOR_STEPS = np.concatenate([[0], 4 * np.arange(-7, 8)])
VARIATION = 0.2  # variation of a count's mean beyond Poisson
SIZE_CLASSES, COVARIATE_CLASSES = (
    3,
    6,
)  # classes of leaves, by expected size; with covariates that distinguish them
N_STEPS = 12  # iterations of the EM algorithm
SIZE_STEPS_OF_EM = 8  # iterations for the sizes alone within each of them
LEAST_VARIANCE, MOST_VARIANCE = 0.01, 100.0
LEARNT_TOGETHER = 500  # leaves of one task when a prior is learnt
AT_ONCE = 1_000  # leaves between two checks for cancellation
MOST_LEAVES = 4_000
"""Approximate number of leaves from which a prior is learnt."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeafPrior:
    """How leaves depart from their parents.

    Parameters
    ----------
    seen : Seen
        Likelihoods of counts given noisy counts.
    sizes : ndarray, shape (classes, sizes)
        Weights of the ratio of a leaf's size to its expected size, by expected size.
    cuts : ndarray
        Boundaries between the classes.
    factors : ndarray, shape (classes, factors)
        Weights of the factor common to a group of cells, by its share.
    division : Division
        Expected shares of the leaves in their parent's people.
    """

    seen: Seen
    sizes: Floats
    cuts: Floats
    factors: Floats
    division: Division

    def improve(
        self, problem: Problem, families: Families, entries: Entries, shrink: float | None, run: Run | None
    ) -> Evidence:
        """Evidence for the constrained solve: posterior means, and totals at one quantile."""
        leaves = _Leaves.of(problem, families, entries, self.seen, self.division)
        mean, variance, mixture = leaves.posterior(self, int(families.child_start[-1]), run)
        totals = _totals(families, mixture, np.ones(mixture.shape[1]))
        evidence = families.evidence
        values = np.asarray(evidence.values[evidence.detailed][entries.child, entries.cell], np.float64)
        noise = np.full(len(values), leaves.cell_variance)
        mean = capped(mean, values, noise, entries.share, shrink)
        mean = _adding_up(problem, entries, mean)
        weight = 1.0 / np.clip(variance, LEAST_VARIANCE, MOST_VARIANCE)
        return posterior_evidence(
            problem, families, entries, mean, weight, totals[:, None], used=leaves.primary
        )

    def draw(
        self, problem: Problem, families: Families, entries: Entries, draws: Draws, run: Run | None
    ) -> Evidence:
        """The same with everything drawn: totals, sizes that lead to them, factors and cells."""
        leaves = _Leaves.of(problem, families, entries, self.seen, self.division)
        _, _, mixture = leaves.posterior(self, int(families.child_start[-1]), run)
        number = families.first_child + np.arange(mixture.shape[1])
        uniform = draws.uniform("totals", number)
        totals = _totals(families, mixture, uniform / (1.0 - uniform))
        size = _sizes(mixture, totals, draws.uniform("sizes", number))
        drawn, variance = leaves.drawn(self, size, draws, families.first_child)
        weight = 1.0 / np.clip(variance, LEAST_VARIANCE, MOST_VARIANCE)
        return posterior_evidence(problem, families, entries, drawn, weight, totals[:, None], alone=True)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Leaves:
    """Entries leaf by leaf and, within a leaf, group by group and unit by unit, as the kernel takes them.

    A unit is a row of the most informative query about a leaf (`primary_query`): a cell, or several cells whose sum was
    measured better than they were.
    """

    primary: Query
    n_entries: int
    order: Ints
    unit_of: Ints
    part: Floats
    children: Ints
    start: Ints
    group_start: Ints
    values: Floats
    place: Ints
    kind: Ints
    mean_size: Floats
    total: Floats
    total_variance: float
    cell_value: Floats
    cell_variance: float

    @classmethod
    def of(
        cls, problem: Problem, families: Families, entries: Entries, seen: Seen, division: Division
    ) -> _Leaves:
        evidence = families.evidence
        variances = [
            1.0 / float(weight.max()) for weight in evidence.weights
        ]  # all regions with answers have equal weights
        primary = primary_query(evidence.queries, variances)
        row = evidence.queries[primary].row_of[entries.cell]
        group = _groups(problem, evidence.queries[primary])[entries.cell]
        expected = (
            entries.people
            * division.shares(problem, families)[entries.child, division.group_of[entries.cell]]
        )
        order = np.lexsort((entries.cell, row, group, entries.child))
        order = order[expected[order] > 0.0]
        first_unit = _changes(entries.child[order], group[order], row[order])
        unit_of = np.cumsum(first_unit) - 1
        begin = np.flatnonzero(first_unit)
        mean, share = (
            np.add.reduceat(x[order], begin) if len(order) else np.zeros(0) for x in (expected, entries.share)
        )
        child, own = entries.child[order][begin], group[order][begin]
        children, first = np.unique(child, return_index=True)
        start = np.append(first, len(child)).astype(np.int64)
        group_start = np.append(np.flatnonzero(_changes(child, own)), len(child)).astype(np.int64)
        by_group = np.add.reduceat(share, group_start[:-1]) if len(child) else np.zeros(0)
        total, total_variance = _total_answer(evidence, variances, primary)
        cells = np.asarray(evidence.values[evidence.detailed], np.float64)[entries.child, entries.cell][order]
        return cls(
            primary=evidence.queries[primary],
            n_entries=len(entries.child),
            order=order,
            unit_of=unit_of,
            part=expected[order] / mean[unit_of],
            children=children,
            start=start,
            group_start=group_start,
            values=np.asarray(evidence.values[primary], np.float64)[child, row[order][begin]],
            place=column_of(mean, seen),
            kind=np.searchsorted(SHARE_CUTS, by_group).astype(np.int64),
            mean_size=np.add.reduceat(mean, start[:-1]) if len(child) else np.zeros(0),
            total=total[children],
            total_variance=total_variance,
            cell_value=cells,
            cell_variance=variances[evidence.detailed],
        )

    def work(
        self, prior: LeafPrior, run: Run | None
    ) -> tuple[Floats, Floats, NDArray[np.float64], Ints, Floats]:
        """Posteriors: mean and variance of units, the mixtures of sizes (3, leaves, sizes), their classes, and sums of factors."""
        n = len(self.start) - 1
        size_kind = np.searchsorted(prior.cuts, self.mean_size).astype(np.int64)
        mean, variance = np.empty(len(self.values)), np.empty(len(self.values))
        mixture = np.empty((3, n, len(SIZE_STEPS)))
        added = np.zeros(prior.factors.shape)
        for first in range(0, n, AT_ONCE):
            if run is not None:
                run.check()
            last = min(first + AT_ONCE, n)
            own = slice(self.start[first], self.start[last])
            groups = slice(*np.searchsorted(self.group_start, [own.start, own.stop]))
            leaves_inplace(
                prior.seen, self.start[first : last + 1] - own.start, self.group_start[groups.start : groups.stop + 1] - own.start,
                self.values[own], self.place[own], self.kind[groups], SIZE_STEPS, np.log(prior.sizes), size_kind[first:last],
                FACTOR_STEPS, np.log(prior.factors), self.total[first:last], self.total_variance, mean[own], variance[own],
                mixture[0, first:last], mixture[1, first:last], mixture[2, first:last], added,
            )  # fmt: skip
        return mean, variance, mixture, size_kind, added

    def posterior(
        self, prior: LeafPrior, n_children: int, run: Run | None
    ) -> tuple[Floats, Floats, NDArray[np.float64]]:
        """Mean and variance of every entry in the original order, and the mixtures of all children's totals."""
        mean, variance, own, _, _ = self.work(prior, run)
        means, variances = np.zeros(self.n_entries), np.zeros(self.n_entries)
        means[self.order], variances[self.order] = self.divided(mean, variance)
        mixture = np.zeros((3, n_children, own.shape[2]))
        mixture[:, self.children] = own
        return means, variances, mixture

    def divided(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of entries from those of their units: split as in the parent, adjusted by the measured cells."""
        if len(mean) == len(self.order):
            return mean, variance
        part, whole = self.part, mean[self.unit_of]
        apart = part * (1.0 - part) * (whole + 2.0 * part * (1.0 - part) * (VARIATION * whole) ** 2)
        measured = np.bincount(self.unit_of, self.cell_value, minlength=len(mean))[self.unit_of]
        gain = apart / (apart + self.cell_variance)
        found = np.maximum(part * whole + gain * (self.cell_value - part * measured), 0.0)
        held = np.bincount(self.unit_of, found, minlength=len(mean))[self.unit_of]
        found = np.where(held > 0.0, found * whole / np.where(held > 0.0, held, 1.0), part * whole)
        return found, part**2 * variance[self.unit_of] + apart * (1.0 - gain)

    def drawn(self, prior: LeafPrior, size: Ints, draws: Draws, first_child: int) -> tuple[Floats, Floats]:
        """Draws of the counts of every entry, in the original order, given all children's sizes, and their variances."""
        lengths, groups = np.diff(self.start), self.group_start[:-1]
        child = first_child + np.repeat(self.children, lengths)
        place = np.arange(len(child)) - np.repeat(self.start[:-1], lengths)
        uniform = draws.uniform("counts", child, place)
        by_group = draws.uniform("factors", child[groups], place[groups])
        offset = np.where(size == 0, -(1 << 40), SIZE_STEPS[size])[self.children]
        drawn, variance = np.empty(len(child)), np.empty(len(child))
        draw_leaves_inplace(
            prior.seen, self.start, self.group_start, self.values, self.place, self.kind, offset, FACTOR_STEPS,
            np.log(prior.factors), by_group, uniform, ndtri(uniform), drawn, variance,
        )  # fmt: skip
        counts, variances = np.zeros(self.n_entries), np.zeros(self.n_entries)
        counts[self.order], variances[self.order] = self.divided_draw(drawn, variance, child, draws)
        return counts, variances

    def divided_draw(
        self, drawn: Floats, variance: Floats, child: Ints, draws: Draws
    ) -> tuple[Floats, Floats]:
        """Draws of the counts of entries given those of their units, around the unit's means, and their variances."""
        if len(drawn) == len(self.order):
            return drawn, variance
        mean, left = self.divided(drawn, variance)
        cell = np.arange(len(self.order)) - np.flatnonzero(_changes(self.unit_of))[self.unit_of]
        steer = ndtri(draws.uniform("parts", child[self.unit_of], self.place[self.unit_of] + (1 << 41), cell))
        apart = left - self.part**2 * variance[self.unit_of]
        found = np.maximum(mean + np.sqrt(np.maximum(apart, 0.0)) * steer, 0.0)
        held = np.bincount(self.unit_of, found, minlength=len(drawn))[self.unit_of]
        found = np.where(held > 0.0, found * drawn[self.unit_of] / np.where(held > 0.0, held, 1.0), mean)
        return found, left


def leaf_kernels() -> tuple[Call, ...]:
    """The kernels called here, with arguments of the types they are called with."""
    whole, real, table = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0))
    seen = Seen(0, 0.0, 0.0, 0.0, 0.0, table, table, table)
    leaves = (
        seen, whole, whole, real, whole, whole, SIZE_STEPS, table, whole, FACTOR_STEPS, table, real, 0.0, real, real,
        table, table, table, table,
    )  # fmt: skip
    return (
        (leaves_inplace, leaves),
        (totals_inplace, (whole, real, table, table, table, real, real, real, real)),
        (
            draw_leaves_inplace,
            (seen, whole, whole, real, whole, whole, whole, FACTOR_STEPS, table, *[real] * 5),
        ),
    )


def learn_leaves(
    problem: Problem,
    workload: Workload,
    samples: Sequence[tuple[Families, Entries]],
    engine: Engine = ONE_CORE,
    run: Run | None = None,
) -> LeafPrior:
    """Learn how leaves depart from their parents, from the entries of a sample; each step works sample by sample.

    Notes
    -----
    **Implements**: maximum likelihood of a mixture by EM; classes of sizes are quantiles of the expected size, classes of factors depend on
    the group's share.
    """
    primary = primary_query(workload.queries, workload.variances)
    seen = tabulate_noise(workload.variances[primary], workload.noise, VARIATION)
    division = learn_division(problem, [families for families, _ in samples])
    leaves = [_Leaves.of(problem, families, entries, seen, division) for families, entries in samples]
    classes = COVARIATE_CLASSES if division.weights[:, 1:].any() else SIZE_CLASSES
    expected = np.concatenate([*(part.mean_size for part in leaves), np.zeros(1)])
    cuts = np.quantile(expected, np.arange(1, classes) / classes)
    usual_factor = usual_weights(STEP * FACTOR_STEPS[1:], empty=0.1, scale=0.6)
    usual_size = usual_weights(STEP * SIZE_STEPS[1:], empty=0.1, scale=1.2)
    sizes, factors = np.tile(usual_size, (len(cuts) + 1, 1)), np.tile(usual_factor, (len(SHARE_CUTS) + 1, 1))
    prior = LeafPrior(seen=seen, sizes=sizes, cuts=cuts, factors=factors, division=division)
    parts = [engine.share(part) for part in _together(leaves)]
    for _ in range(N_STEPS if leaves else 0):
        factor_counts, likelihoods, kinds = np.zeros(factors.shape), [], []
        for step in engine.map(partial(_expect, engine.share(prior)), parts, run):
            for likelihood, kind, added in step:
                likelihoods.append(likelihood)
                kinds.append(kind)
                factor_counts += added
        sizes = _mixing_weights(np.concatenate(likelihoods), np.concatenate(kinds), sizes, usual_size)
        factors = normalised(factor_counts, usual_factor)
        prior = replace(prior, sizes=sizes, factors=factors)
    return prior


def _together(leaves: Sequence[_Leaves]) -> list[tuple[_Leaves, ...]]:
    """The same leaves in a few parts of about equal size, which do not depend on the number of workers."""
    place = np.cumsum([0, *(len(part.start) - 1 for part in leaves)])[:-1] // LEARNT_TOGETHER
    return [
        tuple(part for part, own in zip(leaves, place, strict=True) if own == i) for i in np.unique(place)
    ]


def _expect(
    prior: Shared[LeafPrior], leaves: Shared[tuple[_Leaves, ...]], run: Run
) -> list[tuple[Floats, Ints, Floats]]:
    """For some leaves: likelihoods (leaves, sizes), classes of size, and the expected number of times each factor occurs."""
    found = []
    for part in leaves.value:
        _, _, mixture, size_kind, added = part.work(prior.value, run)
        found.append((mixture[0] / prior.value.sizes[size_kind], size_kind, added))
    return found


def _mixing_weights(likelihood: Floats, kind: Ints, weights: Floats, usual: Floats) -> Floats:
    """Weights (classes, sizes) after some steps of EM with fixed likelihoods (leaves, sizes) of all sizes.

    Whether small leaves are empty is learnt slowly; these steps cost almost nothing compared with recomputing likelihoods.
    """
    for _ in range(SIZE_STEPS_OF_EM):
        joint = likelihood * weights[kind]
        joint /= np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        counts = np.zeros(weights.shape)
        np.add.at(counts, kind, joint)
        weights = normalised(counts, usual)
    return weights


def _adding_up(problem: Problem, entries: Entries, mean: Floats) -> Floats:
    """Posterior means with one factor for each cell of a family, so that its children add up to the parent.

    The constrained solve would also make them add up, but by shifts that ignore the size of the means.
    """
    place = entries.family * problem.n_cells + entries.cell
    held = np.bincount(place, mean)[place]
    return np.where(held > 0.0, mean * entries.people / np.where(held > 0.0, held, 1.0), mean)


def _totals(families: Families, mixture: NDArray[np.float64], odds: Floats) -> Floats:
    """Totals of all children within their bounds, at these odds to the one quantile at which they add up."""
    assert families.parents is not None
    n_children = mixture.shape[1]
    totals, lower, upper = np.empty(n_children), np.zeros(n_children), np.full(n_children, np.inf)
    if families.is_bounded:
        lower, upper = (side[:, -1].astype(np.float64) for side in (families.lower, families.upper))
    people = families.parents.people.astype(np.float64)
    totals_inplace(
        families.child_start.copy(), people, mixture[0], mixture[1], mixture[2], odds, lower, upper, totals
    )
    return totals


def _sizes(mixture: NDArray[np.float64], totals: Floats, uniform: Floats) -> Ints:
    """A size for each child, drawn given its total."""
    weight, mean, variance = mixture
    spread = variance + LEAST_VARIANCE
    logs = np.log(np.maximum(weight, 1e-300)) - 0.5 * (
        np.square(totals[:, None] - mean) / spread + np.log(spread)
    )
    chance = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return np.asarray((chance < uniform[:, None] * chance[:, -1:]).sum(axis=1))


def primary_query(queries: Sequence[Query], variances: Sequence[float]) -> int:
    """The query for whose rows posteriors are computed: the most precise one, and of equally precise ones the finest."""
    order = sorted(range(len(queries)), key=lambda i: (variances[i], -queries[i].n_rows))
    return order[0]


def _total_answer(evidence: Evidence, variances: Sequence[float], primary: int) -> tuple[Floats, float]:
    """Estimates of the children's totals from all other answers, and their variance; below zero if there are none."""
    n_children = len(evidence.values[primary])
    weighted_sum, precision = np.zeros(n_children), 0.0
    for i, (query, variance) in enumerate(zip(evidence.queries, variances, strict=True)):
        if i != primary:
            weighted_sum += np.asarray(evidence.values[i], np.float64).sum(axis=1) / (query.n_rows * variance)
            precision += 1.0 / (query.n_rows * variance)
    return (weighted_sum / precision, 1.0 / precision) if precision else (weighted_sum, -1.0)


def _changes(*columns: Ints) -> Bools:
    """Positions where one of these arrays differs from the position before; the first always counts."""
    found = np.zeros(len(columns[0]), dtype=np.bool_)
    for column in columns:
        found |= np.diff(column, prepend=-1) != 0
    return found


def _groups(problem: Problem, primary: Query) -> Ints:
    """Groups of cells that share a factor; rows of the primary query where rows and groups cross."""
    if not problem.shape:
        return np.asarray(primary.row_of)
    group = groups_of(problem)
    pairs = np.unique(np.stack([primary.row_of, group]), axis=1).shape[1]
    return group if pairs == primary.n_rows else np.asarray(primary.row_of)
