"""Redesign search: arrangements without a disclosed small cell that keep the most information.

Wright & Smucker (2014), section 4.3, explore such redesigns by hand. Here a redesign (`redesigns.py`) gives each attribute a
role and a partition of its labels (`merging.py`). Unless told otherwise, no row of it may tell a person's status either.

Utility. The attributes first put in the columns are the responses Y, those in the rows the predictors X. A
redesign with predictors X' (wherever they stand), responses Y' in the columns and Z' moved to the rows
keeps I(X'; Y' | Z') bits of the I(X; Y) bits of the first arrangement. Merging labels of X' or Y', summing over
attributes and moving responses to the rows never raise it, so a best-first search can prove its answer.
"""

from __future__ import annotations

import heapq
import time
from typing import Literal

from louver.bounds.check import DisclosureRules, summary_of
from louver.bounds.problem import Arrangement
from louver.bounds.redesigns import Redesigns, State, Wishes
from louver.bounds.suggestions import Suggestion, Suggestions
from louver.bounds.summary import Summary
from louver.data.histogram import Histogram
from louver.run import Run

__all__ = ["Avoid", "search_redesigns"]

Avoid = Literal["small", "attribute"]

TOLERANCE_BITS = 1e-9
"""Differences in information below this are rounding errors of the logarithms."""


def search_redesigns(
    histogram: Histogram,
    arrangement: Arrangement,
    options: DisclosureRules,
    *,
    avoid: Avoid = "attribute",
    wishes: Wishes | None = None,
    seconds: float = 30.0,
    run: Run | None = None,
) -> Suggestions:
    """Search for safe redesigns of an arrangement, for at most `seconds`.

    Parameters
    ----------
    histogram : Histogram
        The table before recodes of the arrangement; redesigns are at least as coarse as those recodes, and theirs
        are from the labels of this table.
    avoid : {"attribute", "small"}
        Whether a redesign may have rows that tell a status.
    wishes : Wishes, optional
        What redesigns must leave alone.
    run : Run, optional
        Told the share of time used and the number of arrangements examined; what is found so far is kept when it is hurried.

    Returns
    -------
    Suggestions
        `is_proved` when nothing left unexamined could keep more information than the first line.

    Notes
    -----
    Two queues over the same states take turns. One pops the state whose redesigns could keep the most information,
    which yields the proof. The other follows the fewest disclosed small cells, leaves out what cannot
    beat the best safe arrangement so far, and finds good ones early. Plain moves, without merging, are examined before all else,
    and one that is safe is told even where a merge keeps more or shows less.
    """
    started = time.perf_counter()
    run = Run() if run is None else run
    search = _Search(Redesigns(histogram, arrangement, wishes), options, run, started + seconds, avoid)
    while search.by_bits:
        search.prove()
        search.dive()
        share = min(1.0, (time.perf_counter() - started) / seconds)
        lost, least = search.standing
        run.report(f"searching redesigns, {search.examined} arrangements examined", share, 1.0, lost, least)
        if search.is_over:
            break
    return search.suggestions(time.perf_counter() - started)


