"""What verbs share that are not made from their models yet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from louver.errors import InputError
from louver.schema.spec import Spec

CHECK_FAILED = 1
FILE_OPTIONS = ("recode", "given", "cells", "arrangements", "domain", "population")

Epsilon = Annotated[str | None, typer.Option(metavar="E", help="Amount in pure epsilon, such as 0.5 or 1/2.")]
Rho = Annotated[str | None, typer.Option(metavar="R", help="Amount in rho (zero-concentrated), such as 0.1.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Table = Annotated[
    str | None, typer.Option(metavar="NAME", help="Table in a DuckDB file or PostgreSQL database.")
]
Query = Annotated[str | None, typer.Option(metavar="SQL", help="Query for a PostgreSQL database.")]
SpecFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="TOML file with the same options, source and attributes."),
]


def names_of(text: str | None, option: str) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if "" in names:
        raise InputError(f"option {option} has an empty name between its commas.", option=option)
    return names


def whole_numbers(text: str | None, option: str) -> tuple[int, ...] | None:
    names = names_of(text, option)
    if names is None:
        return None
    if not all(name.isdecimal() and name.isascii() for name in names):
        raise InputError(f"option {option} needs whole numbers between its commas.", option=option)
    return tuple(map(int, names))


def pairs_of(entries: list[str] | None, option: str) -> dict[str, str] | None:
    if not entries:
        return None
    pairs = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    if len(pairs) < len(entries) or not all(name and value for name, value in pairs.items()):
        raise InputError(f"option {option} needs NAME=VALUE, each name once.", option=option)
    return pairs


def weights_of(text: str | None) -> dict[str, float] | None:
    pairs = pairs_of(None if text is None else text.split(","), "--weights")
    try:
        return None if pairs is None else {name: float(value) for name, value in pairs.items()}
    except ValueError:
        raise InputError("option --weights needs a number after each =.", option="--weights") from None


def with_spec(
    verb: str,
    path: Path | None,
    file: str | None,
    table: str | None,
    query: str | None,
    given: dict[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Where the data are, and the options: those of the command line win over those of the spec."""
    options = {name: value for name, value in given.items() if value is not None}
    if path is None:
        if file is None:
            raise InputError("argument FILE is missing; name the data, or a --spec that does.", option="FILE")
        return {"data": file, "table": table, "query": query}, options
    from louver.schema.spec import read_spec

    spec = read_spec(path)
    source = spec.source
    data = file or spec.data
    if data is None:
        raise InputError(
            f"{path.name} names no source file and no FILE is given; add one.", file=path.name, option="FILE"
        )
    return (
        {
            "data": data,
            "table": table or source.table,
            "query": query or source.query,
            "wide": source.wide or None,
            "schema": spec.schema,
        },
        {**({"weight": source.weight} if source.weight else {}), **_resolved(spec, verb), **options},
    )


def _resolved(spec: Spec, verb: str) -> dict[str, Any]:
    """Options of the verb; file names in them are relative to the spec."""
    from importlib import import_module

    from louver.schema.validate import validated

    options = spec.options(verb)
    model = getattr(import_module(f"louver.{verb}.options"), f"{verb.capitalize()}Options")
    validated(model, options, f"{spec.path.name} [{verb}]")
    for name in FILE_OPTIONS:
        if isinstance(options.get(name), str):
            options[name] = str(spec.path.parent / options[name])
    if "against" in options:
        options["against"] = tuple(str(spec.path.parent / folder) for folder in options["against"])
    for name, file in options.get("hierarchy", {}).items():
        options["hierarchy"][name] = str(spec.path.parent / file)
    return options
