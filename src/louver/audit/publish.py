"""Tables as a release directory: Parquet and CSV files, a manifest, and promises that anyone can check."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from louver.audit.load import KINDS, LoadedTables
from louver.audit.options import AuditOptions, AuditTableOptions
from louver.data.write import write_csv
from louver.release.manifest import Manifest
from louver.release.pages import Published, in_memory
from louver.release.sentences import TABLES
from louver.release.write import ReleaseWriter
from louver.run import Run
from louver.tables.pieces import Piece

__all__ = ["Report", "publish"]

Report = Callable[[Manifest, Published], str]
"""Makes the page of a release from its published content."""


def publish(
    out: Path,
    loaded: LoadedTables,
    options: AuditOptions,
    log: Callable[[], str],
    run: Run,
    report: Report | None = None,
) -> Manifest:
    """Write the tables; `log` enters them into the register once the files have been verified."""
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
                        **content,
                        "where": {name: list(labels) for name, labels in table.where.items()},
                        "recode": table.recode,
                        **KINDS[table.kind].parameters(table, piece),
                    }
                    for table, content, piece in zip(options.tables, tables, loaded.pieces, strict=False)
                ],
            },
            promises=[{"promise": "tables", "tables": tables}],
            disclosures=(TABLES,),
        )
        if report is not None:
            html = run.attend(report, manifest, in_memory(published))
            writer.path("report.html").write_text(html, encoding="utf-8")
        return writer.seal(manifest, log)


def _counted(loaded: LoadedTables) -> dict[str, str]:
    """What is counted in a group, if not people."""
    if loaded.units is not None:
        return {"counted": "units, not people"}
    return {} if loaded.household is None else {"counted": "people, not households"}


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "table"


def _described(table: AuditTableOptions, file: str) -> dict[str, Any]:
    by = [*table.by, *table.rows, *table.cols]
    return {
        "file": file,
        "by": by,
        "base": table.base,
        "total": table.total if table.totals else None,
        "n_rows_by": len(table.rows) or None,
        "decimals": table.decimals,
    }


def _shown(loaded: LoadedTables, table: AuditTableOptions, piece: Piece) -> pa.Table:
    kind = KINDS[table.kind]
    rows = list(kind.lines(table, piece, loaded.domain))
    names = [*table.by, *table.rows, *table.cols]
    schema = pa.schema([*((name, pa.string()) for name in names), (kind.number, kind.number_type)])
    columns = [[row[place] for row in rows] for place in range(len(schema))]
    return pa.table([pa.array(c, type=f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
