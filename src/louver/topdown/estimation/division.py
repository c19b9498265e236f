"""How the people of a parent are expected to be divided among its leaves, before the leaves' own answers are considered.

Without further knowledge every leaf that may have people expects the same number. A public covariate, such as housing units or the last
census' count, shifts this towards its own proportions, as far as the measurements support it: a group of cells is divided in
proportion to a weighted mean of even shares and of each covariate's shares. The weights are not negative and sum to one, so that an
irrelevant covariate gets a weight near zero and does no harm.

Notes
-----
**Privacy**: post-processing. Weights are learnt from noisy answers and from public files; the records are never opened.
**Implements**: weighted least squares on the simplex (Lawson and Hanson, 1974, chapter 23, for the signs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from louver._arrays import Bools, Floats, Ints
from louver.topdown.problem import Evidence, Families, Problem

__all__ = ["Division", "learn_division"]

SPREAD = 0.6  # of leaf sizes around their expected values, as a share of the mean; used in the fit weights
FIXED = 1e4  # weight of the sum-to-one condition, relative to that of all leaves together
LEAST_GAIN = 4.0  # by which a covariate must lower the weighted sum of squares to be used


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Division:
    """Expected shares of leaves.

    Parameters
    ----------
    group_of : ndarray of int64, shape (cells,)
        The group of each cell: cells of one type to which the same covariates apply are divided in the same way.
    type_of : ndarray of int64, shape (groups,)
    weights : ndarray of float64, shape (groups, 1 + covariates)
        Weights of even shares, then of every covariate's shares.
    """

    group_of: Ints
    type_of: Ints
    weights: Floats

    @classmethod
    def even(cls, problem: Problem) -> Division:
        """A division without covariates."""
        speaks = np.array([one.cells for one in problem.covariates]).reshape(-1, problem.n_cells)
        traits = np.column_stack([problem.type_of, speaks.T.astype(np.int64)])
        groups, group_of = np.unique(traits, axis=0, return_inverse=True)
        weights = np.zeros((len(groups), 1 + len(speaks)))
        weights[:, 0] = 1.0
        return cls(group_of=group_of.ravel().astype(np.int64), type_of=groups[:, 0], weights=weights)

    def shares(self, problem: Problem, families: Families) -> Floats:
        """Share of its parent's people in each group that every child is expected to have, (children, groups)."""
        parts = _parts(problem, families, self.type_of)
        return np.asarray(np.einsum("kcg,gk->cg", parts, self.weights))


def learn_division(problem: Problem, samples: Sequence[Families]) -> Division:
    """Weights of all covariates, from families whose answers may be used."""
    even = Division.even(problem)
    weights = even.weights.copy()
    speaks = np.array([one.cells for one in problem.covariates]).reshape(-1, problem.n_cells)
    groups = np.unique(even.group_of, return_index=True)[1]
    signatures = speaks[:, groups].T  # (groups, covariates)
    for signature in np.unique(signatures, axis=0):
        if signature.any() and samples:
            inside = (signatures == signature).all(axis=1)
            used = np.flatnonzero(np.append(True, signature))
            rows = [_rows(problem, families, even, inside, used) for families in samples]
            weights[np.ix_(inside, used)] = _fit(*(np.concatenate(part) for part in zip(*rows, strict=True)))
    return Division(group_of=even.group_of, type_of=even.type_of, weights=weights)


def _parts(problem: Problem, families: Families, type_of: Ints) -> Floats:
    """Shares (1 + covariates, children, groups) among children that may have people: even shares, then those of each covariate."""
    n_children, start = int(families.child_start[-1]), families.child_start[:-1]
    family = np.repeat(np.arange(families.n_families), np.diff(families.child_start))
    allowed = np.ones((n_children, len(type_of)))
    if families.is_bounded:
        allowed = (families.upper[:, 1 << type_of] > 0).astype(np.float64)
    own = slice(families.first_child, families.first_child + n_children)
    parts: list[Floats] = []
    for values in (np.ones(n_children), *(one.values[own] for one in problem.covariates)):
        part = allowed * values[:, None]
        whole = np.add.reduceat(part, start, axis=0)[family]
        usual = (
            parts[0] if parts else np.full(part.shape, 1.0) / np.diff(families.child_start)[family][:, None]
        )
        parts.append(np.where(whole > 0.0, part / np.where(whole > 0.0, whole, 1.0), usual))
    return np.stack(parts)


def _rows(
    problem: Problem, families: Families, even: Division, inside: Bools, used: Ints
) -> tuple[Floats, Floats, Floats]:
    """For some groups of cells: people expected under every share (children, parts), people according to the answers, and a weight."""
    assert families.parents is not None
    cells = inside[even.group_of]
    people = np.zeros((families.n_families, len(inside)))
    family = np.repeat(np.arange(families.n_families), np.diff(families.parents.start))
    np.add.at(people, (family, even.group_of[families.parents.cell]), families.parents.count)
    child_family = np.repeat(np.arange(families.n_families), np.diff(families.child_start))
    parts = _parts(problem, families, even.type_of)[used]
    expected = np.einsum("kcg,cg->ck", parts[:, :, inside], people[child_family][:, inside])
    values, variance = _answers(families.evidence, cells)
    return expected, values, 1.0 / (variance + (SPREAD * expected[:, 0]) ** 2)


def _answers(evidence: Evidence, cells: Bools) -> tuple[Floats, Floats]:
    """People in a set of cells, from the most precise query whose rows lie entirely within it, with their variances."""
    least, found = np.inf, evidence.detailed
    for i, (query, weight) in enumerate(zip(evidence.queries, evidence.weights, strict=True)):
        within = np.bincount(query.row_of, cells, minlength=query.n_rows)
        size = np.bincount(query.row_of, minlength=query.n_rows)
        variance = float((within > 0).sum() / weight.max())
        if ((within == 0) | (within == size)).all() and variance < least:
            least, found = variance, i
    query, values = evidence.queries[found], np.asarray(evidence.values[found], np.float64)
    rows = np.bincount(query.row_of, cells, minlength=query.n_rows) > 0
    precision = np.broadcast_to(evidence.weights[found], (len(values), 1))[
        :, 0
    ]  # next to no weight where it was not measured
    return values[:, rows].sum(axis=1), rows.sum() / precision


def _fit(expected: Floats, values: Floats, weight: Floats) -> Floats:
    """Weights of the parts, non-negative and summing to one; a part with negligible gain is left out."""
    root = np.sqrt(weight)
    matrix, goal = root[:, None] * expected, root * values

    def solved(used: Bools) -> tuple[float, Floats]:
        sums = FIXED * max(float(np.abs(matrix).max(initial=0.0)), 1.0) * np.ones((1, int(used.sum())))
        found = np.zeros(len(used))
        found[used] = nnls(np.vstack([matrix[:, used], sums]), np.append(goal, sums[0, 0]))[0]
        return float(np.square(matrix @ found - goal).sum()), found / max(found.sum(), 1e-9)

    used = np.ones(expected.shape[1], dtype=np.bool_)
    left, best = solved(used)
    for _ in range(len(used) - 1):
        trials = []
        for part in np.flatnonzero(used[1:]) + 1:
            fewer = used.copy()
            fewer[part] = False
            trials.append((*solved(fewer), fewer))
        without = min(trials, key=lambda trial: trial[0])
        if without[0] - left > LEAST_GAIN:
            break
        left, best, used = without
    return best
