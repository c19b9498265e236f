"""Numbers of households by size that agree with numbers of people, from noisy cumulative counts: empirical Bayes, down a tree.

For every leaf, finds whole numbers of households of at least each size, close to what was measured and to what the regions above suggest.
Sizes times households give exactly the people known to live there, and the number of households stays within its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Floats, Ints
from louver.errors import SolverError
from louver.optim.kernels.trees.agreement import (
    exchange_inplace,
    fit_children_inplace,
    fit_row_inplace,
    round_rows,
)
from louver.optim.trees import LevelTree
from louver.run import Run

__all__ = ["HousedPeople", "fit_agreeing", "round_agreeing"]

SWEEPS = 40
"""Maximum number of times that children are projected onto their parent's sums and onto possible rows, in turn."""

TOLERANCE = 0.02
"""Tolerance for the sums of children; what is published is rounded to whole numbers anyway."""

SCORING = 8
"""Steps of Fisher scoring towards the likeliest spread of regions around their parent."""

LEAST_SPREAD = 0.1
"""Least variance of a region around its parent, as a share of the variance of the count itself."""

OWN_SHARE = 0.9
"""A region with more than this share of its parent's people says nothing about how regions differ from their parent."""

LEAST_VARIANCE = 1e-6
"""Variances of noise below this are raised to it; they may have underflowed to zero."""

TINY = 1e-9
"""Keeps quotients of variances defined."""

ROUNDS = 3
"""Rounds over the tree: the first learns directions and spreads, and each later one uses what the round before it learnt."""

THRESHOLDS = (64.0, 16.0, 4.0, 1.0, 1e-6)
"""Gain that an exchange must bring, pass by pass, so that the most profitable exchanges are made first."""

PASSES = 50
"""Maximum number of passes over all leaves for one threshold."""


