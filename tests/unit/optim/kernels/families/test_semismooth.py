"""Least squares of one family against a general solver (Clarabel)."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.families.semismooth import SOLVED, FamilyArrays, solve_family_inplace, weigh
from oracles.topdown import LARGE, least_squares, objective

N = 8
DETAILED = np.arange(N)
GROUPS = np.array([0, 0, 0, 1, 1, 1, 2, 2])
TYPES = np.array([0, 1, 0, 1, 0, 1, 0, 1])
AGES = np.array([0, 0, 1, 1, 2, 2, 3, 3])
CYCLED = (0, 3, 5, 41, 70, 212)  # seeds whose prices went round in a circle once


def built(seed, *, has_parent, has_groups, is_bounded, is_even, has_contrasts=False):
    """A family, and the same problem as the oracle takes it: queries, variances, noisy answers, bounds.

    Contrasts are those of empirical Bayes for large regions: cells known well or hardly beside totals that are all but fixed.
    """
    random = np.random.default_rng(seed)
    m = int(random.integers(2, 5))
    truth = random.poisson(3, (m, N))
    queries, variances = [DETAILED, TYPES, AGES], [2.0, 0.5, 1.5]
    if has_groups:
        queries.append(GROUPS)
        variances.append(0.7)
    noisy = [
        np.stack([np.bincount(row_of, weights=child, minlength=row_of.max() + 1) for child in truth])
        + random.normal(0, 3, (m, row_of.max() + 1)).round()
        for row_of in queries
    ]
    # Uneven: another variance for every child, and in the detailed query for every cell.
    spread = [np.ones((m, 1)) if is_even else random.uniform(0.3, 3, (m, 1)) for _ in queries]
    spread[0] = np.ones((m, N)) if is_even else random.uniform(0.1, 9, (m, N))
    if has_contrasts:
        spread = [
            np.where(random.random((m, N)) < 0.5, 0.025, 6.25),
            *(np.full((m, 1), 0.001) for _ in queries[1:]),
        ]
        spread[-1] *= 1_000
        noisy[0] *= np.where(random.random((m, N)) < 0.3, 40, 1)
    variances = [variance * own for variance, own in zip(variances, spread, strict=True)]
    held = np.stack([truth[:, TYPES == 0].sum(axis=1), truth[:, TYPES == 1].sum(axis=1)], axis=1)
    lower, upper = np.zeros((m, 4), np.int64), np.zeros((m, 4), np.int64)
    low, high = np.maximum(held - 1, 0), held + random.integers(0, 3, held.shape)
    for s in range(4):
        inside = [t for t in range(2) if s >> t & 1]
        lower[:, s], upper[:, s] = low[:, inside].sum(axis=1), high[:, inside].sum(axis=1)
    group_of = GROUPS if has_groups else DETAILED
    group_start = np.append(np.flatnonzero(np.diff(group_of, prepend=-1)), N)
    slots = [(j, c) for j in range(len(group_start) - 1) for c in range(m)]
    cell = np.concatenate([np.arange(group_start[j], group_start[j + 1]) for j, _ in slots])
    child = np.concatenate([np.full(group_start[j + 1] - group_start[j], c) for j, c in slots])
    sizes = [group_start[j + 1] - group_start[j] for j, _ in slots]
    a = 1 / variances[0][child, cell]
    v = np.array([1 / variances[3][c, 0] if has_groups else 0.0 for _, c in slots])
    share, inverse, alone, ratio = weigh(len(group_start) - 1, np.append(0, np.cumsum(sizes)), a, v)
    family = FamilyArrays(
        a=a, v=v, share=share, inverse=inverse, alone=alone, ratio=ratio,
        has_parent=has_parent, parent=truth.sum(axis=0).astype(float), group_start=group_start.astype(np.int64),
        slot_start=np.append(0, np.cumsum(sizes)).astype(np.int64), cell=cell, detail=noisy[0][child, cell],
        grouped=np.array([noisy[3][c, j] for j, c in slots]) if has_groups else np.zeros(len(slots)),
        row=np.stack([TYPES, AGES + 2]), weight=np.repeat([1 / variances[1][:, 0], 1 / variances[2][:, 0]], [2, 4], axis=0),
        noisy=np.ascontiguousarray(np.concatenate([noisy[1], noisy[2]], axis=1).T), n_types=2,
        is_bounded=is_bounded, keep=np.full(m, 3), lower=lower, upper=upper,
    )  # fmt: skip
    unbounded = np.zeros((m, 4), np.int64), np.full((m, 4), 2 * LARGE)
    return family, child, (queries, variances, noisy), (lower, upper) if is_bounded else unbounded


@pytest.mark.parametrize("has_parent", [True, False])
@pytest.mark.parametrize("has_groups", [True, False])
@pytest.mark.parametrize("is_bounded", [True, False])
@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_of_a_general_solver(seed, is_even, is_bounded, has_groups, has_parent):
    _check(*built(seed, has_parent=has_parent, has_groups=has_groups, is_bounded=is_bounded, is_even=is_even))


@pytest.mark.parametrize("seed", CYCLED)
def test_weights_of_great_contrast(seed):
    _check(
        *built(seed, has_parent=True, has_groups=True, is_bounded=False, is_even=False, has_contrasts=True)
    )


def _check(family, child, measured, bounds):
    """Solved, feasible and as good as what the general solver finds."""
    m, has_parent, is_bounded = len(family.keep), family.has_parent, family.is_bounded
    h, price, z = np.zeros(len(family.cell)), np.zeros(N), np.zeros((len(family.weight), m))
    status, _, residual = solve_family_inplace(family, h, price, z, 1e-9)
    assert status == SOLVED and residual <= 1e-8
    counts = np.zeros((N, m))
    counts[family.cell, child] = h
    assert h.min() >= 0
    if has_parent:
        assert counts.sum(axis=1) == pytest.approx(family.parent, abs=1e-7)
    for c in range(m) if is_bounded else ():
        for s in range(1, 4):
            held = counts[(s >> TYPES & 1) == 1, c].sum()
            assert family.lower[c, s] - 1e-7 <= held <= family.upper[c, s] + 1e-7
    best = least_squares(*measured, DETAILED, family.parent if has_parent else None, TYPES, *bounds)
    assert objective(*measured, DETAILED, counts) == pytest.approx(best, rel=1e-6, abs=1e-6)
