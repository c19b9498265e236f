"""The final edit of leaves of one household: ages, or else places in it, are changed until they fit the head's.

Notes
-----
**Implements**: Abowd et al. (2019), section 8.2.2, for items 8 to 10, on a best-effort basis. The head stays the head, at any age that
its class allows; beside a head of a given age everybody is judged alone, so the ages are tried in the order of the people who would
have to change. Bounds and rules are broken by no more than before: cells that they treat alike are taken first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from louver._arrays import Ints
from louver.topdown.extension.constraints import Constraints
from louver.topdown.extension.finder import Finder
from louver.topdown.extension.household import Household

__all__ = ["People", "settle"]


People = dict[int, int]
"""How many people of a leaf are in each cell that somebody is in."""


def settle(
    household: Household, known: Constraints, finder: Finder, class_of: Ints, leaf: int, people: People
) -> tuple[People, int]:
    """A leaf of one household in which as many fit as possible and few were changed, and how many those are."""
    cells = np.array(list(people), dtype=np.int64)
    counts = np.array(list(people.values()), dtype=np.int64)
    head = int(cells[household.head[cells]][0])
    seats = finder.cells(int(class_of[head]))
    seats = seats[household.head[seats] & (finder.kind_of[seats] == finder.kind_of[head])]
    ages, age_now = np.unique(household.years[seats]), household.years[head]
    misfit = np.array([household.misfits(cells, np.full(len(cells), age)).any(axis=0) for age in ages])
    least = misfit @ counts + (ages != age_now)
    best, price = people, (int(counts.sum()), 0)  # people who do not fit, people changed
    for number in np.lexsort((np.abs(ages - age_now), least)).tolist():
        if (0, least[number]) >= price:
            break
        age = int(ages[number])
        tried = _Leaf(household, known, finder, class_of, leaf, dict(people))
        if age != age_now:
            tried.move(head, finder.nearest(seats[household.years[seats] == age], head))
        n_left = tried.place_all(cells[misfit[number]].tolist(), age)
        if (n_left, least[number] - n_left) < price:
            best, price = tried.people, (n_left, int(least[number]) - n_left)
    return best, price[1]


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf while it is changed."""

    household: Household
    known: Constraints
    finder: Finder
    class_of: Ints
    leaf: int
    people: People

    def move(self, old: int, new: int) -> None:
        """Give one person another cell."""
        self.people[old] -= 1
        if not self.people[old]:
            del self.people[old]
        self.people[new] = self.people.get(new, 0) + 1

    def place_all(self, cells: list[int], age: int) -> int:
        """Give everybody in some cells one that fits; who moves may make room for others. The people for whom there is none."""
        n_left = sum(self.people[cell] for cell in cells)
        while n_left:
            left = {cell: self.place(cell, age) for cell in cells}
            if sum(left.values()) == n_left:
                break
            n_left, cells = sum(left.values()), [cell for cell in cells if left[cell]]
        return n_left

    def place(self, cell: int, age: int) -> int:
        """Give everybody in a cell one that fits a head of an age; the people for whom there is none."""
        found = self.finder.cells(int(self.class_of[cell]))
        found = found[self.household.members[found] & ~self.household.head[found]]
        found = found[~self.household.misfits(found, np.full(len(found), age)).any(axis=0)]
        alike = found[self.finder.kind_of[found] == self.finder.kind_of[cell]]
        others = self.household.apart_from_years
        aged = alike[others[alike] == others[cell]]
        alike = aged if len(aged) else alike
        for n_left in range(self.people[cell], 0, -1):
            kept = alike if len(alike) else found[self._excess(cell, found) <= 0]
            if not len(kept):
                return n_left
            self.move(cell, self.finder.nearest(kept, cell))
        return 0

    def _excess(self, cell: int, found: Ints) -> Ints:
        """By how much more some bound or rule is broken with one person in each of some cells instead."""
        kinds = self.finder.kind_of
        now = np.array(list(self.people), dtype=np.int64)
        counts = np.array(list(self.people.values()), dtype=np.int64)
        coefficient = self.known.coefficient
        held = (coefficient[:, kinds[now]] @ counts)[:, None]
        then = held + coefficient[:, kinds[found]] - coefficient[:, [kinds[cell]]]
        lower, upper = self.known.lower[:, [self.leaf]], self.known.upper[:, [self.leaf]]
        more = [np.maximum(lower - x, 0) + np.maximum(x - upper, 0) for x in (then, held)]
        return np.asarray((more[0] - more[1]).max(axis=0, initial=0))
