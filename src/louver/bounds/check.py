"""Audit a table as it would be published: arrange, solve, summarise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from louver._arrays import Bools, Ints
from louver.bounds.disclosure import BoundsSummary, Solution, summarise
from louver.bounds.knowledge import BoundStatement, KnownCells, bind, clash_error, known_totals, row_bounds
from louver.bounds.problem import Arrangement, Runs, TwoWayTable, ZeroRows, arrange, values_in_runs
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.rounded import RoundingRule, published_values, solve_rounded
from louver.data.histogram import Histogram
from louver.errors import InputError
from louver.optim.kernels.semigroups.feasible_multiples import FEASIBLE, TOO_LARGE, feasible_multiples
from louver.optim.kernels.semigroups.reduced_rows import reduced_rows
from louver.run import Run

__all__ = ["DisclosureRules", "ExactSolution", "audit_table", "compare", "solve_exact", "summary_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactSolution:
    """Feasible nu of each row, whose counts are then nu + 1 times its reduced counts.

    Attributes
    ----------
    reduced : int64 (n, J)
    runs : int64 (k, 3)
        First, last and step of nu; rows with the same reduced sum and bounds share their runs.
    span : int64 (n, 2)
        Range of runs that belongs to each row; (0, 0) for rows not requested.
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
        """None, because exact conditionals always match the counts."""

    @property
    def n_values(self) -> Ints:
        """Number of feasible values of every cell, (n, J); one for zeros."""
        of_rows = values_in_runs(self.runs, self.span)
        n_values: Ints = np.where(self.reduced > 0, of_rows[:, None], 1)
        return n_values

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
    table: TwoWayTable, known: Sequence[BoundStatement], wanted: Bools, where: str = "given"
) -> ExactSolution:
    """All feasible values of the cells in the wanted rows.

    Parameters
    ----------
    table : TwoWayTable
    known : sequence of BoundStatement
        A-priori knowledge; clashing statements raise InfeasibleError.
    wanted : bool (n,)
        Rows to solve; the others have no runs.
    where : str
        Origin of the knowledge, for the error.

    Notes
    -----
    Implements: problem (1)-(2), all feasible values (section 4.1).
    Departs: Apéry sets of the semigroup of the other rows replace the viability table of Algorithm 3.1.
    Cost: see `leave_one_out_apery`; independent of N as long as one row is unbounded.
    """
    reduced, row_sums = reduced_rows(table.counts)
    content = known_totals(table)

    def is_feasible(some: Sequence[BoundStatement]) -> bool:
        nothing = np.zeros(len(reduced), dtype=bool)
        return _solve_rows(reduced, row_sums, table.n, (*content, *some), nothing) is not None

    solved = _solve_rows(reduced, row_sums, table.n, (*content, *known), wanted)
    if solved is None and known and is_feasible(()):
        raise clash_error(known, is_feasible, where)
    if solved is None:
        hint = f"; where they are rounded, give --decimals {table.printed_decimals}"
        raise InputError(
            "no table has these conditionals and this sample size; check --n, the number of people in all rows "
            f"together{'' if table.printed_decimals is None else hint}.",
            option="--n" if table.printed_decimals is None else "--decimals",
        )
    return ExactSolution(reduced=reduced, runs=solved[0], span=solved[1])


def _solve_rows(
    reduced: Ints, row_sums: Ints, n: int, known: Sequence[BoundStatement], wanted: Bools
) -> tuple[Ints, Ints] | None:
    """Runs of nu for the wanted rows, or None if no table agrees."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureRules:
    """The form in which the table is published, prior knowledge, and the limits for small counts and certain rows."""

    small: int = 5
    certain: Fraction = Fraction(1)
    decimals: int | None = None
    rounding: RoundingRule = RoundingRule.HALF_UP
    zero_rows: ZeroRows = ZeroRows.KEEP
    given: tuple[KnownCells, ...] = ()
    given_from: str = "given"
    structural_zeros: tuple[Mapping[str, Sequence[str]], ...] = ()
    survey_weight: str | None = None


def audit_table(
    table: TwoWayTable,
    arrangement: Arrangement,
    options: DisclosureRules,
    *,
    selected: Sequence[tuple[int, int]] | None = None,
    is_counted: bool = True,
) -> BoundsAudit:
    """Bounds and all feasible values of a table's cells, or of the selected ones.

    Parameters
    ----------
    table : TwoWayTable
    selected : sequence of (row index, column), optional
        Only the rows of these cells are solved.
    is_counted : bool
        Whether `table.counts` are observed counts, not only counts with the right conditionals.
    """
    started = time.perf_counter()
    wanted = np.ones(len(table.row_index), dtype=bool)
    if selected is not None:
        wanted = np.isin(table.row_index, [row for row, _ in selected])
    solution = _solve(table, options, wanted)
    summary = summarise(
        table,
        solution,
        small=options.small,
        certain=options.certain,
        is_exact=options.decimals is None,
        is_counted=is_counted,
        selected=selected,
    )
    return BoundsAudit(
        arrangement=arrangement,
        summary=summary,
        table=table,
        solution=solution,
        selected=None if selected is None else tuple(selected),
        small=options.small,
        certain=options.certain,
        decimals=options.decimals,
        rounding=options.rounding,
        n_known=len(options.given),
        is_counted=is_counted,
        survey_weight=options.survey_weight if is_counted else None,
        seconds=time.perf_counter() - started,
    )


def summary_of(histogram: Histogram, arrangement: Arrangement, options: DisclosureRules) -> BoundsSummary:
    """The line of Table 13 for one arrangement."""
    table = arrange(
        histogram, arrangement, structural_zeros=options.structural_zeros, zero_rows=options.zero_rows
    )
    return audit_table(table, arrangement, options).summary


def compare(
    histogram: Histogram,
    arrangements: Sequence[Arrangement],
    options: DisclosureRules,
    run: Run,
) -> Comparison:
    """Audit several arrangements of one histogram and sort them by risk."""
    started = time.perf_counter()
    lines = []
    for number, arrangement in enumerate(arrangements):
        run.report("auditing arrangements", number, len(arrangements))
        lines.append((arrangement, run.attend(summary_of, histogram, arrangement, options)))
    lines.sort(key=lambda line: line[1].risk)
    return Comparison(lines=tuple(lines), seconds=time.perf_counter() - started)


def _solve(table: TwoWayTable, options: DisclosureRules, wanted: Bools) -> Solution:
    known = bind(options.given, table, options.given_from)
    if options.decimals is None:
        return solve_exact(table, known, wanted, options.given_from)
    published = table.published
    if published is None:
        published = published_values(table.counts, options.decimals, options.rounding)
    possible = None if table.possible is None else table.possible[table.row_index]
    return solve_rounded(
        published,
        options.decimals,
        options.rounding,
        table.n,
        known,
        wanted,
        options.given_from,
        possible,
        content=known_totals(table),
        certain=None if table.published is None else options.certain,
    )
