"""`louver audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.audit import AuditOptions, JointAudit
from louver.audit import audit as audit_verb
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, Given, Html, Json, SpecAgain, command, group, the_spec
from louver.errors import printable
from louver.release.pages import page_of
from louver.report.audit import write_audit_report
from louver.report.page import check_page
from louver.run import Run
from louver.schema.request import ask

app = group(VERBS["audit"])

AuditSpec = Annotated[
    Path | None,
    typer.Argument(metavar="SPEC.toml", help="File with an [audit] section that lists the tables."),
]


@command(app, AuditOptions, epilog="Exit codes: 0 done, 1 a check failed (--fail-on), 2 bad input.")
def audit(
    *,
    file: AuditSpec = None,
    given: Given,
    html: Html = None,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Audit what several tables disclose together."""
    path = the_spec(file, spec, "a file with an [audit] section")
    request = ask(AuditOptions, None, path, given)
    if html is not None:
        check_page(html, request.files())
    found = audit_verb(spec=request, report=page_of, run=run)
    if html is not None:
        # A publication gets its page even if the run is cancelled afterwards.
        write_audit_report(found, request, html, run if found.published is None else Run())
    if json:
        say_json(found.to_json())
    else:
        say(
            "\n".join(
                [repr(found), *_outcome(found, request.options)]
                + ([] if html is None else [f"Report: {printable(html)}"])
            )
        )
    is_refused = request.options.publish is not None and found.published is None
    return 0 if found.passed and not is_refused else CHECK_FAILED


def _outcome(found: JointAudit, options: AuditOptions) -> list[str]:
    """The outcome of a publication, with the first reason if it was refused."""
    if options.publish is None:
        return []
    if found.published is not None:
        return [printable(f"Published: {found.published}")]
    remedy = " --accept-unchecked publishes them anyway." if found.is_acceptable else ""
    return [printable(f"Not published: {found.refusal}{remedy}")]
