"""What it means that a pattern protects, by trying every table and every pattern; nothing here knows of programs or witnesses.

A firm has a place (one of a few finest cells) and a turnover. A cell is a set of places. A reader holds a table for possible if it has a
whole number of at least 0 in every place, shows the same numbers in the shown cells, and agrees with what the reader knows of himself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

Firm = tuple[int, int]
Place = frozenset[int]


@dataclass(frozen=True)
class World:
    """Firms (place, turnover), the cells that are published, and the rule: fewer than `minimum` firms, a range in percent.

    With `zero`, a cell whose firms all have 0 must be possible at that much.
    Of counts every firm has a turnover of 1; whoever reads them knows that a cell is not empty, and must hold it for possible that
    it has `minimum` firms.
    """

    firms: tuple[Firm, ...]
    cells: tuple[Place, ...]
    n_places: int
    minimum: int
    percent: int
    asks_contributors: bool
    is_counts: bool = False
    zero: int | None = None

    def value(self, cell: Place) -> int:
        return sum(turnover for place, turnover in self.firms if place in cell)

    def members(self, cell: Place) -> list[int]:
        return [firm for firm, (place, _) in enumerate(self.firms) if place in cell]

    def primary(self) -> list[int]:
        return [
            n
            for n, cell in enumerate(self.cells)
            if 0 < len(self.members(cell)) < self.minimum or self.is_zero(cell)
        ]

    def is_zero(self, cell: Place) -> bool:
        return self.zero is not None and bool(self.members(cell)) and not self.value(cell)

    def range_of(self, cell: Place) -> int:
        """How far from its number a primary cell must be possible."""
        wide = max(1, -(-self.value(cell) * self.percent // 100))
        return max(wide, self.zero or 0) if self.is_zero(cell) else wide

    def free(self) -> list[int]:
        """Cells that may be hidden too: those that are not empty."""
        return [n for n, cell in enumerate(self.cells) if self.value(cell) and n not in self.primary()]

    def readers(self) -> list[int | None]:
        """The outsider, and firms that are alone or one of two in some cell."""
        firms = {firm for cell in self.cells if len(self.members(cell)) <= 2 for firm in self.members(cell)}
        return [None, *sorted(firms)] if self.asks_contributors else [None]


class Judge:
    """For every demand, which sets of shown cells leave it met."""

    def __init__(self, world: World) -> None:
        self.world = world
        wide = max(world.minimum, *(world.range_of(cell) for cell in world.cells))
        most = max(world.value(frozenset((place,))) for place in range(world.n_places)) + wide
        places = np.array(list(product(range(most + 1), repeat=world.n_places)), dtype=np.int16)
        in_cell = np.array(
            [[place in cell for cell in world.cells] for place in range(world.n_places)], dtype=np.int16
        )
        self.tables, self.places = places @ in_cell, places
        true = np.array([world.value(cell) for cell in world.cells])
        self.agrees = ((self.tables == true) * (1 << np.arange(len(world.cells)))).sum(axis=1)
        self.demands = [np.unique(self.agrees[possible]) for possible in self._possible()]

    def _possible(self) -> Iterable[np.ndarray]:
        """Tables that a reader holds for possible with everything hidden, and in which a primary cell is far from its value."""
        world = self.world
        for reader in world.readers():
            known = np.ones(len(self.tables), dtype=bool)
            if world.is_counts:
                known &= (self.tables >= [bool(world.members(cell)) for cell in world.cells]).all(axis=1)
            if reader is not None:
                place, own = world.firms[reader]
                known &= self.places[:, place] >= own
                for n, cell in enumerate(world.cells):
                    if world.members(cell) == [reader]:
                        known &= self.tables[:, n] == own
            for n in world.primary():
                members, value = world.members(world.cells[n]), world.value(world.cells[n])
                if members == [reader]:
                    continue
                if world.is_counts:
                    yield known & (self.tables[:, n] >= world.minimum)
                    continue
                wide = world.range_of(world.cells[n])
                own = world.firms[reader][1] if reader in members else 0
                yield known & (self.tables[:, n] >= value + wide)
                yield known & (self.tables[:, n] <= value - min(wide, value - own))

    def protects(self, hidden: Iterable[int]) -> bool:
        """Whether every demand is met when just these cells are hidden."""
        shown = sum(1 << n for n in range(len(self.world.cells)) if n not in set(hidden))
        return all(((demand & shown) == shown).any() for demand in self.demands)

    def is_open(self, cell: int, hidden: Iterable[int]) -> bool:
        """Whether the outsider holds two numbers of a hidden cell for possible."""
        shown = sum(1 << n for n in range(len(self.world.cells)) if n not in set(hidden))
        return len(np.unique(self.tables[(self.agrees & shown) == shown, cell])) > 1

    def fewest(self) -> int | None:
        """The fewest further cells that protect; None where not even all of them do."""
        primary, free = self.world.primary(), self.world.free()
        if not self.protects([*primary, *free]):
            return None
        sizes = range(len(free) + 1)
        return next(
            n for n in sizes if any(self.protects([*primary, *more]) for more in combinations(free, n))
        )


def cells_of(sets: Sequence[Iterable[int]]) -> tuple[Place, ...]:
    """Different cells in the order given."""
    return tuple(dict.fromkeys(frozenset(one) for one in sets))
