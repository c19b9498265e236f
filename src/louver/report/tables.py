"""The report inside a release of tables: what stands in them, what they were audited with, how exact they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from louver import __version__
from louver._words import counted
from louver.release.manifest import Manifest
from louver.report.page import answers, facts, page, sentence, table

__all__ = ["tables_report"]

MOST_ROWS = 40
"""Lines of a table that are shown; the files have them all."""

HIDDEN = "hidden"


def tables_report(manifest: Manifest, tables: Sequence[pa.Table]) -> str:
    """The report as HTML, from the manifest and the tables as they are published, and from nothing else."""
    told = manifest.parameters["tables"]
    small = int(manifest.parameters["small"])
    verdict = (
        f"The audit found no count above 0 and below {small} that follows exactly from these tables, alone or together with those that the "
        "register had before them."
    )
    sections = [f'<p class="verdict">{sentence(verdict)}</p>', _answers(told, tables, small)]
    for one, shown in zip(told, tables, strict=True):
        sections += [f"<h2>{sentence(str(one['name']))}</h2>", facts(_facts(one, shown)), _lines(shown)]
    return page("Published tables", _subtitle(tables), sections, f"louver {__version__}")


def _subtitle(tables: Sequence[pa.Table]) -> str:
    return f"{counted(len(tables), 'table')} of {sum(t.num_rows for t in tables):,} numbers in all"


def _answers(told: Sequence[Mapping[str, Any]], tables: Sequence[pa.Table], small: int) -> str:
    names = ", ".join(str(one["name"]) for one in told)
    return answers(
        released=f"{names}: Parquet and CSV files with the same numbers.",
        promised=f"Counts above 0 and below {small} are not given away exactly by what is in the register together. Nothing is promised about "
        "rows where everybody is alike, and there is no noise: who knows more than the tables may work out more.",
        accuracy=" ".join(dict.fromkeys(_accuracy(one, t) for one, t in zip(told, tables, strict=True))),
        check="Run louver verify on the folder, publish all of it, and keep the register: it guards later tables of the same people.",
    )


def _is_shares(one: Mapping[str, Any]) -> bool:
    return one["n_rows_by"] is not None


def _accuracy(one: Mapping[str, Any], shown: pa.Table) -> str:
    if _is_shares(one):
        decimals = one["decimals"]
        return (
            "Shares are exact fractions."
            if decimals is None
            else f"Shares are rounded to {counted(decimals, 'digit')}."
        )
    hidden = shown.column(shown.num_columns - 1).null_count
    exact = "Counts are exact" if one["base"] is None else f"Counts are rounded to multiples of {one['base']}"
    return f"{exact}; {counted(hidden, 'number')} hidden." if hidden else f"{exact}."


def _facts(one: Mapping[str, Any], shown: pa.Table) -> list[tuple[str, str]]:
    value = "row percentages" if _is_shares(one) else "counts of people"
    rows = [("by", ", ".join(one["by"])), ("what", value), ("how exact", _accuracy(one, shown))]
    rows += [("people", f"{one['people']:,}")] if "people" in one else []
    return [*rows, ("file", one["file"])]


def _lines(shown: pa.Table) -> str:
    columns = [column.to_pylist() for column in shown.slice(0, MOST_ROWS).columns]
    rows = [[HIDDEN if value is None else value for value in row] for row in zip(*columns, strict=True)]
    more = (
        f"<p>The first {MOST_ROWS} of {shown.num_rows:,} numbers; the file has all.</p>"
        if shown.num_rows > MOST_ROWS
        else ""
    )
    return table(shown.column_names, rows) + more
