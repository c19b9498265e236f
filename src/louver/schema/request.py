"""One call of a verb: its keywords, a spec or both become a checked request, once for Python, command line and explorer.

Options of the call take precedence over the spec. File names in a spec are relative to it. `door` makes a function the entry point
of a verb: its keywords are those of the options model, and its docstring is filled from the model's help.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from textwrap import fill
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from pydantic import BaseModel

from louver.errors import InputError, one_sentence
from louver.run import Run
from louver.schema.options import Described, VerbOptions, described
from louver.schema.source import SourceOptions
from louver.schema.spec import Schema, Spec, as_spec
from louver.schema.validate import Options, validated

__all__ = ["SOURCE", "Request", "SpecLike", "ask", "documented", "door", "requested"]

OptionsT = TypeVar("OptionsT", bound=VerbOptions)

SOURCE = tuple(name for name in SourceOptions.model_fields if name not in ("file", "uri"))
"""Keywords of every verb that control how the data are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[OptionsT]):
    """A call of a verb, checked.

    Parameters
    ----------
    data : path, uri, dataframe or None
        The data to open; None only if a verb does not open data.
    source : SourceOptions
        How the data are read.
    schema : Schema, optional
        Kinds, labels and other facts about the columns.
    options : VerbOptions
        The verb's own options.
    spec : Path, optional
        The spec file that was read.
    run : Run
        Receives the progress of the call, and can cancel it.
    """

    data: Any
    source: SourceOptions
    schema: Schema | None
    options: OptionsT
    spec: Path | None = None
    run: Run = field(default_factory=Run, compare=False)

    def files(self) -> Iterator[Path]:
        """Every file that the call reads, if given by its name."""
        for value in (self.data, self.spec):
            if isinstance(value, str | Path):
                yield Path(value)
        for described_option in described(type(self.options)):
            yield from map(Path, _file_names(described_option, getattr(self.options, described_option.name)))


SpecLike = str | Path | Mapping[str, Any] | Spec | Request[Any] | None


def ask(
    model: type[OptionsT],
    data: Any,
    spec: SpecLike,
    given: Mapping[str, Any],
    *,
    schema: Schema | None = None,
    needs_data: bool = True,
) -> Request[OptionsT]:
    """Check a call.

    Parameters
    ----------
    model : type
        Options of the verb.
    data : object
        The data to open, if they are not in the spec.
    spec : path, mapping, Spec or None
    given : mapping
        Options of the verb and of the source that the caller gave; None means not given.
    schema : Schema, optional
        Schema that replaces that of the spec.
    needs_data : bool
        False if the verb does not open data.
    """
    if isinstance(spec, Request):
        return spec
    read = None if spec is None else as_spec(spec)
    described_option = {described_option.name: described_option for described_option in described(model)}
    merged = {} if read is None else _section(read, model)
    merged |= {
        name: _plain(value, described_option.get(name)) for name, value in given.items() if value is not None
    }
    about_source = {name: merged.pop(name) for name in SOURCE if name in merged}
    source = (SourceOptions() if read is None else read.source).replaced(about_source)
    options = validated(model, merged)
    options.check()
    options.check_source(source)
    if needs_data and (model.needs_data or data is None):
        data = _data(data, read, is_needed=model.needs_data)
    unit = None if read is None or data is None or source.wide else read.verbs["anonymize"].get("unit")
    options = options.with_unit(unit) if isinstance(unit, str) else options
    known = schema if schema is not None or read is None else read.schema
    return Request(
        data=data, source=source, schema=known, options=options, spec=None if read is None else read.path
    )


def requested(spec: SpecLike, model: type[OptionsT]) -> Request[OptionsT]:
    """The request that `door` passed in place of the spec."""
    assert isinstance(spec, Request) and isinstance(spec.options, model)
    return spec


