"""Private scratch folders, for what is confidential and shall not outlive the process.

A folder is its owner's alone (mode 0700), goes with the process that made it, and holds a lock as long as that process
lives. A process that is killed cannot clean up: the next one that needs a folder sweeps those whose lock is free.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from functools import cache
from pathlib import Path
from types import TracebackType

from louver.errors import InputError

__all__ = ["Scratch", "try_lock"]

PREFIX = "louver-scratch-"
UNLOCKED = "louver-new-"  # a name that no sweep takes, until the lock is held
LOCK = "lock"


class Scratch:
    """A folder of our own in the system's temporary folder; use it in a `with` block or call `close`.

    Parameters
    ----------
    parent : Path, optional
        Another folder to make it in.
    prefix : str
        How its name begins; folders whose names begin so are swept, so machines that share a path need prefixes of their own.

    Raises
    ------
    InputError
        If there is no place to make one.

    Examples
    --------
    >>> with Scratch() as scratch:
    ...     _ = (scratch.path / "spilled").write_text("records")
    >>> scratch.path.exists()
    False
    """

    def __init__(self, parent: Path | None = None, prefix: str = PREFIX) -> None:
        place = Path(tempfile.gettempdir()) if parent is None else parent
        _sweep_once(place, prefix)
        try:
            self.path, lock = _make(place, prefix)
        except OSError:
            message = f"{place} has no room for temporary files; free some, or set TMPDIR to another folder."
            raise InputError(message) from None
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        self._remove()


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder under its swept name, and the descriptor that holds its lock; where there are no locks, it is never swept."""
    unlocked = f".{UNLOCKED}" if prefix.startswith(".") else UNLOCKED
    fresh = Path(tempfile.mkdtemp(prefix=unlocked, dir=parent))
    lock = os.open(fresh / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    if not try_lock(lock):
        return fresh, lock
    return fresh.rename(fresh.with_name(fresh.name.replace(unlocked, prefix, 1))), lock


def _remove(folder: Path, lock: int, owner: int) -> None:
    """Remove a folder, unless this process is a fork that inherited it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


@cache
def _sweep_once(parent: Path, prefix: str) -> None:
    sweep(parent, prefix)


def sweep(parent: Path | None = None, prefix: str = PREFIX) -> None:
    """Remove the folders of this user's processes that have died."""
    for folder in (Path(tempfile.gettempdir()) if parent is None else parent).glob(f"{prefix}*"):
        lock = _take_over(folder)
        if lock is not None:
            _remove(folder, lock, os.getpid())


def _take_over(folder: Path) -> int | None:
    """The lock of a folder that is ours and that no living process holds."""
    try:
        if folder.is_symlink() or (hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid()):
            return None
        lock = os.open(folder / LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    if try_lock(lock):
        return lock
    os.close(lock)
    return None


def try_lock(descriptor: int) -> bool:
    """Take the lock of an open file, for as long as this process or a fork of it lives."""
    if sys.platform == "win32":  # no lock that ends with its process, so nothing is ever swept
        return False
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
