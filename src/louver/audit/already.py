"""Small counts that an earlier file of records shows by itself: they are known, whatever is published now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from louver.audit.explain import Cells
from louver.audit.units import Units
from louver.tables.domain import Domain
from louver.tables.pieces import Margin, Piece
from louver.tables.system import IntArray

__all__ = ["as_cells", "known_already"]


def known_already(
    domain: Domain, pieces: Sequence[Piece], small: int, units: Units | None = None
) -> list[IntArray]:
    """Joint cells of every group of fewer than `small` people, or units, whom one can count in a file among the pieces."""
    margins = (margin for piece in pieces if piece.is_file for margin in piece.margins)
    return [cells for margin in margins for cells in _exact_small(domain, margin, small, units)]


def as_cells(domain: Domain, groups: Sequence[IntArray]) -> Cells:
    """Groups of joint cells as cells of crosses; groups of one cross share nobody."""
    assigns: list[IntArray] = []
    sizes: list[int] = []
    for group in groups:
        place = next((n for n, assign in enumerate(assigns) if (assign[group] < 0).all()), len(assigns))
        if place == len(assigns):
            assigns.append(np.full(domain.n_cells, -1, dtype=np.int64))
            sizes.append(0)
        assigns[place][group] = sizes[place]
        sizes[place] += 1
    return Cells(assigns=tuple(assigns), cells=tuple(np.arange(size, dtype=np.int64) for size in sizes))


def _exact_small(domain: Domain, margin: Margin, small: int, units: Units | None) -> Iterator[IntArray]:
    is_told = (margin.lower == margin.upper) & (margin.lower > 0)
    if units is None:
        is_told &= margin.lower < small
    if not is_told.any():
        return
    inside = domain.inside(margin.cross)
    axis_of = {attribute.name: axis for axis, attribute in enumerate(domain.attributes)}
    codes = np.unravel_index(inside, domain.shape)
    cell_of = np.zeros(len(inside), np.int64)
    for name in margin.cross.by:
        size = domain.size(margin.cross.over((name,)))
        cell_of = cell_of * size + domain.codes(name, margin.cross)[codes[axis_of[name]]]
    if units is not None:
        assign = np.full(domain.n_cells, -1, dtype=np.int64)
        assign[inside] = cell_of
        is_told &= units.count(assign, len(is_told)) < small
    for cell in np.flatnonzero(is_told):
        yield inside[cell_of == cell]
