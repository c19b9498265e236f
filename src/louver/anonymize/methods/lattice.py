"""The best of all combinations of codings, where each column has few: the lattice of hierarchy levels and cuts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from louver._arrays import Bools, Floats, Ints
from louver.anonymize.harmonised import Recoding, Whole
from louver.anonymize.watch import Watch

__all__ = ["Lattice", "all_codings"]

MOST_NODES = 4_000_000
"""Combinations of codings that are held in memory, 17 bytes each."""

MOST_JUDGED = 20_000
"""The same where each has to be judged: leaving records out makes intervals narrower, or finer recodings may leave out fewer."""

LOOK_AHEAD = 4096
"""Combinations that are looked up at once."""


def all_codings(whole: Whole) -> list[list[Ints]] | None:
    """All codings of every column; None where their combinations are too many to look at each."""
    found = [domain.codings() for domain in whole.domains]
    codings = [one for one in found if one is not None]
    most = MOST_NODES if whole.has_bound and whole.is_monotone else MOST_JUDGED
    is_small = len(codings) == len(found) and math.prod(map(len, codings)) <= most
    return codings if is_small else None


class Lattice:
    """Every combination of some codings of the columns, ruled out or judged.

    Parameters
    ----------
    whole : Whole
    codings : sequence of sequence of int64
        For each column.
    watch : Watch
    max_judged : int, optional
    until : float
        Share of the watch's time after which to end.
    has_bound : bool
        Whether the columns' losses are a bound (`Whole.has_bound`), or are to be taken for one.

    Notes
    -----
    Coarser recodings leave no more records out (`Whole.is_monotone`). So where one leaves out too many, all finer ones do
    (predictive tagging: Kohlmayer et al. 2012, Flash), one on few columns, all others in one block, included (LeFevre, DeWitt
    & Ramakrishnan 2005, Incognito). A record loses at least what its values lose, left
    out or not, so the sum of the columns' losses is a bound: exact for hierarchies, and for intervals and sets while nobody
    may be left out. What is neither ruled out nor bounded away is judged, those first that have most below them: of all whose
    bound is below the optimum, each rules out as many as it can.

    **Cost**: one count of the points for each combination judged; a few bytes for each combination.
    """

    def __init__(
        self,
        whole: Whole,
        codings: Sequence[Sequence[Ints]],
        watch: Watch,
        max_judged: int | None = None,
        *,
        until: float = 1.0,
        has_bound: bool | None = None,
    ) -> None:
        self.whole, self.watch = whole, watch
        self.n_judged, self.is_complete = 0, True
        self._max_judged, self._until = max_judged, until
        self._has_bound = whole.has_bound if has_bound is None else has_bound
        self._codings = codings
        self._shape = tuple(len(one) for one in codings if len(one) > 1)
        """A column with one coding has no axis: arrays have few."""

    def search(self, best: Recoding | None) -> Recoding | None:
        """The best recoding; `is_complete` says whether all were ruled out that are not better."""
        self._bound = _outer(np.add, [self._losses(place) for place in range(len(self._codings))])
        if not self._has_bound:
            self._bound = np.zeros(len(self._bound))
        finer = [_refinements(codings) for codings in self._codings if len(codings) > 1]
        is_out = np.zeros(self._shape, np.bool_)
        for node in self._by_size_below(finer, is_out.reshape(-1), best):
            if best is not None and self._bound[node] >= best.loss:
                continue
            if self._is_over:
                self.is_complete = False
                break
            axes = [int(at) for at in np.unravel_index(node, self._shape)]
            found = self._judged(axes)
            if found is None and self.whole.is_monotone:
                is_out[np.ix_(*(below[at] for below, at in zip(finer, axes, strict=True)))] = True
            if found is not None and (best is None or found.loss < best.loss):
                best = found
        return best

    @property
    def _is_over(self) -> bool:
        is_late = self.watch.is_over or self.watch.share_of_time > self._until
        return is_late or self.n_judged == self._max_judged

    def _losses(self, place: int) -> Floats:
        return np.array([self.whole.column_loss(place, coding) for coding in self._codings[place]])

    def _by_size_below(self, finer: Sequence[Bools], is_out: Bools, best: Recoding | None) -> Iterator[int]:
        """Combinations that are not ruled out, those first that are coarser than most others."""
        n_below = _outer(np.multiply, [below.sum(axis=1).astype(np.float64) for below in finer])
        open_ = np.arange(len(n_below))
        if best is not None:
            open_ = np.flatnonzero(self._bound < best.loss)
        order = open_[np.argsort(-n_below[open_], kind="stable")]
        for start in range(0, len(order), LOOK_AHEAD):
            part = order[start : start + LOOK_AHEAD]
            for node in part[~is_out[part]].tolist():
                if not is_out[node]:
                    yield node

    def _judged(self, axes: Sequence[int]) -> Recoding | None:
        self.n_judged += 1
        free = iter(axes)
        chosen = tuple(codings[next(free) if len(codings) > 1 else 0] for codings in self._codings)
        return self.whole.judged(chosen)


def _outer(combine: np.ufunc, parts: Sequence[Floats]) -> Floats:
    """A number for every combination, from one for each coding of each column."""
    found = np.full(1, combine.identity, np.float64)
    for part in parts:
        found = combine.outer(found, part).reshape(-1)
    return found


def _refinements(codings: Sequence[Ints]) -> Bools:
    """Which codings of a column, by column, refine which, by row, itself included."""
    table = np.stack(codings)
    refines = np.empty((len(table), len(table)), np.bool_)
    for i, coding in enumerate(table):
        _, first, block = np.unique(coding, return_index=True, return_inverse=True)
        # A coding refines another if the other tells no value from the first of its block.
        refines[:, i] = (table[:, first[block.reshape(-1)]] == table).all(axis=1)
    return refines
