"""Locks and durable writes: by POSIX where it is available, otherwise by portable means.

Without `fcntl` (on Windows), no lock on a folder ends with its process. So nothing is locked there, and what a killed run left behind is
never removed by another run; and since folders cannot be opened, only files are synced.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:
    fcntl = None

__all__ = ["FolderLock", "has_locks", "lock_folder", "sync", "try_lock"]


def has_locks() -> bool:
    """Whether this system has locks that end with their process."""
    return fcntl is not None


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file, for as long as this process or a fork of it lives; False if it is held elsewhere or there are no
    locks."""
    if not has_locks():
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class FolderLock:
    """A folder that this process has locked until `close`; the descriptor is None if folders cannot be locked."""

    descriptor: int | None

    def close(self) -> None:
        """Release the folder."""
        if self.descriptor is not None:
            os.close(self.descriptor)


def lock_folder(folder: Path) -> FolderLock | None:
    """Lock a folder, waiting while another process holds it; None if it was removed in the meantime."""
    if not has_locks():
        return FolderLock(None) if folder.exists() else None
    with suppress(FileNotFoundError):
        descriptor = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks is never swept
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():
            return FolderLock(descriptor)
        os.close(descriptor)
    return None


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to disk."""
    if not has_locks() and path.is_dir():
        return
    descriptor = os.open(
        path, os.O_RDONLY if has_locks() else os.O_RDWR
    )  # Windows can only sync files that are open for writing
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
