"""Empirical Bayes above the leaves: a cell's mean is its parent's share of the child's total, times a factor of its own.

Totals remain those of least squares, whose error is small in comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from louver._arrays import Floats, Ints
from louver.optim.kernels.posteriors.cells import draws_inplace, likelihoods_inplace, posteriors_inplace
from louver.topdown.estimation.draws import Draws
from louver.topdown.estimation.entries import (
    SHARE_CUTS,
    Entries,
    capped,
    normalised,
    posterior_evidence,
    usual_weights,
)
from louver.topdown.problem import Evidence, Families, Problem

__all__ = ["CellPrior", "cell_evidence", "leans_on_marginals", "learn_cells"]

N_BINS, LOWEST_BIN = 12, -3  # bins of the logarithm of the expected count
EXPONENTS = 0.2 * np.arange(-15.0, 26.0)
FACTORS = np.concatenate([[0.0], np.exp(EXPONENTS)])
VARIATION = 0.12  # variation of a count's mean beyond Poisson
N_STEPS = 12  # steps of the EM algorithm
NEIGHBOUR = 0.3  # share of a class's counts that adjacent classes also receive
LEAST_VARIANCE = 0.05
OTHERS = 0.5  # variation of the other cells of a row, when these are set to their expected counts
LEAST_PRIOR = 0.05  # precision of a prior relative to that of the evidence
MOST_CELLS = 20_000  # most cells that a prior is learnt from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellPrior:
    """Weights (classes, factors) of how cells of a level depart from their parents."""

    weights: Floats

    def improve(
        self, problem: Problem, families: Families, entries: Entries, variances: Floats, shrink: float | None
    ) -> Evidence:
        """Evidence for the constrained solve: posterior means, and the totals of least squares."""
        values, noise, own = cell_evidence(problem, families, entries, variances)
        mean, variance = np.empty(len(values)), np.empty(len(values))
        posteriors_inplace(
            entries.expected, values, noise, FACTORS, VARIATION, self.weights, _kinds(entries), mean, variance
        )  # fmt: skip
        mean = capped(mean, values, noise, entries.share, shrink)
        value, weight = _with_prior(values, noise, own, mean, np.maximum(variance, LEAST_VARIANCE))
        return posterior_evidence(problem, families, entries, value, weight, entries.totals)

    def draw(
        self, problem: Problem, families: Families, entries: Entries, variances: Floats, draws: Draws
    ) -> Evidence:
        """The same with one draw from each cell's posterior instead of its mean; nothing else is said about the cells."""
        values, noise, _ = cell_evidence(problem, families, entries, variances)
        uniform = draws.uniform("cells", families.first_child + entries.child, entries.cell)
        drawn, variance = np.empty(len(values)), np.empty(len(values))
        draws_inplace(
            entries.expected, values, noise, FACTORS, VARIATION, self.weights, _kinds(entries), uniform, ndtri(uniform), drawn, variance
        )  # fmt: skip
        return posterior_evidence(
            problem,
            families,
            entries,
            drawn,
            1.0 / np.maximum(variance, LEAST_VARIANCE),
            entries.totals,
            alone=True,
        )


def leans_on_marginals(problem: Problem, level: int) -> bool:
    """Whether cells of a level are known from marginals: bounds leave one cell per row, or rows are more precise than cells."""
    load = problem.workloads[level]
    detailed = next(x for query, x in zip(load.queries, load.variances, strict=True) if query.is_detailed)
    rows = (x for query, x in zip(load.queries, load.variances, strict=True) if query.n_rows > 1)
    return problem.implied.constrained[level] or any(2.0 * x < detailed for x in rows)


def cell_evidence(
    problem: Problem, families: Families, entries: Entries, variances: Floats
) -> tuple[Floats, Floats, Floats]:
    """What is known of each cell before any prior: value, variance, and the weight of its own term in the objective.

    Where marginals are better known than cells, each cell gets what their rows imply if the other cells of a row are what is
    expected of them, and so uncertain.
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
    """A cell's own term in the objective, with what the prior adds to it.

    The prior is taken as the normal one that turns evidence (values, noise variance) into this posterior. Only the part of the
    evidence that is not in other marginals, of weight `own`, is in the cell's term.
    """
    prior = np.maximum(1.0 / variance - 1.0 / noise, LEAST_PRIOR / noise)
    centre = mean + (mean - values) / (noise * prior)
    weight = own + prior
    return (own * values + prior * centre) / weight, np.minimum(weight, 1.0 / LEAST_VARIANCE)


def learn_cells(samples: Sequence[tuple[Entries, Floats, Floats]]) -> CellPrior:
    """Learn how cells depart from what is expected, from entries with their values and variances.

    Notes
    -----
    **Implements**: maximum likelihood of a mixture by EM, classes by share and by the logarithm of what is expected.
    """
    expected = np.concatenate([entries.expected for entries, _, _ in samples])
    kind = np.concatenate([_kinds(entries) for entries, _, _ in samples])
    values = np.concatenate([value for _, value, _ in samples])
    variances = np.concatenate([variance for _, _, variance in samples])
    chosen = slice(None, None, max(1, -(-len(values) // MOST_CELLS)))
    likelihood = np.empty((len(values[chosen]), len(FACTORS)))
    likelihoods_inplace(
        expected[chosen].copy(), values[chosen].copy(), variances[chosen].copy(), FACTORS, VARIATION, likelihood
    )  # fmt: skip
    likelihood[likelihood.sum(axis=1) == 0.0] = (
        1.0  # values that nothing explains carry no information about the prior
    )
    n_kinds = (len(SHARE_CUTS) + 1) * N_BINS
    usual = usual_weights(EXPONENTS, empty=0.9, scale=3.0)  # most cells of a fine table are empty
    weights = np.tile(usual, (n_kinds, 1))
    for _ in range(N_STEPS):
        joint = likelihood * weights[kind[chosen]]
        joint /= joint.sum(axis=1, keepdims=True)
        counts = np.zeros((n_kinds, len(FACTORS)))
        np.add.at(counts, kind[chosen], joint)
        weights = normalised(_with_neighbours(counts), usual)
    return CellPrior(weights=weights)


def _kinds(entries: Entries) -> Ints:
    """Class of each entry."""
    bins = np.floor(np.log(np.maximum(entries.expected, 1e-6))).astype(np.int64) - LOWEST_BIN
    return np.searchsorted(SHARE_CUTS, entries.share) * N_BINS + np.clip(bins, 0, N_BINS - 1)


def _with_neighbours(counts: Floats) -> Floats:
    """Counts of every class plus a share of those of adjacent bins."""
    by_bin = counts.reshape(-1, N_BINS, counts.shape[1])
    smooth = by_bin.copy()
    smooth[:, 1:] += NEIGHBOUR * by_bin[:, :-1]
    smooth[:, :-1] += NEIGHBOUR * by_bin[:, 1:]
    return smooth.reshape(counts.shape)
