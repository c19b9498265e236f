"""Variances of least squares in a tree whose regions of one level are all alike: what shares are chosen by.

Notes
-----
**Implements**: `least_squares_variances` (Hay et al., 2010, on every subspace) for one region of each level, which has as many
children as the level's regions have on average: microseconds in place of milliseconds, and smooth in the precisions, which may
be complex, so that derivatives are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from louver._arrays import Bools, Floats

__all__ = ["Numbers", "ScalarTree"]

Numbers = NDArray[np.inexact[Any]]
"""Real, or complex where a derivative is taken."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalarTree:
    """What variances depend on beside the noise.

    Parameters
    ----------
    children : ndarray of float64, shape (levels - 1,)
        Mean number of children of a region.
    gain : ndarray of float64, shape (queries, sets)
        What one unit of a query's precision tells about each subspace.
    spread : ndarray of float64, shape (sets, wanted)
        What the variance of each subspace adds to that of one row of a wanted query.
    is_known : ndarray of bool, shape (levels, sets)
        Subspaces that invariants fix.
    live : ndarray of float64, shape (levels, queries)
        Share of the rows of a query that are not empty. Counts cannot be negative, so empty rows add next to no error to a region
        that is solved; sums that pass upward keep their whole noise.
    """

    children: Floats
    gain: Floats
    spread: Floats
    is_known: Bools
    live: Floats

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.children) + 1

    def variances(self, precision: Numbers, *, is_plain: bool = False) -> Numbers:
        """Variances (..., levels, wanted) of one row, from the precisions (..., levels, queries) of all measurements.

        With `is_plain` every level is fitted to its own measurements alone, as the paper has it.
        """
        own = precision @ self.gain
        solved = (precision / self.live) @ self.gain
        whole = own[..., -1, :]
        up = [1.0 / solved[..., -1, :]]
        for level in range(self.n_levels - 2, -1, -1):
            below = whole / self.children[level]
            up.insert(0, 1.0 / (solved[..., level, :] + (0.0 if is_plain else below)))
            whole = own[..., level, :] + below
        final = np.where(self.is_known[0], 0.0, up[0])
        found = [final @ self.spread]
        for level, (v, k) in enumerate(zip(up[1:], self.children, strict=True), start=1):
            # v - (v / s)^2 (s - V) with s = k v
            final = np.where(self.is_known[level], 0.0, v - (v - final / k) / k)
            found.append(final @ self.spread)
        return np.stack(found, axis=-2)
