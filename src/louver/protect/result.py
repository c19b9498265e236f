"""Protected tables: the pattern with its proof, for the steward; it holds true numbers and stays inside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from louver._html import Shown
from louver._verdict import Verdict
from louver._words import counted
from louver.errors import printable
from louver.protect.solve import bases_of
from louver.protect.verdict import Question, verdict

if TYPE_CHECKING:
    import pyarrow

    from louver.protect.load import Loaded
    from louver.protect.options import ProtectOptions
    from louver.protect.solve import Solved

__all__ = [
    "HiddenCell",
    "ProtectSummary",
    "ProtectedTable",
    "ProtectedTables",
    "RoundingFigures",
    "result_of",
]

SHOWN_TABLES = 8
NOUNS = {
    "number": "number of hidden cells",
    "value": "hidden value",
    "cost": "cost",
    "distance": "total distance of the rounded numbers in bases",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenCell:
    """A cell that is hidden.

    Attributes
    ----------
    table : str
    cell : dict
        Its codes.
    kind : str
        `primary` or `secondary`.
    reasons : tuple of str
        Why it is primary; empty for a secondary one.
    is_protected : bool
        Whether every attacker holds a wide enough range for possible, proved; true for a secondary one, which needs no range.
    value : str
        The true number; confidential.
    """

    table: str
    cell: dict[str, str]
    kind: str
    reasons: tuple[str, ...]
    is_protected: bool
    value: str

    def to_dict(self) -> dict[str, Any]:
        """Without the number."""
        return {
            "table": self.table,
            "cell": self.cell,
            "kind": self.kind,
            "reasons": list(self.reasons),
            "protected": self.is_protected,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedTable:
    """What hiding costs one table."""

    table: str
    cells: int
    primary: int
    secondary: int
    hidden_share: float
    """Share of what its finest cells add up to that is hidden in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingFigures:
    """What rounding did to the numbers of all tables; a cell that several tables show counts once.

    Attributes
    ----------
    bases : dict
        What is measured -> its base.
    changed : int
        Numbers that are not their true ones.
    beyond : int
        Multiples beyond the two next to its value that the furthest number went; 0 where all are next multiples.
    far : int
        Numbers that are not a next multiple.
    mean_change : dict
        What is measured -> mean distance from the true numbers.
    """

    bases: dict[str, int]
    changed: int
    beyond: int
    far: int
    mean_change: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectSummary:
    """Figures of all tables together; a cell that several tables show counts once.

    `cost` is of the secondary cells, and no pattern that protects costs less than `bound`. Of rounded tables it is the sum of all
    distances, each in multiples of its base, since numbers of different variables cannot be added.
    """

    cells: int
    primary: int
    secondary: int
    cost: float
    bound: float
    gap: float
    optimal: bool
    attackers: int
    demands: int
    certified: int
    unprotected: int
    rounds: int
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ProtectedTables(Shown):
    """Tables with cells hidden. It stays inside: it tells primary cells from others, and holds true numbers.

    Attributes
    ----------
    summary : ProtectSummary
    tables : tuple of ProtectedTable
    cells : tuple of HiddenCell
        Every hidden cell of every table.
    decided : tuple of (str, str, str)
        Table, cell and reason of what was decided by hand.
    question : Question
        What was asked.
    minimise : str
        What few of was looked for; `distance` of rounded numbers.
    method : str
    rounding : RoundingFigures or None
        Of `--method round`.
    published : str or None
        Folder that the tables were written to.
    """

    summary: ProtectSummary
    tables: tuple[ProtectedTable, ...]
    cells: tuple[HiddenCell, ...]
    decided: tuple[tuple[str, str, str], ...]
    question: Question
    minimise: str
    method: str = "hide"
    rounding: RoundingFigures | None = None
    published: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether to publish, what that rests on, and what was not asked."""
        s = self.summary
        return verdict(
            self.question,
            secondary=s.secondary,
            is_optimal=s.optimal,
            gap=s.gap,
            n_open=s.unprotected,
            noun=NOUNS[self.minimise],
            rounding=None if self.rounding is None else self.rounding.beyond,
        )

    @property
    def is_protected(self) -> bool:
        """Whether every primary cell is proved to be protected."""
        return self.summary.unprotected == 0

    def unprotected(self) -> Iterator[HiddenCell]:
        """Primary cells that are not shown to be protected."""
        return (cell for cell in self.cells if not cell.is_protected)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable. It tells primary cells from others, and no number."""
        return {
            "verdict": self.verdict.to_dict(),
            "question": self.question.to_dict(),
            "summary": asdict(self.summary),
            "tables": [asdict(table) for table in self.tables],
            "cells": [cell.to_dict() for cell in self.cells],
            "method": self.method,
            "rounding": None if self.rounding is None else asdict(self.rounding),
            "published": self.published,
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_frame(self) -> pyarrow.Table:
        """One line per hidden cell."""
        import pyarrow

        lines = [
            {
                "table": cell.table,
                "cell": ", ".join(cell.cell.values()),
                "kind": cell.kind,
                "reasons": "; ".join(cell.reasons),
                "protected": cell.is_protected,
            }
            for cell in self.cells
        ]
        names = ("table", "cell", "kind", "reasons", "protected")
        return pyarrow.table({name: [line[name] for line in lines] for name in names})

    def __repr__(self) -> str:
        s = self.summary
        what = "pattern" if self.rounding is None else "table"
        best = "proved best" if s.optimal else f"at least {s.bound:,.6g} in any {what}, gap {s.gap:.1%}"
        done = f"{s.secondary:,} secondary" if self.rounding is None else f"{self.rounding.changed:,} rounded"
        lines = [
            str(self.verdict),
            f"ProtectedTables: {counted(len(self.tables), 'table')}, {counted(s.cells, 'cell')}, {s.primary:,} primary, "
            f"{done}",
            f"  {NOUNS[self.minimise]} {s.cost:,.10g} ({best})",
            f"  {s.certified:,} of {counted(s.demands, 'demand')} certified, {counted(s.attackers, 'attacker')}",
        ]
        for table in self.tables[:SHOWN_TABLES]:
            own = f"{table.primary:,} + {table.secondary:,} of {counted(table.cells, 'cell')} hidden"
            if self.rounding is not None:
                own = f"{table.primary:,} primary of {counted(table.cells, 'cell')}"
            lines.append(f"  {table.table}: {own}")
        if len(self.tables) > SHOWN_TABLES:
            lines.append("  ... --html lists more")
        return "\n".join(map(printable, lines))


def result_of(
    options: ProtectOptions, loaded: Loaded, solved: Solved, question: Question, seconds: float
) -> ProtectedTables:
    """The result of one call."""
    hiding, primary, is_open = solved.hiding, solved.judged.primary, solved.open_cells
    is_shown = np.array([cell.is_shown for cell in loaded.cells], dtype=bool)
    hidden = hiding.hidden & is_shown
    cells, tables = [], []
    for table in loaded.tables:
        finest = [len(axis.parts) == 0 or _leaf_places(axis) for axis in table.grid.axes]
        own = 0, 0
        whole, gone = 0, 0
        for line in table.lines:
            cell = loaded.cells[line.cell]
            is_leaf = all(
                places is True or axis.place_of[label] in places
                for axis, places, label in zip(table.grid.axes, finest, line.labels, strict=True)
            )
            whole += abs(cell.value) * is_leaf
            why = primary.get(line.cell)
            if not hidden[line.cell] and (why is None or solved.rounding is None):
                continue
            gone += abs(cell.value) * is_leaf * bool(hidden[line.cell])
            own = own[0] + (why is not None), own[1] + (why is None)
            cells.append(
                HiddenCell(
                    table=table.options.name,
                    cell=dict(zip(table.options.by, line.labels, strict=True)),
                    kind="secondary" if why is None else "primary",
                    reasons=() if why is None else why.reasons,
                    is_protected=line.cell not in is_open,
                    value=str(Decimal(cell.value).scaleb(-cell.decimals)),
                )
            )
        tables.append(
            ProtectedTable(
                table=table.options.name,
                cells=len(table.lines),
                primary=own[0],
                secondary=own[1],
                hidden_share=gone / whole if whole else 0.0,
            )
        )
    n_demands = len(solved.problem.demands)
    summary = ProtectSummary(
        cells=int(is_shown.sum()),
        primary=len(primary),
        secondary=int(hidden.sum()) - len(primary) if solved.rounding is None else 0,
        cost=hiding.cost,
        bound=hiding.bound,
        gap=hiding.gap,
        optimal=hiding.is_optimal,
        attackers=len(solved.problem.attackers),
        demands=n_demands,
        certified=n_demands - len(solved.certificate.missing),
        unprotected=len(is_open),
        rounds=hiding.rounds,
        seconds=seconds,
    )
    return ProtectedTables(
        summary=summary,
        tables=tuple(tables),
        cells=tuple(cells),
        decided=tuple(_decided(loaded, solved)),
        question=question,
        minimise=options.minimise if solved.rounding is None else "distance",
        method=options.method,
        rounding=_rounding_figures(options, loaded, solved),
    )


def _rounding_figures(options: ProtectOptions, loaded: Loaded, solved: Solved) -> RoundingFigures | None:
    if solved.rounding is None:
        return None
    bases = bases_of(options, loaded)
    changes: dict[str, list[float]] = {name: [] for name in bases}
    far = 0
    for cell, number in zip(loaded.cells, solved.rounding.numbers.tolist(), strict=True):
        if cell.is_shown:
            unit = 10**cell.decimals
            change = abs(number - cell.value)
            changes[cell.measured].append(change / unit)
            far += change >= bases[cell.measured] * unit
    return RoundingFigures(
        bases=bases,
        changed=sum(change > 0 for own in changes.values() for change in own),
        beyond=solved.rounding.beyond,
        far=far,
        mean_change={name: sum(own) / len(own) if own else 0.0 for name, own in changes.items()},
    )


def _leaf_places(axis: Any) -> set[int]:
    """Places of the codes without parts."""
    return set(range(len(axis.codes))) - {total for total, _ in axis.parts}


def _decided(loaded: Loaded, solved: Solved) -> Iterator[tuple[str, str, str]]:
    seen = set()
    for table in loaded.tables:
        for line in table.lines:
            one = solved.judged.decided.get(line.cell)
            if one is not None and line.cell not in seen:
                seen.add(line.cell)
                told = f"{one.status}: {one.reason}"
                if line.cell in solved.judged.waived:
                    told += f" (although {'; '.join(solved.judged.waived[line.cell].reasons)})"
                yield table.options.name, ", ".join(line.labels), told
