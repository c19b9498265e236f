"""What a table gives away, counted: Table 13 of the paper, and whose status a row tells.

Counts that can be worked out are one thing. A row at 100 % is another: it tells the status of everybody in it, whether or not its
counts are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from louver._arrays import Bools, Ints
from louver.bounds.exact import Runs
from louver.bounds.problem import TwoWayTable

__all__ = [
    "Exposure",
    "Solution",
    "Summary",
    "asked_cells",
    "certain_rows",
    "exposure",
    "summarise",
]

SAFE_PRODUCT = 2**62


class Solution(Protocol):
    """Bounds (n, J) and feasible values of the cells of the nonzero rows, and bounds (n, 2) of the rows' totals."""

    @property
    def lower(self) -> Ints: ...
    @property
    def upper(self) -> Ints: ...
    @property
    def totals(self) -> Ints: ...
    @property
    def is_certain(self) -> Bools | None: ...
    def values(self, row: int, col: int) -> Runs: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One line of Table 13, and what rows tell about people. Counts of reduced sums are None where rounding hides them.

    With selected cells, rows and cells that were not asked for are left out of what is disclosed, certain or small.

    Attributes
    ----------
    certain_rows, certain_people : int
        Nonempty rows with at least the share `certain` in one cell, and the people in them.
    small_rows, small_row_people : int
        Nonempty rows of fewer than `small` people, and the people in them.

    Notes
    -----
    With the records at hand these four are true. Of somebody else's table only what holds in every table that fits is
    counted: rows that are certainly so, and at least so many people.
    """

    rows: int
    cols: int
    n: int
    reduced_total: int | None
    zero_rows: int
    unit_rows: int | None
    disclosed_rows: int
    disclosed_zero_cells: int
    disclosed_small_cells: int
    certain_rows: int
    certain_people: int
    small_rows: int
    small_row_people: int

    @property
    def risk(self) -> tuple[int, int, int, int]:
        """Sorts arrangements from the least to the most disclosive."""
        return (
            self.disclosed_small_cells,
            self.certain_rows,
            self.disclosed_rows,
            self.disclosed_zero_cells,
        )


def summarise(
    table: TwoWayTable,
    solution: Solution,
    *,
    small: int,
    certain: Fraction,
    is_exact: bool,
    is_counted: bool = True,
    selected: Sequence[tuple[int, int]] | None = None,
) -> Summary:
    """The disclosure summary of one arrangement.

    Notes
    -----
    Implements: Wright & Smucker (2014), Table 13. Where conditionals are rounded a zero cell counts as disclosed
    only if it is determined.
    """
    lower = solution.lower
    determined = lower == solution.upper
    asked = asked_cells(table, selected)
    zero = determined & (lower == 0) & asked
    if table.possible is not None:
        zero &= table.possible[table.row_index]
    row_sums = table.reduced().sum(axis=1)
    seen = exposure(table, solution, small=small, certain=certain, is_counted=is_counted, asked=asked)
    return Summary(
        rows=table.n_rows,
        cols=table.n_cols,
        n=table.n,
        reduced_total=int(row_sums.sum()) if is_exact else None,
        zero_rows=table.n_zero_rows,
        unit_rows=int((row_sums == 1).sum()) if is_exact else None,
        disclosed_rows=int((asked.any(axis=1) & (determined | ~asked).all(axis=1)).sum()),
        disclosed_zero_cells=_cells_in_zero_rows(table, selected) + int(zero.sum()),
        disclosed_small_cells=int((determined & asked & (lower > 0) & (lower < small)).sum()),
        certain_rows=int(seen.is_certain.sum()),
        certain_people=int(seen.people[seen.is_certain].sum()),
        small_rows=int(seen.is_small.sum()),
        small_row_people=int(seen.people[seen.is_small].sum()),
    )


@dataclass(frozen=True, slots=True)
class Exposure:
    """Of each nonzero row (n,): whether it tells a status, whether it is small, and how many people it has at least."""

    is_certain: Bools
    is_small: Bools
    people: Ints


def exposure(
    table: TwoWayTable, solution: Solution, *, small: int, certain: Fraction, is_counted: bool, asked: Bools
) -> Exposure:
    """Which of the rows with cells asked for tell something about people in them.

    Notes
    -----
    With the records at hand (`is_counted`) the counts are the truth, whatever rounding shows of them: who takes a printed 100.0 %
    at its word is then right. Of somebody else's table only what holds in every table that fits is told: a printed 100.0 % may
    be 99.96 %, and a printed 0 may hide people.
    """
    totals = np.repeat(table.counts.sum(axis=1)[:, None], 2, axis=1) if is_counted else solution.totals
    is_certain = solution.is_certain
    if is_certain is None:
        is_certain = certain_rows(table.counts, certain)
    in_question = asked.any(axis=1)
    return Exposure(is_certain & in_question, (totals[:, 1] < small) & in_question, totals[:, 0])


def certain_rows(counts: Ints, certain: Fraction) -> Bools:
    """Rows of which at least the share `certain` is in one cell.

    Examples
    --------
    >>> certain_rows(np.array([[19, 1], [0, 3], [9, 1]]), Fraction(95, 100)).tolist()
    [True, True, False]
    """
    totals = counts.sum(axis=1)
    most = counts.max(axis=1, initial=0)
    if int(totals.max(initial=0)) * certain.denominator > SAFE_PRODUCT:
        totals, most = totals.astype(object), most.astype(object)
    found: Bools = np.asarray(most * certain.denominator >= totals * certain.numerator, dtype=bool)
    return found


def _cells_in_zero_rows(table: TwoWayTable, selected: Sequence[tuple[int, int]] | None) -> int:
    """Possible cells of zero rows among those asked for."""
    if selected is not None:
        nonzero, possible = set(table.row_index.tolist()), table.possible
        return sum(
            row not in nonzero and (possible is None or bool(possible[row, col])) for row, col in selected
        )
    if table.possible is None or table.n_zero_rows == 0:
        return table.n_zero_rows * table.n_cols
    in_zero_rows = np.ones(len(table.possible), dtype=bool)
    in_zero_rows[table.row_index] = False
    return int(table.possible[in_zero_rows].sum())


def asked_cells(table: TwoWayTable, selected: Sequence[tuple[int, int]] | None) -> Bools:
    """Which cells of the nonzero rows were asked for."""
    if selected is None:
        return np.ones(table.counts.shape, dtype=bool)
    asked = np.zeros(table.counts.shape, dtype=bool)
    position_of = {int(index): position for position, index in enumerate(table.row_index)}
    for row, col in selected:
        if row in position_of:
            asked[position_of[row], col] = True
    return asked
