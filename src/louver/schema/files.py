"""Reading the small public files of a schema, with messages that say where and never what stood there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from louver.errors import InputError

__all__ = ["decode_text", "read_bytes", "read_toml", "toml_text"]


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
        problem = "has lists or tables nested too deeply; write them flat"
    except ValueError:  # Python refuses integers of more than some thousand digits
        problem = "holds a number with too many digits; shorten it"
    # Raised here, not in the handler: the parser's own message may quote the file.
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
    except (OSError, ValueError):  # too long a name, or one with a zero byte
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
