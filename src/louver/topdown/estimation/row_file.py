"""Rows of numbers in a scratch file: what a whole level has of something, read and written some regions at a time."""

from __future__ import annotations

import secrets
import weakref
from pathlib import Path

import numpy as np

from louver._arrays import Floats
from louver.data.scratch import Scratch

__all__ = ["RowFile"]


class RowFile:
    """Rows of real numbers of one width, in a file that goes with whoever made it.

    A copy, on this machine or another that sees the folder, reads the same file.

    Parameters
    ----------
    width : int
        Numbers of a row.
    folder : Path, optional
        Where the file lies; a scratch folder of its own by default.

    Examples
    --------
    >>> rows = RowFile(2)
    >>> rows.write(1, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.read(2, 3).tolist()
    [[3.0, 4.0]]
    """

    def __init__(self, width: int, folder: Path | None = None) -> None:
        self.width = width
        self._scratch = Scratch() if folder is None else None  # swept after a process that was killed
        place = self._scratch.path if self._scratch is not None else folder
        assert place is not None
        self.path = place.absolute() / f".rows-{secrets.token_hex(8)}"
        self.path.touch(exist_ok=False)
        if self._scratch is None:
            weakref.finalize(self, self.path.unlink, missing_ok=True)

    def __getstate__(self) -> dict[str, object]:
        return {"width": self.width, "path": self.path, "_scratch": None}

    def write(self, start: int, rows: Floats) -> None:
        """Put rows at the places from `start` on."""
        with self.path.open("r+b") as file:
            file.seek(8 * self.width * start)
            file.write(np.ascontiguousarray(rows, np.float64).data)

    def read(self, start: int, stop: int) -> Floats:
        """The rows start to stop."""
        rows = np.empty((stop - start, self.width))
        with self.path.open("rb") as file:
            file.seek(8 * self.width * start)
            n_read = file.readinto(rows.data)
        if n_read != rows.nbytes:  # what memory held before must never be taken for rows
            raise OSError(f"{self.path.name} ends before its rows do")
        return rows
