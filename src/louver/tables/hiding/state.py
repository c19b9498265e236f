"""The state of a search in a file, so that a stopped search can be resumed: the pattern, and the changes that prove it.

The file is only a starting point: every change is checked again in whole numbers before it is used, and the pattern is completed if it does
not meet a demand.
"""

from __future__ import annotations

import hashlib
import os
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from louver._arrays import Bools, Ints
from louver.errors import InputError
from louver.tables.hiding.problem import PatternProblem

__all__ = ["SavedPattern", "SearchState"]

EVERY = 20.0
"""Minimum number of seconds between writing a growing pattern twice."""

Changes = Mapping[int, tuple[Ints, Ints]]
"""Number of a demand -> cells that change, and by how many units."""


@dataclass(frozen=True, slots=True, eq=False)
class SavedPattern:
    """Hidden cells, and the changes that meet demands."""

    hidden: Bools
    changes: Changes


@dataclass(slots=True)
class SearchState:
    """A file with the best pattern so far."""

    path: Path
    _last: float = field(default=0.0, init=False)

    def read(self, problem: PatternProblem) -> SavedPattern | None:
        """The state left by an earlier search over the same tables; None if there is no file."""
        if not self.path.exists():
            if not self.path.absolute().parent.is_dir():
                raise InputError(f"the folder of {self.path} does not exist.", option="--state")
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                mark, hidden = bytes(file["mark"]), file["hidden"]
                numbers, ends, cells, change = (file[name] for name in ("numbers", "ends", "cells", "change"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise self._foreign() from error
        if mark != mark_of(problem):
            raise InputError(
                f"{self.path} is the state of a search with other tables, rules or attackers; remove it or name another file.",
                option="--state",
            )
        is_whole = all(one.dtype == np.int64 and one.ndim == 1 for one in (numbers, ends, cells, change))
        if (
            not is_whole
            or hidden.dtype != bool
            or hidden.shape != problem.values.shape
            or len(ends) != len(numbers) + 1
            or not len(cells) == len(change) == ends[-1]
            or (np.diff(ends) < 0).any()
            or not _all_below(numbers, len(problem.demands))
            or not _all_below(cells, problem.n_cells)
        ):
            raise self._foreign()
        own = zip(numbers.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True)
        return SavedPattern(hidden, {n: (cells[a:b], change[a:b]) for n, a, b in own})

    def _foreign(self) -> InputError:
        return InputError(f"{self.path} is not the state of a search; name another file.", option="--state")

    def write(self, problem: PatternProblem, hidden: Bools, changes: Changes) -> None:
        """Replace the file, readable by its owner only."""
        self._last = time.monotonic()
        sizes = [len(cells) for cells, _ in changes.values()]
        nothing = [np.zeros(0, dtype=np.int64)]
        temporary = self.path.with_name(self.path.name + ".new")
        try:
            with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                np.savez_compressed(
                    file,
                    mark=np.frombuffer(mark_of(problem), dtype=np.uint8),
                    hidden=hidden,
                    numbers=np.array(list(changes), dtype=np.int64),
                    ends=np.cumsum([0, *sizes]),
                    cells=np.concatenate(nothing + [cells for cells, _ in changes.values()]),
                    change=np.concatenate(nothing + [change for _, change in changes.values()]),
                )
            os.replace(temporary, self.path)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written.", option="--state") from error

    def write_sometimes(self, problem: PatternProblem, hidden: Bools, changes: Callable[[], Changes]) -> None:
        """Write the file, unless it was written a moment ago."""
        if time.monotonic() - self._last > EVERY:
            self.write(problem, hidden, changes())


def _all_below(numbers: Ints, limit: int) -> bool:
    return bool(((numbers >= 0) & (numbers < limit)).all())


def mark_of(problem: PatternProblem) -> bytes:
    """A digest of everything that a pattern depends on."""
    sums = problem.sums.tocsr()
    found = hashlib.sha256()
    for array in (
        problem.values,
        sums.indptr.astype(np.int64),
        sums.indices.astype(np.int64),
        sums.data.astype(np.int64),
        problem.must_hide,
        problem.may_hide,
        problem.cost,
        problem.down,
        problem.up,
        np.array([(d.cell, d.sign, d.need, d.attacker) for d in problem.demands], dtype=np.int64),
        *(part for one in problem.attackers for part in (one.cells, one.down, one.up)),
        *(() if problem.twins is None else (problem.twins,)),
    ):
        found.update(len(array).to_bytes(8, "little") + np.ascontiguousarray(array).tobytes())
    return found.digest()
