"""Redesigns as recode files, each with the call that reads it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from louver.bounds.suggestions import Suggestion, Suggestions
from louver.data.write import replacing
from louver.errors import InputError, printable
from louver.release.write import check_out
from louver.schema.validate import toml_text

__all__ = ["recode_text", "write_recodes"]


def write_recodes(suggestions: Suggestions, folder: Path, data: Sequence[str] = ("FILE",)) -> list[Path]:
    """Write one file for each redesign, for its owner's eyes only: labels may be confidential.

    Parameters
    ----------
    data : sequence of str
        What stands after `louver bounds` to name the data, for the call in each file.
    """
    check_out(folder, "--write-recodes")
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        raise InputError(
            f"option --write-recodes: {folder.name} cannot be made; check permissions and disk space.",
            option="--write-recodes",
        ) from None
    paths = [folder / f"redesign-{number:02d}.toml" for number in range(1, len(suggestions.lines) + 1)]
    for path, suggestion in zip(paths, suggestions.lines, strict=True):
        with replacing(path, mode=0o600) as stream:
            stream.write(recode_text(suggestion, data, os.fspath(path)).encode("utf-8"))
    return paths


def recode_text(suggestion: Suggestion, data: Sequence[str], path: str) -> str:
    """The recodes of one redesign in TOML; comments say what it keeps and how to run it."""
    a = suggestion.arrangement
    call = [
        "louver",
        "bounds",
        *data,
        "--rows",
        ",".join(a.rows),
        "--cols",
        ",".join(a.cols),
        "--recode",
        path,
    ]
    lines = [f"# keeps {suggestion.share:.1%} of the information", f"# {printable(shlex.join(call))}"]
    for recode in a.recodes:
        lines += ["", f"[{toml_text(recode.attribute)}]"]
        for new, old in (recode.merge or {}).items():
            lines.append(f"{toml_text(new)} = [{', '.join(map(toml_text, old))}]")
    return "\n".join(lines) + "\n"
