"""Every option of every command, as the command line itself knows it: a new one is tried without being listed anywhere."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from typer.main import get_command

__all__ = ["LIMITED", "Option", "n_arguments", "pool_of", "subcommands"]

Option = str | None  # None for a flag

NUMBERS = ("0", "1", "2", "-1", "0.5", "nan", "inf", "1e308", "1e99999999", "99999999999999999999", "many")
COLUMNS = ("site", "ill", "site,sex", "age,home", "count", "name", "nothing", "site,site", ",")
SOURCE: dict[str, Sequence[Option]] = {
    "decimal-mark": (",", ".", ";"),
    "encoding": ("utf-8", "cp1252", "latin-1", "utf-16", "rot13", "idna"),
    "delimiter": (",", ";", "tab", "|", "a", "''"),
    "table": ("people", "Sheet1", "t"),
    "query": ("SELECT 1", "SELECT * FROM people", "no SQL"),
    "weight": ("count", "age", "name"),
    "where": (
        "age >= 30",
        "site in ('A', 'B') and not ill = 'no'",
        "home is missing or age < count",
        "(" * 60 + "age = 1",
        "age = 1; DROP TABLE records",
        "nothing = 1",
        "site > 5",
        "age in ()",
        "age = 1e999",
    ),
    "seconds": ("0.05", "0", "-1", "nan", "soon"),
    "subproblem-seconds": ("0.05", "0", "-1", "nan"),
    "out": ("out", ".", "..", "data.csv", "no/such/folder", "x" * 300),
    "html": ("page.html", "no/such/page.html", "."),
    "ledger": ("none.ledger", "data.csv", "."),
}
"""What every verb may be told."""

LIMITED = frozenset({"seconds", "subproblem-seconds"})
"""Options without which, or with any number, a good call would take its time."""


@cache
def _command(verb: str) -> Any:
    return get_command(importlib.import_module(f"louver.cli.{verb}").app)


def subcommands(verb: str) -> list[str]:
    """The commands of a verb that has several."""
    return list(_command(verb).commands)


def _parameters(command: Sequence[str]) -> Iterable[Any]:
    found = _command(command[0])
    return (found.commands[command[1]] if len(command) > 1 else found).params


def n_arguments(command: Sequence[str]) -> int:
    """How many arguments a command takes."""
    return sum(one.param_type_name == "argument" for one in _parameters(command))


def pool_of(
    command: Sequence[str], files: Iterable[str], chosen: Mapping[str, Sequence[Option]]
) -> dict[str, Sequence[Option]]:
    """Values to try for every option of a command: the chosen ones, or some of its type where nobody chose any."""
    pool: dict[str, Sequence[Option]] = {}
    for one in _parameters(command):
        if one.param_type_name == "option":
            name = one.opts[-1].lstrip("-")
            pool[name] = chosen.get(name) or SOURCE.get(name) or _values(one, sorted(files))
    return pool


def _values(one: Any, files: list[str]) -> Sequence[Option]:
    if one.is_flag:
        return (None,)
    if one.type_descriptor.annotation in (int, float):
        return NUMBERS
    if "|" in (one.metavar or ""):
        return (*one.metavar.split("|"), "nothing")
    if one.type_descriptor.annotation is Path or one.metavar in ("FILE", "DIR", "RELEASE"):
        return (*files, "nowhere", ".")
    return (*COLUMNS, *NUMBERS)
