"""The report of a joint audit: the cells that several tables disclose, the reasons, and what to change."""

from __future__ import annotations

from html import escape
from itertools import islice
from pathlib import Path

from louver import __version__
from louver.audit.options import AuditOptions
from louver.audit.result import Advice, AuditedCell, HidingPlan, JointAudit
from louver.report.page import facts, page, picture, table, tiles, verdict, write_page
from louver.run import Run
from louver.schema.request import Request

__all__ = ["audit_report", "write_audit_report"]

MAX_LISTED = 200
CAPTION = (
    "Left: a red square marks a table of the smallest set that determines the cell. Right: what is known about the cells "
    "with the narrowest intervals; the dot is the true count."
)
METHOD = (
    "<h2>How it was done</h2><p>Every cell is bounded by all tables at once, over all tables of whole numbers that agree "
    "with what is published. A bound is proved in integers, by intervals, by the equalities, or by a linear program whose "
    "duals are rounded and summed exactly; it is attained by an integer table that was checked. Where the two meet, it is certified. A set "
    "of tables is smallest if no smaller set determines the cell.</p>"
)


def audit_report(audit: JointAudit, source: str) -> str:
    """The report as HTML."""
    sections = [_verdict(audit), _tiles(audit), *_advice(audit.advice)]
    sections += [_plan(plan) for plan in audit.hide]
    worst = sorted(audit.disclosed(), key=lambda cell: (cell.lower, len(cell.because or ())))
    if worst:
        sections += ["<h2>Disclosed cells, and why</h2>", _cells(worst)]
    sections += ["<h2>Tables against cells</h2>", picture(audit.plot(), CAPTION), _facts(audit), METHOD]
    subtitle = f"Joint audit of {source}. For the data steward only: it shows confidential counts and is not for release."
    title = "What these tables disclose together"
    return page(title, subtitle, sections, f"Made by louver {__version__}.")


def write_audit_report(audit: JointAudit, request: Request[AuditOptions], path: Path, run: Run) -> None:
    """Write the report of one call."""
    source = "a spec" if request.spec is None else request.spec.name
    write_page(run.attend(audit_report, audit, source), path)


def _verdict(audit: JointAudit) -> str:
    content = verdict(audit.verdict)
    return (
        content
        if audit.remark is None
        else f"{content}<p>{escape(audit.remark[0].upper() + audit.remark[1:])}</p>"
    )


def _tiles(audit: JointAudit) -> str:
    s = audit.summary
    limit = f"small cells exact (0\u00a0<\u00a0{audit.question.counted}\u00a0<\u00a0{audit.small})"
    entries = [
        (s.small_exact, limit, s.small_exact > 0),
        (s.within if audit.within else None, f"cells within {audit.within:g} %", s.within > 0),
        (s.exact, f"of {s.targets:,} cells exact", False),
        (s.zero, "cells certain to be empty", False),
        (s.certified, "cells certified", False),
    ]
    return tiles(entries)


def _advice(advice: Advice | None) -> list[str]:
    if advice is None:
        return []
    steps = [f"Leave out {escape(name)}." for name in advice.leave_out]
    steps += [f"Publish {escape(name)} {escape(how)}." for name, how in advice.coarsen]
    proof = "No smaller set suffices." if advice.is_least else "Fewer tables might suffice."
    listed = "".join(f"<li>{step}</li>" for step in steps)
    return [
        "<h2>What to change</h2>",
        f"<ul>{listed}</ul><p>With these changes, no small cell is exact. {proof}</p>",
    ]


def _plan(plan: HidingPlan) -> str:
    """Further cells to hide in one table."""
    head = f"<h2>Further cells to hide in {escape(plan.table)}</h2>"
    content = f"<p>{escape(plan.words[0].upper() + plan.words[1:])}.</p>"
    if not plan.is_safe:
        return f"{head}{content}"
    lines = [
        (", ".join(f"{name}: {label}" for name, label in cell.items()) or "the grand total",)
        for cell in plan.cells
    ]
    return f"{head}{content}{table(('cell',), lines)}"


def _cells(cells: list[AuditedCell]) -> str:
    lines = [
        (
            cell.table,
            ", ".join(f"{name}: {label}" for name, label in (cell.where | cell.cell).items()),
            cell.lower,
            cell.upper if cell.upper is not None else "",
            cell.words or "not searched for",
        )
        for cell in islice(cells, MAX_LISTED)
    ]
    more = (
        "" if len(cells) <= MAX_LISTED else f"<p>{len(cells) - MAX_LISTED:,} more are in the JSON result.</p>"
    )
    return f'<div class="scroll">{table(("of", "cell", "at least", "at most", "because"), lines)}</div>{more}'


def _facts(audit: JointAudit) -> str:
    entries = [
        ("Tables", ", ".join(audit.tables)),
        ("Asked", " ".join(audit.question.examined(audit.small))),
        ("Not asked", " ".join(audit.question.not_examined()) or "nothing is left out"),
        ("Records", "known" if audit.has_records else "not known: this is an outsider's audit"),
        ("Seconds", f"{audit.summary.seconds:.1f}"),
    ]
    return f"<h2>What was audited</h2>{facts(entries)}"
