"""Private scratch folders for confidential data that must not outlive the process, and sorted counts larger than memory.

A folder is accessible only to its owner (mode 0700), is removed when its process ends, and is locked as long as that process lives. A
killed process cannot clean up, so the next process that needs a folder removes those whose lock is free. Counts are kept in an unnamed
file, which disappears with the process however it ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType

import numpy as np

from louver._arrays import Ints
from louver._files import try_lock
from louver.errors import InputError
from louver.run import Run

__all__ = ["PairFile", "Scratch", "SortedCounts", "added_up"]

PREFIX = "louver-scratch-"
UNLOCKED = "louver-new-"  # a name that the sweep ignores, used until the lock is held
LOCK = "lock"


class Scratch:
    """A private folder in the system's temporary folder; use it in a `with` block or call `close`.

    Parameters
    ----------
    parent : Path, optional
        Another parent folder.
    prefix : str
        Beginning of its name; folders with this prefix are swept, so machines that share a path need separate prefixes.

    Raises
    ------
    InputError
        If no folder can be made.

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
            message = f"{place} has no space for temporary files; free some, or set TMPDIR to another folder."
            raise InputError(message) from None
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and its content."""
        self._remove()


def _make(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder with the prefix that sweeps look for, and the descriptor that holds its lock; without locks, it is never swept."""
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
    """Take the lock of a folder of this user if no living process holds it."""
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


AT_ONCE = 1 << 20
"""Number of values that are sorted together, and read together when sorted runs are merged."""

PAIR_BYTES = 16


class PairFile:
    """Pairs of whole numbers in an unnamed file, written one after another and read in any order.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pairs = PairFile(Path(folder))
    ...     pairs.append(np.array([1, 2, 3]), np.array([10, 20, 30]))
    ...     pairs.read(1, 3)
    ...     list(Path(folder).iterdir())
    (array([2, 3]), array([20, 30]))
    []
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - it is open as long as we are
        self.size = 0

    def append(self, first: Ints, second: Ints) -> None:
        """Append pairs to the existing ones."""
        self._file.seek(PAIR_BYTES * self.size)
        self._file.write(np.column_stack([first, second]).data)
        self.size += len(first)

    def read(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """First and second numbers of the pairs from `start` to `stop`."""
        pairs = np.empty((stop - start, 2), dtype=np.int64)
        self._file.seek(PAIR_BYTES * start)
        self._file.readinto(pairs.data)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def close(self) -> None:
        """Release the disk space."""
        self._file.close()


class SortedCounts:
    """Adds up counts by key, and returns them in ascending order of the keys.

    Parameters
    ----------
    folder : Path
        Private folder, in which keys and counts are kept once there are many.
    run : Run
        Checked for cancellation before every sort.

    Notes
    -----
    **Cost**: O(n log n) time for n counts; memory for `AT_ONCE` of them; disk space of 16 bytes for each key of a sorted run.
    """

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder, self._run = folder, run
        self._held: list[tuple[Ints, Ints]] = []
        self._n_held = 0
        self._spilled: PairFile | None = None
        self._ends: list[int] = []  # of the sorted runs in the file

    def add(self, key: Ints, count: Ints) -> None:
        """Add further counts; keys may repeat and come in any order."""
        self._held.append((key, count))
        self._n_held += len(key)
        if self._n_held >= AT_ONCE:
            self._add_up()
            if 2 * self._n_held >= AT_ONCE:
                self._spill()

    def merged(self) -> Iterator[tuple[Ints, Ints]]:
        """Distinct keys, ascending, and their counts, in batches; the counts are consumed."""
        self._add_up()
        if self._spilled is None:
            yield from self._held
            return
        self._spill()
        yield from self._merge(self._spilled)
        self._spilled.close()

    def _add_up(self) -> None:
        self._run.check()
        if self._held:
            parts = zip(*self._held, strict=True)
            self._held = [added_up(*(np.concatenate(part) for part in parts))]
            self._n_held = len(self._held[0][0])

    def _spill(self) -> None:
        self._spilled = self._spilled or PairFile(self._folder)
        for key, count in self._held:
            self._spilled.append(key, count)
        self._ends.append(self._spilled.size)
        self._held, self._n_held = [], 0

    def _merge(self, spilled: PairFile) -> Iterator[tuple[Ints, Ints]]:
        """Merge all sorted runs.

        Invariant: every key up to the smallest last-read key among unfinished runs has been read from all runs.
        """
        step = max(1, AT_ONCE // len(self._ends))
        place = [0, *self._ends[:-1]]
        none = np.zeros(0, dtype=np.int64)
        read = [(none, none)] * len(place)
        while True:
            self._run.check()
            for i, end in enumerate(self._ends):
                if not len(read[i][0]) and place[i] < end:
                    stop = min(place[i] + step, end)
                    read[i], place[i] = spilled.read(place[i], stop), stop
            if not any(len(key) for key, _ in read):
                return
            going_on = [
                key[-1] for (key, _), at, end in zip(read, place, self._ends, strict=True) if at < end
            ]
            upto = min(going_on, default=np.iinfo(np.int64).max)
            cuts = [int(np.searchsorted(key, upto, side="right")) for key, _ in read]
            taken = [(key[:cut], count[:cut]) for (key, count), cut in zip(read, cuts, strict=True)]
            read = [(key[cut:], count[cut:]) for (key, count), cut in zip(read, cuts, strict=True)]
            yield added_up(*(np.concatenate(part) for part in zip(*taken, strict=True)))


def added_up(key: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Each key once, ascending, with the sum of its counts.

    Examples
    --------
    >>> added_up(np.array([7, 3, 7]), np.array([1, 1, 4]))
    (array([3, 7]), array([1, 5]))
    """
    if len(key) == 0 or (key[1:] > key[:-1]).all():
        return key, count
    order = np.argsort(key, kind="stable")  # a stable sort merges runs that are already in order
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    return key[first], np.add.reduceat(count[order], first)
