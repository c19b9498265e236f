"""Pydantic's findings in our own words.

Pydantic's messages, and the list behind them, hold the value they reject, which may be confidential. Only
the place and the kind of the first finding leave this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from louver.errors import InputError

__all__ = ["OWN", "Options", "file_or", "validated"]

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


def file_or(is_valid: Callable[[Any], bool], told: str) -> BeforeValidator:
    """Accept the name of a file, or the value `told` describes; a union of types would be told by their names."""

    def check(value: Any) -> Any:
        if isinstance(value, str) or is_valid(value):
            return value
        raise PydanticCustomError(OWN, "must be a file name in quotes or {told}", {"told": told})

    return BeforeValidator(check)


def validated(model: type[Model], mapping: Mapping[str, Any], where: str | None = None) -> Model:
    """Check a mapping against a Pydantic model.

    Parameters
    ----------
    model : type
        The model, usually a subclass of `Options`.
    mapping : mapping
        What was read.
    where : str, optional
        Where it was read, for messages: a file, or file and section ("audit.toml [bounds]"). Without it the
        keys are options of a verb, and messages call them by their name on the command line.

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
        findings = error.errors(include_url=False, include_input=False)
    # A misspelt key is why another one is missing, so it is named first.
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
    """Name of an option on the command line; for a part of one, of the whole."""
    field = model.model_fields.get(key.partition(".")[0])
    told = None if field is None else field.json_schema_extra
    written = told.get("flag") if isinstance(told, dict) else None
    return str(written) if written else f"--{key.replace('_', '-')}"


def _place(finding: ErrorDetails) -> tuple[str, str]:
    """Dotted key, and the item of a list where the finding is about one."""
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
