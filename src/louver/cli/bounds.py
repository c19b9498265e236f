"""`louver bounds`."""

from __future__ import annotations

from louver.bounds import BoundsOptions, answer
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, File, Given, Html, Json, SpecFile, command, group
from louver.errors import printable
from louver.report.page import check_page
from louver.run import Run
from louver.schema.request import ask

app = group(VERBS["bounds"])


@command(app, BoundsOptions, epilog="Exit codes: 0 done, 1 a check failed (--fail-on), 2 bad input.")
def bounds(
    *, file: File = None, given: Given, html: Html = None, json: Json = False, spec: SpecFile = None, run: Run
) -> int:
    """Audit what a table of conditional frequencies gives away."""
    request = ask(BoundsOptions, file, spec, given)
    if html is not None:
        check_page(html, request.files())
    found = answer(request, run)
    if html is not None:
        from louver.report.bounds import write_bounds_report

        write_bounds_report(found, request, html)
    if json:
        say_json(found.to_json())
    else:
        say(repr(found) if html is None else f"{found!r}\nReport: {printable(html)}")
    return 0 if found.passed else CHECK_FAILED
