"""Publish protected tables: a release directory with each table as CSV and Parquet, whose promises anybody can recompute."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver._arrays import Bools, Ints
from louver.data.write import write_csv
from louver.protect.load import Loaded, LoadedTable
from louver.protect.options import ProtectOptions
from louver.protect.solve import Solved, bases_of
from louver.release.manifest import Manifest
from louver.release.sentences import HIDDEN_CELLS, ROUNDED_CELLS
from louver.release.write import ReleaseWriter
from louver.run import Run

__all__ = ["publish"]

FREE, CONFIDENTIAL = "F", "C"
"""Confidentiality status as SDMX has it; whether a hidden cell is primary or secondary is not told."""

DIGITS = 38


def publish(out: Path, options: ProtectOptions, loaded: Loaded, solved: Solved, run: Run) -> Manifest:
    """Write the tables; nothing appears where a promise would not hold."""
    described = []
    with ReleaseWriter(out, run) as writer:
        for number, table in enumerate(loaded.tables, start=1):
            file = f"data/{number:02d}-{_slug(table.options.name)}.parquet"
            shown = run.attend(_table, options, loaded, table, solved)
            path = writer.path(file)
            pq.write_table(shown, path)
            write_csv(shown, path.with_suffix(".csv"))
            described.append(_described(options, table, file, loaded))
        manifest = Manifest(
            verb="protect",
            method=options.method,
            parameters={
                "tables": [{"name": t.options.name, "by": list(t.options.by)} for t in loaded.tables]
            },
            promises=[_promise(solved, described, _codes(loaded))],
            disclosures=(HIDDEN_CELLS if solved.rounding is None else ROUNDED_CELLS,),
        )
        return writer.seal(manifest)


def _promise(solved: Solved, tables: list[dict[str, Any]], codes: dict[str, Any]) -> dict[str, Any]:
    if solved.rounding is None:
        return {"promise": "protected-tables", "tables": tables, "codes": codes}
    return {"promise": "rounded-tables", "tables": tables, "codes": codes, "beyond": solved.rounding.beyond}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "table"


def value_name(table: LoadedTable) -> str:
    """What the column of numbers is called."""
    name = table.options.measured
    taken = {*table.options.by, "status"}
    return f"{name}_value" if name in taken else name


def _described(options: ProtectOptions, table: LoadedTable, file: str, loaded: Loaded) -> dict[str, Any]:
    found = {
        "name": table.options.name,
        "file": file,
        "by": list(table.options.by),
        "value": value_name(table),
        "measured": table.options.measured,
        "counts": table.options.is_counts,
        "negative": table.options.negative,
        "decimals": loaded.cells[table.lines[0].cell].decimals,
        "depth": dict(table.options.depth),
    }
    if options.method == "round":
        found |= {"base": bases_of(options, loaded)[table.options.quantity], "decimals": 0}
    return found


def _codes(loaded: Loaded) -> dict[str, Any]:
    """Hierarchies: readers need them to add up, and they are public."""
    found: dict[str, Any] = {}
    for table in loaded.tables:
        for axis in table.grid.axes:
            attribute = axis.attribute
            found[attribute.name] = {
                "total": attribute.total,
                "of": attribute.of,
                "stands_for": {}
                if attribute.of == attribute.name
                else {leaf: sorted(leaves) for leaf, leaves in sorted(attribute.stands_for.items())},
                "trees": [
                    {code: list(parts) for code, parts in tree.parts.items()} for tree in attribute.trees
                ],
            }
    return found


def _table(options: ProtectOptions, loaded: Loaded, table: LoadedTable, solved: Solved) -> pa.Table:
    if solved.rounding is None:
        return _shown(loaded, table, solved.hiding.hidden)
    return _rounded(loaded, table, solved.rounding.numbers)


def _rounded(loaded: Loaded, table: LoadedTable, numbers: Ints) -> pa.Table:
    """Codes and rounded numbers, which have no decimals: a base is a whole number."""
    unit = 10 ** loaded.cells[table.lines[0].cell].decimals
    columns = [
        pa.array([line.labels[place] for line in table.lines], pa.string())
        for place in range(len(table.options.by))
    ]
    rounded = pa.array([int(numbers[line.cell]) // unit for line in table.lines], pa.int64())
    return pa.table([*columns, rounded], names=[*table.options.by, value_name(table)])


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
    status = pa.array([CONFIDENTIAL if hidden[line.cell] else FREE for line in table.lines], pa.string())
    return pa.table(
        [*columns, pa.array(numbers, kind), status], names=[*table.options.by, value_name(table), "status"]
    )
