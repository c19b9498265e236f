"""The whole command: its verbs, and one sentence for every way in which it can fail."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from louver import __version__
from louver.cli import VERBS
from louver.cli.console import say, stopping_signal, tolerant_output
from louver.errors import Cancelled, LouverError, internal_error, one_sentence, printable

__all__ = ["app", "run_app"]

BAD_INPUT, INTERNAL, INTERRUPTED, OUTPUT_CLOSED = 2, 70, 130, 141
WITH_KERNELS = ("bounds", "audit", "anonymize", "groups", "topdown", "ledger")
NUMBER_KINDS = {int: "a whole number", float: "a number"}


class Verbs(TyperGroup):
    """The verbs; their help is shown without importing any of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, imported when it is first used."""
        if cmd_name not in VERBS:
            return None
        if cmd_name not in self.commands:
            self.add_command(get_command(import_module(f"louver.cli.{cmd_name}").app), cmd_name)
        return self.commands[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Names and summaries."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    name="louver",
    cls=Verbs,
    help="Publish statistics about people without publishing the people.",
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        say(f"louver {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())


def run_app() -> int:
    """Run the requested command and return the exit code. Every expected failure is one sentence on stderr."""
    verb = next((argument for argument in sys.argv[1:] if not argument.startswith("-")), "")
    name = f"louver {verb}" if verb in VERBS else "louver"
    # Matplotlib warns about a home that it cannot write to, but stderr is for our own sentences.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    tolerant_output()
    try:
        with one_sentence():
            _load(verb)
            result = app(prog_name="louver", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except (Cancelled, KeyboardInterrupt):
        code = INTERRUPTED
    except LouverError as error:
        code = _fail(name, str(error))
    except typer.TyperException as error:
        code = _fail(name, _usage_problem(error))
    except SystemExit:  # the parser's exit if the reader of our output has closed the pipe
        code = OUTPUT_CLOSED
    except MemoryError:
        code = _fail(name, "the table is too large for this machine's memory; use fewer attributes.")
    except Exception as error:
        if os.environ.get("LOUVER_DEBUG"):
            raise
        code = _fail(name, f"{internal_error(error)} (LOUVER_DEBUG=1 shows more).", INTERNAL)
    if code == INTERRUPTED:
        code = _fail(name, "stopped.", 128 + stopping_signal())
    return code


def _load(verb: str) -> None:
    """Import a verb, its kernels first, here rather than deep inside the parser.

    Python's stack of frames grows by pages. While Numba is imported it calls small functions many thousands of times; if those calls
    straddle the end of a page, each of them maps and unmaps memory, which takes a tenth of a second in total.
    """
    if verb in WITH_KERNELS:
        import_module("louver.optim.kernels")
    if verb in VERBS:
        import_module(f"louver.cli.{verb}")


def _fail(name: str, sentence: str, code: int = BAD_INPUT) -> int:
    sys.stderr.write(f"{name}: {printable(sentence)}\n")
    return code


def _usage_problem(error: typer.TyperException) -> str:
    """A usage error in our words; the parser's own messages quote what was typed."""
    if isinstance(error, typer.BadParameter):
        assert error.param is not None
        kind = NUMBER_KINDS[error.param.type_descriptor.annotation]
        return f"option {error.param.opts[0]} must be {kind}."
    # The parser's other classes are not public, so they are distinguished by their attributes.
    carried = vars(error)
    option: str | None = carried.get("option_name")
    context: Any = carried.get("ctx")
    parent = getattr(context, "command", None)
    commands = parent.list_commands(context) if isinstance(parent, TyperGroup) else []
    if option is None and commands:
        return f"unknown command; choose {', '.join(commands[:-1])} or {commands[-1]}."
    if option is None:
        return "there is one argument too many; put no space after a comma, and quote names that contain one."
    if "possibilities" in carried:
        near = [f"did you mean {other}?" for other in carried["possibilities"] or ()]
        return f"there is no option {option}; {near[0] if near else 'see --help.'}"
    return f"option {option} {'takes no value' if 'not take' in error.message else 'needs a value'}."
