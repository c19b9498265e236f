"""`louver groups`."""

from __future__ import annotations

from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json, say_release
from louver.cli.parameters import File, Given, Json, Out, Payer, SpecFile, command, group
from louver.groups import GroupsOptions, preview
from louver.groups import groups as groups_verb
from louver.report.groups import groups_report
from louver.run import Run
from louver.schema.request import ask

app = group(VERBS["groups"])


@command(app, GroupsOptions)
def groups(
    *,
    file: File = None,
    given: Given,
    ledger: Payer = None,
    out: Out = None,
    forecast: Annotated[
        int | None,
        typer.Option(
            metavar="GROUPS", help="Only forecast the errors for about this many groups; opens no data."
        ),
    ] = None,
    json: Json = False,
    spec: SpecFile = None,
    run: Run,
) -> int:
    """Release the number of groups of each size in every region, with differential privacy."""
    if forecast is not None:
        request = ask(GroupsOptions, file, spec, given, needs_data=False)
        found = preview(expect=forecast, spec=request, run=run)
        say_json(found.to_json()) if json else say(repr(found))
        return 0
    release = groups_verb(file, spec=spec, **given, out=out, ledger=ledger, report=groups_report, run=run)
    say_release(release, out, as_json=json)
    return 0
