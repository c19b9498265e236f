"""Regions arranged for areas: every leaf in one place, regions by their rules, and no better choice of rules."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.data.regions import RegionTree
from louver.errors import InputError
from louver.optim.spines import members, off_spine_distances
from louver.topdown.spine.areas import AreaKind
from louver.topdown.spine.arrange import (
    RegionRule,
    arrange,
    build_spine,
    choose_rules,
    region_of,
    spine_table,
)
from oracles.spines import union_variance
from strategies import spines

QUICK = settings(max_examples=60, deadline=None)


@st.composite
def problems(draw, max_leaves=8):
    """A tree with at least two levels, some kinds of areas, the fixed level and the number of new levels."""
    tree = draw(spines(max_children=3, max_leaves=max_leaves).filter(lambda tree: tree.n_levels > 1))
    n = len(tree.leaves)
    some = st.lists(st.integers(-1, 2), min_size=n, max_size=n).filter(lambda areas: max(areas) >= 0)
    kinds = tuple(
        AreaKind(name=f"kind {number}", areas=("a", "b", "c"), area_of=np.array(draw(some)))
        for number in range(draw(st.integers(1, 2)))
    )
    return tree, draw(st.integers(0, tree.n_levels - 2)), kinds, draw(st.integers(1, 3))


def sequences(tree, fixed, kinds, n_new):
    """Every sequence of rules in which each is as fine as the one before."""
    depths = range(tree.n_levels - 1 - fixed)
    sets = [tuple(k for k in range(len(kinds)) if mask >> k & 1) for mask in range(1 << len(kinds))]
    for chosen in product([RegionRule(depth, own) for depth in depths for own in sets], repeat=n_new):
        if all(a.depth <= b.depth and set(a.kinds) <= set(b.kinds) for a, b in pairwise(chosen)):
            yield chosen


def errors_of(spine, order, tree, fixed, kinds, power):
    """Mean errors of areas by kind, of geographic regions by level, and of leaves, by dense least squares."""
    parents = [np.repeat(np.arange(n), np.diff(s)) for n, s in zip(spine.sizes, spine.starts, strict=False)]
    precision = [1.0 / spine.n_levels**power] * spine.n_levels
    groups = [kind.area_of for kind in kinds]
    groups += [region_of(tree, level) for level in range(fixed, tree.n_levels)]
    found = []
    for group in groups:
        own = group[order]
        each = [
            union_variance(parents, precision, np.flatnonzero(own == area)) for area in range(group.max() + 1)
        ]
        found.append(np.sqrt(each).mean() if each else np.nan)
    return np.array(found)


@QUICK
@given(problems(), st.sampled_from([0.0, 0.05, 1.0]))
def test_every_leaf_is_in_exactly_one_place(problem, tolerance):
    tree, fixed, kinds, n_new = problem
    names = [f"new {number}" for number in range(n_new)]
    found = arrange(tree, fixed, kinds, names, tolerance=tolerance)
    spine = found.spine
    assert sorted(spine.leaves) == sorted(tree.leaves)
    assert sorted(found.leaf.tolist()) == list(range(len(tree.leaves)))
    assert [tree.leaves[i] for i in found.leaf] == list(spine.leaves)
    assert spine.names == (*tree.names[: fixed + 1], *names, tree.names[-1])
    for level, starts in enumerate(spine.starts):  # children of all regions, one after another, none left out
        assert starts[0] == 0 and starts[-1] == spine.sizes[level + 1] and (np.diff(starts) > 0).all()
    for codes in spine.codes:
        assert len(set(codes)) == len(codes)
    table = spine_table(found)
    assert table["leaf"].to_pylist() == list(spine.leaves)


@QUICK
@given(problems())
def test_regions_are_what_their_rules_say(problem):
    tree, fixed, kinds, n_new = problem
    found = arrange(tree, fixed, kinds, [f"new {number}" for number in range(n_new)], tolerance=1.0)
    for level in range(fixed + 1):
        assert found.spine.codes[level] == tree.codes[level]
        own, before = region_of(found.spine, level), region_of(tree, level)[found.leaf]
        assert own.tolist() == before.tolist()
    for number, rule in enumerate(found.rules):
        own = region_of(found.spine, fixed + 1 + number)
        columns = [region_of(tree, fixed + rule.depth), *(kinds[kind].area_of for kind in rule.kinds)]
        shared = list(zip(*(column[found.leaf].tolist() for column in columns), strict=True))
        for one, other in combinations_with_replacement(range(len(own)), 2):
            assert (own[one] == own[other]) == (shared[one] == shared[other])


@settings(max_examples=25, deadline=None)
@given(problems(max_leaves=6), st.sampled_from([0.0, 0.05, 0.3]), st.sampled_from([1, 2]))
def test_no_other_rules_are_better(problem, tolerance, power):
    """The choice against all sequences of rules, each forecast by dense least squares."""
    tree, fixed, kinds, n_new = problem
    usual = [RegionRule(depth, ()) for depth in range(1, tree.n_levels - 1 - fixed)]
    names = [f"new {number}" for number in range(max(n_new, len(usual)))]

    def forecast(rules):
        spine, order = build_spine(tree, fixed, kinds, rules, names[: len(rules)])
        return errors_of(spine, order, tree, fixed, kinds, power)

    before = forecast(usual)

    def judged(rules):
        ratio = forecast(rules) / before
        return max(ratio[len(kinds) :].max(), 1.0 + tolerance), ratio[: len(kinds)].mean()

    chosen = choose_rules(tree, fixed, kinds, n_new, tolerance=tolerance, power=power)
    worst, score = judged(chosen)
    for rules in sequences(tree, fixed, kinds, n_new):
        other = judged(rules)
        assert worst <= other[0] + 1e-6
        if other[0] <= worst + 1e-9:
            assert score <= other[1] + 1e-6


def test_a_district_across_tracts_comes_near():
    codes = [f"{county}{tract}{block}" for county in "12" for tract in "abcd" for block in "12345678"]
    tree = RegionTree.from_prefixes(codes, ("state", "county", "tract", "block"), (0, 1, 2, 3))
    area_of = np.array([0 if code[2] in "1234" else 1 for code in codes])
    kind = AreaKind(name="district", areas=("north", "south"), area_of=area_of)
    found = arrange(tree, 1, (kind,), ["part"], tolerance=1.0)
    assert found.rule_names == (("tract", ("district",)),)
    assert found.spine.codes[2][:3] == ("1/1", "1/2", "1/3")
    assert found.stated()["rules"] == [{"geography": "tract", "areas": ["district"]}]
    assert distances(tree, area_of) == [32, 32]
    assert distances(found.spine, found.area_of(kind)) == [8, 8]


def distances(tree, area_of):
    parents = [np.repeat(np.arange(n), np.diff(s)) for n, s in zip(tree.sizes, tree.starts, strict=False)]
    return off_spine_distances(parents, *members(area_of), int(area_of.max()) + 1).tolist()


def test_areas_that_are_regions_change_nothing():
    codes = [f"{tract}{block}" for tract in "abc" for block in "123"]
    tree = RegionTree.from_prefixes(codes, ("town", "tract", "block"), (0, 1, 2))
    kind = AreaKind(name="area", areas=("x", "y"), area_of=np.array([0] * 3 + [1] * 6))
    found = arrange(tree, 0, (kind,), ["part"], tolerance=0.0)
    assert found.rules == (RegionRule(1, ()),)
    assert found.spine.leaves == tree.leaves


def test_too_many_combinations_are_refused():
    tree = RegionTree.from_prefixes(["aaaa", "abbb"], ("1", "2", "3", "4"), (1, 2, 3, 4))
    kinds = tuple(AreaKind(name=str(i), areas=("x",), area_of=np.array([0, -1])) for i in range(4))
    with pytest.raises(InputError, match="can be combined in"):
        arrange(tree, 0, kinds, [f"new {i}" for i in range(8)])
