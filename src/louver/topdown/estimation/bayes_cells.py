"""Empirical Bayes above the leaves: a cell's mean is the parent's share of that cell times the child's total, a factor of its group and a
factor of its own.

The cells of a group (a race, by age) depart from the parent in similar ways, so what the answers of one cell say about the factor helps the
others. Totals remain those of least squares, whose error is small in comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from louver._arrays import Floats, Ints
from louver.optim.aside import Call
from louver.optim.kernels.posteriors.cells import (
    draws_inplace,
    expectations_inplace,
    likelihoods_inplace,
    posteriors_inplace,
)
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
from louver.topdown.problem import Evidence, Families, Problem

__all__ = ["CellPrior", "cell_evidence", "cell_kernels", "leans_on_marginals", "learn_cells"]

N_BINS, LOWEST_BIN = 12, -3  # bins of the logarithm of the expected count
STEP = 0.2
EXPONENTS = STEP * np.arange(-15.0, 26.0)  # logarithm of the factor common to a group of cells
DEPARTURES = STEP * np.arange(-5.0, 6.0)  # logarithm of the factor of a single cell
SCALES = np.concatenate([[0.0], np.exp(STEP * np.arange(-20.0, 31.0))])  # products of both, zero first
VARIATION = 0.12  # variation of a count's mean beyond Poisson
N_STEPS = 12  # steps of the EM algorithm
PSEUDO_COUNTS = 3.0  # of a class, distributed as the default weights
NEIGHBOUR = 0.3  # share of a class's counts that adjacent classes also receive
LEAST_VARIANCE = 0.05
OTHERS = 0.5  # variation of the other cells of a row, when these are set to their expected counts
LEAST_PRIOR = 0.05  # precision of a prior relative to that of the evidence
MOST_CELLS = 20_000  # maximum number of cells from which a prior is learnt


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellPrior:
    """How cells of a level depart from their parents: weights (classes, factors) of groups, and (classes, departures) of cells."""

    factors: Floats
    departures: Floats

    def improve(
        self, problem: Problem, families: Families, entries: Entries, variances: Floats, shrink: float | None
    ) -> Evidence:
        """Evidence for the constrained solve: posterior means, and the totals of least squares."""
        values, noise, own = cell_evidence(problem, families, entries, variances)
        groups = _Groups.of(problem, entries)
        mean, variance = np.empty(len(values)), np.empty(len(values))
        seen = self._seen(groups, entries, values, noise)
        posteriors_inplace(*(*seen, mean, variance))
        mean, variance = groups.back(mean), groups.back(variance)
        mean = capped(mean, values, noise, entries.share, shrink)
        value, weight = _with_prior(values, noise, own, mean, np.maximum(variance, LEAST_VARIANCE))
        return posterior_evidence(problem, families, entries, value, weight, entries.totals)

    def draw(
        self, problem: Problem, families: Families, entries: Entries, variances: Floats, draws: Draws
    ) -> Evidence:
        """The same with one draw from the posterior of each cell in place of its mean, and no other evidence about the cells."""
        values, noise, _ = cell_evidence(problem, families, entries, variances)
        groups = _Groups.of(problem, entries)
        child, cell = (x[groups.order] for x in (families.first_child + entries.child, entries.cell))
        by_group = draws.uniform("groups", child[groups.start[:-1]], cell[groups.start[:-1]])
        by_departure, uniform = (draws.uniform(stream, child, cell) for stream in ("own", "cells"))
        drawn, variance = np.empty(len(values)), np.empty(len(values))
        seen = self._seen(groups, entries, values, noise)
        draws_inplace(*(*seen, by_group, by_departure, uniform, ndtri(uniform), drawn, variance))
        weight = 1.0 / np.maximum(groups.back(variance), LEAST_VARIANCE)
        return posterior_evidence(
            problem, families, entries, groups.back(drawn), weight, entries.totals, alone=True
        )

    def _seen(self, groups: _Groups, entries: Entries, values: Floats, noise: Floats) -> tuple[Any, ...]:
        """Arguments of a kernel: expected and noisy values of every group, and the prior."""
        order = groups.order
        return (
            groups.start, entries.expected[order], values[order], noise[order], SCALES, VARIATION,
            self.factors, groups.kind, self.departures, groups.own_kind,
        )  # fmt: skip


def cell_kernels() -> tuple[Call, ...]:
    """The kernels called here, with arguments of the types they are called with."""
    whole, real, table = np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 0))
    seen = whole, real, real, real, SCALES, VARIATION, table, whole, table, whole
    return (
        (likelihoods_inplace, (real, real, real, SCALES, VARIATION, table)),
        (expectations_inplace, (whole, table, table, whole, table, whole, table, table)),
        (posteriors_inplace, (*seen, real, real)),
        (draws_inplace, (*seen, real, real, real, real, real, real)),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Groups:
    """Entries child by child and, within a child, group by group.

    Parameters
    ----------
    order : ndarray of int64
        Of the entries.
    start : ndarray of int64, shape (groups + 1,)
    kind : ndarray of int64, shape (groups,)
        Class of each group: by its cells' mean share of the parent's people, and by their expected counts.
    own_kind : ndarray of int64
        Class of each entry in this order, by its expected count; the last class, for groups of one cell, has no departure.
    """

    order: Ints
    start: Ints
    kind: Ints
    own_kind: Ints

    @classmethod
    def of(cls, problem: Problem, entries: Entries) -> _Groups:
        """Groups of all entries."""
        group = groups_of(problem)[entries.cell]
        order = np.lexsort((entries.cell, group, entries.child))
        child, group = entries.child[order], group[order]
        first = np.flatnonzero((np.diff(child, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
        start = np.append(first, len(order)).astype(np.int64)
        lengths = np.diff(start)
        share, expected = (
            np.add.reduceat(x[order], first) / lengths if len(first) else x
            for x in (entries.share, entries.expected)
        )
        is_alone = np.repeat(lengths == 1, lengths)
        return cls(
            order=order,
            start=start,
            kind=np.searchsorted(SHARE_CUTS, share) * N_BINS + _bins(expected),
            own_kind=np.where(is_alone, N_BINS, _bins(entries.expected[order])),
        )

    def back(self, values: Floats) -> Floats:
        """Values in the order of the entries."""
        found = np.empty_like(values)
        found[self.order] = values
        return found


def leans_on_marginals(problem: Problem, level: int) -> bool:
    """Whether cells of a level are known mainly from marginals: bounds leave one cell per row, or rows are more precise than cells.

    Bounds on the total alone never leave a row with one cell.
    """
    load = problem.workloads[level]
    detailed = next(x for query, x in zip(load.queries, load.variances, strict=True) if query.is_detailed)
    rows = (x for query, x in zip(load.queries, load.variances, strict=True) if query.n_rows > 1)
    is_divided = problem.implied.constrained[level] and problem.implied.n_types > 1
    return is_divided or any(2.0 * x < detailed for x in rows)


def cell_evidence(
    problem: Problem, families: Families, entries: Entries, variances: Floats
) -> tuple[Floats, Floats, Floats]:
    """The evidence about each cell before any prior: value, variance, and the weight of its own term in the objective.

    Where marginals are more precise than cells, each cell gets the value that their rows imply if the other cells of a row have their
    expected values, with the corresponding variance.
    """
    evidence = families.evidence
    values = np.asarray(evidence.values[evidence.detailed][entries.child, entries.cell], np.float64)
    n_children = int(families.child_start[-1])
    own = np.broadcast_to(evidence.weights[evidence.detailed], (n_children, 1))[entries.child, 0]
    if not leans_on_marginals(problem, families.level):
        return values, variances[entries.child], own
    precision, total = own.copy(), own * values
    spread = entries.expected + (OTHERS * entries.expected) ** 2
    for query, answers, weights in zip(evidence.queries, evidence.values, evidence.weights, strict=True):
        if not query.is_detailed and query.n_rows > 1:
            place = (entries.child, query.row_of[entries.cell])
            held, uncertain = np.zeros(answers.shape), np.zeros(answers.shape)
            np.add.at(held, place, entries.expected)
            np.add.at(uncertain, place, spread)
            noise = np.broadcast_to(1.0 / weights, answers.shape)[place]
            added = 1.0 / (noise + np.maximum(uncertain[place] - spread, 0.0))
            precision += added
            total += added * (answers[place] - held[place] + entries.expected)
    return total / precision, 1.0 / precision, own


def _with_prior(
    values: Floats, noise: Floats, own: Floats, mean: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """A cell's own term in the objective, with the contribution of the prior.

    The prior is taken to be the normal one that turns evidence (values, noise variance) into this posterior. Only the part of the
    evidence that is not in other marginals, of weight `own`, is in the cell's term.
    """
    prior = np.maximum(1.0 / variance - 1.0 / noise, LEAST_PRIOR / noise)
    centre = mean + (mean - values) / (noise * prior)
    weight = own + prior
    return (own * values + prior * centre) / weight, np.minimum(weight, 1.0 / LEAST_VARIANCE)


def learn_cells(problem: Problem, samples: Sequence[tuple[Entries, Floats, Floats]]) -> CellPrior:
    """Learn how cells depart from their expected counts, from entries with their values and variances.

    Notes
    -----
    **Implements**: maximum likelihood of a mixture by EM, with classes by share and by the logarithm of the expected count.
    """
    n_kinds = (len(SHARE_CUTS) + 1) * N_BINS
    usual = usual_weights(EXPONENTS, empty=0.9, scale=3.0)  # most cells of a fine table are empty
    usual_own = usual_weights(DEPARTURES, empty=0.05, scale=0.3)
    factors, departures = np.tile(usual, (n_kinds, 1)), np.tile(usual_own, (N_BINS + 1, 1))
    departures[N_BINS] = np.append(0.0, DEPARTURES == 0.0)
    parts = _likelihoods(problem, samples)
    for _ in range(N_STEPS if parts else 0):
        counts, own_counts = np.zeros(factors.shape), np.zeros(departures.shape)
        for groups, likelihood in parts:
            expectations_inplace(
                groups.start, likelihood, factors, groups.kind, departures, groups.own_kind, counts, own_counts
            )  # fmt: skip
        factors = normalised(_with_neighbours(counts), usual, PSEUDO_COUNTS)
        departures[:N_BINS] = normalised(_with_neighbours(own_counts[:N_BINS]), usual_own, PSEUDO_COUNTS)
    return CellPrior(factors=factors, departures=departures)


def _likelihoods(
    problem: Problem, samples: Sequence[tuple[Entries, Floats, Floats]]
) -> list[tuple[_Groups, Floats]]:
    """As many groups as a prior is learnt from, with likelihoods (cells, scales)."""
    every = max(1, -(-sum(len(values) for _, values, _ in samples) // MOST_CELLS))
    found, seen = [], 0
    for entries, values, variances in samples:
        child = seen + np.unique(entries.child, return_inverse=True)[1]
        seen = int(child.max(initial=seen - 1)) + 1
        chosen = (child + groups_of(problem)[entries.cell]) % every == 0  # whole groups
        groups = _Groups.of(problem, entries.part(chosen))
        likelihood = np.empty((int(chosen.sum()), len(SCALES)))
        expected, value, variance = (x[chosen][groups.order] for x in (entries.expected, values, variances))
        likelihoods_inplace(expected, value, variance, SCALES, VARIATION, likelihood)
        found.append((groups, likelihood))
    return found


def _bins(expected: Floats) -> Ints:
    """Class by the logarithm of the expected count."""
    bins = np.floor(np.log(np.maximum(expected, 1e-6))).astype(np.int64) - LOWEST_BIN
    return np.asarray(np.clip(bins, 0, N_BINS - 1))


def _with_neighbours(counts: Floats) -> Floats:
    """Counts of every class plus a share of those of adjacent bins."""
    by_bin = counts.reshape(-1, N_BINS, counts.shape[1])
    smooth = by_bin.copy()
    smooth[:, 1:] += NEIGHBOUR * by_bin[:, :-1]
    smooth[:, :-1] += NEIGHBOUR * by_bin[:, 1:]
    return smooth.reshape(counts.shape)
