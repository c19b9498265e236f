"""`louver verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import say, say_json
from louver.cli.parameters import CHECK_FAILED, Json, command, group
from louver.release.verify import verify as verify_release

app = group(VERBS["verify"])


@command(app, epilog="Exit codes: 0 every promise holds, 1 one does not, 2 no release directory.")
def verify(
    *,
    release: Annotated[Path, typer.Argument(metavar="DIR", help="Release directory.")],
    skip_report: Annotated[
        bool,
        typer.Option(
            "--skip-report",
            help="Do not check report.html, for a release whose page was made by another version of louver.",
        ),
    ] = False,
    accept_strings: Annotated[
        int,
        typer.Option(
            "--accept-strings",
            min=0,
            metavar="N",
            help="Accept up to N strings of the manifest that are in no published file, after reading them.",
        ),
    ] = 0,
    json: Json = False,
) -> int:
    """Recompute every promise of a release from its published files."""
    outcome = verify_release(release, skip_report=skip_report, accept_strings=accept_strings)
    say_json(outcome.to_json()) if json else say(str(outcome))
    return 0 if outcome.passed else CHECK_FAILED
