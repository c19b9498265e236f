"""Untrusted JSON: its size, its depth and the length of its numbers are checked before it is parsed.

A release is opened before anyone knows whether to trust it, so reading must cost no more than its size justifies. Infinities and NaN are
not JSON, and readers would choose differently between two equal keys; all of these are refused.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

__all__ = ["MOST_BYTES", "NOT_AS_WRITTEN", "is_as_written", "parse_json", "read_bytes", "read_json"]

MOST_BYTES = 1 << 26
"""Maximum size in bytes of a manifest, which lists labels and files but never records."""

MOST_PARTS = 1 << 24
"""Maximum number of commas and brackets: once parsed, each takes many times its byte."""

LONGEST_NUMBER = 400
"""Maximum number of digits of a whole number; the largest float has 309."""


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """The content of a JSON file.

    Raises
    ------
    ValueError, OSError, RecursionError
        If it is too large, not strict JSON, too deep, or cannot be read.
    """
    return parse_json(read_bytes(path, most_bytes))


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The bytes of a file; ValueError if there are more than allowed."""
    with path.open("rb") as stream:
        text = stream.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise ValueError("too large")
    return text


def parse_json(text: bytes) -> Any:
    """The content of JSON as bytes in UTF-8.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    ValueError: not a number
    """
    if sum(text.count(part) for part in (b",", b"[", b"{", b":")) > MOST_PARTS:
        raise ValueError("too many parts")
    return json.loads(
        text.decode("utf-8"),
        object_pairs_hook=_once,
        parse_int=_parse_int,
        parse_float=_finite,
        parse_constant=_no_number,
    )


NOT_AS_WRITTEN = "has spaces, digits or escapes that no program would write"


def is_as_written(text: bytes) -> bool:
    """Whether JSON is written as by a program: spaces between its parts, digits beyond those of a float, and escapes could encode anything.

    Examples
    --------
    >>> [is_as_written(text) for text in (b'{"a": 0.5}', b'{ "a": 0.5}', b'{"a": 0.50}')]
    [True, False, False]
    """
    content = parse_json(text)
    forms = (
        json.dumps(content, indent=indent, ensure_ascii=is_ascii)
        for indent in (1, None)
        for is_ascii in (False, True)
    )
    return any(text.decode("utf-8").removesuffix("\n") == form for form in forms)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key occurs twice")
    return content


def _parse_int(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ValueError("a number is too long")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a number")
    return number


def _no_number(_: str) -> float:
    raise ValueError("not a number")
