"""RegionTree, tables and queries; sensitivities by enumeration of all neighbours of all small data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from louver.data.regions import RegionTree
from louver.errors import BudgetError, InputError
from louver.groups.problem import (
    GroupTable,
    SizeQuery,
    Total,
    answers,
    sensitivity,
    sizes_of,
    squared_sensitivity,
    ways_to_change,
)
from louver.optim.trees import LevelTree
from louver.privacy.composition import Changes
from louver.privacy.neighbours import Relation
from oracles.groups import data_sets, leaf_counts

RECORD, CHANGE, UNIT = Relation.ADD_REMOVE_RECORD, Relation.CHANGE_RECORD, Relation.ADD_REMOVE_UNIT

Data = dict[int, tuple[int, int]]
"""Unit -> (leaf, size). With a noisy total a unit of size 0 does not exist."""

TREES = [LevelTree.from_counts(c) for c in ([[2]], [[3]], [[2], [2, 2]], [[2], [2, 3]], [[1], [2], [2, 1]])]


def _neighbours(data: Data, relation: Relation, leaves: int, largest: int, quantity: int) -> Iterator[Data]:
    """Straight from the meaning: who comes, goes or moves. Sizes are sums of quantities 1 .. quantity."""
    if relation is UNIT:
        for unit, (leaf, size) in data.items():
            if size == 0:
                yield from ({**data, unit: (leaf, new)} for new in range(1, largest + 1))
            else:
                yield {**data, unit: (leaf, 0)}
        return
    for unit, (leaf, size) in data.items():
        for q in range(1, quantity + 1):
            if size + q <= largest:
                added = {**data, unit: (leaf, size + q)}
                if relation is RECORD:
                    yield added
                else:
                    yield from _removals(added, quantity)
    if relation is RECORD:
        yield from _removals(data, quantity)


def _removals(data: Data, quantity: int) -> Iterator[Data]:
    for unit, (leaf, size) in data.items():
        for q in range(1, min(quantity, size) + 1):
            yield {**data, unit: (leaf, size - q)}


def _worst(
    query: SizeQuery, relation: Relation, total: Total, tree: LevelTree, largest: int, quantity: int
) -> list[int]:
    """Largest L1 change of each level's answers."""
    first = 0 if total is Total.PUBLIC else 1
    worst = [0] * tree.n_levels
    leaves = tree.n_leaves

    def answer(data: Data) -> np.ndarray:
        return answers(tree.sum_up(leaf_counts(data, leaves, first, largest)), query, tree)

    for data in data_sets([0, 1], leaves, largest):
        here = answer(data)
        for neighbour in _neighbours(data, relation, leaves, largest, quantity):
            changed = np.abs(answer(neighbour) - here).sum(axis=1)
            worst = [max(w, int(changed[tree.level(k)].sum())) for k, w in enumerate(worst)]
    return worst


@pytest.mark.parametrize("tree", TREES, ids=["2", "3", "2-4", "2-5", "1-2-3"])
@pytest.mark.parametrize("query", list(SizeQuery))
def test_sensitivity_to_one_record(tree: LevelTree, query: SizeQuery) -> None:
    """With a public total: sizes 2, prefix and suffix 1, and for the chain the regions of the level (ERRATA G1)."""
    largest = 3
    declared = [
        sensitivity(query, RECORD, Total.PUBLIC, n_level_regions=n, n_sizes=largest + 1)
        for n in tree.level_sizes
    ]
    assert _worst(query, RECORD, Total.PUBLIC, tree, largest, 1) == declared
    if query is SizeQuery.CHAIN:
        assert declared == list(tree.level_sizes)


@pytest.mark.parametrize("query", [SizeQuery.SIZES, SizeQuery.SUFFIX])
@pytest.mark.parametrize("relation", [RECORD, UNIT])
def test_sensitivity_with_a_noisy_total(query: SizeQuery, relation: Relation) -> None:
    tree, largest = TREES[0], 3
    declared = sensitivity(query, relation, Total.NOISY, n_level_regions=2, n_sizes=largest)
    assert max(_worst(query, relation, Total.NOISY, tree, largest, 1)) == declared
    assert (
        declared
        == {
            RECORD: {SizeQuery.SIZES: 2, SizeQuery.SUFFIX: 1},
            UNIT: {SizeQuery.SIZES: 1, SizeQuery.SUFFIX: 3},
        }[relation][query]
    )


@pytest.mark.parametrize("query", [SizeQuery.SIZES, SizeQuery.PREFIX, SizeQuery.SUFFIX, SizeQuery.CHAIN])
def test_sensitivity_to_a_changed_record(query: SizeQuery) -> None:
    """At most twice that of one record; sizes reach it, with two units that change apart."""
    tree, largest = TREES[0], 3
    declared = [
        sensitivity(query, CHANGE, Total.PUBLIC, n_level_regions=n, n_sizes=largest + 1)
        for n in tree.level_sizes
    ]
    worst = _worst(query, CHANGE, Total.PUBLIC, tree, largest, 1)
    assert all(w <= d for w, d in zip(worst, declared, strict=True))
    if query is not SizeQuery.CHAIN:
        assert worst == declared


