"""Redesign search: arrangements without a disclosed small cell that keep the most information.

Wright & Smucker (2014), section 4.3, explore such redesigns by hand. Here a redesign gives each attribute a
role (row, column, summed over) and a partition of its labels: adjacent labels of ordered attributes may be
merged, any labels of nominal ones, and where there is a hierarchy its levels are used.

Utility. The attributes first put in the columns are the responses Y, those in the rows the predictors X. A
redesign with predictors X' (wherever they stand), responses Y' in the columns and Z' moved to the rows
keeps I(X'; Y' | Z') bits of the I(X; Y) bits of the first arrangement. Merging labels of X' or Y', summing over
attributes and moving responses to the rows never raise it, so a best-first search can prove its answer.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import prod

import numpy as np

from louver._arrays import Ints
from louver.bounds.audit import AuditOptions, summary_of
from louver.bounds.problem import Arrangement
from louver.bounds.result import Suggestion, Suggestions, Summary
from louver.data.histogram import Histogram
from louver.run import Run
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

__all__ = ["suggest"]

ROW, COL, OMIT = "row", "col", "omit"
Partition = tuple[tuple[int, ...], ...]
State = tuple[tuple[str, Partition], ...]

DENSE_CELLS = 100_000
"""Up to this many cells an entropy is summed over all of them, beyond it over those that occur."""

TOLERANCE_BITS = 1e-9
"""Differences in information below this are rounding errors of the logarithms."""


def suggest(
    histogram: Histogram,
    arrangement: Arrangement,
    options: AuditOptions,
    *,
    seconds: float = 30.0,
    run: Run | None = None,
) -> Suggestions:
    """Search for safe redesigns of an arrangement, for at most `seconds`.

    Parameters
    ----------
    histogram : Histogram
        The table before recodes of the arrangement; redesigns are at least as coarse as those recodes, and theirs
        are from the labels of this table.
    run : Run, optional
        Told the share of time used and the number of arrangements examined.

    Returns
    -------
    Suggestions
        `is_proved` when nothing left unexamined could keep more information than the first line.

    Notes
    -----
    Two queues over the same states take turns. One pops the state whose redesigns could keep the most information,
    which yields the proof. The other follows the fewest disclosed small cells, leaves out what cannot
    beat the best safe arrangement so far, and finds good ones early.
    """
    started = time.perf_counter()
    run = Run() if run is None else run
    search = _Search(_Space(histogram, arrangement), options, run, started + seconds)
    while search.by_bits and not search.is_over:
        search.prove()
        search.dive()
        share = min(1.0, (time.perf_counter() - started) / seconds)
        run.report(f"searching redesigns, {search.examined} arrangements examined", share, 1.0)
    return search.suggestions(time.perf_counter() - started)


class _Search:
    """The states met so far and the safe arrangements among them that nothing beats."""

    def __init__(self, space: _Space, options: AuditOptions, run: Run, deadline: float) -> None:
        self.space, self.options, self.run, self.deadline = space, options, run, deadline
        self.by_bits: list[tuple[float, int, State]] = []
        self.by_risk: list[tuple[int, float, int, State]] = []
        self.bound: dict[State, float] = {}
        self.summaries: dict[State, Summary] = {}
        self.archive: list[Suggestion] = []
        self.total_bits = space.bits(space.start())
        self._meet(space.start())
        self._follow(space.start())

    @property
    def is_over(self) -> bool:
        return time.perf_counter() >= self.deadline

    @property
    def examined(self) -> int:
        return len(self.summaries)

    @property
    def best_bits(self) -> float:
        return max((line.bits for line in self.archive), default=-1.0)

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
            small_cells = self._examine(state).disclosed_small_cells
            heapq.heappush(self.by_risk, (small_cells, -self.bound[state], self.examined, state))

    def _examine(self, state: State) -> Summary:
        self.run.check()
        if state not in self.summaries:
            redesign = self.space.arrangement(state)
            summary = summary_of(self.space.original, redesign, self.options)
            self.summaries[state] = summary
            if summary.disclosed_small_cells == 0:
                bits = self.space.bits(state)
                share = _share(bits, self.total_bits)
                self._keep(Suggestion(arrangement=redesign, summary=summary, bits=bits, share=share))
        return self.summaries[state]

    def _keep(self, new: Suggestion) -> None:
        """Keep `new` and drop what it beats, unless a kept one is as good in every respect."""
        if not any(_is_as_good(old, new) for old in self.archive):
            self.archive = [old for old in self.archive if not _is_as_good(new, old)] + [new]

    def suggestions(self, seconds: float) -> Suggestions:
        lines = sorted(self.archive, key=lambda line: (-round(line.bits, 9), line.summary.risk))
        most_left = -self.by_bits[0][0] if self.by_bits else -1.0
        return Suggestions(
            lines=tuple(lines),
            is_proved=most_left <= self.best_bits + TOLERANCE_BITS,
            examined=self.examined,
            bits=self.total_bits,
            seconds=seconds,
        )


def _is_as_good(a: Suggestion, b: Suggestion) -> bool:
    return (
        a.bits >= b.bits - TOLERANCE_BITS
        and a.summary.disclosed_rows <= b.summary.disclosed_rows
        and a.summary.disclosed_zero_cells <= b.summary.disclosed_zero_cells
    )


def _share(bits: float, total: float) -> float:
    return bits / total if total > TOLERANCE_BITS else 1.0


class _Space:
    """All redesigns of one arrangement: how to walk them and what they keep."""

    def __init__(self, histogram: Histogram, arrangement: Arrangement) -> None:
        self.original = histogram.marginalise((*arrangement.rows, *arrangement.cols))
        self.histogram = self.original.recode(*arrangement.recodes)
        self.attributes = self.histogram.attributes
        self._base = [_base_codes(attribute, arrangement) for attribute in self.original.attributes]
        self.responses = frozenset(arrangement.cols)
        self._maps: dict[tuple[int, Partition], Ints] = {}
        self._recodes: dict[tuple[int, Partition], Recode] = {}
        self._roles = [COL if a.name in self.responses else ROW for a in self.attributes]

    def start(self) -> State:
        finest = [tuple((code,) for code in range(a.size)) for a in self.attributes]
        return tuple(zip(self._roles, finest, strict=True))

    def children(self, state: State) -> Iterator[State]:
        """States one step coarser: a merge, an attribute summed over, or one moved across.

        At least one predictor and one response in the columns stay; a row attribute stays.
        """
        for i, (role, partition) in enumerate(state):
            if role == OMIT:
                continue
            is_response = self.attributes[i].name in self.responses
            steps = [(role, merged) for merged in _coarser(self.attributes[i], partition)]
            steps.append((OMIT, ()))
            if role == (COL if is_response else ROW):
                steps.append((ROW if role == COL else COL, partition))
            for step in steps:
                child = (*state[:i], step, *state[i + 1 :])
                if self._is_valid(child):
                    yield child

    def _is_valid(self, state: State) -> bool:
        roles = [
            (role, a.name in self.responses) for (role, _), a in zip(state, self.attributes, strict=True)
        ]
        return (
            any(role == ROW for role, _ in roles)
            and (COL, True) in roles
            and any(role != OMIT and not is_response for role, is_response in roles)
        )

    def arrangement(self, state: State) -> Arrangement:
        """The redesign in the steward's terms."""
        rows: list[str] = []
        cols: list[str] = []
        recodes: list[Recode] = []
        for i, ((role, partition), attribute) in enumerate(zip(state, self.attributes, strict=True)):
            if role == OMIT:
                continue
            (rows if role == ROW else cols).append(attribute.name)
            if len(partition) < self.original.attributes[i].size:
                recodes.append(self._recode(i, partition))
        return Arrangement(rows=tuple(rows), cols=tuple(cols), recodes=tuple(recodes))

    def bits(self, state: State) -> float:
        """I(X'; Y' | Z') of the empirical distribution."""
        predictors, responses, given = self._split(state)
        return (
            self._entropy(state, predictors + given)
            + self._entropy(state, responses + given)
            - self._entropy(state, predictors + responses + given)
            - self._entropy(state, given)
        )

    def bits_bound(self, state: State) -> float:
        """The most that this state or any coarser one keeps.

        Merging labels of Z' can raise I(X'; Y' | Z'), but never above I(X'; Y', Z').
        """
        predictors, responses, given = self._split(state)
        if all(len(state[i][1]) <= 2 for i in given):
            return self.bits(state)
        both = responses + given
        return (
            self._entropy(state, predictors)
            + self._entropy(state, both)
            - self._entropy(state, predictors + both)
        )

    def _split(self, state: State) -> tuple[list[int], list[int], list[int]]:
        predictors: list[int] = []
        responses: list[int] = []
        given: list[int] = []
        for i, ((role, _), attribute) in enumerate(zip(state, self.attributes, strict=True)):
            if role != OMIT:
                is_response = attribute.name in self.responses
                (given if is_response and role == ROW else responses if is_response else predictors).append(i)
        return predictors, responses, given

    def _entropy(self, state: State, kept: Sequence[int]) -> float:
        """Entropy in bits of the kept attributes after merging."""
        index = np.zeros(len(self.histogram.counts), dtype=np.int64)
        for i in kept:
            index *= len(state[i][1])
            index += self._map(i, state[i][1])[self.histogram.codes[:, i]]
        if prod(len(state[i][1]) for i in kept) > DENSE_CELLS:
            _, index = np.unique(index, return_inverse=True)
        p = np.bincount(index, weights=self.histogram.counts) / self.histogram.total
        p = p[p > 0]
        return float(-(p * np.log2(p)).sum())

    def _map(self, i: int, partition: Partition) -> Ints:
        if (i, partition) not in self._maps:
            new_codes = np.zeros(self.attributes[i].size, dtype=np.int64)
            for group, codes in enumerate(partition):
                new_codes[list(codes)] = group
            self._maps[i, partition] = new_codes
        return self._maps[i, partition]

    def _recode(self, i: int, partition: Partition) -> Recode:
        if (i, partition) not in self._recodes:
            attribute, original = self.attributes[i], self.original.attributes[i]
            merge: dict[str, tuple[str, ...]] = {}
            for codes in partition:
                old = tuple(original.labels[code] for code in np.flatnonzero(np.isin(self._base[i], codes)))
                if len(old) > 1:
                    merge[_merged_label(attribute, codes)] = old
            self._recodes[i, partition] = Recode(attribute.name, merge=merge)
        return self._recodes[i, partition]


