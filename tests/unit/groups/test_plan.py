"""Shares and forecasts: against plain linear algebra and every split of a coarse grid."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.errors import BudgetError, InputError
from louver.groups.mechanisms import MECHANISMS
from louver.groups.plan import LARGEST_LOSS, chosen_shares, equal_shares, level_noise, make_plan
from louver.groups.problem import SizeQuery, Total
from louver.optim.trees import LevelTree
from louver.privacy.budget import Loss, Measure
from louver.privacy.neighbours import Relation

TREES = {
    "root": LevelTree.from_counts([]),
    "flat": LevelTree.from_counts([[12]]),
    "three levels": LevelTree.from_counts([[4], [5] * 4]),
    "four levels": LevelTree.from_counts([[2], [3] * 2, [4] * 6]),
    "census": LevelTree.from_counts([[52], [60] * 52]),
}


def _least_squares_noise(shares: list[float], tree: LevelTree) -> list[float]:
    """Standard deviations of the best linear estimate, from the matrix of sums itself."""
    sums = tree.sum_up(np.eye(tree.n_leaves, dtype=np.int64)).astype(float)
    precision = np.repeat(np.square(shares), tree.level_sizes)
    covariance = sums @ np.linalg.inv(sums.T @ (precision[:, None] * sums)) @ sums.T
    deviations = np.sqrt(np.diag(covariance))
    return [float(deviations[tree.level(k)].sum()) for k in range(tree.n_levels)]


@pytest.mark.parametrize("name", ["root", "flat", "three levels", "four levels"])
def test_forecast_noise_is_that_of_generalised_least_squares(name: str) -> None:
    tree = TREES[name]
    for shares in ([1.0, 1.0, 1.0, 1.0], [0.1, 0.5, 0.3, 0.9], [3.0, 0.2, 1.0, 0.4]):
        given = shares[: tree.n_levels]
        assert level_noise(given, tree.level_sizes) == pytest.approx(_least_squares_noise(given, tree))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("is_weighted", [True, False])
def test_chosen_shares_beat_every_split_of_a_grid(name: str, is_weighted: bool) -> None:
    tree = TREES[name]
    sizes = tree.level_sizes

    def noise(shares: list[float]) -> list[float]:
        return level_noise(shares, sizes, is_weighted=is_weighted)

    shares = chosen_shares(tree, is_weighted=is_weighted)
    assert sum(shares) == 1
    most = [LARGEST_LOSS * n * 1.01 for n in noise([1 / tree.n_levels] * tree.n_levels)]
    chosen = noise([float(share) for share in shares])
    assert all(n <= m for n, m in zip(chosen, most, strict=True))
    grid = [0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8]
    for upper in product(grid, repeat=tree.n_levels - 1):
        if sum(upper) < 0.97:
            other = noise([*upper, 1 - sum(upper)])
            if all(n <= m for n, m in zip(other, most, strict=True)):
                assert sum(chosen) <= sum(other) * 1.02


def test_what_is_measured_depends_on_the_total() -> None:
    regions = RegionTree.from_leaves(("state",), [("GA",), ("NY",)])
    budget = Loss(Fraction(1), Measure.EPSILON, Relation.ADD_REMOVE_RECORD)
    queries = {
        total: make_plan(MECHANISMS["louver"], regions, 3, budget, equal_shares(2), total=total).query
        for total in Total
    }
    assert queries == {Total.PUBLIC: SizeQuery.PREFIX, Total.NOISY: SizeQuery.SUFFIX}
    with pytest.raises(InputError, match="needs a public total"):
        make_plan(MECHANISMS["M_c^dp"], regions, 3, budget, equal_shares(2), total=Total.NOISY)
    with pytest.raises(BudgetError, match="1 budget shares are given for 2 levels"):
        make_plan(MECHANISMS["louver"], regions, 3, budget, equal_shares(1), total=Total.NOISY)
