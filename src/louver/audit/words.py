"""Reasons in words: one table shows it, one minus another leaves it, or several together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from louver.audit.explain import Reason
from louver.audit.load import Loaded

__all__ = ["in_words"]


def in_words(loaded: Loaded, cells: NDArray[np.bool_], reason: Reason, lower: int, upper: int) -> str:
    """Why a sum of joint cells (a mask) is known to lie in [lower, upper]."""
    names = [f'"{loaded.pieces[number].name}"' for number in reason.pieces]
    people = _people(lower, upper)
    if len(names) == 1:
        return f"{names[0]} alone tells {people}."
    if len(names) == 2:
        for first, second in ((0, 1), (1, 0)):
            if _is_difference(loaded, cells, reason.pieces[first], reason.pieces[second]):
                return f"{names[first]} minus {names[second]} leaves {people}."
    return f"{', '.join(names[:-1])} and {names[-1]} together leave {people}."


def _people(lower: int, upper: int) -> str:
    noun = "person" if upper == 1 else "people"
    return f"{lower} {noun}" if lower == upper else f"{lower} to {upper} {noun}"


def _is_difference(loaded: Loaded, cells: NDArray[np.bool_], whole: int, part: int) -> bool:
    """Whether a cell of one table is a cell of another and these cells, and nothing else."""
    first = int(np.flatnonzero(cells)[0])
    for margin in loaded.pieces[whole].margins:
        assign = loaded.domain.assign(margin.cross)
        if assign[first] < 0:
            continue
        row = assign == assign[first]
        rest = row & ~cells
        if (cells & ~row).any() or not rest.any():
            continue
        inside = int(np.flatnonzero(rest)[0])
        for other in loaded.pieces[part].margins:
            numbers = loaded.domain.assign(other.cross)
            if numbers[inside] >= 0 and np.array_equal(numbers == numbers[inside], rest):
                return True
    return False
