"""The audit report: what would this table give away, and what would be better."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice
from pathlib import Path

from louver import __version__
from louver.bounds.answer import BoundsAnswer
from louver.bounds.options import BoundsOptions
from louver.bounds.result import UTILITY, BoundsAudit, Cell, Comparison, Suggestions
from louver.bounds.summary import counted
from louver.data.read import name_of
from louver.report.page import facts, page, picture, table, tiles, write_page
from louver.schema.request import Request

__all__ = ["bounds_report", "write_bounds_report"]

MAX_LISTED = 200
SUGGESTIONS_CAPTION = "Information kept against zero cells still visible."


def bounds_report(
    *,
    source: str,
    audit: BoundsAudit | None = None,
    comparison: Comparison | None = None,
    suggestions: Suggestions | None = None,
) -> str:
    """The report as HTML, from whichever results there are."""
    sections: list[str] = []
    if audit is not None:
        sections += _audit_sections(audit)
    if comparison is not None:
        sections += _comparison_sections(comparison)
    if suggestions is not None:
        sections += _suggestion_sections(suggestions)
    sections.append(_method())
    title = "What this table of conditional frequencies gives away"
    subtitle = (
        f"Audit of {source}. For the data steward only: it shows confidential counts and is not for release."
    )
    return page(title, subtitle, sections, f"Made by louver {__version__}.")


def write_bounds_report(answer: BoundsAnswer, request: Request[BoundsOptions], path: Path) -> None:
    """Write the report of all that a call answered."""
    source = name_of(request.data, request.source.table)
    html = bounds_report(
        source=source, audit=answer.audit, comparison=answer.comparison, suggestions=answer.suggestions
    )
    write_page(html, path)


def _audit_sections(audit: BoundsAudit) -> list[str]:
    s = audit.summary
    sections = [
        _verdict(audit),
        tiles(
            [
                (
                    s.disclosed_small_cells,
                    f"small cells disclosed (0\u00a0<\u00a0count\u00a0<\u00a0{audit.small})",
                    s.disclosed_small_cells > 0,
                ),
                (
                    s.disclosed_rows,
                    f"of {s.rows - s.zero_rows:,} nonzero rows fully determined",
                    s.disclosed_rows > 0,
                ),
                (s.disclosed_zero_cells, "zero cells visible", False),
                (s.zero_rows, "rows without anybody", False),
                (s.unit_rows, "rows with reduced\u00a0sum\u00a01", False),
            ]
        ),
        "<h2>What was audited</h2>",
        facts(_facts(audit)),
        "<h2>How tight the bounds are</h2>",
        picture(
            audit.plot(), "Feasible values of the most exposed cells, and how many values fit each cell."
        ),
    ]
    risky = list(islice(audit.disclosed_cells(), MAX_LISTED + 1))
    if risky:
        sections += ["<h2>Disclosed small cells</h2>", _cell_table(risky)]
    return sections


def _verdict(audit: BoundsAudit) -> str:
    s = audit.summary
    if s.disclosed_small_cells:
        noun = "cell has a small count" if s.disclosed_small_cells == 1 else "cells have small counts"
        text = (
            f"{s.disclosed_small_cells:,} {noun} that anyone can work out from the published "
            "conditionals and the sample size. Redesign the table before it is released."
        )
        return f'<p class="verdict risk">{escape(text)}</p>'
    if s.disclosed_rows:
        text = (
            f"No small count can be worked out, but {counted(s.disclosed_rows, 'row')} can be worked out in full. "
            "Check whether these counts may be known."
        )
    else:
        text = "No positive count can be worked out from the published conditionals and the sample size."
    return f'<p class="verdict">{escape(text)}</p>'


def _facts(audit: BoundsAudit) -> list[tuple[str, str]]:
    s, a = audit.summary, audit.arrangement
    form = (
        "exact fractions, the worst case"
        if audit.decimals is None
        else f"proportions rounded to {counted(audit.decimals, 'decimal')} ({audit.rounding.value})"
    )
    entries = [
        ("Rows", ", ".join(a.rows)),
        ("Columns", ", ".join(a.cols)),
        ("Recoded", ", ".join(r.attribute for r in a.recodes) or "nothing"),
        ("Size", f"{counted(s.rows, 'row')} x {counted(s.cols, 'column')}"),
        ("Sample size", f"{s.n:,}, taken as known"),
        ("Published as", form),
        ("Known beforehand", counted(audit.n_known, "statement") if audit.n_known else "nothing"),
    ]
    if s.reduced_total is not None:
        entries.append(("Reduced total R", f"{s.reduced_total:,}; N − R = {s.n - s.reduced_total:,}"))
    if audit.selected is not None:
        entries.append(("Cells asked for", f"{counted(len(audit.selected), 'selected cell')} only"))
    return entries


def _cell_table(cells: Sequence[Cell]) -> str:
    shown = cells[:MAX_LISTED]
    names = [*shown[0].row, *shown[0].col]
    html = table([*names, "count"], [[*cell.row.values(), *cell.col.values(), cell.lower] for cell in shown])
    if len(cells) > MAX_LISTED:
        html += f"<p>Only the first {MAX_LISTED} are listed; --json has them all.</p>"
    return html


def _comparison_sections(comparison: Comparison) -> list[str]:
    lines = [
        [
            a.label,
            f"{s.rows} x {s.cols}",
            s.n,
            s.zero_rows,
            "-" if s.unit_rows is None else s.unit_rows,
            s.disclosed_rows,
            s.disclosed_zero_cells,
            s.disclosed_small_cells,
        ]
        for a, s in comparison.lines
    ]
    header = [
        "arrangement",
        "size",
        "N",
        "zero rows",
        "reduced sum 1",
        "rows disclosed",
        "zero cells",
        "small cells disclosed",
    ]
    return [
        "<h2>Arrangements, least disclosive first</h2>",
        picture(comparison.plot(), "Disclosed small cells and fully determined rows of each arrangement."),
        table(header, lines),
    ]


def _suggestion_sections(suggestions: Suggestions) -> list[str]:
    if not suggestions.lines:
        told = (
            "No redesign is free of disclosed small cells."
            if suggestions.is_proved
            else "No redesign without a disclosed small cell was found in the time given; give more --seconds."
        )
        return ["<h2>Redesigns</h2>", f"<p>{told}</p>"]
    proof = (
        "Nothing keeps more: every other redesign keeps less or discloses a small cell."
        if suggestions.is_proved
        else "The search was stopped by its time limit; a better redesign may exist."
    )
    lines = [
        [
            number,
            f"{line.share:.1%}",
            ", ".join(line.arrangement.rows),
            ", ".join(line.arrangement.cols),
            line.merged or "-",
            line.summary.disclosed_rows,
            line.summary.disclosed_zero_cells,
        ]
        for number, line in enumerate(suggestions.lines, start=1)
    ]
    header = ["", "kept", "rows", "columns", "merged", "rows disclosed", "zero cells"]
    return [
        "<h2>Redesigns without a disclosed small cell</h2>",
        f"<p>{escape(proof)} Arrangements examined: {suggestions.examined:,}. Information is the {escape(UTILITY)}.</p>",
        *([] if len(lines) == 1 else [picture(suggestions.plot(), SUGGESTIONS_CAPTION)]),
        table(header, lines),
    ]


def _method() -> str:
    return (
        "<h2>How to read this</h2><p>A row of conditional frequencies in lowest terms fixes its counts up to a common "
        "factor. The factors of all rows must add up to the sample size, which leaves each row only certain "
        "multiples. Bounds here are tight, and every value listed occurs in some table that fits; a row is disclosed when "
        "only one value is left. Zero cells are always visible in exact conditionals. "
        "Method: Wright and Smucker (2014), with the semigroup of the other rows in place of their table.</p>"
    )
