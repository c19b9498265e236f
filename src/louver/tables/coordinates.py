"""Integer coordinates of a system: free unknowns, and the effect of a step of each on everything else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from louver.optim.kernels.audit.coordinates import eliminate, repair_inplace, walk_inplace
from louver.run import Run
from louver.tables.evidence import Moves, coefficients
from louver.tables.system import IntArray, System, int64_indices

__all__ = ["Coordinates"]

MAX_EFFECTS = 60_000_000
"""Maximum number of entries of an effect that is built; with more, nothing is repaired."""

MAX_ROWS, MAX_COEFFICIENT = 6_000, 2**25
"""Number of equality rows and size of coefficients up to which elimination is tried; none of its products can exceed 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coordinates:
    """basic = basic at the truth + effect (free - free at the truth).

    Attributes
    ----------
    free : int64 (n_free,)
        Columns that can be chosen freely.
    basic : int64 (n_basic,)
        Quantities that follow from them: columns, and sums of rows numbered after the columns.
    effect : csr_array (n_basic, n_free)
    """

    system: System
    free: IntArray
    basic: IntArray
    effect: csr_array
    rows: tuple[IntArray, IntArray, IntArray]
    cols: tuple[IntArray, IntArray, IntArray]
    position: IntArray
    origin_free: IntArray
    origin_basic: IntArray

    @classmethod
    def of(cls, system: System, run: Run) -> Coordinates | None:
        """Coordinates by pivots of size one, heaviest true counts first; None if numbers grow too large."""
        assert system.truth is not None
        is_equal = system.row_lower == system.row_upper
        if is_equal.sum() > MAX_ROWS or np.abs(system.matrix.data).max(initial=0) > MAX_COEFFICIENT:
            return None
        equal, slack = np.flatnonzero(is_equal), np.flatnonzero(~is_equal)
        tableau = _eliminated(system, equal, run)
        if tableau is None:
            return None
        solved, stuck, basic_columns, free = tableau
        rest = csr_array(system.matrix[slack])
        if _largest_product(rest, solved) >= 2.0**62:
            return None
        sums = csr_array(rest[:, free] - rest[:, basic_columns] @ solved)
        effect = csr_array(vstack([-solved, sums, stuck]).astype(np.int64))
        effect.eliminate_zeros()
        is_moved = np.diff(effect.indptr) > 0
        if effect.nnz > MAX_EFFECTS or (effect.nnz and np.abs(effect.data).max() >= 2**31):
            return None
        names = np.concatenate([basic_columns, system.n_columns + slack, np.full(stuck.shape[0], -1)])
        return cls._laid_out(system, free, names[is_moved], csr_array(effect[np.flatnonzero(is_moved)]))

    @classmethod
    def _laid_out(cls, system: System, free: IntArray, basic: IntArray, effect: csr_array) -> Coordinates:
        assert system.truth is not None
        values = np.concatenate([system.truth, system.matrix @ system.truth, [0]])
        position = np.full(system.n_columns + system.n_rows, -1, dtype=np.int64)
        position[basic[basic >= 0]] = np.flatnonzero(basic >= 0)
        position[free] = -2 - np.arange(len(free))
        return cls(
            system=system,
            free=free,
            basic=basic,
            effect=effect,
            rows=_arrays(effect),
            cols=_arrays(effect.tocsc()),
            position=position,
            origin_free=system.truth[free],
            origin_basic=values[basic],
        )

    def repaired(
        self, start: IntArray, within: System, max_steps: int, seed: int, run: Run
    ) -> IntArray | None:
        """A point near `start` that appears to satisfy everything, including the narrower bounds of `within`; None if none is found."""
        low = np.concatenate([within.lower, within.row_lower, [0]])[self.basic]
        high = np.concatenate([within.upper, within.row_upper, [0]])[self.basic]
        free_low, free_high = within.lower[self.free], within.upper[self.free]
        free = np.clip(start[self.free], free_low, free_high)
        basic = self.origin_basic + self.effect @ (free - self.origin_free)
        steps = repair_inplace(
            self.rows,
            self.cols,
            free,
            free_low,
            free_high,
            basic,
            low,
            high,
            max_steps,
            np.array([seed * 2654435761 + 88172645463325252], dtype=np.uint64),
            np.empty_like(basic),
            np.empty_like(free),
            np.empty_like(basic),
            np.empty_like(basic),
            run.flag,
        )
        run.check()
        return None if steps < 0 else self._point(free, basic)

    def steps(self, n_rounds: int, run: Run) -> Moves:
        """A combination (columns,) of the steps of single free unknowns that were possible on a walk through tables from the truth."""
        system = self.system
        low = np.concatenate([system.lower, system.row_lower, [0]])[self.basic]
        high = np.concatenate([system.upper, system.row_upper, [0]])[self.basic]
        is_taken = np.zeros(len(self.free), dtype=bool)
        walk_inplace(
            self.cols,
            self.origin_free.copy(),
            system.lower[self.free],
            system.upper[self.free],
            self.origin_basic.copy(),
            low,
            high,
            is_taken,
            n_rounds,
            np.array([88172645463325252], dtype=np.uint64),
            run.flag,
        )
        run.check()
        weights = np.where(is_taken, coefficients(2**42, len(self.free)), np.uint64(0))
        moves = np.zeros(system.n_columns, dtype=np.uint64)
        moves[self.free] = weights
        is_column = (self.basic >= 0) & (self.basic < system.n_columns)
        effect = csr_array(
            (self.effect.data.astype(np.uint64), self.effect.indices, self.effect.indptr),
            shape=self.effect.shape,
        )
        moves[self.basic[is_column]] = (effect @ weights)[is_column]
        return moves

    def _point(self, free: IntArray, basic: IntArray) -> IntArray:
        """The values of all unknowns."""
        assert self.system.truth is not None
        point = self.system.truth.copy()
        point[self.free] = free
        is_column = (self.basic >= 0) & (self.basic < self.system.n_columns)
        point[self.basic[is_column]] = basic[is_column]
        return point


def _eliminated(
    system: System, equal: IntArray, run: Run
) -> tuple[csr_array, csr_array, IntArray, IntArray] | None:
    """Solved rows over the free columns, rows without a pivot, the columns solved for, and the free ones."""
    assert system.truth is not None
    rows = csr_array(system.matrix[equal])
    columns = rows.tocsc()
    order = np.argsort(-system.truth, kind="stable").astype(np.int64)
    transform, basic = eliminate(*int64_indices(columns), columns.data, len(equal), order, run.flag)
    run.check()
    if len(basic) < len(equal):
        return None
    is_basic = np.zeros(system.n_columns, dtype=bool)
    is_basic[basic[basic >= 0]] = True
    free = np.flatnonzero(~is_basic)
    tableau = csr_array(csr_array(transform) @ rows[:, free])
    tableau.eliminate_zeros()
    has_pivot = basic >= 0
    return tableau[np.flatnonzero(has_pivot)], tableau[np.flatnonzero(~has_pivot)], basic[has_pivot], free


def _largest_product(first: csr_array, second: csr_array) -> float:
    """An upper bound on the entries of the product of two matrices."""
    sizes = [float(np.abs(matrix.data).max(initial=0)) for matrix in (first, second)]
    return sizes[0] * sizes[1] * float(np.diff(first.indptr).max(initial=0))


def _arrays(matrix: csr_array | csc_array) -> tuple[IntArray, IntArray, IntArray]:
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int64),
        np.ascontiguousarray(matrix.data, dtype=np.int64),
    )
