"""Least squares over a tree whose regions differ in what was measured, how precisely, and which labels can occur at all.

The labels of some attributes are kept whole: those that queries merge, and those that public bounds refer to. On every subspace of the
other attributes (`subspaces`) a region then has a matrix over these labels in place of a number. Binnings of the labels need not
commute, regions may lack a query or all of them, and labels that cannot occur in a region are left out of its matrix. All of this is exact.

Notes
-----
**Implements**: Hay et al. (2010), section 4.2, with matrices for weights.
**Cost**: m^3 for each region and subspace, where m labels are kept whole; memory for two such matrices for every region above the leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats, Ints
from louver.topdown.estimation.subspaces import Subspaces
from louver.topdown.problem import UNMEASURED, Problem, Query, Workload

__all__ = ["KeptLabels", "LabelTree", "kept_axes"]

MOST_LABELS = 64
"""Number of combinations of labels that are kept whole."""

AT_ONCE = 4_096
"""Number of regions whose matrices are computed together."""


def kept_axes(problem: Problem) -> tuple[int, ...]:
    """Attributes whose labels are kept whole: first those that queries merge, then those that types distinguish."""
    types = problem.type_of.reshape(problem.shape)
    merging = [query.row_of.reshape(problem.shape) for load in problem.workloads for query in load.queries]
    wanted = [axis for axis in range(len(problem.shape)) if any(_is_merged(rows, axis) for rows in merging)]
    wanted += [axis for axis in range(len(problem.shape)) if _depends(types, axis) and axis not in wanted]
    kept: list[int] = []
    for axis in wanted:
        if prod(problem.shape[i] for i in (*kept, axis)) <= MOST_LABELS:
            kept.append(axis)
    return tuple(sorted(kept))


def _depends(rows: Ints, axis: int) -> bool:
    """Whether the numbers of cells differ along an axis."""
    return bool((rows != np.take(rows, [0], axis=axis)).any())


def _is_merged(rows: Ints, axis: int) -> bool:
    """Whether a query distinguishes some labels of an axis but not others."""
    along = np.moveaxis(rows, axis, 0).reshape(rows.shape[axis], -1)
    return bool(1 < len(np.unique(along, axis=0)) < rows.shape[axis])


@dataclass(frozen=True, slots=True)
class KeptLabels:
    """The cells of a table as labels that are kept whole, times subspaces of the other attributes.

    Parameters
    ----------
    shape : tuple of int
        Labels of each attribute.
    kept : tuple of int
        Attributes whose labels are kept whole.

    Examples
    --------
    >>> KeptLabels((2, 3), (1,)).label_of.tolist()
    [0, 1, 2, 0, 1, 2]
    """

    shape: tuple[int, ...]
    kept: tuple[int, ...]

    @property
    def others(self) -> tuple[int, ...]:
        """The other attributes."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.kept)

    @property
    def spaces(self) -> Subspaces:
        """Subspaces of the other attributes."""
        return Subspaces(tuple(self.shape[axis] for axis in self.others))

    @property
    def n_labels(self) -> int:
        """Number of combinations of labels that are kept whole."""
        return prod(self.shape[axis] for axis in self.kept)

    @property
    def label_of(self) -> Ints:
        """The label of each cell."""
        codes = np.indices(self.shape).reshape(len(self.shape), -1)
        found = np.zeros(codes.shape[1], dtype=np.int64)
        for axis in self.kept:
            found = found * self.shape[axis] + codes[axis]
        return found

    @property
    def sizes(self) -> Ints:
        """Dimension of each subspace."""
        n = self.spaces.shape
        masks = range(self.spaces.n_sets)
        return np.array([prod(k - 1 for i, k in enumerate(n) if mask >> i & 1) for mask in masks])

    def split(self, values: Floats) -> list[Floats]:
        """Components of tables (regions, cells): for each subspace an array (regions, labels, ...)."""
        n = len(values)
        tables = values.reshape(n, *self.shape).transpose(0, *(1 + i for i in (*self.kept, *self.others)))
        flat = tables.reshape(n * self.n_labels, self.spaces.n_cells)
        return [part.reshape(n, self.n_labels, -1) for part in self.spaces.split(flat)]

    def join(self, parts: Sequence[Floats]) -> Floats:
        """Tables (regions, cells) with these components."""
        n, spaces = len(parts[0]), self.spaces
        total = np.zeros((n, self.n_labels, *spaces.shape))
        for mask, part in enumerate(parts):
            own = [size if mask >> i & 1 else 1 for i, size in enumerate(spaces.shape)]
            total += part.reshape(n, self.n_labels, *own)
        order = (*self.kept, *self.others)
        tables = total.reshape(n, *(self.shape[axis] for axis in order))
        return tables.transpose(0, *(1 + order.index(axis) for axis in range(len(order)))).reshape(n, -1)

    def factors(self, query: Query) -> tuple[Floats, int] | None:
        """A query as groups of labels (groups, labels) and a set of other attributes; None if it is not such a product."""
        order = (*self.kept, *self.others)
        rows = query.row_of.reshape(self.shape).transpose(order)
        rows = rows.reshape(self.n_labels, *self.spaces.shape)
        mask = sum(1 << i for i in range(len(self.others)) if _depends(rows, 1 + i))
        place = self.spaces.marginal(mask).row_of
        flat = rows.reshape(self.n_labels, -1)
        group = np.unique(flat[:, 0], return_inverse=True)[1].ravel()
        n_places = int(place.max()) + 1
        code = group[:, None] * n_places + place
        if len(np.unique(code * query.n_rows + flat)) != len(np.unique(code)):
            return None
        if len(np.unique(flat)) != len(np.unique(code)):
            return None
        groups = (group == np.arange(group.max() + 1)[:, None]).astype(np.float64)
        return groups, mask

    def information(self, query: Query) -> Floats | None:
        """The contribution of one answer of precision 1 to the matrices (subspaces, labels, labels)."""
        found = self.factors(query)
        if found is None:
            return None
        groups, mask = found
        spaces = self.spaces
        inside = (np.arange(spaces.n_sets) & ~mask) == 0
        factor = spaces.n_cells / prod(n for i, n in enumerate(spaces.shape) if mask >> i & 1)
        return np.asarray(np.where(inside[:, None, None], factor * (groups.T @ groups), 0.0))

    def spread(self, query: Query) -> Floats:
        """The contribution of the covariances (subspaces, labels, labels) to the mean variance of a query's rows."""
        found = self.factors(query)
        if found is None:
            return np.zeros((self.spaces.n_sets, self.n_labels, self.n_labels))
        groups, mask = found
        own = self.spaces.spread(self.spaces.marginal(mask))
        return np.asarray(own[:, None, None] * (groups.T @ groups / len(groups)))


