"""The report of protected tables: what is hidden and why, what it costs, and what was proved. For the steward only."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from louver import __version__
from louver.protect.options import ProtectOptions
from louver.protect.result import HiddenCell, ProtectedTables
from louver.report.page import facts, page, table, tiles, verdict, write_page
from louver.run import Run
from louver.schema.request import Request

__all__ = ["protect_report", "write_protect_report"]

MAX_LISTED = 500
METHOD = (
    "<h2>How it was done</h2><p>Primary cells follow from the rules. A greedy pattern is improved by an exact search: a linear, then an "
    "integer program over inequalities that every protecting pattern satisfies. Its value is the bound. The pattern is certified in whole "
    "numbers: for every primary cell, every attacker and both directions there is a table that agrees with all that the attacker "
    "knows and in which the cell is as far from its value as its safety range asks.</p>"
)


def protect_report(found: ProtectedTables, source: str) -> str:
    """The report as HTML."""
    sections = [verdict(found.verdict), _tiles(found), "<h2>What hiding costs</h2>", _tables(found)]
    still_open = list(found.unprotected())
    if still_open:
        sections += ["<h2>Cells that are not shown to be protected</h2>", _cells(still_open)]
    if found.decided:
        sections += ["<h2>What was decided by hand</h2>", table(("table", "cell", "decision"), found.decided)]
    if found.cells:
        sections += ["<h2>Hidden cells, and why</h2>", _cells(found.cells)]
    sections += [_facts(found), METHOD]
    subtitle = (
        f"Protected tables of {source}. For the data steward only: it shows confidential numbers, tells primary cells from others, "
        "and is not for release."
    )
    return page("What is hidden, and why", subtitle, sections, f"Made by louver {__version__}.")


def write_protect_report(
    found: ProtectedTables, request: Request[ProtectOptions], path: Path, run: Run
) -> None:
    """Write the report of one call."""
    source = "a spec" if request.spec is None else request.spec.name
    write_page(run.attend(protect_report, found, source), path)


def _tiles(found: ProtectedTables) -> str:
    s = found.summary
    best = "proved best" if s.optimal else f"gap {s.gap:.1%}"
    return tiles(
        [
            (s.primary, "primary cells", False),
            (s.secondary, f"secondary cells ({best})", False),
            (s.unprotected, "primary cells not shown to be protected", s.unprotected > 0),
            (s.certified, f"of {s.demands:,} demands certified", False),
            (s.attackers, "attackers", False),
        ]
    )


def _tables(found: ProtectedTables) -> str:
    lines = [(t.table, t.cells, t.primary, t.secondary, f"{t.hidden_share:.1%}") for t in found.tables]
    return table(("table", "cells", "primary", "secondary", "hidden share of its finest cells"), lines)


def _cells(cells: tuple[HiddenCell, ...] | list[HiddenCell]) -> str:
    lines = [
        (
            cell.table,
            ", ".join(f"{name}: {label}" for name, label in cell.cell.items()),
            cell.value,
            cell.kind,
            "; ".join(cell.reasons),
        )
        for cell in islice(cells, MAX_LISTED)
    ]
    more = (
        "" if len(cells) <= MAX_LISTED else f"<p>{len(cells) - MAX_LISTED:,} more are in the JSON result.</p>"
    )
    return table(("table", "cell", "number", "kind", "because"), lines) + more


def _facts(found: ProtectedTables) -> str:
    s = found.summary
    entries = [
        ("Asked", " ".join(found.question.asked())),
        ("Not asked", " ".join(found.question.not_asked())),
        ("Cost and bound", f"{s.cost:,.10g}; no pattern that protects costs less than {s.bound:,.10g}"),
        ("Rounds", f"{s.rounds:,}"),
        ("Seconds", f"{s.seconds:.1f}"),
    ]
    return f"<h2>What was asked</h2>{facts(entries)}"
