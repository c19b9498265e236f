"""The manifest of a release directory: its content, and reading it without trusting it.

    DIR/manifest.json     what, when, how, promises, sha256 of every file
    DIR/data/             the published files
    DIR/report.html       for readers

A manifest never contains a hash of confidential input. Its `digest` covers everything else in it, so that an edit by hand is noticed; it is
not a signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from louver._version import __version__
from louver.errors import InputError
from louver.release.strict_json import read_json

__all__ = ["MANIFEST", "FileEntry", "Manifest", "digest", "file_entry", "read_content", "read_manifest"]

MANIFEST = "manifest.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and hash of a published file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a release states about itself.

    Attributes
    ----------
    verb : str
        The capability that made it.
    method : str
    parameters : mapping
        The request: the options of the verb.
    promises : sequence of mappings
        Each has the name of a `promise` and the information that `verify` needs to recompute it from the files.
    privacy : mapping
        Guarantee, neighbour relation, budget, and the invariants on which it is conditional; empty if there is no guarantee.
    results : mapping
        The outcome: loss, gap, counts of the released file.
    disclosures : sequence of str
        Information that is published exactly.
    warnings : sequence of str
        What a reader must know before relying on the release.
    not_private, not_for_release : bool
        Set for seeded runs and evaluations; `verify` fails on the latter.
    """

    verb: str
    method: str
    parameters: Mapping[str, Any]
    promises: Sequence[Mapping[str, Any]]
    privacy: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    disclosures: Sequence[str] = ()
    warnings: Sequence[str] = ()
    spec_sha256: str | None = None
    ledger_head: str | None = None
    not_private: bool = False
    not_for_release: bool = False
    seconds: float | None = None
    created: str = ""
    version: str = __version__
    format: int = FORMAT
    files: Mapping[str, FileEntry] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text of manifest.json, digest included."""
        content = asdict(self)
        sealed = {**content, "digest": digest(content)}
        return json.dumps(sealed, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def digest(content: Mapping[str, Any]) -> str:
    """Hash of a manifest's content without its own `digest`."""
    kept = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(folder: str | Path) -> Manifest:
    """Read a manifest without checking it; `verify` decides whether to trust it.

    Raises
    ------
    InputError
        If there is no release directory or its manifest was not written by louver.
    """
    return parse(read_content(folder), Path(folder).name)


def read_content(folder: str | Path) -> dict[str, Any]:
    """The content of manifest.json: a plain file of strict JSON, bounded before it is parsed."""
    folder = Path(folder)
    if not is_plain(folder / MANIFEST):
        raise InputError(f"{folder.name} is not a release directory; it has no {MANIFEST}.", file=folder.name)
    with suppress(OSError, ValueError, TypeError, AttributeError, RecursionError):
        content: dict[str, Any] = dict(read_json(folder / MANIFEST).items())
        digest(content)  # text with a lone surrogate cannot be encoded
        return content
    raise _unreadable(folder.name)


def parse(content: Mapping[str, Any], name: str) -> Manifest:
    """The manifest with the given content; `name` is that of the folder, for the message."""
    if content.get("format") != FORMAT:
        raise InputError(
            f"{MANIFEST} in {name} has a format that louver {__version__} does not read; use the version that made it.",
            file=MANIFEST,
        )
    try:
        plain = {key: value for key, value in content.items() if key not in ("digest", "files")}
        files = {name: FileEntry(**entry) for name, entry in content["files"].items()}
        manifest = Manifest(**plain, files=files)
        is_typed = _is_typed(manifest)
    except (TypeError, KeyError, AttributeError):
        is_typed = False
    if not is_typed:
        raise _unreadable(name)
    return manifest


def _unreadable(name: str) -> InputError:
    return InputError(
        f"{MANIFEST} in {name} is not a manifest that louver {__version__} can read.", file=MANIFEST
    )


FIELDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("verb", "method", "created", "version"), (str,)),
    **dict.fromkeys(("parameters", "privacy", "results"), (dict,)),
    **dict.fromkeys(("not_private", "not_for_release"), (bool,)),
    **dict.fromkeys(("spec_sha256", "ledger_head"), (str, type(None))),
    "seconds": (int, float, type(None)),
}
LISTS = {"promises": dict, "disclosures": str, "warnings": str}


def _is_typed(manifest: Manifest) -> bool:
    """Whether every field has its declared type; the content of promises is checked with the promises."""
    entries = manifest.files.values()
    return (
        all(isinstance(getattr(manifest, name), kinds) for name, kinds in FIELDS.items())
        and all(_is_list(getattr(manifest, name), kind) for name, kind in LISTS.items())
        and all(type(entry.bytes) is int and type(entry.sha256) is str for entry in entries)
    )


def _is_list(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(value, kind) for value in values)


def is_plain(path: Path) -> bool:
    """Whether a path is a regular file, not a link, pipe or device, so that opening it cannot hang or lead elsewhere."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def file_entry(path: Path) -> FileEntry:
    """Size and hash of a file."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileEntry(bytes=path.stat().st_size, sha256=found)
