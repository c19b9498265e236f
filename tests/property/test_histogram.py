"""Histogram operations against tables kept as plain dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_or_many import few_or_many
from louver.data.histogram import Histogram
from louver.schema.attribute import Attribute, Kind
from louver.schema.recode import Recode
from oracles import tables

LABELS = tuple(str(number) for number in range(70_000))
HUGE = tuple(Attribute(name=f"H{axis}", labels=LABELS) for axis in range(4))  # their product leaves 64 bits


@st.composite
def attributes(draw, min_size=1, max_size=4):
    kinds = draw(
        st.lists(st.sampled_from([Kind.CATEGORY, Kind.ORDERED]), min_size=min_size, max_size=max_size)
    )
    return tuple(
        Attribute(
            name=f"A{i}", kind=kind, labels=tuple(f"{i}{c}" for c in "abcde"[: draw(st.integers(1, 5))])
        )
        for i, kind in enumerate(kinds)
    )


@st.composite
def cells(draw, of):
    cell = st.tuples(*(st.integers(0, attribute.size - 1) for attribute in of))
    return draw(st.lists(st.tuples(cell, st.integers(0, 50)), max_size=30))


@st.composite
def problems(draw):
    chosen = draw(attributes())
    return chosen, draw(cells(chosen))


def build(chosen, listed):
    codes = np.array([cell for cell, _ in listed], dtype=np.int64).reshape(len(listed), len(chosen))
    return Histogram.from_codes(chosen, codes, np.array([number for _, number in listed], dtype=np.int64))


def oracle(chosen, listed):
    named = [
        (tuple(a.labels[code] for a, code in zip(chosen, cell, strict=True)), number)
        for cell, number in listed
    ]
    return tables.count(named)


def check_form(histogram):
    """What a histogram is: distinct cells in lexicographic order, positive counts, nothing writable."""
    rows = [tuple(row) for row in histogram.codes.tolist()]
    assert rows == sorted(set(rows))
    assert (histogram.counts > 0).all()
    assert histogram.codes.shape == (len(histogram.counts), len(histogram.attributes))
    assert histogram.codes.dtype == histogram.counts.dtype == np.int64
    assert not histogram.codes.flags.writeable and not histogram.counts.flags.writeable


@few_or_many(20, 100, given(problems()))
def test_from_codes_adds_up_equal_cells(problem):
    chosen, listed = problem
    histogram = build(chosen, listed)
    check_form(histogram)
    assert tables.table_of(histogram) == oracle(chosen, listed)
    assert histogram.total == sum(number for _, number in listed)


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_the_cells_does_not_matter(problem, random):
    chosen, listed = problem
    shuffled = random.sample(listed, len(listed))
    assert build(chosen, listed) == build(chosen, shuffled)


@given(problems(), st.data())
def test_marginalise(problem, data):
    chosen, listed = problem
    axes = data.draw(st.permutations(range(len(chosen))).map(list))
    axes = axes[: data.draw(st.integers(0, len(axes)))]
    margin = build(chosen, listed).marginalise([chosen[axis].name for axis in axes])
    check_form(margin)
    assert tables.table_of(margin) == tables.margin(oracle(chosen, listed), axes)


@given(problems(), st.data())
def test_slice(problem, data):
    chosen, listed = problem
    axis = data.draw(st.integers(0, len(chosen) - 1))
    label = data.draw(st.sampled_from(chosen[axis].labels))
    part = build(chosen, listed).slice(chosen[axis].name, label)
    check_form(part)
    assert tables.table_of(part) == tables.cut(oracle(chosen, listed), axis, label)


@st.composite
def merges(draw, attribute):
    """Groups of labels, adjacent ones where the attribute is ordered; some labels stay."""
    if attribute.is_ordered:
        groups = [0]
        for _ in attribute.labels[1:]:
            groups.append(groups[-1] + draw(st.integers(0, 1)))
    else:
        groups = draw(st.lists(st.integers(0, 2), min_size=attribute.size, max_size=attribute.size))
    kept = draw(st.sets(st.sampled_from(groups)))
    merge: dict[str, tuple[str, ...]] = {}
    for group, label in zip(groups, attribute.labels, strict=True):
        if group not in kept:
            merge[f"group {group}"] = (*merge.get(f"group {group}", ()), label)
    return merge


@given(problems(), st.data())
def test_recode(problem, data):
    chosen, listed = problem
    axis = data.draw(st.integers(0, len(chosen) - 1))
    merge = data.draw(merges(chosen[axis]))
    recoded = build(chosen, listed).recode(Recode(chosen[axis].name, merge=merge))
    check_form(recoded)
    new_label = {old: new for new, group in merge.items() for old in group}
    assert tables.table_of(recoded) == tables.renamed(oracle(chosen, listed), axis, new_label)
    expected = list(dict.fromkeys(new_label.get(label, label) for label in chosen[axis].labels))
    assert list(recoded.attributes[axis].labels) == expected


@given(problems())
def test_dense_round_trip(problem):
    chosen, listed = problem
    histogram = build(chosen, listed)
    dense = histogram.to_dense()
    assert dense.sum() == histogram.total
    assert Histogram.from_dense(dense, chosen) == histogram


@pytest.mark.parametrize("n_huge", [2, 4])
@given(data=st.data())
def test_wide_domains(n_huge, data):
    """Two large attributes are sorted by flat number, four leave 64 bits and are sorted column by column."""
    chosen = HUGE[:n_huge]
    code = st.sampled_from([0, 1, 2, 69_998, 69_999])
    listed = data.draw(st.lists(st.tuples(st.tuples(*[code] * n_huge), st.integers(0, 5)), max_size=12))
    histogram = build(chosen, listed)
    check_form(histogram)
    assert tables.table_of(histogram) == oracle(chosen, listed)
    axes = data.draw(st.permutations(range(n_huge)))
    margin = histogram.marginalise([chosen[axis].name for axis in axes])
    check_form(margin)
    assert tables.table_of(margin) == tables.margin(oracle(chosen, listed), list(axes))


@given(st.lists(st.integers(2**60, 2**63 - 1), min_size=1, max_size=3))
def test_large_counts_are_exact_or_refused(counts):
    from louver.errors import InputError

    attribute = Attribute(name="A", labels=("a",))
    codes = np.zeros((len(counts), 1), dtype=np.int64)
    if sum(counts) < 2**63:
        assert Histogram.from_codes([attribute], codes, counts).total == sum(counts)
    else:
        with pytest.raises(InputError, match="64 bits"):
            Histogram.from_codes([attribute], codes, counts)