@dataclass(frozen=True, slots=True, eq=False)
class HousedPeople:
    """What is known about every region of a tree, leaves included: whole numbers that add up over it.

    Attributes
    ----------
    people : int64 (n_regions,)
        People in households.
    lower, upper : int64 (n_regions,)
        Bounds on the number of households that are possible for these people: people <= upper * sizes, lower <= people, and where
        the lower bound binds people <= lower * sizes.
    """

    people: Ints
    lower: Ints
    upper: Ints

    @classmethod
    def of_leaves(cls, tree: LevelTree, people: Ints, lower: Ints, upper: Ints, n_sizes: int) -> HousedPeople:
        """Sum up from the leaves, with bounds as tight as the people make them.

        Raises
        ------
        SolverError
            If a leaf cannot have such households.
        """
        least, most = np.maximum(lower, -(-people // n_sizes)), np.minimum(upper, people)
        if (least > most).any():
            raise SolverError("a leaf has more or fewer people than its households can have.")
        return cls(*(tree.sum_up(part) for part in (people, least, most)))

    @property
    def is_counted(self) -> bool:
        """Whether the number of households of every region is known."""
        return bool((self.lower == self.upper).all())


def fit_agreeing(
    noisy: Ints, tree: LevelTree, variances: Sequence[float], known: HousedPeople, run: Run | None = None
) -> Floats:
    """Real rows for all regions: the root as measured, every other one between its measurement and its share of its parent.

    Parameters
    ----------
    noisy : int64 (n_regions, n_sizes)
        Households of at least each size.
    variances : sequence of float
        Of the noise of each level.

    Notes
    -----
    A region is expected to have its parent's row times its share of the people. How far regions of a level deviate from that is learnt from
    the measurements: the directions in which rows differ, the same for all levels, and along each of them a variance a P + b P^2 of a
    region of P people. Up the tree, a region's own measurement and what its children say of it are weighted by precision. Down the tree, so
    are what is expected of a region and what its subtree says; then rows are brought to their parent's sums, and to rows that are possible
    for the region's people and bounds. **Cost**: O(R S^2) for each of three rounds, O(R S) for each sweep.
    """
    n_sizes = noisy.shape[1]
    rows, noise = noisy.astype(np.float64), np.maximum(np.asarray(variances, np.float64), LEAST_VARIANCE)
    basis, spreads = np.eye(n_sizes), [np.zeros((2, n_sizes))] * tree.n_levels
    fitted = rows
    for number in range(ROUNDS):
        if run is not None:
            run.check()
        alone, left = _upwards(rows @ basis, tree, noise, known, spreads if number else None)
        fitted, deviations = _downwards(alone, left, basis, spreads, tree, known)
        if number == 0:
            basis = _directions(deviations)
            deviations = [one.along(basis) for one in deviations]
        if number < ROUNDS - 1:
            spreads = [np.zeros((2, n_sizes)), *map(_learn, deviations)]
    return fitted


def round_agreeing(fitted: Floats, tree: LevelTree, known: HousedPeople, run: Run | None = None) -> Ints:
    """Whole-number rows for all regions, each the sum of its leaves and possible for its people, as close to the real-valued rows as
    exchanges bring them.

    The squared distance is that over all regions of all levels, so leaves that are rounded do not drift together.
    """
    leaves = tree.level(tree.n_levels - 1)
    whole = np.empty((tree.n_leaves, fitted.shape[1]), dtype=np.int64)
    upper, lower = known.upper[leaves], known.lower[leaves]
    failed = round_rows(np.ascontiguousarray(fitted[leaves]), known.people[leaves], upper, whole)
    if failed >= 0:
        raise SolverError("a leaf could not be rounded to whole households.")
    off = tree.sum_up(whole) - fitted
    for threshold in THRESHOLDS:
        for _ in range(PASSES):
            if run is not None:
                run.check()
            if not exchange_inplace(whole, off, tree.parent, leaves.start, lower, upper, threshold):
                break
    return tree.sum_up(whole)


def _upwards(
    rows: Floats, tree: LevelTree, noise: Floats, known: HousedPeople, spreads: Sequence[Floats] | None
) -> tuple[Floats, Floats]:
    """Estimates of every region's row from its subtree, along each direction, with their variances.

    Notes
    -----
    The sum of children is predicted as the best linear unbiased predictor of small areas does: each child's measurement is weighted against
    its share of a common row, which is estimated from all of them. Without spreads it is their sum. Regions without people have no
    households.
    """
    alone, left = rows.copy(), np.repeat(noise, tree.level_sizes)[:, None] * np.ones(rows.shape[1])
    leaves = tree.level(tree.n_levels - 1)
    is_empty = known.people[leaves] == 0
    for part in (alone, left):
        part[leaves][is_empty] = 0.0
    for k in range(tree.n_levels - 2, -1, -1):
        here, below = tree.level(k), tree.level(k + 1)
        starts = tree.first_child[here] - below.start
        child, variance = alone[below], left[below]
        if spreads is None:
            said, of_sum = (np.add.reduceat(part, starts, axis=0) for part in (child, variance))
        else:
            people = known.people[below]
            said, of_sum = _predicted(child, variance, _variance(spreads[k + 1], people), people, starts)
        share = of_sum / (of_sum + left[here])
        alone[here] = share * alone[here] + (1 - share) * said
        left[here] = share * left[here]
    return alone, left


def _predicted(
    child: Floats, noise: Floats, spread: Floats, people: Ints, starts: Ints
) -> tuple[Floats, Floats]:
    """Sums of children and their mean squared errors: measurements weighted against shares of a common row."""
    counts = np.diff(starts, append=len(people))
    of_all = np.add.reduceat(people, starts)
    share = _ratio(people, np.repeat(of_all, counts))[:, None]
    total = spread + noise
    precision = np.where(share > 0, 1 / np.maximum(total, TINY), 0.0)
    information = np.add.reduceat(share**2 * precision, starts, axis=0)
    common = np.add.reduceat(share * precision * child, starts, axis=0) / np.maximum(information, TINY)
    weight = np.where(share > 0, spread / np.maximum(total, TINY), 0.0)
    each = weight * child + (1 - weight) * share * np.repeat(common, counts, axis=0)
    said = np.add.reduceat(each, starts, axis=0)
    shared = np.add.reduceat((1 - weight) * share, starts, axis=0)
    error = np.add.reduceat(weight * noise, starts, axis=0) + shared**2 / np.maximum(information, TINY)
    is_empty = (of_all == 0)[:, None]
    return np.where(is_empty, 0.0, said), np.where(is_empty, 0.0, error)


def _downwards(
    alone: Floats,
    left: Floats,
    basis: Floats,
    spreads: Sequence[Floats],
    tree: LevelTree,
    known: HousedPeople,
) -> tuple[Floats, list[_Deviations]]:
    """Rows of all regions, and for every level but the first how its regions deviate from what was expected."""
    totals, lower, upper = (part.astype(np.float64) for part in (known.people, known.lower, known.upper))
    fitted, entries = alone @ basis.T, np.zeros_like(alone)
    fit_row_inplace(fitted[0], totals[0], lower[0], upper[0], *np.empty((2, alone.shape[1])))
    deviations = []
    for k in range(1, tree.n_levels):
        here, above = tree.level(k), tree.level(k - 1)
        people = known.people[here]
        expected = _expected(fitted, tree.parent[here], known, here)
        off = alone[here] - expected @ basis
        deviations.append(_Deviations.of(off, left[here], people, tree.parent[here]))
        least = LEAST_SPREAD * np.maximum(expected, 0.0) @ basis**2
        believed = np.maximum(_variance(spreads[k], people), least) + TINY
        weight = believed / (believed + left[here])
        fitted[here] = expected + (weight * off) @ basis.T
        entries[here] = (weight * left[here]) @ (basis**2).T
        fit_children_inplace(
            fitted,
            entries,
            tree.first_child,
            above.start,
            above.stop,
            totals,
            lower,
            upper,
            SWEEPS,
            TOLERANCE,
        )
    return fitted, deviations


def _expected(fitted: Floats, parent: Ints, known: HousedPeople, here: slice) -> Floats:
    """The parent's row times the share of its people; where households are counted, only sizes beyond the first are shared out."""
    people = known.people
    expected: Floats = fitted[parent] * _ratio(people[here], people[parent])[:, None]
    if known.is_counted:
        others = people - known.lower
        expected = fitted[parent] * _ratio(others[here], others[parent])[:, None]
        expected[:, 0] = known.lower[here]
    return expected


def _ratio(part: Ints, whole: Ints) -> Floats:
    found: Floats = part / np.maximum(whole, 1)
    return found


def _variance(spread: Floats, people: Ints) -> Floats:
    """Variance of regions around what is expected of them, along each direction."""
    found: Floats = np.stack([people, people.astype(np.float64) ** 2]).T @ spread
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Deviations:
    """Deviations of regions from their expected rows, for the regions from which the spread can be learnt.

    Attributes
    ----------
    off : float64 (n, n_sizes)
    noise : float64 (n, n_sizes)
        Variance of the noise in them.
    people : float64 (n,)
    """

    off: Floats
    noise: Floats
    people: Floats

    @classmethod
    def of(cls, off: Floats, noise: Floats, people: Ints, parent: Ints) -> _Deviations:
        """Leave out regions that make up nearly all of their parent; for the others, undo their own contribution to the parent's row."""
        of_parent = np.bincount(parent, people, minlength=int(parent.max()) + 1)[parent]
        share = people / np.maximum(of_parent, 1)
        kept = (share < OWN_SHARE) & (people > 0)
        return cls(
            off[kept] / np.sqrt(1 - share[kept])[:, None], noise[kept], people[kept].astype(np.float64)
        )

    def along(self, basis: Floats) -> _Deviations:
        """The same deviations along other directions; the noise must be equal in all of them."""
        return _Deviations(self.off @ basis, self.noise, self.people)


def _directions(levels: Sequence[_Deviations]) -> Floats:
    """The directions in which regions of all levels deviate, from measurements with noise that is the same in all directions."""
    n_sizes = levels[0].off.shape[1] if levels else 1
    covariance = np.zeros((n_sizes, n_sizes))
    for deviations in levels:
        if not len(deviations.off):
            continue
        noise = deviations.noise[:, 0]
        excess = (deviations.off**2).mean(axis=1) - noise
        typical = max(0.0, float((deviations.people * excess).sum() / (deviations.people**2).sum()))
        weight = deviations.people / (noise + typical * deviations.people + TINY) ** 2
        own = (deviations.off * weight[:, None]).T @ deviations.off
        own[np.diag_indices(n_sizes)] -= float((weight * noise).sum())
        if (trace := float(np.trace(own))) > 0:
            covariance += own / trace
    basis: Floats = np.linalg.eigh(covariance).eigenvectors
    return basis


def _learn(deviations: _Deviations) -> Floats:
    """The likeliest variances a P + b P^2 along each direction, (2, n_sizes): normal deviations, by Fisher scoring."""
    learnt = np.zeros((2, deviations.off.shape[1]))
    if not len(deviations.off):
        return learnt
    mean = float(deviations.people.mean())
    size = deviations.people / mean
    terms, excess = np.stack([size, size**2]), deviations.off**2 - deviations.noise
    for _ in range(SCORING):
        total = deviations.noise + terms.T @ learnt + TINY
        learnt = _nonnegative_fit(terms, excess, 1 / total**2)
    found: Floats = learnt / np.array([[mean], [mean**2]])
    return found


def _nonnegative_fit(terms: Floats, excess: Floats, weight: Floats) -> Floats:
    """Least squares of each column of `excess` on two terms, weighted, with coefficients that are not negative."""
    first, second = terms
    a, b, c = ((part[:, None] * weight).sum(axis=0) for part in (first**2, first * second, second**2))
    u, v = ((part[:, None] * weight * excess).sum(axis=0) for part in (first, second))
    determinant = a * c - b * b
    safe = np.where(determinant > 1e-12 * a * c, determinant, np.inf)
    both = np.stack([(c * u - b * v) / safe, (a * v - b * u) / safe])
    alone_first, alone_second = np.maximum(u / a, 0), np.maximum(v / c, 0)
    # Which single term explains more: u^2 / a or v^2 / c.
    is_first = alone_first * np.maximum(u, 0) >= alone_second * np.maximum(v, 0)
    single = np.stack([np.where(is_first, alone_first, 0), np.where(is_first, 0, alone_second)])
    is_inside = np.isfinite(safe) & (both > 0).all(axis=0)
    found: Floats = np.where(is_inside, both, single)
    return found
