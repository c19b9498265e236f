"""What readers learn who take a rule with few exceptions for one without: nearly all districts lie in one region.

The exceptions are taken to be known: they are subtracted from all that is published, and nobody else is where the rule allows nobody.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from louver.audit.dependencies import possible_cells
from louver.audit.load import Loaded
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.pieces import Margin
from louver.tables.system import IntArray

__all__ = ["followers"]


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
