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


ROUNDING = (
    "<h2>How it was done</h2><p>Every number became a multiple of its base so that all sums hold. The total distance from the true numbers "
    "was made small by a linear program, an annealing over the finest cells and, for small tables, an integer program; the bound is "
    "that of a program. All sums were checked in whole numbers. For every primary cell, every attacker and both directions a table was "
    "looked for that agrees with the rounded numbers and all that the attacker knows, and in which the cell is as far from its value as "
    "its safety range asks.</p>"
)


def protect_report(found: ProtectedTables, source: str) -> str:
    """The report as HTML."""
    costs = "What hiding costs" if found.rounding is None else "Tables"
    sections = [verdict(found.verdict), _tiles(found), f"<h2>{costs}</h2>", _tables(found)]
    still_open = list(found.unprotected())
    if still_open:
        sections += ["<h2>Cells that are not shown to be protected</h2>", _cells(still_open)]
    if found.decided:
        sections += ["<h2>What was decided by hand</h2>", table(("table", "cell", "decision"), found.decided)]
    if found.cells:
        listed = "Hidden cells, and why" if found.rounding is None else "Primary cells, and why"
        sections += [f"<h2>{listed}</h2>", _cells(found.cells)]
    sections += [_facts(found), METHOD if found.rounding is None else ROUNDING]
    subtitle = (
        f"Protected tables of {source}. For the data steward only: it shows confidential numbers, tells primary cells from others, "
        "and is not for release."
    )
    title = "What is hidden, and why" if found.rounding is None else "How the tables were rounded"
    return page(title, subtitle, sections, f"Made by louver {__version__}.")


def write_protect_report(
    found: ProtectedTables, request: Request[ProtectOptions], path: Path, run: Run
) -> None:
    """Write the report of one call."""
    source = "a spec" if request.spec is None else request.spec.name
    write_page(run.attend(protect_report, found, source), path)


def _tiles(found: ProtectedTables) -> str:
    s = found.summary
    best = "proved best" if s.optimal else f"gap {s.gap:.1%}"
    changed = (s.secondary, f"secondary cells ({best})", False)
    if found.rounding is not None:
        changed = (found.rounding.changed, f"of {s.cells:,} numbers changed ({best})", False)
    return tiles(
        [
            (s.primary, "primary cells", False),
            changed,
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
    what = "no pattern that protects costs less than"
    if found.rounding is not None:
        what = "in bases; no table that adds up has a smaller distance than"
    entries = [
        ("Asked", " ".join(found.question.asked())),
        ("Not asked", " ".join(found.question.not_asked())),
        ("Cost and bound", f"{s.cost:,.10g}; {what} {s.bound:,.10g}"),
        *_rounding(found),
        ("Rounds", f"{s.rounds:,}"),
        ("Seconds", f"{s.seconds:.1f}"),
    ]
    return f"<h2>What was asked</h2>{facts(entries)}"


def _rounding(found: ProtectedTables) -> list[tuple[str, str]]:
    if found.rounding is None:
        return []
    own = found.rounding
    changes = "; ".join(
        f"{name}: base {base:,}, {own.mean_change[name]:,.4g}" for name, base in own.bases.items()
    )
    return [
        ("Mean change", changes),
        ("Numbers that are not a next multiple", f"{own.far:,}, up to {own.beyond:,} multiples further"),
    ]
