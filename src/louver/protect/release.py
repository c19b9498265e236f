"""Publish protected tables: a release directory with each table as CSV, Parquet and Excel, whose promises anyone can check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Bools, Ints
from louver.data.workbook import write_workbook
from louver.data.write import write_csv
from louver.protect.cellkey import KeyedTable
from louver.protect.cells import Grid
from louver.protect.load import Loaded, LoadedTable
from louver.protect.noise_table import NoiseTable
from louver.protect.options import ProtectOptions, TableOptions
from louver.protect.solve import Solved, bases_of
from louver.release import disclosures
from louver.release.manifest import Manifest
from louver.release.sentences import CELL_KEY_CELLS, HIDDEN_CELLS, ROUNDED_CELLS
from louver.release.write import ReleaseWriter
from louver.run import Run

__all__ = ["publish", "publish_noisy"]

STATUS_COLUMNS = ("obs_status", "conf_status")
SHOWN, SUPPRESSED = ("A", "F"), ("Q", "C")
"""Status of a number in the code lists of SDMX: normal and free, or suppressed and confidential.

SDMX has a separate code for secondary confidentiality (D). It is not published, because it would reveal which cells are sensitive.
"""

MOST_EXCEL_ROWS = 200_000
"""Maximum number of lines of a table that is also written as a workbook."""

DIGITS = 38


Log = Callable[[Sequence[disclosures.Plain]], str]
"""Enters each table into the register and returns the register's head."""


def publish(
    out: Path, options: ProtectOptions, loaded: Loaded, solved: Solved, run: Run, log: Log | None = None
) -> Manifest:
    """Write tables with hidden or rounded numbers; nothing is published if a promise would not hold.

    Parameters
    ----------
    log : callable, optional
        Called once the files have been verified.
    """
    codes = _codes(loaded.tables)
    described = [_described(options, table, loaded) for table in loaded.tables]
    shown = (_table(loaded, table, solved) for table in loaded.tables)
    promise: dict[str, Any] = {"promise": "protected-tables", "tables": _files(described), "codes": codes}
    if solved.rounding is not None:
        promise |= {"promise": "rounded-tables", "beyond": solved.rounding.beyond}

    def kept() -> list[disclosures.Plain]:
        return [
            _kept(options, loaded, solved, table, one, codes)
            for table, one in zip(loaded.tables, described, strict=True)
        ]

    disclosed = HIDDEN_CELLS if solved.rounding is None else ROUNDED_CELLS
    return _written(out, options, shown, promise, disclosed, kept, log, run)


def publish_noisy(
    out: Path,
    options: ProtectOptions,
    tables: Sequence[KeyedTable],
    noise: NoiseTable,
    mark: str,
    run: Run,
    log: Log,
) -> Manifest:
    """Write tables of counts with noise; a cell that is not listed is 0 or was changed to 0. The register keeps the `mark` of all keys
    (`together.mark_of`).
    """
    loaded = [
        LoadedTable(
            options=table.options,
            grid=Grid(name=table.options.name, axes=table.axes, cells=table.noisy),
            lines=(),
        )
        for table in tables
    ]
    codes = _codes(loaded)
    described = [_described(options, table, None) for table in loaded]
    promise = {
        "promise": "cell-key-tables",
        "tables": _files(described),
        "codes": codes,
        "variance": round(noise.variance, 6),
        "maximum": noise.most,
    }

    def kept() -> list[disclosures.Plain]:
        return [
            disclosures.protected(
                one,
                codes,
                quantity=table.options.quantity,
                value=None,
                method=options.method,
                shown=[],
                hidden=[],
            )
            | {"noise": noise.digest, "person": options.person, "mark": mark}
            for table, one in zip(tables, described, strict=True)
        ]

    return _written(out, options, map(_listed, tables), promise, CELL_KEY_CELLS, kept, log, run)


def _listed(table: KeyedTable) -> pa.Table:
    """Codes and number of every cell that is not 0."""
    places = np.nonzero(table.noisy)
    columns = [
        pa.array(np.array(axis.codes, dtype=object)[own].tolist(), pa.string())
        for axis, own in zip(table.axes, places, strict=True)
    ]
    options = table.options
    return pa.table([*columns, pa.array(table.noisy[places])], names=[*options.by, value_name(options)])


