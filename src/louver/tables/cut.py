"""Bounds of the cells of conditionals by sets of totals, put into the system before anything else is tried.

Counts that are sums of whole rows of a table of conditionals, and that nest, restrict the rows' totals; what follows for its
cells holds whatever else is published. Where nothing else is published the bounds are tight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from louver.errors import InfeasibleError
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.domain import Domain
from louver.tables.pieces import Piece, Shares
from louver.tables.system import IntArray, System
from louver.tables.totals import MAX_PEOPLE, feasible_totals, row_set, share_bounds

__all__ = ["Cut", "cut", "tightened"]

Sum = tuple[frozenset[int], int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Bounds of all cells of one table of conditionals (cells,), and whether they are all there is to know."""

    lower: IntArray
    upper: IntArray
    is_known: NDArray[np.bool_]
    is_tight: bool


def cut(shares: Shares, domain: Domain, pieces: Sequence[Piece]) -> Cut | None:
    """Bounds by sets; None where no count bounds a row."""
    assign = domain.assign(shares.cross)
    n_rows = shares.printed.shape[0]
    sums, is_all = _sums(shares, assign, domain, pieces)
    most = _most(n_rows, sums)
    rows = [row for row in range(n_rows) if most[row] <= MAX_PEOPLE]
    if not rows or shares.cross.where:
        return None
    number = {row: place for place, row in enumerate(rows)}
    nested = [
        (frozenset(number[row] for row in members), low, high)
        for members, low, high in sums
        if members <= number.keys() and high <= MAX_PEOPLE
    ]
    totals = feasible_totals([row_set(shares, row, most[row]) for row in rows], nested)
    if totals is None:
        raise InfeasibleError(
            "no number of people fits the conditionals and the counts beside them; check the tables."
        )
    lower = np.zeros(shares.printed.shape, dtype=np.int64)
    upper = np.full(shares.printed.shape, UNBOUNDED, dtype=np.int64)
    for row, allowed in zip(rows, totals, strict=True):
        lower[row], upper[row] = share_bounds(shares, row, allowed)
    is_known = np.repeat(np.isin(np.arange(n_rows), rows), shares.n_cols)
    return Cut(
        lower=lower.ravel(), upper=upper.ravel(), is_known=is_known, is_tight=is_all and len(rows) == n_rows
    )


def _sums(
    shares: Shares, assign: IntArray, domain: Domain, pieces: Sequence[Piece]
) -> tuple[list[Sum], bool]:
    """Bounded sums of whole rows that nest, and whether nothing else is told by any piece."""
    found: list[Sum] = []
    is_all = sum(len(piece.shares) for piece in pieces) == 1
    row_of = np.where(assign >= 0, assign // shares.n_cols, -1)
    for piece in pieces:
        for margin in piece.margins:
            by_row = _by_row(domain.assign(margin.cross), row_of, shares.printed.shape[0])
            if by_row is None:
                is_all = False
                continue
            for cell in np.flatnonzero((margin.lower > 0) | (margin.upper < UNBOUNDED)):
                members = frozenset(np.flatnonzero(by_row == cell).tolist())
                entry = (members, int(margin.lower[cell]), int(margin.upper[cell]))
                if not members or not _nests(members, found) or entry[2] > MAX_PEOPLE:
                    is_all = is_all and not members
                else:
                    found.append(entry)
    return found, is_all


def _by_row(assign: IntArray, row_of: IntArray, n_rows: int) -> IntArray | None:
    """The margin's cell of each row, if it is the same for all joint cells of a row; -1 for rows it leaves out."""
    cell = np.full(n_rows, -2, dtype=np.int64)
    cell[row_of] = assign
    return cell if (row_of >= 0).all() and np.array_equal(cell[row_of], assign) else None


def _nests(members: frozenset[int], found: list[Sum]) -> bool:
    return all(members <= other or other <= members or not members & other for other, _, _ in found)


def _most(n_rows: int, sums: list[Sum]) -> list[int]:
    """Largest total of each row that its sums allow."""
    most = [UNBOUNDED] * n_rows
    for members, _, high in sums:
        for row in members:
            most[row] = min(most[row], high)
    return most


def tightened(system: System, columns: IntArray, bounds: Cut) -> System:
    """The system with the bounds of some unknowns tightened."""
    lower, upper = system.lower.copy(), system.upper.copy()
    known = columns[bounds.is_known]
    lower[known] = np.maximum(lower[known], bounds.lower[bounds.is_known])
    upper[known] = np.minimum(upper[known], bounds.upper[bounds.is_known])
    return replace(system, lower=lower, upper=upper)
