"""What a table discloses: counts over all its rows and cells, and a description of each cell in words.

The summary is Table 13 of Wright & Smucker (2014), with rows that reveal a status. Besides counts that can be derived, a row at 100 % is a
disclosure: it reveals the status of everyone in it, whether or not its counts are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

import numpy as np

from louver._arrays import Bools, Ints
from louver.bounds.problem import Runs, TwoWayTable
from louver.bounds.rounded import RoundingRule, published_values

__all__ = [
    "CELL_STATES",
    "BoundsSummary",
    "CellExplanation",
    "Disclosure",
    "Exposure",
    "Solution",
    "cell_states",
    "certain_rows",
    "count_states",
    "explain_cell",
    "exposure",
    "has_fallen",
    "is_revealing",
    "published_shares",
    "selected_cells",
    "summarise",
]

CELL_STATES = ("zero", "small", "certain", "exact", "narrow", "safe")
"""What is disclosed about a cell, by the first state that applies: an exact zero, an exact small count, a status, an exact count, few
values, nothing.
"""

MOST_NARROW = 10
"""A cell is narrow if at most this many values are feasible."""

SAFE_PRODUCT = 2**62


class Solution(Protocol):
    """Bounds (n, J), feasible values and their numbers (n, J) for the cells of the nonzero rows, and bounds (n, 2) of the rows' totals."""

    @property
    def lower(self) -> Ints: ...
    @property
    def upper(self) -> Ints: ...
    @property
    def totals(self) -> Ints: ...
    @property
    def is_certain(self) -> Bools | None: ...
    @property
    def n_values(self) -> Ints: ...
    def values(self, row: int, col: int) -> Runs: ...


Disclosure = Literal["small", "rows", "attribute", "any"]
"""What a table may disclose, by the names of `--fail-on`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsSummary:
    """One line of Table 13, and what rows reveal about people. Counts of reduced sums are None if rounding hides them.

    With selected cells, other rows and cells do not count as disclosed, certain or small.

    Attributes
    ----------
    certain_rows, certain_people : int
        Nonempty rows with at least the share `certain` in one cell, and the people in them.
    small_rows, small_row_people : int
        Nonempty rows of fewer than `small` people, and the people in them.

    Notes
    -----
    With the records at hand these four are true values. For a third party's table only what holds in every feasible table is
    counted: rows for which this is certain, and the least number of people in them.
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
        """Sort key that orders arrangements from the least to the most disclosive."""
        return (
            self.disclosed_small_cells,
            self.certain_rows,
            self.disclosed_rows,
            self.disclosed_zero_cells,
        )

    def discloses(self, what: Disclosure) -> bool:
        """Whether it has a disclosed small cell, a row that reveals a status, a disclosed row, or any of these and zero cells."""
        small, certain, rows, zeros = self.risk
        return {"small": small, "attribute": certain, "rows": rows, "any": small + certain + rows + zeros}[
            what
        ] > 0


def summarise(
    table: TwoWayTable,
    solution: Solution,
    *,
    small: int,
    certain: Fraction,
    is_exact: bool,
    is_counted: bool = True,
    selected: Sequence[tuple[int, int]] | None = None,
) -> BoundsSummary:
    """The disclosure summary of one arrangement.

    Notes
    -----
    Implements: Wright & Smucker (2014), Table 13. If conditionals are rounded, a zero cell counts as disclosed only if it is determined.
    """
    lower = solution.lower
    determined = lower == solution.upper
    is_selected = selected_cells(table, selected)
    zero = determined & (lower == 0) & is_selected
    if table.possible is not None:
        zero &= table.possible[table.row_index]
    row_sums = table.reduced().sum(axis=1)
    seen = exposure(
        table, solution, small=small, certain=certain, is_counted=is_counted, is_selected=is_selected
    )
    return BoundsSummary(
        rows=table.n_rows,
        cols=table.n_cols,
        n=table.n,
        reduced_total=int(row_sums.sum()) if is_exact else None,
        zero_rows=table.n_zero_rows,
        unit_rows=int((row_sums == 1).sum()) if is_exact else None,
        disclosed_rows=int((is_selected.any(axis=1) & (determined | ~is_selected).all(axis=1)).sum()),
        disclosed_zero_cells=_cells_in_zero_rows(table, selected) + int(zero.sum()),
        disclosed_small_cells=int((determined & is_selected & (lower > 0) & (lower < small)).sum()),
        certain_rows=int(seen.is_certain.sum()),
        certain_people=int(seen.people[seen.is_certain].sum()),
        small_rows=int(seen.is_small.sum()),
        small_row_people=int(seen.people[seen.is_small].sum()),
    )