def _base_codes(attribute: Attribute, arrangement: Arrangement) -> Ints:
    """Code of each label of an attribute after the recodes of the first arrangement."""
    codes = np.arange(attribute.size)
    for recode in arrangement.recodes:
        if recode.attribute == attribute.name:
            attribute, mapping = attribute.recoded(recode)
            codes = mapping[codes]
    return codes


def _coarser(attribute: Attribute, partition: Partition) -> Iterator[Partition]:
    """Partitions one step coarser with at least two groups left; one group would be the same as summing over."""
    if attribute.hierarchy is not None:
        yield from _next_level(attribute, partition)
    elif len(partition) > 2:
        pairs = pairwise(partition) if attribute.is_ordered else combinations(partition, 2)
        for first, second in pairs:
            merged = tuple(sorted((*first, *second)))
            rest = [group for group in partition if group not in (first, second)]
            yield tuple(sorted([*rest, merged]))


def _next_level(attribute: Attribute, partition: Partition) -> Iterator[Partition]:
    """The next level of the hierarchy that differs from this partition."""
    hierarchy = attribute.hierarchy
    assert hierarchy is not None
    for level in range(1, hierarchy.n_levels):
        groups: dict[str, list[int]] = {}
        for code, label in enumerate(attribute.labels):
            groups.setdefault(hierarchy.ancestor_of(label, level), []).append(code)
        lifted = tuple(sorted(tuple(codes) for codes in groups.values()))
        if 2 <= len(lifted) < len(partition):
            yield lifted
            return


def _merged_label(attribute: Attribute, codes: Sequence[int]) -> str:
    labels = [attribute.labels[code] for code in codes]
    if len(labels) == 1:
        return labels[0]
    return f"{labels[0]} to {labels[-1]}" if attribute.is_ordered else " | ".join(labels)