@pytest.mark.parametrize("query", [SizeQuery.SIZES, SizeQuery.PREFIX, SizeQuery.SUFFIX, SizeQuery.CHAIN])
@pytest.mark.parametrize("quantity", [2, 3])
def test_sensitivity_with_quantities(query: SizeQuery, quantity: int) -> None:
    tree, largest = TREES[0], 3
    declared = [
        sensitivity(query, RECORD, Total.PUBLIC, n_level_regions=n, n_sizes=4, largest_quantity=quantity)
        for n in tree.level_sizes
    ]
    assert _worst(query, RECORD, Total.PUBLIC, tree, largest, quantity) == declared


@pytest.mark.parametrize("query", list(SizeQuery))
@pytest.mark.parametrize("relation", [RECORD, CHANGE])
def test_sensitivity_where_empty_units_count_with_size_1(query: SizeQuery, relation: Relation) -> None:
    """Neighbours may empty a unit; its size is raised to 1 in both tables, which brings none further apart."""
    tree, largest = TREES[2], 3
    declared = [
        sensitivity(query, relation, Total.PUBLIC, n_level_regions=n, n_sizes=largest)
        for n in tree.level_sizes
    ]
    regions = RegionTree.from_leaves(("a", "b"), [("x", "p"), ("x", "q"), ("y", "p"), ("y", "q")])

    def answer(data: Data) -> np.ndarray:
        cells = Counter((regions.leaf_labels[leaf], size) for leaf, size in data.values())
        return answers(GroupTable.from_cells(regions, cells, largest, Total.PUBLIC, 1).counts, query, tree)

    worst = [0] * tree.n_levels
    for data in data_sets([0, 1], tree.n_leaves, largest):
        here = answer(data)
        for neighbour in _neighbours(data, relation, tree.n_leaves, largest, 1):
            changed = np.abs(answer(neighbour) - here).sum(axis=1)
            worst = [max(w, int(changed[tree.level(k)].sum())) for k, w in enumerate(worst)]
    assert all(w <= d for w, d in zip(worst, declared, strict=True))
    if relation is RECORD:
        assert worst == declared


def _changes(
    query: SizeQuery, relation: Relation, total: Total, tree: LevelTree, quantity: int
) -> Iterator[list[list[int]]]:
    """For every pair of neighbours the changes of each level's answers, largest first."""
    first, largest = (0 if total is Total.PUBLIC else 1), 3

    def answer(data: Data) -> np.ndarray:
        return answers(tree.sum_up(leaf_counts(data, tree.n_leaves, first, largest)), query, tree)

    for data in data_sets([0, 1], tree.n_leaves, largest):
        here = answer(data)
        for neighbour in _neighbours(data, relation, tree.n_leaves, largest, quantity):
            changed = np.abs(answer(neighbour) - here)
            levels = (changed[tree.level(k)].ravel() for k in range(tree.n_levels))
            yield [sorted(level[level > 0].tolist(), reverse=True) for level in levels]


def _is_covered(changes: list[list[int]], way: list[Changes]) -> bool:
    """Whether each level changes at most as this way says, count by count."""
    told = [sorted((s for s, n in level for _ in range(n)), reverse=True) for level in way]
    return all(
        len(a) <= len(b) and all(x <= y for x, y in zip(a, b, strict=False))
        for a, b in zip(changes, told, strict=True)
    )