@dataclass(frozen=True, slots=True)
class Exposure:
    """For each nonzero row (n,): whether it reveals a status, whether it is small, and the least number of people in it."""

    is_certain: Bools
    is_small: Bools
    people: Ints


def exposure(
    table: TwoWayTable,
    solution: Solution,
    *,
    small: int,
    certain: Fraction,
    is_counted: bool,
    is_selected: Bools,
) -> Exposure:
    """Which of the rows with selected cells reveal something about the people in them.

    Notes
    -----
    With the records at hand (`is_counted`) the counts are the truth, whatever rounding shows: anyone who takes a printed 100.0 % at face
    value is right. For a third party's table only what holds in every feasible table is reported: a printed 100.0 % may be 99.96 %, and
    a printed 0 may hide people.
    """
    totals = np.repeat(table.counts.sum(axis=1)[:, None], 2, axis=1) if is_counted else solution.totals
    is_certain = solution.is_certain
    if is_certain is None:
        is_certain = certain_rows(table.counts, certain)
    in_question = is_selected.any(axis=1)
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
    """Number of possible cells in zero rows, among the selected ones."""
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


def selected_cells(table: TwoWayTable, selected: Sequence[tuple[int, int]] | None) -> Bools:
    """Which cells of the nonzero rows were selected."""
    if selected is None:
        return np.ones(table.counts.shape, dtype=bool)
    is_selected = np.zeros(table.counts.shape, dtype=bool)
    position_of = {int(index): position for position, index in enumerate(table.row_index)}
    for row, col in selected:
        if row in position_of:
            is_selected[position_of[row], col] = True
    return is_selected


def cell_states(
    table: TwoWayTable, solution: Solution, *, small: int, certain: Fraction, is_counted: bool
) -> Ints:
    """What is disclosed about each cell, as indices into `CELL_STATES`, (n, J)."""
    lower, upper = solution.lower, solution.upper
    is_exact = lower == upper
    every = selected_cells(table, None)
    seen = exposure(table, solution, small=small, certain=certain, is_counted=is_counted, is_selected=every)
    is_largest = np.zeros(table.counts.shape, dtype=bool)
    is_largest[np.arange(len(is_largest)), table.counts.argmax(axis=1)] = True
    cases = [
        is_exact & (upper == 0),
        is_exact & (lower < small),
        is_largest & seen.is_certain[:, None],
        is_exact,
        solution.n_values <= MOST_NARROW,
    ]
    states: Ints = np.select(cases, range(len(cases)), len(cases)).astype(np.int64)
    return states


def count_states(states: Ints) -> dict[str, int]:
    """How many cells are in each of `CELL_STATES`."""
    counts = np.bincount(states.ravel(), minlength=len(CELL_STATES))
    return dict(zip(CELL_STATES, counts.tolist(), strict=True))


def is_revealing(states: Ints) -> Bools:
    """Cells that should not be published: exact small counts, and those that reveal a status."""
    found: Bools = np.isin(states, (CELL_STATES.index("small"), CELL_STATES.index("certain")))
    return found


def has_fallen(states: Ints, before: Ints) -> Bools:
    """Whether more is disclosed about each cell than before."""
    fallen: Bools = np.less(states, before)
    return fallen


