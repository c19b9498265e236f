"""The problem of hiding cells: numbers, the sums that connect them, and what must be kept from which reader.

Every number is a whole number of units of the last printed decimal. A cell is one number, however many tables show it. An attacker sees all
shown cells, knows every sum, and knows that each hidden cell lies between `lower` and `upper`; a contributor knows more. A demand states
that an attacker must consider it possible that a hidden cell is larger, or smaller, by a given amount.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Bools, Floats, Ints

__all__ = ["LARGEST", "UNBOUNDED", "Attacker", "Demand", "PatternProblem"]

UNBOUNDED = 1 << 60
"""A distance greater than any number of a table."""

LARGEST = 1 << 48
"""Largest number, in units: sums of many such numbers are exact in 64 bits, and each one is exact in a float."""


@dataclass(frozen=True, slots=True, eq=False)
class Attacker:
    """A reader of the tables.

    Attributes
    ----------
    name : str
        Name of this reader in reports.
    cells : int array
        Cells, in ascending order, about which this reader knows more than the outsider.
    down, up : int arrays
        How far each of these may lie below and above its value when it is hidden; 0 and 0 if the reader knows it.
    """

    name: str
    cells: Ints
    down: Ints
    up: Ints


@dataclass(frozen=True, slots=True)
class Demand:
    """A reader must not be able to rule out that a cell differs from its value by `need` units towards `sign`."""

    cell: int
    sign: int
    need: int
    attacker: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternProblem:
    """Which further cells to hide.

    Attributes
    ----------
    values : int array
        Value of every cell, in units.
    sums : csr_array of int8
        One row per sum: 1 for the total, -1 for each of its parts; `sums @ values` is 0.
    must_hide, may_hide : bool arrays
        Primary cells, and cells that may be hidden to protect them.
    cost : float array
        Cost of hiding each cell; 0 for primary cells.
    down, up : int arrays
        How far each cell may lie below and above its value for the outsider, when it is hidden; `UNBOUNDED` if nothing limits it.
    attackers : tuple of Attacker
        The outsider comes first.
    demands : tuple of Demand
    demand_of : callable or None
        In large tables only the outsider's demands are listed, and this gives the demand of another attacker that goes with one of them;
        None if there is no demand for that attacker. It never requires more than the outsider's.
    twins : int array or None
        For every cell, the first of the cells that are hidden and shown together with it (the cell itself if there are no others); None if
        no cells are tied.
    """

    values: Ints
    sums: csr_array
    must_hide: Bools
    may_hide: Bools
    cost: Floats
    down: Ints
    up: Ints
    attackers: tuple[Attacker, ...]
    demands: tuple[Demand, ...]
    demand_of: Callable[[int, Demand], Demand | None] | None = None
    twins: Ints | None = None

    @property
    def n_cells(self) -> int:
        return len(self.values)

    @property
    def price(self) -> Floats:
        """The cost of hiding a cell and all cells that are hidden with it."""
        if self.twins is None:
            return self.cost
        found: Floats = np.bincount(self.twins, self.cost, self.n_cells).astype(np.float64)[self.twins]
        return found

    def closed(self, hidden: Bools) -> Bools:
        """A pattern extended by the cells that are hidden with its cells."""
        if self.twins is None:
            return hidden
        is_hit = np.zeros(self.n_cells, dtype=bool)
        is_hit[self.twins[hidden]] = True
        return is_hit[self.twins]

    def twins_of(self) -> dict[int, Ints]:
        """Cell -> all cells that are hidden with it, if there are others."""
        if self.twins is None:
            return {}
        order = np.argsort(self.twins, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(self.twins[order])) + 1)
        return {int(cell): group for group in groups if len(group) > 1 for cell in group}

    def ties(self) -> csr_array:
        """`rows @ y` is 0 for every pattern y that hides tied cells together."""
        if self.twins is None:
            return csr_array((0, self.n_cells))
        cells = np.flatnonzero(self.twins != np.arange(self.n_cells))
        row = np.arange(len(cells))
        ones = np.ones(len(cells))
        data, rows = np.concatenate([ones, -ones]), np.concatenate([row, row])
        columns = np.concatenate([cells, self.twins[cells]])
        return csr_array((data, (rows, columns)), shape=(len(cells), self.n_cells))

    def spent(self, hidden: Bools) -> float:
        """Cost of a pattern."""
        return float(self.cost[hidden].sum())

    def room(self, attacker: int) -> tuple[Ints, Ints]:
        """How far each cell may lie below and above its value for an attacker."""
        one = self.attackers[attacker]
        down, up = self.down.copy(), self.up.copy()
        down[one.cells], up[one.cells] = one.down, one.up
        return down, up

    def broken(self, demand: Demand, hidden: Bools, change: Ints) -> str | None:
        """Why a change of the table is not a witness for a demand, in exact arithmetic; None if it is one.

        A witness is a table that agrees with every shown number, with all sums and with what the attacker knows, and in which the cell
        is as far from its value as the demand asks.
        """
        return self.impossible(hidden, change) or self.unfit(demand, change)

    def impossible(self, hidden: Bools, change: Ints) -> str | None:
        """The part common to all demands: why even the outsider can rule out a change."""
        if np.abs(change).max(initial=0) > LARGEST:
            return "it is too large for exact arithmetic"
        if change[~hidden].any():
            return "it changes a shown cell"
        if (self.sums @ change).any():
            return "a sum does not hold"
        if (change > self.up).any() or (-change > self.down).any():
            return "it contradicts what every reader knows"
        return None

    def unfit(self, demand: Demand, change: Ints) -> str | None:
        """The remaining conditions: why a change that the outsider considers possible is not a witness for a demand."""
        attacker = self.attackers[demand.attacker]
        own = change[attacker.cells]
        if (own > attacker.up).any() or (-own > attacker.down).any():
            return "it contradicts what the attacker knows"
        if demand.sign * int(change[demand.cell]) < demand.need:
            return "the cell does not move far enough"
        return None
