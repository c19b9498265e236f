"""`louver anonymize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.anonymize import AnonymizeOptions
from louver.anonymize import anonymize as anonymize_verb
from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, File, Given, Json, Out, SpecFile, command, group
from louver.errors import InputError, printable
from louver.report.anonymize import reports
from louver.report.page import check_page
from louver.run import Run
from louver.schema.request import ask

WITHHELD = "Nothing was written: together with the releases in --against it discloses too much; --accept publishes it anyway."

app = group(VERBS["anonymize"])


@command(
    app,
    AnonymizeOptions,
    epilog="Exit codes: 0 done, 1 not written because (see --against) it discloses too much, 2 bad input.",
)
def anonymize(
    *,
    file: File = None,
    out: Out = None,
    given: Given,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ledger that records the file (default: the one next to FILE, if there is one).",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Report for the steward, before and after; confidential."),
    ] = None,
    json: Json = False,
    spec: SpecFile = None,
    run: Run,
) -> int:
    """Make microdata k-anonymous with little information loss."""
    request = ask(AnonymizeOptions, file, spec, given)
    if out is None:
        raise InputError("option --out is missing; name a folder for the release.", option="--out")
    if html is not None:
        check_page(html, request.files())
    with reports(html) as report:
        release = anonymize_verb(spec=request, out=out, ledger=ledger, report=report, run=run)
    content = [repr(release), WITHHELD if release.is_withheld else f"Release: {printable(out)}"]
    if release.ledger is not None:
        content.append(f"Logged as an exact disclosure in {printable(release.ledger)}")
    if release.remark is not None:
        content.append(printable(release.remark[0].upper() + release.remark[1:]))
    if html is not None and not release.is_withheld:
        content.append(f"For the steward, not for release: {printable(html)}")
    say_json(release.to_json()) if json else say("\n".join(content))
    return CHECK_FAILED if release.is_withheld else 0
