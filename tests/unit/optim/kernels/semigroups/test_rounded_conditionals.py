"""Row totals and cell counts under rounded conditionals, against enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from louver.bounds.rounded import _solid_from, _wide_from
from louver.optim.kernels.semigroups.progressions import append_regions
from louver.optim.kernels.semigroups.rounded_conditionals import (
    add_set_inplace,
    cell_runs,
    count_interval,
    feasible_totals,
    matching_totals,
)
from oracles.knapsack import compositions, expanded, fewest_runs, rounded

NO_LIMIT = 2**62
RULES = {"half-up": False, "half-even": True}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("decimals", [0, 1, 2])
def test_count_interval_holds_the_counts_that_round_to_the_value(rule, decimals):
    unit = 10**decimals
    for t in range(1, 42):
        printed = [rounded(Fraction(count, t), decimals, rule) for count in range(t + 1)]
        for k in range(unit + 1):
            low, high = count_interval(k, unit, t, RULES[rule])
            assert list(range(low, high + 1)) == [count for count in range(t + 1) if printed[count] == k]


@st.composite
def rows(draw):
    """A published row of J cells with bounds on a nested tree: cells, perhaps one pair of cells, the row."""
    n_cells = draw(st.integers(1, 4))
    decimals = draw(st.integers(0, 1))
    rule = draw(st.sampled_from(list(RULES)))
    true = draw(st.lists(st.integers(0, 4), min_size=n_cells, max_size=n_cells).filter(any))
    published = [rounded(Fraction(count, sum(true)), decimals, rule) for count in true]
    has_pair = n_cells >= 3 and draw(st.booleans())
    n_nodes = n_cells + has_pair + 1
    parent = [n_nodes - 1] * (n_nodes - 1) + [-1]
    if has_pair:
        parent[0] = parent[1] = n_cells
    at_least = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=n_nodes, max_size=n_nodes))
    at_most = draw(
        st.lists(st.sampled_from([NO_LIMIT, NO_LIMIT, 1, 3, 6]), min_size=n_nodes, max_size=n_nodes)
    )
    return published, decimals, rule, parent, at_least, at_most


def enumerated(row, total):
    """All cell counts with this total that round to the published values and keep every bound."""
    published, decimals, rule, parent, at_least, at_most = row
    n_cells = len(published)
    found = []
    for cells in compositions(total, n_cells):
        nodes = list(cells) + [0] * (len(parent) - n_cells)
        for node in range(len(parent) - 1):
            nodes[parent[node]] += nodes[node]
        if all(low <= x <= high for low, x, high in zip(at_least, nodes, at_most, strict=True)) and all(
            rounded(Fraction(count, total), decimals, rule) == k
            for count, k in zip(cells, published, strict=True)
        ):
            found.append(cells)
    return found


def arrays(row):
    published, decimals, rule, parent, at_least, at_most = row
    tree = [np.array(part, dtype=np.int64) for part in (parent, at_least, at_most)]
    return np.array(published, dtype=np.int64), 10**decimals, RULES[rule], *tree


@given(rows())
def test_feasible_totals(row):
    allowed = feasible_totals(*arrays(row), 9)
    assert allowed.tolist() == [False, *(bool(enumerated(row, t)) for t in range(1, 10))]


@given(rows(), st.integers(0, 2**9 - 1))
def test_cell_runs_hold_every_value_over_the_given_totals(row, mask):
    totals = [t for t in range(1, 10) if mask >> (t - 1) & 1 and enumerated(row, t)]
    runs, span = cell_runs(*arrays(row), np.array(totals, dtype=np.int64), 1, 0)
    for cell in range(len(row[0])):
        expected = sorted({cells[cell] for t in totals for cells in enumerated(row, t)})
        found = runs[span[cell, 0] : span[cell, 1]].tolist()
        assert expanded(found) == expected
        assert len(found) == fewest_runs(expected)


@given(rows(), st.integers(0, 50), st.integers(0, 120))
def test_a_solid_range_equals_its_totals_one_by_one(row, after, length):
    published, decimals = np.array(row[0]), row[1]
    assume(_solid_from(published, 10**decimals) is not None)
    n_cells = len(row[0])
    star = np.array([n_cells] * n_cells + [-1])
    nothing_known = star, np.zeros(n_cells + 1, dtype=np.int64), np.full(n_cells + 1, NO_LIMIT)
    first = max(_solid_from(published, 10**decimals), _wide_from(published, 10**decimals)) + after
    totals = np.arange(first, first + length + 1)
    none = np.empty(0, dtype=np.int64)
    arguments = published, 10**decimals, RULES[row[2]], *nothing_known
    listed_runs, listed_span = cell_runs(*arguments, totals, 1, 0)
    solid_runs, solid_span = cell_runs(*arguments, none, first, first + length)
    assert solid_runs.tolist() == listed_runs.tolist()
    assert solid_span.tolist() == listed_span.tolist()


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=8))
def test_append_regions_gives_the_fewest_runs_of_a_union(intervals):
    lowest = np.array([low for low, _ in intervals], dtype=np.int64)
    highest = np.array([low + more for low, more in intervals], dtype=np.int64)
    values = sorted({x for low, more in intervals for x in range(low, low + more + 1)})
    span = np.zeros((2, 2), dtype=np.int64)
    runs = append_regions(np.empty((1, 3), dtype=np.int64), span, 0, lowest, highest)
    found = runs[: span[0, 1]].tolist()
    assert expanded(found) == values
    assert len(found) == fewest_runs(values)
    assert span[-1, 1] == len(found)


# Sets that hold 0: some numbers below a length, and either all or none from there on.
TOP = 191
tailed_sets = st.tuples(st.sets(st.integers(1, 150), max_size=8), st.integers(1, 160), st.booleans())


def as_bits(numbers, length, has_tail, n_words):
    words = np.zeros(n_words, dtype=np.uint64)
    for x in {0, *numbers}:
        if x < length:
            words[x >> 6] |= np.uint64(1) << np.uint64(x & 63)
    return words, np.array([length, int(has_tail)], dtype=np.int64)


def as_set(words, size, top=TOP):
    inside = {x for x in range(min(int(size[0]), top + 1)) if int(words[x >> 6]) >> (x & 63) & 1}
    return inside | (set(range(int(size[0]), top + 1)) if size[1] else set())


@given(first=tailed_sets, others=st.lists(tailed_sets, min_size=1, max_size=3))
def test_sums_of_sets_with_tails(first, others):
    words, size = as_bits(*first, 3)
    work = np.zeros(3, dtype=np.uint64)
    expected = as_set(words, size)
    for other in others:
        other_words, other_size = as_bits(*other, 4)
        expected = {a + b for a in expected for b in as_set(other_words, other_size) if a + b <= TOP}
        add_set_inplace(words, size, other_words, other_size, work)
        assert as_set(words, size) == expected


def test_a_set_of_everything_stays_everything():
    words, size = as_bits({1}, 0, True, 3)
    words[:] = 0
    other_words, other_size = as_bits({3}, 10, False, 3)
    add_set_inplace(words, size, other_words, other_size, np.zeros(3, dtype=np.uint64))
    assert as_set(words, size) == set(range(TOP + 1))


@given(own=tailed_sets, others=tailed_sets, target=st.integers(0, TOP))
def test_matching_totals(own, others, target):
    mine, theirs = as_bits(*own, 3), as_bits(*others, 3)
    listed, first, last = matching_totals(*mine, *theirs, target)
    found = sorted([*listed.tolist(), *range(first, last + 1)])
    assert found == sorted(x for x in as_set(*mine) if x <= target and target - x in as_set(*theirs))
