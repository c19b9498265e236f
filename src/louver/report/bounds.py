"""The audit report: what this table would disclose, and what would be better."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import islice
from pathlib import Path

from louver import __version__
from louver._words import counted
from louver.bounds.answer import BoundsAnswer, TablePublication, advice_with
from louver.bounds.options import BoundsOptions
from louver.bounds.plot import narrowest
from louver.bounds.result import BoundedCell, BoundsAudit, Comparison, RevealingRow
from louver.bounds.search import UTILITY, Suggestions
from louver.data.read import name_of
from louver.release.pages.frame import verdict_line
from louver.report.page import facts, page, picture, sentence, table, tiles, verdict, write_page
from louver.run import Run
from louver.schema.request import Request

__all__ = ["bounds_report", "write_bounds_report"]

MAX_LISTED = 200
METHOD = (
    "<h3>How it was done</h3><p>A row of conditional frequencies in lowest terms fixes its counts up to a common "
    "factor. The factors of all rows must add up to the sample size, which leaves only certain multiples for each row. The bounds are "
    "tight, and every value listed occurs in some feasible table; a row is disclosed when only one value is left. Zero cells are always "
    "visible in exact conditionals. "
    "Method: Wright and Smucker (2014), with the semigroup of the other rows in place of their table.</p>"
)
SUGGESTIONS_CAPTION = "Information kept, plotted against visible zero cells."


def bounds_report(
    *,
    source: str,
    audit: BoundsAudit | None = None,
    comparison: Comparison | None = None,
    suggestions: Suggestions | None = None,
    publication: TablePublication | None = None,
) -> str:
    """The report as HTML, built from the results that are available."""
    sections: list[str] = []
    if publication is not None:
        *remarks, outcome = publication.sentences()
        sections.append(verdict_line(publication.level, escape(outcome)))
        sections += [f"<p>{escape(remark)}</p>" for remark in remarks]
    if audit is not None:
        sections += [_verdict(audit, advice_with(audit, suggestions, publication)), _tiles(audit)]
    if comparison is not None:
        sections += _comparison_sections(comparison)
    if suggestions is not None:
        sections += _suggestion_sections(suggestions)
    sections += [] if audit is None else _audit_sections(audit)
    sections += _appendix(audit, suggestions)
    title = "What this table of conditional frequencies discloses"
    subtitle = (
        f"Audit of {source}. For the data steward only: it shows confidential counts and is not for release."
    )
    return page(title, subtitle, sections, f"Made by louver {__version__}.")


def write_bounds_report(answer: BoundsAnswer, request: Request[BoundsOptions], path: Path, run: Run) -> None:
    """Write the report on all results of a call."""
    source = name_of(request.data, request.source.table)
    html = run.attend(
        bounds_report,
        source=source,
        audit=answer.audit,
        comparison=answer.comparison,
        suggestions=answer.suggestions,
        publication=answer.publication,
    )
    write_page(html, path)


def _audit_sections(audit: BoundsAudit) -> list[str]:
    sections = []
    telling = list(islice(audit.telling_rows(), MAX_LISTED + 1))
    if telling:
        sections += ["<h2>Rows that reveal a person's status</h2>", _telling_table(telling, audit)]
    risky = list(islice(audit.disclosed_cells(), MAX_LISTED + 1))
    if risky:
        sections += ["<h2>Disclosed small cells</h2>", _cell_table(risky)]
    shown, counts = narrowest(audit)
    caption = "Feasible values of the most exposed cells, and how many values fit each cell."
    return [
        *sections,
        "<h2>How tight the bounds are</h2>",
        picture(audit.plot(), caption),
        _bounds_table(shown),
        table(["values that fit", "nonzero cells"], counts.items()),
    ]


def _verdict(audit: BoundsAudit, advice: str | None) -> str:
    return verdict(audit.verdict, audit.advice() if advice is None else advice)


def _tiles(audit: BoundsAudit) -> str:
    s = audit.summary
    least = "" if audit.is_counted else "at least\u00a0"
    return tiles(
        [
            (
                s.disclosed_small_cells,
                f"small cells disclosed (0\u00a0<\u00a0count\u00a0<\u00a0{audit.small})",
                s.disclosed_small_cells > 0,
            ),
            (
                s.certain_rows,
                f"rows reveal a person's status: {least}{s.certain_people:,} people",
                s.certain_rows > 0,
            ),
            (
                s.small_rows,
                f"rows of fewer than {audit.small} people: {least}{s.small_row_people:,} people",
                False,
            ),
            (
                s.disclosed_rows,
                f"of {s.rows - s.zero_rows:,} nonzero rows fully determined",
                s.disclosed_rows > 0,
            ),
            (s.disclosed_zero_cells, "zero cells visible", False),
            (s.zero_rows, "rows without anybody", False),
        ]
    )


def _telling_table(rows: Sequence[RevealingRow], audit: BoundsAudit) -> str:
    """Rows with their status; only the listed rows are named."""
    people = "people" if audit.is_counted else "people at least"
    shown = rows[:MAX_LISTED]
    names = [*shown[0].row, *shown[0].col]
    lines = [[*one.row.values(), *one.col.values(), one.people] for one in shown]
    share = f"{float(100 * audit.certain):g} %"
    content = f"<p>{'All' if audit.certain == 1 else f'At least {share}'} of the people in these rows have the status next to them.</p>"
    return content + table([*names, people], lines) + _cut(len(rows))


def _bounds_table(cells: Sequence[BoundedCell]) -> str:
    """The numbers shown in the figure."""
    if not cells:
        return ""
    names = [*cells[0].row, *cells[0].col]
    lines = [[*one.row.values(), *one.col.values(), one.lower, one.upper, one.n_values] for one in cells]
    return table([*names, "at least", "at most", "values that fit"], lines)


def _cut(n_found: int) -> str:
    return (
        ""
        if n_found <= MAX_LISTED
        else f"<p>Only the first {MAX_LISTED} are listed; --json has all cells.</p>"
    )


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
        entries.append(("Rows with reduced sum 1", f"{s.unit_rows:,}"))
    if audit.selected is not None:
        entries.append(("Cells requested", f"{counted(len(audit.selected), 'selected cell')} only"))
    return entries


def _cell_table(cells: Sequence[BoundedCell]) -> str:
    shown = cells[:MAX_LISTED]
    names = [*shown[0].row, *shown[0].col]
    lines = [[*cell.row.values(), *cell.col.values(), cell.lower] for cell in shown]
    return table([*names, "count"], lines) + _cut(len(cells))


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
            s.certain_rows,
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
        "rows determined",
        "zero cells",
        "rows that reveal a status",
        "small cells disclosed",
    ]
    return [
        "<h2>Arrangements, least disclosive first</h2>",
        picture(comparison.plot(), "Disclosed small cells and fully determined rows of each arrangement."),
        table(header, lines),
    ]


def _suggestion_sections(suggestions: Suggestions) -> list[str]:
    if not suggestions.lines:
        return ["<h2>Redesigns</h2>", f"<p>{escape(suggestions.nothing)}</p>"]
    proof = (
        "No redesign keeps more: every other one keeps less or discloses something."
        if suggestions.is_proved
        else "The search was stopped by its time limit; a better redesign may exist."
    )
    lines = [
        [
            number,
            f"{line.share:.1%}",
            ", ".join(line.arrangement.rows),
            ", ".join(line.arrangement.cols),
            line.words or "-",
            line.summary.certain_rows,
            line.summary.disclosed_rows,
            line.summary.disclosed_zero_cells,
        ]
        for number, line in enumerate(suggestions.lines, start=1)
    ]
    header = ["", "kept", "rows", "columns", "merged", "revealing rows", "rows determined", "zero cells"]
    return [
        f"<h2>Redesigns {suggestions.goal}</h2>",
        f"<p>{sentence(proof)} <code>--write-recodes</code> writes each as a file that <code>--recode</code> reads.</p>",
        *([] if len(lines) == 1 else [picture(suggestions.plot(), SUGGESTIONS_CAPTION)]),
        table(header, lines),
    ]


def _appendix(audit: BoundsAudit | None, suggestions: Suggestions | None) -> list[str]:
    """The technical part: what was assumed, and how it was done."""
    parts = ["<h2>Appendix</h2>"]
    if audit is not None:
        parts += ["<h3>What was audited</h3>", facts(_facts(audit))]
    if suggestions is not None:
        text = f"Arrangements examined: {suggestions.examined:,}. Information is the {UTILITY}."
        parts += ["<h3>How redesigns were measured</h3>", f"<p>{escape(text)}</p>"]
    return [*parts, METHOD]
