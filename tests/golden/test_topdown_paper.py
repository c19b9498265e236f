"""Abowd et al. (2019), Census TopDown: the worked examples, with ERRATA T8 and T9."""

from __future__ import annotations

import numpy as np
import pytest

from louver.data.regions import RegionTree
from louver.topdown.knowledge.implied import UNBOUNDED, DerivedKind, LevelStatements, derive, set_sums
from oracles import topdown as oracle

FEMALE, COED, MALE = 0b001, 0b010, 0b100


def tree(*leaves):
    return RegionTree.from_columns([("r", leaf) for leaf in leaves], ("nation", "region"))


def leaves_only(spine, masks, lower, upper):
    """Nothing known but about the leaves."""
    above = [LevelStatements.nothing(n) for n in spine.sizes[:-1]]
    return [*above, LevelStatements(masks=masks, lower=np.array(lower), upper=np.array(upper))]


@pytest.fixture
def town():
    """Example 1: 98 students in each region; region 1 has no male dorm, region 2 no female one."""
    stated = leaves_only(
        tree("1", "2"),
        (FEMALE, MALE, 7),
        [[0, 0, 98], [0, 0, 98]],
        [[UNBOUNDED, 0, 98], [0, UNBOUNDED, 98]],
    )
    return derive(tree("1", "2"), 3, stated)


def test_example_1_constraints_4_and_5(town):
    lower, upper = (bounds[0] for bounds in town.bounds(0, 0, 1))
    assert lower[7] == upper[7] == 196
    assert lower[FEMALE | COED] == 98 and lower[MALE | COED] == 98
    assert lower[FEMALE] == lower[COED] == lower[MALE] == 0
    # Everything else follows from these, as the paper says.
    for counts in ((98, 0, 98), (0, 196, 0), (48, 50, 98)):
        assert town.find_violation(0, 0, np.array(counts)) is None


def test_example_1_refuses_99_male_students_and_names_the_region(town):
    violation = town.find_violation(0, 0, np.array([48, 49, 99]))
    assert violation is not None
    # T9: too many men for region 2, or too few others for region 1; either is right.
    assert (violation.mask, violation.is_upper, violation.leaves) in [
        (MALE, True, ("r/2",)),
        (FEMALE | COED, False, ("r/1",)),
    ]
    assert violation.held - violation.bound in (1, -1)


def two_by_two(tables):
    """Cells numbered 2 R_H + R_V; the margins of each region known exactly."""
    spine = tree(*(str(i) for i in range(len(tables))))
    masks = (0b1100, 0b0011, 0b1010, 0b0101)
    held = np.array([[row[1], row[0], column[1], column[0]] for row, column in tables])
    return derive(spine, 4, leaves_only(spine, masks, held, held))


def test_example_2():
    """R_H margins (6, 16) and (15, 5), R_V margins (17, 5) and (5, 15)."""
    implied = two_by_two([((6, 16), (17, 5)), ((15, 5), (5, 15))])
    assert implied.kind is DerivedKind.TWO_BY_TWO
    lower, upper = (bounds[0] for bounds in implied.bounds(0, 0, 1))
    assert (lower[0b1000], upper[0b1000]) == (0, 10)
    for h11 in range(11):
        assert implied.find_violation(0, 0, np.array([1 + h11, 20 - h11, 21 - h11, h11])) is None
    assert implied.find_violation(0, 0, np.array([12, 9, 10, 11])) is not None


def test_example_3_z1_is_between_0_and_10():
    implied = two_by_two([((5, 15), (15, 5)), ((15, 5), (5, 15))])
    lower, upper = (bounds[0] for bounds in implied.bounds(0, 0, 1))
    assert (lower[0b0001], upper[0b0001]) == (0, 10)
    assert implied.find_violation(0, 0, np.array([11, 9, 9, 11])) is not None
    assert implied.find_violation(0, 0, np.array([10, 10, 10, 10])) is None


