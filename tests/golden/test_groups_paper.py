"""Worked examples and tables of Fioretto, Van Hentenryck & Zhu (2021), with ERRATA G7.

Tables 3 to 6 and Examples 1 to 6. Noisy values of the running example (Figures 3 and 6): groups of size 1 are 3 in GA, 0 in
NY and 2 in US; cumulative counts 3, 3 and 2.
"""

from __future__ import annotations

import numpy as np

from louver.data.regions import RegionTree
from louver.groups.methods.integer_program import solve_by_tables
from louver.groups.methods.sizes import solve_dynamic
from louver.groups.problem import GroupTable, NoisyAnswers, SizeQuery, Total, answers
from louver.optim.trees import LevelTree

# Table 2: user, unit, region.
RECORDS = [
    (1, "A", "GA"), (2, "B", "GA"), (3, "A", "GA"), (4, "A", "GA"), (5, "C", "GA"),
    (6, "D", "NY"), (7, "E", "NY"), (8, "D", "NY"), (9, "D", "NY"), (10, "F", "NY"), (11, "F", "NY"),
]  # fmt: skip

# Table 3: group and size of every unit.
SIZES = {"A": 3, "B": 1, "C": 1, "D": 3, "E": 1, "F": 2}

# Table 4: groups of size 1 to 5 in US, GA and NY.
COUNTS = [[3, 1, 2, 0, 0], [2, 0, 1, 0, 0], [1, 1, 1, 0, 0]]

# Table 5: cost tables of groups of size 1 for v = 0 .. 4; the last column is tau of US.
TAU_GA = [9, 4, 1, 0, 1]
TAU_NY = [0, 1, 4, 9, 16]
TAU_US = [4 + 9, 1 + 4, 0 + 1, 1 + 0, 4 + 1]

TREE = LevelTree.from_counts([[2]])


def _table() -> GroupTable:
    cells: dict[tuple[tuple[str, ...], int], int] = {}
    region_of = {unit: region for _, unit, region in RECORDS}
    for unit, region in region_of.items():
        size = sum(1 for _, other, _ in RECORDS if other == unit)
        assert size == SIZES[unit]
        cells[(region,), size] = cells.get(((region,), size), 0) + 1
    regions = RegionTree.from_leaves(("state",), [("GA",), ("NY",)])
    return GroupTable.from_cells(regions, cells, 5, Total.NOISY)


def test_table_4_and_examples_1_to_3() -> None:
    table = _table()
    assert table.regions.labels == ((), ("GA",), ("NY",))
    assert table.counts.tolist() == COUNTS
    assert table.n_groups == 6  # Example 3: G
    assert (table.first_size, table.largest_size) == (1, 5)


def test_figure_5_cumulative_counts() -> None:
    assert answers(_table().counts, SizeQuery.PREFIX, TREE).tolist() == [
        [3, 4, 6, 6, 6],
        [2, 2, 3, 3, 3],
        [1, 2, 3, 3, 3],
    ]


def test_figure_6_chain() -> None:
    """Post-order of T^dp: GA, NY, US for size 1, then size 2, ...; cumulative within a level."""
    chain = answers(_table().counts, SizeQuery.CHAIN, TREE)
    assert chain[1:].T.ravel().tolist() == [2, 3, 3, 4, 5, 6, 6, 6, 6, 6]
    assert chain[0].tolist() == [3, 4, 6, 6, 6]


def _cost_tables(noisy: list[int], largest: int) -> tuple[list[int], list[int], list[int]]:
    """(4a)-(4d) by trying every pair: US, GA, NY."""
    ga = [(v - noisy[1]) ** 2 for v in range(largest + 1)]
    ny = [(v - noisy[2]) ** 2 for v in range(largest + 1)]
    us = [(v - noisy[0]) ** 2 + min(ga[x] + ny[v - x] for x in range(v + 1)) for v in range(largest + 1)]
    return us, ga, ny


def test_table_5_cost_tables_and_starred_values() -> None:
    us, ga, ny = _cost_tables([2, 3, 0], 4)
    assert (ga, ny, us) == (TAU_GA, TAU_NY, TAU_US)
    # The starred values: 3 in US, 3 in GA, 0 in NY, at cost 1; v = 2 costs 1 too.
    noisy = NoisyAnswers(TREE, np.array([[2], [3], [0]]), (1.0, 1.0), 3)
    for solve in (solve_dynamic, solve_by_tables):
        assert solve(noisy).ravel().tolist() == [3, 3, 0]


def test_examples_4_and_5_children_by_slopes() -> None:
    """phi(3) = 0 at (0, 3), phi(4) = 1 at (1, 3) or (0, 4), phi(5) = 2 at (1, 4)  [NY, GA]; tau_US adds (v - 2)^2.

    Example 5's text continues with v[GA] = 1, which is 4 (ERRATA G7).
    """
    costs = {3: 1, 4: 5, 5: 11}
    for total, cost in costs.items():
        noisy = NoisyAnswers(TREE, np.array([[2], [3], [0]]), (1.0, 1.0), total)
        values = solve_dynamic(noisy)
        assert int(((values - noisy.rows) ** 2).sum()) == cost
    assert values.ravel().tolist() == [5, 4, 1]


def test_table_6_chain_cost_tables() -> None:
    """Example 6: tau_NY(v) = (v - 3)^2 + min over x <= v of tau_GA(x), tau_US = (v - 2)^2 + tau_NY.

    Table 6 prints min(0, 4, 1) for v = 2, which is min(9, 4, 1) (ERRATA G7).
    """
    tau_ga = [(v - 3) ** 2 for v in range(5)]
    tau_ny = [(v - 3) ** 2 + min(tau_ga[: v + 1]) for v in range(5)]
    tau_us = [(v - 2) ** 2 + tau_ny[v] for v in range(5)]
    assert tau_ga == [9, 4, 1, 0, 1]
    assert tau_ny == [18, 8, 2, 0, 1]
    assert tau_us == [22, 9, 2, 1, 5]


def test_example_6_by_isotonic_regression() -> None:
    """The starred values of Table 6, with a second size that leaves room: 3, 3 and 3."""
    from louver.groups.methods.cumulative import solve_chain

    noisy = NoisyAnswers(TREE, np.array([[2, 9], [3, 9], [3, 9]]), (1.0, 1.0), 9)
    # GA = 3; NY and US share one unknown, (3 + 2) / 2, pooled with GA: (3 + 3 + 2) / 3 = 2.67, rounded 3.
    assert answers(solve_chain(noisy), SizeQuery.CHAIN, TREE)[:, 0].tolist() == [3, 3, 3]
