"""`louver bounds`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from louver.bounds import BoundsAudit, BoundsOptions, answer
from louver.bounds.publish import Publication, as_piece, refusal
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, File, Given, Html, Json, SpecFile, command, group
from louver.errors import printable
from louver.release.write import check_out
from louver.report.page import check_page
from louver.run import Run
from louver.schema.request import Request, ask
from louver.schema.validate import validated

app = group(VERBS["bounds"])


@command(
    app,
    BoundsOptions,
    epilog="Exit codes: 0 done, 1 a check failed (--fail-on) or not published, 2 bad input.",
)
def bounds(
    *, file: File = None, given: Given, html: Html = None, json: Json = False, spec: SpecFile = None, run: Run
) -> int:
    """Audit what a table of conditional frequencies gives away."""
    request = ask(BoundsOptions, file, spec, given)
    if html is not None:
        check_page(html, request.files())
    if request.options.publish is not None:
        check_out(Path(request.options.publish), "--publish")
    found = answer(request, run)
    if found.audit is not None and request.options.registry is not None:
        found = replace(found, publication=_publication(found.audit, request, run))
    if html is not None:
        from louver.report.bounds import write_bounds_report

        published = None if found.publication is None else found.publication.published
        # What was written gets its page, whatever comes.
        write_bounds_report(found, request, html, run if published is found.recodes is None else Run())
    if json:
        say_json(found.to_json())
    else:
        say(repr(found) if html is None else f"{found!r}\nReport: {printable(html)}")
    return 0 if found.passed else CHECK_FAILED


def _publication(found: BoundsAudit, request: Request[BoundsOptions], run: Run) -> Publication:
    """Audit the table together with what was published before, and publish it where that is asked for and safe."""
    from louver.audit import AuditOptions, audit
    from louver.audit.options import MAX_COUNT
    from louver.cli.audit import why_refused
    from louver.report.tables import tables_report

    options = request.options
    refused = None if options.publish is None else refusal(found, options)
    if refused is not None:
        return Publication(earlier=None, together=None, refused=refused, published=None)
    asked = {"tables": [as_piece(options)], "small": min(options.small, MAX_COUNT)}
    asked |= {"decide": True, "no_advice": True, "seconds": options.seconds}
    asked |= {"registry": options.registry, "publish": options.publish}
    joint = audit(
        spec=Request(
            data=request.data,
            source=request.source,
            schema=request.schema,
            options=validated(
                AuditOptions, {key: value for key, value in asked.items() if value is not None}
            ),
            spec=request.spec,
        ),
        report=tables_report,
        run=run,
    )
    if options.publish is not None and joint.published is None:
        refused = why_refused(joint)
    given_away = {frozenset(cell.cell.items()) for cell in joint.disclosed()}
    return Publication(
        earlier=joint.earlier,
        together=len(given_away),
        refused=refused,
        published=joint.published,
        remark=joint.remark,
    )
