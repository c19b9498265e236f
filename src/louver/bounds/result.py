"""What an audit found: cells with all their feasible values, and the disclosure summary of Table 13."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from louver._arrays import Bools, Ints
from louver._html import MOST_LINES, Shown
from louver.bounds.exact import Runs
from louver.bounds.problem import Arrangement, TwoWayTable
from louver.bounds.rounded import Rounding
from louver.errors import printable

if TYPE_CHECKING:
    import pyarrow
    from matplotlib.figure import Figure

__all__ = [
    "BoundsAudit",
    "Cell",
    "Comparison",
    "Solution",
    "Suggestion",
    "Suggestions",
    "Summary",
    "counted",
    "summarise",
]


class Solution(Protocol):
    """Bounds (n, J) and feasible values of the cells of the nonzero rows."""

    @property
    def lower(self) -> Ints: ...
    @property
    def upper(self) -> Ints: ...
    def values(self, row: int, col: int) -> Runs: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One line of Table 13. Counts of reduced sums are None where rounding hides them.

    With selected cells, rows and cells that were not asked for are left out of the disclosed counts.
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

    @property
    def risk(self) -> tuple[int, int, int]:
        """Sorts arrangements from the least to the most disclosive."""
        return self.disclosed_small_cells, self.disclosed_rows, self.disclosed_zero_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the published table with all values that fit what the public knows."""

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


