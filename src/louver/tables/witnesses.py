"""What the tables found so far move: a number per unknown that tells of every sum at once whether some table changes it.

Let x0 be one table that agrees with all that is published and x1, x2, ... others. A sum g is determined exactly if g (xi - x0)
is 0 for all of them. The moves are one combination of all differences, with coefficients that are spread over 64 bits: where g
times the combination is not 0, some table changes g, and that is proved. Where it is 0, almost surely none of the tables found
changes g, and g has to be decided by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver._mixing import GOLDEN, mixed
from louver.tables.system import IntArray, System

if TYPE_CHECKING:
    from louver.tables.evidence import Evidence
    from louver.tables.problem import Problem

__all__ = ["Moves", "Witnesses", "coefficients"]

Moves = NDArray[np.uint64]


def coefficients(start: int, length: int) -> Moves:
    """Numbers that differ for each place of one long stream; odd, so that none is 0."""
    keys = np.arange(start + 1, start + length + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    return mixed(keys) | np.uint64(1)


@dataclass(slots=True, eq=False)
class Witnesses:
    """Moves of the unknowns of one problem, and a table to count from.

    Attributes
    ----------
    base : int64 (unknowns,)
        A table that agrees with all that is published: the records where they are known.
    is_based : bool (unknowns,)
        Whether `base` is known.
    moves : uint64 (unknowns,)
    is_met : bool (unknowns,)
        Unknowns that tables were looked for of, or that are fixed.
    """

    base: IntArray
    is_based: NDArray[np.bool_]
    moves: Moves
    is_met: NDArray[np.bool_]
    n_added: int = field(default=0)

    @classmethod
    def of(cls, system: System) -> Witnesses:
        """None so far; unknowns that intervals fix do not move."""
        is_fixed = system.lower == system.upper
        base = system.lower.copy() if system.truth is None else system.truth.copy()
        is_based = is_fixed if system.truth is None else np.ones(len(base), dtype=bool)
        return cls(
            base=base,
            is_based=is_based.copy(),
            moves=np.zeros(len(base), dtype=np.uint64),
            is_met=is_fixed.copy(),
        )

    def add(self, columns: IntArray, known: Evidence) -> None:
        """The tables found for one part."""
        self.n_added += 1
        factor = coefficients(2**40 + self.n_added, 1)[0]
        self.moves[columns] += factor * known.moves[: len(columns)]
        self.is_met[columns] = True
        if known.base is not None and not self.is_based[columns].all():
            self.base[columns] = known.base[: len(columns)]
            self.is_based[columns] = True

    def by_cell(self, problem: Problem) -> tuple[IntArray, Moves]:
        """Counts and moves of the joint cells; cells of one unknown share its people in any way."""
        n_cells = len(problem.group)
        counts, moves = np.zeros(n_cells, dtype=np.int64), np.zeros(n_cells, dtype=np.uint64)
        alive = np.flatnonzero(problem.group >= 0)
        groups = problem.group[alive]
        first = alive[np.unique(groups, return_index=True)[1]]
        own = self.moves[: problem.n_groups]
        # An unknown that moves is more than 0 in some table.
        is_positive = (self.base[: problem.n_groups] > 0) | (own != 0)
        shares = np.where(is_positive[groups], coefficients(2**41, n_cells)[alive], np.uint64(0))
        is_first = np.zeros(n_cells, dtype=bool)
        is_first[first] = True
        shares[is_first[alive]] = 0
        moves[alive] = shares
        total = np.zeros(problem.n_groups, dtype=np.uint64)
        np.add.at(total, groups, shares)
        moves[first] = own - total
        counts[first] = self.base[: problem.n_groups]
        return counts, moves
