"""Counts that keep exact sums, stay close to noisy sums, and otherwise resemble what was expected.

Minimises sum h log(h / prior) - h + sum (noisy - sum of h)^2 / (2 variance) subject to sums that are exact. That is the most likely vector
if counts are Poisson around `prior` and noise is normal. Where nothing was measured, nothing pulls counts away from `prior`: unknown parts
are filled in proportion to it.

Notes
-----
**Implements**: iterative proportional fitting, with an additional step for noisy sums. Every multiplier in turn is set to its best value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.run import Run

__all__ = ["GroupSums", "Inequality", "NoisySums", "fit"]

SWEEPS = 24
NEWTON_STEPS = 8
LARGEST_STEP = 2.0  # by which the multiplier of an inequality may change in one sweep


@dataclass(frozen=True, slots=True, eq=False)
class GroupSums:
    """Exact sums: the counts with group g sum to total[g]."""

    group: Ints
    total: Ints | Floats


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Noisy sums, with one variance for all or one for each."""

    group: Ints
    value: Ints | Floats
    variance: float | Floats


@dataclass(frozen=True, slots=True, eq=False)
class Inequality:
    """Over each group, the sum of coefficient x count of the counts at `index` is at least `least`."""

    index: Ints
    group: Ints
    coefficient: Floats
    least: Floats


def fit(
    prior: Floats,
    exact: Sequence[GroupSums],
    noisy: Sequence[NoisySums],
    inequalities: Sequence[Inequality] = (),
    *,
    sweeps: int = SWEEPS,
    run: Run | None = None,
) -> Floats:
    """Non-negative real counts; the last of `exact` holds up to rounding, the others as far as the sweeps converge.

    Parameters
    ----------
    prior : ndarray of float64, shape (n,)
        Expected value of each count.
    inequalities : sequence of Inequality
        Satisfied as far as the exact sums allow.
    run : Run, optional
        Checked before every step.

    Notes
    -----
    **Cost**: about n x (exact + noisy) x sweeps x 10 ns.

    Examples
    --------
    >>> rows, columns = GroupSums(np.array([0, 0, 1, 1]), np.array([3, 1])), GroupSums(np.array([0, 1, 0, 1]), np.array([2, 2]))
    >>> fit(np.ones(4), [rows, columns], []).tolist()
    [1.5, 1.5, 0.5, 0.5]
    >>> noisy = NoisySums(np.array([0, 1, 1, 1]), np.array([1, 3]), 0.01)
    >>> fit(np.ones(4), [rows, columns], [noisy]).round(1).tolist()
    [1.0, 1.9, 1.0, 0.1]
    """
    counts = prior.copy()
    multipliers = [np.zeros(len(own.value)) for own in noisy]
    run = run or Run()
    prices = [np.zeros(len(own.least)) for own in inequalities]
    for _ in range(sweeps if noisy or len(exact) > 1 or inequalities else 1):
        for own, multiplier in zip(noisy, multipliers, strict=True):
            run.check()
            counts *= _towards_noisy(counts, own, multiplier)[own.group]
        for rule, price in zip(inequalities, prices, strict=True):
            counts[rule.index] *= _towards_allowed(counts[rule.index], rule, price)
        for sums in exact:
            run.check()
            held = np.bincount(sums.group, weights=counts, minlength=len(sums.total))
            counts *= np.divide(sums.total, held, out=np.zeros(len(held)), where=held > 0)[sums.group]
    return counts


def _towards_noisy(counts: Floats, own: NoisySums, multiplier: Floats) -> Floats:
    """The factor of each sum that makes its multiplier best; the multiplier is changed in place.

    With s the sum without its multiplier, the sum x solves variance log(x / s) + x = noisy.
    """
    held = np.bincount(own.group, weights=counts, minlength=len(own.value))
    present = held > 0
    log_held = np.log(np.where(present, held, 1.0))
    free = log_held - multiplier
    x = np.maximum(free, np.log(np.maximum(own.value, 1e-9)))
    for _ in range(NEWTON_STEPS):  # starting from the right of the root of a convex function
        x -= (own.variance * (x - free) + np.exp(x) - own.value) / (own.variance + np.exp(x))
    x = np.clip(x, log_held - 30.0, log_held + 30.0)
    factor = np.where(present, np.exp(x - log_held), 1.0)
    multiplier += np.where(present, x - log_held, 0.0)
    return np.asarray(factor)


def _towards_allowed(counts: Floats, rule: Inequality, price: Floats) -> Floats:
    """The factor of each count after one Newton step of the multipliers, which stay at zero or above."""
    weighted, n_groups = counts * rule.coefficient, len(rule.least)
    value = np.bincount(rule.group, weights=weighted, minlength=n_groups) - rule.least
    slope = np.bincount(rule.group, weights=weighted * rule.coefficient, minlength=n_groups)
    step = np.divide(-value, slope, out=np.zeros(n_groups), where=slope > 0)
    step = np.maximum(np.clip(step, -LARGEST_STEP, LARGEST_STEP), -price)
    price += step
    return np.asarray(np.exp(step[rule.group] * rule.coefficient))