ZERO_RUNS: Runs = [(0, 0, 1)]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundsAudit(Shown):
    """What a released table of conditional frequencies gives away. It stays inside: it holds true labels and counts.

    Attributes
    ----------
    arrangement : Arrangement
    summary : Summary
    table : TwoWayTable
    solution : Solution
        Bounds and values of the nonzero rows.
    selected : tuple of (row index, column) or None
        The cells asked for; None means all.
    small : int
        Counts below this are small.
    decimals : int or None
        Decimals of the published proportions; None when they are exact fractions.
    """

    arrangement: Arrangement
    summary: Summary
    table: TwoWayTable
    solution: Solution
    small: int
    selected: tuple[tuple[int, int], ...] | None = None
    decimals: int | None = None
    rounding: Rounding = Rounding.HALF_UP
    n_known: int = 0
    is_counted: bool = True
    seconds: float = field(default=0.0, compare=False)

    def cells(self) -> Iterator[Cell]:
        """All selected cells in row order; those of zero rows are zero, impossible ones are left out."""
        lower, upper = self.solution.lower, self.solution.upper
        position_of = {int(index): position for position, index in enumerate(self.table.row_index)}
        col_labels = [self.table.col_labels(col) for col in range(self.table.n_cols)]
        for row, cols in self._selected_cells():
            row_labels = self.table.row_labels(row)
            position = position_of.get(row)
            for col in cols:
                if position is None:
                    yield Cell(row=row_labels, col=col_labels[col], lower=0, upper=0, values=ZERO_RUNS)
                else:
                    yield Cell(
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

    def disclosed_cells(self) -> Iterator[Cell]:
        """Selected cells with a small positive count that is determined."""
        return (cell for cell in self.cells() if cell.is_determined and 0 < cell.lower < self.small)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable."""
        return {
            "summary": asdict(self.summary),
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

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pyarrow.Table:
        """One line per cell: labels, lower, upper, number of feasible values."""
        import pyarrow

        return pyarrow.Table.from_pylist([_line(cell) for cell in self.cells()])

    def _shown(self) -> tuple[pyarrow.Table, int]:
        """Disclosed small cells, or the first cells where there are none."""
        import pyarrow

        found = list(islice(self.disclosed_cells(), MOST_LINES)) or list(islice(self.cells(), MOST_LINES))
        n_cells = sum(len(cols) for _, cols in self._selected_cells())
        return pyarrow.Table.from_pylist([_line(cell) for cell in found]), n_cells

    def plot(self) -> Figure:
        """The narrowest intervals, and how many values rows can take."""
        from louver.bounds.plot import plot_audit

        return plot_audit(self)

    def __repr__(self) -> str:
        s = self.summary
        form = "exact fractions"
        if self.decimals is not None:
            form = f"rounded to {counted(self.decimals, 'decimal')}"
        return (
            f"BoundsAudit: {printable(self.arrangement.label)}\n"
            f"  {counted(s.disclosed_small_cells, 'small cell')} disclosed (0 < count < {self.small})\n"
            f"  {s.disclosed_rows:,} of {counted(s.rows - s.zero_rows, 'nonzero row')} fully determined\n"
            f"  {counted(s.disclosed_zero_cells, 'zero cell')} visible, {counted(s.zero_rows, 'row')} all zero\n"
            f"  {s.rows:,} x {s.cols:,} table of conditionals, {form}, N = {s.n:,}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Shown):
    """Several arrangements of one table, from the least to the most disclosive."""

    lines: tuple[tuple[Arrangement, Summary], ...]
    seconds: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "arrangements": [
                {"name": a.label, "rows": list(a.rows), "cols": list(a.cols), "summary": asdict(s)}
                for a, s in self.lines
            ]
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

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
        told = f"Comparison of {counted(len(self.lines), 'arrangement')}, least disclosive first"
        return "\n".join([told, *map(printable, shown)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A safe arrangement and the share of the information about the responses that it keeps."""

    arrangement: Arrangement
    summary: Summary
    bits: float
    share: float

    @property
    def merged(self) -> str:
        """The categories that were merged, in words; empty where none were."""
        recodes = self.arrangement.recodes
        return "; ".join(f"{recode.attribute}: {new}" for recode in recodes for new in recode.merge or {})

    def to_dict(self) -> dict[str, Any]:
        a = self.arrangement
        return {
            "name": a.label,
            "rows": list(a.rows),
            "cols": list(a.cols),
            "recodes": {
                r.attribute: {new: list(old) for new, old in (r.merge or {}).items()} for r in a.recodes
            },
            "bits": self.bits,
            "share": self.share,
            "summary": asdict(self.summary),
        }


UTILITY = (
    "conditional mutual information, in bits, between the kept predictors and the responses still in the columns, "
    "given the responses moved to the rows; share = bits / those of the table as first arranged"
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Suggestions(Shown):
    """Redesigns without a disclosed small cell, none of which another beats on every count.

    Attributes
    ----------
    lines : tuple of Suggestion
        Most information first.
    is_proved : bool
        Whether the whole space of redesigns was covered, so that nothing keeps more.
    examined : int
        Arrangements whose bounds were computed.
    bits : float
        Information of the table as first arranged.
    """

    lines: tuple[Suggestion, ...]
    is_proved: bool
    examined: int
    bits: float
    seconds: float = field(default=0.0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "suggestions": [line.to_dict() for line in self.lines],
            "proved": self.is_proved,
            "examined": self.examined,
            "bits": self.bits,
            "utility": UTILITY,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pyarrow.Table:
        import pyarrow

        return pyarrow.Table.from_pylist(
            [
                {
                    "arrangement": line.arrangement.label,
                    "bits": line.bits,
                    "share": line.share,
                    **asdict(line.summary),
                }
                for line in self.lines
            ]
        )

    def plot(self) -> Figure:
        from louver.bounds.plot import plot_suggestions

        return plot_suggestions(self)

    def __repr__(self) -> str:
        how = "nothing keeps more" if self.is_proved else "the best found so far"
        shown = [
            f"  {line.share:6.1%} kept, {line.summary.disclosed_rows:>4} rows disclosed: {line.arrangement.label}"
            + (f" ({line.merged})" if line.merged else "")
            for line in self.lines[:8]
        ]
        told = f"{counted(len(self.lines), 'redesign')} without a disclosed small cell"
        return "\n".join([f"{told} ({how}; {self.examined:,} examined)", *map(printable, shown)])


def _line(cell: Cell) -> dict[str, Any]:
    return {**cell.row, **cell.col, "lower": cell.lower, "upper": cell.upper, "n_values": cell.n_values}


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 small cell", "1,185 zero cells"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summarise(
    table: TwoWayTable,
    lower: Ints,
    upper: Ints,
    *,
    small: int,
    is_exact: bool,
    selected: Sequence[tuple[int, int]] | None = None,
) -> Summary:
    """The disclosure summary of one arrangement (Table 13).

    Notes
    -----
    Implements: Wright & Smucker (2014), Table 13. Where conditionals are rounded a zero cell counts as disclosed
    only if it is determined.
    """
    determined = lower == upper
    asked = _asked(table, selected)
    zero = determined & (lower == 0) & asked
    if table.possible is not None:
        zero &= table.possible[table.row_index]
    row_sums = table.reduced().sum(axis=1)
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
    )


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


def _asked(table: TwoWayTable, selected: Sequence[tuple[int, int]] | None) -> Bools:
    """Which cells of the nonzero rows were asked for."""
    if selected is None:
        return np.ones(table.counts.shape, dtype=bool)
    asked = np.zeros(table.counts.shape, dtype=bool)
    position_of = {int(index): position for position, index in enumerate(table.row_index)}
    for row, col in selected:
        if row in position_of:
            asked[position_of[row], col] = True
    return asked
