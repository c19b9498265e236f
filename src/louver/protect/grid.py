"""Every cell of the protected tables with its true number, its published number and the reason, so that the steward can see the pattern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from louver.protect.load import Loaded, LoadedTable
from louver.protect.solve import Solved

__all__ = ["STATES", "GridCell", "TableGrid", "grids_of"]

STATES = ("zero", "shown", "secondary", "primary", "open")
"""States of a cell: `open` is a primary cell that is not proved protected."""


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell; `published` is None if it is hidden."""

    labels: tuple[str, ...]
    value: str
    published: str | None
    state: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrid:
    """A table: the codes of each attribute, totals first, and its cells. Combinations without a cell are empty."""

    table: str
    by: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    cells: tuple[GridCell, ...]


def grids_of(loaded: Loaded, solved: Solved) -> Iterator[TableGrid]:
    """The tables that are published, cell by cell."""
    for table in loaded.tables:
        yield TableGrid(
            table=table.options.name,
            by=tuple(table.options.by),
            codes=tuple(axis.codes for axis in table.grid.axes),
            cells=tuple(_cells(table, loaded, solved)),
        )


def _cells(table: LoadedTable, loaded: Loaded, solved: Solved) -> Iterator[GridCell]:
    primary, is_open, hidden = solved.judged.primary, solved.open_cells, solved.hiding.hidden
    for line in table.lines:
        cell = loaded.cells[line.cell]
        why = primary.get(line.cell)
        state = "secondary" if hidden[line.cell] else "shown" if cell.value else "zero"
        if why is not None:
            state = "open" if line.cell in is_open else "primary"
        published = cell.value if solved.rounding is None else int(solved.rounding.numbers[line.cell])
        yield GridCell(
            labels=line.labels,
            value=_text(cell.value, cell.decimals),
            published=None if hidden[line.cell] else _text(published, cell.decimals),
            state=state,
            reasons=() if why is None else why.reasons,
        )


def _text(value: int, decimals: int) -> str:
    return f"{Decimal(value).scaleb(-decimals):,f}"
