"""`louver demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from louver.cli import VERBS
from louver.cli.console import say
from louver.cli.parameters import command, group
from louver.demo import run_demo
from louver.errors import printable
from louver.run import Run

app = group(VERBS["demo"])


@command(app)
def demo(
    *,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for the reports; made where there is none.")
    ] = Path("demo-output"),
    seconds: Annotated[float, typer.Option(metavar="S", help="Time for the redesign search.")] = 15.0,
    run: Run,
) -> int:
    """Audit one embedded sample and release group sizes of another, with reports to open in a browser."""
    for report in run_demo(out, seconds, run):
        say(f"Open {printable(report)} in a browser.")
    return 0
