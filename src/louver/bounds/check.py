"""Audit a table as it would be published: arrange, solve, summarise."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from louver._arrays import Bools
from louver.bounds.exact import solve_exact
from louver.bounds.knowledge import Statement, bind, known_totals
from louver.bounds.problem import Arrangement, TwoWayTable, ZeroRows, arrange
from louver.bounds.result import BoundsAudit, Comparison
from louver.bounds.rounded import Rounding, published_values, solve_rounded
from louver.bounds.summary import Solution, Summary, summarise
from louver.data.histogram import Histogram
from louver.run import Run

__all__ = ["DisclosureRules", "audit_table", "compare", "summary_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureRules:
    """How the table is published, what is known beforehand, and what counts as small or as certain."""

    small: int = 5
    certain: Fraction = Fraction(1)
    decimals: int | None = None
    rounding: Rounding = Rounding.HALF_UP
    zero_rows: ZeroRows = ZeroRows.KEEP
    given: tuple[Statement, ...] = ()
    given_from: str = "given"
    structural_zeros: tuple[Mapping[str, Sequence[str]], ...] = ()


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
        seconds=time.perf_counter() - started,
    )


def summary_of(histogram: Histogram, arrangement: Arrangement, options: DisclosureRules) -> Summary:
    """The line of Table 13 for one arrangement."""
    table = arrange(
        histogram, arrangement, structural_zeros=options.structural_zeros, zero_rows=options.zero_rows
    )
    return audit_table(table, arrangement, options).summary


def compare(
    histogram: Histogram,
    arrangements: Sequence[Arrangement],
    options: DisclosureRules,
    run: Run | None = None,
) -> Comparison:
    """Audit several arrangements of one histogram and sort them by risk."""
    started, run = time.perf_counter(), run or Run()
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
        told=known_totals(table),
        certain=None if table.published is None else options.certain,
    )
