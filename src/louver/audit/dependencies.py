"""Columns that determine others: a district lies in one region, and everybody knows in which.

The records imply it where each label of one column occurs with a single label of the other, more often than by chance. A hierarchy
of the spec implies it for a column that has its labels, including labels that no record has. Combinations that are ruled out are
empty in every table that an outsider considers. Rules with few exceptions are examined too: the exceptions are taken as known and
subtracted from everything published, and all other people follow the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from louver.data.dependencies import is_function, near_function
from louver.data.histogram import Histogram
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.schema.attribute import Attribute
from louver.tables.pieces import Domain, Margin
from louver.tables.system import IntArray

if TYPE_CHECKING:
    from louver.audit.load import Loaded

__all__ = ["Known", "followers", "known_dependencies", "near_dependencies", "possible_cells"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """One column that determines another.

    Attributes
    ----------
    determinant, dependent : str
    codes : int64 (labels,)
        Code of the dependent label that goes with each label of the determinant; -1 where nobody can know.
    share : float
        Share of the records that follow it.
    """

    determinant: str
    dependent: str
    codes: IntArray
    share: float = 1.0


def known_dependencies(attributes: Sequence[Attribute], histogram: Histogram | None) -> tuple[Known, ...]:
    """Every pair of attributes of which one determines the other, in their order."""
    found = []
    for first, second in permutations(attributes, 2):
        pairs = None if histogram is None else _pairs(histogram, first.name, second.name)
        codes = _by_hierarchy(first, second, pairs)
        if codes is None and pairs is not None and is_function(*pairs):
            codes = np.full(first.size, -1, dtype=np.int64)
            codes[pairs[0]] = pairs[1]
        if codes is not None:
            found.append(Known(determinant=first.name, dependent=second.name, codes=codes))
    return tuple(found)


def near_dependencies(attributes: Sequence[Attribute], histogram: Histogram | None) -> tuple[Known, ...]:
    """Every pair of attributes of which one determines a coarser one in nearly all records: readers may take it for a rule."""
    found: list[Known] = []
    if histogram is None:
        return ()
    for first, second in permutations(attributes, 2):
        near = near_function(*_pairs(histogram, first.name, second.name))
        if near is not None:
            codes = np.full(first.size, -1, dtype=np.int64)
            codes[list(near[0])] = list(near[0].values())
            found.append(Known(determinant=first.name, dependent=second.name, codes=codes, share=near[1]))
    return tuple(found)


def _pairs(histogram: Histogram, first: str, second: str) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs of labels that records have, and of how many people."""
    both = histogram.marginalise([first, second])
    has_people = both.counts > 0
    return both.codes[has_people, 0], both.codes[has_people, 1], both.counts[has_people]


def _by_hierarchy(
    first: Attribute, second: Attribute, pairs: tuple[IntArray, IntArray, IntArray] | None
) -> IntArray | None:
    """What a level of the first attribute's hierarchy tells, if its labels are the second's and no record contradicts it."""
    tree = first.hierarchy
    if tree is None or second.size < 2:
        return None
    for level in range(1, tree.n_levels):
        above = [tree.ancestor_of(label, level) for label in first.labels]
        if all(second.has_label(label) for label in above):
            codes = np.array([second.code_of(label) for label in above], dtype=np.int64)
            if pairs is None or (codes[pairs[0]] == pairs[1]).all():
                return codes
    return None


def possible_cells(domain: Domain, known: Sequence[Known]) -> NDArray[np.bool_] | None:
    """Joint cells that the dependencies leave, (n_cells,); None where there are none."""
    if not known:
        return None
    names = [attribute.name for attribute in domain.attributes]
    is_possible = np.ones(domain.shape, dtype=bool)
    for one in known:
        first, second = names.index(one.determinant), names.index(one.dependent)
        allowed = np.zeros((domain.shape[first], domain.shape[second]), dtype=bool)
        is_told = one.codes >= 0
        allowed[domain.classes[first][is_told], domain.classes[second][one.codes[is_told]]] = True
        allowed[domain.classes[first][~is_told]] = True
        shape = [1] * len(domain.shape)
        shape[first], shape[second] = allowed.shape
        is_possible &= (allowed if first < second else allowed.T).reshape(shape)
    return is_possible.ravel()


def followers(loaded: Loaded) -> Loaded | None:
    """The people who follow the rules, and what the pieces say of them; None where shares are published, which cannot be split."""
    is_possible = possible_cells(loaded.domain, loaded.near)
    if is_possible is None or loaded.truth is None or any(piece.shares for piece in loaded.pieces):
        return None
    if loaded.is_possible is not None:
        is_possible &= loaded.is_possible
    others = np.where(is_possible, 0, loaded.truth)
    pieces = [
        replace(
            piece,
            margins=tuple(
                _without(margin, loaded.domain.sums(margin.cross, others)) for margin in piece.margins
            ),
        )
        for piece in loaded.pieces
    ]
    return replace(
        loaded,
        pieces=tuple(pieces),
        truth=loaded.truth - others,
        is_possible=is_possible,
        near=(),
        units=None if loaded.units is None else loaded.units.within(is_possible),
    )


def _without(margin: Margin, others: IntArray) -> Margin:
    upper = np.where(margin.upper >= UNBOUNDED, margin.upper, np.maximum(0, margin.upper - others))
    return replace(margin, lower=np.maximum(0, margin.lower - others), upper=upper)
