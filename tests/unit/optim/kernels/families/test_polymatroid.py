"""Polymatroids against the list of all their integer points, of which they are the convex hull."""

from __future__ import annotations

import numpy as np
import pytest

from louver.optim.kernels.families.polymatroid import (
    box_inplace,
    exchange_masks_inplace,
    is_member,
    nearest_inplace,
    project_inplace,
    restrict_inplace,
)
from oracles.topdown import leaf_vectors, sums

MOST = 5
FAMILIES = [(0b001, 0b010, 0b100, 0b111), (0b011, 0b111, 0b001), (0b110, 0b010, 0b111), (0b111,)]


def set_sum(x, mask):
    return sum(x[t] for t in range(len(x)) if mask >> t & 1)


def polymatroid(seed):
    """All integer points of a sum of two laminar systems of bounds, and its bounds on every set."""
    random = np.random.default_rng(seed)
    points = {(0, 0, 0)}
    for _ in range(2):
        masks = FAMILIES[random.integers(len(FAMILIES))]
        lower = random.integers(0, 2, len(masks))
        upper = lower + random.integers(0, MOST, len(masks))
        points = sums(points, leaf_vectors(3, masks, lower, upper, MOST)) or points
    return points, *bounds_of(points, 3)


def bounds_of(points, k):
    lower = np.array([min(set_sum(x, s) for x in points) for s in range(1 << k)])
    upper = np.array([max(set_sum(x, s) for x in points) for s in range(1 << k)])
    return lower, upper


SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_members_and_exchanges(seed):
    points, lower, upper = polymatroid(seed)
    highest = max(max(x) for x in points)
    for x in np.ndindex(highest + 2, highest + 2, highest + 2):
        assert is_member(lower, upper, 3, np.array(x)) == (x in points)
    allow = np.empty(4, np.int64)
    for x in sorted(points)[:: max(1, len(points) // 20)]:
        exchange_masks_inplace(lower, upper, 3, np.array(x), allow)
        for i in range(4):
            for j in range(4):
                moved = [count + (t == i) - (t == j) for t, count in enumerate(x)]
                if i != j:
                    assert bool(allow[i] >> j & 1) == (tuple(moved) in points)


@pytest.mark.parametrize("seed", SEEDS)
def test_projection_meets_every_point_at_an_obtuse_angle(seed):
    """x is nearest to w in a convex set exactly if (w - x)(y - x) <= 0 for all its points y."""
    points, lower, upper = polymatroid(seed)
    random = np.random.default_rng(seed)
    everyone = np.array(sorted(points))
    out, block = np.empty(3), np.empty(3, np.int64)
    for _ in range(20):
        wanted = random.normal(4, 6, 3)
        project_inplace(lower, upper, 3, wanted, out, block)
        for s in range(1, 8):
            assert lower[s] - 1e-7 <= set_sum(out, s) <= upper[s] + 1e-7
        assert ((everyone - out) @ (wanted - out)).max() <= 1e-6
        assert (out[block == 0] == wanted[block == 0]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_nearest_integer_point(seed):
    points, lower, upper = polymatroid(seed)
    random = np.random.default_rng(seed)
    out, allow = np.empty(3, np.int64), np.empty(4, np.int64)
    for _ in range(20):
        wanted = random.integers(-3, 14, 3)
        nearest_inplace(lower, upper, 3, wanted, out, allow)
        assert tuple(out.tolist()) in points
        assert np.abs(out - wanted).sum() == min(np.abs(np.array(x) - wanted).sum() for x in points)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_box_cuts_the_list(seed):
    points, lower, upper = polymatroid(seed)
    random = np.random.default_rng(seed)
    new_lower, new_upper = np.empty(8, np.int64), np.empty(8, np.int64)
    for _ in range(10):
        at_least = random.integers(0, 5, 3)
        at_most = at_least + random.integers(-1, 6, 3)
        left = {x for x in points if (at_least <= x).all() and (x <= at_most).all()}
        assert box_inplace(lower, upper, 3, at_least, at_most, new_lower, new_upper) == bool(left)
        if left:
            expected_lower, expected_upper = bounds_of(left, 3)
            assert new_lower.tolist() == expected_lower.tolist()
            assert new_upper.tolist() == expected_upper.tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_restriction_to_some_types(seed):
    points, lower, upper = polymatroid(seed)
    for keep in range(1, 8):
        kept = [t for t in range(3) if keep >> t & 1]
        left = {tuple(x[t] for t in kept) for x in points if set_sum(x, 7 & ~keep) == 0}
        own_lower, own_upper = np.empty(8, np.int64), np.empty(8, np.int64)
        assert restrict_inplace(lower, upper, keep, own_lower, own_upper) == len(kept)
        if left:
            found = {
                x
                for x in np.ndindex(*[12] * len(kept))
                if is_member(own_lower, own_upper, len(kept), np.array(x))
            }
            assert found == left