class _Search:
    """The states met so far and the safe arrangements among them that nothing beats."""

    def __init__(
        self,
        space: Redesigns,
        options: DisclosureRules,
        run: Run,
        deadline: float,
        avoid: Avoid = "attribute",
    ) -> None:
        self.space, self.options, self.run, self.deadline = space, options, run, deadline
        self.avoid = avoid
        self.by_bits: list[tuple[float, int, State]] = []
        self.by_risk: list[tuple[int, float, int, State]] = []
        self.bound: dict[State, float] = {}
        self.summaries: dict[State, Summary] = {}
        self.archive: list[Suggestion] = []
        self.plain: list[Suggestion] = []
        self.total_bits = space.bits(space.start())
        self._meet(space.start())
        self._follow(space.start())
        for state in space.moves():
            if run.is_hurried:
                return
            self._meet(state)
            self._examine(state)

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.deadline or self.run.is_hurried

    @property
    def examined(self) -> int:
        return len(self.summaries)

    @property
    def best_bits(self) -> float:
        return max((line.bits for line in self.archive), default=-1.0)

    @property
    def standing(self) -> tuple[float | None, float | None]:
        """Share of the information that the best safe arrangement so far loses, and that every one loses at least."""
        most_left = max(-self.by_bits[0][0] if self.by_bits else 0.0, self.best_bits)
        if not self.archive:
            return None, None
        return 1 - _share(self.best_bits, self.total_bits), max(0.0, 1 - _share(most_left, self.total_bits))

    def prove(self) -> None:
        """Examine the state that could lead to the most information."""
        _, _, state = heapq.heappop(self.by_bits)
        self._examine(state)
        for child in self.space.children(state):
            self._meet(child)

    def dive(self) -> None:
        """Examine all redesigns of the least disclosive state that could still lead to a better one."""
        while self.by_risk:
            _, _, _, state = heapq.heappop(self.by_risk)
            if self.bound[state] > self.best_bits + TOLERANCE_BITS:
                for child in self.space.children(state):
                    if self.is_over:
                        return
                    if child not in self.summaries:
                        self._meet(child)
                        self._follow(child)
                return

    def _meet(self, state: State) -> None:
        if state not in self.bound:
            self.bound[state] = self.space.bits_bound(state)
            heapq.heappush(self.by_bits, (-self.bound[state], len(self.bound), state))

    def _follow(self, state: State) -> None:
        if self.bound[state] > self.best_bits + TOLERANCE_BITS:
            n_bad = self._n_bad(self._examine(state))
            heapq.heappush(self.by_risk, (n_bad, -self.bound[state], self.examined, state))

    def _n_bad(self, summary: Summary) -> int:
        """Disclosed small cells, and rows that tell a status where they are to be avoided."""
        return summary.disclosed_small_cells + (summary.certain_rows if self.avoid == "attribute" else 0)

    def _examine(self, state: State) -> Summary:
        self.run.check()
        if state not in self.summaries:
            redesign = self.space.arrangement(state)
            summary = summary_of(self.space.original, redesign, self.options)
            self.summaries[state] = summary
            if self._n_bad(summary) == 0:
                bits = self.space.bits(state)
                found = Suggestion(
                    arrangement=redesign,
                    summary=summary,
                    bits=bits,
                    share=_share(bits, self.total_bits),
                    merged=self.space.merged(state),
                    is_far=self.space.is_far(state),
                )
                self.archive = _kept(self.archive, found)
                if self.space.is_plain(state):
                    self.plain = _kept(self.plain, found)
        return self.summaries[state]

    def suggestions(self, seconds: float) -> Suggestions:
        plain = [line for line in self.plain if line not in self.archive]
        order = sorted(
            self.archive + plain, key=lambda line: (line.is_far, -round(line.bits, 9), line.summary.risk)
        )
        most_left = -self.by_bits[0][0] if self.by_bits else -1.0
        return Suggestions(
            lines=tuple(order),
            avoid=self.avoid,
            is_proved=most_left <= self.best_bits + TOLERANCE_BITS,
            examined=self.examined,
            bits=self.total_bits,
            seconds=seconds,
        )


def _kept(archive: list[Suggestion], new: Suggestion) -> list[Suggestion]:
    """The archive with `new` and without what it beats, unless a kept one beats it."""
    if any(_beats(old, new) for old in archive):
        return archive
    return [old for old in archive if not _beats(new, old)] + [new]


def _beats(a: Suggestion, b: Suggestion) -> bool:
    """Whether `a` is as good in every respect; of two that are equal, one that merges no more beats the other."""
    return _is_as_good(a, b) and (not _is_as_good(b, a) or a.n_merged <= b.n_merged)


def _is_as_good(a: Suggestion, b: Suggestion) -> bool:
    return (
        a.bits >= b.bits - TOLERANCE_BITS
        and a.is_far <= b.is_far
        and a.summary.certain_rows <= b.summary.certain_rows
        and a.summary.disclosed_rows <= b.summary.disclosed_rows
        and a.summary.disclosed_zero_cells <= b.summary.disclosed_zero_cells
    )


def _share(bits: float, total: float) -> float:
    return bits / total if total > TOLERANCE_BITS else 1.0
