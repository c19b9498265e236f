"""Every feasible value of every cell from exact conditionals.

Wright & Smucker (2014), problem (1)-(2): rows i add nu_i >= 0 further copies of their reduced counts, and
sum r_i nu_i = N - R. What row i may add depends only on the sums that the other rows can make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from louver._arrays import Bools, Ints
from louver.bounds.knowledge import Known, clash_error, known_totals, row_bounds
from louver.bounds.problem import TwoWayTable
from louver.errors import InputError
from louver.optim.kernels.semigroups.feasible_multiples import FEASIBLE, TOO_LARGE, feasible_multiples
from louver.optim.kernels.semigroups.reduced_rows import reduced_rows

__all__ = ["ExactSolution", "Runs", "solve_exact"]

Runs = list[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSolution:
    """Feasible nu of each row, whose counts are then nu + 1 times its reduced counts.

    Attributes
    ----------
    reduced : int64 (n, J)
    runs : int64 (k, 3)
        First, last and step of nu; rows with the same reduced sum and bounds share their runs.
    span : int64 (n, 2)
        Which runs are whose; (0, 0) for rows not asked for.
    """

    reduced: Ints
    runs: Ints
    span: Ints

    @property
    def lower(self) -> Ints:
        """Tight lower bound of every cell, (n, J)."""
        return self.reduced * self._ends(0)[:, None]

    @property
    def upper(self) -> Ints:
        return self.reduced * self._ends(1)[:, None]

    @property
    def totals(self) -> Ints:
        """Least and greatest total of every row, (n, 2)."""
        totals: Ints = self.reduced.sum(axis=1)[:, None] * np.stack([self._ends(0), self._ends(1)], axis=1)
        return totals

    @property
    def is_certain(self) -> None:
        """Exact conditionals are those of the counts."""

    def values(self, row: int, col: int) -> Runs:
        """All feasible values of one cell as (start, stop, step) runs."""
        unit = int(self.reduced[row, col])
        if unit == 0:
            return [(0, 0, 1)]
        return [
            (unit * (first + 1), unit * (last + 1), unit * step if last > first else 1)
            for first, last, step in self.runs[self.span[row, 0] : self.span[row, 1]].tolist()
        ]

    def _ends(self, end: int) -> Ints:
        """Least (0) or greatest (1) nu + 1 of each row."""
        ends: Ints = self.runs[self.span[:, end] - end, end] + 1
        return ends


def solve_exact(
    table: TwoWayTable, known: Sequence[Known], wanted: Bools, where: str = "given"
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
    Cost: see `leave_one_out_apery`; independent of N as long as one row is unbounded.
    """
    reduced, row_sums = reduced_rows(table.counts)
    told = known_totals(table)

    def is_feasible(some: Sequence[Known]) -> bool:
        nothing = np.zeros(len(reduced), dtype=bool)
        return _solve_rows(reduced, row_sums, table.n, (*told, *some), nothing) is not None

    solved = _solve_rows(reduced, row_sums, table.n, (*told, *known), wanted)
    if solved is None and known and is_feasible(()):
        raise clash_error(known, is_feasible, where)
    if solved is None:
        hint = f"; where they are rounded, give --decimals {table.printed_decimals}"
        raise InputError(
            "no table has these conditionals and this sample size; check --n, which must be the number of people "
            f"in all rows together{'' if table.printed_decimals is None else hint}.",
            option="--n" if table.printed_decimals is None else "--decimals",
        )
    return ExactSolution(reduced=reduced, runs=solved[0], span=solved[1])


def _solve_rows(
    reduced: Ints, row_sums: Ints, n: int, known: Sequence[Known], wanted: Bools
) -> tuple[Ints, Ints] | None:
    """Runs of nu for the wanted rows, or None when no table fits."""
    if any(one.fails_on_zeros for one in known):
        return None
    lower, upper = row_bounds(known, reduced)
    status, runs, span = feasible_multiples(row_sums, lower, upper, n - int(row_sums.sum()), wanted)
    if status == TOO_LARGE:
        raise InputError(
            "the reduced row sums or the sample size are too large to be solved in memory; check the conditionals "
            "and --n.",
            option="--n",
        )
    return (runs, span) if status == FEASIBLE else None
