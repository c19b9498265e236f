"""`louver profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import File, Given, Html, Json, SpecFile, command, group
from louver.profile import ProfileOptions, write_spec
from louver.profile import profile as profile_verb
from louver.report.page import check_page, write_page
from louver.report.profile import profile_report
from louver.run import Run
from louver.schema.request import ask

app = group(VERBS["profile"])


@command(app, ProfileOptions, epilog="Exit codes: 0 done, 2 bad input.")
def profile(
    *,
    file: File = None,
    given: Given,
    write_spec_file: Annotated[
        Path | None,
        typer.Option(
            "--write-spec",
            metavar="FILE",
            help="Write a spec to start from: names, kinds and roles, no values.",
        ),
    ] = None,
    html: Html = None,
    json: Json = False,
    spec: SpecFile = None,
    run: Run,
) -> int:
    """Look at a table before you publish anything from it: kinds, risks, roles."""
    request = ask(ProfileOptions, file, spec, given)
    if html is not None:
        check_page(html, request.files())
    found = profile_verb(spec=request, run=run)
    content = [repr(found)]
    page = None if html is None else run.attend(profile_report, found)
    if write_spec_file is not None:
        write_spec(found, request.data, request.source, write_spec_file)
        content.append(f"Spec to begin with: {write_spec_file}")
    if html is not None and page is not None:
        write_page(page, html)
        content.append(f"For the steward, not for release: {html}")
    say_json(found.to_json()) if json else say("\n".join(content))
    return 0
