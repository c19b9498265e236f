"""Brute force for the claim of a joint audit: no small group of people that can be described has a count that can be derived.

Starts from the claim. A group is described by a set of labels of each attribute; all such groups are listed. What can be
derived is what all tables of whole numbers with the same publication agree on; all of them are listed, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Shown", "all_groups", "all_tables", "determined", "shown_counts", "shown_shares"]


@dataclass(frozen=True)
class Shown:
    """What a table shows: a 0/1 matrix (rows, cells), and what is printed for counts."""

    rows: np.ndarray
    printed: Callable[[np.ndarray], np.ndarray]


def all_tables(n_cells: int, total: int) -> np.ndarray:
    """Every way to put so many people into the cells, (tables, cells)."""
    bars = itertools.combinations(range(total + n_cells - 1), n_cells - 1)
    return np.array(
        [np.diff([-1, *chosen, total + n_cells - 1]) - 1 for chosen in bars], dtype=np.int64
    ).reshape(-1, n_cells)


def all_groups(shape: Sequence[int]) -> np.ndarray:
    """Every group that sets of labels describe, (groups, cells)."""
    sets = [
        [np.array(bits, dtype=bool) for bits in itertools.product([0, 1], repeat=size) if any(bits)]
        for size in shape
    ]
    groups = []
    for chosen in itertools.product(*sets):
        mask = np.ones((), dtype=bool)
        for one in chosen:
            mask = np.multiply.outer(mask, one)
        groups.append(mask.ravel())
    return np.array(groups)


def shown_counts(
    shape: Sequence[int],
    by: dict[int, Sequence[int]],
    where: dict[int, Sequence[int]],
    *,
    below: int | None = None,
    base: int | None = None,
) -> Shown:
    """A table of counts: `by` gives a new code to each label of an axis, `where` lists the labels that are counted."""
    cells = list(np.ndindex(*shape))
    inside = [all(cell[axis] in labels for axis, labels in where.items()) for cell in cells]
    keys = [tuple(codes[cell[axis]] for axis, codes in by.items()) for cell in cells]
    rows = [
        [int(is_in and key == wanted) for is_in, key in zip(inside, keys, strict=True)]
        for wanted in sorted(set(keys))
    ]

    def printed(counts: np.ndarray) -> np.ndarray:
        if base is not None:
            return (2 * counts + base) // (2 * base)
        return counts if below is None else np.where((counts > 0) & (counts < below), -1, counts)

    return Shown(np.array(rows, dtype=np.int64), printed)


def shown_shares(
    shape: Sequence[int], rows: Sequence[int], cols: Sequence[int], decimals: int | None
) -> Shown:
    """Shares of the cells of each row: exact, or rounded to decimals, halves up; an empty row is printed as such."""
    order = {axis: range(shape[axis]) for axis in (*rows, *cols)}
    n_cols = int(np.prod([shape[axis] for axis in cols]))

    def printed(counts: np.ndarray) -> np.ndarray:
        by_row = counts.reshape(*counts.shape[:-1], -1, n_cols)
        people = by_row.sum(axis=-1, keepdims=True)
        if decimals is None:
            shares = by_row // np.maximum(1, np.gcd.reduce(by_row, axis=-1, keepdims=True))
        else:
            shares = (2 * by_row * 10**decimals + people) // np.maximum(1, 2 * people)
        return np.where(people > 0, shares, -1).reshape(counts.shape)

    return Shown(shown_counts(shape, order, {}).rows, printed)


def determined(
    truth: np.ndarray, pieces: Sequence[Shown], groups: np.ndarray, small: int
) -> tuple[np.ndarray, np.ndarray]:
    """Of each group whether all tables that look like the truth agree on its count, and whether it holds 1 to small - 1 people."""
    flat = truth.ravel()
    same = all_tables(flat.size, int(flat.sum()))
    for piece in pieces:
        true = piece.rows @ flat
        is_same = (piece.printed(same @ piece.rows.T) == piece.printed(true)).all(axis=1)
        same = same[is_same]
    counts, true = same @ groups.T.astype(np.int64), groups.astype(np.int64) @ flat
    return (counts == true).all(axis=0), (true > 0) & (true < small)
