"""The error of every published number: a standard error and a 90 % interval, simulated from the release itself.

The release is treated as the truth and the mechanism is run on it again, with noise from public keys. Every run gives pairs of a true and a
simulated number, for all regions and sizes. The error of a published number is taken from runs with the same result, so that a published 0
also has an interval; shifting the release by simulated errors would give none.

Notes
-----
**Privacy**: a function of the released table, the public plan and fixed keys, and of nothing else: post-processing.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from louver._arrays import Floats, Ints
from louver.groups.plan import SizePlan
from louver.groups.problem import GroupTable, SizeQuery, Total, sizes_of
from louver.groups.simulate import Forecast, averages, errors, measured
from louver.optim.trees import LevelTree
from louver.privacy.noise import KeyedNoise
from louver.run import Run

__all__ = ["SimulatedErrors", "Uncertainty", "simulate_release", "widened"]

SIMULATED_CELLS = 400_000
LEAST_RUNS, MOST_RUNS = 4, 32
"""Number of simulated cells after which simulation ends, and limits on the number of runs."""

UNBIASING, UNBIASING_RUNS = 2, 4
"""Number of times the stand-in for the truth is corrected by the error at the root, and number of simulations used for this, at most
half of those run afterwards."""

UNBIASING_STEP = 1.5
"""Factor by which the error is multiplied to obtain the correction: the closer the truth is to a boundary, the larger the error."""

POOLED = 100
"""Smallest number of pairs from which an interval is computed."""

MOST_PAIRS = 1 << 18
"""Maximum number of pairs used per level; larger levels are thinned to every n-th pair."""

CLASS_EDGES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Numbers are compared with those of their class, in standard deviations. Above the last edge only the number matters;
below it, the surrounding numbers matter as much."""

MOST_BINS = 64
"""Maximum number of distinct intervals in one class."""

NEAR_SIZES = 5
"""Number of neighbouring sizes whose average, over all regions together, is the expected number of each size."""

TAILS = (0.05, 0.95)
"""Quantiles that bound a 90 % interval."""

LEAST_SCALE = 0.5
"""Minimum standard deviation, because numbers are whole."""


@dataclass(frozen=True, slots=True, eq=False)
class Uncertainty:
    """Standard error and 90 % interval of numbers, in the same shape; each interval contains the published number."""

    standard_error: Floats
    lower: Ints
    upper: Ints


