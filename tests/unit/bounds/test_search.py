"""Redesign search: equal to exhaustive search on tables of three attributes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from louver.bounds.check import DisclosureRules, summary_of
from louver.bounds.problem import Arrangement
from louver.bounds.redesigns import Redesigns, Wishes
from louver.bounds.search import _RedesignSearch
from louver.bounds.search import search_redesigns as search
from louver.data.histogram import Histogram
from louver.run import Run
from louver.schema.attribute import Attribute, Kind
from louver.schema.hierarchy import Hierarchy
from louver.schema.recode import Recode
from oracles.redesign import Axis, all_redesigns, interval_partitions, pareto, set_partitions

search_redesigns = partial(search, run=Run())

SECONDS = 600  # the whole space is covered long before


def nominal(name, size):
    return Attribute(name=name, labels=tuple(f"{name}{i}" for i in range(size)))


def ordered(name, size):
    return Attribute(name=name, kind=Kind.ORDERED, labels=tuple(f"{name}{i}" for i in range(size)))


def nested(name):
    leaves = tuple(f"{name}{i}" for i in range(5))
    tree = Hierarchy.from_levels([leaves, ("u", "u", "v", "v", "w"), ("p", "p", "p", "p", "q")])
    return Attribute(name=name, labels=leaves, hierarchy=tree)


def partitions(attribute):
    if attribute.hierarchy is not None:
        finest = tuple((i,) for i in range(5))
        return finest, ((0, 1), (2, 3), (4,)), ((0, 1, 2, 3), (4,))
    return (interval_partitions if attribute.is_ordered else set_partitions)(attribute.size)


def far(attribute):
    """Partitions that unite more than half of an order, or of the levels of the hierarchy."""
    if attribute.hierarchy is not None:
        return frozenset({((0, 1, 2, 3), (4,))})
    if not attribute.is_ordered:
        return frozenset()
    half = (attribute.size - 1) / 2
    return frozenset(p for p in partitions(attribute) if any(group[-1] - group[0] > half for group in p))


def sparse_counts(seed, shape):
    """Counts with many zeros and ones, and a few large ones, so that some redesigns are safe and some not."""
    rng = np.random.default_rng(seed)
    return rng.geometric(0.3, shape) * rng.integers(0, 3, shape) * rng.integers(0, 4, shape)


SHAPES = {
    "nominal": (nominal("a", 3), nominal("b", 3), nominal("c", 3)),
    "ordered": (ordered("a", 4), nominal("b", 2), ordered("c", 3)),
    "hierarchy": (nested("a"), nominal("b", 2), nested("c")),
    "one label": (nominal("a", 1), nominal("b", 4), nominal("c", 2)),
}
ROLES = {"one response": (("a", "b"), ("c",)), "two responses": (("a",), ("b", "c"))}


@pytest.mark.parametrize("avoid", ["small", "attribute"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_exhaustive_search(shape, roles, seed, avoid):
    attributes, (rows, cols) = SHAPES[shape], ROLES[roles]
    counts = sparse_counts(seed, tuple(a.size for a in attributes))
    histogram = Histogram.from_dense(counts, attributes)
    axes = [Axis(partitions(a), a.name in cols, far(a)) for a in attributes]
    every = all_redesigns(counts, axes, small=5)
    best = pareto(every, avoid)
    found = search_redesigns(
        histogram, Arrangement(rows=rows, cols=cols), DisclosureRules(), avoid=avoid, seconds=SECONDS
    )
    assert found.is_proved
    assert found.examined == len(every)
    lines = [
        (
            round(line.bits, 7),
            line.is_far,
            line.summary.certain_rows,
            line.summary.disclosed_rows,
            line.summary.disclosed_zero_cells,
        )
        for line in found.lines
    ]
    assert len(lines) == len(set(lines))
    assert set(lines) == best
    order = [(line.is_far, -round(line.bits, 9)) for line in found.lines]
    assert order == sorted(order)
    assert any(one.small_cells for one in every)  # otherwise the search would have nothing to avoid
    first = max(one.bits for one in every)
    assert found.bits == pytest.approx(first)
    for line in found.lines:
        assert line.summary == summary_of(histogram, line.arrangement, DisclosureRules())
        assert line.share * found.bits == pytest.approx(line.bits)


def test_redesigns_of_a_recoded_table_are_recodes_of_the_data():
    attributes = (ordered("a", 4), nominal("b", 3), nominal("c", 3))
    counts = sparse_counts(5, (4, 3, 3))
    counts[3, 0, 0] = 0
    histogram = Histogram.from_dense(counts, attributes)
    recodes = (
        Recode("a", merge={"low": ("a0", "a1")}),
        Recode("c", merge={"rest": ("c0", "c2")}),
    )
    arrangement = Arrangement(rows=("a", "b"), cols=("c",), recodes=recodes)
    options = DisclosureRules(structural_zeros=({"a": ("a3",), "b": ("b0",), "c": ("c0", "c2")},))
    found = search_redesigns(histogram, arrangement, options, seconds=SECONDS)
    assert found.is_proved and found.lines
    for line in found.lines:
        assert line.summary == summary_of(histogram, line.arrangement, options)
        merged = {recode.attribute: recode.merge for recode in line.arrangement.recodes}
        if "c" in (*line.arrangement.rows, *line.arrangement.cols):
            assert merged["c"] == {"rest": ("c0", "c2")}
        if "a" in (*line.arrangement.rows, *line.arrangement.cols):
            assert any({"a0", "a1"} <= set(old) for old in merged["a"].values())
    coarse = histogram.recode(*recodes)
    on_coarse = search_redesigns(
        coarse, Arrangement(rows=("a", "b"), cols=("c",)), DisclosureRules(), seconds=SECONDS
    )
    assert found.bits == pytest.approx(on_coarse.bits)
    assert found.examined == on_coarse.examined


def test_a_table_that_is_safe_keeps_everything():
    counts = np.array([[40, 60], [30, 30]])
    histogram = Histogram.from_dense(counts, (nominal("a", 2), nominal("b", 2)))
    found = search_redesigns(
        histogram, Arrangement(rows=("a",), cols=("b",)), DisclosureRules(), seconds=SECONDS
    )
    assert found.lines[0].share == pytest.approx(1.0)
    assert found.lines[0].arrangement.recodes == ()
    p = counts / counts.sum()
    expected = sum(x * math.log2(x / (p[i].sum() * p[:, j].sum())) for (i, j), x in np.ndenumerate(p))
    assert found.bits == pytest.approx(expected)


def test_independent_attributes_have_nothing_to_lose():
    histogram = Histogram.from_dense(np.full((2, 2), 10), (nominal("a", 2), nominal("b", 2)))
    found = search_redesigns(
        histogram, Arrangement(rows=("a",), cols=("b",)), DisclosureRules(), seconds=SECONDS
    )
    assert found.bits == pytest.approx(0.0)
    assert [line.share for line in found.lines] == [1.0]


def test_it_stops_in_time_without_claiming_a_proof_and_tells_its_progress():
    attributes = tuple(nominal(name, 5) for name in "abcd")
    counts = np.random.default_rng(1).integers(500, 1000, (5, 5, 5, 5))
    histogram = Histogram.from_dense(counts, attributes)
    told = []
    found = search_redesigns(
        histogram,
        Arrangement(rows=("a",), cols=("b", "c", "d")),
        DisclosureRules(small=10**6),
        seconds=0.05,
        run=Run(lambda stage, done, total: told.append((done / total, stage))),
    )
    assert not found.is_proved
    assert told and told[0][0] > 0
    assert "examined" in told[-1][1]
    for line in found.lines:
        assert line.summary.disclosed_small_cells == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("roles", ROLES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_proof_claimed_early_is_true(shape, roles, seed):
    attributes, (rows, cols) = SHAPES[shape], ROLES[roles]
    counts = sparse_counts(10 + seed, tuple(a.size for a in attributes))
    axes = [Axis(partitions(a), a.name in cols, far(a)) for a in attributes]
    safe = [one.bits for one in all_redesigns(counts, axes, small=5) if one.is_safe("attribute")]
    space = Redesigns(Histogram.from_dense(counts, attributes), Arrangement(rows=rows, cols=cols))
    search = _RedesignSearch(space, DisclosureRules(), Run(), math.inf)
    n_proved = 0
    while search.by_bits:
        search.prove()
        search.dive()
        found = search.suggestions(0.0)
        if found.is_proved:
            n_proved += 1
            assert max((line.bits for line in found.lines), default=-1.0) == pytest.approx(
                max(safe, default=-1.0)
            )
    assert n_proved > 0


def crowded(seed=3):
    """Two attributes of numbers and one response; categories with few people."""
    attributes = (
        Attribute(name="age", labels=tuple(str(20 + 10 * i) for i in range(5))),
        nominal("town", 4),
        nominal("ill", 2),
    )
    counts = np.random.default_rng(seed).integers(0, 9, (5, 4, 2)) * 3
    counts[2, 1] = (1, 0)
    return Histogram.from_dense(counts, attributes), Arrangement(rows=("age", "town"), cols=("ill",))


def test_numbers_are_ordered_unless_a_spec_calls_them_categories():
    histogram, arrangement = crowded()
    for categories, only_runs in (((), True), (("age",), False)):
        space = Redesigns(histogram, arrangement, Wishes(categories=categories))
        steps = [state[0][1] for state in space.children(space.start())]
        groups = [group for partition in steps for group in partition if len(group) > 1]
        assert all(group[1] - group[0] == 1 for group in groups) is only_runs


def test_what_is_fixed_stays_where_and_as_it_is():
    histogram, arrangement = crowded()
    found = search_redesigns(
        histogram, arrangement, DisclosureRules(), wishes=Wishes(fix=("town",)), seconds=SECONDS
    )
    assert found.is_proved and found.lines
    for line in found.lines:
        assert "town" in line.arrangement.rows
        assert "town" not in [recode.attribute for recode in line.arrangement.recodes]


def test_what_must_stay_apart_stays_apart():
    histogram, arrangement = crowded()
    apart = {"town": (("town0", "town1"), ("town2", "town3"))}
    found = search_redesigns(
        histogram, arrangement, DisclosureRules(), wishes=Wishes(apart=apart), seconds=SECONDS
    )
    free = search_redesigns(histogram, arrangement, DisclosureRules(), seconds=SECONDS)
    assert found.examined < free.examined
    for line in found.lines:
        for group in line.merged:
            assert group.attribute != "town" or not any(
                set(one) <= set(group.labels) for one in apart["town"]
            )


def test_a_merge_that_changes_nothing_is_not_told():
    """Both towns tell the same, so merging them costs no information: the plain table is told."""
    attributes = (nominal("town", 3), nominal("ill", 2))
    histogram = Histogram.from_dense(np.array([[30, 60], [10, 20], [40, 40]]), attributes)
    found = search_redesigns(
        histogram, Arrangement(rows=("town",), cols=("ill",)), DisclosureRules(small=2), seconds=SECONDS
    )
    assert found.lines[0].merged == () and found.lines[0].share == pytest.approx(1.0)
    assert not any(other.merged and other.share == pytest.approx(1.0) for other in found.lines[1:])


@pytest.mark.parametrize("seed", range(6))
def test_a_plain_move_that_is_safe_is_never_missing(seed):
    histogram, arrangement = crowded(seed)
    options = DisclosureRules()
    found = search_redesigns(histogram, arrangement, options, avoid="small", seconds=1e-9)
    moves = [("age", "town", "ill")[i] for i in (0, 1)]
    safe = []
    for name in moves:
        rows = tuple(other for other in arrangement.rows if other != name)
        moved = Arrangement(rows=rows, cols=(name, "ill"))
        summary = summary_of(histogram, moved, options)
        if not summary.disclosed_small_cells:
            safe.append(summary)
    plain = [line.summary for line in found.lines if not line.arrangement.recodes]
    for summary in safe:
        assert any(other.risk[1:] <= summary.risk[1:] for other in plain)


def test_far_merges_come_last_and_say_so():
    histogram, arrangement = crowded()
    found = search_redesigns(histogram, arrangement, DisclosureRules(), seconds=SECONDS)
    flags = [line.is_far for line in found.lines]
    assert flags == sorted(flags)
    for line in found.lines:
        spans = [(len(group.labels) - 1) / 4 for group in line.merged if group.attribute == "age"]
        assert line.is_far == any(span > 0.5 for span in spans)
        assert ("far apart" in line.words) == line.is_far


def test_a_hurried_search_keeps_what_it_found():
    attributes = tuple(nominal(name, 4) for name in "abc")
    histogram = Histogram.from_dense(np.random.default_rng(2).integers(0, 9, (4, 4, 4)), attributes)
    told = []
    run = Run(lambda *_: run.hurry(), stand=lambda lost, least: told.append((lost, least)))
    found = search_redesigns(
        histogram, Arrangement(rows=("a",), cols=("b", "c")), DisclosureRules(), seconds=math.inf, run=run
    )
    assert found.lines and not found.is_proved
    assert all(0 <= least <= lost <= 1 for lost, least in told)