# Section 7.3.1 with numbers of ours: (county, population, least A, B, C); a type not named is absent.
COUNTIES = [
    ("NY", "Nassau", 9, {"A": 1, "C": 2}),
    ("NY", "Queens", 7, {"C": 3}),
    ("NY", "Suffolk", 8, {"A": 2, "C": 1}),
    ("RI", "Kent", 5, {"A": 1, "B": 1}),
    ("RI", "Newport", 6, {"A": 0, "B": 2}),
    ("RI", "Providence", 4, {"A": 1, "C": 1}),
    ("RI", "Washington", 3, {"A": 1, "B": 1}),
]


def county_statements():
    least = np.array([[types.get(name, 0) for name in "ABC"] for *_, types in COUNTIES])
    present = np.array([[name in types for name in "ABC"] for *_, types in COUNTIES])
    totals = np.array([population for _, _, population, _ in COUNTIES])
    lower = np.column_stack([least, totals])
    upper = np.column_stack([np.where(present, UNBOUNDED, 0), totals])
    return least, present, totals, LevelStatements(masks=(1, 2, 4, 7), lower=lower, upper=upper)


def flow_is_feasible(counts, flow):
    """Whether g_i people of type i can flow into the combinations, by linear programming."""
    from scipy.optimize import linprog

    arcs = [(t, mask) for mask in flow for t in range(3) if mask >> t & 1]
    rows, goals = [], []
    for t in range(3):
        rows.append([float(arc[0] == t) for arc in arcs])
        goals.append(counts[t])
    for mask, (people, _) in flow.items():
        rows.append([float(arc[1] == mask) for arc in arcs])
        goals.append(people)
    limits = [(flow[mask][1][t], None) for t, mask in arcs]
    return linprog(np.zeros(len(arcs)), A_eq=rows, b_eq=goals, bounds=limits).status == 0


def test_seven_counties_agree_with_the_flow_of_section_7_3_1():
    spine = RegionTree.from_columns(
        [("US", *county[:2]) for county in COUNTIES], ("nation", "state", "county")
    )
    least, present, totals, stated = county_statements()
    statements = [LevelStatements.nothing(1), LevelStatements.nothing(2), stated]
    implied = derive(spine, 3, statements)
    flows = {
        (0, 0): oracle.compact_flow(3, least, present, totals),
        (1, 0): oracle.compact_flow(3, least[:3], present[:3], totals[:3]),
        (1, 1): oracle.compact_flow(3, least[3:], present[3:], totals[3:]),
    }
    assert flows[0, 0] == {
        0b101: (9 + 8 + 4, pytest.approx([4, 0, 4])),
        0b100: (7, pytest.approx([0, 0, 3])),
        0b011: (5 + 6 + 3, pytest.approx([2, 4, 0])),
    }
    for (level, region), flow in flows.items():
        people = int(implied.bounds(level, region, region + 1)[1][0, 7])
        seen = {True: 0, False: 0}
        for a in range(people + 1):
            for b in range(people - a + 1):
                counts = np.array([a, b, people - a - b])
                is_feasible = implied.find_violation(level, region, counts) is None
                seen[is_feasible] += 1
                assert is_feasible == flow_is_feasible(counts, flow)
        assert seen[True] and seen[False]


def test_t8_two_leaves_whose_pooled_flow_is_wrong():
    """Two leaves of 10 people with upper bounds (1, 1, 10) and (10, 10, 10): (10, 10, 0) is impossible."""
    spine = tree("1", "2")
    stated = leaves_only(spine, (1, 2, 4, 7), [[0, 0, 0, 10]] * 2, [[1, 1, 10, 10], [10, 10, 10, 10]])
    implied = derive(spine, 3, stated)
    violation = implied.find_violation(0, 0, np.array([10, 10, 0]))
    assert violation is not None and violation.leaves
    assert implied.find_violation(0, 0, np.array([6, 6, 8])) is None
    masks, lower, upper = (1, 2, 4, 7), stated[-1].lower.tolist(), stated[-1].upper.tolist()
    allowed = oracle.region_vectors([[0, 2]], 3, [((), [[]], [[]]), (masks, lower, upper)], 20)[0][0]
    bounds = implied.bounds(0, 0, 1)
    assert oracle.within(bounds[0][0], bounds[1][0], 3, 20) == allowed


def test_set_sums_by_hand():
    assert set_sums(np.array([[1, 10, 100]])).tolist() == [[0, 1, 10, 11, 100, 101, 110, 111]]
