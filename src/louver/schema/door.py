"""The door of a verb: a function whose keywords are those of its options, and whose page tells what they tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from inspect import Parameter, Signature, getdoc, signature
from textwrap import fill
from typing import Any, NoReturn, ParamSpec, TypeVar

from louver.errors import InputError, one_sentence
from louver.run import Run
from louver.schema.options import VerbOptions, described
from louver.schema.request import SOURCE, ask
from louver.schema.source import SourceOptions
from louver.schema.validate import Options

__all__ = ["documented", "door"]

P = ParamSpec("P")
R = TypeVar("R")

SHARED = {
    "spec": "A spec with the source, its attributes and a section for the verb; what is given here wins.",
    "schema": "Kinds, labels, order, hierarchies and structural zeros of the columns; labels come from the data otherwise.",
    "wide": "Column of counts -> {attribute: label}, for tables with one column per cell.",
    "ledger": "Who pays; by default the ledger beside the data.",
    "report": "Makes the HTML page for the release directory.",
    "run": "Told how far the work is, and asked whether it shall end.",
}
"""Keywords that mean the same at every door and are no options of a command."""

HEADING = "\n\nParameters\n----------\n"
ENTRY = r"^(\w+).*(?:\n    .*)+"
INDENT: Any = {"initial_indent": "    ", "subsequent_indent": "    "}


def door(
    model: type[VerbOptions], *, keywords: Any = None, needs_data: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function the door of a verb: its body finds the checked `Request` in `spec`.

    Which keywords the caller wrote is known only here: one that is left out is the spec's to say, even where the
    function has a default for it. Errors that are expected leave as `LouverError`.

    Parameters
    ----------
    model : type
        Options of the verb.
    keywords : TypedDict, optional
        What the function's `**options` stand for; its signature lists them, with the model's defaults.
    needs_data : bool
        False where the function does not open them.
    """
    names = {*model.model_fields, *SOURCE, "data", "spec", "schema"}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        shown = _expanded(signature(function), model, keywords)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in shown.parameters:
                    _refuse(name)
            written = shown.bind(*args, **kwargs).arguments
            given = {name: value for name, value in written.items() if name in names}
            own: Any = {name: value for name, value in written.items() if name not in names}
            with one_sentence():
                data, spec = given.pop("data", None), given.pop("spec", None)
                schema = given.pop("schema", None)
                request = ask(model, data, spec, given, schema=schema, needs_data=needs_data)
                own["spec"] = replace(request, run=own.get("run") or Run())
                return function(**own)  # type: ignore[call-arg]

        call.__signature__ = shown  # type: ignore[attr-defined]
        return documented(model)(call)

    return decorate


def documented(model: type[Options]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Fill the parameters of a function's docstring with the help texts of a model.

    What the docstring tells itself stays. Nothing is left untold: every keyword is an option, shared by all doors or told.
    """
    told = {one.flag: one for one in (*described(model), *described(SourceOptions))}
    help_of = SHARED | {one.name: one.help for one in told.values()}

    def as_keyword(flag: re.Match[str]) -> str:
        return f"`{told[flag[0]].name}`" if flag[0] in told else flag[0]

    def entries(function: Callable[P, R], written: str) -> Iterator[str]:
        own = {block[1]: block[0] for block in re.finditer(ENTRY, written, re.MULTILINE)}
        also = {name for block in own.values() for name in re.findall(r", (\w+)", block.partition("\n")[0])}
        for name, parameter in signature(function).parameters.items():
            if name not in own and name not in also:
                help = re.sub(r"(?<!\w)--?[a-z][a-z-]*", as_keyword, help_of[name])
                own[name] = f"{name} : {parameter.annotation}\n" + fill(help, 110, **INDENT)
            if name in own:
                yield own[name]

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        head, _, rest = (getdoc(function) or "").partition(HEADING)
        written, _, tail = rest.partition("\n\n")
        sections = (head + HEADING + "\n".join(entries(function, written)), tail)
        function.__doc__ = "\n\n".join(sections).rstrip()
        return function

    return decorate


def _expanded(shown: Signature, model: type[VerbOptions], keywords: Any) -> Signature:
    """A signature with its `**options` written out."""
    if keywords is None:
        return shown
    listed = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=_default(model, name), annotation=hint.__forward_arg__
        )
        for name, hint in keywords.__annotations__.items()
    ]
    own = [one for one in shown.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    return shown.replace(parameters=[*own, *listed])


def _default(model: type[VerbOptions], name: str) -> Any:
    field = model.model_fields.get(name)
    return None if field is None else field.get_default()


def _refuse(name: str) -> NoReturn:
    flag = f"--{name.replace('_', '-')}"
    raise InputError(f"option {flag} is not a known key; check its spelling.", option=name)
