"""Protected tables: the pattern with its proof, for the steward; it contains true numbers and is confidential."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from louver._html import JsonText, Shown
from louver._verdict import Level, Verdict
from louver._words import counted
from louver.errors import printable
from louver.protect.cellkey import SURE
from louver.protect.grid import TableGrid, grids_of
from louver.protect.solve import bases_of
from louver.protect.verdict import Question, noisy_verdict, verdict

if TYPE_CHECKING:
    import pyarrow

    from louver.audit import JointAudit
    from louver.protect.cellkey import Averaging, KeyedTable
    from louver.protect.load import Loaded
    from louver.protect.noise_table import NoiseTable
    from louver.protect.options import ProtectOptions
    from louver.protect.solve import Solved

__all__ = [
    "CellKeyFigures",
    "HiddenCell",
    "ProtectSummary",
    "ProtectedTable",
    "ProtectedTables",
    "RoundingFigures",
    "noisy_result",
    "result_of",
]

SHOWN_TABLES = 8
AVERAGED, TOLD = "it follows from the average of all its estimates", "it follows from bounds and sums"
NOUNS = {
    "number": "number of hidden cells",
    "value": "hidden value",
    "cost": "cost",
    "distance": "total distance of the rounded numbers in bases",
    "noise": "total noise",
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
        Why it is primary; empty for a secondary cell.
    is_protected : bool
        Whether it is proved that every attacker considers a wide enough range possible; true for a secondary cell, which needs no range.
        With cell keys only unprotected cells are listed.
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
        """The cell as JSON values, without its number."""
        return {
            "table": self.table,
            "cell": self.cell,
            "kind": self.kind,
            "reasons": list(self.reasons),
            "protected": self.is_protected,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedTable:
    """The cost of hiding in one table."""

    table: str
    cells: int
    primary: int
    secondary: int
    hidden_share: float
    """Hidden share of the total of the finest cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingFigures:
    """The effect of rounding on the numbers of all tables; a cell that several tables show counts once.

    Attributes
    ----------
    bases : dict
        Quantity -> its base.
    changed : int
        Number of numbers that differ from their true values.
    beyond : int
        Number of multiples by which the farthest number lies beyond the two next to its value; 0 if all are adjacent multiples.
    far : int
        Number of numbers not rounded to an adjacent multiple.
    mean_change : dict
        Quantity -> mean distance from the true numbers.
    """

    bases: dict[str, int]
    changed: int
    beyond: int
    far: int
    mean_change: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellKeyFigures:
    """The effect of cell keys on the counts of all tables, and what readers can average away; a cell that several tables show counts once.

    Attributes
    ----------
    variance : float
    maximum : int
        Of the noise.
    limit : int
        Counts from 1 to below this are small.
    cells, small : int
        Cells that are not empty, and small ones.
    changed : int
        Cells whose number is not the true count.
    mean_change : float
    estimates : float
        Mean precision of the average of all estimates of a small count, relative to that of one number.
    forecast, measured : float
        Share of small counts that the rounded average recovers, forecast and measured.
    certain : int
        Small counts of which readers can be sure by averaging or by bounds and sums.
    told : int
        The small counts that follow from bounds and sums.
    """

    variance: float
    maximum: int
    limit: int
    cells: int
    small: int
    changed: int
    mean_change: float
    estimates: float
    forecast: float
    measured: float
    certain: int
    told: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectSummary:
    """Figures of all tables together; a cell that several tables show counts once.

    `cost` is that of the secondary cells, and `bound` a lower bound on the cost of every pattern that protects. For rounded tables, the
    cost is the sum of all distances, each in multiples of its base, since numbers of different variables cannot be added.
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
class ProtectedTables(JsonText, Shown):
    """Tables with hidden cells. Confidential: it distinguishes primary cells from others and contains true numbers.

    Attributes
    ----------
    summary : ProtectSummary
    tables : tuple of ProtectedTable
    cells : tuple of HiddenCell
        Every hidden cell of every table.
    decided : tuple of (str, str, str)
        Table, cell and reason of each manual decision.
    question : Question
        The question.
    minimise : str
        The quantity that was minimised; `distance` for rounded numbers.
    method : str
    rounding : RoundingFigures or None
        Of `--method round`.
    cell_keys : CellKeyFigures or None
        Of `--method cellkey`.
    published : str or None
        Folder to which the tables were written.
    refusal : str or None
        What the tables disclose together with what was published before, or why this is not known.
    is_acceptable : bool
        Whether they are refused only because it is not known what they and an earlier file of records disclose together.
    grids : tuple of TableGrid
        Every cell of every table, hidden or not; empty with cell keys, whose counts remain in the database.
    """

    summary: ProtectSummary
    tables: tuple[ProtectedTable, ...]
    cells: tuple[HiddenCell, ...]
    decided: tuple[tuple[str, str, str], ...]
    question: Question
    minimise: str
    method: str = "hide"
    rounding: RoundingFigures | None = None
    cell_keys: CellKeyFigures | None = None
    published: str | None = None
    refusal: str | None = None
    is_acceptable: bool = False
    grids: tuple[TableGrid, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether to publish, the reasons, and what was not checked."""
        s = self.summary
        if self.refusal is not None and self.is_protected:
            return Verdict(
                Level.STOP, "Do not publish: coarsen the codes or leave a table out.", (self.refusal,)
            )
        if self.cell_keys is not None:
            own = self.cell_keys
            return noisy_verdict(
                self.question,
                limit=own.limit,
                forecast=own.forecast,
                measured=own.measured,
                n_certain=own.certain,
                n_told=own.told,
            )
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
        """Whether every primary cell is proved to be protected; with cell keys, which prove nothing, whether nothing was found."""
        return self.summary.unprotected == 0

    @property
    def is_publishable(self) -> bool:
        """The same, taking into account what was published before."""
        return self.is_protected and self.refusal is None

    def audited(self, together: JointAudit | None) -> ProtectedTables:
        """The same after the tables of counts were audited together with what was published before."""
        if together is None:
            return self
        question = replace(self.question, files=tuple(together.question.left_open()))
        return replace(
            self, refusal=together.refusal, is_acceptable=together.is_acceptable, question=question
        )

    def unprotected(self) -> Iterator[HiddenCell]:
        """Primary cells that are not shown to be protected."""
        return (cell for cell in self.cells if not cell.is_protected)

    def to_dict(self) -> dict[str, Any]:
        """The content of the JSON result; its keys are stable. It distinguishes primary cells from others, and contains no number."""
        return {
            "verdict": self.verdict.to_dict(),
            "question": self.question.to_dict(),
            "summary": asdict(self.summary),
            "tables": [asdict(table) for table in self.tables],
            "cells": [cell.to_dict() for cell in self.cells],
            "method": self.method,
            "rounding": None if self.rounding is None else asdict(self.rounding),
            "cell_keys": None if self.cell_keys is None else asdict(self.cell_keys),
            "published": self.published,
            "refusal": self.refusal,
        }

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

    def _noise_lines(self, own: CellKeyFigures) -> list[str]:
        """The effect of cell keys, in lines of text."""
        return [
            f"ProtectedTables: {counted(len(self.tables), 'table')}, {counted(own.cells, 'cell')}, {own.small:,} below {own.limit:,}",
            f"  noise of variance {own.variance:.4g}, at most {own.maximum:,}: {own.changed:,} counts changed, by {own.mean_change:.3g} on "
            "average",
            f"  averaging recovers {own.measured:.1%} of the counts below {own.limit:,} (forecast {own.forecast:.1%}); {own.certain:,} for "
            "certain",
        ]

    def __repr__(self) -> str:
        if self.cell_keys is not None:
            lines = [str(self.verdict), *self._noise_lines(self.cell_keys)]
            return "\n".join(map(printable, lines))
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
    is_shown = np.zeros(
        len(loaded.cells), dtype=bool
    )  # by the new tables; unlisted totals also count as numbers
    is_shown[[line.cell for table in loaded.tables for line in table.lines]] = True
    hidden = hiding.hidden & is_shown
    cells, tables = [*_open_earlier(loaded, solved)], []
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
            if not hidden[line.cell] and why is None:
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
    n_primary = int(is_shown[[*primary]].sum())
    summary = ProtectSummary(
        cells=int(is_shown.sum()),
        primary=n_primary,
        secondary=int(hidden.sum() - hidden[[*primary]].sum()) if solved.rounding is None else 0,
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
        grids=tuple(grids_of(loaded, solved)),
    )


