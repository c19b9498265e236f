"""Bounds and edit rules of an extension as rows over kinds of cells.

Also finds the cells that the people of a class can have, and the nearest of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Bools, Ints
from louver.topdown.extension.problem import Extension
from louver.topdown.knowledge.implied import UNBOUNDED
from louver.topdown.problem import SparseLevel

__all__ = ["Constraints", "Finder", "allowed_kinds"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constraints:
    """All rows a leaf must satisfy: coefficient of every kind of cell, and limits in every leaf.

    A kind is a set of cells that all bounds and rules treat alike.
    """

    names: tuple[str, ...]
    kind_of: Ints  # (cells,)
    coefficient: Ints  # (rows, kinds)
    lower: Ints  # (rows, leaves)
    upper: Ints
    n_bounds: int

    @classmethod
    def of(cls, extension: Extension) -> Constraints:
        statements, rules = extension.design.statements, extension.rules
        n_leaves = extension.design.spine.sizes[-1]
        rows = [s.cells.astype(np.int64) for s in statements] + [rule.coefficient for rule in rules]
        kind_of = np.unique(extension.marks, return_inverse=True)[1].astype(np.int64)
        for rule in rules:
            low = int(rule.coefficient.min())
            kind_of = kind_of * (int(rule.coefficient.max()) - low + 1) + rule.coefficient - low
        _, place, kind_of = np.unique(kind_of, return_index=True, return_inverse=True)
        open_end = np.full(n_leaves, UNBOUNDED)
        return cls(
            names=(*(s.name for s in statements), *(rule.name for rule in rules)),
            kind_of=kind_of.astype(np.int64),
            coefficient=np.array([row[place] for row in rows], dtype=np.int64).reshape(len(rows), len(place)),
            lower=np.array([*(s.lower for s in statements), *(0 * open_end for _ in rules)]).reshape(
                -1, n_leaves
            ),
            upper=np.array([*(s.upper for s in statements), *(open_end for _ in rules)]).reshape(
                -1, n_leaves
            ),
            n_bounds=len(statements),
        )

    def broken(self, leaves: SparseLevel) -> Bools:
        """Which rows are violated in which leaves, (rows, leaves)."""
        leaf = np.repeat(np.arange(leaves.n_regions), np.diff(leaves.start))
        held = np.array(
            [
                np.bincount(leaf, row[self.kind_of[leaves.cell]] * leaves.count, minlength=leaves.n_regions)
                for row in self.coefficient
            ]
        ).reshape(-1, leaves.n_regions)
        return np.asarray((held < self.lower) | (held > self.upper))

    def at(self, extension: Extension, level: int) -> tuple[Ints, Ints]:
        """Limits (rows, regions) of a level: the sums of the leaves' limits, a necessary condition."""
        lower, upper = self.lower, self.upper
        for starts in reversed(extension.design.spine.starts[level:]):
            lower = np.add.reduceat(lower, starts[:-1], axis=1) if len(lower) else lower[:, : len(starts) - 1]
            upper = np.add.reduceat(upper, starts[:-1], axis=1) if len(upper) else upper[:, : len(starts) - 1]
            upper = np.minimum(upper, UNBOUNDED)
        return np.ascontiguousarray(lower), np.ascontiguousarray(upper)


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
        """The given cell that differs from a cell in the fewest attributes, and in these by the least."""
        pairs = zip(np.unravel_index(cell, self.shape), np.unravel_index(found, self.shape), strict=True)
        steps = np.array([np.abs(theirs - mine) for mine, theirs in pairs])
        return int(found[np.lexsort((steps.sum(axis=0), (steps > 0).sum(axis=0)))[0]])


def allowed_kinds(extension: Extension, known: Constraints) -> Bools:
    """Which kinds of cells the people of each class can have, (classes, kinds)."""
    allowed = np.zeros((extension.first.n_cells, known.coefficient.shape[1]), dtype=np.bool_)
    possible = extension.design.is_possible
    allowed[extension.refinement.class_of[possible], known.kind_of[possible]] = True
    return allowed
