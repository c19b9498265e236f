"""Tables as a release directory: Parquet and CSV files, a manifest, and promises that anybody can check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from louver.audit.load import Loaded
from louver.audit.marks import HIDDEN
from louver.audit.options import AuditOptions, TableOptions
from louver.data.write import write_csv
from louver.errors import InputError
from louver.release.manifest import Manifest
from louver.release.pages import Published, in_memory
from louver.release.sentences import TABLES
from louver.release.write import ReleaseWriter
from louver.run import Run
from louver.tables.pieces import Piece, cross_attributes

__all__ = ["Report", "publish"]

Report = Callable[[Manifest, Published], str]
"""Makes the page of a release from what is published of it."""


def publish(
    out: Path,
    loaded: Loaded,
    options: AuditOptions,
    log: Callable[[], str],
    run: Run,
    report: Report | None = None,
) -> Manifest:
    """Write the tables; `log` enters them into the register once the files are known to keep their promises."""
    tables: list[dict[str, Any]] = []
    published: dict[str, pa.Table] = {}
    with ReleaseWriter(out, run) as writer:
        for number, table in enumerate(options.tables, start=1):
            file = f"data/{number:02d}-{_slug(table.name)}.parquet"
            shown = run.attend(_shown, loaded, table, loaded.pieces[number - 1])
            path = writer.path(file)
            pq.write_table(shown, path)
            write_csv(shown, path.with_suffix(".csv"))
            published[file] = shown
            tables.append(_described(table, file))
        manifest = Manifest(
            verb="audit",
            method="tables",
            parameters={
                "small": options.small,
                "within": options.within,
                **_counted(loaded),
                "tables": [
                    {
                        "name": table.name,
                        **told,
                        "where": {name: list(labels) for name, labels in table.where.items()},
                        "recode": table.recode,
                        **_people(table, piece),
                    }
                    for table, told, piece in zip(options.tables, tables, loaded.pieces, strict=False)
                ],
            },
            promises=[{"promise": "tables", "tables": tables}],
            disclosures=(TABLES,),
        )
        if report is not None:
            html = run.attend(report, manifest, in_memory(published))
            writer.path("report.html").write_text(html, encoding="utf-8")
        return writer.seal(manifest, log)


def _counted(loaded: Loaded) -> dict[str, str]:
    """What makes a group small, where it is not simply people."""
    if loaded.units is not None:
        return {"counted": "units, not people"}
    return {} if loaded.household is None else {"counted": "people, not households"}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "table"


def _described(table: TableOptions, file: str) -> dict[str, Any]:
    by = [*table.by, *table.rows, *table.cols]
    return {
        "file": file,
        "by": by,
        "base": table.base,
        "total": table.total if table.totals else None,
        "n_rows_by": len(table.rows) or None,
        "decimals": table.decimals,
    }


def _people(table: TableOptions, piece: Piece) -> dict[str, int]:
    """The number of people that is published beside shares."""
    return {"people": int(piece.margins[0].lower[0])} if table.counts == "total" else {}


def _shown(loaded: Loaded, table: TableOptions, piece: Piece) -> pa.Table:
    rows = list(_share_rows(loaded, table, piece) if table.is_shares else _count_rows(loaded, table, piece))
    names = [*table.by, *table.rows, *table.cols]
    value = pa.string() if table.is_shares else pa.int64()
    schema = pa.schema(
        [*((name, pa.string()) for name in names), ("share" if table.is_shares else "count", value)]
    )
    columns = [[row[place] for row in rows] for place in range(len(schema))]
    return pa.table([pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def _count_rows(loaded: Loaded, table: TableOptions, piece: Piece) -> Iterator[tuple[Any, ...]]:
    """One line per cell and total; a hidden number is missing."""
    for margin in piece.margins:
        assert margin.printed is not None
        attributes = cross_attributes(margin.cross, loaded.domain.attributes)
        for attribute in attributes:
            if table.totals and table.total in attribute.labels:
                raise InputError(
                    f'table "{table.name}" has totals called "{table.total}", and attribute "{attribute.name}" has a label of that name; '
                    "call them otherwise with total.",
                    option="tables",
                    column=attribute.name,
                )
        sizes = [attribute.size for attribute in attributes]
        for cell in range(int(np.prod(sizes, dtype=np.int64))):
            labels = loaded.domain.labels(margin.cross, cell)
            if not all(labels.get(name) in (None, *kept) for name, kept in margin.cross.where.items()):
                continue  # a label that the table is not about
            yield (
                *(labels.get(name, table.total) for name in table.by),
                None if margin.printed[cell] == HIDDEN else int(margin.printed[cell]),
            )


def _share_rows(loaded: Loaded, table: TableOptions, piece: Piece) -> Iterator[tuple[Any, ...]]:
    """One line per cell of every row with people."""
    (shares,) = piece.shares
    for row in np.flatnonzero(~shares.is_empty):
        printed = shares.printed[row]
        for col, value in enumerate(printed.tolist()):
            labels = loaded.domain.labels(shares.cross, int(row) * shares.n_cols + col)
            text = f"{value}/{int(printed.sum())}"
            if shares.decimals is not None:
                whole, rest = divmod(value, 10**shares.decimals)
                text = f"{whole}.{rest:0{shares.decimals}d}" if shares.decimals else str(whole)
            yield (*labels.values(), text)
