"""All redesigns of one arrangement: how to walk them, what they keep, and what they are in the steward's terms.

A redesign gives each attribute a role (row, column, summed over) and a partition of its labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from louver._arrays import Ints
from louver.bounds.merging import Merging, Partition, order_of, recoded_order
from louver.bounds.problem import Arrangement
from louver.bounds.suggestions import Merged
from louver.data.histogram import Histogram
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode

__all__ = ["Redesigns", "State", "Wishes"]

ROW, COL, OMIT = "row", "col", "omit"
State = tuple[tuple[str, Partition], ...]

DENSE_CELLS = 100_000
"""Up to this many cells an entropy is summed over all of them, beyond it over those that occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What redesigns must leave alone.

    Parameters
    ----------
    fix : names
        Attributes that keep their place and their categories.
    apart : mapping of name to sets of labels
        Labels of which no two may be merged.
    categories : names
        Attributes that a spec calls categories, so that numbers have no order there.
    """

    fix: Collection[str] = ()
    apart: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    categories: Collection[str] = ()


class Redesigns:
    """All redesigns of one arrangement: how to walk them and what they keep."""

    def __init__(self, histogram: Histogram, arrangement: Arrangement, wishes: Wishes | None = None) -> None:
        wishes = Wishes() if wishes is None else wishes
        self.original = histogram.marginalise((*arrangement.rows, *arrangement.cols))
        self.histogram = self.original.recode(*arrangement.recodes)
        self.attributes = self.histogram.attributes
        self.fixed = frozenset(i for i, a in enumerate(self.attributes) if a.name in wishes.fix)
        self._base = [_base_codes(attribute, arrangement) for attribute in self.original.attributes]
        self._merging = [
            Merging(
                attribute=attribute,
                order=recoded_order(order_of(before, wishes.categories), base.tolist(), attribute),
                is_fixed=i in self.fixed,
                apart=wishes.apart.get(attribute.name, ()),
            )
            for i, (attribute, before, base) in enumerate(
                zip(self.attributes, self.original.attributes, self._base, strict=True)
            )
        ]
        self.responses = frozenset(arrangement.cols)
        self._maps: dict[tuple[int, Partition], Ints] = {}
        self._recodes: dict[tuple[int, Partition], Recode | None] = {}
        self._roles = [COL if a.name in self.responses else ROW for a in self.attributes]

    def start(self) -> State:
        return tuple(
            (role, merging.finest()) for role, merging in zip(self._roles, self._merging, strict=True)
        )

    def moves(self) -> Iterator[State]:
        """The first arrangement with one attribute moved between rows and columns, nothing merged or left out."""
        for state in self.children(self.start()):
            if self.is_plain(state):
                yield state

    def is_plain(self, state: State) -> bool:
        """Whether attributes were only moved."""
        return all(
            role != OMIT and len(partition) == attribute.size
            for (role, partition), attribute in zip(state, self.attributes, strict=True)
        )

    def is_far(self, state: State) -> bool:
        """Whether categories were merged that are far apart."""
        return any(
            merging.is_far(partition) for (_, partition), merging in zip(state, self._merging, strict=True)
        )

    def merged(self, state: State) -> tuple[Merged, ...]:
        """What was merged of the table as first arranged: every real group."""
        return tuple(
            Merged(merging.attribute.name, merging.label(group), merging.labels(group))
            for (_, partition), merging in zip(state, self._merging, strict=True)
            for group in partition
            if len(group) > 1
        )

    def children(self, state: State) -> Iterator[State]:
        """States one step coarser: a merge, an attribute summed over, or one moved across.

        At least one predictor and one response in the columns stay; a row attribute stays.
        """
        for i, (role, partition) in enumerate(state):
            if role == OMIT or i in self.fixed:
                continue
            is_response = self.attributes[i].name in self.responses
            steps = [(role, merged) for merged in self._merging[i].coarser(partition)]
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
            recode = self._recode(i, partition)
            if recode is not None:
                recodes.append(recode)
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

    def _recode(self, i: int, partition: Partition) -> Recode | None:
        if (i, partition) not in self._recodes:
            merging, labels = self._merging[i], self.original.attributes[i].labels
            merge: dict[str, tuple[str, ...]] = {}
            for group in partition:
                old = tuple(labels[code] for code in np.flatnonzero(np.isin(self._base[i], group)))
                new = merging.label(group)
                if len(old) > 1 or (old and old != (new,)):
                    merge[_unlike(new, set(labels).difference(old))] = old
            self._recodes[i, partition] = Recode(merging.attribute.name, merge=merge) if merge else None
        return self._recodes[i, partition]


def _unlike(name: str, others: Collection[str]) -> str:
    """The name, changed where a category that is left has it already."""
    return name if name not in others else _unlike(f"{name} (merged)", others)


def _base_codes(attribute: Attribute, arrangement: Arrangement) -> Ints:
    """Code of each label of an attribute after the recodes of the first arrangement."""
    codes = np.arange(attribute.size)
    for recode in arrangement.recodes:
        if recode.attribute == attribute.name:
            attribute, mapping = attribute.recoded(recode)
            codes = mapping[codes]
    return codes
