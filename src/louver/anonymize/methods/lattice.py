"""The best recoding of all, where each column has few codings: the lattice of hierarchy levels and cuts."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from louver._arrays import Floats, Ints
from louver.anonymize.harmonised import Recoding, Whole
from louver.anonymize.watch import Watch

__all__ = ["Lattice"]

LARGEST_SUBSET = 3
"""Columns that are looked at together before a recoding of all is judged."""

MOST_JUDGED = 20_000
"""Recodings, where each has to be judged because leaving records out makes intervals narrower."""


class Lattice:
    """Every combination of codings of the columns, searched in depth.

    Notes
    -----
    A recoding of some columns, all others in one block, is coarser than any that completes it; coarser recodings leave no more
    records out, because every requirement is closed under uniting classes. So where some columns alone leave out too many,
    no completion has to be looked at (LeFevre, DeWitt & Ramakrishnan 2005, Incognito). A record loses at least what its
    values lose, left out or not, so the sum of the columns' losses is a bound: exact for hierarchies, and for intervals
    and sets while nobody may be left out. Where somebody may, they are judged one by one, if they are few.

    **Cost**: one count of the points for each combination that its columns taken two and three at a time do not rule out.
    """

    def __init__(self, whole: Whole, watch: Watch, max_judged: int | None = None) -> None:
        self.whole, self.watch = whole, watch
        self.n_judged, self.is_complete = 0, True
        self._max_judged = max_judged
        self._known: dict[tuple[tuple[int, int], ...], bool] = {}
        self._parts: dict[tuple[int, ...], Whole] = {}
        found = [domain.codings() for domain in whole.domains]
        self.is_small = all(codings is not None for codings in found)
        self._codings: list[list[Ints]] = []
        self._losses: list[Floats] = []
        for place, codings in enumerate(found if self.is_small else []):
            assert codings is not None
            losses = np.array([whole.column_loss(place, coding) for coding in codings])
            order = np.argsort(losses, kind="stable")
            self._codings.append([codings[i] for i in order])
            self._losses.append(losses[order])
        self._has_bound = not whole.problem.max_suppressed or all(
            domain.level(domain.coarsest()) is not None for domain in whole.domains
        )
        if self.is_small and not self._has_bound:
            self.is_small = float(np.prod([float(len(c)) for c in self._codings])) <= MOST_JUDGED

    def search(self, best: Recoding | None) -> Recoding | None:
        """The best recoding; `is_complete` says whether all were ruled out that are not better."""
        self._best = best
        self._least = [float(losses[0]) if self._has_bound else 0.0 for losses in self._losses]
        self._descend((), 0.0)
        return self._best

    def _descend(self, chosen: tuple[int, ...], lost: float) -> None:
        """Try every coding of the next column below the codings chosen for the columns before it."""
        place = len(chosen)
        if place == len(self._codings):
            self._judge(chosen)
            return
        for number, loss in enumerate(self._losses[place].tolist()):
            if self.watch.is_over or (self._max_judged is not None and self.n_judged >= self._max_judged):
                self.is_complete = False
                return
            bound = lost + (loss if self._has_bound else 0.0)
            if self._best is not None and bound + sum(self._least[place + 1 :]) >= self._best.loss:
                if self._has_bound:
                    return
                continue
            if self._can_be(chosen, number):
                self._descend((*chosen, number), bound)

    def _can_be(self, chosen: tuple[int, ...], number: int) -> bool:
        """Whether no few columns, the last among them, leave out too many."""
        place = len(chosen)
        for n_others in range(min(LARGEST_SUBSET, place + 1)):
            for others in combinations(range(place), n_others):
                key = (*((other, chosen[other]) for other in others), (place, number))
                if not self._is_possible(key):
                    return False
        return place < LARGEST_SUBSET or self._is_possible((*enumerate(chosen), (place, number)))

    def _is_possible(self, key: tuple[tuple[int, int], ...]) -> bool:
        if key not in self._known:
            places = tuple(place for place, _ in key)
            if places not in self._parts:
                self._parts[places] = self.whole.onto(places)
            self.n_judged += 1
            codings = tuple(self._codings[place][number] for place, number in key)
            self._known[key] = self._parts[places].is_possible(codings)
        return self._known[key]

    def _judge(self, chosen: tuple[int, ...]) -> None:
        self.n_judged += 1
        found = self.whole.judged(tuple(self._codings[place][number] for place, number in enumerate(chosen)))
        if found is not None and (self._best is None or found.loss < self._best.loss):
            self._best = found
