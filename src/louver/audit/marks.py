"""What a mark in place of a count tells its reader.

A hidden cell is not an unknown number: everybody can see that empty cells are shown, and the rule that hides counts below a
limit is no secret. The audit gives its reader that knowledge.
"""

from __future__ import annotations

import numpy as np

from louver.audit.options import TableOptions
from louver.optim.kernels.audit.propagate import UNBOUNDED
from louver.tables.system import IntArray

__all__ = ["HIDDEN", "told_by_mark", "told_by_rule"]

HIDDEN = -1
"""What stands for a mark among the printed numbers of a table."""


def told_by_mark(table: TableOptions, hidden: IntArray | None) -> tuple[int, int]:
    """Least and most that a hidden cell of a table may be, for a reader who sees one mark for all of them.

    Parameters
    ----------
    hidden : int64 or None
        True counts of all hidden cells of the table, totals included; None where the records are not known.

    Notes
    -----
    `mark_range` says it. Without it a hidden cell is not empty where no empty cell is hidden, and below the limit where
    only cells below it are hidden.
    """
    if table.mark_range is not None:
        return table.mark_range
    if hidden is None or not hidden.all():
        return 0, UNBOUNDED
    if table.below is not None and (hidden < table.below).all():
        return 1, table.below - 1
    return 1, UNBOUNDED


def told_by_rule(lower: IntArray, upper: IntArray, below: int) -> tuple[IntArray, IntArray]:
    """Bounds of shown cells where counts from 1 to below the limit would be hidden: each is empty or not below it."""
    is_empty = (lower == 0) & (upper < below)
    return np.where((lower > 0) & (lower < below), below, lower), np.where(is_empty, 0, upper)
