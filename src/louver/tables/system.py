"""Integer unknowns and the published information about them: rows with bounds on both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components

from louver.optim.kernels.audit.propagate import UNBOUNDED, activity_bounds, propagate_inplace
from louver.run import Run

__all__ = ["IntArray", "Intervals", "System", "as_floats", "int64_indices", "split"]

IntArray = NDArray[np.int64]

MAX_ROUNDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class System:
    """row_lower <= matrix x <= row_upper, lower <= x <= upper, x whole.

    Attributes
    ----------
    matrix : csr_array of int64 (m, n)
    row_lower, row_upper : int64 (m,)
    lower, upper : int64 (n,)
        `UNBOUNDED` in size if there is no bound.
    truth : int64 (n,) or None
        A point that satisfies the whole system: the records themselves.
    """

    matrix: csr_array
    row_lower: IntArray
    row_upper: IntArray
    lower: IntArray
    upper: IntArray
    truth: IntArray | None = None

    @property
    def n_columns(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.matrix.shape[0])

    def holds(self, point: IntArray) -> bool:
        """Whether a point meets every row and bound, in exact integers."""
        return self.quantities(point, int(_reach(self.matrix).min(initial=UNBOUNDED))) is not None

    def quantities(self, point: IntArray, reach: int) -> IntArray | None:
        """The unknowns followed by the sums of the rows, if the point meets every row and bound.

        `reach` is the least reach of the rows: a point beyond it could not be summed in 64 bits and is rejected.
        """
        if (point < self.lower).any() or (point > self.upper).any() or np.abs(point).max(initial=0) >= reach:
            return None
        sums = self.matrix @ point
        if (sums < self.row_lower).any() or (sums > self.row_upper).any():
            return None
        return np.concatenate([point, sums])

    def propagated(self, run: Run) -> tuple[System, int]:
        """Bounds tightened by interval propagation, and -1 or a row that cannot be satisfied."""
        return Intervals.of(self.matrix).tightened(self, np.ones(self.n_rows, dtype=bool), run)

    def row_bounds(self) -> tuple[IntArray, IntArray]:
        """Bounds of the rows' sums that follow from the unknowns' bounds and their own."""
        least, most = np.empty_like(self.row_lower), np.empty_like(self.row_upper)
        matrix = self.matrix
        activity_bounds(
            *int64_indices(matrix),
            matrix.data,
            _reach(matrix),
            self.row_lower,
            self.row_upper,
            self.lower,
            self.upper,
            least,
            most,
        )
        return least, most

    def part(self, columns: IntArray, rows: IntArray) -> System:
        """Some unknowns and rows; the unknowns left out must be fixed, and move to the right-hand side."""
        is_kept = np.zeros(self.n_columns, dtype=bool)
        is_kept[columns] = True
        fixed = np.where(is_kept, 0, self.lower)
        picked = self.matrix[rows]
        known = picked @ fixed
        return System(
            matrix=csr_array(picked[:, columns]),
            row_lower=_shifted(self.row_lower[rows], known),
            row_upper=_shifted(self.row_upper[rows], known),
            lower=self.lower[columns],
            upper=self.upper[columns],
            truth=None if self.truth is None else self.truth[columns],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """A matrix prepared for interval propagation with many sets of bounds."""

    matrix: csr_array
    reach: IntArray
    least_reach: int
    col_ptr: IntArray
    col_rows: IntArray

    @classmethod
    def of(cls, matrix: csr_array) -> Intervals:
        columns = matrix.tocsc()
        reach = _reach(matrix)
        return cls(matrix, reach, int(reach.min(initial=UNBOUNDED)), *int64_indices(columns))

    def rows_of(self, column: int) -> IntArray:
        return self.col_rows[self.col_ptr[column] : self.col_ptr[column + 1]]

    def tightened(self, system: System, is_waiting: NDArray[np.bool_], run: Run) -> tuple[System, int]:
        """The system with tighter bounds, and -1 or a row that cannot be satisfied; waiting rows are examined first."""
        matrix, lower, upper = self.matrix, system.lower.copy(), system.upper.copy()
        clash = propagate_inplace(
            *int64_indices(matrix),
            matrix.data,
            self.reach,
            self.col_ptr,
            self.col_rows,
            system.row_lower,
            system.row_upper,
            lower,
            upper,
            is_waiting,
            MAX_ROUNDS,
            run.flag,
        )
        run.check()
        return replace(system, lower=lower, upper=upper), int(clash)


def int64_indices(matrix: csr_array | csc_array) -> tuple[IntArray, IntArray]:
    """Index pointers and indices in 64 bits, whatever SciPy chose: kernels are compiled for one type."""
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int64, copy=False)


def _reach(matrix: csr_array) -> IntArray:
    """Absolute values up to which each row can be summed in 64 bits."""
    sizes = np.append(np.abs(matrix.data), 0)
    weights = np.add.reduceat(sizes, matrix.indptr[:-1]) if matrix.shape[0] else sizes[:0]
    weights = np.where(np.diff(matrix.indptr) > 0, weights, 1)
    reach: IntArray = UNBOUNDED // np.maximum(1, weights)
    return reach


def split(system: System) -> list[tuple[IntArray, IntArray]]:
    """Columns that are not fixed and the rows over them, by connected component."""
    is_free = system.lower < system.upper
    free = np.flatnonzero(is_free)
    matrix = csr_array(system.matrix[:, free])
    matrix.eliminate_zeros()
    n_rows = matrix.shape[0]
    # A row without bounds (a sum that is only queried) must not connect components, unless it spans them.
    graph = csr_array(
        (
            np.ones(matrix.nnz, dtype=np.int8),
            matrix.indices + n_rows,
            np.append(matrix.indptr, np.full(len(free), matrix.nnz)),
        ),
        shape=(n_rows + len(free), n_rows + len(free)),
    )
    _, label = connected_components(graph, directed=False)
    parts: list[tuple[IntArray, IntArray]] = []
    for number in np.unique(label[n_rows:]):
        columns = free[label[n_rows:] == number]
        parts.append((columns, np.flatnonzero(label[:n_rows] == number)))
    return parts


def _shifted(bounds: IntArray, known: IntArray) -> IntArray:
    is_bound = np.abs(bounds) < UNBOUNDED
    return np.where(is_bound, bounds - known, bounds)


def as_floats(bounds: IntArray) -> NDArray[np.float64]:
    """Bounds for a solver of real numbers."""
    floats = bounds.astype(np.float64)
    floats[bounds >= UNBOUNDED] = np.inf
    floats[bounds <= -UNBOUNDED] = -np.inf
    return floats
