"""`louver bounds`."""

from __future__ import annotations

from dataclasses import replace

from louver.bounds import BoundsOptions, answer
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, File, Given, Html, Json, SpecFile, command, group
from louver.errors import printable
from louver.report.page import check_page
from louver.run import Run
from louver.schema.request import ask

app = group(VERBS["bounds"])


@command(
    app,
    BoundsOptions,
    epilog="Exit codes: 0 done, 1 a check failed (--fail-on) or not published, 2 bad input.",
)
def bounds(
    *, file: File = None, given: Given, html: Html = None, json: Json = False, spec: SpecFile = None, run: Run
) -> int:
    """Audit what a table of conditional frequencies discloses."""
    request = replace(ask(BoundsOptions, file, spec, given), run=run)
    if html is not None:
        check_page(html, request.files())
    found = answer(request)
    if html is not None:
        from louver.report.bounds import write_bounds_report

        published = None if found.publication is None else found.publication.published
        # A written publication gets its page even if the run is cancelled afterwards.
        write_bounds_report(found, request, html, run if published is found.recodes is None else Run())
    if json:
        say_json(found.to_json())
    else:
        say(repr(found) if html is None else f"{found!r}\nReport: {printable(html)}")
    return 0 if found.passed else CHECK_FAILED
