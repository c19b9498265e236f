"""The first run: the solver is compiled by a child process while the rounding is compiled here."""

from __future__ import annotations

import numpy as np

from louver.optim.aside import compiled_aside
from louver.optim.kernels import is_kept
from louver.optim.kernels.families.batches import Batch, round_batch_inplace, solve_batch_inplace
from louver.run import Run

__all__ = ["warm_up"]


def warm_up(run: Run | None) -> None:
    """Have the kernels of a level compiled, unless they were before."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    with compiled_aside(run or Run(), (solve_batch_inplace, (nobody(), 1e-8, real, whole, whole, real))):
        if not is_kept(round_batch_inplace):
            round_batch_inplace(nobody(), real, 0, whole, whole)


def nobody() -> Batch:
    """A batch without parents, in arrays of the kinds that all batches have."""
    whole, real = np.zeros(1, np.int64), np.zeros(1)
    table, counts = np.zeros((1, 1), np.int64), np.zeros((1, 1))
    return Batch(
        has_parent=True,
        cell_start=whole,
        cell=whole,
        parent=real,
        child_start=whole,
        a=counts,
        detail=counts,
        v=real,
        grouped=counts,
        group_of=whole,
        link_row=table,
        weight=counts,
        noisy=counts,
        n_types=1,
        is_bounded=False,
        lower=table,
        upper=table,
    )