def _data(data: Any, spec: Spec | None, *, is_needed: bool) -> Any:
    if data is not None:
        return data
    if not is_needed:
        return None if spec is None else spec.data
    if spec is None:
        raise InputError(
            "argument FILE is missing; name the data, or a --spec that names them.", option="FILE"
        )
    if spec.data is None:
        message = f"{spec.path.name} names no source file, and FILE is missing; add one."
        raise InputError(message, file=spec.path.name, option="FILE")
    return spec.data


def _section(spec: Spec, model: type[VerbOptions]) -> dict[str, Any]:
    """The verb's section of a spec, checked where it stands; file names in it are relative to the spec."""
    options = spec.options(model.verb)
    own = {name: value for name, value in options.items() if name not in SOURCE}
    validated(model, own, f"{spec.path.name} [{model.verb}]")
    for described_option in described(model):
        if described_option.file is not None and described_option.name in options:
            options[described_option.name] = _next_to(
                spec.path.parent, options[described_option.name], described_option
            )
    return options


def _next_to(folder: Path, value: Any, described_option: Described) -> Any:
    if isinstance(value, str):
        return str(folder / value)
    if described_option.file == "one":
        return value
    if isinstance(value, Mapping):
        return {name: str(folder / file) for name, file in value.items()}
    return [str(folder / file) for file in value]


def _file_names(described_option: Described, value: Any) -> list[str]:
    if described_option.file is None or value is None:
        return []
    if isinstance(value, str):
        return [value]
    if described_option.file == "one":
        return []
    return list(value.values() if isinstance(value, Mapping) else value)


def _plain(value: Any, described_option: Described | None = None) -> Any:
    """A Python value as a spec would hold it; a single name stands for a list of one."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        is_list = (
            described_option is not None
            and described_option.form in ("names", "orders")
            and not described_option.choices
        )
        return [value] if is_list else value
    if isinstance(value, Mapping):
        return {name: _plain(below) for name, below in value.items()}
    if isinstance(value, Sequence):
        return [_plain(below) for below in value]
    return value


P = ParamSpec("P")
R = TypeVar("R")

SHARED = {
    "spec": "A spec with the source, its attributes and a section for the verb; options given here take precedence.",
    "schema": "Kinds, labels, order, hierarchies and structural zeros of the columns; labels come from the data otherwise.",
    "wide": "Column of counts -> {attribute: label}, for tables with one column per cell.",
    "ledger": "The ledger that pays; by default, the one next to the data.",
    "report": "Makes the HTML page for the release directory.",
    "run": "Receives progress and can cancel the work.",
}
"""Keywords that have the same meaning in every function and are not options of a command."""

HEADING = "\n\nParameters\n----------\n"
ENTRY = r"^(\w+).*(?:\n    .*)+"
INDENT: Any = {"initial_indent": "    ", "subsequent_indent": "    "}


def door(
    model: type[VerbOptions], *, keywords: Any = None, needs_data: bool = True
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function the entry point (door) of a verb: its body finds the checked `Request` in `spec`.

    Only here is it known which keywords the caller gave: omitted ones are taken from the spec, even if the function has a default for them.
    Expected errors are raised as `LouverError`.

    Parameters
    ----------
    model : type
        Options of the verb.
    keywords : TypedDict, optional
        The keywords behind the function's `**options`; its signature lists them, with the model's defaults.
    needs_data : bool
        False if the function does not open data.
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

    Descriptions in the docstring itself are kept. Every keyword must be an option, be shared by all doors, or be described in the
    docstring.
    """
    described_option = {one.flag: one for one in (*described(model), *described(SourceOptions))}
    help_of = SHARED | {one.name: one.help for one in described_option.values()}

    def as_keyword(flag: re.Match[str]) -> str:
        return f"`{described_option[flag[0]].name}`" if flag[0] in described_option else flag[0]

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
    return None if field is None or field.default_factory is not None else field.default


def _refuse(name: str) -> NoReturn:
    flag = f"--{name.replace('_', '-')}"
    raise InputError(f"option {flag} is not a known key; check its spelling.", option=name)
