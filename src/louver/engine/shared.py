"""Objects that all batches need, in files on a path that all machines share; a worker reads each once.

A file is named and hashed where it is sent, so a worker never unpickles a file that was put in its place.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import weakref
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Generic, TypeVar

from louver.errors import InputError

__all__ = ["Fetched", "SharedObject", "forget"]

T = TypeVar("T")


class SharedObject(Generic[T]):
    """An object that is written to a file when it is first sent; the file is removed when the object is no longer referenced."""

    def __init__(self, value: T, folder: Path) -> None:
        self.value = value
        self._folder = folder
        self._file: tuple[str, str] | None = None

    def __reduce__(self) -> tuple[type[Fetched[T]], tuple[str, str]]:
        if self._file is None:
            path = self._folder / secrets.token_hex(8)
            self._file = (str(path), _write(self.value, path))
            weakref.finalize(self, path.unlink, missing_ok=True)
        return Fetched, self._file


def _write(value: object, path: Path) -> str:
    """Pickle something into a new file; return its hash."""
    with path.open("xb") as file:
        hashing = _Hashing(file)
        pickle.dump(value, hashing, protocol=5)
        file.flush()
        os.fsync(file.fileno())
    return hashing.hasher.hexdigest()


class _Hashing:
    """Hashes the data written to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.hasher = file, hashlib.sha256()

    def write(self, part: Any) -> int:
        self.hasher.update(part)
        return self._file.write(part)


@dataclass(frozen=True, slots=True)
class Fetched(Generic[T]):
    """The shared value on a worker, which reads it once."""

    path: str
    digest: str

    @property
    def value(self) -> T:
        """A shared object."""
        with _LOCK:
            if self.path not in _held:
                for old in [path for path in _held if not os.path.exists(path)]:
                    del _held[old]
                _held[self.path] = self._read()
            found: T = _held[self.path]
            return found

    def _read(self) -> object:
        try:
            packed = Path(self.path).read_bytes()
        except OSError:
            packed = b""
        if hashlib.sha256(packed).hexdigest() != self.digest:  # never unpickle a substituted file
            folder = Path(self.path).parents[1].name
            message = f"option --engine: a worker cannot find the files written to {folder}; choose a folder that all machines share."
            raise InputError(message, option="--engine")
        return pickle.loads(packed)


_LOCK = Lock()
_held: dict[str, Any] = {}


def forget() -> None:
    """Release the objects that an engine shared."""
    with _LOCK:
        _held.clear()
