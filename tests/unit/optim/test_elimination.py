"""Fourier-Motzkin elimination: appendix D, and random systems against linear programs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from louver.errors import SolverError
from louver.optim import elimination
from louver.optim.elimination import LinearRow, project
from oracles.elimination import extends

KEPT = ("h00", "h01", "h10", "h11")


def rows(names, *terms):
    """Rows from (coefficients by name, constant)."""
    return [
        LinearRow(tuple(own.get(name, 0) for name in names), Fraction(constant)) for own, constant in terms
    ]


def example_2():
    """Abowd et al. (2019), equations (26)-(33): two regions, each with both margins known."""
    regions = {"A": ((6, 16), (17, 5)), "B": ((15, 5), (5, 15))}
    cells = [f"{region}{i}{j}" for region in regions for i in "01" for j in "01"]
    names = [*cells, *KEPT]
    known = []
    for region, (row, column) in regions.items():
        for i in (0, 1):
            known.append(({f"{region}{i}0": 1, f"{region}{i}1": 1}, row[i]))
            known.append(({f"{region}0{i}": 1, f"{region}1{i}": 1}, column[i]))
    known += [({h: 1, f"A{h[1:]}": -1, f"B{h[1:]}": -1}, 0) for h in KEPT]
    return rows(names, *known), rows(names, *(({cell: 1}, 0) for cell in cells)), range(8, 12)


def test_appendix_d_three_equalities_and_ten_at_most():
    found = project(*example_2())
    assert found.in_words(KEPT) == (
        "h00 = 1 + h11",
        "h01 + h11 = 20",
        "h10 + h11 = 21",
        "10 >= h11",
        "h11 >= 0",
    )
    assert found.is_exact


def test_example_1_by_elimination():
    """Regions of 98 students; the first has no male dorm, the second no female one: equations (4) and (5)."""
    names = ["F1", "C1", "C2", "M2", "F", "C", "M"]
    equations = rows(
        names,
        ({"F1": 1, "C1": 1}, 98),
        ({"C2": 1, "M2": 1}, 98),
        ({"F1": 1, "F": -1}, 0),
        ({"M2": 1, "M": -1}, 0),
        ({"C1": 1, "C2": 1, "C": -1}, 0),
    )
    found = project(equations, rows(names, *(({name: 1}, 0) for name in names[:4])), [4, 5, 6])
    for point in product((0, 48, 98, 99, 196), repeat=3):
        f, c, m = point
        expected = f + c >= 98 and m + c >= 98 and f + c + m == 196
        assert found.holds(point) is expected
    assert found.is_exact and "F + C + M = 196" in found.in_words(["F", "C", "M"])


coefficient = st.integers(-2, 2)


@st.composite
def systems(draw):
    """A few rows over four unknowns, all of them in a box, of which two are kept."""
    line = st.tuples(st.tuples(*[coefficient] * 4), st.integers(-4, 4))
    equations = draw(st.lists(line, max_size=2))
    inequalities = draw(st.lists(line, min_size=1, max_size=4))
    box = [(tuple((j == i) * s for j in range(4)), -3) for i in range(4) for s in (1, -1)]
    return equations, [*inequalities, *box], draw(st.sampled_from([(0, 1), (1, 3), (2, 0)]))


@settings(max_examples=15, deadline=None)
@given(systems())
def test_a_projection_holds_what_a_linear_program_extends(system):
    equations, inequalities, kept = system
    given_rows = [[LinearRow(a, Fraction(c)) for a, c in own] for own in (equations, inequalities)]
    found = project(*given_rows, kept)
    for point in product((-3, -1, 0, 2), repeat=2):
        assert found.holds(point) == extends(equations, inequalities, kept, point), point
        if found.is_exact and found.holds(point):
            assert extends(equations, inequalities, kept, point, whole=True), point


def test_a_projection_that_is_not_exact_says_so():
    """Twice an unknown lies between x and x: only even points extend."""
    names = ["y", "x"]
    bounds = rows(names, ({"x": 1}, 0), ({"x": -1}, -3), ({"x": 1, "y": -2}, 0), ({"x": -1, "y": 2}, 0))
    found = project([], bounds, [1])
    assert not found.is_exact and found.in_words(["x"]) == ("x >= 0", "3 >= x")
    halves = rows(names, ({"x": 1}, 0), ({"x": -1}, -3), ({"x": 2, "y": -2}, -1), ({"x": -2, "y": 2}, -1))
    loose = project([], halves, [1])
    assert not loose.is_exact


def test_contradictions_are_found():
    names = ["y", "x"]
    nothing = rows(names, ({"x": 1, "y": -2}, 0), ({"x": -1, "y": 3}, -9))
    assert project([], nothing, [0, 1]).in_words(names) == ("x >= 2 y", "9 + 3 y >= x")
    assert not project([], rows(names, ({"y": 1}, 3), ({"y": -1}, -2)), [1]).is_feasible
    assert not project(rows(names, ({"x": 1}, 3), ({"x": 1}, 2)), [], [1]).is_feasible
    assert not project([], rows(names, ({"x": 1}, 3), ({"x": -1}, -2)), [1]).holds((3,))


def test_opposite_rows_become_an_equation():
    names = ["y", "x"]
    found = project([], rows(names, ({"x": 1, "y": 1}, 3), ({"x": -1, "y": -1}, -3), ({"y": 1}, 1)), [0, 1])
    assert found.in_words(names) == ("y + x = 3", "2 >= x")


def three_by_three(n_regions):
    """Both margins of a three by three table known in every region (Theorem 2)."""
    where = range(n_regions)
    cells = [(r, i, j) for r in where for i in range(3) for j in range(3)]
    names = [*cells, *((i, j) for i in range(3) for j in range(3))]
    margins = [({(r, i, j): 1 for j in range(3)}, 2 + r + i) for r in where for i in range(3)]
    margins += [({(r, i, j): 1 for i in range(3)}, 2 + r + j) for r in where for j in range(3)]
    sums = [({(i, j): 1, **{(r, i, j): -1 for r in where}}, 0) for i in range(3) for j in range(3)]
    system = rows(names, *margins, *sums), rows(names, *(({cell: 1}, 0) for cell in cells))
    return *system, range(9 * n_regions, 9 * n_regions + 9)


def test_beyond_the_guard_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(elimination, "MAX_ROWS", 60)
    with pytest.raises(SolverError, match="takes more than 60 rows; state constraints on fewer sets"):
        project(*three_by_three(3))


def test_two_regions_of_three_by_three_margins():
    system = three_by_three(2)
    found = project(*system)
    table = (3, 2, 1, 1, 3, 3, 1, 2, 4)
    for moved in range(-3, 4):  # along a cycle, margins stay
        point = [n + moved * s for n, s in zip(table, (1, -1, 0, -1, 1, 0, 0, 0, 0), strict=True)]
        plain = [[(row.coefficients, row.constant) for row in own] for own in system[:2]]
        assert found.holds(point) == extends(*plain, system[2], point)