@dataclass(frozen=True, slots=True, eq=False)
class LabelTree:
    """Covariances of every region's least squares from its own subtree.

    Parameters
    ----------
    cells : KeptLabels
    possible : tuple of ndarray of bool, shape (regions, labels)
        For each level which labels can occur.
    combination_of : ndarray of int
        For each leaf, its position in `leaves`: leaves with equal queries and possible labels share their matrices.
    leaves : ndarray, shape (combinations, subspaces, labels, labels)
    whole, below : tuple of ndarray, shape (regions, subspaces, labels, labels)
        For each level above the leaves: overall covariances, and precisions from the children alone.
    """

    cells: KeptLabels
    possible: tuple[Bools, ...]
    combination_of: NDArray[np.integer[Any]]
    leaves: Floats
    whole: tuple[Floats, ...]
    below: tuple[Floats, ...]

    @classmethod
    def of(cls, problem: Problem, *, is_climbing: bool = True) -> LabelTree:
        """The upward pass over covariances; without `is_climbing`, a measured region is estimated from its own answers alone."""
        cells, spine = KeptLabels(problem.shape, kept_axes(problem)), problem.spine
        possible = _possible_labels(problem, cells)
        last = problem.workloads[-1]
        kinds = np.zeros(spine.sizes[-1], np.int64) if last.by_region is None else last.by_region.kind_of
        together = np.column_stack([kinds, possible[-1]]).astype(np.int64)
        combinations, combination_of = np.unique(together, axis=0, return_inverse=True)
        own = _own_precision(cells, last, combinations[:, 0])
        leaves = _inverse(own, combinations[:, 1:].astype(np.bool_))
        tree = cls(cells, possible, combination_of.ravel().astype(np.int32), leaves, (), ())
        for level in range(spine.n_levels - 2, -1, -1):
            whole, below = tree._level(problem, level, is_climbing=is_climbing)
            tree = cls(
                cells, possible, tree.combination_of, leaves, (whole, *tree.whole), (below, *tree.below)
            )
        return tree

    def covariances(self, level: int, start: int, stop: int, n_levels: int) -> Floats:
        """The same for the regions from start to stop."""
        if level == n_levels - 1:
            return np.asarray(self.leaves[self.combination_of[start:stop]])
        return self.whole[level - (n_levels - 1 - len(self.whole))][start:stop]

    def _level(self, problem: Problem, level: int, *, is_climbing: bool) -> tuple[Floats, Floats]:
        """Covariances of all regions of a level, and precisions from their children."""
        spine, load = problem.spine, problem.workloads[level]
        n_sets, m = self.cells.spaces.n_sets, self.cells.n_labels
        whole = np.empty((spine.sizes[level], n_sets, m, m))
        below = np.empty_like(whole)
        for first, last in _stretches(spine.starts[level]):
            start, stop = (int(spine.starts[level][i]) for i in (first, last))
            children = self.covariances(level + 1, start, stop, spine.n_levels)
            summed = np.add.reduceat(children, spine.starts[level][first:last] - start, axis=0)
            possible = self.possible[level][first:last]
            below[first:last] = _inverse(summed, possible)
            if not is_climbing:
                below[first:last][_has_answers(load, first, last)] = 0.0
            kinds = (
                np.zeros(last - first, np.int64)
                if load.by_region is None
                else load.by_region.kind_of[first:last]
            )
            own = _own_precision(self.cells, load, kinds)
            whole[first:last] = _inverse(own + below[first:last], possible)
        return whole, below

    def cell_variances(self, level: int, n_levels: int) -> Floats:
        """Mean variance of the cells that can be non-empty, for each region of a level."""
        n, m = len(self.possible[level]), self.cells.n_labels
        factor = self.cells.sizes / self.cells.spaces.n_cells
        found = np.empty(n)
        for start in range(0, n, AT_ONCE):
            own = self.covariances(level, start, min(start + AT_ONCE, n), n_levels)
            held = self.possible[level][start : start + AT_ONCE].sum(axis=1)
            traces = np.trace(own, axis1=2, axis2=3) @ factor
            found[start : start + AT_ONCE] = np.where(held > 0, traces / np.maximum(held, 1), 1.0 / m)
        return found

    def leaf_precisions(self) -> Floats:
        """The same for each combination of leaves."""
        held = np.zeros((len(self.leaves), self.cells.n_labels), dtype=np.bool_)
        held[self.combination_of] = self.possible[-1]
        alone = LabelTree(
            self.cells, (held,), np.arange(len(self.leaves), dtype=np.int32), self.leaves, (), ()
        )
        return alone.scalar_precisions(0, 1)

    def scalar_precisions(self, level: int, n_levels: int) -> Floats:
        """The closest precisions (regions, subspaces of all attributes): exact for sums over labels and, on average, within them."""
        n, shape, kept = len(self.possible[level]), self.cells.shape, self.cells.kept
        n_sets, m = self.cells.spaces.n_sets, self.cells.n_labels
        within, summed = np.empty((n, n_sets)), np.empty((n, n_sets))
        for start in range(0, n, AT_ONCE):
            own = self.covariances(level, start, min(start + AT_ONCE, n), n_levels)
            held = self.possible[level][start : start + AT_ONCE].sum(axis=1)[:, None]
            total = own.sum(axis=(2, 3))
            trace = np.trace(own, axis1=2, axis2=3)
            left = trace - total / np.maximum(held, 1)
            part = slice(start, start + len(own))
            apart = np.where(held > 1, (held - 1) / np.where(left > 0, left, 1.0), 0.0)
            alone = np.where(total > 0, held / np.where(total > 0, total, 1.0), 1.0)
            within[part] = np.where(held > 1, apart, alone)
            # a + b k is known for the k labels that can occur; all m of them would have a + b m
            summed[part] = within[part] + np.maximum(alone - within[part], 0.0) * m / np.maximum(held, 1)
        found = np.empty((n, 1 << len(shape)))
        for mask in range(1 << len(shape)):
            rest = sum(1 << i for i, axis in enumerate(self.cells.others) if mask >> axis & 1)
            is_within = any(mask >> axis & 1 for axis in kept)
            found[:, mask] = (within if is_within else summed)[:, rest]
        return found

    def variances(
        self, problem: Problem, queries: Sequence[Query], exact: Sequence[bool]
    ) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
        """Mean variances (regions, queries) of the rows of queries, for each level: from the subtree alone, and after the downward pass.

        Parameters
        ----------
        exact : sequence of bool
            For each level whether the number of people is known.
        """
        n_levels = problem.spine.n_levels
        spreads = np.stack([self.cells.spread(query).ravel() for query in queries], axis=1)
        up, final = [], []
        above: Floats | None = None
        for level in range(n_levels):
            is_last = level == n_levels - 1
            own, end = np.empty((len(self.possible[level]), len(queries))), []
            ended = np.empty((len(own), len(queries)))
            for part, before, after in self._downwards(problem, level, above):
                own[part] = before.reshape(len(before), -1) @ spreads
                after = _without_total(after) if exact[level] else after
                ended[part] = np.maximum(after.reshape(len(after), -1) @ spreads, 0.0)
                end += [] if is_last else [after]
            above = None if is_last else np.concatenate(end)
            up.append(own)
            final.append(ended)
        return tuple(up), tuple(final)

    def _downwards(
        self, problem: Problem, level: int, above: Floats | None
    ) -> Iterator[tuple[slice, Floats, Floats]]:
        """Covariances of regions from their own subtrees, and given their parents' estimates."""
        n_levels = problem.spine.n_levels
        if above is None:
            own = self.covariances(level, 0, 1, n_levels)
            yield slice(0, 1), own, own
            return
        starts = problem.spine.starts[level - 1]
        for first, last in _stretches(starts):
            start, stop = int(starts[first]), int(starts[last])
            own = self.covariances(level, start, stop, n_levels)
            number = np.diff(starts[first : last + 1])
            summed = np.add.reduceat(own, starts[first:last] - start, axis=0)
            inverse = np.repeat(_inverse(summed, self.possible[level - 1][first:last]), number, axis=0)
            gain = own @ inverse
            known = np.repeat(above[first:last], number, axis=0)
            yield slice(start, stop), own, own - gain @ own + gain @ known @ np.swapaxes(gain, 2, 3)


