"""Batches: every family is gathered, solved and rounded as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.families.batches import (
    INFEASIBLE,
    Batch,
    round_batch_inplace,
    solve_batch_inplace,
)
from louver.optim.kernels.families.rounding import ROUNDED
from louver.optim.kernels.families.semismooth import SOLVED
from oracles.topdown import LARGE, least_squares, objective

TYPES = np.array([0, 0, 1, 1, 2, 2])
AGES = np.array([0, 1, 0, 1, 0, 1])
N_CELLS = 6
CHILDREN = (3, 1, 2, 0, 4)


def batch_of(seed, *, is_bounded):
    """Five parents with their children; parents lack the cells nobody is in."""
    random = np.random.default_rng(seed)
    truth = [random.poisson(1.5, (m, N_CELLS)) for m in CHILDREN]
    parents = [counts.sum(axis=0) for counts in truth]
    cells = [np.flatnonzero(parent) for parent in parents]
    everyone = np.concatenate(truth)
    held = np.stack([everyone[:, t == TYPES].sum(axis=1) for t in range(3)], axis=1)
    low, high = np.maximum(held - 1, 0), held + random.integers(0, 2, held.shape)
    inside = (np.arange(8)[:, None] >> np.arange(3)) & 1
    noisy = [
        np.stack([np.bincount(row_of, weights=line, minlength=row_of.max() + 1) for line in everyone])
        + random.normal(0, 2, (len(everyone), row_of.max() + 1)).round()
        for row_of in (np.arange(N_CELLS), TYPES, AGES)
    ]
    batch = Batch(
        has_parent=True, cell_start=np.append(0, np.cumsum([len(c) for c in cells])).astype(np.int64),
        cell=np.concatenate(cells), parent=np.concatenate([p[c] for p, c in zip(parents, cells, strict=True)]) * 1.0,
        child_start=np.append(0, np.cumsum(CHILDREN)).astype(np.int64), a=np.full((1, 1), 0.5), detail=noisy[0], v=np.zeros(1),
        grouped=noisy[0], group_of=np.arange(N_CELLS), link_row=np.stack([TYPES, AGES + 3]),
        weight=np.array([[2.0, 2, 2, 1, 1]]), noisy=np.concatenate([noisy[1], noisy[2]], axis=1), n_types=3,
        is_bounded=is_bounded, lower=low @ inside.T, upper=high @ inside.T,
    )  # fmt: skip
    return batch, noisy, cells, parents


def solved(batch):
    n = int(np.diff(batch.cell_start) @ np.array(CHILDREN))
    counts, status = np.zeros(n), np.full(len(CHILDREN), -1)
    residual, steps = np.zeros(len(CHILDREN)), np.zeros(len(CHILDREN), np.int64)
    solve_batch_inplace(batch, 1e-9, counts, status, steps, residual)
    return counts, status


def blocks(batch, flat):
    """(cells, children) of each family."""
    sizes = np.diff(batch.cell_start) * np.array(CHILDREN)
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    return [part.reshape(-1, max(m, 1)) for part, m in zip(parts, CHILDREN, strict=True)]


@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_each_family_is_solved_and_rounded(seed, is_bounded):
    batch, noisy, cells, parents = batch_of(seed, is_bounded=is_bounded)
    counts, status = solved(batch)
    assert (status == SOLVED).all()
    out = np.zeros(len(counts), np.int64)
    round_batch_inplace(batch, counts, 17, out, status)
    assert (status == ROUNDED).all()
    for f, (real, whole) in enumerate(zip(blocks(batch, counts), blocks(batch, out), strict=True)):
        own = slice(batch.child_start[f], batch.child_start[f + 1])
        if CHILDREN[f] == 0 or len(cells[f]) == 0:
            continue
        assert whole.sum(axis=1).tolist() == parents[f][cells[f]].tolist()
        assert np.abs(whole - real).max() < 1 and whole.min() >= 0
        answers = [answer[own] for answer in noisy]
        measured = (np.arange(N_CELLS), TYPES, AGES), (2.0, 0.5, 1.0), answers
        lower, upper = batch.lower[own], batch.upper[own]
        if not is_bounded:
            lower, upper = np.zeros_like(lower), np.full_like(upper, 2 * LARGE)
        best = least_squares(*measured, cells[f], parents[f][cells[f]], TYPES[cells[f]], lower, upper)
        assert objective(*measured, cells[f], real) == pytest.approx(best, rel=1e-5, abs=1e-5)


def test_bounds_that_the_parent_breaks_are_said_and_left_alone():
    batch, *_ = batch_of(0, is_bounded=True)
    upper = batch.upper.copy()
    upper[:3] = 0
    counts, status = solved(batch._replace(lower=np.zeros_like(batch.lower), upper=upper))
    assert status[0] == INFEASIBLE and (status[1:] == SOLVED).all()
    out = np.zeros(len(counts), np.int64)
    round_batch_inplace(batch, counts, 0, out, status)
    assert status[0] == INFEASIBLE and not blocks(batch, out)[0].any()
