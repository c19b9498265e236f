"""The least loss around a point: never above that of any class that holds it, and exact where it should be."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from louver.optim.kernels.classes.loss_bounds import FAR, insert_inplace, least_losses, reached_at
from louver.optim.kernels.classes.record_tree import build_tree, nearest
from mixed_records import mixed_problem


@pytest.mark.parametrize("with_triples", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_no_class_around_a_point_loses_less(seed, k, with_triples):
    problem = mixed_problem(9, seed, kinds=("number", "gapped", "set"))
    multiplicity = np.random.default_rng(seed).integers(1, 3, 9)
    tree = build_tree(problem.geometry, problem.codes, np.arange(9))
    for n_near in (3, 8):
        keys, reach = nearest(tree, problem.geometry, 0, 9, n_near)
        bounds = least_losses(problem.geometry, problem.codes, multiplicity, keys, reach, 0, k, with_triples)
        for i in range(9):
            spreads = [
                problem.class_loss(sorted((i, *others))) // (1 + len(others))
                for size in range(k)
                for others in combinations([j for j in range(9) if j != i], size)
                if multiplicity[[i, *others]].sum() >= k
            ]
            assert bounds[i] <= min(spreads)
            if k == 2 and n_near == 8:
                assert bounds[i] == min(spreads)


def test_the_shortest_list_of_values():
    random = np.random.default_rng(0)
    for _ in range(50):
        given, weights = random.integers(0, 9, 7), random.integers(1, 4, 7)
        values, kept = np.empty(4, np.int64), np.empty(4, np.int64)
        n = 0
        for value, weight in zip(given, weights, strict=True):
            n = insert_inplace(values, kept, n, value, weight)
        order = np.argsort(given, kind="stable")[:4]
        assert n == 4 and values.tolist() == given[order].tolist()
        for needed in range(1, 14):
            reached = np.flatnonzero(np.cumsum(kept) >= needed)
            assert reached_at(values, kept, n, needed) == (values[reached[0]] if len(reached) else FAR)
