"""Pydantic's findings in our own words.

Pydantic's messages, and the list behind them, hold the value they reject, which may be confidential. Only
the place and the kind of the first finding leave this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from louver.errors import InputError

__all__ = ["OWN", "Options", "validated"]

OWN = "louver"  # type of a PydanticCustomError whose message is ours and quotes nothing

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
    "greater_than": "must be greater than {gt}",
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


def validated(model: type[Model], mapping: Mapping[str, Any], where: str) -> Model:
    """Check a mapping against a Pydantic model.

    Parameters
    ----------
    model : type
        The model, usually a subclass of `Options`.
    mapping : mapping
        What was read.
    where : str
        Where it was read, for messages: a file, or file and section ("audit.toml [bounds]").

    Raises
    ------
    InputError
        With one sentence on the first finding; `option` holds the dotted key.

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
        finding = error.errors(include_url=False, include_input=False)[0]
    key, item = _place(finding)
    raise InputError(f'{where}: key "{key}"{item} {_expected(finding)}.', file=where, option=key)


def _place(finding: ErrorDetails) -> tuple[str, str]:
    """Dotted key, and the item of a list where the finding is about one."""
    parts = [part for part in finding["loc"] if part != "[key]"]
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
