"""louver's own mechanism: noise on suffix counts, then the closest table with every property at once.

Suffix counts, groups of this size or more, change by one entry however a person comes or goes (ERRATA G2). Post-processing is
weighted by what each level's noise is worth: generalised least squares over the tree and isotonic regression along sizes are
solved together, and rounding keeps both.
"""

from __future__ import annotations

import numpy as np

from louver.groups.problem import IntArray, NoisyAnswers, Query, sizes_of
from louver.optim.monotone import fit_monotone
from louver.optim.row_rounding import round_tree

__all__ = ["solve_suffix"]


def solve_suffix(noisy: NoisyAnswers) -> IntArray:
    """Return the rounded optimum of Model 2's relaxation on suffix counts, weighted by level.

    Notes
    -----
    **Departs** from Algorithm 2: regions are not made monotone one by one, and consistency is sought in the suffix counts, where
    the noise is independent, not in their differences.
    **Cost**: 30 to 150 passes over the table, then one flow problem for each parent.
    """
    rows = noisy.rows.astype(np.float64)
    upper = float(noisy.total) if noisy.total is not None else float(max(1, rows.max(initial=0)))
    fit = fit_monotone(
        rows,
        noisy.tree,
        [1 / variance for variance in noisy.variances],
        upper=upper,
        total=None if noisy.total is None else float(noisy.total),
    )
    return sizes_of(round_tree(fit.rows, noisy.tree, noisy.total), Query.SUFFIX)
