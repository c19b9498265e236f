"""Rounding of one family against an integer program."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from louver.optim.kernels.families.rounding import (
    FAILED,
    FRACTION_STEPS,
    ROUNDED,
    RoundingProblem,
    rank_of,
    round_family_inplace,
    split_count,
)
from oracles.topdown import best_rounding

TYPES = np.array([0, 0, 1, 1, 2])
N_TYPES = 3


def test_counts_are_split_and_ranked():
    for x, expected in [(2.25, (2, 0.25)), (3.0, (3, 0.0)), (2.9999999, (3, 0.0)), (4.0000001, (4, 0.0))]:
        assert split_count(x) == expected
    ranks = [[rank_of(f / 64, node, cell) for node in range(4) for cell in range(4)] for f in range(64)]
    assert all(max(low) < min(high) for low, high in itertools.pairwise(ranks))
    assert len(set(ranks[5])) == 16  # equal fractions tie nowhere
    assert ranks[32][0] >> 20 == FRACTION_STEPS // 2


def family(seed, *, is_bounded):
    """Children with real counts near whole ones that respect their bounds; the whole ones add up to the parent."""
    random = np.random.default_rng(seed)
    n, m = len(TYPES), int(random.integers(2, 5))
    truth = random.integers(0, 5, (n, m))
    held = np.array([[truth[t == TYPES, c].sum() for t in range(N_TYPES)] for c in range(m)])
    lower, upper = np.empty((m, 8), np.int64), np.empty((m, 8), np.int64)
    # Bounds on single types only, a little around the truth: every set's bounds are sums of theirs.
    low = np.maximum(held - random.integers(0, 2, held.shape), 0)
    high = held + random.integers(0, 2, held.shape)
    for s in range(8):
        inside = [t for t in range(N_TYPES) if s >> t & 1]
        lower[:, s], upper[:, s] = low[:, inside].sum(axis=1), high[:, inside].sum(axis=1)
    counts = blurred(truth, random, n, m)
    rank = np.array([[rank_of(split_count(counts[i, c])[1], c, i) for c in range(m)] for i in range(n)])
    return RoundingProblem(
        counts, np.ones((n, m), np.bool_), truth.sum(axis=1), rank, TYPES, N_TYPES, is_bounded,
        np.full(m, 7), lower, upper,
    )  # fmt: skip


def blurred(truth, random, n, m):
    """Real counts near the truth: parts of people move between children within a cell, so its sum stays whole."""
    counts = truth.astype(float)
    for i in range(n):
        for _ in range(3):
            a, b = random.integers(0, m, 2)
            moved = random.uniform(0, 0.45)
            if counts[i, a] >= moved:
                counts[i, a] -= moved
                counts[i, b] += moved
    return counts


@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_best_rounding(seed, is_bounded):
    problem = family(seed, is_bounded=is_bounded)
    out = np.empty(problem.counts.shape, np.int64)
    status, _ = round_family_inplace(problem, out)
    floor = np.array([[split_count(x)[0] for x in line] for line in problem.counts])
    none = np.zeros((problem.counts.shape[1], 0), np.int64)
    bounds = (problem.lower, problem.upper) if is_bounded else (none, none)
    best = best_rounding(floor, problem.rank, problem.parent, TYPES, *bounds)
    assert status == (FAILED if best is None else ROUNDED)
    if best is None:
        return
    up = out - floor
    assert up.min() >= 0 and up.max() <= 1
    assert out.sum(axis=1).tolist() == problem.parent.tolist()
    assert (problem.rank * up).sum() == best
    for c in range(out.shape[1]) if is_bounded else ():
        for s in range(8):
            held = sum(out[i, c] for i in range(len(TYPES)) if s >> TYPES[i] & 1)
            assert problem.lower[c, s] <= held <= problem.upper[c, s]


def test_a_parent_that_no_rounding_reaches():
    problem = family(0, is_bounded=False)
    out = np.empty(problem.counts.shape, np.int64)
    assert round_family_inplace(problem._replace(parent=problem.parent + 100), out)[0] == FAILED
