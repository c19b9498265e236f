"""Public knowledge beyond nested sets: bounds of the regions above by elimination, and which statements make that impossible.

Statements about crossing sets of types have consequences that adding up bounds does not find. In a small tree the vectors that the children
of a region can add up to are found by Fourier-Motzkin elimination, child by child; if bounds on sets of types express them fully, and every
step preserves integrality, the derived bounds are complete. Otherwise they are only necessary, and the failsafe covers the rest.

`leaf_bounds` says what one leaf implies about itself: bounds on every set of types, from bounds on some of the sets.

Notes
-----
**Implements**: Abowd et al. (2019), sections 6.2 and 7.1, appendix D; Theorems 1 and 2 are the reason for the guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np
from scipy.sparse import csr_array

from louver._arrays import Ints
from louver.data.regions import RegionTree
from louver.errors import SolverError
from louver.optim.elimination import LinearRow, Projection, follows, project
from louver.optim.highs import solve_linear
from louver.optim.kernels.families.polymatroid import UNBOUNDED as _UNBOUNDED
from louver.optim.status import Status

__all__ = [
    "MAX_ELIMINATED_TYPES",
    "MAX_SUMS",
    "UNBOUNDED",
    "Bounds",
    "Eliminated",
    "bit",
    "bound_union",
    "cut_total",
    "eliminate",
    "is_laminar",
    "is_two_by_two",
    "leaf_bounds",
    "set_sums",
]

MAX_SUMS = 64
"""Maximum number of regions below the root that are added up by elimination; each takes up to a second."""

MAX_ELIMINATED_TYPES = 4

Bounds = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eliminated:
    """The result of elimination for the regions above the leaves.

    Parameters
    ----------
    above : tuple of (lower, upper)
        For every level but the last, arrays (regions, 2^types); lower > upper where there is no solution.
    is_complete : bool
        Whether these bounds capture everything, also in whole numbers.
    """

    above: tuple[Bounds, ...]
    is_complete: bool


def eliminate(
    spine: RegionTree, n_types: int, rows_of: Sequence[Sequence[Sequence[LinearRow]]], above: Sequence[Bounds]
) -> Eliminated | None:
    """Sharpen bounds by elimination; None for a tree or constraints beyond the guard.

    Parameters
    ----------
    spine : RegionTree
    n_types : int
    rows_of : sequence
        For each level and region the rows stated about its types, non-negativity left out.
    above : sequence of (lower, upper)
        Bounds derived so far, for every level but the last.
    """
    if sum(spine.sizes[1:]) > MAX_SUMS or n_types > MAX_ELIMINATED_TYPES:
        return None
    positive = [LinearRow(tuple(int(t == u) for u in range(n_types)), Fraction(0)) for t in range(n_types)]
    below = [_settled([*positive, *rows]) for rows in rows_of[-1]]
    is_complete, sharpened = True, []
    try:
        for level in range(spine.n_levels - 2, -1, -1):
            lower, upper = above[level][0].copy(), above[level][1].copy()
            regions = []
            for region in range(spine.sizes[level]):
                span = slice(spine.starts[level][region], spine.starts[level][region + 1])
                total, is_exact = _sum(below[span], n_types)
                total = _settled([*_as_inequalities(total), *rows_of[level][region]])
                regions.append(total)
                is_complete &= is_exact & _tighten(total, n_types, lower[region], upper[region])
            below = regions
            sharpened.append((lower, upper))
    except SolverError:
        return None
    return Eliminated(above=tuple(reversed(sharpened)), is_complete=is_complete)


def _settled(rows: Sequence[LinearRow]) -> Projection:
    """Rows with nothing to eliminate, solved for their equations."""
    return project([], rows, range(len(rows[0].coefficients)))


def _as_inequalities(known: Projection) -> list[LinearRow]:
    """All rows of a projection, an equation as two."""
    if not known.is_feasible:
        return [LinearRow((0,), Fraction(1))]
    twice = [LinearRow(tuple(-a for a in row.coefficients), -row.constant) for row in known.equations]
    return [*known.equations, *twice, *known.inequalities]


def _sum(parts: Sequence[Projection], n_types: int) -> tuple[Projection, bool]:
    """The possible sums of the vectors of several regions, and whether whole sums always come from whole vectors."""
    total, is_exact = parts[0], True
    for part in parts[1:]:
        if not (total.is_feasible and part.is_feasible):
            return Projection(equations=(), inequalities=(), is_exact=True, is_feasible=False), True
        nothing = (0,) * n_types
        # Unknowns: those of the sum so far, of the next region, and of both together.
        moved = [
            [LinearRow((*row.coefficients, *nothing, *nothing), row.constant) for row in own]
            for own in (total.equations, total.inequalities)
        ]
        other_rows = [
            [LinearRow((*nothing, *row.coefficients, *nothing), row.constant) for row in own]
            for own in (part.equations, part.inequalities)
        ]
        sums = []
        for t in range(n_types):
            one = tuple(int(t == u) for u in range(n_types))
            sums.append(LinearRow((*one, *one, *(-a for a in one)), Fraction(0)))
        kept = range(2 * n_types, 3 * n_types)
        total = project([*moved[0], *other_rows[0], *sums], [*moved[1], *other_rows[1]], kept)
        is_exact &= total.is_exact
    return total, is_exact


def _tighten(known: Projection, n_types: int, lower: Ints, upper: Ints) -> bool:
    """Tighten the bounds of one region, in place, to the range of its vectors; return whether they express everything known."""
    if not known.is_feasible:
        lower[0], upper[0] = 1, 0
        return True
    rows = [*known.equations, *known.inequalities]
    matrix = csr_array(np.array([row.coefficients for row in rows], dtype=np.float64))
    least = np.array([float(row.constant) for row in rows])
    most = np.where(np.arange(len(rows)) < len(known.equations), least, np.inf)
    stated = []
    for mask in range(1, 1 << n_types):
        inside = np.array([mask >> t & 1 for t in range(n_types)], dtype=np.float64)
        for sign in (1, -1):
            free = np.full(n_types, np.inf)
            status, x = solve_linear(sign * inside, matrix, least, most, -free, free, is_integer=False)
            if status is Status.OPTIMAL and x is not None:
                end = float(inside @ x)
                bound = ceil(end - 1e-6) if sign > 0 else floor(end + 1e-6)
                (lower if sign > 0 else upper)[mask] = bound
                stated.append(LinearRow(tuple(int(sign * a) for a in inside), Fraction(sign * bound)))
    return all(follows(row, stated) for row in _as_inequalities(known))


UNBOUNDED = int(_UNBOUNDED)
"""Stands for "no upper bound"."""

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
    **Implements**: for laminar sets, bottom up: parts that have not been bounded together yet are independent;
    a bound [a, b] on their union A gives upper(S) = min(upper(S), b - lower(A - S)) and, from below,
    lower(S) = max(lower(S), a - upper(A - S)) for S within A.
    """
    kind_of, lower, upper = _kinds(lower, upper)
    low, high = _kind_bounds(n_types, masks, lower, upper)
    return low[kind_of], high[kind_of]


def _kinds(lower: Ints, upper: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct combinations of statements about leaves, and the one that each leaf has; most leaves, for example, have no facility."""
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
        # Only necessary conditions: repeat once, now that every other set is bounded.
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
    """Whether the statements fix the margins of four types viewed as a two-by-two table."""
    if n_types != 4 or not np.array_equal(lower, upper):
        return False
    pairs = {min(mask, 15 - mask) for mask in masks if mask.bit_count() == 2}
    return len(pairs) == 2 and all(mask.bit_count() in (2, 4) for mask in masks) and _fixes_total(masks)


def _fixes_total(masks: Sequence[int]) -> bool:
    return 15 in masks or any(15 - mask in masks for mask in masks)


def _two_by_two(n_types: int, masks: Sequence[int], fixed: Ints) -> Bounds:
    """Bounds where both margins of a two-by-two table are fixed: one count is free, between two limits.

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
