"""What the two solvers refuse, and cases small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from louver.bounds import rounded
from louver.bounds.check import solve_exact
from louver.bounds.knowledge import NO_LIMIT, BoundStatement
from louver.bounds.problem import Arrangement, arrange
from louver.bounds.rounded import RoundingRule, published_values, solve_rounded
from louver.data.histogram import Histogram
from louver.errors import InfeasibleError, InputError
from louver.schema.attribute import Attribute


def table_of(counts, n=None):
    counts = np.array(counts)
    names = (
        Attribute(name="row", labels=tuple(map(str, range(len(counts))))),
        Attribute(name="col", labels=tuple(map(str, range(counts.shape[1])))),
    )
    table = arrange(Histogram.from_dense(counts, names), Arrangement(rows=("row",), cols=("col",)))
    return table if n is None else replace(table, n=n)


def every(counts):
    return np.ones(len(counts), dtype=bool)


@pytest.mark.parametrize("n", [1, 28, 30])
def test_no_table_has_this_sample_size(n):
    counts = [[3, 4], [5, 3], [6, 9], [10, 8]]
    with pytest.raises(InputError, match="no table has these conditionals and this sample size") as caught:
        solve_exact(table_of(counts, n), (), every(counts))
    assert caught.value.option == "--n"


def test_no_table_at_all_is_not_blamed_on_what_is_known():
    known = [BoundStatement(number=1, row=0, cells=np.array([True, True]), lower=3, upper=NO_LIMIT)]
    with pytest.raises(InputError, match="no table has these conditionals"):
        solve_exact(table_of([[2, 2]], 3), known, np.ones(1, dtype=bool))
    published = np.array([[1, 1]])
    with pytest.raises(InputError, match="no table has these rounded"):
        solve_rounded(published, 1, RoundingRule.HALF_UP, 5, known, np.ones(1, dtype=bool))


def test_sums_too_large_for_memory():
    counts = [[2**40 - 1, 1], [2**40 - 2, 1]]
    with pytest.raises(InputError, match="too large to be solved in memory") as caught:
        solve_exact(table_of(counts, 2**53), (), every(counts))
    assert caught.value.option == "--n"


def test_a_sample_too_large_for_rounded_conditionals(monkeypatch):
    monkeypatch.setattr(rounded, "MAX_WORK", 399)
    published = np.array([[5, 5]])
    with pytest.raises(InputError, match="so large a sample") as caught:
        solve_rounded(published, 1, RoundingRule.HALF_UP, 100, (), np.ones(1, dtype=bool))
    assert caught.value.option == "--decimals"
    assert solve_rounded(published, 1, RoundingRule.HALF_UP, 99, (), np.ones(1, dtype=bool)).lower.size == 2


@pytest.mark.parametrize(
    ("rule", "expected"),
    [(RoundingRule.HALF_UP, [[1, 0], [1, 1]]), (RoundingRule.HALF_EVEN, [[1, 0], [0, 0]])],
)
def test_halves_without_decimals(rule, expected):
    assert published_values(np.array([[3, 1], [2, 2]]), 0, rule).tolist() == expected


def test_a_printed_zero_may_hide_a_person():
    # 1 of 201 people prints as 0.00, 1 of 200 as 0.01 (half-up) or 0.00 (half-even).
    for n, rule, hidden in [
        (201, RoundingRule.HALF_UP, 1),
        (200, RoundingRule.HALF_UP, 0),
        (200, RoundingRule.HALF_EVEN, 1),
    ]:
        solution = solve_rounded(np.array([[100, 0]]), 2, rule, n, (), np.ones(1, dtype=bool))
        assert solution.values(0, 1) == ([(0, 1, 1)] if hidden else [(0, 0, 1)])


def test_rows_printed_alike_share_their_values():
    published = np.array([[3, 7], [3, 7], [5, 5]])
    solution = solve_rounded(published, 1, RoundingRule.HALF_UP, 60, (), np.ones(3, dtype=bool))
    assert solution.span[0].tolist() == solution.span[1].tolist()
    assert (solution.lower[0] == solution.lower[1]).all()


def test_rows_not_asked_for_have_no_values():
    published = np.array([[3, 7], [5, 5]])
    solution = solve_rounded(published, 1, RoundingRule.HALF_UP, 60, (), np.array([False, True]))
    full = solve_rounded(published, 1, RoundingRule.HALF_UP, 60, (), np.ones(2, dtype=bool))
    assert solution.values(0, 0) == []
    assert solution.values(1, 0) == full.values(1, 0)


@pytest.mark.parametrize("n", [0, 1])
def test_more_rows_than_people(n):
    with pytest.raises(InputError):
        solve_rounded(np.array([[10, 0], [0, 10]]), 1, RoundingRule.HALF_UP, n, (), np.ones(2, dtype=bool))


def test_nobody_at_all():
    empty = np.empty((0, 2), dtype=np.int64)
    nothing = np.ones(0, dtype=bool)
    assert solve_rounded(empty, 1, RoundingRule.HALF_UP, 0, (), nothing).lower.shape == (0, 2)
    with pytest.raises(InputError):
        solve_rounded(empty, 1, RoundingRule.HALF_UP, 3, (), nothing)
    table = replace(table_of([[1, 1]]), counts=empty, row_index=np.empty(0, dtype=np.int64), n=0)
    assert solve_exact(table, (), nothing).lower.shape == (0, 2)
    with pytest.raises(InputError):
        solve_exact(replace(table, n=3), (), nothing)


def test_knowledge_about_zero_rows_alone_can_clash():
    known = [BoundStatement(number=1, row=-1, cells=np.array([True, True]), lower=1, upper=NO_LIMIT)]
    with pytest.raises(InfeasibleError):
        solve_rounded(np.array([[5, 5]]), 1, RoundingRule.HALF_UP, 10, known, np.ones(1, dtype=bool))
