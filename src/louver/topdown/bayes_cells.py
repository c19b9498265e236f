"""Empirical Bayes above the leaves: a cell's mean is its parent's share of the child's total, times a factor of its own.

Totals stay those of least squares, whose error is small beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.optim.kernels.posteriors.cells import likelihoods_inplace, posteriors_inplace
from louver.topdown.entries import SHARE_CUTS, Entries, capped, normalised, posterior_evidence, usual_weights
from louver.topdown.problem import Evidence, Families, Problem

__all__ = ["CellPrior", "learn_cells"]

N_BINS, LOWEST_BIN = 12, -3  # of the logarithm of what is expected
EXPONENTS = 0.2 * np.arange(-15.0, 16.0)
FACTORS = np.concatenate([[0.0], np.exp(EXPONENTS)])
VARIATION = 0.12  # of a count's mean beyond Poisson's
N_STEPS = 12  # of the EM algorithm
NEIGHBOUR = 0.3  # of the counts of a class that those beside it get too
LEAST_VARIANCE = 0.05
MOST_CELLS = 20_000  # that a prior is learnt from


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellPrior:
    """Weights (classes, factors) of how cells of a level depart from their parents."""

    weights: Floats

    def improve(
        self, problem: Problem, families: Families, entries: Entries, variances: Floats, shrink: float | None
    ) -> Evidence:
        """Evidence for the constrained solve: posterior means, and the totals of least squares."""
        evidence = families.evidence
        values = np.asarray(evidence.values[evidence.detailed][entries.child, entries.cell], np.float64)
        noise = variances[entries.child]
        mean, variance = np.empty(len(values)), np.empty(len(values))
        posteriors_inplace(
            entries.expected, values, noise, FACTORS, VARIATION, self.weights, _kinds(entries), mean, variance
        )  # fmt: skip
        mean = capped(mean, values, noise, entries.share, shrink)
        return posterior_evidence(
            problem, families, entries, mean, np.maximum(variance, LEAST_VARIANCE), entries.totals
        )


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
    n_kinds = (len(SHARE_CUTS) + 1) * N_BINS
    usual = usual_weights(EXPONENTS)
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
    """Counts of every class with some of those of the bins beside it."""
    by_bin = counts.reshape(-1, N_BINS, counts.shape[1])
    smooth = by_bin.copy()
    smooth[:, 1:] += NEIGHBOUR * by_bin[:, :-1]
    smooth[:, :-1] += NEIGHBOUR * by_bin[:, 1:]
    return smooth.reshape(counts.shape)
