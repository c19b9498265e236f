"""Writing a release directory, whole or not at all, and the manifest inside it.

    DIR/manifest.json     what, when, how, promises made, sha256 of every file
    DIR/data/             the published files
    DIR/report.html       for a person

A manifest never holds a hash of confidential input. Its `digest` covers everything else in it, so that an edit by
hand is noticed; it is not a signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from louver._version import __version__
from louver.errors import InputError

__all__ = ["MANIFEST", "FileEntry", "Manifest", "ReleaseWriter", "check_out", "file_entry", "read_manifest"]

MANIFEST = "manifest.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and hash of a published file."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a release says about itself.

    Attributes
    ----------
    verb : str
        The capability that made it.
    method : str
    parameters : mapping
        What was asked for.
    promises : sequence of mappings
        Each has a `promise` name and what is needed to recompute it from the files; `verify` does.
    privacy : mapping
        Guarantee, neighbour relation, budget, invariants it is conditional on; empty where there is none.
    results : mapping
        What came out: loss, gap, counts of the released file.
    disclosures : sequence of str
        What is published exactly.
    warnings : sequence of str
        What a reader must know before relying on it.
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
        return json.dumps({**content, "digest": digest(content)}, indent=1, ensure_ascii=False) + "\n"


def digest(content: Mapping[str, Any]) -> str:
    """Hash of a manifest's content without its own `digest`."""
    kept = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(folder: str | Path) -> Manifest:
    """Read a manifest as it stands; `verify` decides whether to believe it.

    Raises
    ------
    InputError
        Where there is no release directory or its manifest is not one of ours.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder.name} is no release directory; it has no {MANIFEST}.", file=folder.name)
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        files = {name: FileEntry(**entry) for name, entry in content.pop("files").items()}
        content.pop("digest", None)
        return Manifest(**content, files=files)
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = f"{MANIFEST} in {folder.name} is not a manifest that louver {__version__} can read."
    raise InputError(problem, file=MANIFEST)


def file_entry(path: Path) -> FileEntry:
    """Size and hash of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return FileEntry(bytes=path.stat().st_size, sha256=digest)


def check_out(out: Path) -> None:
    """Refuse a release directory that exists or cannot be made, before any work is done."""
    if os.path.lexists(out):
        raise InputError(f"option --out: {out.name} exists already; name a new folder.", option="--out")
    if not out.parent.is_dir():
        raise InputError(f"option --out: the folder above {out.name} does not exist.", option="--out")


class ReleaseWriter:
    """Builds a release in a hidden sibling folder and moves it into place once it is sealed.

    Leaving the `with` block without `seal` removes everything that was written.

    Examples
    --------
    >>> import tempfile
    >>> out = Path(tempfile.mkdtemp()) / "release"
    >>> with ReleaseWriter(out) as writer:
    ...     _ = writer.path("data/a.txt").write_text("a")
    ...     _ = writer.seal(Manifest(verb="anonymize", method="exact", parameters={}, promises=[]))
    >>> sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())
    ['data/a.txt', 'manifest.json']
    """

    def __init__(self, out: str | Path) -> None:
        self.out = Path(out)
        check_out(self.out)
        self._folder: Path | None = None

    def __enter__(self) -> ReleaseWriter:
        prefix = f".{self.out.name}.partial-"
        try:
            self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.out.parent))
        except OSError:
            problem = f"option --out: the folder above {self.out.name} cannot be written to."
        else:
            return self
        raise InputError(problem, option="--out")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._folder is not None and self._folder.exists():
            shutil.rmtree(self._folder, ignore_errors=True)

    def path(self, name: str) -> Path:
        """Where to write the file `name` (with `/`); its folder is made."""
        assert self._folder is not None, "use ReleaseWriter in a with block"
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def seal(self, manifest: Manifest) -> Manifest:
        """Hash all files, write the manifest, flush to disk, move into place."""
        assert self._folder is not None, "use ReleaseWriter in a with block"
        folder = self._folder
        names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        created = manifest.created or datetime.now(UTC).isoformat(timespec="seconds")
        sealed = replace(manifest, created=created, files={name: file_entry(folder / name) for name in names})
        (folder / MANIFEST).write_text(sealed.to_json(), encoding="utf-8")
        for path in [*folder.rglob("*"), folder]:
            _sync(path)
        folder.chmod(0o755)
        # A folder that appeared meanwhile is never replaced, not even an empty one.
        check_out(self.out)
        folder.rename(self.out)
        _sync(self.out.parent)
        return sealed


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
