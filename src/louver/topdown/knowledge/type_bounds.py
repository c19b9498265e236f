"""Bounds on every set of types of cells, from bounds on some of the sets: what one leaf says about itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from louver._arrays import Ints
from louver.optim.kernels.families.polymatroid import UNBOUNDED as _UNBOUNDED

__all__ = [
    "UNBOUNDED",
    "Bounds",
    "bit",
    "bound_union",
    "cut_total",
    "is_laminar",
    "is_two_by_two",
    "leaf_bounds",
    "set_sums",
]

UNBOUNDED = int(_UNBOUNDED)
"""Stands for "no upper bound"."""

Bounds = tuple[Ints, Ints]
"""Lower and upper, arrays (regions, 2^types)."""


def is_laminar(masks: Sequence[int]) -> bool:
    """Whether any two sets are nested or disjoint.

    Examples
    --------
    >>> is_laminar([0b1111, 0b0011, 0b0100]), is_laminar([0b0011, 0b0110])
    (True, False)
    """
    return all(a & b in (0, a, b) for a in masks for b in masks)


def set_sums(counts: Ints) -> Ints:
    """Sum of every set of columns: (rows, types) to (rows, 2^types)."""
    sums = np.zeros((len(counts), 1 << counts.shape[1]), dtype=np.int64)
    for t in range(counts.shape[1]):
        sums[:, 1 << t : 2 << t] = sums[:, : 1 << t] + counts[:, t, None]
    return sums


def leaf_bounds(n_types: int, masks: Sequence[int], lower: Ints, upper: Ints) -> Bounds:
    """Bounds on every set of types in each leaf.

    Parameters
    ----------
    n_types : int
    masks : sequence of int
        The sets stated about.
    lower, upper : ndarray of int64, shape (leaves, sets)

    Returns
    -------
    lower, upper : ndarray of int64, shape (leaves, 2^types)
        Least and greatest number of people in each set. Contradictions show as lower > upper.

    Notes
    -----
    **Implements**: for laminar sets, bottom up: parts that were not bounded together yet are independent;
    a bound [a, b] on their union A gives upper(S) = min(upper(S), b - lower(A - S)) and, from below,
    lower(S) = max(lower(S), a - upper(A - S)) for S within A.
    """
    kind_of, lower, upper = _kinds(lower, upper)
    low, high = _kind_bounds(n_types, masks, lower, upper)
    return low[kind_of], high[kind_of]


def _kinds(lower: Ints, upper: Ints) -> tuple[Ints, Ints, Ints]:
    """Statements about leaves, each that differs once, and which of them every leaf has: most have no facility of any kind, say."""
    rows = np.hstack([np.zeros((len(lower), 1), dtype=np.int64), lower, upper])
    order = np.lexsort(rows.T)
    is_new = np.r_[True, (rows[order[1:]] != rows[order[:-1]]).any(axis=1)]
    kind_of = np.empty(len(rows), dtype=np.int64)
    kind_of[order] = np.cumsum(is_new) - 1
    return kind_of, lower[order[is_new]], upper[order[is_new]]


def _kind_bounds(n_types: int, masks: Sequence[int], lower: Ints, upper: Ints) -> Bounds:
    everything = (1 << n_types) - 1
    if is_two_by_two(n_types, masks, lower, upper):
        return _two_by_two(n_types, masks, lower)
    low = np.zeros((len(lower), everything + 1), dtype=np.int64)
    high = set_sums(np.full((len(lower), n_types), UNBOUNDED))
    np.minimum(high, UNBOUNDED, out=high)
    for column in sorted(range(len(masks)), key=lambda j: masks[j].bit_count()):
        bound_union(masks[column], lower[:, column], upper[:, column], low, high)
    if not is_laminar(masks):
        # Necessary conditions only: once more, now that every other set is bounded.
        for column in range(len(masks)):
            bound_union(masks[column], lower[:, column], upper[:, column], low, high)
    return low, high


def cut_total(lower: Ints, upper: Ints, total: int) -> Bounds:
    """Bounds of one region (2^types) cut by a fixed number of people."""
    low, high = lower[None, :].copy(), upper[None, :].copy()
    fixed = np.array([total])
    bound_union(len(lower) - 1, fixed, fixed, low, high)
    return low[0], high[0]


def bound_union(union: int, at_least: Ints, at_most: Ints, low: Ints, high: Ints) -> None:
    """Cut all sets by a bound on one union of types, in place."""
    size = low.shape[1]
    inside = np.array([s for s in range(size) if s & ~union == 0])
    at_most = np.where(at_most >= UNBOUNDED, 2 * UNBOUNDED, at_most)
    new_high = np.minimum(high[:, inside], at_most[:, None] - low[:, union - inside])
    new_low = np.maximum(low[:, inside], at_least[:, None] - high[:, union - inside])
    low[:, inside], high[:, inside] = new_low, np.minimum(new_high, UNBOUNDED)
    part = np.arange(size) & union
    rest = np.arange(size) & ~union
    across = np.flatnonzero((part > 0) & (rest > 0))
    low[:, across] = np.maximum(low[:, across], low[:, part[across]] + low[:, rest[across]])
    high[:, across] = np.minimum(high[:, across], high[:, part[across]] + high[:, rest[across]])


def is_two_by_two(n_types: int, masks: Sequence[int], lower: Ints, upper: Ints) -> bool:
    """Whether the statements fix the margins of four types seen as two crossing pairs."""
    if n_types != 4 or not np.array_equal(lower, upper):
        return False
    pairs = {min(mask, 15 - mask) for mask in masks if mask.bit_count() == 2}
    return len(pairs) == 2 and all(mask.bit_count() in (2, 4) for mask in masks) and _fixes_total(masks)


def _fixes_total(masks: Sequence[int]) -> bool:
    return 15 in masks or any(15 - mask in masks for mask in masks)


def _two_by_two(n_types: int, masks: Sequence[int], fixed: Ints) -> Bounds:
    """Bounds where both margins of a two by two table are fixed: one count is free, between two ends.

    **Implements**: Abowd et al. (2019), Lemma 1.
    """
    known = dict(zip(masks, fixed.T, strict=True))
    pairs = [mask for mask in masks if mask.bit_count() == 2]
    total = known[15] if 15 in known else next(known[m] + known[15 - m] for m in pairs if 15 - m in known)
    row = pairs[0]
    column = next(mask for mask in pairs if mask not in (row, 15 - row))
    corner = row & column
    ends = (np.maximum(0, known[row] + known[column] - total), np.minimum(known[row], known[column]))
    tables = []
    for count in ends:
        table = np.empty((len(fixed), n_types), dtype=np.int64)
        table[:, bit(corner)] = count
        table[:, bit(row & ~column)] = known[row] - count
        table[:, bit(column & ~row)] = known[column] - count
        table[:, bit(15 & ~row & ~column)] = total - known[row] - known[column] + count
        tables.append(set_sums(table))
    return np.minimum(*tables), np.maximum(*tables)


def bit(mask: int) -> int:
    return mask.bit_length() - 1
