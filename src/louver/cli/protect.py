"""`louver protect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, Given, Html, Json, Out, SpecAgain, command, group, the_spec
from louver.errors import printable
from louver.protect import ProtectOptions
from louver.protect import protect as protect_verb
from louver.protect.argus import read_argus
from louver.report.page import check_page
from louver.report.protect import write_protect_report
from louver.run import Run
from louver.schema.request import Request, ask

app = group(VERBS["protect"])

ProtectSpec = Annotated[
    Path | None,
    typer.Argument(
        metavar="SPEC.toml",
        help="File with a [protect] section that lists tables, codes and rules, or a batch file of tau-ARGUS (.arb).",
    ),
]


@command(
    app,
    ProtectOptions,
    epilog="Exit codes: 0 done, 1 cells remain unprotected and nothing is written, 2 bad input.",
)
def protect(
    *,
    file: ProtectSpec = None,
    given: Given,
    out: Out = None,
    html: Html = None,
    json: Json = False,
    spec: SpecAgain = None,
    run: Run,
) -> int:
    """Hide cells of linked tables, with a proof that nobody can derive them."""
    path = the_spec(file, spec, "a file with a [protect] section")
    request = _request(path, given)
    if html is not None:
        check_page(html, request.files())
    found = protect_verb(spec=request, out=out, run=run)
    if html is not None:
        # A publication gets its page even if the run is cancelled afterwards.
        write_protect_report(found, request, html, run if found.published is None else Run())
    if json:
        say_json(found.to_json())
    else:
        lines = [repr(found)]
        if out is not None:
            remedy = " --accept-unchecked publishes them anyway." if found.is_acceptable else ""
            lines.append(f"Published: {printable(out)}" if found.published else f"Not published.{remedy}")
        say("\n".join(lines + ([] if html is None else [f"Report: {printable(html)}"])))
    return 0 if found.is_publishable else CHECK_FAILED


def _request(path: Path, given: Given) -> Request[ProtectOptions]:
    """Options from a spec or a batch file of tau-ARGUS; options on the command line take precedence."""
    if path.suffix.lower() != ".arb":
        return ask(ProtectOptions, None, path, given)
    options, records = read_argus(path)
    return ask(ProtectOptions, records, None, {**options, **given})