@dataclass(frozen=True, slots=True, kw_only=True)
class CellExplanation:
    """All counts possible for one cell, and the reason.

    Attributes
    ----------
    state : str
        One of `CELL_STATES`.
    values : list of (first, last, step)
    n_values : int
    title : str
        The finding for the cell, in words.
    reason : str
        One sentence: what the published row shows about its total, and which totals remain possible.
    """

    state: str
    values: Runs
    n_values: int
    title: str
    reason: str


def explain_cell(
    table: TwoWayTable,
    solution: Solution,
    cell: tuple[int, int],
    *,
    state: int,
    certain: Fraction,
    is_rounded: bool,
    has_statements: bool,
) -> CellExplanation:
    """Explain one cell, given by the position of its row among the nonzero rows and its column."""
    runs, n_values = solution.values(*cell), int(solution.n_values[cell])
    name = CELL_STATES[state]
    if name == "zero":
        reason = "A share of exactly 0 is a count of 0."
    else:
        least, most = solution.totals[cell[0]].tolist()
        fits = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        if name == "certain":
            share = "The share is 100 %" if certain == 1 else "Nearly everyone in the row is here"
            reason = f"{share}. How many people are in the row: {fits}."
        elif is_rounded:
            reason = (
                f"The rounded shares, together with what all other rows need, allow a row of {fits} people."
            )
        else:
            reason = _why_exact(table, cell[0], fits, has_statements=has_statements)
    return CellExplanation(
        state=name, values=runs, n_values=n_values, title=_title(name, runs, n_values), reason=reason
    )


def _why_exact(table: TwoWayTable, row: int, fits: str, *, has_statements: bool) -> str:
    sums = table.reduced().sum(axis=1)
    need, free = int(sums[row]), table.n - int(sums.sum())
    needed = f"These shares need {need:,} people in the row, or {2 * need:,}, and so on. "
    if has_statements:
        return f"{needed}With what outsiders know, {fits} fit."
    return f"{needed}{free:,} people are not accounted for elsewhere, so there are {fits}."


def _title(state: str, runs: Runs, n_values: int) -> str:
    if state == "zero":
        return "Nobody is here, and anyone can see that"
    if state == "certain":
        return "Everyone in this row has this status"
    first, last = runs[0][0], runs[-1][1]
    if n_values == 1:
        return f"Exactly {first:,} {'person' if first == 1 else 'people'}"
    if n_values <= 4:
        values = [value for start, stop, step in runs for value in range(start, stop + 1, step)]
        people = "person" if last == 1 else "people"
        return f"{', '.join(f'{value:,}' for value in values[:-1])} or {last:,} {people}"
    return f"{first:,} to {last:,} people; {n_values:,} counts fit"


def published_shares(counts: Ints, decimals: int | None, rounding: RoundingRule) -> list[str]:
    """The shares of one row as they are published; exact ones with two decimals, never rounded to 0 or 100 %.

    Examples
    --------
    >>> published_shares(np.array([1, 29_999]), None, RoundingRule.HALF_UP)
    ['<0.01 %', '>99.99 %']
    >>> published_shares(np.array([1, 2]), 3, RoundingRule.HALF_UP)
    ['33.3 %', '66.7 %']
    """
    if decimals is not None:
        values = published_values(counts[None], decimals, rounding)[0].tolist()
        return [f"{100 * value / 10**decimals:.{max(decimals - 2, 0)}f} %" for value in values]
    total = int(counts.sum())
    return [
        f"{100 * count / total:.4g} %" if count in (0, total) else _inner_share(100 * count / total)
        for count in counts.tolist()
    ]


def _inner_share(percent: float) -> str:
    """A share that is neither 0 nor 100 %."""
    shown = f"{percent:.2f}"
    return {"0.00": "<0.01 %", "100.00": ">99.99 %"}.get(shown, f"{shown} %")
