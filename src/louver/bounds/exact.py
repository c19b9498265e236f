"""Every feasible value of every cell from exact conditionals.

Wright & Smucker (2014), problem (1)-(2): rows i add nu_i >= 0 further copies of their reduced counts, and
sum r_i nu_i = N - R. What row i may add depends only on the sums that the other rows can make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver.bounds.knowledge import Known, clash_error, row_bounds
from louver.bounds.problem import BoolArray, IntArray, TwoWayTable
from louver.errors import InputError
from louver.optim.kernels.bitset import leave_one_out_bits
from louver.optim.kernels.semigroup import leave_one_out_apery

__all__ = ["ExactSolution", "Runs", "feasible_multiples", "solve_exact"]

Runs = list[tuple[int, int, int]]

BITS_PER_RESIDUE = 32
"""A pass over this many bits costs about as much as visiting one residue of an Apéry set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSolution:
    """Feasible multiples nu + 1 of each row's reduced counts, as runs.

    Rows with the same reduced sum and bounds share their runs; `span` (n, 2) says which are whose.
    """

    reduced: IntArray
    multiples: IntArray
    span: IntArray

    @property
    def lower(self) -> IntArray:
        """Tight lower bound of every cell, (n, J)."""
        return self.reduced * self._ends(0)[:, None]

    @property
    def upper(self) -> IntArray:
        return self.reduced * self._ends(1)[:, None]

    def values(self, row: int, col: int) -> Runs:
        """All feasible values of one cell as (start, stop, step) runs."""
        unit = int(self.reduced[row, col])
        if unit == 0:
            return [(0, 0, 1)]
        return [
            (unit * first, unit * last, unit * step if last > first else 1)
            for first, last, step in self.multiples[self.span[row, 0] : self.span[row, 1]].tolist()
        ]

    def _ends(self, end: int) -> IntArray:
        ends: IntArray = self.multiples[self.span[:, end] - end, end]
        return ends


def solve_exact(
    table: TwoWayTable, known: Sequence[Known], wanted: BoolArray, where: str = "given"
) -> ExactSolution:
    """All feasible values of the cells in the wanted rows.

    Parameters
    ----------
    table : TwoWayTable
    known : sequence of Known
        A-priori knowledge; clashing statements raise InfeasibleError.
    wanted : bool (n,)
        Rows to solve; the others get no runs.
    where : str
        Where the knowledge comes from, for the error.

    Notes
    -----
    Implements: problem (1)-(2), all feasible values (section 4.1).
    Departs: Apéry sets of the semigroup of the other rows replace the viability table of Algorithm 3.1.
    Cost: see `leave_one_out_apery`; independent of N unless every other row is bounded.
    """
    reduced = table.reduced()
    solved = _solve_rows(reduced, table.n, known, wanted)
    if solved is None and known and _is_feasible(reduced, table.n, ()):
        raise clash_error(known, lambda some: _is_feasible(reduced, table.n, some), where)
    if solved is None:
        raise InputError(
            "no table has these conditionals and this sample size; check --n, which must be the number of people "
            "in all rows together.",
            option="--n",
        )
    runs, span = solved
    runs[:, :2] += 1
    return ExactSolution(reduced=reduced, multiples=runs, span=span)


def _solve_rows(
    reduced: IntArray, n: int, known: Sequence[Known], wanted: BoolArray
) -> tuple[IntArray, IntArray] | None:
    """Runs of nu for the wanted rows, or None when no table fits."""
    row_sums = reduced.sum(axis=1)
    gap = n - int(row_sums.sum())
    lower, upper = row_bounds(known, reduced)
    if gap < 0 or (lower > upper).any() or any(one.fails_on_zeros for one in known):
        return None
    runs, span = feasible_multiples(row_sums, gap, lower, upper, wanted)
    is_feasible = (span[wanted, 1] > span[wanted, 0]).all() if len(reduced) else gap == 0
    return (runs, span) if is_feasible else None


def _is_feasible(reduced: IntArray, n: int, known: Sequence[Known]) -> bool:
    """Whether any table has these conditionals, this sample size and these statements."""
    one_row = np.arange(len(reduced)) == 0
    return _solve_rows(reduced, n, known, one_row) is not None


def feasible_multiples(
    row_sums: IntArray, gap: int, lower: IntArray, upper: IntArray, wanted: BoolArray
) -> tuple[IntArray, IntArray]:
    """Feasible nu of the wanted rows as runs: sum r nu = gap, lower <= nu <= upper.

    Returns
    -------
    runs : int64 (k, 3)
        (first, last, step); rows that share reduced sum and bounds share runs.
    span : int64 (n, 2)
        Which runs belong to each row; empty where unwanted or infeasible.
    """
    n = row_sums.size
    target = -1 if (lower > gap // row_sums).any() else gap - int((row_sums * lower).sum())
    if target < 0 or n == 0:
        return np.empty((0, 3), dtype=np.int64), np.zeros((n, 2), dtype=np.int64)
    most = target // row_sums
    limits = np.where(upper - lower >= most, -1, upper - lower)
    # Unbounded items first, ascending. Rows that differ only in a lower bound behave alike once it is paid for.
    keys = np.stack([limits >= 0, row_sums, limits], axis=1)
    items, item_of, copies = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    item_of = item_of.ravel()
    item_wanted = np.zeros(len(items), dtype=bool)
    item_wanted[item_of[wanted]] = True
    runs, span = _solve_items(items[:, 1].copy(), items[:, 2].copy(), copies, item_wanted, target)
    row_span = np.where(wanted[:, None], span[item_of], 0)
    return _shifted(runs, row_span, lower)


def _solve_items(
    values: IntArray, limits: IntArray, copies: IntArray, wanted: BoolArray, target: int
) -> tuple[IntArray, IntArray]:
    """Choose between Apéry sets and bits by what a pass over either costs."""
    finite = np.where(limits < 0, target // values, np.minimum(limits, target // values))
    if limits[0] >= 0 or target < BITS_PER_RESIDUE * int(values[0]):
        runs, span = leave_one_out_bits(values, finite, copies, wanted, target)
        return runs, span
    runs, span, is_alone = leave_one_out_apery(values, limits, copies, wanted, target)
    if is_alone:
        only_first = np.zeros(len(values), dtype=bool)
        only_first[0] = True
        more, more_span = leave_one_out_bits(values, finite, copies, only_first, target)
        span[0] = more_span[0] + len(runs)
        runs = np.concatenate([runs, more])
    return runs, span


def _shifted(runs: IntArray, span: IntArray, lower: IntArray) -> tuple[IntArray, IntArray]:
    """Add back the lower bounds that were paid for beforehand."""
    raised = np.flatnonzero((lower > 0) & (span[:, 1] > span[:, 0]))
    if not raised.size:
        return runs, span
    parts, span, end = [runs], span.copy(), len(runs)
    for row in raised:
        own = runs[span[row, 0] : span[row, 1]].copy()
        own[:, :2] += lower[row]
        parts.append(own)
        span[row] = end, end + len(own)
        end += len(own)
    return np.concatenate(parts), span
