"""A spec that was uploaded, and the files that came with it.

A spec names files by paths. None of these paths is ever opened: each represents an uploaded file with the same name, and louver reads a new
spec that names the uploaded files. The records may also be the file that the explorer was started with. The release that an extension names
is one of those in the folder of releases.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from louver.app.copying import toml
from louver.data.write import replacing
from louver.errors import InputError, printable
from louver.schema.spec import VERBS
from louver.schema.validate import read_toml, toml_text

__all__ = ["ENDING", "MAX_SPEC", "NamedFile", "SpecFiles", "moved", "written"]

ENDING = ".toml"
MAX_SPEC = 1_000_000
MOST_FILES, MOST_LETTERS = 30, 120
GIVEN = ".given"
"""Folder of specs as uploaded; the copy that is read lies next to the files under the same name, because messages mention it."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a spec names.

    Attributes
    ----------
    role : str
        Its purpose.
    name : str
        The last part of its path.
    is_there : bool
    """

    role: str
    name: str
    is_there: bool


@dataclass
class SpecFiles:
    """Uploaded files in a private folder, by name.

    Attributes
    ----------
    folder : Path
        Private to the session.
    records : str or None
        The file that the explorer was started with.
    spec : str
        Name of the spec among them; empty until one is uploaded.
    """

    folder: Path
    records: str | None = None
    spec: str = ""
    names: set[str] = field(default_factory=set)

    def take(self, path: Path, name: str) -> None:
        """Add a file; it replaces one of the same name.

        Raises
        ------
        InputError
            If its name cannot be kept, the spec is too large, or there are too many.
        """
        is_plain = name.isprintable() and name[:1] not in ("", ".", "-") and not set(name) & set("/\\:")
        if not is_plain or len(name.encode()) > MOST_LETTERS:
            raise InputError("the file has an unusable name; give it a short, simple one.")
        if len(self.names | {name}) > MOST_FILES:
            raise InputError(f"there are more than {MOST_FILES} files; a spec names fewer.")
        is_spec = name.lower().endswith(ENDING)
        if is_spec and path.stat().st_size > MAX_SPEC:
            raise InputError(f"the spec is larger than {MAX_SPEC // 1_000_000} MB; choose the spec itself.")
        place = self.folder / GIVEN if is_spec else self.folder
        place.mkdir(parents=True, exist_ok=True)
        path.replace(place / name)
        self.names.add(name)
        self.spec = name if is_spec else self.spec

    def content(self) -> dict[str, Any]:
        """The spec as it was uploaded, with the sections of other verbs left out.

        Raises
        ------
        InputError
            If it is not TOML, or names what only the command line opens.
        """
        given = read_toml(self.folder / GIVEN / self.spec)
        content = {key: value for key, value in given.items() if key not in VERBS or key == "topdown"}
        source, section = content.get("source"), content.get("topdown")
        if isinstance(source, dict) and "uri" in source:
            raise InputError(
                "the spec names a database; upload one that names a file, or start louver explore with --topdown SPEC.toml."
            )
        if not isinstance(section, dict):
            raise InputError("the spec has no section [topdown]; choose one that has.")
        if "extended_by" in section:
            raise InputError(
                'the spec names that of an extension under "extended_by"; start louver explore with --topdown SPEC.toml to use both.'
            )
        if isinstance(section.get("extends"), str):
            section["extends"] = _last(section["extends"])
        return content

    def files_named(self) -> list[NamedFile]:
        """The files that the spec names, each once."""
        found = {
            (role, name): NamedFile(role, name, self._place(role, name) is not None)
            for role, name in _each(self.content(), lambda role, name: name)
        }
        return list(found.values())

    def ready(self) -> Path:
        """Write the spec that is read: every path is that of an uploaded file. Only the records may be missing until they are measured.

        Raises
        ------
        InputError
            If another file is missing.
        """
        for one in self.files_named():
            if not one.is_there and one.role != "records":
                raise InputError(f"the spec names {printable(one.name)}; choose that file too.")
        content = self.content()
        list(_each(content, lambda role, name: self._place(role, name) or name))
        path = self.folder / self.spec
        with replacing(path) as stream:  # the previous one may still be being read
            stream.write(written(content).encode())
        return path

    def missing_records(self) -> str:
        """The name of the records if they have not been given, otherwise empty."""
        return next(
            (one.name for one in self.files_named() if one.role == "records" and not one.is_there), ""
        )

    def _place(self, role: str, name: str) -> str | None:
        """The name of a file in the spec that is read: its name in the same folder, or the path that the explorer was started with."""
        if name in self.names and not name.lower().endswith(ENDING):
            return name
        records = self.records
        is_own = role == "records" and records is not None and Path(records).name == name
        return records if is_own else None


def written(content: Mapping[str, Any]) -> str:
    """A spec as read from a file."""
    return "".join(f"{toml_text(key)} = {toml(value)}\n" for key, value in content.items())


def _each(content: dict[str, Any], files_named: Callable[[str, str], str]) -> Iterator[tuple[str, str]]:
    """Every file that a spec names: its role and its name; `replacement` returns the name that replaces it."""
    for table, key, role in list(_places(content)):
        if isinstance(table.get(key), str):
            name = _last(table[key])
            table[key] = files_named(role, name)
            yield role, name


def _last(path: str) -> str:
    """The last part of a path, from any operating system."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _places(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Tables and keys that hold a path; `tests/app/test_spec_files.py` checks this against the options models."""
    if isinstance(content.get("source"), dict):
        yield content["source"], "file", "records"
    attributes = content.get("attributes")
    for attribute in attributes.values() if isinstance(attributes, dict) else ():
        if isinstance(attribute, dict):
            inner = attribute.get("hierarchy")
            yield (
                (inner, "file", "hierarchy")
                if isinstance(inner, dict)
                else (attribute, "hierarchy", "hierarchy")
            )
    section = content["topdown"]
    if isinstance(section.get("geography"), dict):
        yield section["geography"], "leaves", "list of regions"
    if isinstance(section.get("spine"), dict):
        yield section["spine"], "areas", "list of areas"
    for key in ("bounds", "covariates"):
        given = section.get(key)
        for one in given if isinstance(given, list) else ():
            if isinstance(one, dict) and (key == "bounds" or "file" in one):
                yield one, "file", "public table"


def moved(content: Mapping[str, Any], section: Mapping[str, Any]) -> dict[str, Any]:
    """A spec with the changes made on the page; None removes a key."""
    own = {**content["topdown"], **section}
    kept = {key: value for key, value in own.items() if value is not None}
    return {**copy.deepcopy(dict(content)), "topdown": kept}
