"""Distances and variances of areas against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.optim.spines import members, off_spine_distances, union_variances
from oracles.spines import fewest_regions, union_variance
from strategies import spines


def parents_of(tree):
    return [np.repeat(np.arange(n), np.diff(s)) for n, s in zip(tree.sizes, tree.starts, strict=False)]


def pairs(areas):
    leaf = [leaf for area in areas for leaf in area]
    area = [number for number, area in enumerate(areas) for _ in area]
    return np.array(leaf, np.int64), np.array(area, np.int64), len(areas)


some_areas = st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(tree=spines(max_leaves=5), areas=some_areas)
def test_the_distance_is_the_fewest_regions(tree, areas):
    areas = [{leaf for leaf in area if leaf < len(tree.leaves)} for area in areas]
    found = off_spine_distances(parents_of(tree), *pairs(areas))
    assert found.tolist() == [fewest_regions(parents_of(tree), area) for area in areas]


@settings(max_examples=100, deadline=None)
@given(tree=spines(), areas=some_areas, data=st.data())
def test_the_variance_is_that_of_one_dense_system(tree, areas, data):
    areas = [{leaf for leaf in area if leaf < len(tree.leaves)} for area in areas]
    precisions = [data.draw(st.sampled_from([0.0, 0.3, 1.0, 4.0, np.inf])) for _ in tree.names[:-1]]
    precisions.append(data.draw(st.sampled_from([0.5, 2.0])))
    found = union_variances(parents_of(tree), precisions, *pairs(areas))
    expected = [union_variance(parents_of(tree), precisions, area) for area in areas]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_region_of_the_tree_is_one_step_away():
    parents = [np.array([0, 0, 0]), np.array([0, 0, 1, 1, 2])]
    leaf, area = members(np.array([0, 0, 1, -1, 2]))
    assert off_spine_distances(parents, leaf, area, 4).tolist() == [1, 1, 1, 0]


def test_a_tree_of_one_region_has_itself():
    leaf = np.zeros(1, np.int64)
    assert off_spine_distances([], leaf, leaf, 1).tolist() == [1]
    assert union_variances([], [2.0], leaf, leaf, 1).tolist() == [0.5]
