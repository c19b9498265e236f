"""The cells that the people of a class can have, and which of them is nearest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Bools, Ints
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.problem import Extension

__all__ = ["Finder", "allowed_kinds"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finder:
    """The possible cells of every class."""

    allowed: Bools
    shape: tuple[int, ...]
    kind_of: Ints
    cell: Ints  # possible cells, by classes
    start: Ints

    @classmethod
    def of(cls, extension: Extension, known: Constraints) -> Finder:
        class_of = extension.refinement.class_of
        cell = np.flatnonzero(extension.design.is_possible)
        cell = cell[np.argsort(class_of[cell], kind="stable")]
        start = np.searchsorted(class_of[cell], np.arange(extension.first.n_cells + 1))
        return cls(
            allowed=allowed_kinds(extension, known),
            shape=extension.design.shape,
            kind_of=known.kind_of,
            cell=cell,
            start=start,
        )

    def cells(self, of_class: int) -> Ints:
        """The possible cells of a class."""
        return self.cell[self.start[of_class] : self.start[of_class + 1]]

    def nearest(self, found: Ints, cell: int) -> int:
        """The one among cells that differs from a cell in the fewest attributes, and in these the least."""
        pairs = zip(np.unravel_index(cell, self.shape), np.unravel_index(found, self.shape), strict=True)
        steps = np.array([np.abs(theirs - mine) for mine, theirs in pairs])
        return int(found[np.lexsort((steps.sum(axis=0), (steps > 0).sum(axis=0)))[0]])


def allowed_kinds(extension: Extension, known: Constraints) -> Bools:
    """Which kinds of cells the people of each class can have, (classes, kinds)."""
    allowed = np.zeros((extension.first.n_cells, known.coefficient.shape[1]), dtype=np.bool_)
    possible = extension.design.is_possible
    allowed[extension.refinement.class_of[possible], known.kind_of[possible]] = True
    return allowed
