"""Marginals of a table over its attributes, decomposed: scalars in place of covariance matrices.

A marginal query M_q over the attributes q has M_q'M_q = product of identities (attributes in q) and of ones (the others). All of these
commute: the cells split into one subspace for every set S of attributes (constant over the others, summing to zero over each of S), and
on it M_q'M_q is n / n_q times the identity where S is part of q, zero otherwise. A precision that is a weighted sum of them is one
number for every S, and remains one when regions are added up. Sets are bit masks.

Notes
-----
**Implements**: the decomposition of analysis of variance, as Xiao et al. (2023), ResidualPlanner, use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from louver._arrays import Floats
from louver.data.regions import RegionTree
from louver.topdown.problem import Query, Workload

__all__ = ["Subspaces", "least_squares_variances", "precisions_above", "tree_variances"]


@dataclass(frozen=True, slots=True)
class Subspaces:
    """The subspaces of the cells of a table.

    Parameters
    ----------
    shape : tuple of int
        Labels of each attribute.
    """

    shape: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def n_sets(self) -> int:
        """Number of subspaces."""
        return 1 << len(self.shape)

    def split(self, values: Floats) -> list[Floats]:
        """Components of tables (regions, cells), set by set, with axes of length one where they are constant."""
        parts = [values.reshape(-1, *self.shape)]
        for axis in range(1, len(self.shape) + 1):
            means = [part.mean(axis=axis, keepdims=True) for part in parts]
            parts = means + [part - mean for part, mean in zip(parts, means, strict=True)]
        return parts

    def join(self, parts: Sequence[Floats], factors: Floats) -> Floats:
        """Sum of components (regions, cells), each times its factor (regions, sets)."""
        total = np.zeros((len(parts[-1]), *self.shape))
        for mask, part in enumerate(parts):
            total += part * factors[:, mask].reshape(-1, *([1] * len(self.shape)))
        return total.reshape(len(total), -1)

    def precision(self, queries: Sequence[Query], weights: Sequence[float]) -> Floats:
        """Precision (sets,) of measuring marginals with these inverse variances."""
        found = np.zeros(self.n_sets)
        for query, weight in zip(queries, weights, strict=True):
            whole = mask_of(query)
            inside = (np.arange(self.n_sets) & ~whole) == 0
            found[inside] += weight * self.n_cells / query.n_rows
        return found

    def spread(self, query: Query) -> Floats:
        """The contribution of the variance (sets,) of each subspace to the variance of one row of a marginal."""
        whole = mask_of(query)
        added = np.zeros(self.n_sets)
        for mask in range(self.n_sets):
            if mask & ~whole == 0:
                added[mask] = prod(
                    self._factor(axis, size, mask, whole) for axis, size in enumerate(self.shape)
                )
        return added

    def spread_of_rows(self, query: Query) -> Floats:
        """The same contribution on average over the rows of any query, including queries that merge labels."""
        rows = np.zeros((query.n_rows, self.n_cells))
        rows[query.row_of, np.arange(self.n_cells)] = 1.0
        return np.array(
            [
                np.square(part).mean() * self.n_cells for part in self.split(rows)
            ]  # constant axes count in full
        )

    @staticmethod
    def _factor(axis: int, size: int, mask: int, whole: int) -> float:
        if not whole >> axis & 1:
            return float(size)
        return 1.0 - 1.0 / size if mask >> axis & 1 else 1.0 / size

    def marginal(self, mask: int) -> Query:
        """The marginal over a set of attributes."""
        codes = np.indices(self.shape).reshape(len(self.shape), self.n_cells)
        row_of = np.zeros(self.n_cells, dtype=np.int64)
        axes = tuple(axis for axis in range(len(self.shape)) if mask >> axis & 1)
        for axis in axes:
            row_of = row_of * self.shape[axis] + codes[axis]
        n_rows = prod(self.shape[axis] for axis in axes)
        return Query(name=f"marginal {mask}", row_of=row_of, n_rows=n_rows, axes=axes)


def mask_of(query: Query) -> int:
    """The set of attributes a marginal keeps."""
    return sum(1 << axis for axis in query.axes or ())


def precisions_above(
    spine: RegionTree, subspaces: Subspaces, workloads: Sequence[Workload]
) -> tuple[list[Floats], list[Floats]]:
    """Precision of every region from its own measurements and all below; and from those below alone.

    Returns
    -------
    whole, below : list of ndarray, shape (regions, sets)
        One for each level. At the leaves `below` is zero, and `whole` has a single row, which applies to all regions.
    """
    own = [subspaces.precision(load.queries, [1.0 / x for x in load.variances]) for load in workloads]
    whole, under = [own[-1][None, :]], [np.zeros((1, subspaces.n_sets))]
    for level in range(spine.n_levels - 2, -1, -1):
        starts = spine.starts[level]
        if len(whole[0]) == 1 and level == spine.n_levels - 2:
            summed = np.diff(starts)[:, None] / whole[0]
        else:
            summed = np.add.reduceat(1.0 / whole[0], starts[:-1], axis=0)
        under.insert(0, 1.0 / summed)
        whole.insert(0, own[level] + 1.0 / summed)
    return whole, under


def least_squares_variances(
    spine: RegionTree,
    shape: tuple[int, ...],
    workloads: Sequence[Workload],
    queries: Sequence[Query],
    *,
    exact: Sequence[Sequence[Query]] = (),
) -> list[Floats]:
    """Variances of the least-squares estimates from all measurements of a tree, before any constraint.

    Parameters
    ----------
    spine, shape, workloads
        Regions, labels of each attribute, and what every level measures; all queries are marginals over attributes.
    queries : sequence of Query
        Marginals to forecast.
    exact : sequence of sequence of Query, optional
        For each level the marginals that invariants fix: their subspaces have no variance at that level or above.

    Returns
    -------
    list of ndarray, shape (regions, queries)
        For each level the variance of one row of every query in every region.

    Notes
    -----
    **Implements**: the two passes of Hay et al. (2010) with unequal variances, on every subspace. With v the variance of a child from its
    own subtree, s the sum of v over its siblings and itself, and V the final variance of its parent, the final variance of the child is v -
    (v / s)^2 (s - V). The least squares with constraints that TopDown solves differs from it where counts are near zero: this is a forecast
    for large counts only.

    **Cost**: regions x 2^attributes.
    """
    subspaces = Subspaces(shape)
    _, final = tree_variances(spine, subspaces, workloads, exact=exact)
    spread = np.stack([subspaces.spread(query) for query in queries], axis=1)
    return [variances @ spread for variances in final]


def tree_variances(
    spine: RegionTree,
    subspaces: Subspaces,
    workloads: Sequence[Workload],
    *,
    exact: Sequence[Sequence[Query]] = (),
    is_climbing: bool = True,
) -> tuple[list[Floats], list[Floats]]:
    """Variances (regions, sets) for each level: from a region's own subtree alone, and from the whole tree.

    Without `is_climbing` only a region's own measurements are used before it is fitted to its parent, as in
    Algorithm 1 of Abowd et al. (2019).
    """
    whole, _ = precisions_above(spine, subspaces, workloads)
    if not is_climbing:
        whole = [
            subspaces.precision(load.queries, [1.0 / x for x in load.variances])[None, :]
            for load in workloads
        ]
    known = [_known(subspaces, exact[level] if level < len(exact) else ()) for level in range(spine.n_levels)]
    up = [np.broadcast_to(1.0 / part, (n, part.shape[1])) for part, n in zip(whole, spine.sizes, strict=True)]
    final = [np.where(known[0], 0.0, up[0])]
    for level in range(1, spine.n_levels):
        starts = spine.starts[level - 1]
        number = np.diff(starts)
        summed = np.repeat(np.add.reduceat(up[level], starts[:-1], axis=0), number, axis=0)
        above = np.repeat(final[-1], number, axis=0)
        own = up[level] - (up[level] / summed) ** 2 * (summed - above)
        final.append(np.where(known[level], 0.0, own))
    return up, final


def _known(subspaces: Subspaces, exact: Sequence[Query]) -> Floats:
    """Which subspaces exact marginals fix."""
    sets = np.arange(subspaces.n_sets)
    inside = [(sets & ~mask_of(query)) == 0 for query in exact]
    return np.any(inside, axis=0) if inside else np.zeros(subspaces.n_sets, dtype=np.bool_)