def _files(described: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tables with the names of their files."""
    return [
        {**one, "file": f"data/{number:02d}-{_slug(one['name'])}.parquet"}
        for number, one in enumerate(described, start=1)
    ]


def _written(
    out: Path,
    options: ProtectOptions,
    tables: Iterable[pa.Table],
    promise: dict[str, Any],
    disclosed: str,
    kept: Callable[[], list[disclosures.Plain]],
    log: Log | None,
    run: Run,
) -> Manifest:
    with ReleaseWriter(out, run) as writer:
        for described, shown in zip(promise["tables"], tables, strict=True):
            path = writer.path(described["file"])
            pq.write_table(shown, path)
            write_csv(shown, path.with_suffix(".csv"))
            if shown.num_rows <= MOST_EXCEL_ROWS:
                run.attend(write_workbook, {"table": shown}, path.with_suffix(".xlsx"))
        manifest = Manifest(
            verb="protect",
            method=options.method,
            parameters={"tables": [{"name": table.name, "by": list(table.by)} for table in options.tables]},
            promises=[promise],
            disclosures=(disclosed,),
        )
        return writer.seal(manifest, None if log is None else lambda: log(kept()))


def _kept(
    options: ProtectOptions,
    loaded: Loaded,
    solved: Solved,
    table: LoadedTable,
    described: dict[str, Any],
    codes: dict[str, Any],
) -> disclosures.Plain:
    """The register entry of a table."""
    hidden = solved.hiding.hidden
    is_hidden = [solved.rounding is None and bool(hidden[line.cell]) for line in table.lines]
    numbers = [cell.value for cell in loaded.cells] if solved.rounding is None else solved.rounding.numbers
    return disclosures.protected(
        {**described, "decimals": loaded.cells[table.lines[0].cell].decimals},
        codes,
        quantity=table.options.quantity,
        value=table.options.value,
        method=options.method,
        shown=[
            [*line.labels, int(numbers[line.cell])]
            for line, gone in zip(table.lines, is_hidden, strict=True)
            if not gone
        ],
        hidden=[line.labels for line, gone in zip(table.lines, is_hidden, strict=True) if gone],
    )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "table"


def value_name(table: TableOptions) -> str:
    """The name of the column of numbers."""
    name = table.measured
    taken = {*table.by, *STATUS_COLUMNS}
    return f"{name}_value" if name in taken else name


def _described(options: ProtectOptions, table: LoadedTable, loaded: Loaded | None) -> dict[str, Any]:
    found = {
        "name": table.options.name,
        "by": list(table.options.by),
        "value": value_name(table.options),
        "measured": table.options.measured,
        "counts": table.options.is_counts,
        "negative": table.options.negative,
        "decimals": 0 if loaded is None else loaded.cells[table.lines[0].cell].decimals,
        "depth": dict(table.options.depth),
    }
    if loaded is not None and options.method == "round":
        found |= {"base": bases_of(options, loaded)[table.options.quantity], "decimals": 0}
    return found


def _codes(tables: Sequence[LoadedTable]) -> dict[str, Any]:
    """The hierarchies, which are public, and which readers need to check sums."""
    found: dict[str, Any] = {}
    for table in tables:
        for axis in table.grid.axes:
            attribute = axis.attribute
            is_own = attribute.is_linked or attribute.of == attribute.name
            found[attribute.name] = {
                "total": attribute.total,
                "of": attribute.name if is_own else attribute.of,
                "stands_for": {}
                if is_own
                else {leaf: sorted(leaves) for leaf, leaves in sorted(attribute.stands_for.items())},
                "trees": [
                    {code: list(parts) for code, parts in tree.parts.items()} for tree in attribute.trees
                ],
            }
    return found


def _table(loaded: Loaded, table: LoadedTable, solved: Solved) -> pa.Table:
    if solved.rounding is None:
        return _shown(loaded, table, solved.hiding.hidden)
    return _rounded(loaded, table, solved.rounding.numbers)


def _rounded(loaded: Loaded, table: LoadedTable, numbers: Ints) -> pa.Table:
    """Codes and rounded numbers, which have no decimals because a base is a whole number."""
    unit = 10 ** loaded.cells[table.lines[0].cell].decimals
    columns = [
        pa.array([line.labels[place] for line in table.lines], pa.string())
        for place in range(len(table.options.by))
    ]
    rounded = pa.array([int(numbers[line.cell]) // unit for line in table.lines], pa.int64())
    return pa.table([*columns, rounded], names=[*table.options.by, value_name(table.options)])


def _shown(loaded: Loaded, table: LoadedTable, hidden: Bools) -> pa.Table:
    decimals = loaded.cells[table.lines[0].cell].decimals
    kind = pa.int64() if decimals == 0 else pa.decimal128(DIGITS, decimals)
    numbers: list[Any] = []
    for line in table.lines:
        value = loaded.cells[line.cell].value
        number = value if decimals == 0 else Decimal(value).scaleb(-decimals)
        numbers.append(None if hidden[line.cell] else number)
    columns = [
        pa.array([line.labels[place] for line in table.lines], pa.string())
        for place in range(len(table.options.by))
    ]
    states = [SUPPRESSED if hidden[line.cell] else SHOWN for line in table.lines]
    columns += [
        pa.array(numbers, kind),
        *(pa.array(codes, pa.string()) for codes in zip(*states, strict=True)),
    ]
    return pa.table(columns, names=[*table.options.by, value_name(table.options), *STATUS_COLUMNS])