@dataclass(frozen=True, slots=True)
class SimulatedErrors:
    """Results of simulating a release: for every number of groups, for the persons of every region, and by level."""

    groups: Uncertainty
    persons: Uncertainty
    forecast: Forecast


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Simulated numbers, their expected values, and the distance of the truth from them, in standard deviations."""

    number: Floats
    expected: Floats
    off: Floats


def simulate_release(table: GroupTable, plan: SizePlan, run: Run | None = None) -> SimulatedErrors:
    """Run the mechanism on a release as often as its size allows, and measure how far the results are from the truth."""
    tree, scale = plan.regions.tree, region_scale(plan)
    sizes = np.arange(plan.first_size, plan.largest_size + 1)
    solve = plan.mechanism.simulate or plan.mechanism.solve
    n_runs = min(MOST_RUNS, max(LEAST_RUNS, SIMULATED_CELLS // table.counts.size))
    truth = _unbiased(table, plan, min(UNBIASING_RUNS, n_runs // 2), run)
    levels = [_LevelDraws(tree, k, truth.counts, scale, n_runs) for k in range(tree.n_levels)]
    persons, before, after = [], [], []
    for i in range(n_runs):
        if run is not None:
            run.report("simulating the release", i, n_runs)
        noisy = measured(truth, plan, _public_noise(i))
        out = solve(noisy, run)
        before.append(errors(sizes_of(noisy.rows, plan.query, tree), truth.counts, tree))
        after.append(errors(out, truth.counts, tree))
        for level in levels:
            level.take(out)
        persons.append((truth.counts - out) @ sizes)
    intervals = [level.intervals(table.counts) for level in levels]
    return SimulatedErrors(
        Uncertainty(*(np.concatenate(parts) for parts in zip(*intervals, strict=True))),
        _by_students_t(table.counts @ sizes, np.array(persons)),
        Forecast(averages(before), averages(after)),
    )


def widened(simulated: SimulatedErrors, table: GroupTable, alone: Ints) -> SimulatedErrors:
    """Errors of a table that agrees with numbers of people, from those of the mechanism by itself.

    The error of the numbers of people is not known here. If agreement moved the numbers of a level and size by more than their standard
    error (in root mean square), errors are enlarged accordingly.

    Parameters
    ----------
    alone : int64 (n_regions, n_sizes)
        The table that the mechanism gives for the same measurements without the people.
    """
    tree, sizes = table.regions.tree, np.arange(table.first_size, table.largest_size + 1)
    own = simulated.persons
    column = Uncertainty(own.standard_error[:, None], own.lower[:, None], own.upper[:, None])
    wide = _widened(column, (table.counts @ sizes)[:, None], (alone @ sizes)[:, None], tree)
    return SimulatedErrors(
        _widened(simulated.groups, table.counts, alone, tree),
        Uncertainty(wide.standard_error[:, 0], wide.lower[:, 0], wide.upper[:, 0]),
        simulated.forecast,
    )


def _widened(found: Uncertainty, counts: Ints, alone: Ints, tree: LevelTree) -> Uncertainty:
    factor = np.ones(counts.shape)
    for here in map(tree.level, range(tree.n_levels)):
        moved = np.square(counts[here] - alone[here], dtype=np.float64).mean(axis=0)
        expected = np.square(np.maximum(found.standard_error[here], LEAST_SCALE)).mean(axis=0)
        factor[here] = np.sqrt(np.maximum(1.0, moved / expected))
    lower = np.floor(counts - factor * (counts - found.lower))
    upper = np.ceil(counts + factor * (found.upper - counts))
    return Uncertainty(
        (factor * found.standard_error).round(2),
        np.maximum(lower, 0).astype(np.int64),
        upper.astype(np.int64),
    )


def _unbiased(table: GroupTable, plan: SizePlan, n_runs: int, run: Run | None) -> GroupTable:
    """A table whose releases match the root of this one on average; it stands in for the truth.

    Post-processing moves numbers away from zero, where the truth often is, so a release of the release would have less error than the
    release itself.
    """
    solve = plan.mechanism.simulate or plan.mechanism.solve
    truth, root = table, table.counts[0].astype(np.float64)
    for i in range(UNBIASING):
        keys = range(MOST_RUNS + i * n_runs, MOST_RUNS + (i + 1) * n_runs)
        outs = [solve(measured(truth, plan, _public_noise(key)), run)[0] for key in keys]
        root = np.maximum(root + UNBIASING_STEP * (table.counts[0] - np.mean(outs, axis=0)), 0)
        truth = _with_root(table, np.rint(root).astype(np.int64), plan.total)
    return truth


def _with_root(table: GroupTable, root: Ints, total: Total) -> GroupTable:
    """The table with another root: leaves in proportion, in whole numbers, and with the same number of groups if that is public."""
    tree = table.regions.tree
    leaves = table.counts[tree.level(tree.n_levels - 1)]
    if total is Total.PUBLIC:
        root[np.argmax(root)] += table.n_groups - root.sum()
    share = np.maximum(root, 0) / np.maximum(leaves.sum(axis=0), 1)
    whole = np.rint((leaves * share).cumsum(axis=0)).astype(np.int64)
    return GroupTable(table.regions, tree.sum_up(np.diff(whole, axis=0, prepend=0)), table.first_size)


def _public_noise(i: int) -> KeyedNoise:
    """Noise that anyone can reproduce, under a key that no debit or seed uses."""
    return KeyedNoise(hashlib.sha256(b"louver simulation %d" % i).digest(), is_private=False)


def region_scale(plan: SizePlan) -> Floats:
    """Standard deviation of a single number of groups in each region, before any truncation or rounding."""
    tree = plan.regions.tree
    own = np.array([level.distribution.variance for level in plan.levels])
    weighed = least_squares_variances if plan.mechanism.is_weighted else _own_variances
    factor = 1 if plan.query is SizeQuery.SIZES else 2
    scale: Floats = np.maximum(LEAST_SCALE, np.sqrt(factor * weighed(own, tree)))
    return scale


def _own_variances(own: Floats, tree: LevelTree) -> Floats:
    return np.repeat(own, tree.level_sizes)


def least_squares_variances(own: Floats, tree: LevelTree) -> Floats:
    """Variance of every region after generalised least squares over the tree, given the noise variance of its level.

    Notes
    -----
    **Implements**: up the tree, a region and the sum of its children are weighted by precision; down, the gap between the children's sum
    and the parent is divided among them in proportion to their variances v: v - v^2 / S + v^2 / S^2 var(parent), S their sum.

    Examples
    --------
    >>> least_squares_variances(np.array([1.0, 1.0]), LevelTree.from_counts([[4]])).tolist()
    [0.8, 0.8, 0.8, 0.8, 0.8]
    """
    least = np.maximum(own, LEAST_SCALE**2 / 1e6)
    alone, below = np.repeat(least, tree.level_sizes), np.zeros(tree.n_regions)
    for k in range(tree.n_levels - 2, -1, -1):
        here = tree.level(k)
        below[here] = np.add.reduceat(alone[: tree.level_start[k + 2]], tree.first_child[here])
        alone[here] = 1 / (1 / least[k] + 1 / below[here])
    found = alone.copy()
    for k in range(1, tree.n_levels):
        here = tree.level(k)
        parent = tree.parent[here]
        share = alone[here] / below[parent]
        found[here] -= share**2 * (below[parent] - found[parent])
    return found


class _LevelDraws:
    """Simulations of one level: pairs of true and simulated numbers, and the error of each size."""

    def __init__(self, tree: LevelTree, k: int, truth: Ints, scale: Floats, n_runs: int) -> None:
        self._tree, self._k, self._truth = tree, k, truth[tree.level(k)]
        self._step = -(-self._truth.size * n_runs // MOST_PAIRS)
        # The scale counts as one simulated number of each size.
        self._squares = np.full(self._truth.shape[1], np.square(scale[tree.level(k)]).mean())
        self._n = 1
        self._taken: list[tuple[Floats, ...]] = []

    def take(self, out: Ints) -> None:
        """Record the results of one simulation."""
        here = out[self._tree.level(self._k)]
        off = self._truth - here
        self._squares += np.square(off, dtype=np.float64).sum(axis=0)
        self._n += len(off)
        parts = (here, _expected(out, self._tree, self._k), off)
        self._taken.append(tuple(part.ravel()[:: self._step].astype(np.float64) for part in parts))

    def intervals(self, counts: Ints) -> tuple[Floats, Ints, Ints]:
        """Standard error and interval of every number of a release, class by class."""
        level = counts[self._tree.level(self._k)]
        by_size = np.maximum(LEAST_SCALE, np.sqrt(self._squares / self._n))
        deviation = np.broadcast_to(by_size, level.shape).ravel()
        pairs = _Pairs(
            *(np.ravel(np.stack(part) / deviation[:: self._step]) for part in zip(*self._taken, strict=True))
        )
        expected = _expected(counts, self._tree, self._k).ravel()
        found = _by_class(level.ravel() / deviation, expected / deviation, pairs)
        error, low, high = (found * deviation).reshape(3, *level.shape)
        lower = np.clip(np.rint(level + low), 0, level).astype(np.int64)
        return error.round(2), lower, np.maximum(np.rint(level + high), level).astype(np.int64)


def _expected(counts: Ints, tree: LevelTree, k: int) -> Floats:
    """Expected numbers given their surroundings: the parent's number times the region's share of its groups."""
    if k == 0:
        side = NEAR_SIZES // 2
        return np.convolve(np.pad(counts[0], side, mode="edge"), np.full(NEAR_SIZES, 1 / NEAR_SIZES), "valid")
    here = tree.level(k)
    parent = tree.parent[here]
    groups = counts.sum(axis=1)
    expected: Floats = counts[parent] * (groups[here] / np.maximum(groups[parent], 1))[:, None]
    return expected


def _by_class(number: Floats, expected: Floats, pairs: _Pairs) -> Floats:
    """Root mean square and quantiles of the deviation from the truth for every number, from the pairs of its class."""
    own, simulated = (np.searchsorted(CLASS_EDGES, which) for which in (number, pairs.number))
    found = np.empty((3, len(number)))
    for c in np.unique(own):
        here, alike = own == c, np.flatnonzero(simulated == c)
        if len(alike) < POOLED:  # too few pairs in this class: use the nearest ones
            distance = np.abs(pairs.number - np.median(number[here]))
            alike = np.argsort(distance, kind="stable")[:POOLED]
        is_large = c == len(CLASS_EDGES)
        keys, wanted = (pairs.number, number) if is_large else (pairs.expected, expected)
        found[:, here] = _read_off(keys[alike], pairs.off[alike], wanted[here])
    return found


def _read_off(key: Floats, off: Floats, wanted: Floats) -> Floats:
    """Root mean square and quantiles of the deviation from the truth near every requested key: bins with equal numbers of pairs."""
    order = np.argsort(key, kind="stable")
    n_bins = min(MOST_BINS, max(1, len(order) // POOLED))
    edges = np.linspace(0, len(order), n_bins + 1).astype(int)
    by_bin = np.empty((3, n_bins))
    for i, part in enumerate(np.split(off[order], edges[1:-1])):
        by_bin[:, i] = math.sqrt(float(np.mean(part * part))), *np.quantile(part, TAILS, method="weibull")
    found: Floats = by_bin[:, np.searchsorted(key[order][edges[1:-1]], wanted, side="right")]
    return found


def _by_students_t(numbers: Ints, off: Ints) -> Uncertainty:
    """The same for numbers too few to be pooled: for each of them, a Student's t interval around its mean error."""
    n_runs = len(off)
    center = numbers + off.mean(axis=0)
    error = np.sqrt(np.square(off, dtype=np.float64).mean(axis=0))
    half = stdtrit(n_runs - 1, TAILS[1]) * error * math.sqrt((n_runs + 1) / (n_runs - 1))
    lower = np.clip(np.floor(center - half), 0, numbers).astype(np.int64)
    upper = np.maximum(np.ceil(center + half), numbers).astype(np.int64)
    return Uncertainty(error.round(2), lower, upper)
