"""Brute force for the joint audit: every table of whole numbers whose publication looks the same.

Shares no code with the engine. A table is a numpy array with one axis per attribute; what is published from it is computed
anew for every candidate and compared with what is published from the truth.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

Look = Callable[[np.ndarray, np.ndarray], bool]
"""Whether a candidate table looks the same as the truth."""


@dataclass(frozen=True)
class OraclePiece:
    """What one piece shows: `looks_same(candidate, truth)`."""

    name: str
    looks_same: Look


def grouped(
    table: np.ndarray, axes: Sequence[int], groups: dict[int, list[int]], where: dict[int, list[int]]
) -> np.ndarray:
    """Counts by some axes: labels of an axis merged by `groups` (label -> new code), others let through by `where`."""
    sub = table
    for axis, labels in where.items():
        mask = np.zeros(sub.shape[axis], dtype=bool)
        mask[labels] = True
        shape = [1] * sub.ndim
        shape[axis] = -1
        sub = sub * mask.reshape(shape)
    for axis, codes in groups.items():
        merged = [
            sub.take([i for i, c in enumerate(codes) if c == new], axis=axis).sum(axis=axis)
            for new in range(max(codes) + 1)
        ]
        sub = np.stack(merged, axis=axis)
    others = tuple(axis for axis in range(table.ndim) if axis not in axes)
    out = sub.sum(axis=others) if others else sub
    order = np.argsort(np.argsort(list(axes)))
    return np.transpose(out, order) if out.ndim else np.asarray(out)


def counts_piece(name, axes, *, groups=None, where=None, totals=False, below=None, base=None, hide=()):
    """A table of counts: small ones hidden, the cells `hide` hidden, or all rounded to a base, halves up.

    Its reader knows what a mark means: a hidden count is one that the rule hides where only such counts are hidden, and at
    least 1 where no empty cell is hidden.
    """
    subsets = [axes]
    if totals:
        subsets = [c for size in range(len(axes) + 1) for c in itertools.combinations(axes, size)]

    def numbers(table):
        return [grouped(table, subset, _only(groups, subset, where), where or {}) for subset in subsets]

    def marked(table):
        for subset, counts in zip(subsets, numbers(table), strict=True):
            is_hidden = np.zeros(counts.shape, dtype=bool)
            if below is not None:
                is_hidden |= (counts > 0) & (counts < below)
            if tuple(subset) == tuple(axes):
                for cell in hide:
                    is_hidden[tuple(cell)] = True
            yield is_hidden

    def looks_same(candidate, truth):
        marks = list(marked(truth))
        hidden = [int(x) for counts, m in zip(numbers(truth), marks, strict=True) for x in counts[m]]
        for counts, true, is_hidden in zip(numbers(candidate), numbers(truth), marks, strict=True):
            if base is not None:
                counts, true = (2 * counts + base) // (2 * base), (2 * true + base) // (2 * base)
            if not np.array_equal(counts[~is_hidden], true[~is_hidden]):
                return False
            if all(hidden) and not counts[is_hidden].all():
                return False
            is_by_rule = below is not None and all(0 < x < below for x in hidden)
            if is_by_rule and (counts[is_hidden] >= below).any():
                return False
        return True

    return OraclePiece(name, looks_same)


def _only(groups, subset, where):
    """Merging an axis that is summed over changes nothing."""
    return {axis: codes for axis, codes in (groups or {}).items() if axis in subset}


def shares_piece(name, rows, cols, *, decimals=None, half_even=False, told="none"):
    """Row conditionals, exact or rounded; `told`: nothing, the total or the row totals beside them."""

    def shown(table):
        counts = grouped(table, [*rows, *cols], {}, {})
        flat = counts.reshape(int(np.prod(counts.shape[: len(rows)])), -1)
        printed = [
            tuple(_printed(Fraction(int(x), int(row.sum())), decimals, half_even) for x in row)
            if row.sum()
            else None
            for row in flat
        ]
        beside = {"none": None, "total": int(flat.sum()), "rows": flat.sum(axis=1).tolist()}[told]
        return printed, beside

    return OraclePiece(name, lambda candidate, truth: shown(candidate) == shown(truth))


def _printed(share: Fraction, decimals: int | None, half_even: bool) -> Fraction:
    if decimals is None:
        return share
    scaled = share * 10**decimals
    floor = scaled.numerator // scaled.denominator
    rest = scaled - floor
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and (not half_even or floor % 2)):
        floor += 1
    return Fraction(floor, 10**decimals)


def known_piece(name, where, low, high):
    """A statement: the number of people that the filter lets through lies in [low, high]."""
    return OraclePiece(name, lambda candidate, truth: low <= int(grouped(candidate, (), {}, where)) <= high)


def tables(shape: Sequence[int], most: int, total: int | None) -> Iterator[np.ndarray]:
    """All tables with cells up to `most`, and this total if one is given."""
    size = int(np.prod(shape))

    def fill(left: int, cells: int) -> Iterator[tuple[int, ...]]:
        if cells == 1:
            if left <= most:
                yield (left,)
            return
        for value in range(min(left, most) + 1):
            for rest in fill(left - value, cells - 1):
                yield (value, *rest)

    if total is not None:
        source: Iterator[tuple[int, ...]] = fill(total, size)
    else:
        source = itertools.product(range(most + 1), repeat=size)
    for values in source:
        yield np.array(values, dtype=np.int64).reshape(shape)


def matching(
    truth: np.ndarray, pieces: Sequence[OraclePiece], candidates: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The candidates that no piece tells from the truth."""
    return [c for c in candidates if all(piece.looks_same(c, truth) for piece in pieces)]
