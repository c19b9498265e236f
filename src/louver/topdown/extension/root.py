"""Posterior means of the root's noisy answers one by one: it has no parent to resemble, and most rows of its fine marginals are empty.

If negative answers were simply set to zero, the noisy answers of empty rows would add people, whom exact sums then take from the large
rows. So each answer is replaced by its posterior mean, weighted by its posterior variance. The proportions of empty and small rows are
learnt from the answers of the query.

Notes
-----
**Privacy**: post-processing of noisy answers.
**Implements**: empirical Bayes with a mixture of uniform distributions, by EM.
"""

from __future__ import annotations

import numpy as np

from louver._arrays import Floats, Ints
from louver.privacy.distributions import Distribution
from louver.topdown.estimation.noise_tables import PROBABILITIES

__all__ = ["posterior_of_answers"]

N_CLASSES = 12  # classes of sizes, by logarithm, besides the class of zero
LARGE = 10.0  # standard deviations above which an answer is left unchanged
REACH = 20.0  # largest size of small counts, in standard deviations
N_STEPS = 100  # steps of the EM algorithm
PSEUDO_COUNT = 0.5
LEAST_VARIANCE = 0.25


def posterior_of_answers(
    answers: Ints, noise: Distribution, uniform: Floats | None = None
) -> tuple[Floats, Floats]:
    """Posterior mean and variance of every row of a query.

    Parameters
    ----------
    answers : ndarray of int64, shape (rows,)
    noise : Distribution
        The noise that was added to each of them.
    uniform : ndarray of float64, shape (rows,), optional
        Between 0 and 1: takes this quantile of the posterior in place of the mean.
    """
    deviation = float(np.sqrt(noise.variance))
    mean, variance = answers.astype(np.float64), np.full(len(answers), float(noise.variance))
    small = np.flatnonzero(answers < LARGE * deviation)
    counts = np.arange(int(REACH * deviation) + 2)
    first = np.unique(np.append([0, 1], np.geomspace(2, len(counts), N_CLASSES).astype(np.int64)))
    own = np.searchsorted(first, counts, side="right") - 1
    sizes = np.bincount(own)
    if not len(small):
        return mean, variance
    likelihood = PROBABILITIES[noise.name](answers[small][:, None] - counts, float(noise.variance))
    by_class = np.add.reduceat(likelihood, np.flatnonzero(np.diff(own, prepend=-1)), axis=1) / sizes
    weights = np.full(len(sizes), 1.0 / len(sizes))
    for _ in range(N_STEPS):
        joint = by_class * weights
        held = (joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)).sum(axis=0)
        weights = (held + PSEUDO_COUNT / len(sizes)) / (held.sum() + PSEUDO_COUNT)
    posterior = likelihood * (weights / sizes)[own]
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1e-300)
    mean[small] = posterior @ counts
    variance[small] = np.maximum(
        posterior @ counts.astype(np.float64) ** 2 - mean[small] ** 2, LEAST_VARIANCE
    )
    if uniform is not None:
        mean[small] = (np.cumsum(posterior, axis=1) < uniform[small][:, None]).sum(axis=1)
    return mean, variance
