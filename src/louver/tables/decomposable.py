"""Margins that form a decomposable set: tight bounds of every joint cell in closed form.

Dobra & Fienberg (2000): with cliques C and separators S of the set, a cell has the upper bound min n_C and the lower bound
max(0, sum of n_C - sum of n_S), and whole tables attain both: joining two tables over a separator is a set of two-way tables
with known totals, in each of which one cell can be made as large, or as small, as its two totals allow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from louver.tables.domain import Domain, cross_attributes
from louver.tables.pieces import Margin, Piece
from louver.tables.system import IntArray

__all__ = ["cliques_and_separators", "closed_form"]

Names = frozenset[str]


def closed_form(domain: Domain, pieces: Sequence[Piece], cells: IntArray) -> tuple[IntArray, IntArray] | None:
    """Bounds of these joint cells, tight in integers; None where the pieces are not such a set of exact margins."""
    margins = [margin for piece in pieces for margin in piece.margins]
    if any(piece.shares for piece in pieces) or not all(_is_plain(margin, domain) for margin in margins):
        return None
    counts = {frozenset(margin.cross.by): _in_classes(margin, domain) for margin in margins}
    ordered = cliques_and_separators(list(counts))
    if ordered is None or not _agree(margins, counts, [clique for clique, _ in ordered], domain):
        return None
    codes = np.unravel_index(cells, domain.shape)
    upper = np.full(len(cells), np.iinfo(np.int64).max)
    lower = np.zeros(len(cells), dtype=np.int64)
    for clique, separator in ordered:
        told = _at(counts[clique], codes)
        upper = np.minimum(upper, told)
        lower += told
        if separator is not None:
            lower -= _at(_summed(counts[clique], separator, domain), codes)
    return np.maximum(lower, 0), upper


def cliques_and_separators(sets: Sequence[Names]) -> list[tuple[Names, Names | None]] | None:
    """Sets with what each shares with those after it, None for the last; None where they have no running intersection.

    Graham's reduction: a set whose shared elements all lie in one other set is taken away, until one is left.

    Examples
    --------
    >>> pairs = [frozenset("ab"), frozenset("bc"), frozenset("b")]
    >>> [(sorted(c), s and sorted(s)) for c, s in cliques_and_separators(pairs)]
    [(['a', 'b'], ['b']), (['b', 'c'], None)]
    >>> cliques_and_separators([frozenset("ab"), frozenset("bc"), frozenset("ac")]) is None
    True
    """
    left = [one for one in dict.fromkeys(sets) if not any(one < other for other in sets)]
    found: list[tuple[Names, Names | None]] = []
    while len(left) > 1:
        for ear in left:
            others = [other for other in left if other != ear]
            shared = ear & frozenset().union(*others)
            if any(shared <= other for other in others):
                found.append((ear, shared))
                left = others
                break
        else:
            return None
    return [*found, (left[0], None)] if left else None


def _is_plain(margin: Margin, domain: Domain) -> bool:
    """Whether it tells exact counts of all records, in the finest categories that anything speaks of."""
    if margin.cross.where or not np.array_equal(margin.lower, margin.upper):
        return False
    sizes = dict(zip((attribute.name for attribute in domain.attributes), domain.shape, strict=True))
    return all(
        attribute.size == sizes[attribute.name]
        for attribute in cross_attributes(margin.cross, domain.attributes)
    )


def _in_classes(margin: Margin, domain: Domain) -> IntArray:
    """Counts of a margin with one axis for every attribute of the domain, of length one where it does not tell."""
    sizes = [attribute.size for attribute in cross_attributes(margin.cross, domain.attributes)]
    codes = [domain.codes(name, margin.cross) for name in margin.cross.by]
    told = margin.lower.reshape(sizes)[np.ix_(*codes)] if codes else margin.lower.reshape(())
    names = [attribute.name for attribute in domain.attributes if attribute.name in margin.cross.by]
    told = told.transpose([margin.cross.by.index(name) for name in names])
    return told.reshape(
        [
            size if attribute.name in names else 1
            for attribute, size in zip(domain.attributes, domain.shape, strict=True)
        ]
    )


def _summed(counts: IntArray, names: Names, domain: Domain) -> IntArray:
    """Counts by some of the attributes only."""
    axes = [axis for axis, attribute in enumerate(domain.attributes) if attribute.name not in names]
    total: IntArray = counts.sum(axis=tuple(axes), keepdims=True)
    return total


def _at(counts: IntArray, codes: tuple[IntArray, ...]) -> IntArray:
    """Counts of the cells with these classes."""
    picked: IntArray = counts[
        tuple(code if size > 1 else 0 for code, size in zip(codes, counts.shape, strict=True))
    ]
    return picked


def _agree(
    margins: Sequence[Margin], counts: dict[Names, IntArray], cliques: list[Names], domain: Domain
) -> bool:
    """Whether all margins tell the same wherever they overlap."""
    for margin in margins:
        own = frozenset(margin.cross.by)
        told = _in_classes(margin, domain)
        for clique in cliques:
            shared = own & clique
            if not np.array_equal(_summed(told, shared, domain), _summed(counts[clique], shared, domain)):
                return False
    return True
