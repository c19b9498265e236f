"""The command line: parse, call the library, print. Exit 0 done, 1 a check failed, 2 bad input.

`parameters` makes the options of a command from the models of its verb, `console` prints, draws bars and turns signals
into a request to stop; each verb has a module. Nothing is computed here.
"""

import sys

__all__ = ["VERBS", "main"]

STOPPED = 128
"""Exit codes above this: the signal that ended the command."""

VERBS = {
    "profile": "Look at a table before anything is published from it: kinds, risks, roles.",
    "bounds": "Audit what a table of conditional frequencies gives away.",
    "audit": "Audit what several tables give away together.",
    "protect": "Hide cells of linked tables, with a proof that nobody can work them out.",
    "anonymize": "Make microdata k-anonymous with little information loss.",
    "groups": "Release how many groups of each size every region has, with differential privacy.",
    "verify": "Recompute every promise of a release from its published files.",
    "demo": "Do every job once on sample data, as commands to copy, with reports to open in a browser.",
    "topdown": "Private microdata over a tree of regions, with public knowledge kept exactly.",
    "ledger": "Budgets: what may be spent on a data set, and what has been.",
    "explore": "Do every job in a browser, on this machine alone.",
}
"""Every verb and what it does; a verb's own module is imported when it is called."""


def main() -> None:
    """Run the command line; Ctrl-C while it is still being loaded is one line too."""
    try:
        from louver.cli.app import run_app

        code = run_app()
    except KeyboardInterrupt:
        sys.stderr.write("louver: stopped.\n")
        code = 130
    if code > STOPPED:
        _leave_at_once(code)
    sys.exit(code)


def _leave_at_once(code: int) -> None:
    """End without taking the interpreter apart: that takes half a second, and threads left to themselves may crash in it."""
    import atexit
    import os
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever reads us may have gone
            stream.flush()
    os._exit(code)