def _open_earlier(loaded: Loaded, solved: Solved) -> Iterator[HiddenCell]:
    """Hidden cells of earlier releases that the new tables disclose."""
    own = {line.cell for table in loaded.tables for line in table.lines}
    still_open = solved.open_cells.keys() - own
    for table in loaded.earlier:
        for line in table.lines:
            if line.cell in still_open:
                cell = loaded.cells[line.cell]
                yield HiddenCell(
                    table=table.options.name,
                    cell=dict(zip(table.options.by, line.labels, strict=True)),
                    kind="primary",
                    reasons=solved.judged.primary[line.cell].reasons,
                    is_protected=False,
                    value=str(Decimal(cell.value).scaleb(-cell.decimals)),
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
    """Positions of the codes without parts."""
    return set(range(len(axis.codes))) - {total for total, _ in axis.parts}


def _decided(loaded: Loaded, solved: Solved) -> Iterator[tuple[str, str, str]]:
    seen = set()
    for table in loaded.tables:
        for line in table.lines:
            one = solved.judged.decided.get(line.cell)
            if one is not None and line.cell not in seen:
                seen.add(line.cell)
                decision = f"{one.status}: {one.reason}"
                if line.cell in solved.judged.waived:
                    decision += f" (although {'; '.join(solved.judged.waived[line.cell].reasons)})"
                yield table.options.name, ", ".join(line.labels), decision


def noisy_result(
    tables: Sequence[KeyedTable],
    before: Sequence[KeyedTable],
    averaging: Averaging,
    derived: NDArray[np.uint64],
    noise: NoiseTable,
    limit: int,
    question: Question,
    seconds: float,
) -> ProtectedTables:
    """The result of cell keys; `before` are tables of earlier releases, whose numbers readers also average.

    Parameters
    ----------
    derived : uint64 array
        Keys of small counts that follow from bounds and sums.
    """
    is_small = averaging.counts < limit
    is_certain = is_small & (averaging.sureness >= SURE)
    averaged = averaging.keys[is_certain]
    certain = np.union1d(averaged, derived)
    change = np.abs(averaging.noisy - averaging.counts)
    n_small = int(is_small.sum())
    figures = CellKeyFigures(
        variance=noise.variance,
        maximum=noise.most,
        limit=limit,
        cells=len(is_small),
        small=n_small,
        changed=int((change > 0).sum()),
        mean_change=float(change.mean()) if len(change) else 0.0,
        estimates=float(averaging.precision[is_small].mean()) if n_small else 0.0,
        forecast=float(averaging.sureness[is_small].mean()) if n_small else 0.0,
        measured=float(averaging.is_right()[is_small].mean()) if n_small else 0.0,
        certain=len(certain),
        told=len(derived),
    )
    summary = ProtectSummary(
        cells=len(is_small),
        primary=n_small,
        secondary=0,
        cost=float(change.sum()),
        bound=0.0,
        gap=1.0,
        optimal=False,
        attackers=1,
        demands=n_small,
        certified=0,
        unprotected=len(certain),
        rounds=0,
        seconds=seconds,
    )
    return ProtectedTables(
        summary=summary,
        tables=tuple(
            ProtectedTable(
                table=table.options.name,
                cells=int((table.noisy > 0).sum()),
                primary=int(((table.counts > 0) & (table.counts < limit)).sum()),
                secondary=0,
                hidden_share=0.0,
            )
            for table in tables
        ),
        cells=tuple(_known([*tables, *before], averaged, derived)),
        decided=(),
        question=question,
        minimise="noise",
        method="cellkey",
        cell_keys=figures,
    )


def _known(
    tables: Sequence[KeyedTable], averaged: NDArray[np.uint64], derived: NDArray[np.uint64]
) -> Iterator[HiddenCell]:
    """Cells whose true counts readers can be sure of."""
    for table in tables:
        full = table.counts > 0
        by_average, by_bounds = (full & np.isin(table.keys, keys) for keys in (averaged, derived))
        for places in np.argwhere(by_average | by_bounds).tolist():
            at = tuple(places)
            reasons = (AVERAGED,) * bool(by_average[at]) + (TOLD,) * bool(by_bounds[at])
            labels = [axis.codes[place] for axis, place in zip(table.axes, places, strict=True)]
            yield HiddenCell(
                table=table.options.name,
                cell=dict(zip(table.options.by, labels, strict=True)),
                kind="primary",
                reasons=reasons,
                is_protected=False,
                value=str(table.counts[at]),
            )
