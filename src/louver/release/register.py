"""The register: what was published about which people, as entries that are each chained to the one before.

    DIR/key                  32 bytes; people are represented only by hashes under this key
    DIR/people-HASH.json     sketch of one set of records: the people in it (`data.people`)
    DIR/000001.json          one entry: date, people, content
    DIR/head                 hash of the newest entry

An entry appears whole or not at all, under a number that only one process can take. An edited, missing or rolled back entry is noticed
when the register is opened. The folder is confidential: anyone with the key can test whether a person is in the records.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from louver._files import sync
from louver.data.people import Sketch
from louver.errors import InputError
from louver.release.strict_json import read_bytes, read_json

__all__ = ["OPTION", "Register", "RegisterEntry"]

KEY, HEAD = "key", "head"
ENTRY = re.compile(r"(\d{6})\.json")
START = "0" * 64
FORMAT = 1
"""Format of an entry."""
MOST_BYTES = 1 << 28
"""Maximum number of bytes of an entry, and of a sketch of records; no publication needs as many, and reading must be bounded."""
MOST_KEY = 1 << 10
OPTION = "--register"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterEntry:
    """One publication.

    Attributes
    ----------
    number : int
        From 1.
    created : str
    records : str
        Hash of the sketch of the records.
    same, apart : list of str
        Sketches of the same records saved differently, and of records whose people the steward declared to be different.
    content : mapping
        What was published, as the verb wrote it.
    previous, digest : str
        Hash of the previous entry, and of this one.
    """

    number: int
    created: str
    records: str
    same: Sequence[str]
    apart: Sequence[str]
    content: Mapping[str, Any]
    previous: str
    digest: str


class Register:
    """A register, opened and checked.

    Examples
    --------
    >>> register = Register(Path(tempfile.mkdtemp()) / "register")
    >>> _ = register.append({"tables": []}, "ab")
    >>> [entry.number for entry in Register(register.folder).entries]
    [1]
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.key = self._made_key()
        self.entries: Sequence[RegisterEntry] = self._read()

    @property
    def head(self) -> str:
        """Hash of the newest entry."""
        return self.entries[-1].digest if self.entries else START

    def append(
        self,
        content: Mapping[str, Any],
        records: str,
        *,
        same: Iterable[str] = (),
        apart: Iterable[str] = (),
    ) -> str:
        """Add an entry after the ones that were read when the register was opened, and return its hash.

        Raises
        ------
        InputError
            If another entry was added in the meantime.
        """
        number = len(self.entries) + 1
        body = {
            "format": FORMAT,
            "number": number,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "records": records,
            "same": sorted(same),
            "apart": sorted(apart),
            "content": dict(content),
            "previous": self.head,
        }
        digest = _digest(body)
        text = json.dumps({**body, "digest": digest}, ensure_ascii=False)
        if len(text.encode()) > MOST_BYTES:
            raise self._fault(
                "cannot store a publication this large; publish fewer or smaller tables at once"
            )
        self._put(f"{number:06d}.json", text)
        self._set_head(digest)
        return digest

    def keep_sketch(self, sketch: Sketch) -> str:
        """Store a sketch of the people in some records, and return its hash."""
        digest = sketch.digest
        try:
            with suppress(FileExistsError):
                self._put_new(f"people-{digest}.json", sketch.to_json())
        except OSError:
            raise self._fault("cannot be written; check permissions and disk space") from None
        return digest

    def sketch(self, digest: str) -> Sketch:
        """The sketch of the people in an entry's records."""
        try:
            text = read_bytes(self.folder / f"people-{digest}.json", MOST_BYTES)
            is_good = hashlib.sha256(text).hexdigest() == digest
            found = Sketch.from_json(text.decode("utf-8")) if is_good else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            found = None
        if found is None:
            raise self._fault(
                f"lacks people-{digest[:8]}..., or that file was changed; restore it from a copy"
            )
        return found

    def _made_key(self) -> bytes:
        """The key, which is created if the register is new."""
        path = self.folder / KEY
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            names = os.listdir(self.folder)
            if any(not name.startswith(".") for name in names) and not path.exists():
                raise self._fault("is not a register but contains other files; name a new or an empty folder")
            with suppress(FileExistsError):
                self._put_new(KEY, secrets.token_bytes(32).hex())
            key = bytes.fromhex(read_bytes(path, MOST_KEY).decode("ascii"))
        except (OSError, ValueError):
            raise self._fault("cannot be opened; check the folder and its key") from None
        return key

    def _read(self) -> list[RegisterEntry]:
        """Every entry, each of them checked."""
        numbers = sorted(
            int(found[1]) for name in os.listdir(self.folder) if (found := ENTRY.fullmatch(name))
        )
        entries: list[RegisterEntry] = []
        previous = START
        for expected, number in enumerate(numbers, start=1):
            if number != expected:
                raise self._fault(f"lacks entry {expected}; restore it from a copy")
            entries.append(self._entry(number, previous))
            previous = entries[-1].digest
        head = self.folder / HEAD
        known = {START, *(entry.digest for entry in entries)}
        if head.exists() and not self._is_head(head, known):
            raise self._fault("was rolled back: its newest entry is gone; restore it from a copy")
        return entries

    @staticmethod
    def _is_head(path: Path, known: Collection[str]) -> bool:
        try:
            return read_bytes(path, MOST_KEY).decode("ascii").strip() in known
        except ValueError:
            return False

    def _entry(self, number: int, previous: str) -> RegisterEntry:
        try:
            body = read_json(self.folder / f"{number:06d}.json", MOST_BYTES)
            digest = body.pop("digest")
            is_good = digest == _digest(body) and body["previous"] == previous and body["number"] == number
            if body.pop("format") != FORMAT and is_good:
                raise self._fault(
                    f"has a format that this version of louver does not read (entry {number}); use the version that wrote it"
                )
            entry = RegisterEntry(**body, digest=digest)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            is_good = False
        if not is_good:
            raise self._fault(f"was edited: entry {number} does not match its hash; restore it from a copy")
        return entry

    def _put(self, name: str, text: str) -> None:
        try:
            self._put_new(name, text)
        except FileExistsError:
            raise InputError(
                f"option {OPTION}: another publication was entered in the meantime; run the audit again.",
                option=OPTION,
            ) from None
        except OSError:
            raise self._fault("cannot be written; check permissions and disk space") from None

    def _put_new(self, name: str, text: str) -> None:
        """Write a file that must not exist yet: flushed to disk, then linked into place in one step."""
        handle, unfinished = tempfile.mkstemp(dir=self.folder, prefix=".unfinished-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.link(unfinished, self.folder / name)
        finally:
            os.unlink(unfinished)
        sync(self.folder)

    def _set_head(self, digest: str) -> None:
        handle, unfinished = tempfile.mkstemp(dir=self.folder, prefix=".unfinished-")
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(digest)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, self.folder / HEAD)
        sync(self.folder)

    def _fault(self, problem: str) -> InputError:
        return InputError(
            f"option {OPTION}: {self.folder.name} {problem}.", option=OPTION, file=self.folder.name
        )


def _digest(body: Mapping[str, Any]) -> str:
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