def _possible_labels(problem: Problem, cells: KeptLabels) -> tuple[Bools, ...]:
    """Which labels can occur in the regions of every level: those with a type that public bounds allow in some leaf."""
    spine, label_of = problem.spine, cells.label_of
    n_types = problem.implied.n_types
    holds = np.zeros((cells.n_labels, n_types), dtype=np.bool_)
    holds[label_of[problem.is_possible], problem.type_of[problem.is_possible]] = True
    last = spine.n_levels - 1
    leaves = np.empty((spine.sizes[last], cells.n_labels), dtype=np.bool_)
    for start in range(0, spine.sizes[last], AT_ONCE):
        stop = min(start + AT_ONCE, spine.sizes[last])
        is_open = np.ones((stop - start, n_types), dtype=np.bool_)
        if problem.implied.constrained[last]:
            _, upper = problem.implied.bounds(last, start, stop)
            is_open = upper[:, 1 << np.arange(n_types)] > 0
        leaves[start:stop] = (is_open[:, None, :] & holds).any(axis=2)
    found = [leaves]
    for starts in reversed(spine.starts):
        found.insert(0, np.logical_or.reduceat(found[0], starts[:-1], axis=0))
    return tuple(found)


def _own_precision(cells: KeptLabels, load: Workload, kinds: NDArray[np.integer[Any]]) -> Floats:
    """Precisions (regions, subspaces, labels, labels) of a level's own answers, for regions with these kinds of noise."""
    usual = 1.0 / np.array(load.variances)
    weights = usual[None, :]
    if load.by_region is not None:
        weights = np.maximum(load.by_region.kinds, UNMEASURED) * usual
    parts = [cells.information(query) for query in load.queries]
    by_kind = np.zeros((len(weights), cells.spaces.n_sets, cells.n_labels, cells.n_labels))
    for place, part in enumerate(parts):
        if part is not None:
            by_kind += weights[:, place, None, None, None] * part
    return np.asarray(by_kind[kinds])


def _has_answers(load: Workload, first: int, last: int) -> Bools:
    """Which of the regions first to last answered any query."""
    if load.by_region is None:
        return np.ones(last - first, dtype=np.bool_)
    return np.asarray(load.by_region.kinds.max(axis=1)[load.by_region.kind_of[first:last]] > 0)


def _inverse(matrices: Floats, possible: Bools) -> Floats:
    """Inverses on the labels that can occur; zero for the others."""
    inside = possible[:, None, :, None] & possible[:, None, None, :]
    filled = np.where(inside, matrices, np.eye(possible.shape[1]))
    return np.where(inside, np.linalg.inv(filled), 0.0)


def _without_total(covariances: Floats) -> Floats:
    """Covariances where the number of people is known: the first subspace, without its sum over labels."""
    found = covariances.copy()
    first = found[:, 0]
    along = first.sum(axis=2)
    total = along.sum(axis=1)
    found[:, 0] = (
        first - along[:, :, None] * along[:, None, :] / np.where(total > 0, total, 1.0)[:, None, None]
    )
    return found


def _stretches(starts: Ints) -> Iterator[tuple[int, int]]:
    """Parents whose children are processed together."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + AT_ONCE, side="right")) - 1)
        yield first, last
        first = last
