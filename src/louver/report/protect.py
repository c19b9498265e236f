"""The report of protected tables: what is hidden and why, the cost, and what was proved. For the steward only."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from pathlib import Path

from louver import __version__
from louver.protect.options import ProtectOptions
from louver.protect.result import CellKeyFigures, HiddenCell, ProtectedTables
from louver.report.page import facts, page, table, tiles, verdict, write_page
from louver.run import Run
from louver.schema.request import Request

__all__ = ["protect_report", "write_protect_report"]

MAX_LISTED = 500
MAX_MAPS, MAX_ROWS, MAX_COLUMNS = 12, 60, 30
"""Maximum number of maps of the pattern, and of the rows and columns of each."""

STATUS = {"primary": "primary (C)", "secondary": "secondary (D)"}
"""Kinds of hidden cells with their codes of confidentiality in SDMX, which only this report distinguishes."""
METHOD = (
    "<h2>How it was done</h2><p>Primary cells follow from the rules. A greedy pattern is improved by an exact search: a linear, then an "
    "integer program over inequalities that every protecting pattern satisfies. Its value is the bound. The pattern is certified in whole "
    "numbers: for every primary cell, every attacker and both directions there is a table that agrees with all that the attacker "
    "knows and in which the cell is as far from its value as its safety range requires.</p>"
)


ROUNDING = (
    "<h2>How it was done</h2><p>Every number was changed to a multiple of its base so that all sums hold. The total distance from the true "
    "numbers "
    "was made small by a linear program, an annealing over the finest cells and, for small tables, an integer program; the bound is "
    "that of a program. All sums were checked in whole numbers. For every primary cell, every attacker and both directions a table was "
    "sought that agrees with the rounded numbers and all that the attacker knows, and in which the cell is as far from its value as its "
    "safety range requires.</p>"
)


CELL_KEYS = (
    "<h2>How it was done</h2><p>Every record has a secret key, a hash of its person. The keys of the records of a cell add up to the key "
    "of the "
    "cell, which is hashed again under a secret; a perturbation table turns the result into the noise for a count of this size. So the "
    "same records have the same noise in every table of this register, as long as the column that identifies persons does not change. "
    "Empty cells stay empty, and totals are not the sums of their parts. The "
    "estimates that readers can average are the number itself, sums of its parts along one or two attributes, and totals minus the other "
    "parts. Least and largest counts, which follow from the "
    "largest noise, were propagated over all sums, but not solved exactly over all tables at once. It is not differential privacy.</p>"
)


def protect_report(found: ProtectedTables, source: str) -> str:
    """The report as HTML."""
    if found.cell_keys is not None:
        return _noisy_report(found, found.cell_keys, source)
    costs = "What hiding costs" if found.rounding is None else "Tables"
    sections = [verdict(found.verdict), _tiles(found), f"<h2>{costs}</h2>", _tables(found)]
    still_open = list(found.unprotected())
    if still_open:
        sections += ["<h2>Cells that are not proved protected</h2>", _cells(still_open)]
    if found.decided:
        sections += ["<h2>Manual decisions</h2>", table(("table", "cell", "decision"), found.decided)]
    if found.cells:
        listed = "Hidden cells, and why" if found.rounding is None else "Primary cells, and why"
        sections += [
            *(_maps(found) if found.rounding is None else ()),
            f"<h2>{listed}</h2>",
            _cells(found.cells),
        ]
    sections += [_facts(found), METHOD if found.rounding is None else ROUNDING]
    subtitle = (
        f"Protected tables of {source}. For the data steward only: it shows confidential numbers, distinguishes primary cells from others, "
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


def _noisy_report(found: ProtectedTables, own: CellKeyFigures, source: str) -> str:
    entries = [
        ("Asked", " ".join(found.question.examined())),
        ("Not asked", " ".join(found.question.not_examined())),
        ("Noise", f"variance {own.variance:.4g}, at most {own.maximum:,}"),
        ("Mean change", f"{own.mean_change:.3g}"),
        ("Precision of the average of a small count", f"{own.estimates:.3g} times that of one number"),
        ("Small counts that averaging recovers", f"{own.measured:.1%}, forecast {own.forecast:.1%}"),
        ("Small counts that follow from bounds and sums", f"{own.told:,}"),
        ("Seconds", f"{found.summary.seconds:.1f}"),
    ]
    shown = [(t.table, t.cells, t.primary) for t in found.tables]
    sections = [
        verdict(found.verdict),
        tiles(
            [
                (own.cells, "cells that are not empty", False),
                (own.changed, "of them changed", False),
                (own.small, f"counts below {own.limit:,}", False),
                (
                    own.certain,
                    "of them that averaging, or bounds and sums, reveal with certainty",
                    own.certain > 0,
                ),
            ]
        ),
        "<h2>Tables</h2>",
        table(("table", "cells shown", f"counts below {own.limit:,}"), shown),
    ]
    if found.cells:
        sections += ["<h2>Counts that readers can determine</h2>", _cells(found.cells)]
    sections += [f"<h2>What was requested</h2>{facts(entries)}", CELL_KEYS]
    subtitle = f"Protected tables of {source}. For the data steward only: it shows confidential numbers and is not for release."
    return page("How the counts were changed", subtitle, sections, f"Made by louver {__version__}.")


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
            (s.unprotected, "primary cells not proved protected", s.unprotected > 0),
            (s.certified, f"of {s.demands:,} demands certified", False),
            (s.attackers, "attackers", False),
        ]
    )


def _tables(found: ProtectedTables) -> str:
    lines = [(t.table, t.cells, t.primary, t.secondary, f"{t.hidden_share:.1%}") for t in found.tables]
    return table(("table", "cells", "primary", "secondary", "hidden share of its finest cells"), lines)


def _maps(found: ProtectedTables) -> Iterator[str]:
    """The hidden cells of tables by two attributes, in a grid of the rows and columns that have any."""
    made = 0
    for name in dict.fromkeys(cell.table for cell in found.cells):
        own = [cell for cell in found.cells if cell.table == name]
        if len(own[0].cell) != 2 or made == MAX_MAPS:
            continue
        kinds = {tuple(cell.cell.values()): cell.kind[0].upper() for cell in own}
        rows, columns = (list(dict.fromkeys(codes[place] for codes in kinds)) for place in (0, 1))
        if len(rows) <= MAX_ROWS and len(columns) <= MAX_COLUMNS:
            if not made:
                yield "<h2>Map of the pattern</h2><p>P is primary, S secondary; rows and columns without hidden cells are left out.</p>"
            made += 1
            first, second = own[0].cell
            lines = [(row, *(kinds.get((row, column), "") for column in columns)) for row in rows]
            yield f"<h3>{escape(name)}</h3>" + table((f"{first} / {second}", *columns), lines)


def _cells(cells: tuple[HiddenCell, ...] | list[HiddenCell]) -> str:
    lines = [
        (
            cell.table,
            ", ".join(f"{name}: {label}" for name, label in cell.cell.items()),
            cell.value,
            STATUS[cell.kind],
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
    what = "lower bound on the cost of a protecting pattern"
    if found.rounding is not None:
        what = "in bases; lower bound on the distance of a consistent table"
    entries = [
        ("Asked", " ".join(found.question.examined())),
        ("Not asked", " ".join(found.question.not_examined())),
        ("Cost and bound", f"{s.cost:,.10g}; {what} {s.bound:,.10g}"),
        *_rounding(found),
        ("Rounds", f"{s.rounds:,}"),
        ("Seconds", f"{s.seconds:.1f}"),
    ]
    return f"<h2>What was requested</h2>{facts(entries)}"


def _rounding(found: ProtectedTables) -> list[tuple[str, str]]:
    if found.rounding is None:
        return []
    own = found.rounding
    changes = "; ".join(
        f"{name}: base {base:,}, {own.mean_change[name]:,.4g}" for name, base in own.bases.items()
    )
    return [
        ("Mean change", changes),
        (
            "Numbers not rounded to an adjacent multiple",
            f"{own.far:,}, up to {own.beyond:,} multiples further",
        ),
    ]