@pytest.mark.parametrize(
    ("query", "relation", "total", "quantity", "squared"),
    [
        (SizeQuery.SIZES, RECORD, Total.PUBLIC, 1, 2),
        (SizeQuery.SIZES, RECORD, Total.NOISY, 2, 2),
        (SizeQuery.SIZES, CHANGE, Total.PUBLIC, 1, 6),
        (SizeQuery.SIZES, CHANGE, Total.NOISY, 1, 6),
        (SizeQuery.SIZES, CHANGE, Total.PUBLIC, 2, 6),
        (SizeQuery.SIZES, UNIT, Total.NOISY, 1, 1),
        (SizeQuery.PREFIX, RECORD, Total.PUBLIC, 1, 1),
        (SizeQuery.PREFIX, RECORD, Total.PUBLIC, 3, 3),
        (SizeQuery.PREFIX, CHANGE, Total.PUBLIC, 1, 2),
        (SizeQuery.SUFFIX, RECORD, Total.NOISY, 1, 1),
        (SizeQuery.SUFFIX, RECORD, Total.NOISY, 2, 2),
        (SizeQuery.SUFFIX, CHANGE, Total.NOISY, 1, 2),
        (SizeQuery.SUFFIX, UNIT, Total.NOISY, 1, 3),
        (SizeQuery.CHAIN, RECORD, Total.PUBLIC, 1, 2),
        (SizeQuery.CHAIN, CHANGE, Total.PUBLIC, 1, 4),
    ],
)
def test_squared_sensitivities_and_ways_to_change(
    query: SizeQuery, relation: Relation, total: Total, quantity: int, squared: int
) -> None:
    """Every pair of neighbours: the squared change is at most what is declared, and one of the ways covers all levels."""
    tree = TREES[0]
    n_sizes = 4 if total is Total.PUBLIC else 3
    l1 = [
        sensitivity(query, relation, total, n_level_regions=n, n_sizes=n_sizes, largest_quantity=quantity)
        for n in tree.level_sizes
    ]
    declared = [squared_sensitivity(query, relation, one) for one in l1]
    ways = ways_to_change(query, relation, l1)
    assert declared[-1] == squared
    assert declared == [max(sum(n * s * s for s, n in way[k]) for way in ways) for k in range(tree.n_levels)]
    worst = [0] * tree.n_levels
    for changes in _changes(query, relation, total, tree, quantity):
        assert any(_is_covered(changes, way) for way in ways)
        worst = [max(w, sum(x * x for x in level)) for w, level in zip(worst, changes, strict=True)]
    if query is SizeQuery.CHAIN and relation is CHANGE:  # an upper bound only
        assert all(w <= d for w, d in zip(worst, declared, strict=True))
    else:
        assert worst == declared


def test_prefix_counts_of_units_that_vanish_change_everywhere() -> None:
    """ERRATA G2: why Lemma 6 needs a shared list of units; the combination is refused."""
    assert max(_worst(SizeQuery.PREFIX, RECORD, Total.NOISY, TREES[0], 3, 1)) == 3
    for query in (SizeQuery.PREFIX, SizeQuery.CHAIN):
        with pytest.raises(BudgetError, match="public total"):
            sensitivity(query, RECORD, Total.NOISY, n_level_regions=1, n_sizes=3)
        with pytest.raises(BudgetError, match="public total"):
            sensitivity(query, UNIT, Total.NOISY, n_level_regions=1, n_sizes=3)
    with pytest.raises(BudgetError, match="--total noisy"):
        sensitivity(SizeQuery.SIZES, UNIT, Total.PUBLIC, n_level_regions=1, n_sizes=3)


@pytest.mark.parametrize("query", list(SizeQuery))
def test_sizes_come_back(query: SizeQuery) -> None:
    tree = TREES[2]
    counts = tree.sum_up(np.arange(tree.n_leaves * 4).reshape(-1, 4))
    assert np.array_equal(sizes_of(answers(counts, query, tree), query, tree), counts)


def test_regions_are_checked() -> None:
    with pytest.raises(InputError, match="no regions"):
        RegionTree.from_leaves(("state",), [])
    with pytest.raises(InputError, match="a leaf region on row 3") as caught:
        RegionTree.from_leaves(("state",), [("GA",), ("NY",), ("GA",)])
    assert caught.value.row == 3
    with pytest.raises(InputError, match='named "total"'):
        RegionTree.from_leaves(("total",), [("GA",)])


def test_equal_labels_under_different_parents_are_different_regions() -> None:
    regions = RegionTree.from_leaves(("state", "county"), [("NY", "Kent"), ("MI", "Kent"), ("MI", "Eaton")])
    assert regions.names == ("total", "state", "county")
    assert regions.leaf_labels == (("MI", "Eaton"), ("MI", "Kent"), ("NY", "Kent"))
    assert regions.tree.level_sizes == (1, 2, 3)
    assert len(set(regions.node_names)) == 6


LABEL = st.text(st.sampled_from("/\\\\-a"), max_size=3)


@given(st.sets(st.tuples(LABEL, LABEL), min_size=1, max_size=12))
def test_node_names_are_unique_whatever_the_labels(leaves: set[tuple[str, str]]) -> None:
    regions = RegionTree.from_leaves(("a", "b"), sorted(leaves))
    assert len(set(regions.node_names)) == len(regions.labels) == len(set(regions.labels))


def test_a_table_knows_its_size() -> None:
    regions = RegionTree.from_leaves(("state",), [("GA",), ("NY",)])
    table = GroupTable.from_cells(regions, {(("GA",), 0): 4, (("NY",), 2): 1}, 2, Total.PUBLIC)
    assert table.counts.tolist() == [[4, 0, 1], [4, 0, 0], [0, 0, 1]]
    assert (table.n_groups, table.first_size, table.largest_size) == (5, 0, 2)
    with pytest.raises(ValueError):
        table.counts[0, 0] = 1
