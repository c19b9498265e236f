"""One call of a verb: its keywords, a spec or both become a checked request, once for every surface.

What is given wins over the spec. Names of files in a spec are relative to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from louver.errors import InputError
from louver.run import Run
from louver.schema.options import Described, VerbOptions, described
from louver.schema.source import SourceOptions
from louver.schema.spec import Schema, Spec, as_spec
from louver.schema.validate import validated

__all__ = ["SOURCE", "Request", "SpecLike", "ask", "requested"]

Asked = TypeVar("Asked", bound=VerbOptions)

SOURCE = tuple(name for name in SourceOptions.model_fields if name not in ("file", "uri"))
"""Keywords of every verb that say how the data are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Asked]):
    """What a verb is asked, checked.

    Parameters
    ----------
    data : path, uri, dataframe or None
        What to open; None only where a verb does not open data.
    source : SourceOptions
        How it is read.
    schema : Schema, optional
        What is known about the columns.
    options : VerbOptions
        The verb's own options.
    spec : Path, optional
        The spec file that was read.
    run : Run
        Of the call; told how far the work is, and asked whether it shall end.
    """

    data: Any
    source: SourceOptions
    schema: Schema | None
    options: Asked
    spec: Path | None = None
    run: Run = field(default_factory=Run, compare=False)

    def files(self) -> Iterator[Path]:
        """Every file that the call reads, as far as names of files are given."""
        for value in (self.data, self.spec):
            if isinstance(value, str | Path):
                yield Path(value)
        for told in described(type(self.options)):
            yield from map(Path, _file_names(told, getattr(self.options, told.name)))


SpecLike = str | Path | Mapping[str, Any] | Spec | Request[Any] | None


def ask(
    model: type[Asked],
    data: Any,
    spec: SpecLike,
    given: Mapping[str, Any],
    *,
    schema: Schema | None = None,
    needs_data: bool = True,
) -> Request[Asked]:
    """Check a call.

    Parameters
    ----------
    model : type
        Options of the verb.
    data : object
        What to open, where it is not in the spec.
    spec : path, mapping, Spec or None
    given : mapping
        Options of the verb and of the source that the caller wrote; None stands for not given.
    schema : Schema, optional
        In place of the spec's.
    needs_data : bool
        False where the verb does not open them.
    """
    if isinstance(spec, Request):
        return spec
    read = None if spec is None else as_spec(spec)
    told = {told.name: told for told in described(model)}
    merged = {} if read is None else _section(read, model)
    merged |= {name: _plain(value, told.get(name)) for name, value in given.items() if value is not None}
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


def requested(spec: SpecLike, model: type[Asked]) -> Request[Asked]:
    """The request that `door` has put in the place of the spec."""
    assert isinstance(spec, Request) and isinstance(spec.options, model)
    return spec


def _data(data: Any, spec: Spec | None, *, is_needed: bool) -> Any:
    if data is not None:
        return data
    if not is_needed:
        return None if spec is None else spec.data
    if spec is None:
        raise InputError("argument FILE is missing; name the data, or a --spec that does.", option="FILE")
    if spec.data is None:
        message = f"{spec.path.name} names no source file and no FILE is given; add one."
        raise InputError(message, file=spec.path.name, option="FILE")
    return spec.data


def _section(spec: Spec, model: type[VerbOptions]) -> dict[str, Any]:
    """The verb's section of a spec, checked where it stands; file names in it are relative to the spec."""
    options = spec.options(model.verb)
    own = {name: value for name, value in options.items() if name not in SOURCE}
    validated(model, own, f"{spec.path.name} [{model.verb}]")
    for told in described(model):
        if told.file is not None and told.name in options:
            options[told.name] = _beside(spec.path.parent, options[told.name], told)
    return options


def _beside(folder: Path, value: Any, told: Described) -> Any:
    if isinstance(value, str):
        return str(folder / value)
    if told.file == "one":
        return value
    if isinstance(value, Mapping):
        return {name: str(folder / file) for name, file in value.items()}
    return [str(folder / file) for file in value]


def _file_names(told: Described, value: Any) -> list[str]:
    if told.file is None or value is None:
        return []
    if isinstance(value, str):
        return [value]
    if told.file == "one":
        return []
    return list(value.values() if isinstance(value, Mapping) else value)


def _plain(value: Any, told: Described | None = None) -> Any:
    """A value of Python as a spec would hold it; one name alone stands for a list of it."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        is_list = told is not None and told.form in ("names", "orders") and not told.choices
        return [value] if is_list else value
    if isinstance(value, Mapping):
        return {name: _plain(below) for name, below in value.items()}
    if isinstance(value, Sequence):
        return [_plain(below) for below in value]
    return value
