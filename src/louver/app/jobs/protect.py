"""Jobs of the Protect page: listing the columns for tables, protecting tables, and publishing them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from louver.app.jobs.data import Stamp, counted, stamp_of
from louver.data.coded import read_coded
from louver.data.kinds import ColumnKind, guess_kind
from louver.data.read import open_source
from louver.protect import ProtectedTables, protect
from louver.protect.grid import STATES, TableGrid
from louver.run import Run
from louver.schema.source import SourceOptions

__all__ = ["columns_for_tables", "protected", "published_protected"]


def columns_for_tables(path: str, source: SourceOptions, run: Run) -> dict[str, Any]:
    """Columns that can be used in a table, as from `counted`, and those with numbers that can be added up."""
    return counted(path, source, run) | {"numbers": _numbers(path, source.model_dump_json(), stamp_of(path))}


@lru_cache(maxsize=1)
def _numbers(path: str, source: str, stamp: Stamp) -> tuple[str, ...]:
    about = SourceOptions.model_validate_json(source)
    with open_source(path, **about.opening()) as opened:
        columns = read_coded(opened, list(opened.columns), Run())
    kinds = (ColumnKind.INTEGER, ColumnKind.NUMBER, ColumnKind.ORDERED_CODE)
    return tuple(column.name for column in columns if guess_kind(column)[0] in kinds)


def protected(path: str, source: SourceOptions, options: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """The verdict, the figures and every table with its pattern."""
    return _for_page(_protect(path, source, options, None, run))


def published_protected(
    path: str, source: SourceOptions, options: Mapping[str, Any], out: str, run: Run
) -> dict[str, Any]:
    """Publish the tables, unless a primary cell stays unprotected."""
    found = _protect(path, source, options, out, run)
    judged = found.verdict
    refused = None if found.published is not None else f"{judged.sentence} {' '.join(judged.reasons)}"
    return {"refused": refused, "remark": None, "verdict": judged.to_dict()}


def _protect(
    path: str, source: SourceOptions, options: Mapping[str, Any], out: str | None, run: Run
) -> ProtectedTables:
    given = source.model_dump(exclude={"file", "uri"}, exclude_defaults=True)
    return protect(path, **given, **options, out=out, run=run)


def _for_page(found: ProtectedTables) -> dict[str, Any]:
    return {
        "verdict": found.verdict.to_dict(),
        "summary": asdict(found.summary),
        "rounding": None if found.rounding is None else asdict(found.rounding),
        "tables": [asdict(table) for table in found.tables],
        "grids": [_grid(grid) for grid in found.grids],
    }


def _grid(grid: TableGrid) -> dict[str, Any]:
    """A table as lines of its last attribute: combinations of the other codes that have cells, in the order of the codes."""
    *first, last = grid.codes
    places = [{code: place for place, code in enumerate(codes)} for codes in first]
    lines: dict[tuple[str, ...], list[dict[str, Any] | None]] = {}
    at = {code: place for place, code in enumerate(last)}
    for cell in grid.cells:
        *row, column = cell.labels
        line = lines.setdefault(tuple(row), [None] * len(last))
        line[at[column]] = {
            "value": cell.value,
            "published": cell.published,
            "state": STATES.index(cell.state),
            "reasons": cell.reasons,
        }
    order = sorted(lines, key=lambda row: tuple(own[code] for own, code in zip(places, row, strict=True)))
    return {
        "table": grid.table,
        "by": grid.by,
        "columns": last,
        "lines": [(row, lines[row]) for row in order],
    }
