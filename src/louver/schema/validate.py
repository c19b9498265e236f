"""Small public files and tables of options, checked, with messages that locate a problem and never quote the content.

Pydantic's messages, and the list behind them, hold the value they reject, which may be confidential. Only the location and the kind of the
first error leave this module.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from louver.errors import InputError

__all__ = ["OWN", "Options", "decode_text", "file_or", "read_bytes", "read_toml", "toml_text", "validated"]

OWN = "louver"  # type of a PydanticCustomError with our own message, which quotes nothing

EXPECTED = {
    "missing": "is required",
    "extra_forbidden": "is not a known key; check its spelling",
    "string_type": "must be text in quotes",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must not be empty",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
}


class Options(BaseModel):
    """Base of every table of options: exact types, no unknown keys, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


Model = TypeVar("Model", bound=BaseModel)


def file_or(is_valid: Callable[[Any], bool], expected: str) -> BeforeValidator:
    """Accept the name of a file, or a value as `expected` describes it; messages about a union would name its types."""

    def check(value: Any) -> Any:
        if isinstance(value, str) or is_valid(value):
            return value
        raise PydanticCustomError(OWN, "must be a file name in quotes or {expected}", {"expected": expected})

    return BeforeValidator(check)


def validated(model: type[Model], mapping: Mapping[str, Any], where: str | None = None) -> Model:
    """Check a mapping against a Pydantic model.

    Parameters
    ----------
    model : type
        The model, usually a subclass of `Options`.
    mapping : mapping
        The content that was read.
    where : str, optional
        Its origin, for messages: a file, or file and section ("audit.toml [bounds]"). Without it the
        keys are options of a verb, and messages call them by their name on the command line.

    Raises
    ------
    InputError
        With one sentence about the first problem found; `option` holds the dotted key.

    Examples
    --------
    >>> class Audit(Options):
    ...     small: int = 5
    >>> validated(Audit, {"small": "a secret"}, "audit.toml [bounds]")
    Traceback (most recent call last):
    louver.errors.InputError: audit.toml [bounds]: key "small" must be a whole number.
    """
    try:
        return model.model_validate(dict(mapping))
    except ValidationError as error:
        findings = error.errors(include_url=False, include_input=False)
    # A misspelt key often explains a missing one, so it is reported first.
    finding = min(findings, key=lambda finding: finding["type"] != "extra_forbidden")
    key, item = _place(finding)
    if not key and where is None:
        subject = "the source"
    elif where is None:
        subject = f"option {_flag(model, key)}"
    else:
        subject = f'{where}: key "{key}"'
    raise InputError(f"{subject}{item} {_expected(finding)}.", file=where, option=key)


def _flag(model: type[BaseModel], key: str) -> str:
    """Name of an option on the command line; for part of an option, the name of the whole."""
    field = model.model_fields.get(key.partition(".")[0])
    details = None if field is None else field.json_schema_extra
    written = details.get("flag") if isinstance(details, dict) else None
    return str(written) if written else f"--{key.replace('_', '-')}"


def _place(finding: ErrorDetails) -> tuple[str, str]:
    """Dotted key, with the list item if the problem is in one."""
    parts = finding["loc"]
    key = ".".join(part if isinstance(part, str) else f"[{part + 1}]" for part in parts)
    key = key.replace(".[", "[")
    if parts and isinstance(parts[-1], int):
        return key.rsplit("[", 1)[0], f", item {parts[-1] + 1}"
    return key, ""


def _expected(finding: ErrorDetails) -> str:
    if finding["type"] == OWN:
        return finding["msg"]
    template = EXPECTED.get(finding["type"], "has a value of the wrong form")
    return template.format(**finding.get("ctx", {}))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises
    ------
    InputError
        If the file cannot be opened, is not UTF-8, or is not TOML (with line and column).
    """
    name = Path(path).name
    text = decode_text(read_bytes(path), name)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)$", str(error))
        at = f"at line {place[1]}, column {place[2]}" if place else "at its end"
        problem = f"is not valid TOML {at}; correct the syntax there"
    except RecursionError:
        problem = "has lists or tables nested too deeply; flatten them"
    except ValueError:  # Python refuses integers of more than a few thousand digits
        problem = "has a number with too many digits; shorten it"
    # Raised here and not in the handler, because the parser's own message may quote the file.
    raise InputError(f"{name} {problem}.", file=name)


def read_bytes(path: str | Path) -> bytes:
    """Content of a small file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        problem = "does not exist; check the path"
    except IsADirectoryError:
        problem = "is a directory; give a file"
    except PermissionError:
        problem = "cannot be opened; check its permissions"
    except (OSError, ValueError):  # a name that is too long or contains a null byte
        problem = "cannot be opened; check its name"
    name = Path(path).name or str(Path(path))
    raise InputError(f"{name} {problem}.", file=name)


def decode_text(data: bytes, name: str) -> str:
    """UTF-8 text of `data`, which messages call `name`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
    raise InputError(f"{name} is not UTF-8 text on line {line}; save it in that encoding.", file=name)


def toml_text(text: object) -> str:
    """A basic string of TOML."""
    escaped = {"\\": "\\\\", '"': '\\"'}
    letters = (
        escaped.get(letter) or (letter if letter.isprintable() else f"\\U{ord(letter):08X}")
        for letter in str(text)
    )
    return '"' + "".join(letters) + '"'
