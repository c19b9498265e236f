"""The command line: parse, call the library, print. Exit codes: 0 done, 1 a check failed, 2 bad input.

`parameters` makes the options of a command from the models of its verb, `console` prints, draws bars and turns signals
into a request to stop; each verb has a module. Nothing is computed here.
"""

import sys

__all__ = ["VERBS", "main"]

STOPPED = 128
"""Exit codes above this encode the signal that ended the command."""

VERBS = {
    "profile": "Look at a table before you publish anything from it: kinds, risks, roles.",
    "bounds": "Audit what a table of conditional frequencies discloses.",
    "audit": "Audit what several tables disclose together.",
    "protect": "Hide cells of linked tables, with a proof that nobody can derive them.",
    "anonymize": "Make microdata k-anonymous with little information loss.",
    "groups": "Release the number of groups of each size in every region, with differential privacy.",
    "verify": "Recompute every promise of a release from its published files.",
    "demo": "Run every job once on sample data, as commands to copy, with reports to open in a browser.",
    "topdown": "Private microdata over a tree of regions, with public knowledge kept exactly.",
    "ledger": "Budgets: what may be spent on a data set, and what has been spent.",
    "explore": "Do every job in a browser, on this machine only.",
}
"""Every verb and what it does; a verb's own module is imported when it is called."""


class WithoutPandas:
    """An importer that hides pandas from PyArrow, which otherwise loads it whenever it is installed: a third of a second that benefits no
    verb.

    Libraries that import pandas themselves, such as OR-Tools, still find it. PyArrow's own import is compiled and leaves no frame, so it
    looks like an import by louver, which never imports pandas.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Hide pandas from PyArrow and louver, and leave every other import alone."""
        if name == "pandas" and _importer().partition(".")[0] in ("louver", "pyarrow"):
            raise ModuleNotFoundError("the command line does without pandas", name=name)


def _importer() -> str:
    """The module whose code is importing."""
    frame = sys._getframe(2)
    while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", ""))


def main() -> None:
    """Run the command line; Ctrl-C during loading also prints one line."""
    if "pyarrow" not in sys.modules:  # if louver runs inside another program, dataframes may be needed later
        sys.meta_path.insert(0, WithoutPandas)
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
    """Exit without tearing down the interpreter: teardown takes half a second, and leftover threads may crash during it."""
    import atexit
    import os
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader of our output may be gone
            stream.flush()
    os._exit(code)
