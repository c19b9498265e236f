"""The cells of a batch's children one by one, their expected counts given the parents, and the treatment of posterior means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.topdown.problem import Evidence, Families, Problem, Query

__all__ = [
    "SHARE_CUTS",
    "Entries",
    "capped",
    "groups_of",
    "normalised",
    "posterior_evidence",
    "usual_weights",
]

SHARE_CUTS = np.array([0.02, 0.1, 0.3])
"""Cuts in the share of the parent's people; each class of cells departs from its parents in its own way."""

SMALL_SHARE = 0.05  # share of the parent's people below which the cap on shrinking applies to a cell
PSEUDO_COUNTS = 10.0
TOTAL_WEIGHT = 1e3  # weight of totals in the solve: practically fixed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entries:
    """Every cell of every child in a batch, in the order of `Fractional.counts`.

    Parameters
    ----------
    family, child, cell : ndarray of int64
        Parent and child within the batch, and the cell.
    share : ndarray of float64
        The share of the parent's people in this cell.
    expected : ndarray of float64
        The parent's share of the cell within its type, times the child's people of that type.
    people : ndarray of float64
        The parent's people in this cell.
    totals : ndarray of float64, shape (children, types)
        People of the children by least squares.
    """

    family: Ints
    child: Ints
    cell: Ints
    share: Floats
    expected: Floats
    people: Floats
    totals: Floats

    @classmethod
    def of(cls, problem: Problem, families: Families, totals: Floats) -> Entries:
        """Entries of a batch whose children have these totals (children, types)."""
        parents = families.parents
        assert parents is not None, "the root has no parent to resemble"
        n_cells, n_children = np.diff(parents.start), np.diff(families.child_start)
        parent = np.repeat(np.arange(families.n_families), n_cells)
        repeats = n_children[parent]
        family = np.repeat(parent, repeats)
        run = np.repeat(np.cumsum(repeats) - repeats, repeats)
        child = np.arange(len(family)) - run + families.child_start[family]
        cell = np.repeat(parents.cell, repeats)
        count = np.repeat(parents.count, repeats).astype(np.float64)
        types = problem.type_of[cell]
        n_types = problem.implied.n_types
        by_type = np.zeros((families.n_families, n_types))
        np.add.at(by_type, (parent, problem.type_of[parents.cell]), parents.count)
        return cls(
            family=family,
            child=child,
            cell=cell,
            share=count / by_type.sum(axis=1)[family],
            expected=totals[child, types] * count / by_type[family, types],
            people=count,
            totals=totals,
        )

    def part(self, chosen: Bools) -> Entries:
        """A subset of the entries; totals still cover all cells."""
        return Entries(
            family=self.family[chosen],
            child=self.child[chosen],
            cell=self.cell[chosen],
            share=self.share[chosen],
            expected=self.expected[chosen],
            people=self.people[chosen],
            totals=self.totals,
        )


def groups_of(problem: Problem) -> Ints:
    """Groups of cells that depart from a parent in the same way: those of one type and one label of the attribute with the most labels."""
    if not problem.shape:
        return np.arange(problem.n_cells)
    axis = int(np.argmax(problem.shape))
    label = np.indices(problem.shape)[axis].ravel()
    return np.asarray(problem.type_of * problem.shape[axis] + label)


def usual_weights(exponents: NDArray[Any], *, empty: float, scale: float) -> Floats:
    """Default weights where data are sparse: zero with probability `empty`, otherwise e^exponent, with higher probability closer to one."""
    near = np.exp(-np.abs(exponents) / scale)
    return np.concatenate([[empty], (1.0 - empty) * near / near.sum()])


def normalised(counts: Floats, usual: Floats, pseudo_counts: float = PSEUDO_COUNTS) -> Floats:
    """Weights of every class from counts and, where these are few, from the default weights."""
    total = counts + pseudo_counts * usual
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def capped(mean: Floats, values: Floats, noise: Floats, share: Floats, shrink: float | None) -> Floats:
    """Posterior means that, in cells of small share, are at most some standard deviations below the evidence."""
    if shrink is None:
        return mean
    least = np.where(share < SMALL_SHARE, values - shrink * np.sqrt(noise), 0.0)
    return np.maximum(mean, least)


def posterior_evidence(
    problem: Problem,
    families: Families,
    entries: Entries,
    value: Floats,
    weight: Floats,
    totals: Floats,
    *,
    used: Query | None = None,
    alone: bool = False,
) -> Evidence:
    """Cells with posterior means, almost fixed totals (one for each type, or one overall), and other marginals unless `alone`.

    The answers to the query `used` are left out too, because the posterior means are derived from them.
    """
    n_children = int(families.child_start[-1])
    values, weights = np.zeros((n_children, problem.n_cells)), np.ones((n_children, problem.n_cells))
    values[entries.child, entries.cell] = value
    weights[entries.child, entries.cell] = weight
    by_type = families.is_bounded and totals.shape[1] > 1
    whole = Query(
        name="totals",
        row_of=problem.type_of.copy() if by_type else np.zeros(problem.n_cells, np.int64),
        n_rows=problem.implied.n_types if by_type else 1,
    )
    old = families.evidence
    kept = [
        i for i, query in enumerate(old.queries) if not (alone or query is used or _is_replaced(query, whole))
    ]
    return Evidence(
        queries=(old.queries[old.detailed], whole, *(old.queries[i] for i in kept)),
        values=(
            values,
            totals if by_type else totals.sum(axis=1, keepdims=True),
            *(old.values[i] for i in kept),
        ),
        weights=(weights, np.full((1, 1), TOTAL_WEIGHT), *(old.weights[i] for i in kept)),
    )


def _is_replaced(query: Query, whole: Query) -> bool:
    """Whether posterior means and totals replace a query's answers."""
    return query.is_detailed or query.n_rows == 1 or np.array_equal(query.row_of, whole.row_of)
