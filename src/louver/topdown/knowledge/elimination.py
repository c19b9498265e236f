"""Public knowledge beyond nested sets: bounds of the regions above by elimination, and which statements are to blame where that ends.

Statements about sets of types that cross have consequences that no sum of bounds finds. In a small tree the vectors that the children
of a region can add up to are found by Fourier-Motzkin elimination, child by child; where the bounds on sets of types say all of it, and
every step keeps whole numbers whole, what is derived is complete. Elsewhere it stays necessary only, and the failsafe is there.

Notes
-----
**Implements**: Abowd et al. (2019), sections 6.2 and 7.1, appendix D; Theorems 1 and 2 say why there is a guard.
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
from louver.optim.elimination import Projection, Row, follows, project
from louver.optim.highs import solve_linear
from louver.optim.status import Status

__all__ = ["MAX_ELIMINATED_TYPES", "MAX_SUMS", "Eliminated", "eliminate"]

MAX_SUMS = 64
"""Regions below the root that are added up by elimination; each takes up to a second."""

MAX_ELIMINATED_TYPES = 4

Bounds = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Eliminated:
    """What elimination says about the regions above the leaves.

    Parameters
    ----------
    above : tuple of (lower, upper)
        For every level but the last, arrays (regions, 2^types); lower > upper where there is no solution.
    is_complete : bool
        Whether these bounds are all there is to say, also in whole numbers.
    """

    above: tuple[Bounds, ...]
    is_complete: bool


def eliminate(
    spine: RegionTree, n_types: int, rows_of: Sequence[Sequence[Sequence[Row]]], above: Sequence[Bounds]
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
    positive = [Row(tuple(int(t == u) for u in range(n_types)), Fraction(0)) for t in range(n_types)]
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


def _settled(rows: Sequence[Row]) -> Projection:
    """Rows with nothing to eliminate, solved for their equations."""
    return project([], rows, range(len(rows[0].coefficients)))


def _as_inequalities(known: Projection) -> list[Row]:
    """All rows of a projection, an equation as two."""
    if not known.is_feasible:
        return [Row((0,), Fraction(1))]
    twice = [Row(tuple(-a for a in row.coefficients), -row.constant) for row in known.equations]
    return [*known.equations, *twice, *known.inequalities]


def _sum(parts: Sequence[Projection], n_types: int) -> tuple[Projection, bool]:
    """The vectors that vectors of several regions add up to; whether whole ones always come from whole ones."""
    total, is_exact = parts[0], True
    for part in parts[1:]:
        if not (total.is_feasible and part.is_feasible):
            return Projection(equations=(), inequalities=(), is_exact=True, is_feasible=False), True
        nothing = (0,) * n_types
        # Unknowns: those of the sum so far, of the next region, and of both together.
        moved = [
            [Row((*row.coefficients, *nothing, *nothing), row.constant) for row in own]
            for own in (total.equations, total.inequalities)
        ]
        beside = [
            [Row((*nothing, *row.coefficients, *nothing), row.constant) for row in own]
            for own in (part.equations, part.inequalities)
        ]
        sums = []
        for t in range(n_types):
            one = tuple(int(t == u) for u in range(n_types))
            sums.append(Row((*one, *one, *(-a for a in one)), Fraction(0)))
        kept = range(2 * n_types, 3 * n_types)
        total = project([*moved[0], *beside[0], *sums], [*moved[1], *beside[1]], kept)
        is_exact &= total.is_exact
    return total, is_exact


def _tighten(known: Projection, n_types: int, lower: Ints, upper: Ints) -> bool:
    """Cut the bounds of one region, in place, to what its vectors reach; whether they say all that is known."""
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
                stated.append(Row(tuple(int(sign * a) for a in inside), Fraction(sign * bound)))
    return all(follows(row, stated) for row in _as_inequalities(known))
