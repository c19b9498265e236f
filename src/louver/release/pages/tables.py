"""The page of a release of tables: what they contain, with what they were audited, and how exact they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from louver._words import counted
from louver.release.manifest import Manifest
from louver.release.pages.frame import answers, facts, page, sentence, table
from louver.release.pages.published import Published

__all__ = ["tables_page"]

MOST_ROWS = 40
"""Number of lines of a table that are shown; the files have them all."""

HIDDEN = "hidden"


@dataclass(frozen=True, slots=True)
class _Shown:
    """The first lines of a table, the number of all lines, and the number of hidden numbers."""

    first: pa.Table
    rows: int
    hidden: int

    @classmethod
    def of(cls, parts: Iterable[pa.Table]) -> _Shown:
        first: list[pa.Table] = []
        rows = hidden = 0
        for part in parts:
            if rows < MOST_ROWS or not first:
                first.append(part.slice(0, MOST_ROWS - rows))
            rows += part.num_rows
            hidden += part.column(part.num_columns - 1).null_count
        return cls(pa.concat_tables(first), rows, hidden)


def tables_page(manifest: Manifest, published: Published) -> str:
    """The page as HTML."""
    listed = manifest.parameters["tables"]
    tables = [_Shown.of(published(one["file"])) for one in listed]
    small = int(manifest.parameters["small"])
    verdict = (
        f"The audit found no count above 0 and below {small} that follows exactly from these tables, alone or together with earlier ones "
        "in the register."
    )
    sections = [f'<p class="verdict">{sentence(verdict)}</p>', _answers(listed, tables, small)]
    for one, shown in zip(listed, tables, strict=True):
        sections += [f"<h2>{sentence(str(one['name']))}</h2>", facts(_facts(one, shown)), _lines(shown)]
    return page("Published tables", _subtitle(tables), sections, f"louver {manifest.version}")


def _subtitle(tables: Sequence[_Shown]) -> str:
    return f"{counted(len(tables), 'table')} with {sum(t.rows for t in tables):,} numbers in total"


def _answers(listed: Sequence[Mapping[str, Any]], tables: Sequence[_Shown], small: int) -> str:
    names = ", ".join(str(one["name"]) for one in listed)
    return answers(
        released=f"{names}: Parquet and CSV files with the same numbers.",
        promised=f"Counts above 0 and below {small} are not disclosed exactly by the publications in the register together. Nothing is "
        "promised about rows where everyone is alike, and there is no noise: anyone who knows more than the tables may derive "
        "more.",
        accuracy=" ".join(dict.fromkeys(_accuracy(one, t) for one, t in zip(listed, tables, strict=True))),
        check="Run louver verify on the folder, publish all of it, and keep the register: it protects later tables about the same people.",
    )


def _is_shares(one: Mapping[str, Any]) -> bool:
    return one["n_rows_by"] is not None


def _accuracy(one: Mapping[str, Any], shown: _Shown) -> str:
    if _is_shares(one):
        decimals = one["decimals"]
        return (
            "Shares are exact fractions."
            if decimals is None
            else f"Shares are rounded to {counted(decimals, 'digit')}."
        )
    hidden = shown.hidden
    exact = "Counts are exact" if one["base"] is None else f"Counts are rounded to multiples of {one['base']}"
    return f"{exact}; {counted(hidden, 'number')} hidden." if hidden else f"{exact}."


def _facts(one: Mapping[str, Any], shown: _Shown) -> list[tuple[str, str]]:
    value = "row percentages" if _is_shares(one) else "counts of people"
    rows = [("by", ", ".join(one["by"])), ("what", value), ("how exact", _accuracy(one, shown))]
    rows += [("people", f"{one['people']:,}")] if "people" in one else []
    return [*rows, ("file", one["file"])]


def _lines(shown: _Shown) -> str:
    columns = [column.to_pylist() for column in shown.first.columns]
    rows = [[HIDDEN if value is None else value for value in row] for row in zip(*columns, strict=True)]
    more = (
        f"<p>The first {MOST_ROWS} of {shown.rows:,} numbers; the file has all.</p>"
        if shown.rows > MOST_ROWS
        else ""
    )
    return table(shown.first.column_names, rows) + more
