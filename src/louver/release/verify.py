"""Doubting a release: every promise is recomputed from the published files; nothing is taken on trust."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any

from louver.errors import InputError
from louver.release.manifest import MANIFEST, Manifest, digest, file_entry, read_manifest
from louver.release.promises import PROMISES

__all__ = ["Check", "Verification", "is_unchanged", "verify"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked, and what was found."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verification:
    """The outcome of `verify`: every check, in the order made."""

    release: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "passed": self.passed,
            "checks": [asdict(check) for check in self.checks],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def __repr__(self) -> str:
        failed = [check for check in self.checks if not check.passed]
        told = "every promise holds" if not failed else f"{len(failed)} of {len(self.checks)} checks FAILED"
        lines = [f"  FAILED {check.name}: {check.found}" for check in failed[:8]]
        return "\n".join([f"Verification of {self.release}: {told}", *lines])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def verify(release: str | Path) -> Verification:
    """Recompute every promise of a release directory.

    Parameters
    ----------
    release : path
        A release directory.

    Raises
    ------
    InputError
        Where there is no release directory; a release that fails its checks is no error.
    """
    folder = Path(release)
    if not folder.is_dir():
        raise InputError(f"{folder.name} is no release directory.", file=folder.name)
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        if not (folder / MANIFEST).is_file():
            raise
        return Verification(release=folder.name, checks=(Check("manifest", False, str(error)),))
    checks = [*_check_manifest(folder, manifest), *_check_files(folder, manifest)]
    if all(check.passed for check in checks):
        checks += _check_promises(folder, manifest)
    return Verification(release=folder.name, checks=tuple(checks))


def is_unchanged(release: Path) -> bool:
    """Whether a release directory still holds the bytes that its manifest lists, and the manifest its own."""
    content = json.loads((release / MANIFEST).read_text(encoding="utf-8"))
    files = _check_files(release, read_manifest(release))
    return content.get("digest") == digest(content) and all(check.passed for check in files)


def _check_manifest(folder: Path, manifest: Manifest) -> Iterator[Check]:
    content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    is_intact = content.get("digest") == digest(content)
    yield Check("manifest unedited", is_intact, "digest agrees" if is_intact else "digest differs")
    is_private = not manifest.not_private
    yield Check(
        "private noise", is_private, "yes" if is_private else "made with a seed that anyone can repeat"
    )
    for_release = not manifest.not_for_release
    yield Check("for release", for_release, "yes" if for_release else "made for evaluation, not for release")


def _check_files(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Every listed file is there and unchanged, and nothing else is."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()} - {
        MANIFEST
    }
    for name, entry in manifest.files.items():
        path = folder / name
        if name not in present or path.is_symlink():
            yield Check(f"file {name}", False, "missing, or not a plain file")
            continue
        is_same = file_entry(path) == entry
        yield Check(f"file {name}", is_same, "unchanged" if is_same else "its bytes differ from the manifest")
    extra = sorted(present - set(manifest.files))
    yield Check("no other files", not extra, "none" if not extra else f"{len(extra)} not in the manifest")


def _check_promises(folder: Path, manifest: Manifest) -> Iterator[Check]:
    if not manifest.promises:
        yield Check("promises", False, "the manifest makes none")
    for entry in manifest.promises:
        name = str(entry.get("promise"))
        if name not in PROMISES:
            yield Check(name, False, "not a promise that this version can check")
            continue
        try:
            passed, found = PROMISES[name](folder, entry)
        except (KeyError, ValueError, TypeError, OSError):
            passed, found = False, "the files or the promise are not of the promised form"
        yield Check(name, passed, found)
