"""`louver explore`."""

from __future__ import annotations

from louver.app.options import ExploreOptions
from louver.cli import VERBS
from louver.cli.console import say
from louver.cli.parameters import File, Given, command, group
from louver.schema.request import ask

app = group(VERBS["explore"])


@command(app, ExploreOptions, epilog="Exit codes: 0 done, 2 bad input.")
def explore(*, file: File = None, given: Given) -> int:
    """Do every job in a browser, on this machine only."""
    from louver.app.server import explore as serve

    serve(ask(ExploreOptions, file, None, given), say)
    return 0
