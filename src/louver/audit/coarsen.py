"""Coarser forms of one table: categories of one attribute merged step by step, down to a table without it.

The steps of an attribute nest, so each tells no more than the one before: the finest safe step is found by halving. What is
judged is the coarser table with all its counts; the same table rounded or with hidden cells tells less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from louver.audit.load import Loaded
from louver.schema.attribute import Attribute
from louver.schema.recode import Recode
from louver.tables.domain import Domain, cross_attributes
from louver.tables.pieces import Cross, Margin, Piece
from louver.tables.system import IntArray

__all__ = ["Coarser", "finest_safe"]


@dataclass(frozen=True, slots=True)
class Coarser:
    """A coarser form of a table, what to do in words, and the cells it has."""

    piece: Piece
    how: str
    n_cells: int


def finest_safe(loaded: Loaded, piece: Piece, is_safe: Callable[[Piece], bool]) -> Coarser | None:
    """The safe form with the most cells, over all attributes; None where there is none. Needs the records.

    `is_safe` says no when time is up.
    """
    if loaded.truth is None or piece.shares or not piece.margins:
        return None
    best: Coarser | None = None
    for steps in _chains(loaded, piece):
        worth = [step for step in steps if best is None or step.n_cells > best.n_cells]
        best = _first_safe(worth, is_safe) or best
    return best


def _first_safe(steps: list[Coarser], is_safe: Callable[[Piece], bool]) -> Coarser | None:
    """The first safe step, all after it being safe, too."""
    if not steps or not is_safe(steps[-1].piece):
        return None
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if is_safe(steps[middle].piece):
            high = middle
        else:
            low = middle + 1
    return steps[high]


def _chains(loaded: Loaded, piece: Piece) -> Iterator[list[Coarser]]:
    """For each attribute its steps, finest first."""
    assert loaded.truth is not None
    cross = piece.margins[0].cross
    for attribute in cross_attributes(cross, loaded.domain.attributes):
        name = attribute.name
        crosses: list[tuple[Cross, str]] = []
        if name not in cross.where:
            own = loaded.domain.sums(cross.over((name,)), loaded.truth)
            crosses = [
                (_merged(cross, loaded.domain, attribute, groups), f"with {name} merged: {_told(groups)}")
                for groups in _groupings(attribute, own)
            ]
        if len(cross.by) > 1:
            fewer = tuple(other for other in cross.by if other != name)
            crosses.append((cross.over(fewer), f"without {name}"))
        yield [_coarser(loaded, piece.name, coarse, how) for coarse, how in crosses]


def _groupings(attribute: Attribute, people: IntArray) -> Iterator[list[tuple[str, ...]]]:
    """Labels in groups, one group fewer each time: the group with the fewest people joins its smaller neighbour.

    Any two are neighbours where the labels have no order. A missing value stays by itself.
    """
    kept = [code for code, label in enumerate(attribute.labels) if label != attribute.missing]
    groups = [([code], int(people[code])) for code in kept]
    while len(groups) > 2:
        if not attribute.is_ordered:
            groups.sort(key=lambda group: (group[1], group[0]))
        smallest = min(range(len(groups)), key=lambda place: groups[place][1])
        beside = [place for place in (smallest - 1, smallest + 1) if 0 <= place < len(groups)]
        other = min(beside, key=lambda place: groups[place][1])
        first, second = sorted((smallest, other))
        groups[first : second + 1] = [
            (sorted(groups[first][0] + groups[second][0]), groups[first][1] + groups[second][1])
        ]
        yield [tuple(attribute.labels[code] for code in codes) for codes, _ in groups if len(codes) > 1]


def _told(groups: list[tuple[str, ...]]) -> str:
    return "; ".join(" and ".join(group) for group in groups)


def _merged(cross: Cross, domain: Domain, attribute: Attribute, groups: list[tuple[str, ...]]) -> Cross:
    """The cross with labels of an attribute merged, on top of the recode that it has."""
    raw = domain.attribute(attribute.name)
    codes = np.arange(raw.size)
    if attribute.name in cross.recodes:
        codes = raw.recoded(cross.recodes[attribute.name])[1]
    new_label = {label: label for label in attribute.labels}
    new_label |= {label: " and ".join(group) for group in groups for label in group}
    merge: dict[str, list[str]] = {}
    for old, code in zip(raw.labels, codes, strict=True):
        merge.setdefault(new_label[attribute.labels[code]], []).append(old)
    recode = Recode(attribute.name, merge={new: tuple(old) for new, old in merge.items()})
    return Cross(by=cross.by, recodes={**cross.recodes, attribute.name: recode}, where=cross.where)


def _coarser(loaded: Loaded, name: str, cross: Cross, how: str) -> Coarser:
    assert loaded.truth is not None
    counts = loaded.domain.sums(cross, loaded.truth)
    margin = Margin(cross=cross, lower=counts, upper=counts)
    return Coarser(Piece(name=name, margins=(margin,)), how, len(counts))
