"""The result of checking a table: cells with their bounds, the verdict, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._arrays import Ints
from louver._html import MOST_LINES, JsonText, Shown
from louver._verdict import Level, Verdict
from louver._words import counted
from louver.bounds.disclosure import (
    BoundsSummary,
    CellExplanation,
    Disclosure,
    Solution,
    cell_states,
    explain_cell,
    exposure,
    published_shares,
    selected_cells,
)
from louver.bounds.problem import Arrangement, Runs, TwoWayTable
from louver.bounds.rounded import RoundingRule
from louver.errors import printable

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = ["BoundedCell", "BoundsAudit", "Comparison", "RevealingRow", "advise", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedCell:
    """One cell of the published table with all values that agree with public knowledge."""

    row: dict[str, str]
    col: dict[str, str]
    lower: int
    upper: int
    values: Runs

    @property
    def is_determined(self) -> bool:
        return self.lower == self.upper

    @property
    def n_values(self) -> int:
        return sum((stop - start) // step + 1 for start, stop, step in self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealingRow:
    """A row that reveals a status: its labels, those of the status, and the least number of people in it."""

    row: dict[str, str]
    col: dict[str, str]
    people: int


ZERO_RUNS: Runs = [(0, 0, 1)]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundsAudit(JsonText, Shown):
    """What a released table of conditional frequencies discloses. Confidential: it contains true labels and counts.

    Attributes
    ----------
    arrangement : Arrangement
    summary : BoundsSummary
    table : TwoWayTable
    solution : Solution
        Bounds and values of the nonzero rows.
    selected : tuple of (row index, column) or None
        The requested cells; None means all.
    small : int
        Counts below this are small.
    certain : Fraction
        Rows with at least this share in one cell reveal a status.
    decimals : int or None
        Decimals of the published proportions; None when they are exact fractions.
    """

    arrangement: Arrangement
    summary: BoundsSummary
    table: TwoWayTable
    solution: Solution
    small: int
    certain: Fraction = Fraction(1)
    selected: tuple[tuple[int, int], ...] | None = None
    decimals: int | None = None
    rounding: RoundingRule = RoundingRule.HALF_UP
    n_known: int = 0
    is_counted: bool = True
    survey_weight: str | None = None
    seconds: float = field(default=0.0, compare=False)

    def cells(self) -> Iterator[BoundedCell]:
        """All selected cells in row order; those of zero rows are zero, impossible ones are left out."""
        lower, upper = self.solution.lower, self.solution.upper
        position_of = {int(index): position for position, index in enumerate(self.table.row_index)}
        col_labels = [self.table.col_labels(col) for col in range(self.table.n_cols)]
        for row, cols in self._selected_cells():
            row_labels = self.table.row_labels(row)
            position = position_of.get(row)
            for col in cols:
                if position is None:
                    yield BoundedCell(row=row_labels, col=col_labels[col], lower=0, upper=0, values=ZERO_RUNS)
                else:
                    yield BoundedCell(
                        row=row_labels,
                        col=col_labels[col],
                        lower=int(lower[position, col]),
                        upper=int(upper[position, col]),
                        values=self.solution.values(position, col),
                    )

    def _selected_cells(self) -> Iterator[tuple[int, Sequence[int]]]:
        if self.selected is not None:
            for row, col in self.selected:
                yield row, (col,)
            return
        possible, every = self.table.possible, range(self.table.n_cols)
        rows = (
            range(self.table.n_label_rows) if not self.table.dropped_rows else self.table.row_index.tolist()
        )
        for row in rows:
            yield row, every if possible is None else np.flatnonzero(possible[row]).tolist()

    def disclosed_cells(self) -> Iterator[BoundedCell]:
        """Selected cells with a small positive count that is determined."""
        return (cell for cell in self.cells() if cell.is_determined and 0 < cell.lower < self.small)

    def telling_rows(self) -> Iterator[RevealingRow]:
        """Rows that reveal the status of (almost) everyone in them."""
        seen = exposure(
            self.table,
            self.solution,
            small=self.small,
            certain=self.certain,
            is_counted=self.is_counted,
            is_selected=selected_cells(self.table, self.selected),
        )
        for position in np.flatnonzero(seen.is_certain):
            row, col = int(self.table.row_index[position]), int(self.table.counts[position].argmax())
            yield RevealingRow(
                row=self.table.row_labels(row),
                col=self.table.col_labels(col),
                people=int(seen.people[position]),
            )

    def cell_states(self) -> Ints:
        """What is disclosed about each cell of the nonzero rows, as positions in `CELL_STATES`, (n, J)."""
        return cell_states(
            self.table, self.solution, small=self.small, certain=self.certain, is_counted=self.is_counted
        )

    def explain(self, row: int, col: int) -> CellExplanation:
        """All counts possible for a cell, given by the position of its row among the nonzero rows, and the reason in words."""
        return explain_cell(
            self.table,
            self.solution,
            (row, col),
            state=int(self.cell_states()[row, col]),
            certain=self.certain,
            is_rounded=self.decimals is not None,
            has_statements=self.n_known > 0,
        )

    def published_shares(self, row: int) -> list[str]:
        """The shares of a row as they are published; exact ones with two decimals, never rounded to 0 or 100 %."""
        return published_shares(self.table.counts[row], self.decimals, self.rounding)

    @property
    def verdict(self) -> Verdict:
        """What an outsider learns, and whether to publish."""
        return judge(
            self.summary,
            small=self.small,
            certain=self.certain,
            is_counted=self.is_counted,
            survey_weight=self.survey_weight,
        )

    def discloses(self, what: Disclosure) -> bool:
        """Whether the table discloses this (see `BoundsSummary.discloses`); the command line exits with 1 for `--fail-on`."""
        return self.summary.discloses(what)

    def advice(self, *, is_registered: bool = False, is_publishable: bool = False) -> str:
        """What to do next with the table, if it is the steward's own; see `advise`."""
        if not self.is_counted and self.survey_weight is None:
            return ""
        return advise(
            self.verdict.level,
            survey_weight=self.survey_weight,
            is_registered=is_registered,
            is_publishable=is_publishable,
        )

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "summary": asdict(self.summary),
            "verdict": self.verdict.to_dict(),
            "cells": [
                {
                    "row": cell.row,
                    "col": cell.col,
                    "lower": cell.lower,
                    "upper": cell.upper,
                    "values": [list(run) for run in cell.values],
                }
                for cell in self.cells()
            ],
        }

    def to_frame(self) -> pyarrow.Table:
        """One line per cell: labels, lower, upper, number of feasible values."""
        import pyarrow

        return pyarrow.Table.from_pylist([_line(cell) for cell in self.cells()])

    def _shown(self) -> tuple[pyarrow.Table, int]:
        """Disclosed small cells, or the first cells if there are none."""
        import pyarrow

        found = list(islice(self.disclosed_cells(), MOST_LINES)) or list(islice(self.cells(), MOST_LINES))
        n_cells = sum(len(cols) for _, cols in self._selected_cells())
        return pyarrow.Table.from_pylist([_line(cell) for cell in found]), n_cells

    def plot(self) -> Figure:
        """Draw the narrowest intervals, and the number of values that cells can have."""
        from louver.bounds.plot import plot_audit

        return plot_audit(self)

    def __repr__(self) -> str:
        return self.words()

    def words(self, advice: str | None = None) -> str:
        """The verdict, with other advice if given, and the counts behind it."""
        summary_text = " ".join(
            filter(None, (str(self.verdict), self.advice() if advice is None else advice))
        )
        s = self.summary
        form = "exact fractions"
        if self.decimals is not None:
            form = f"rounded to {counted(self.decimals, 'decimal')}"
        sure = f"{'' if self.certain == 1 else 'at least '}{float(100 * self.certain):g} %"
        return (
            f"{summary_text}\n"
            f"BoundsAudit: {printable(self.arrangement.label)}\n"
            f"  {counted(s.disclosed_small_cells, 'small cell')} disclosed (0 < count < {self.small})\n"
            f"  {s.disclosed_rows:,} of {counted(s.rows - s.zero_rows, 'nonzero row')} fully determined\n"
            f"  {counted(s.certain_rows, 'row')} with {sure} in one cell, "
            f"{counted(s.small_rows, 'row')} of fewer than {self.small} people\n"
            f"  {counted(s.disclosed_zero_cells, 'zero cell')} visible, {counted(s.zero_rows, 'row')} all zero\n"
            f"  {s.rows:,} x {s.cols:,} table of conditionals, {form}, N = {s.n:,}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(JsonText, Shown):
    """Several arrangements of one table, from the least to the most disclosive."""

    lines: tuple[tuple[Arrangement, BoundsSummary], ...]
    seconds: float = field(default=0.0, compare=False)

    def discloses(self, what: Disclosure) -> bool:
        """Whether any of the arrangements discloses this kind."""
        return any(summary.discloses(what) for _, summary in self.lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "arrangements": [
                {"name": a.label, "rows": list(a.rows), "cols": list(a.cols), "summary": asdict(s)}
                for a, s in self.lines
            ]
        }

    def to_frame(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_pylist([{"arrangement": a.label, **asdict(s)} for a, s in self.lines])

    def plot(self) -> Figure:
        from louver.bounds.plot import plot_comparison

        return plot_comparison(self)

    def __repr__(self) -> str:
        shown = [
            f"  {s.disclosed_small_cells:>6} small cells, {s.disclosed_rows:>5} rows disclosed: {a.label}"
            for a, s in self.lines[:8]
        ]
        summary_text = f"Comparison of {counted(len(self.lines), 'arrangement')}, least disclosive first"
        return "\n".join([summary_text, *map(printable, shown)])


def _line(cell: BoundedCell) -> dict[str, Any]:
    return {**cell.row, **cell.col, "lower": cell.lower, "upper": cell.upper, "n_values": cell.n_values}


REDESIGN = "Next: --suggest looks for a redesign"
SENTENCES = {
    Level.OK: "On its own it may be published.",
    Level.CARE: "Publish it only if this may become known.",
    Level.STOP: "Do not publish it as it is.",
}


def judge(
    summary: BoundsSummary,
    *,
    small: int,
    certain: Fraction,
    is_counted: bool,
    survey_weight: str | None = None,
) -> Verdict:
    """Judge one table.

    Parameters
    ----------
    is_counted : bool
        Whether it is the steward's own table; someone else's table is already published.
    survey_weight : str, optional
        Column of counts that may be sampling weights, so that one sampled person counts as hundreds.
    """
    found = f"{_counts(summary)}{_status(summary, certain, is_counted)}.{_small_rows(summary, small)}"
    level = _level(summary)
    if survey_weight is not None:
        note = f'Column "{printable(survey_weight)}" is named like a sampling weight, so one person in the file counts as many.'
        return Verdict(Level.STOP, SENTENCES[Level.STOP], (found, note))
    if is_counted:
        return Verdict(level, SENTENCES[level], (found,))
    if level is Level.STOP:
        return Verdict(level, "Anyone who has the table can derive this.", (found,))
    return Verdict(level, found)


def advise(
    level: Level,
    *,
    survey_weight: str | None = None,
    is_registered: bool = False,
    is_publishable: bool = False,
) -> str:
    """What to do next with a table of the steward's own, on the command line.

    Parameters
    ----------
    is_registered : bool
        Whether the register has already been consulted.
    is_publishable : bool
        Whether it may be published in addition to everything in the register.
    """
    if survey_weight is not None:
        return "Next: audit without --weight, or rename the column if it counts people."
    if level is Level.STOP:
        return f"{REDESIGN}; fewer or broader categories help."
    if level is Level.CARE:
        return f"{REDESIGN}{'' if is_registered else ', --register takes other tables into account'}."
    if not is_registered:
        return "Next: --register audits it together with what was published before."
    return "Next: --publish DIR writes it as a release." if is_publishable else ""


def _level(summary: BoundsSummary) -> Level:
    if summary.disclosed_small_cells or summary.certain_rows:
        return Level.STOP
    return Level.CARE if summary.disclosed_rows or summary.small_rows else Level.OK


def _counts(summary: BoundsSummary) -> str:
    if summary.disclosed_small_cells:
        return f"{counted(summary.disclosed_small_cells, 'small count')} can be derived"
    if summary.disclosed_rows:
        return f"No small count can be derived, {counted(summary.disclosed_rows, 'row')} in full"
    return "Counts cannot be derived"


def _status(summary: BoundsSummary, certain: Fraction, is_counted: bool) -> str:
    if not summary.certain_rows:
        joint = "but" if summary.disclosed_small_cells else "and"
        return f", {joint} no row reveals a person's status"
    joint = "and" if summary.disclosed_small_cells else "but"
    tells = "reveals" if summary.certain_rows == 1 else "reveal"
    sure = "" if certain == 1 else f" with at least {float(100 * certain):g} % certainty"
    people = counted(summary.certain_people, "person").replace("persons", "people")
    people = people if is_counted else f"at least {people}"
    return f", {joint} {counted(summary.certain_rows, 'row')} {tells} a person's status{sure} ({people})"


def _small_rows(summary: BoundsSummary, small: int) -> str:
    if not summary.small_rows:
        return ""
    hold = "holds" if summary.small_rows == 1 else "hold"
    return f" {counted(summary.small_rows, 'row')} {hold} fewer than {small} people."
