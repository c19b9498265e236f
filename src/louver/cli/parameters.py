"""Options of a command, made from the model of its verb."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from louver.cli.console import console_run, say
from louver.errors import InputError
from louver.schema.options import Described, VerbOptions, described
from louver.schema.source import SourceOptions
from louver.schema.validate import Options

__all__ = [
    "CHECK_FAILED",
    "Epsilon",
    "File",
    "Given",
    "Html",
    "Json",
    "Out",
    "Payer",
    "Rho",
    "SpecAgain",
    "SpecFile",
    "command",
    "group",
    "help_alone",
    "the_spec",
]

CHECK_FAILED = 1

Given = dict[str, Any]
"""A command's parameter of this type receives every option of its model that was given, parsed."""

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="CSV, Parquet, Excel, Stata, SPSS, SAS or DuckDB file, or a postgresql:// address.",
    ),
]
Epsilon = Annotated[str | None, typer.Option(metavar="E", help="Amount in pure epsilon, such as 0.5 or 1/2.")]
Rho = Annotated[str | None, typer.Option(metavar="R", help="Amount in rho (zero-concentrated), such as 0.1.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report to this file.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Release directory; must not exist.")]
Payer = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Ledger that pays (default: the one next to the data).")
]
SpecFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TOML file with the same options, source and attributes."),
]
SpecAgain = Annotated[
    Path | None,
    typer.Option("--spec", metavar="FILE", help="The same, under the name used by the other verbs."),
]
TYPES: dict[str, Any] = {"flag": bool, "int": int | None, "float": float | None}
Command = Callable[..., int]


def group(help: str) -> typer.Typer:
    """The commands of a verb; a single one is the verb itself."""
    return typer.Typer(help=help, rich_markup_mode=None, add_completion=False)


def help_alone(app: typer.Typer) -> None:
    """Let a verb with several commands list them when it is called without one."""

    @app.callback(invoke_without_command=True)
    def _help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            say(context.get_help())


def command(
    app: typer.Typer,
    model: type[Options] | None = None,
    *,
    only: tuple[str, ...] | None = None,
    name: str | None = None,
    epilog: str | None = None,
) -> Callable[[Command], Command]:
    """Register a function as a command.

    Of its parameters, `given` becomes the options of the model (only those in `only`, if given) and, for a verb that opens data, of its
    source; `run` is the command's `Run`; the others are Typer's.
    """
    content = [one for one in _options(model) if only is None or one.name in only]

    def register(function: Command) -> Command:
        @wraps(function)
        def call(**written: Any) -> int:
            given = {one.name: _parsed(one, written.pop(_slot(one))) for one in content}
            if content:
                written["given"] = {key: value for key, value in given.items() if value is not None}
            if "run" not in parameters:
                return function(**written)
            with console_run() as run:
                return function(**written, run=run)

        parameters = signature(function, eval_str=True).parameters
        shown = _expanded(parameters.values(), content)
        call.__signature__ = signature(function).replace(parameters=shown)  # type: ignore[attr-defined]
        call.__annotations__ = {one.name: one.annotation for one in shown}
        app.command(name, epilog=epilog)(call)
        return function

    return register


def the_spec(argument: Path | None, option: Path | None, what: str) -> Path:
    """The spec of a verb that takes it as an argument, or as --spec like the others; `what` describes the file if it is missing."""
    if argument is not None and option is not None:
        raise InputError("the spec is named twice; give SPEC.toml or --spec.", option="--spec")
    path = argument or option
    if path is None:
        raise InputError(f"argument SPEC.toml is missing; name {what}.", option="SPEC.toml")
    return path


def _options(model: type[Options] | None) -> Iterator[Described]:
    if model is None:
        return
    yield from described(model)
    if issubclass(model, VerbOptions):
        yield from (one for one in described(SourceOptions) if one.name not in model.no_source)


def _slot(one: Described) -> str:
    """Name of the parameter; the parser's own names must not be shadowed."""
    return f"given_{one.name}"


def _expanded(parameters: Any, content: list[Described]) -> list[Parameter]:
    """The parameters with `given` written out."""
    expanded = []
    for parameter in parameters:
        if parameter.name == "given":
            expanded += [_parameter(one) for one in content]
        elif parameter.name != "run":
            expanded.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    return [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in expanded]


def _parameter(one: Described) -> Parameter:
    is_list = one.repeated or one.form in ("pairs", "orders")
    kind = list[str] | None if is_list else TYPES.get(one.form, str | None)
    info = typer.Option(one.flag, metavar=one.metavar, help=one.help)
    default = False if one.form == "flag" else None
    return Parameter(_slot(one), Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def _parsed(one: Described, value: Any) -> Any:
    """The value of an option as its model takes it; None if it was not given."""
    if value is None or value is False or value == []:
        return None
    if one.form == "pairs":
        return _pairs(value, one.flag)
    if one.form == "orders":
        return _orders(value, one.flag)
    if one.form == "weights":
        return _weights(",".join(value) if one.repeated else value, one.flag)
    if one.repeated or value in one.choices:
        return value
    if one.form == "names":
        return _names(value, one.flag)
    return _whole_numbers(value, one.flag) if one.form == "numbers" else value


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise InputError(f"option {option} has an empty name between two commas.", option=option)
    return names


def _whole_numbers(text: str, option: str) -> list[int]:
    names = _names(text, option)
    if not all(name.isdecimal() and name.isascii() for name in names):
        raise InputError(f"option {option} needs whole numbers between its commas.", option=option)
    return [int(name) for name in names]


def _pairs(entries: list[str], option: str) -> dict[str, str]:
    pairs = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    if len(pairs) < len(entries) or not all(name and value for name, value in pairs.items()):
        raise InputError(f"option {option} needs NAME=VALUE, each name once.", option=option)
    return pairs


def _orders(entries: list[str], option: str) -> dict[str, list[str]]:
    """`A,B` names columns, `A=1,2` a column and its values."""
    orders: dict[str, list[str]] = {}
    for entry in entries:
        name, equals, values = entry.partition("=")
        found = {name: _names(values, option)} if equals else {key: [] for key in _names(entry, option)}
        if not name or orders.keys() & found.keys():
            raise InputError(f"option {option} needs A,B or A=VALUE,VALUE, each name once.", option=option)
        orders |= found
    return orders


def _weights(text: str, option: str) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in _pairs(text.split(","), option).items()}
    except ValueError:
        raise InputError(f"option {option} needs a number after each =.", option=option) from None
